#include "access/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

namespace ringshift::access {
namespace {

using protocol::resp::all_commands;
using protocol::resp::Command;

struct Count {
  std::size_t on = 0, off = 0;
};

Count count(const Selector& selector, std::size_t category) {
  Count result;
  for (const Command& command : all_commands()) {
    if ((command.categories & (1U << category)) == 0) continue;
    ++(selector.commands.test(index_of(command)) ? result.on : result.off);
  }
  return result;
}

// The category not used yet that brings us nearest to `left`: more that fits than differs, the least that
// differs. kNone when none does.
constexpr std::size_t kNone = ~std::size_t{0};
std::size_t best_category(const Selector& left, bool additive, const std::vector<bool>& used) {
  std::size_t best = kNone;
  std::size_t least = std::numeric_limits<int>::max();
  std::size_t most = 0;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    const Count counted = count(left, i);
    const std::size_t differ = additive ? counted.off : counted.on;
    const std::size_t same = additive ? counted.on : counted.off;
    if (same > differ && (differ < least || (differ == least && same > most))) {
      best = i;
      least = differ;
      most = same;
    }
  }
  return best;
}

std::string describe(const Selector& selector) {
  std::string out = describe_keys(selector);
  if (!out.empty()) out += ' ';
  if (!selector.all_channels) out += "resetchannels ";
  out += describe_channels(selector);
  if (!out.empty() && out.back() != ' ') out += ' ';
  return out + describe_commands(selector);
}

}  // namespace

std::string describe_commands(const Selector& selector) {
  const bool additive = !selector.new_commands;
  Selector so_far;           // What the text so far gives,
  Selector left = selector;  // and what it does not explain yet.
  std::string text = additive ? "-@all" : "+@all";
  (void)apply_rule(so_far, text);
  const auto names = protocol::resp::acl_category_names();
  std::vector<bool> used(names.size());
  for (std::size_t best; (best = best_category(left, additive, used)) != kNone;) {
    const std::string rule = fmt::format("{}@{}", additive ? '+' : '-', names[best]);
    (void)apply_rule(so_far, rule);
    (void)apply_rule(left, fmt::format("{}@{}", additive ? '-' : '+', names[best]));
    text += " " + rule;
    used[best] = true;
  }
  for (const Command& command : all_commands()) {
    const std::size_t index = index_of(command);
    const bool wanted = selector.commands.test(index);
    if (wanted != so_far.commands.test(index)) {
      const std::string rule = fmt::format("{}{}", wanted ? '+' : '-', command.name);
      (void)apply_rule(so_far, rule);
      text += " " + rule;
    }
    const auto first = selector.first_arguments.find(index);
    if (wanted || first == selector.first_arguments.end()) continue;
    for (const std::string& argument : first->second) text += fmt::format(" +{}|{}", command.name, argument);
  }
  return text;
}

std::string describe_keys(const Selector& selector) {
  if (selector.all_keys) return "~*";
  std::vector<std::string> patterns;
  for (const KeyPattern& pattern : selector.keys) {
    const char* how = pattern.read && pattern.write ? "" : pattern.read ? "%R" : "%W";
    patterns.push_back(fmt::format("{}~{}", how, pattern.text));
  }
  return fmt::format("{}", fmt::join(patterns, " "));
}

std::string describe_channels(const Selector& selector) {
  if (selector.all_channels) return "&*";
  std::vector<std::string> channels;
  for (const std::string& channel : selector.channels) channels.push_back("&" + channel);
  return fmt::format("{}", fmt::join(channels, " "));
}

std::vector<std::string> flags_of(const User& user) {
  std::vector<std::string> flags{user.enabled() ? "on" : "off"};
  if (user.needs_no_password()) flags.emplace_back("nopass");
  if (user.sanitize() == User::Sanitize::skip) flags.emplace_back("skip-sanitize-payload");
  if (user.sanitize() == User::Sanitize::always) flags.emplace_back("sanitize-payload");
  return flags;
}

std::string describe(const User& user) {
  std::string line = fmt::format("user {} {} ", user.name(), fmt::join(flags_of(user), " "));
  for (const std::string& hash : user.passwords()) line += fmt::format("#{} ", hash);
  for (const Selector& selector : user.selectors()) {
    const bool root = &selector == user.selectors().data();
    line += root ? describe(selector) : fmt::format(" ({})", describe(selector));
  }
  return line;
}

}  // namespace ringshift::access
