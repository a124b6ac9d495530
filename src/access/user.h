// A user of the proxy and what he may do, as Redis 7.0's ACL rules say it: "on >secret ~order:* &news
// +@read".
//
// Immutable once parsed; any thread. Cost of a check: one test of a bitmap for a user who may touch all keys;
// else the command's keys are found and each is matched with the patterns. Passwords are kept as SHA-256, and
// compared in a time that does not depend on where they differ, nor on which of them fits.
#pragma once
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/resp/command_keys.h"
#include "protocol/resp/command_table.h"
#include "ringshift/error.h"

namespace ringshift::access {

inline constexpr std::size_t kMaxCommands = 512;  // Entries of the command table, checked where it is read.
inline constexpr std::size_t kMaxRules = 10'000;  // Of one user.

// The place of a command in the table; CLIENT SETINFO, which has none, counts as CLIENT SETNAME.
[[nodiscard]] std::size_t index_of(const protocol::resp::Command& command) noexcept;

struct KeyPattern {
  std::string text;
  bool read = true, write = true;
};

// Commands with the keys and channels that they may be used on.
struct Selector {
  std::bitset<kMaxCommands> commands;
  bool new_commands = false;  // +@all: what a later version knows is allowed, too.
  bool all_keys = false, all_channels = false;
  std::vector<KeyPattern> keys;
  std::vector<std::string> channels;
  std::map<std::size_t, std::vector<std::string>> first_arguments;  // "+select|0".
};

struct Verdict {
  enum class Kind : std::uint8_t { allowed, no_command, no_key, no_channel };
  Kind kind = Kind::allowed;
  std::size_t argument = 0;  // The key or the channel.
};

class User {
 public:
  // A new user is off, has no password and may do nothing. Rules that stand in parentheses may be cut at
  // their spaces. The error names the rule.
  [[nodiscard]] static Result<User> parse(std::string name, std::span<const std::string> rules);
  // "default" of a server that nobody configured: on, without a password, free to do everything.
  [[nodiscard]] static User unrestricted();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool enabled() const noexcept { return enabled_; }
  [[nodiscard]] bool needs_no_password() const noexcept { return no_password_; }
  // Whether somebody with this password is this user: never one who is off.
  [[nodiscard]] bool admits(std::string_view password) const;

  // REQUIRES: the command's arity fits.
  [[nodiscard]] Verdict check(const protocol::resp::Command& command,
                              const protocol::resp::Arguments& arguments) const;
  // Everything is allowed, so check() need not be asked.
  [[nodiscard]] bool may_all() const noexcept { return may_all_; }

  // What describe.h shows.
  enum class Sanitize : std::uint8_t { unset, skip, always };  // Kept and shown: our members decide.
  [[nodiscard]] Sanitize sanitize() const noexcept { return sanitize_; }
  [[nodiscard]] const std::vector<std::string>& passwords() const noexcept { return passwords_; }  // Hashes.
  [[nodiscard]] const std::vector<Selector>& selectors() const noexcept {
    return selectors_;
  }  // First: root.

 private:
  explicit User(std::string name) : name_(std::move(name)), selectors_(1) {}
  std::string apply(std::string_view rule);  // "", or what is wrong with it.
  std::string apply_password(std::string_view rule);
  std::string add_selector(std::string_view rule);

  std::string name_;
  bool enabled_ = false, no_password_ = false, may_all_ = false;
  Sanitize sanitize_ = Sanitize::unset;
  std::vector<std::string> passwords_;
  std::vector<Selector> selectors_;
};

// Changes one selector by one rule about commands, keys or channels. "", or what is wrong with the rule.
[[nodiscard]] std::string apply_rule(Selector& selector, std::string_view rule);

// The error reply without its line end, exactly as Redis 7.0 words it. REQUIRES: not allowed.
[[nodiscard]] std::string denial(const Verdict& verdict, const protocol::resp::Command& command);
// The same as ACL DRYRUN says it.
[[nodiscard]] std::string dry_denial(const Verdict& verdict, const protocol::resp::Command& command,
                                     const protocol::resp::Arguments& arguments);

// The users of one configuration; by name, "default" is always there.
class Users {
 public:
  Users() { add(User::unrestricted()); }
  // Replaces one of the same name.
  void add(User user);
  [[nodiscard]] const User* find(std::string_view name) const noexcept;
  [[nodiscard]] const User& default_user() const noexcept { return *default_; }
  [[nodiscard]] const std::map<std::string, std::shared_ptr<const User>, std::less<>>& all() const noexcept {
    return users_;
  }
  // The user whom these words authenticate; null when there is none.
  [[nodiscard]] const User* authenticate(std::string_view name, std::string_view password) const;
  // Somebody may not do everything at once.
  [[nodiscard]] bool restrict() const noexcept;

 private:
  std::map<std::string, std::shared_ptr<const User>, std::less<>> users_;
  const User* default_ = nullptr;
};

// A file of users as Redis' `aclfile`: lines "user NAME RULES", empty ones, and comments ("#").
[[nodiscard]] Status read_users(std::string_view text, std::string_view place, Users& users);

}  // namespace ringshift::access
