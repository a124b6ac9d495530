// COMMAND and its subcommands. Only what the proxy serves is listed, so that a client library that asks
// learns the truth.
#include <fmt/format.h>

#include "proxy/local_commands.h"
#include "proxy/replies.h"
#include "proxy/served.h"
#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::Command;
using protocol::resp::CommandParser;

bool is_subcommand(const Command& command) { return command.is_subcommand(); }

void append_flags(std::string& out, const Command& command, backend::Resp resp) {
  using namespace protocol::resp;
  static constexpr struct {
    CommandFlag flag;
    std::string_view name;
  } kNames[] = {{k_write, "write"},
                {k_readonly, "readonly"},
                {k_denyoom, "denyoom"},
                {k_noscript, "noscript"},
                {k_fast, "fast"}};
  std::string flags;
  std::size_t count = 0;
  for (const auto& [flag, flag_name] : kNames) {
    if ((command.flags & flag) == 0) continue;
    ++count;
    flags += fmt::format("+{}\r\n", flag_name);
  }
  append_header(out, resp == backend::Resp::v3 ? '~' : '*', count);
  out += flags;
}

// Ten elements, as Redis 7 has them; categories, tips, key specifications and subcommands are left empty.
void append_entry(std::string& out, const Command& command, backend::Resp resp) {
  append_header(out, '*', 10);
  append_bulk(out, command.name);
  append_integer(out, command.arity);
  append_flags(out, command, resp);
  append_integer(out, command.first_key);
  append_integer(out, command.last_key);
  append_integer(out, command.key_step);
  const char set = resp == backend::Resp::v3 ? '~' : '*';
  append_header(out, set, 0);
  append_header(out, '*', 0);
  append_header(out, '*', 0);
  append_header(out, '*', 0);
}

template <class Append>
std::string list(Append append) {
  std::string items;
  std::size_t count = 0;
  for (const Command& command : protocol::resp::all_commands()) {
    if (is_subcommand(command) || !served(command)) continue;
    ++count;
    append(items, command);
  }
  std::string out;
  append_header(out, '*', count);
  return out + items;
}

std::string count() {
  std::int64_t n = 0;
  for (const Command& command : protocol::resp::all_commands())
    n += !is_subcommand(command) && served(command);
  std::string out;
  append_integer(out, n);
  return out;
}

std::string info(const CommandParser& arguments, backend::Resp resp) {
  std::string out;
  append_header(out, '*', arguments.argument_count() - 2);
  for (std::size_t i = 2; i < arguments.argument_count(); ++i) {
    const Command* command = protocol::resp::find_command(arguments.argument(i));
    if (command != nullptr && served(*command)) {
      append_entry(out, *command, resp);
    } else if (resp == backend::Resp::v3) {
      out += "_\r\n";
    } else {
      out += "*-1\r\n";
    }
  }
  return out;
}

std::string get_keys(const CommandParser& arguments) {
  if (arguments.argument_count() < 3)
    return "-ERR Unknown subcommand or wrong number of arguments for 'getkeys'\r\n";
  const Command* command = protocol::resp::find_command(arguments.argument(2));
  if (command == nullptr || !served(*command)) return "-ERR Invalid command specified\r\n";
  const std::size_t count = arguments.argument_count() - 2;
  if (!command->arity_fits(count)) return "-ERR Invalid number of arguments specified for command\r\n";
  if (command->first_key <= 0) return "-ERR The command has no key arguments\r\n";
  const auto first = static_cast<std::size_t>(command->first_key);
  const auto step = static_cast<std::size_t>(command->key_step);
  const std::size_t last = command->last_key < 0 ? count - 1 : static_cast<std::size_t>(command->last_key);
  std::string keys;
  std::size_t found = 0;
  for (std::size_t i = first; i <= last; i += step, ++found) append_bulk(keys, arguments.argument(i + 2));
  std::string out;
  append_header(out, '*', found);
  return out + keys;
}

}  // namespace

std::string command_reply(const Session& session, const CommandParser& arguments) {
  const backend::Resp resp = session.resp();
  if (arguments.argument_count() == 1) {
    return list([&](std::string& out, const Command& command) { append_entry(out, command, resp); });
  }
  const std::string_view name = arguments.argument(1);
  const auto is = [&](std::string_view lower) { return protocol::resp::equals_ignoring_case(name, lower); };
  if (is("count")) return count();
  if (is("info")) {
    if (arguments.argument_count() > 2) return info(arguments, resp);
    return list([&](std::string& out, const Command& command) { append_entry(out, command, resp); });
  }
  if (is("list"))
    return list([](std::string& out, const Command& command) { append_bulk(out, command.name); });
  if (is("docs")) return resp == backend::Resp::v3 ? "%0\r\n" : "*0\r\n";
  if (is("getkeys")) return get_keys(arguments);
  return unknown_subcommand("command", name) + "\r\n";
}

}  // namespace ringshift::proxy
