// Every command that a real server knows, and what Ringshift does with it: the policy in one place.
//
// The facts (arity, flags, categories, key specifications) are generated from a server's COMMAND output
// (command_table.inc, by scripts/generate-command-table); the policy, with a reason for whatever is not
// simply routed, is in command_table_policy.h; the keys of one command's arguments are found by
// command_keys.h. Immutable, any thread. find_command() costs one hash of at most 8 bytes and one comparison.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ringshift::protocol::resp {

// As COMMAND INFO names them, and in its order.
enum CommandFlag : std::uint32_t {
  k_write = 1U << 0,
  k_readonly = 1U << 1,
  k_denyoom = 1U << 2,
  k_admin = 1U << 3,
  k_pubsub = 1U << 4,
  k_noscript = 1U << 5,
  k_blocking = 1U << 6,
  k_loading = 1U << 7,
  k_stale = 1U << 8,
  k_skip_monitor = 1U << 9,
  k_skip_slowlog = 1U << 10,
  k_asking = 1U << 11,
  k_fast = 1U << 12,
  k_no_auth = 1U << 13,
  k_no_async_loading = 1U << 14,
  k_no_multi = 1U << 15,  // Refused between MULTI and EXEC.
  k_allow_busy = 1U << 16,
  k_no_mandatory_keys = 1U << 17,
  k_movablekeys = 1U << 18,
};

// Of ACL rules, "+@read"; in the order of COMMAND INFO.
enum AclCategory : std::uint32_t {
  acl_keyspace = 1U << 0,
  acl_read = 1U << 1,
  acl_write = 1U << 2,
  acl_set = 1U << 3,
  acl_sortedset = 1U << 4,
  acl_list = 1U << 5,
  acl_hash = 1U << 6,
  acl_string = 1U << 7,
  acl_bitmap = 1U << 8,
  acl_hyperloglog = 1U << 9,
  acl_geo = 1U << 10,
  acl_stream = 1U << 11,
  acl_pubsub = 1U << 12,
  acl_admin = 1U << 13,
  acl_fast = 1U << 14,
  acl_slow = 1U << 15,
  acl_blocking = 1U << 16,
  acl_dangerous = 1U << 17,
  acl_connection = 1U << 18,
  acl_transaction = 1U << 19,
  acl_scripting = 1U << 20,
};

// Of a key, as COMMAND GETKEYSANDFLAGS names them.
enum KeyFlag : std::uint16_t {
  key_ro = 1U << 0,  // Read only; RW: read and changed; OW: overwritten; RM: removed.
  key_rw = 1U << 1,
  key_ow = 1U << 2,
  key_rm = 1U << 3,
  key_access = 1U << 4,  // Of the value: returned, copied; changed; added to; taken from.
  key_update = 1U << 5,
  key_insert = 1U << 6,
  key_delete = 1U << 7,
  key_not_key = 1U << 8,     // Routed like a key, but it is a channel.
  key_incomplete = 1U << 9,  // There may be more keys than the specification finds.
  key_variable_flags = 1U << 10,
};

// Where keys are among the arguments, as Redis describes it.
struct KeySpec {
  enum class Begin : std::uint8_t { unknown, index, keyword };
  enum class Find : std::uint8_t { unknown, range, keynum };
  std::uint16_t flags;  // KeyFlag.
  Begin begin;
  std::int8_t begin_at;  // index: the first; keyword: where the search starts, backwards when negative.
  std::string_view keyword;
  Find find;
  std::int8_t a, b, c;  // range: last key, step, limit; keynum: index of the number, first key, step.
  std::string_view notes;
};

enum class KeyUse : std::uint8_t { none, read, write };

enum class Handling : std::uint8_t {
  undecided,    // No command has it.
  routed,       // Goes as it came to the one member of its keys; keys of several members: CROSSSLOT.
  split_mget,   // One command a member, the replies woven together.
  split_mset,   // One command a member, OK when all said so.
  split_count,  // DEL, UNLINK, EXISTS, TOUCH: one command a member, the sum.
  local,        // Answered by the proxy: see LocalCommand.
  fan_out,      // To several members: see FanOut.
  transaction,  // MULTI and its company.
  blocking,     // Routed, but may wait at its member, so it needs a connection of its own: see blocks().
  pubsub,
  names_database,  // Routed, once the database that an argument names was found to be one.
  container,       // Look at the subcommand.
  unsupported,     // Refused, with the reason.
};

// The commands that the proxy answers itself. Subcommands have their container's.
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
  command,
  time,
  config,
  slowlog,
  latency,
  auth,
  acl,
  role,
  cluster,  // All answer as a server that is not in a cluster; so do ASKING, READONLY and READWRITE.
  help,     // The container's help_lines().
};

// To whom, and what the one answer is.
enum class FanOut : std::uint8_t {
  none,
  all_ok,        // All members; OK when all said so, else the first error.
  any_ok,        // All members; OK when one said so, else the first error.
  same,          // All members; all answer the same: the first answer, or the first error.
  merge_exists,  // SCRIPT EXISTS: 1 where every member said 1.
  any,           // One member, whichever.
  sum,           // DBSIZE.
  concat,        // KEYS: without the reserved ones.
  random,        // RANDOMKEY: of members in proportion to their sizes.
  scan,          // SCAN: one cursor over all members.
  flush,         // FLUSHALL, FLUSHDB: all_ok, when a setting allows it.
  wait,          // WAIT: the smallest answer.
};

// What a command's reply tells those who count what goes to a member and what it answers.
enum class Traffic : std::uint8_t {
  none,       // Nobody's command: a step of our own.
  other,      // Without keys.
  read,       // Only reads its keys.
  write,      // All others with keys.
  get,        // GET: reads one key, and nil means that it is not there.
  get_write,  // GETEX, GETDEL: the same, and changes it.
  mget,       // An element for each key, as GET has it.
  // Questions to a member that may not be the one who answers the client (see proxy/dual_router.h):
  get_if_there,    // GET, which counts only when its reply is a value.
  read_if_exists,  // EXISTS behind a read: when it says 1, the read counts.
  mget_if_exists,  // EXISTS behind an MGET of one key.
  count_of_kinds,
};
[[nodiscard]] constexpr bool writes(Traffic traffic) noexcept {
  return traffic == Traffic::write || traffic == Traffic::get_write;
}

// How find_keys() reads the arguments.
enum class KeyFinder : std::uint8_t {
  specs,     // As the key specifications say; without any: no keys.
  pairs,     // MSET, MSETNX: the same, and every key has its value.
  counted,   // LMPOP and the like: the same, and something follows the last key.
  set,       // The same, but the options decide on the flags.
  bitfield,  // The same.
  sort,
  georadius,
  xread,
};

struct Command {
  std::string_view name;  // Lower case; a subcommand's with its container's, "object|encoding".
  std::int8_t arity;      // Negative: at least that many.
  std::int8_t first_key, last_key, key_step;
  Handling handling;
  bool always_one_key;  // At first_key, whatever the arguments are.
  bool plain;           // Routed, and always_one_key.
  KeyFinder finder;
  KeyUse key_use;   // Of all its keys together; write unless it only reads.
  Traffic traffic;  // As a client's command.
  LocalCommand local;
  FanOut fan_out;
  std::uint8_t subcommands;  // They follow this entry in all_commands().
  std::uint32_t flags;       // CommandFlag.
  std::uint32_t categories;  // AclCategory.
  // unsupported: why. Else how it differs from one Redis server; empty when it does not.
  std::string_view reason;
  std::string_view tips;  // For clients, between spaces.
  std::uint16_t first_spec, specs;

  [[nodiscard]] bool arity_fits(std::size_t arguments) const noexcept {
    const auto n = static_cast<std::int64_t>(arguments);
    return arity >= 0 ? n == arity : n >= -arity;
  }
  // REQUIRES: the arity fits, key_use is not none. Whether its only key is argument `first_key`: cheap, and
  // enough for most commands. false says nothing: see find_keys().
  [[nodiscard]] bool has_one_key(std::size_t arguments) const noexcept {
    if (always_one_key) return true;
    return last_key == -1 && static_cast<std::int64_t>(arguments) - first_key == key_step;
  }
  [[nodiscard]] bool is_subcommand() const noexcept { return name.find('|') != std::string_view::npos; }
  [[nodiscard]] std::span<const KeySpec> key_specs() const noexcept;
};

// nullptr when no server command has this name; any case.
[[nodiscard]] const Command* find_command(std::string_view name) noexcept;
// nullptr when `container` has no such subcommand; any case. Also finds CLIENT SETINFO, which libraries send
// to every server, but which is newer than the table and so not in all_commands().
[[nodiscard]] const Command* find_subcommand(const Command& container, std::string_view name) noexcept;
// Sorted by name, each container followed by its subcommands.
[[nodiscard]] std::span<const Command> all_commands() noexcept;

// The names of the bits that are set, in the order of COMMAND INFO; the bit's number is the index.
[[nodiscard]] std::span<const std::string_view> command_flag_names() noexcept;
[[nodiscard]] std::span<const std::string_view> acl_category_names() noexcept;  // Without "@".
[[nodiscard]] std::span<const std::string_view> key_flag_names() noexcept;

// command_table_docs.cpp. What COMMAND DOCS says of a command but its subcommands, appended as a map with
// `extra_pairs` more pairs announced. REQUIRES: `command` is an entry of all_commands().
void append_docs(std::string& out, const Command& command, bool resp3, std::size_t extra_pairs);
// What "<container> HELP" answers, lines with '\n' between them; empty when there is no such text.
[[nodiscard]] std::string_view help_lines(std::string_view container) noexcept;

[[nodiscard]] bool equals_ignoring_case(std::string_view any, std::string_view lower) noexcept;

}  // namespace ringshift::protocol::resp
