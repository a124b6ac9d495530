// Client threads that work on few, contended keys through any number of proxies and record what they saw.
//
// Keys come and go: see key_lives.h. Every written value is unique (members of sets excepted). A client whose
// connection breaks goes on at a proxy of the list chosen at random.
// The same seed makes the same choices; what comes of them depends on time.
// Thread rule: run_workload() blocks; its callbacks are called by the clients' threads.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/access.h"
#include "check/operation.h"
#include "protocol/resp/value.h"

namespace ringshift::check {

inline constexpr std::uint32_t kMaxClients = 256;
inline constexpr std::uint32_t kMaxPipeline = 16;
inline constexpr std::size_t kMaxValueBytes = 64U << 20;
inline constexpr std::size_t kErrorExamples = 5;

struct WorkloadOptions {
  std::vector<std::string> proxies;                     // "host:port", "[v6]:port", "unix:/path"
  std::shared_ptr<const backend::MemberAccess> access;  // Password and TLS; null: neither.
  std::string prefix;                                   // Of all keys; "h:<seed>:" when empty.
  std::vector<Kind> kinds;                              // All when empty.
  std::uint32_t clients = 12;
  std::uint32_t keys = 24;    // Of each kind.
  std::uint32_t rate = 4000;  // Operations a second of all clients together; 0: as fast as they can.
  std::uint32_t max_pipeline = 8;
  std::size_t max_value = 0;  // Bytes; few values are that long, most short. 0: all short.
  std::chrono::milliseconds duration{5000};
  std::chrono::milliseconds timeout{15000};  // Longer than a proxy parks a command.
  std::uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;  // Ends the run early.
  std::string stop_file;                    // So does this file, when it exists.
  // Asked every 10 ms by the thread of run_workload(), with the operations so far; true ends the run.
  std::function<bool(std::uint64_t operations)> tick;
  // Gets each key's whole history once it is complete; the history that run_workload() gives is then without
  // operations. Without it, memory grows with the run. May block: its client then does.
  std::function<void(std::vector<Operation>)> done;
  // For tests of the checker: may answer in the server's place, and then the command is not sent; a null
  // answer leaves it alone. Called by all client threads.
  std::function<std::optional<protocol::resp::Value>(const Operation&)> tamper;
  // For tests of the checker: sees every operation once it is answered. Called by all client threads.
  std::function<void(const Operation&)> observe;
};

[[nodiscard]] std::string prefix_of(const WorkloadOptions& options);

// Runs to the end. Every operation begun is in the history, or was given to `done`.
[[nodiscard]] History run_workload(const WorkloadOptions& options);

}  // namespace ringshift::check
