// Every command that a real server knows, and what Ringshift does with it: the policy in one place.
//
// The facts (arity, flags, keys) are generated from a server's COMMAND output (command_table.inc, by
// scripts/generate-command-table); the policy is in command_table.cpp. Immutable, any thread. find() costs
// one hash of at most 8 bytes and one comparison.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace ringshift::protocol::resp {

enum CommandFlag : std::uint16_t {
  k_write = 1,
  k_readonly = 2,
  k_denyoom = 4,
  k_admin = 8,
  k_pubsub = 16,
  k_noscript = 32,
  k_blocking = 64,
  k_movablekeys = 128,
  k_fast = 256,
};

enum class KeyUse : std::uint8_t { none, read, write };

enum class Handling : std::uint8_t {
  routed,       // One key: goes to its member as it came. With more keys than one: refused (see has_one_key).
  split_mget,   // One command a member, the replies woven together.
  split_mset,   // One command a member, OK when all said so.
  split_count,  // DEL, UNLINK, EXISTS, TOUCH: one command a member, the sum.
  local,        // Answered by the proxy.
  container,    // Look at the subcommand.
  unsupported,
};

// The commands that the proxy answers itself.
enum class LocalCommand : std::uint8_t {
  none,
  ping,
  echo,
  hello,
  client,
  select,
  quit,
  reset,
  info,
  command
};

struct Command {
  std::string_view name;  // Lower case; a subcommand's with its container's, "object|encoding".
  std::int8_t arity;      // Negative: at least that many.
  std::uint16_t flags;
  std::int8_t first_key, last_key, key_step;
  KeyUse key_use;
  Handling handling;
  LocalCommand local;
  std::uint8_t subcommands;  // They follow this entry in all_commands().

  [[nodiscard]] bool arity_fits(std::size_t arguments) const noexcept {
    const auto n = static_cast<std::int64_t>(arguments);
    return arity >= 0 ? n == arity : n >= -arity;
  }
  // REQUIRES: handling is routed and the arity fits. Whether these arguments name one key.
  [[nodiscard]] bool has_one_key(std::size_t arguments) const noexcept {
    if (last_key == first_key) return true;
    return last_key == -1 && static_cast<std::int64_t>(arguments) - first_key == key_step;
  }
};

// nullptr when no server command has this name; any case.
[[nodiscard]] const Command* find_command(std::string_view name) noexcept;
// nullptr when `container` has no such subcommand; any case.
[[nodiscard]] const Command* find_subcommand(const Command& container, std::string_view name) noexcept;
// Sorted by name, each container followed by its subcommands.
[[nodiscard]] std::span<const Command> all_commands() noexcept;

[[nodiscard]] bool equals_ignoring_case(std::string_view any, std::string_view lower) noexcept;

}  // namespace ringshift::protocol::resp
