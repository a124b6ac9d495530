// Which commands of the table this proxy serves, and what it says of the others. Whoever teaches the session
// a new handling says so here; COMMAND and docs/commands.md follow.
#pragma once
#include <string_view>

#include "protocol/resp/command_table.h"

namespace ringshift::proxy {

// Whether commands may wait at their members (Handling::blocking).
inline constexpr bool kServesWaiting = false;

// With some arguments at least; a container: one of its subcommands.
[[nodiscard]] bool served(const protocol::resp::Command& command) noexcept;

// REQUIRES: these arguments of it are not served.
[[nodiscard]] std::string_view why_not_served(const protocol::resp::Command& command) noexcept;

}  // namespace ringshift::proxy
