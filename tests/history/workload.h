// Client threads that work on few, contended keys through any number of proxies and record what they saw.
//
// Keys are named by seed, kind, number and generation; a key is given up for its next generation after
// kOperationsPerKey operations, or kUnknownsPerKey of unknown outcome, so that each search stays small while
// a key lives long enough to be moved under load. Every written value is unique. A client whose connection
// breaks goes on at a proxy of the list chosen at random.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "protocol/resp/value.h"
#include "tests/history/client.h"
#include "tests/history/operation.h"

namespace ringshift::history {

inline constexpr std::uint32_t kOperationsPerKey = 400;
inline constexpr std::uint32_t kUnknownsPerKey = 24;

struct WorkloadOptions {
  std::vector<Address> proxies;
  std::uint32_t clients = 12;
  std::uint32_t keys = 24;    // Of each kind.
  std::uint32_t rate = 4000;  // Operations a second of all clients together; 0: as fast as they can.
  std::uint32_t max_pipeline = 8;
  std::chrono::milliseconds duration{5000};
  std::chrono::milliseconds timeout{15000};  // Longer than a proxy parks a command.
  std::uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;  // Ends the run early.
  std::string stop_file;                    // So does this file, when it exists.
  // For tests of the checker: may answer in the server's place, and then the command is not sent; a null
  // answer leaves it alone. Called by all client threads.
  std::function<std::optional<protocol::resp::Value>(const Operation&)> tamper;
  // For tests of the checker: sees every operation once it is answered. Called by all client threads.
  std::function<void(const Operation&)> observe;
};

// Runs to the end. Every operation begun is in the history.
[[nodiscard]] History run_workload(const WorkloadOptions& options);

}  // namespace ringshift::history
