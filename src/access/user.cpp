#include "access/user.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <utility>

#include "access/glob.h"
#include "hashing/sha256.h"

namespace ringshift::access {
namespace {

using protocol::resp::all_commands;
using protocol::resp::Arguments;
using protocol::resp::Command;
using protocol::resp::Handling;
using protocol::resp::KeyRef;

// No branch depends on what is compared.
bool same_hash(std::string_view a, std::string_view b) noexcept {
  unsigned different = a.size() != b.size() ? 1U : 0U;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return different == 0;
}

bool key_allowed(const Selector& selector, std::string_view key, std::uint16_t flags) {
  using namespace protocol::resp;
  const bool reads = (flags & key_access) != 0;
  const bool writes = (flags & (key_insert | key_update | key_delete)) != 0;
  return std::ranges::any_of(selector.keys, [&](const KeyPattern& pattern) {
    return (!reads || pattern.read) && (!writes || pattern.write) && matches_glob(pattern.text, key);
  });
}

struct Channels {
  std::size_t first = 0, last = 0;  // Arguments; first 0: none.
  bool patterns = false;
};

Channels channels_of(const Command& command, std::size_t arguments) {
  if ((command.flags & protocol::resp::k_pubsub) == 0) return {};
  if (command.name == "publish" || command.name == "spublish") return {1, 1};
  if (command.name == "subscribe" || command.name == "ssubscribe") return {1, arguments - 1};
  if (command.name == "psubscribe") return {1, arguments - 1, true};
  return {};
}

bool channel_allowed(const Selector& selector, std::string_view channel, bool pattern) {
  return std::ranges::any_of(selector.channels, [&](const std::string& allowed) {
    return pattern ? allowed == channel : matches_glob(allowed, channel);
  });
}

bool first_argument_allowed(const Selector& selector, const Command& command, const Arguments& arguments) {
  if (selector.first_arguments.empty() || arguments.size() < 2) return false;
  const auto found = selector.first_arguments.find(index_of(command));
  if (found == selector.first_arguments.end()) return false;
  const std::string_view given = arguments[1];
  return std::ranges::any_of(found->second, [&](const std::string& known) {
    return known.size() == given.size() && strncasecmp(known.data(), given.data(), given.size()) == 0;
  });
}

Verdict check_selector(const Selector& selector, const Command& command, const Arguments& arguments) {
  if (!selector.commands.test(index_of(command)) && !first_argument_allowed(selector, command, arguments)) {
    return {Verdict::Kind::no_command, 0};
  }
  if (!selector.all_keys && command.key_use != protocol::resp::KeyUse::none) {
    std::vector<KeyRef> keys;
    (void)find_keys(command, arguments, keys);  // What is malformed changes nothing at the member.
    for (const KeyRef& key : keys) {
      if ((key.flags & protocol::resp::key_not_key) != 0) continue;
      if (!key_allowed(selector, arguments[key.argument], key.flags)) {
        return {Verdict::Kind::no_key, key.argument};
      }
    }
  }
  if (!selector.all_channels) {
    const Channels channels = channels_of(command, arguments.size());
    for (std::size_t i = channels.first; i != 0 && i <= channels.last; ++i) {
      if (!channel_allowed(selector, arguments[i], channels.patterns)) return {Verdict::Kind::no_channel, i};
    }
  }
  return {};
}

}  // namespace

std::size_t index_of(const Command& command) noexcept {
  static const std::span<const Command> all = all_commands();
  static const std::size_t setname = static_cast<std::size_t>(
      std::ranges::find(all, std::string_view("client|setname"), &Command::name) - all.begin());
  const bool listed = &command >= all.data() && &command < all.data() + all.size();
  return listed ? static_cast<std::size_t>(&command - all.data()) : setname;
}

User User::unrestricted() {
  User user("default");
  user.enabled_ = user.no_password_ = user.may_all_ = true;
  for (const std::string_view rule : {"+@all", "~*", "&*"}) (void)apply_rule(user.selectors_[0], rule);
  return user;
}

bool User::admits(std::string_view password) const {
  if (!enabled_) return false;
  if (no_password_) return true;
  const std::string hash = hashing::sha256_hex(password);
  bool fits = false;
  for (const std::string& known : passwords_) fits = same_hash(known, hash) || fits;
  return fits;
}

Verdict User::check(const Command& command, const Arguments& arguments) const {
  if (may_all_ || (command.flags & protocol::resp::k_no_auth) != 0) return {};
  Verdict worst{Verdict::Kind::no_command, 0};
  for (const Selector& selector : selectors_) {
    const Verdict verdict = check_selector(selector, command, arguments);
    if (verdict.kind == Verdict::Kind::allowed) return verdict;
    if (verdict.kind > worst.kind || (verdict.kind == worst.kind && verdict.argument > worst.argument)) {
      worst = verdict;
    }
  }
  return worst;
}

std::string denial(const Verdict& verdict, const Command& command) {
  if (verdict.kind == Verdict::Kind::no_command) {
    return fmt::format("-NOPERM this user has no permissions to run the '{}' command", command.name);
  }
  return fmt::format("-NOPERM this user has no permissions to access one of the {} used as arguments",
                     verdict.kind == Verdict::Kind::no_key ? "keys" : "channels");
}

std::string dry_denial(const Verdict& verdict, const Command& command, const Arguments& arguments) {
  if (verdict.kind == Verdict::Kind::no_command) {
    return fmt::format("This user has no permissions to run the '{}' command", command.name);
  }
  return fmt::format("This user has no permissions to access the '{}' {}", arguments[verdict.argument],
                     verdict.kind == Verdict::Kind::no_key ? "key" : "channel");
}

void Users::add(User user) {
  auto owned = std::make_shared<const User>(std::move(user));
  if (owned->name() == "default") default_ = owned.get();
  users_[owned->name()] = std::move(owned);
}

const User* Users::find(std::string_view name) const noexcept {
  const auto found = users_.find(name);
  return found == users_.end() ? nullptr : found->second.get();
}

const User* Users::authenticate(std::string_view name, std::string_view password) const {
  const User* user = find(name);
  if (user == nullptr) {
    // A name that nobody has takes as long as a wrong password.
    (void)hashing::sha256_hex(password);
    return nullptr;
  }
  return user->admits(password) ? user : nullptr;
}

bool Users::restrict() const noexcept {
  return users_.size() > 1 || !default_->may_all() || !default_->enabled() || !default_->needs_no_password();
}

}  // namespace ringshift::access
