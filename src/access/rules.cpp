// The rules' grammar.
#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "access/user.h"
#include "hashing/sha256.h"

namespace ringshift::access {
namespace {

using protocol::resp::all_commands;
using protocol::resp::Command;
using protocol::resp::equals_ignoring_case;
using protocol::resp::find_command;
using protocol::resp::find_subcommand;

constexpr std::string_view kSyntax = "syntax error";
constexpr std::string_view kUnknown = "unknown command or category";
constexpr std::string_view kAfterAll =
    "a pattern behind the one for all has no effect: reset the patterns first, or leave one of both out";

bool has_spaces(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return std::isspace(c) != 0 || c == 0; });
}

// "get", "config|get"; null when there is none.
const Command* look_up(std::string_view name) {
  const std::size_t bar = name.find('|');
  const Command* command = find_command(name.substr(0, bar));
  if (command == nullptr || bar == std::string_view::npos) return command;
  const Command* sub = find_subcommand(*command, name.substr(bar + 1));
  const std::span<const Command> all = all_commands();
  return sub >= all.data() && sub < all.data() + all.size() ? sub : nullptr;
}

void permit(Selector& selector, const Command& command, bool allowed) {
  const std::size_t first = index_of(command);
  selector.first_arguments.erase(first);
  for (std::size_t i = first; i <= first + command.subcommands; ++i) selector.commands.set(i, allowed);
}

bool permit_category(Selector& selector, std::string_view name, bool allowed) {
  if (equals_ignoring_case(name, "all")) {
    selector.first_arguments.clear();
    selector.new_commands = allowed;
    allowed ? selector.commands.set() : selector.commands.reset();
    return true;
  }
  const auto names = protocol::resp::acl_category_names();
  const auto found =
      std::ranges::find_if(names, [&](auto known) { return equals_ignoring_case(name, known); });
  if (found == names.end()) return false;
  const std::uint32_t bit = 1U << static_cast<unsigned>(found - names.begin());
  for (const Command& command : all_commands()) {
    if ((command.categories & bit) != 0) permit(selector, command, allowed);
  }
  return true;
}

// "+select|0": SELECT, but only with this first argument.
std::string permit_first_argument(Selector& selector, std::string_view name, std::size_t bar) {
  const std::string_view container = name.substr(0, bar);
  const std::string_view argument = name.substr(bar + 1);
  const Command* command = look_up(container);
  if (command == nullptr) return std::string(kUnknown);
  if (command->is_subcommand()) return "a first argument of a subcommand cannot be allowed";
  if (argument.empty()) return std::string(kSyntax);
  if (command->subcommands != 0) {
    const Command* sub = look_up(name);
    if (sub == nullptr) return std::string(kUnknown);
    permit(selector, *sub, true);
    return {};
  }
  std::vector<std::string>& allowed = selector.first_arguments[index_of(*command)];
  if (std::ranges::none_of(allowed, [&](const std::string& known) {
        return known.size() == argument.size() &&
               strncasecmp(known.data(), argument.data(), known.size()) == 0;
      })) {
    allowed.emplace_back(argument);
  }
  return {};
}

std::string apply_command(Selector& selector, std::string_view rule) {
  const bool allowed = rule[0] == '+';
  const std::string_view name = rule.substr(1);
  if (name.starts_with('@')) {
    return permit_category(selector, name.substr(1), allowed) ? std::string() : std::string(kUnknown);
  }
  if (const std::size_t bar = name.rfind('|'); allowed && bar != std::string_view::npos) {
    return permit_first_argument(selector, name, bar);
  }
  const Command* command = look_up(name);
  if (command == nullptr) return std::string(kUnknown);
  permit(selector, *command, allowed);
  return {};
}

// "~pattern", "%R~pattern", "%RW~pattern"
std::string apply_keys(Selector& selector, std::string_view rule) {
  if (selector.all_keys) return std::string(kAfterAll);
  KeyPattern pattern;
  const bool says_how = rule[0] == '%';
  rule.remove_prefix(1);
  if (says_how) {
    pattern.read = pattern.write = false;
    for (; !rule.empty() && rule[0] != '~'; rule.remove_prefix(1)) {
      bool& how = std::toupper(rule[0]) == 'R' ? pattern.read : pattern.write;
      if (how || (std::toupper(rule[0]) != 'R' && std::toupper(rule[0]) != 'W')) return std::string(kSyntax);
      how = true;
    }
    if (!pattern.read && !pattern.write) return std::string(kSyntax);
    if (!rule.empty()) rule.remove_prefix(1);
  }
  if (has_spaces(rule)) return std::string(kSyntax);
  const auto known = std::ranges::find(selector.keys, rule, &KeyPattern::text);
  if (known != selector.keys.end()) {
    known->read = known->read || pattern.read;
    known->write = known->write || pattern.write;
    return {};
  }
  pattern.text = rule;
  selector.keys.push_back(std::move(pattern));
  return {};
}

std::string apply_channels(Selector& selector, std::string_view rule) {
  if (selector.all_channels) return std::string(kAfterAll);
  rule.remove_prefix(1);
  if (has_spaces(rule)) return std::string(kSyntax);
  if (std::ranges::find(selector.channels, rule) == selector.channels.end()) {
    selector.channels.emplace_back(rule);
  }
  return {};
}

bool is_hash(std::string_view text) {
  return text.size() == 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

std::string apply_rule(Selector& selector, std::string_view rule) {
  const auto is = [&](std::string_view word) { return equals_ignoring_case(rule, word); };
  if (is("allkeys") || rule == "~*") {
    selector.all_keys = true;
    selector.keys.clear();
  } else if (is("resetkeys")) {
    selector.all_keys = false;
    selector.keys.clear();
  } else if (is("allchannels") || rule == "&*") {
    selector.all_channels = true;
    selector.channels.clear();
  } else if (is("resetchannels")) {
    selector.all_channels = false;
    selector.channels.clear();
  } else if (is("allcommands")) {
    return apply_command(selector, "+@all");
  } else if (is("nocommands")) {
    return apply_command(selector, "-@all");
  } else if (rule.starts_with('~') || rule.starts_with('%')) {
    return apply_keys(selector, rule);
  } else if (rule.starts_with('&')) {
    return apply_channels(selector, rule);
  } else if (rule.starts_with('+') || rule.starts_with('-')) {
    return apply_command(selector, rule);
  } else {
    return std::string(kSyntax);
  }
  return {};
}

std::string User::apply_password(std::string_view rule) {
  const bool hashed = rule[0] == '#' || rule[0] == '!';
  const bool adds = rule[0] == '>' || rule[0] == '#';
  rule.remove_prefix(1);
  if (hashed && !is_hash(rule)) {
    return "a password's hash has exactly 64 characters, all of them lower case hexadecimal";
  }
  const std::string hash = hashed ? std::string(rule) : hashing::sha256_hex(rule);
  const auto known = std::ranges::find(passwords_, hash);
  if (adds) {
    if (known == passwords_.end()) passwords_.push_back(hash);
    no_password_ = false;
  } else if (known == passwords_.end()) {
    return "the user has no such password";
  } else {
    passwords_.erase(known);
  }
  return {};
}

std::string User::add_selector(std::string_view rule) {
  if (rule.size() < 2 || !rule.ends_with(')')) return std::string(kSyntax);
  rule = rule.substr(1, rule.size() - 2);
  Selector selector;
  for (std::size_t at = 0; at < rule.size();) {
    const std::size_t end = std::min(rule.find(' ', at), rule.size());
    if (end > at) {
      if (std::string wrong = apply_rule(selector, rule.substr(at, end - at)); !wrong.empty()) return wrong;
    }
    at = end + 1;
  }
  selectors_.push_back(std::move(selector));
  return {};
}

std::string User::apply(std::string_view rule) {
  const auto is = [&](std::string_view word) { return equals_ignoring_case(rule, word); };
  if (rule.empty()) return {};  // As Redis.
  if (is("on") || is("off")) {
    enabled_ = is("on");
  } else if (is("nopass")) {
    no_password_ = true;
    passwords_.clear();
  } else if (is("resetpass")) {
    no_password_ = false;
    passwords_.clear();
  } else if (is("skip-sanitize-payload")) {
    sanitize_ = Sanitize::skip;
  } else if (is("sanitize-payload")) {
    sanitize_ = Sanitize::always;
  } else if (is("clearselectors")) {
    selectors_.resize(1);
  } else if (is("reset")) {
    *this = User(std::move(name_));
    sanitize_ = Sanitize::always;
  } else if (std::string_view(">#<!").find(rule[0]) != std::string_view::npos) {
    return apply_password(rule);
  } else if (rule[0] == '(') {
    return add_selector(rule);
  } else {
    return apply_rule(selectors_[0], rule);
  }
  return {};
}

Result<User> User::parse(std::string name, std::span<const std::string> rules) {
  if (name.empty() || has_spaces(name)) return fail(ErrorKind::invalid, "a user's name has no spaces");
  if (rules.size() > kMaxRules) {
    return fail(ErrorKind::invalid, fmt::format("more than {} rules of one user", kMaxRules));
  }
  User user(std::move(name));
  for (std::size_t i = 0; i < rules.size(); ++i) {
    std::string rule = rules[i];
    if (rule.starts_with('(')) {
      const std::string opened = rule;
      while (!rule.ends_with(')') && i + 1 < rules.size()) rule += " " + rules[++i];
      if (!rule.ends_with(')')) {
        return fail(ErrorKind::invalid, fmt::format("rule '{}': its parenthesis is not closed", opened));
      }
    }
    if (const std::string wrong = user.apply(rule); !wrong.empty()) {
      // Not a password's text: errors are logged.
      const bool secret = rule[0] == '>' || rule[0] == '<';
      return fail(ErrorKind::invalid,
                  fmt::format("rule '{}': {}", secret ? rule.substr(0, 1) + "..." : rule, wrong));
    }
  }
  const Selector& root = user.selectors_[0];
  user.may_all_ = root.commands.all() && root.all_keys && root.all_channels;
  return user;
}

Status read_users(std::string_view text, std::string_view place, Users& users) {
  std::size_t number = 0;
  std::map<std::string, std::size_t> seen;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::vector<std::string> words;
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    for (std::size_t from = 0; from < line.size();) {
      const std::size_t to = std::min(line.find_first_of(" \t\r", from), line.size());
      if (to > from) words.emplace_back(line.substr(from, to - from));
      from = to + 1;
    }
    if (words.empty() || words[0].starts_with('#')) continue;
    const auto wrong = [&](const std::string& what) {
      return fail(ErrorKind::invalid, fmt::format("{}:{}: {}", place, number, what));
    };
    if (words[0] != "user" || words.size() < 2) return wrong("a line is 'user NAME RULES...'");
    if (const auto [known, fresh] = seen.emplace(words[1], number); !fresh) {
      return wrong(fmt::format("user '{}' is in line {} already", words[1], known->second));
    }
    auto user = User::parse(words[1], std::span(words).subspan(2));
    if (!user) return wrong(fmt::format("user '{}': {}", words[1], user.error().message));
    users.add(std::move(*user));
  }
  return {};
}

}  // namespace ringshift::access
