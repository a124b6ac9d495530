// COMMAND and its subcommands, as Redis answers them byte for byte, but that only what this proxy serves is
// there: a client library that asks learns the truth. Redis lists in the order of a hash table that is
// different in every process; we sort by name.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <vector>

#include "protocol/resp/command_keys.h"
#include "proxy/local_commands.h"
#include "proxy/replies.h"
#include "proxy/served.h"
#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using backend::Resp;
using protocol::resp::all_commands;
using protocol::resp::Arguments;
using protocol::resp::Command;
using protocol::resp::CommandParser;
using protocol::resp::equals_ignoring_case;
using protocol::resp::KeyRef;
using protocol::resp::KeySpec;

// Writes values of one protocol version.
class Writer {
 public:
  explicit Writer(Resp resp) : resp_(resp) {}

  void array(std::size_t size) { append_header(out_, '*', size); }
  void set(std::size_t size) { append_header(out_, resp_ == Resp::v3 ? '~' : '*', size); }
  void map(std::size_t pairs) { append_map_header(out_, pairs, resp_); }
  void text(std::string_view value) { append_bulk(out_, value); }
  void number(std::int64_t value) { append_integer(out_, value); }
  void null() { append_null(out_, resp_); }
  // A set of the names whose bits are set.
  void names(std::uint32_t bits, std::span<const std::string_view> names, std::string_view prefix = {}) {
    set(static_cast<std::size_t>(std::popcount(bits)));
    for (std::size_t i = 0; i < names.size(); ++i)
      if ((bits >> i & 1) != 0) out_ += fmt::format("+{}{}\r\n", prefix, names[i]);
  }
  void docs(const Command& command, std::size_t extra_pairs) {
    protocol::resp::append_docs(out_, command, resp_ == Resp::v3, extra_pairs);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
  Resp resp_;
};

std::vector<const Command*> served_subcommands(const Command& container) {
  std::vector<const Command*> list;
  for (std::size_t i = 1; i <= container.subcommands; ++i)
    if (served(*(&container + i))) list.push_back(&container + i);
  return list;
}

std::vector<const Command*> served_commands() {
  std::vector<const Command*> list;
  for (const Command& command : all_commands())
    if (!command.is_subcommand() && served(command)) list.push_back(&command);
  return list;
}

// "get", or "object|encoding"; nullptr when it is not served.
const Command* look_up(std::string_view name) {
  const std::size_t bar = name.find('|');
  const Command* command = protocol::resp::find_command(name.substr(0, bar));
  if (command != nullptr && bar != std::string_view::npos)
    command = protocol::resp::find_subcommand(*command, name.substr(bar + 1));
  return command != nullptr && served(*command) ? command : nullptr;
}

// --- INFO ------------------------------------------------------------------------------------------------

void append_begin_search(Writer& out, const KeySpec& spec) {
  out.text("begin_search");
  out.map(2);
  out.text("type");
  switch (spec.begin) {
    case KeySpec::Begin::unknown:
      out.text("unknown");
      out.text("spec");
      out.map(0);
      return;
    case KeySpec::Begin::index:
      out.text("index");
      out.text("spec");
      out.map(1);
      out.text("index");
      break;
    case KeySpec::Begin::keyword:
      out.text("keyword");
      out.text("spec");
      out.map(2);
      out.text("keyword");
      out.text(spec.keyword);
      out.text("startfrom");
      break;
  }
  out.number(spec.begin_at);
}

void append_find_keys(Writer& out, const KeySpec& spec) {
  out.text("find_keys");
  out.map(2);
  out.text("type");
  if (spec.find == KeySpec::Find::unknown) {
    out.text("unknown");
    out.text("spec");
    out.map(0);
    return;
  }
  const bool range = spec.find == KeySpec::Find::range;
  out.text(range ? "range" : "keynum");
  out.text("spec");
  out.map(3);
  out.text(range ? "lastkey" : "keynumidx");
  out.number(spec.a);
  out.text(range ? "keystep" : "firstkey");
  out.number(spec.b);
  out.text(range ? "limit" : "keystep");
  out.number(spec.c);
}

void append_key_spec(Writer& out, const KeySpec& spec) {
  out.map(spec.notes.empty() ? 3 : 4);
  if (!spec.notes.empty()) {
    out.text("notes");
    out.text(spec.notes);
  }
  out.text("flags");
  out.names(spec.flags, protocol::resp::key_flag_names());
  append_begin_search(out, spec);
  append_find_keys(out, spec);
}

void append_tips(Writer& out, std::string_view tips) {
  out.set(tips.empty() ? 0 : static_cast<std::size_t>(std::ranges::count(tips, ' ')) + 1);
  while (!tips.empty()) {
    const std::size_t end = std::min(tips.find(' '), tips.size());
    out.text(tips.substr(0, end));
    tips.remove_prefix(std::min(end + 1, tips.size()));
  }
}

// Ten elements.
void append_entry(Writer& out, const Command& command) {
  out.array(10);
  out.text(command.name);
  out.number(command.arity);
  out.names(command.flags, protocol::resp::command_flag_names());
  out.number(command.first_key);
  out.number(command.last_key);
  out.number(command.key_step);
  out.names(command.categories, protocol::resp::acl_category_names(), "@");
  append_tips(out, command.tips);
  out.set(command.key_specs().size());
  for (const KeySpec& spec : command.key_specs()) append_key_spec(out, spec);
  const std::vector<const Command*> subcommands = served_subcommands(command);
  if (subcommands.empty()) return out.set(0);
  out.array(subcommands.size());
  for (const Command* subcommand : subcommands) append_entry(out, *subcommand);
}

void append_all_entries(Writer& out) {
  const std::vector<const Command*> commands = served_commands();
  out.array(commands.size());
  for (const Command* command : commands) append_entry(out, *command);
}

void info(Writer& out, const Arguments& arguments) {
  if (arguments.size() == 2) return append_all_entries(out);
  out.array(arguments.size() - 2);
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    if (const Command* command = look_up(arguments[i])) {
      append_entry(out, *command);
    } else {
      out.null();
    }
  }
}

// --- DOCS ------------------------------------------------------------------------------------------------

void append_docs_entry(Writer& out, const Command& command) {
  const std::vector<const Command*> subcommands = served_subcommands(command);
  out.text(command.name);
  out.docs(command, subcommands.empty() ? 0 : 1);
  if (subcommands.empty()) return;
  out.text("subcommands");
  out.map(subcommands.size());
  for (const Command* subcommand : subcommands) append_docs_entry(out, *subcommand);
}

void docs(Writer& out, const Arguments& arguments) {
  std::vector<const Command*> commands;
  if (arguments.size() == 2) commands = served_commands();
  for (std::size_t i = 2; i < arguments.size(); ++i)
    if (const Command* command = look_up(arguments[i])) commands.push_back(command);
  out.map(commands.size());
  for (const Command* command : commands) append_docs_entry(out, *command);
}

// --- LIST ------------------------------------------------------------------------------------------------

bool has_category(const Command& command, std::string_view category) {
  const auto names = protocol::resp::acl_category_names();
  for (std::size_t bit = 0; bit < names.size(); ++bit)
    if (equals_ignoring_case(category, names[bit])) return (command.categories >> bit & 1) != 0;
  return false;
}

// "[a-c]", "[^ab]" at the front of `pattern`, which is cut behind it: whether `c` is meant. As Redis reads
// it: the class may be without its end.
bool class_matches(std::string_view& pattern, char c) {
  const auto lower = [](char x) { return x >= 'A' && x <= 'Z' ? static_cast<char>(x + 32) : x; };
  pattern.remove_prefix(1);
  const bool negated = pattern.starts_with('^');
  if (negated) pattern.remove_prefix(1);
  bool found = false;
  while (!pattern.empty() && pattern[0] != ']') {
    if (pattern[0] == '\\' && pattern.size() >= 2) {
      found = found || pattern[1] == c;
      pattern.remove_prefix(2);
    } else if (pattern.size() >= 3 && pattern[1] == '-') {
      const auto [from, to] = std::minmax({lower(pattern[0]), lower(pattern[2])});  // By value.
      found = found || (from <= c && c <= to);
      pattern.remove_prefix(3);
    } else {
      found = found || lower(pattern[0]) == c;
      pattern.remove_prefix(1);
    }
  }
  if (!pattern.empty()) pattern.remove_prefix(1);
  return found != negated;
}

// Glob patterns as Redis has them, against a name in lower case. Goes back to the last '*' only, so the cost
// is at most pattern * name.
bool glob(std::string_view pattern, std::string_view name) {
  std::string_view star_pattern;
  std::string_view star_name;
  bool star = false;
  const auto step = [&] {
    if (pattern.empty() || name.empty()) return false;
    std::string_view rest = pattern;
    bool same = false;
    if (rest[0] == '?') {
      same = true;
      rest.remove_prefix(1);
    } else if (rest[0] == '[') {
      same = class_matches(rest, name[0]);
    } else {
      if (rest[0] == '\\' && rest.size() >= 2) rest.remove_prefix(1);
      same = equals_ignoring_case(rest.substr(0, 1), name.substr(0, 1));
      rest.remove_prefix(1);
    }
    if (!same) return false;
    pattern = rest;
    name.remove_prefix(1);
    return true;
  };
  for (;;) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      star = true;
      star_pattern = pattern;
      star_name = name;
    } else if (pattern.empty() && name.empty()) {
      return true;
    } else if (!step()) {
      if (!star || star_name.empty()) return false;
      star_name.remove_prefix(1);
      pattern = star_pattern;
      name = star_name;
    }
  }
}

// COMMAND LIST [FILTERBY MODULE|ACLCAT|PATTERN argument]; false for a syntax error.
bool list(Writer& out, const Arguments& arguments) {
  const bool filtered = arguments.size() == 5 && equals_ignoring_case(arguments[2], "filterby");
  if (!filtered && arguments.size() != 2) return false;
  const auto by = [&](std::string_view kind) { return filtered && equals_ignoring_case(arguments[3], kind); };
  if (filtered && !by("module") && !by("aclcat") && !by("pattern")) return false;
  std::vector<const Command*> commands;
  for (const Command& command : all_commands()) {
    if (!served(command)) continue;
    if (by("module") || (by("aclcat") && !has_category(command, arguments[4])) ||
        (by("pattern") && !glob(arguments[4], command.name))) {
      continue;
    }
    commands.push_back(&command);
  }
  out.array(commands.size());
  for (const Command* command : commands) out.text(command->name);
  return true;
}

// --- GETKEYS ---------------------------------------------------------------------------------------------

// An error, or empty and the keys.
std::string_view find(const Arguments& words, std::vector<KeyRef>& keys) {
  const Command* command = protocol::resp::find_command(words[0]);
  if (command != nullptr && command->subcommands > 0 && words.size() > 1)
    command = protocol::resp::find_subcommand(*command, words[1]);
  if (command == nullptr || !served(*command)) return "-ERR Invalid command specified\r\n";
  if (command->key_use == protocol::resp::KeyUse::none) return "-ERR The command has no key arguments\r\n";
  if (!command->arity_fits(words.size())) return "-ERR Invalid number of arguments specified for command\r\n";
  (void)protocol::resp::find_keys(*command, words, keys);
  if (keys.empty() && (command->flags & protocol::resp::k_no_mandatory_keys) == 0)
    return "-ERR Invalid arguments specified for command\r\n";
  return {};
}

std::string get_keys(const Arguments& arguments, bool with_flags, Resp resp) {
  const Arguments words = arguments.from(2);
  std::vector<KeyRef> keys;
  if (const std::string_view error = find(words, keys); !error.empty()) return std::string(error);
  Writer out(resp);
  out.array(keys.size());
  for (const KeyRef& key : keys) {
    if (with_flags) out.array(2);
    out.text(words[key.argument]);
    if (with_flags) out.names(key.flags, protocol::resp::key_flag_names());
  }
  return out.take();
}

}  // namespace

std::string command_reply(const Session& session, const CommandParser& parser) {
  Writer out(session.resp());
  const Arguments arguments(parser);
  if (arguments.size() == 1) {
    append_all_entries(out);
    return out.take();
  }
  const Command& container = *protocol::resp::find_command("command");
  const Command* subcommand = protocol::resp::find_subcommand(container, arguments[1]);
  if (subcommand == nullptr) return unknown_subcommand(container.name, arguments[1]) + "\r\n";
  if (!subcommand->arity_fits(arguments.size())) return wrong_arity(*subcommand) + "\r\n";
  const std::string_view name = subcommand->name;
  if (name == "command|help") return help_text(*subcommand);
  if (name == "command|getkeys") return get_keys(arguments, false, session.resp());
  if (name == "command|getkeysandflags") return get_keys(arguments, true, session.resp());
  if (name == "command|count") {
    out.number(static_cast<std::int64_t>(served_commands().size()));
  } else if (name == "command|info") {
    info(out, arguments);
  } else if (name == "command|docs") {
    docs(out, arguments);
  } else if (!list(out, arguments)) {
    return "-ERR syntax error\r\n";
  }
  return out.take();
}

}  // namespace ringshift::proxy
