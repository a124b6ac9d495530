#include "proxy/local_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "proxy/administer.h"
#include "proxy/arguments.h"
#include "proxy/databases.h"
#include "proxy/replies.h"
#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::Command;
using protocol::resp::CommandParser;
using protocol::resp::equals_ignoring_case;
using protocol::resp::LocalCommand;

constexpr std::string_view kOk = "+OK\r\n";
constexpr std::string_view kSyntaxError = "-ERR syntax error\r\n";
constexpr std::string_view kBadName =
    "-ERR Client names cannot contain spaces, newlines or special characters.\r\n";

bool fit_for_a_name(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= '!' && c <= '~'; });
}

std::string bulk(std::string_view text) {
  std::string out;
  append_bulk(out, text);
  return out;
}

std::string ping(const Session& session, const CommandParser& arguments) {
  if (session.in_subscriber_mode() && arguments.argument_count() <= 2) {
    std::string out;
    append_header(out, '*', 2);
    append_bulk(out, "pong");
    append_bulk(out, arguments.argument_count() == 2 ? arguments.argument(1) : std::string_view());
    return out;
  }
  if (arguments.argument_count() == 1) return "+PONG\r\n";
  if (arguments.argument_count() == 2) return bulk(arguments.argument(1));
  return "-ERR wrong number of arguments for 'ping' command\r\n";
}

std::string hello_text(const Session& session) {
  std::string out;
  append_map_header(out, 7, session.resp());
  const auto text = [&](std::string_view field, std::string_view value) {
    append_bulk(out, field);
    append_bulk(out, value);
  };
  const auto number = [&](std::string_view field, std::int64_t value) {
    append_bulk(out, field);
    append_integer(out, value);
  };
  text("server", "redis");  // What clients expect; INFO tells who we are.
  text("version", kRedisVersion);
  number("proto", session.resp() == backend::Resp::v3 ? 3 : 2);
  number("id", static_cast<std::int64_t>(session.id()));
  text("mode", "standalone");
  text("role", "master");
  append_bulk(out, "modules");
  append_header(out, '*', 0);
  return out;
}

// HELLO [2|3 [AUTH user password] [SETNAME name]]. Changes nothing unless all of it is right.
std::string hello(Session& session, const CommandParser& arguments) {
  backend::Resp resp = session.resp();
  if (arguments.argument_count() > 1) {
    const auto version = parse_integer(arguments.argument(1));
    if (!version) return "-ERR Protocol version is not an integer or out of range\r\n";
    if (*version != 2 && *version != 3) return "-NOPROTO unsupported protocol version\r\n";
    resp = *version == 3 ? backend::Resp::v3 : backend::Resp::v2;
  }
  std::string_view name;
  bool named = false;
  std::string_view user, password;
  bool authenticates = false;
  for (std::size_t i = 2; i < arguments.argument_count(); ++i) {
    const std::string_view option = arguments.argument(i);
    if (equals_ignoring_case(option, "auth") && i + 2 < arguments.argument_count()) {
      user = arguments.argument(++i);
      password = arguments.argument(++i);
      authenticates = true;
      continue;
    }
    if (!equals_ignoring_case(option, "setname") || i + 1 >= arguments.argument_count()) {
      return fmt::format("-ERR Syntax error in HELLO option '{}'\r\n", quoted_in_error(option));
    }
    name = arguments.argument(++i);
    named = true;
    if (!fit_for_a_name(name)) return std::string(kBadName);
  }
  if (authenticates && !session.authenticate(user, password)) return std::string(kWrongPassword);
  if (!session.authenticated()) return std::string(kHelloNeedsAuth);
  session.set_resp(resp);
  if (named) session.set_name(name);
  return hello_text(session);
}

// The subcommands a client library sends by itself, with their argument counts.
std::string client(Session& session, const Command& command, const CommandParser& arguments) {
  const std::string_view name = arguments.argument(1);
  const std::size_t count = arguments.argument_count();
  const auto is = [&](std::string_view lower) { return equals_ignoring_case(name, lower); };
  const auto arity = [](std::string_view sub) {
    return fmt::format("-ERR wrong number of arguments for 'client|{}' command\r\n", sub);
  };
  if (is("setname")) {
    if (count != 3) return arity("setname");
    if (!fit_for_a_name(arguments.argument(2))) return std::string(kBadName);
    session.set_name(arguments.argument(2));
    return std::string(kOk);
  }
  if (is("setinfo")) return count == 4 ? std::string(kOk) : arity("setinfo");  // Accepted, not kept.
  if (is("getname")) {
    if (count != 2) return arity("getname");
    if (!session.name().empty()) return bulk(session.name());
    std::string out;
    append_null(out, session.resp());
    return out;
  }
  if (is("id")) return count == 2 ? fmt::format(":{}\r\n", session.id()) : arity("id");
  if (is("info")) {
    if (count != 2) return arity("info");
    std::string out;
    append_verbatim(out, session.describe() + "\n", session.resp());
    return out;
  }
  return administer_clients(session, command, arguments);
}

std::string select(Session& session, const CommandParser& arguments) {
  std::int64_t number = 0;
  if (const std::string error = database_number(arguments.argument(1), number); !error.empty()) return error;
  if (number == session.database()) return std::string(kOk);
  // What is watched is watched in its own database, and EXEC would run in the new one.
  if (session.watching()) return "-ERR SELECT between WATCH and EXEC is not supported by ringshift\r\n";
  return std::string(session.select_database(number) ? kOk : kNoSuchDatabase);
}

std::string time_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  std::string out;
  append_header(out, '*', 2);
  append_bulk(out, std::to_string(micros / 1000000));
  append_bulk(out, std::to_string(micros % 1000000));
  return out;
}

std::string role_text() {
  std::string out = "*3\r\n$6\r\nmaster\r\n:0\r\n";
  append_header(out, '*', 0);
  return out;
}

std::string reset(Session& session) {
  session.become_default_user();
  session.set_resp(backend::Resp::v2);
  session.set_name("");
  return "+RESET\r\n";
}

}  // namespace

std::string help_text(const Command& command) {
  const std::string_view text = protocol::resp::help_lines(command.name.substr(0, command.name.find('|')));
  std::string out;
  append_header(out, '*', static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += fmt::format("+{}\r\n", text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string answer_local(Session& session, const CommandParser& arguments, const Command& command) {
  switch (command.local) {
    case LocalCommand::ping:
      return ping(session, arguments);
    case LocalCommand::echo:
      return bulk(arguments.argument(1));
    case LocalCommand::hello:
      return hello(session, arguments);
    case LocalCommand::client:
      return client(session, command, arguments);
    case LocalCommand::select:
      return select(session, arguments);
    case LocalCommand::quit:
      return std::string(kOk);
    case LocalCommand::reset:
      return reset(session);
    case LocalCommand::info:
      return info_command(session, arguments);
    case LocalCommand::command:
      return command_reply(session, arguments);
    case LocalCommand::time:
      return time_text();
    case LocalCommand::role:
      return role_text();
    case LocalCommand::auth:
      return auth_reply(session, arguments);
    case LocalCommand::acl:
      return acl_reply(session, arguments);
    case LocalCommand::cluster:
      return "-ERR This instance has cluster support disabled\r\n";
    case LocalCommand::help:
      return help_text(command);
    case LocalCommand::config:
      return config_command(session, command, arguments);
    case LocalCommand::slowlog:
      return slowlog_command(session, command, arguments);
    case LocalCommand::latency:
      return latency_command(session, command, arguments);
    case LocalCommand::none:
      break;
  }
  return std::string(kSyntaxError);
}

}  // namespace ringshift::proxy
