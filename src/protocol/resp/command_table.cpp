#include "protocol/resp/command_table.h"

#include <array>
#include <cstring>

#include "protocol/resp/command_table_policy.h"

namespace ringshift::protocol::resp {
namespace {

struct Fact {
  std::string_view name;
  int level, arity;
  std::uint32_t flags;
  int first, last, step;
  std::uint32_t categories;
  std::string_view tips;
  int specs, subcommands;
};

constexpr Fact kFacts[] = {
#define RS_COMMAND(name, level, arity, flags, first, last, step, categories, tips, specs, subcommands) \
  {name, level, arity, flags, first, last, step, categories, tips, specs, subcommands},
#define RS_KEY_SPEC(flags, begin, at, keyword, find, a, b, c, notes)
#include "protocol/resp/command_table.inc"
#undef RS_COMMAND
#undef RS_KEY_SPEC
};
constexpr std::size_t kCount = std::size(kFacts);

constexpr KeySpec kSpecs[] = {
#define RS_COMMAND(name, level, arity, flags, first, last, step, categories, tips, specs, subcommands)
#define RS_KEY_SPEC(flags, begin, at, keyword, find, a, b, c, notes) \
  {flags, KeySpec::Begin::begin, at, keyword, KeySpec::Find::find, a, b, c, notes},
#include "protocol/resp/command_table.inc"
#undef RS_COMMAND
#undef RS_KEY_SPEC
};

// PFCOUNT is flagged readonly, but its key specification says that it may write; XREADGROUP's specification
// says that it reads, but it is flagged write: it changes the group.
constexpr KeyUse use_of(std::span<const KeySpec> specs, std::uint32_t command_flags) {
  KeyUse use = KeyUse::none;
  for (const KeySpec& spec : specs) {
    if ((spec.flags & key_not_key) != 0) continue;
    if ((spec.flags & key_ro) == 0 || (command_flags & k_write) != 0) return KeyUse::write;
    use = KeyUse::read;
  }
  return use;
}

constexpr KeyFinder finder_of(std::string_view name) {
  using std::string_view_literals::operator""sv;
  for (const auto pairs : {"mset"sv, "msetnx"sv})
    if (name == pairs) return KeyFinder::pairs;
  for (const auto pop : {"lmpop"sv, "blmpop"sv, "zmpop"sv, "bzmpop"sv})
    if (name == pop) return KeyFinder::counted;
  if (name == "set") return KeyFinder::set;
  if (name == "bitfield") return KeyFinder::bitfield;
  if (name == "sort" || name == "sort_ro") return KeyFinder::sort;
  if (name == "georadius" || name == "georadiusbymember") return KeyFinder::georadius;
  if (name == "xread" || name == "xreadgroup") return KeyFinder::xread;
  return KeyFinder::specs;
}

constexpr Traffic traffic_of(std::string_view name, KeyUse use) {
  if (name == "get") return Traffic::get;
  if (name == "getex" || name == "getdel") return Traffic::get_write;
  if (name == "mget") return Traffic::mget;
  return use == KeyUse::none ? Traffic::other : use == KeyUse::read ? Traffic::read : Traffic::write;
}

constexpr std::size_t kPolicyCount = std::size(kPolicies);

// The line for this name, or the one for all subcommands of its container; kPolicyCount: none. (An index:
// under UBSan GCC takes no comparison with nullptr for a constant.)
constexpr std::size_t policy_of(std::string_view name) {
  const std::size_t bar = name.find('|');
  std::size_t of_container = kPolicyCount;
  for (std::size_t i = 0; i < kPolicyCount; ++i) {
    const std::string_view line = kPolicies[i].name;
    if (line == name) return i;
    if (bar != std::string_view::npos && line.size() == bar + 2 && line.ends_with("|*") &&
        line.substr(0, bar + 1) == name.substr(0, bar + 1)) {
      of_container = i;
    }
  }
  return of_container;
}

constexpr void decide(Command& command) {
  const std::size_t policy = policy_of(command.name);
  if (command.name.ends_with("|help") && (policy == kPolicyCount || kPolicies[policy].name != command.name)) {
    command.handling = Handling::local;
    command.local = LocalCommand::help;
  } else if (policy != kPolicyCount) {
    command.handling = kPolicies[policy].handling;
    command.local = kPolicies[policy].local;
    command.fan_out = kPolicies[policy].fan_out;
    command.reason = kPolicies[policy].reason;
  } else if (command.subcommands > 0) {
    command.handling = Handling::container;
  } else if (command.key_use != KeyUse::none && (command.flags & (k_admin | k_pubsub | k_blocking)) == 0) {
    command.handling = Handling::routed;
  }
}

constexpr std::array<Command, kCount> make_commands() {
  std::array<Command, kCount> commands{};
  std::size_t next_spec = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const Fact& fact = kFacts[i];
    Command& command = commands[i];
    command.name = fact.name;
    command.arity = static_cast<std::int8_t>(fact.arity);
    command.first_key = static_cast<std::int8_t>(fact.first);
    command.last_key = static_cast<std::int8_t>(fact.last);
    command.key_step = static_cast<std::int8_t>(fact.step);
    command.subcommands = static_cast<std::uint8_t>(fact.subcommands);
    command.flags = fact.flags;
    command.categories = fact.categories;
    command.tips = fact.tips;
    command.first_spec = static_cast<std::uint16_t>(next_spec);
    command.specs = static_cast<std::uint16_t>(fact.specs);
    command.finder = finder_of(fact.name);
    command.key_use = use_of(std::span(kSpecs).subspan(next_spec, command.specs), fact.flags);
    command.traffic = traffic_of(fact.name, command.key_use);
    command.always_one_key =
        command.key_use != KeyUse::none && fact.last == fact.first && (fact.flags & k_movablekeys) == 0;
    next_spec += command.specs;
    decide(command);
    command.plain = command.handling == Handling::routed && command.always_one_key;
  }
  return commands;
}
constexpr std::array<Command, kCount> kCommands = make_commands();

// Every command of the server is decided, and whatever is not plain has its reason.
constexpr bool all_decided() {
  for (const Command& command : kCommands) {
    if (command.handling == Handling::undecided) return false;
    if (command.handling == Handling::unsupported && command.reason.empty()) return false;
    if (command.handling == Handling::fan_out && (command.reason.empty() || command.fan_out == FanOut::none))
      return false;
    if (command.handling == Handling::local && command.local == LocalCommand::none) return false;
  }
  return true;
}
static_assert(all_decided());

// No line of the policy is about a command that does not exist.
constexpr bool all_exist() {
  for (const Policy& policy : kPolicies) {
    const bool many = policy.name.ends_with("|*");
    const std::string_view name = many ? policy.name.substr(0, policy.name.size() - 2) : policy.name;
    bool exists = false;
    for (const Command& command : kCommands)
      exists = exists || (command.name == name && (!many || command.subcommands > 0));
    if (!exists) return false;
  }
  return true;
}
static_assert(all_exist());

constexpr Command kClientSetInfo = [] {
  Command command{};
  command.name = "client|setinfo";
  command.arity = 4;
  command.handling = Handling::local;
  command.local = LocalCommand::client;
  command.reason = "accepted, as by Redis 7.2; not kept";
  return command;
}();

constexpr std::string_view kFlagNames[] = {"write",      "readonly",          "denyoom",          "admin",
                                           "pubsub",     "noscript",          "blocking",         "loading",
                                           "stale",      "skip_monitor",      "skip_slowlog",     "asking",
                                           "fast",       "no_auth",           "no_async_loading", "no_multi",
                                           "allow_busy", "no_mandatory_keys", "movablekeys"};
constexpr std::string_view kCategoryNames[] = {
    "keyspace", "read",   "write",       "set",       "sortedset",  "list",        "hash",
    "string",   "bitmap", "hyperloglog", "geo",       "stream",     "pubsub",      "admin",
    "fast",     "slow",   "blocking",    "dangerous", "connection", "transaction", "scripting"};
constexpr std::string_view kKeyFlagNames[] = {
    "RO",     "RW",     "OW",      "RM",         "access",        "update",
    "insert", "delete", "not_key", "incomplete", "variable_flags"};

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
  } else if (!name.empty()) {
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

namespace {

[[gnu::noinline]] const Command* search(std::string_view name) noexcept {
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

}  // namespace

const Command* find_command(std::string_view name) noexcept {
  // Most names are where they belong, and told from all others by one comparison.
  const std::uint64_t word = prefix(name);
  const Slot& slot = kIndex[slot_of(word, name.size())];
  if (slot.word == word && slot.size == name.size() && slot.exact) [[likely]]
    return &kCommands[slot.index];
  return search(name);
}

const Command* find_subcommand(const Command& container, std::string_view name) noexcept {
  for (std::size_t i = 1; i <= container.subcommands; ++i) {
    const Command& command = *(&container + i);
    if (equals_ignoring_case(name, command.name.substr(container.name.size() + 1))) return &command;
  }
  if (container.name == "client" && equals_ignoring_case(name, "setinfo")) return &kClientSetInfo;
  return nullptr;
}

std::span<const Command> all_commands() noexcept { return kCommands; }

std::span<const KeySpec> Command::key_specs() const noexcept {
  return std::span(kSpecs).subspan(first_spec, specs);
}

std::span<const std::string_view> command_flag_names() noexcept { return kFlagNames; }
std::span<const std::string_view> acl_category_names() noexcept { return kCategoryNames; }
std::span<const std::string_view> key_flag_names() noexcept { return kKeyFlagNames; }

}  // namespace ringshift::protocol::resp
