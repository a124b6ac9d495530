// Asking the controller: write the `request` key, wait for the answer in `status`.
#pragma once
#include <chrono>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "resize/status.h"

namespace ringshift::cli {

inline constexpr std::chrono::seconds kControllerAnswer{30};  // How long a command waits for the controller.

// "ann@host", for the log.
[[nodiscard]] std::string who_asks();

// The controller's answer; `retryable` when none came in time. Only one request may be outstanding.
[[nodiscard]] Status ask_controller(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                                    resize::Request request, std::chrono::milliseconds patience);

[[nodiscard]] Result<resize::ResizeStatus> read_status(coord::Coordinator& coordinator,
                                                       const coord::ClusterKeys& keys);

}  // namespace ringshift::cli
