// The commands that the proxy answers itself: PING ECHO HELLO CLIENT SELECT QUIT RESET INFO COMMAND TIME
// ROLE, every HELP, and what a server says that is not in a Redis Cluster.
//
// Worker's thread. REQUIRES: the command's arity was checked. The answer is one whole reply; empty when
// Session::gather() was begun, which answers later.
#pragma once
#include <string>
#include <string_view>

#include "protocol/resp/command_parser.h"
#include "protocol/resp/command_table.h"

namespace ringshift::proxy {

class Session;

[[nodiscard]] std::string answer_local(Session& session, const protocol::resp::CommandParser& arguments,
                                       const protocol::resp::Command& command);

// What HELP of a container answers, of which `command` is a subcommand: an array of lines.
[[nodiscard]] std::string help_text(const protocol::resp::Command& command);

// info.cpp: a whole reply, or empty when it has begun to gather it.
[[nodiscard]] std::string info_command(Session& session, const protocol::resp::CommandParser& arguments);
// access_commands.cpp: AUTH, ACL and its subcommands.
[[nodiscard]] std::string auth_reply(Session& session, const protocol::resp::CommandParser& arguments);
[[nodiscard]] std::string acl_reply(Session& session, const protocol::resp::CommandParser& arguments);
inline constexpr std::string_view kWrongPassword =
    "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
inline constexpr std::string_view kHelloNeedsAuth =
    "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> "
    "<pass> option can be used to authenticate the client and select the RESP protocol version at the same "
    "time\r\n";

// command_reply.cpp: COMMAND and its subcommands.
[[nodiscard]] std::string command_reply(const Session& session,
                                        const protocol::resp::CommandParser& arguments);

// As clients know it: the version of Redis whose commands the table holds.
inline constexpr const char* kRedisVersion = "7.0.15";

}  // namespace ringshift::proxy
