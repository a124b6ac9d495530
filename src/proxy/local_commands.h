// The commands that the proxy answers itself: PING ECHO HELLO CLIENT SELECT QUIT RESET INFO COMMAND TIME
// ROLE, every HELP, and what a server says that is not in a Redis Cluster.
//
// Worker's thread. REQUIRES: the command's arity was checked. The answer is one whole reply; empty when
// Session::gather() was begun, which answers later.
#pragma once
#include <string>

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
// command_reply.cpp: COMMAND and its subcommands.
[[nodiscard]] std::string command_reply(const Session& session,
                                        const protocol::resp::CommandParser& arguments);

// As clients know it: the version of Redis whose commands the table holds.
inline constexpr const char* kRedisVersion = "7.0.15";

}  // namespace ringshift::proxy
