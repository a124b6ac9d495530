#include "proxy/databases.h"

#include <fmt/format.h>

#include <limits>

#include "proxy/arguments.h"
#include "proxy/session.h"

namespace ringshift::proxy {

using protocol::resp::Command;
using protocol::resp::CommandParser;
using protocol::resp::equals_ignoring_case;
using protocol::resp::Handling;

std::string database_number(std::string_view text, std::int64_t& number) {
  using Int = std::numeric_limits<std::int32_t>;
  const auto parsed = parse_integer(text);
  if (!parsed) return "-ERR value is not an integer or out of range\r\n";
  number = *parsed;
  if (number >= Int::min() && number <= Int::max()) return {};
  return fmt::format("-ERR value is out of range, value must between {} and {}\r\n", Int::min(), Int::max());
}

std::string named_database_error(const Session& session, const Command& command,
                                 const CommandParser& arguments) {
  if (command.handling != Handling::names_database) return {};
  const auto error_of = [&](std::string_view text) -> std::string {
    std::int64_t number = 0;
    if (std::string error = database_number(text, number); !error.empty()) return error;
    return number < 0 || number >= static_cast<std::int64_t>(session.databases())
               ? std::string(kNoSuchDatabase)
               : std::string();
  };
  if (command.name == "move") return error_of(arguments.argument(2));
  for (std::size_t i = 3; i < arguments.argument_count(); ++i) {  // COPY from to [DB n] [REPLACE]
    if (equals_ignoring_case(arguments.argument(i), "replace")) continue;
    const bool names_one =
        equals_ignoring_case(arguments.argument(i), "db") && i + 1 < arguments.argument_count();
    if (!names_one) return {};  // A syntax error, which the member words.
    if (std::string error = error_of(arguments.argument(++i)); !error.empty()) return error;
  }
  return {};
}

}  // namespace ringshift::proxy
