// Server programs as children that die with us, also when we are killed: the kernel sends them SIGKILL with
// the thread that started them, so start from one that lives as long as they do, such as main's.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "ringshift/error.h"

namespace ringshift::drill {

struct SpawnOptions {
  std::optional<std::pair<uid_t, gid_t>> user;  // Another one to run as; for root.
  std::string log;                              // A file for its output; empty: nowhere.
  std::string install_hint;                     // Said when the program is not there.
};

// Starts words[0] (from PATH, or by its path); an exec that fails is an error here.
[[nodiscard]] Result<pid_t> spawn(const std::vector<std::string>& words, const SpawnOptions& options);
// Waits for its end; SIGKILL at the deadline.
void end_process(pid_t pid, std::chrono::steady_clock::time_point deadline);
// Runs it to its end; an error has the last line of its log.
[[nodiscard]] Status run_program(const std::vector<std::string>& words, const SpawnOptions& options,
                                 std::chrono::seconds timeout);
[[nodiscard]] std::string last_line_of(const std::string& file);

}  // namespace ringshift::drill
