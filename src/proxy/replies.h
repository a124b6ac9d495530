// The texts with which the proxy itself answers.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "protocol/resp/command_parser.h"
#include "protocol/resp/command_table.h"

namespace ringshift::proxy {

// Whole error replies: "-TRYAGAIN member ...\r\n".
[[nodiscard]] std::string failure_reply(const backend::Failure& failure);
inline constexpr std::string_view kBadReply = "-ERR a member's reply was not of the expected form\r\n";

// Error replies without their line end, for Session::refuse.
[[nodiscard]] std::string unknown_command(const protocol::resp::CommandParser& command);
[[nodiscard]] std::string unknown_subcommand(std::string_view container, std::string_view name);
// What a client sent, as an error may repeat it: up to a NUL, without line ends.
[[nodiscard]] std::string quoted_in_error(std::string_view text);
[[nodiscard]] std::string wrong_arity(const protocol::resp::Command& command);
[[nodiscard]] std::string unsupported(const protocol::resp::Command& command, std::string_view why);
inline constexpr std::string_view kReservedKey = "-ERR keys beginning with 'rs:' are reserved by ringshift";
inline constexpr std::string_view kNoRoute = "-ERR no route takes this key: no cluster is configured for it";

// `text` and a line end; line ends inside of it become spaces.
[[nodiscard]] std::string one_line_error(std::string text);

// Writers of one value each.
void append_bulk(std::string& out, std::string_view text);
void append_verbatim(std::string& out, std::string_view text, backend::Resp resp);  // A bulk in RESP2.
void append_null(std::string& out, backend::Resp resp);
void append_integer(std::string& out, std::int64_t value);
void append_header(std::string& out, char type, std::size_t count);  // "*3\r\n"
// A map of `pairs`: an array of twice as many in RESP2.
void append_map_header(std::string& out, std::size_t pairs, backend::Resp resp);

}  // namespace ringshift::proxy
