// The local commands with which the proxy is administered: CLIENT LIST and its kin, CONFIG, SLOWLOG, LATENCY.
//
// Each gives a whole reply, or an empty text when it has begun Session::gather(), which answers later.
// REQUIRES: the arity fits. The worker's thread.
#pragma once
#include <string>

#include "protocol/resp/command_parser.h"
#include "protocol/resp/command_table.h"

namespace ringshift::proxy {

class Session;

// client_admin.cpp: of CLIENT all but what a session knows of itself.
[[nodiscard]] std::string administer_clients(Session& session, const protocol::resp::Command& command,
                                             const protocol::resp::CommandParser& arguments);
// config.cpp
[[nodiscard]] std::string config_command(Session& session, const protocol::resp::Command& command,
                                         const protocol::resp::CommandParser& arguments);
// slowlog.cpp
[[nodiscard]] std::string slowlog_command(Session& session, const protocol::resp::Command& command,
                                          const protocol::resp::CommandParser& arguments);
// latency.cpp
[[nodiscard]] std::string latency_command(Session& session, const protocol::resp::Command& command,
                                          const protocol::resp::CommandParser& arguments);

}  // namespace ringshift::proxy
