// SLOWLOG: the commands whose answer took longer than slowlog-log-slower-than, as measure.h measures them.
#include <fmt/format.h>

#include "proxy/administer.h"
#include "proxy/arguments.h"
#include "proxy/replies.h"
#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::CommandParser;
using Part = Gather::Part;

std::string text_of(const SlowCommand& slow) {
  std::string out;
  append_header(out, '*', 6);
  append_integer(out, static_cast<std::int64_t>(slow.id));
  append_integer(out, slow.at);
  append_integer(out, slow.micros);
  append_header(out, '*', slow.arguments.size());
  for (const std::string& argument : slow.arguments) append_bulk(out, argument);
  append_bulk(out, slow.peer);
  append_bulk(out, slow.name);
  return out;
}

std::string get(Session& session, const CommandParser& arguments) {
  std::int64_t count = 10;
  if (arguments.argument_count() > 2) {
    const auto asked = parse_integer(arguments.argument(2));
    if (arguments.argument_count() > 3 || !asked || *asked < -1) {
      if (arguments.argument_count() <= 3) return "-ERR count should be greater than or equal to -1\r\n";
      return fmt::format(
          "-ERR unknown subcommand or wrong number of arguments for '{}'. Try SLOWLOG HELP.\r\n",
          quoted_in_error(arguments.argument(1)));
    }
    count = *asked;
  }
  const std::size_t most = session.shared().settings.slowlog_max_len.size();
  const std::size_t limit = count < 0 ? most : std::min(static_cast<std::size_t>(count), most);
  session.gather(
      [limit](const Part& all) {
        std::string out;
        append_header(out, '*', std::min(limit, all.rows.size()));
        for (std::size_t i = 0; i < std::min(limit, all.rows.size()); ++i) out += all.rows[i].text;
        return out;
      },
      [limit](Worker& worker) {
        Part part;
        for (const SlowCommand& slow : worker.admin().slow) {
          if (part.rows.size() == limit) break;
          part.rows.push_back({~slow.id, text_of(slow)});  // The newest first.
        }
        return part;
      });
  return {};
}

std::string length(Session& session) {
  session.gather(
      [most = session.shared().settings.slowlog_max_len.get()](const Part& all) {
        return fmt::format(":{}\r\n", std::min(all.number, most));
      },
      [](Worker& worker) { return Part{static_cast<std::int64_t>(worker.admin().slow.size()), {}}; });
  return {};
}

std::string reset(Session& session) {
  session.gather([](const Part&) { return std::string("+OK\r\n"); },
                 [](Worker& worker) {
                   worker.admin().slow.clear();
                   return Part{};
                 });
  return {};
}

}  // namespace

std::string slowlog_command(Session& session, const protocol::resp::Command& command,
                            const CommandParser& arguments) {
  if (command.name == "slowlog|get") return get(session, arguments);
  if (command.name == "slowlog|len") return length(session);
  return reset(session);
}

}  // namespace ringshift::proxy
