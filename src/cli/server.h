// What every server command does: log to standard error, say when it serves, wait for signals.
#pragma once
#include <chrono>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace ringshift::cli {

// Installs the sink of base::log: lines are written by a thread of their own, since nobody may wait for who
// reads them (base/line_writer.h). What is queued at the end is written within a second. Call before threads
// start.
enum class LogFormat { text, json };
void log_to_stderr(base::LogLevel level, LogFormat format = LogFormat::text);

// Blocks signals in this thread and in all that it starts later, so that wait() gets them.
// SIGPIPE is ignored: a peer that is gone shows as an error of the write.
class Signals {
 public:
  explicit Signals(std::initializer_list<int> signals);
  [[nodiscard]] int wait() const;  // The next of them.
  [[nodiscard]] std::optional<int> wait_for(
      std::chrono::milliseconds duration) const;  // If it comes in time.

 private:
  std::vector<int> signals_;
};

// "ready: NAME listening on ADDRESS" on standard output, at once.
void announce(std::string_view name, std::string_view address);

}  // namespace ringshift::cli
