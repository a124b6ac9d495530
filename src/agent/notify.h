// What systemd is told of a service with Type=notify: lines to the unix datagram socket that NOTIFY_SOCKET
// names. Without that variable, nothing. Never blocks, never fails: nobody depends on it. Any thread.
#pragma once
#include <chrono>
#include <optional>
#include <string_view>

namespace ringshift::agent {

// "READY=1\nSTATUS=...", "STOPPING=1", "WATCHDOG=1".
void notify_systemd(std::string_view lines);
// WATCHDOG_USEC: within what time systemd wants to hear of us; nullopt: it does not.
[[nodiscard]] std::optional<std::chrono::microseconds> systemd_watchdog();

}  // namespace ringshift::agent
