// AUTH and ACL: the users are the configuration's, so they are shown, and nothing here changes them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <random>

#include "access/describe.h"
#include "proxy/local_commands.h"
#include "proxy/replies.h"
#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using access::Selector;
using access::User;
using protocol::resp::all_commands;
using protocol::resp::Arguments;
using protocol::resp::Command;
using protocol::resp::CommandParser;
using protocol::resp::equals_ignoring_case;

constexpr std::string_view kNoInteger = "-ERR value is not an integer or out of range\r\n";
constexpr std::string_view kBadBits =
    "-ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to "
    "4096\r\n";
constexpr std::int64_t kMaxBits = 4096;

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string bulk(std::string_view text) {
  std::string out;
  append_bulk(out, text);
  return out;
}

const access::Users& users_of(const Session& session) { return session.worker().rules().rules.users; }

std::string list(const Session& session) {
  std::string out;
  append_header(out, '*', users_of(session).all().size());
  for (const auto& [name, user] : users_of(session).all()) append_bulk(out, describe(*user));
  return out;
}

std::string names(const Session& session) {
  std::string out;
  append_header(out, '*', users_of(session).all().size());
  for (const auto& [name, user] : users_of(session).all()) append_bulk(out, name);
  return out;
}

void append_selector(std::string& out, const Selector& selector) {
  append_bulk(out, "commands");
  append_bulk(out, describe_commands(selector));
  append_bulk(out, "keys");
  append_bulk(out, describe_keys(selector));
  append_bulk(out, "channels");
  append_bulk(out, describe_channels(selector));
}

std::string get_user(const Session& session, std::string_view name) {
  std::string out;
  const User* user = users_of(session).find(name);
  if (user == nullptr) {
    append_null(out, session.resp());
    return out;
  }
  append_map_header(out, 6, session.resp());
  append_bulk(out, "flags");
  const std::vector<std::string> flags = flags_of(*user);
  append_header(out, session.resp() == backend::Resp::v3 ? '~' : '*', flags.size());
  for (const std::string& flag : flags) append_bulk(out, flag);
  append_bulk(out, "passwords");
  append_header(out, '*', user->passwords().size());
  for (const std::string& hash : user->passwords()) append_bulk(out, hash);
  append_selector(out, user->selectors()[0]);
  append_bulk(out, "selectors");
  append_header(out, '*', user->selectors().size() - 1);
  for (std::size_t i = 1; i < user->selectors().size(); ++i) {
    append_map_header(out, 3, session.resp());
    append_selector(out, user->selectors()[i]);
  }
  return out;
}

std::string categories(const CommandParser& arguments) {
  const auto known = protocol::resp::acl_category_names();
  std::string out;
  if (arguments.argument_count() == 2) {
    append_header(out, '*', known.size());
    for (const std::string_view name : known) append_bulk(out, name);
    return out;
  }
  const std::string_view asked = arguments.argument(2);
  const auto found =
      std::ranges::find_if(known, [&](auto name) { return equals_ignoring_case(asked, name); });
  if (found == known.end()) return one_line_error(fmt::format("-ERR Unknown category '{}'", asked));
  const std::uint32_t bit = 1U << static_cast<unsigned>(found - known.begin());
  const auto in = [&](const Command& command) { return (command.categories & bit) != 0; };
  append_header(out, '*', static_cast<std::size_t>(std::ranges::count_if(all_commands(), in)));
  for (const Command& command : all_commands()) {
    if (in(command)) append_bulk(out, command.name);
  }
  return out;
}

std::string generate_password(const CommandParser& arguments) {
  std::int64_t bits = 256;
  if (arguments.argument_count() == 3) {
    const auto asked = integer(arguments.argument(2));
    if (!asked) return std::string(kNoInteger);
    if (*asked <= 0 || *asked > kMaxBits) return std::string(kBadBits);
    bits = *asked;
  }
  std::random_device entropy;  // The kernel's, for every digit.
  std::string text;
  for (std::int64_t digit = 0; digit < (bits + 3) / 4; ++digit) text += "0123456789abcdef"[entropy() & 15U];
  return bulk(text);
}

const Command* command_of(const Arguments& words) {
  const Command* command = protocol::resp::find_command(words[0]);
  if (command == nullptr || command->subcommands == 0 || words.size() < 2) return command;
  return protocol::resp::find_subcommand(*command, words[1]);
}

std::string dry_run(const Session& session, const CommandParser& arguments) {
  const User* user = users_of(session).find(arguments.argument(2));
  if (user == nullptr) return one_line_error(fmt::format("-ERR User '{}' not found", arguments.argument(2)));
  const Arguments words = Arguments(arguments).from(3);
  const Command* command = command_of(words);
  if (command == nullptr) return one_line_error(fmt::format("-ERR Command '{}' not found", words[0]));
  if (!command->arity_fits(words.size())) return wrong_arity(*command) + "\r\n";
  const access::Verdict verdict = user->check(*command, words);
  if (verdict.kind == access::Verdict::Kind::allowed) return "+OK\r\n";
  return bulk(dry_denial(verdict, *command, words));
}

void append_entry(std::string& out, const AclLog::Entry& entry, backend::Resp resp) {
  const auto age =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - entry.at);
  const std::string seconds = fmt::format("{:.17g}", static_cast<double>(age.count()) / 1000);
  const auto text = [&](std::string_view field, std::string_view value) {
    append_bulk(out, field);
    append_bulk(out, value);
  };
  append_map_header(out, 7, resp);
  append_bulk(out, "count");
  append_integer(out, static_cast<std::int64_t>(entry.count));
  text("reason", entry.reason);
  text("context", entry.context);
  text("object", entry.object);
  text("username", entry.user);
  append_bulk(out, "age-seconds");
  if (resp == backend::Resp::v3) {
    out += fmt::format(",{}\r\n", seconds);
  } else {
    append_bulk(out, seconds);
  }
  text("client-info", entry.client);
}

std::string log(const Session& session, const CommandParser& arguments) {
  AclLog& log = session.shared().acl_log;
  std::int64_t count = 10;
  if (arguments.argument_count() == 3) {
    if (equals_ignoring_case(arguments.argument(2), "reset")) {
      log.clear();
      return "+OK\r\n";
    }
    const auto asked = integer(arguments.argument(2));
    if (!asked) return std::string(kNoInteger);
    count = std::max<std::int64_t>(*asked, 0);
  }
  const std::vector<AclLog::Entry> entries = log.newest(static_cast<std::size_t>(count));
  std::string out;
  append_header(out, '*', entries.size());
  for (const AclLog::Entry& entry : entries) append_entry(out, entry, session.resp());
  return out;
}

}  // namespace

std::string auth_reply(Session& session, const CommandParser& arguments) {
  const std::size_t count = arguments.argument_count();
  if (count > 3) return "-ERR syntax error\r\n";
  if (count == 2 && users_of(session).default_user().needs_no_password()) {
    return "-ERR AUTH <password> called without any password configured for the default user. Are you sure "
           "your configuration is correct?\r\n";
  }
  const std::string_view user = count == 3 ? arguments.argument(1) : "default";
  return session.authenticate(user, arguments.argument(count - 1)) ? "+OK\r\n" : std::string(kWrongPassword);
}

std::string acl_reply(Session& session, const CommandParser& arguments) {
  const std::string_view name = arguments.argument(1);
  const auto is = [&](std::string_view lower) { return equals_ignoring_case(name, lower); };
  const auto too_many = [&](std::size_t most) { return arguments.argument_count() > most; };
  if (is("whoami")) return bulk(session.user_name());
  if (is("list")) return list(session);
  if (is("users")) return names(session);
  if (is("getuser")) return get_user(session, arguments.argument(2));
  if (is("dryrun")) return dry_run(session, arguments);
  if (too_many(3)) {  // Redis leaves these to the command itself, and says it so.
    return one_line_error(
        fmt::format("-ERR unknown subcommand or wrong number of arguments for '{}'. Try ACL HELP.", name));
  }
  if (is("cat")) return categories(arguments);
  if (is("genpass")) return generate_password(arguments);
  return log(session, arguments);
}

}  // namespace ringshift::proxy
