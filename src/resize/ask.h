// Asking the controller: write the `request` key, wait for the answer in `status`. What the CLI and the admin
// API have in common.
//
// Blocking, up to the patience; any thread. Only one request may be outstanding in a cluster.
#pragma once
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "resize/status.h"

namespace ringshift::resize {

inline constexpr std::chrono::seconds kControllerAnswer{30};  // How long to wait for the controller.

// The controller's answer: `invalid` when it refuses; `overloaded` when another request waits, `retryable`
// when no answer came in time, or `give_up` became true: then the request is taken back.
[[nodiscard]] Status ask_controller(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                                    Request request, std::chrono::milliseconds patience,
                                    const std::atomic<bool>* give_up = nullptr);

[[nodiscard]] Result<ResizeStatus> read_status(coord::Coordinator& coordinator,
                                               const coord::ClusterKeys& keys);

// How long the controller may take to answer: with `expire` it counts the keys first.
[[nodiscard]] std::chrono::milliseconds answer_patience(coord::Coordinator& coordinator,
                                                        const coord::ClusterKeys& keys,
                                                        const Request& request,
                                                        std::chrono::milliseconds usual);

// What an operator says of a start, in words: the flags of `resize start`, or the API's options.
struct StartWords {
  std::vector<double> steps;
  std::string soak, at, until, abort_if;
  std::uint64_t keys_per_second = 0, bytes_per_second = 0;
  bool replace = false, allow_foreign = false, force = false;
  std::string mode = "move", rest, deadline = "1h";
  std::string big_keys, verify;
  std::uint64_t big_key_limit = 0;
  std::vector<std::string> lost;
  std::optional<std::uint64_t> origin_budget;
};
// What can be known to be wrong before anybody is asked; the message begins with the option's name. The spec
// and who asks are the caller's to add.
[[nodiscard]] Result<Request> start_request(const StartWords& words);

}  // namespace ringshift::resize
