// The numbers of databases among a command's arguments: SELECT, MOVE, COPY ... DB. Errors are whole replies,
// in Redis' words.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/resp/command_parser.h"
#include "protocol/resp/command_table.h"

namespace ringshift::proxy {

class Session;

inline constexpr std::string_view kNoSuchDatabase = "-ERR DB index is out of range\r\n";

// "" and the number, or why it is none.
[[nodiscard]] std::string database_number(std::string_view text, std::int64_t& number);
// Of a command that is not SELECT: "" when it names no database, a right one, or what a member refuses
// itself.
[[nodiscard]] std::string named_database_error(const Session& session, const protocol::resp::Command& command,
                                               const protocol::resp::CommandParser& arguments);

}  // namespace ringshift::proxy
