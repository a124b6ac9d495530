#include "proxy/replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace ringshift::proxy {
namespace {

// An error is one line: line ends inside what a client sent would forge another reply. As in Redis it ends at
// a NUL.
std::string one_line(std::string_view text, std::size_t limit) {
  std::string line(text.substr(0, std::min(limit, text.find('\0'))));
  std::ranges::replace_if(line, [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return line;
}

}  // namespace

std::string failure_reply(const backend::Failure& failure) {
  using Kind = backend::Failure::Kind;
  const std::string reason = one_line(failure.reason, 256);
  switch (failure.kind) {
    case Kind::unknown:
      return fmt::format("-TIMEOUT member {} {}: the command may have been executed\r\n", failure.member,
                         reason);
    case Kind::overloaded:
      return fmt::format("-TRYAGAIN member {} overloaded, {}: the command was not executed\r\n",
                         failure.member, reason);
    case Kind::unsent:
      break;
  }
  return fmt::format("-TRYAGAIN member {} {}: the command was not executed\r\n", failure.member, reason);
}

std::string unknown_command(const protocol::resp::CommandParser& command) {
  // As Redis says it: up to 128 bytes of name, and of arguments altogether.
  std::string arguments;
  for (std::size_t i = 1; i < command.argument_count() && arguments.size() < 128; ++i) {
    arguments += fmt::format("'{}' ", one_line(command.argument(i), 128 - arguments.size()));
  }
  return fmt::format("-ERR unknown command '{}', with args beginning with: {}",
                     one_line(command.argument(0), 128), arguments);
}

std::string unknown_subcommand(std::string_view container, std::string_view name) {
  std::string upper(container);
  std::ranges::transform(upper, upper.begin(), [](char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format("-ERR unknown subcommand '{}'. Try {} HELP.", one_line(name, 128), upper);
}

std::string quoted_in_error(std::string_view text) { return one_line(text, text.size()); }

std::string wrong_arity(const protocol::resp::Command& command) {
  return fmt::format("-ERR wrong number of arguments for '{}' command", command.name);
}

std::string unsupported(const protocol::resp::Command& command, std::string_view why) {
  std::string name(command.name);
  std::ranges::replace(name, '|', ' ');
  return fmt::format("-ERR command '{}' is not supported by ringshift: {}", name, why);
}

std::string one_line_error(std::string text) { return one_line(text, text.size()) + "\r\n"; }

void append_header(std::string& out, char type, std::size_t count) {
  out += type;
  fmt::format_to(std::back_inserter(out), "{}\r\n", count);
}

void append_bulk(std::string& out, std::string_view text) {
  append_header(out, '$', text.size());
  out += text;
  out += "\r\n";
}

void append_verbatim(std::string& out, std::string_view text, backend::Resp resp) {
  if (resp == backend::Resp::v2) return append_bulk(out, text);
  append_header(out, '=', text.size() + 4);
  out += "txt:";
  out += text;
  out += "\r\n";
}

void append_null(std::string& out, backend::Resp resp) {
  out += resp == backend::Resp::v2 ? "$-1\r\n" : "_\r\n";
}

void append_integer(std::string& out, std::int64_t value) {
  fmt::format_to(std::back_inserter(out), ":{}\r\n", value);
}

void append_map_header(std::string& out, std::size_t pairs, backend::Resp resp) {
  if (resp == backend::Resp::v2) return append_header(out, '*', pairs * 2);
  append_header(out, '%', pairs);
}

}  // namespace ringshift::proxy
