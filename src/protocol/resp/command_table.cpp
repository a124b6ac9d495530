#include "protocol/resp/command_table.h"

#include <array>
#include <cstring>

namespace ringshift::protocol::resp {
namespace {

struct Fact {
  std::string_view name;
  int level, arity, flags, first, last, step;
  KeyUse use;
  int subcommands;
};

constexpr Fact kFacts[] = {
#define RS_COMMAND(name, level, arity, flags, first, last, step, use, subcommands) \
  {name, level, arity, flags, first, last, step, KeyUse::use, subcommands},
#include "protocol/resp/command_table.inc"
#undef RS_COMMAND
};
constexpr std::size_t kCount = std::size(kFacts);

struct Special {
  std::string_view name;
  Handling handling;
  LocalCommand local = LocalCommand::none;
};

// Where the facts alone do not decide.
constexpr Special kSpecials[] = {
    {"mget", Handling::split_mget},
    {"mset", Handling::split_mset},
    {"del", Handling::split_count},
    {"unlink", Handling::split_count},
    {"exists", Handling::split_count},
    {"touch", Handling::split_count},
    {"ping", Handling::local, LocalCommand::ping},
    {"echo", Handling::local, LocalCommand::echo},
    {"hello", Handling::local, LocalCommand::hello},
    {"client", Handling::local, LocalCommand::client},
    {"select", Handling::local, LocalCommand::select},
    {"quit", Handling::local, LocalCommand::quit},
    {"reset", Handling::local, LocalCommand::reset},
    {"info", Handling::local, LocalCommand::info},
    {"command", Handling::local, LocalCommand::command},
    {"move", Handling::unsupported},            // To another database: there is only number 0.
    {"watch", Handling::unsupported},           // Belongs to MULTI.
    {"restore-asking", Handling::unsupported},  // Redis Cluster's own.
};

// Routed: the keys are named by the facts, begin at one place, and the command neither blocks nor
// administers nor publishes. Commands that take several keys (SINTER, PFCOUNT, ...) are routed when they
// name one.
constexpr Handling handling_of(const Fact& fact) {
  constexpr int kNever = k_admin | k_pubsub | k_blocking | k_movablekeys;
  if (fact.subcommands > 0) return Handling::container;
  if (fact.first <= 0 || (fact.flags & kNever) != 0) return Handling::unsupported;
  if (fact.last == fact.first || fact.last == -1) return Handling::routed;
  return Handling::unsupported;
}

constexpr std::array<Command, kCount> make_commands() {
  std::array<Command, kCount> commands{};
  for (std::size_t i = 0; i < kCount; ++i) {
    const Fact& fact = kFacts[i];
    Command& command = commands[i];
    command = {fact.name,
               static_cast<std::int8_t>(fact.arity),
               static_cast<std::uint16_t>(fact.flags),
               static_cast<std::int8_t>(fact.first),
               static_cast<std::int8_t>(fact.last),
               static_cast<std::int8_t>(fact.step),
               fact.use,
               handling_of(fact),
               LocalCommand::none,
               static_cast<std::uint8_t>(fact.subcommands)};
    for (const Special& special : kSpecials) {
      if (special.name != fact.name) continue;
      command.handling = special.handling;
      command.local = special.local;
    }
  }
  return commands;
}
constexpr std::array<Command, kCount> kCommands = make_commands();

// --- lookup: open addressing over the first 8 bytes, lower case, and the length. --------------------------

constexpr std::uint64_t kLowerMask = 0x2020202020202020;

// The first 8 bytes as a little-endian number. Setting bit 5 folds case (and a few other characters, which
// the comparison tells apart).
constexpr std::uint64_t prefix(std::string_view name) noexcept {
  std::uint64_t word = 0;
  if consteval {  // The same without memcpy.
    const auto bytes = [&](std::size_t from, std::size_t count) {
      std::uint64_t number = 0;
      for (std::size_t i = count; i-- > 0;) number = number << 8 | static_cast<unsigned char>(name[from + i]);
      return number;
    };
    if (name.size() >= 8) return bytes(0, 8) | kLowerMask;
    if (name.size() >= 4) return (bytes(0, 4) | bytes(name.size() - 4, 4) << 32) | kLowerMask;
    if (name.size() >= 2) return (bytes(0, 2) | bytes(name.size() - 2, 2) << 16) | kLowerMask;
  }
  if (name.size() >= 8) {
    std::memcpy(&word, name.data(), 8);
  } else if (name.size() >= 4) {
    std::uint32_t front = 0;
    std::uint32_t back = 0;
    std::memcpy(&front, name.data(), 4);
    std::memcpy(&back, name.data() + name.size() - 4, 4);
    word = front | static_cast<std::uint64_t>(back) << 32;
  } else if (name.size() >= 2) {
    std::uint16_t front = 0;
    std::uint16_t back = 0;
    std::memcpy(&front, name.data(), 2);
    std::memcpy(&back, name.data() + name.size() - 2, 2);
    word = front | static_cast<std::uint64_t>(back) << 16;
  } else {
    word = static_cast<unsigned char>(name[0]);
  }
  return word | kLowerMask;
}

constexpr bool only_letters(std::string_view name) noexcept {
  for (const char c : name) {
    if (c < 'a' || c > 'z') return false;
  }
  return true;
}

constexpr std::size_t kSlots = 1024;

constexpr std::size_t slot_of(std::uint64_t word, std::size_t size) noexcept {
  return static_cast<std::size_t>(((word ^ size) * 0x9E3779B97F4A7C15ULL) >> 54);
}

struct Slot {
  std::uint64_t word = 0;
  std::uint16_t size = 0;  // 0: empty.
  std::uint16_t index = 0;
  bool exact = false;  // All of the name is in `word`, and letters only: equal words are equal names.
};

constexpr std::array<Slot, kSlots> kIndex = [] {
  std::array<Slot, kSlots> slots{};
  for (std::size_t i = 0; i < kCount; ++i) {
    if (kFacts[i].level != 0) continue;
    const std::string_view name = kFacts[i].name;
    std::size_t at = slot_of(prefix(name), name.size());
    while (slots[at].size != 0) at = (at + 1) % kSlots;
    slots[at] = {prefix(name), static_cast<std::uint16_t>(name.size()), static_cast<std::uint16_t>(i),
                 only_letters(name) && name.size() <= 8};
  }
  return slots;
}();

}  // namespace

bool equals_ignoring_case(std::string_view any, std::string_view lower) noexcept {
  if (any.size() != lower.size()) return false;
  for (std::size_t i = 0; i < any.size(); ++i) {
    char c = any[i];
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
    if (c != lower[i]) return false;
  }
  return true;
}

const Command* find_command(std::string_view name) noexcept {
  if (name.empty()) return nullptr;
  const std::uint64_t word = prefix(name);
  for (std::size_t at = slot_of(word, name.size()); kIndex[at].size != 0; at = (at + 1) % kSlots) {
    const Slot& slot = kIndex[at];
    if (slot.word == word && slot.size == name.size() &&
        (slot.exact || equals_ignoring_case(name, kCommands[slot.index].name))) {
      return &kCommands[slot.index];
    }
  }
  return nullptr;
}

const Command* find_subcommand(const Command& container, std::string_view name) noexcept {
  for (std::size_t i = 1; i <= container.subcommands; ++i) {
    const Command& command = *(&container + i);
    if (equals_ignoring_case(name, command.name.substr(container.name.size() + 1))) return &command;
  }
  return nullptr;
}

std::span<const Command> all_commands() noexcept { return kCommands; }

}  // namespace ringshift::protocol::resp
