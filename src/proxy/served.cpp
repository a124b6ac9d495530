#include "proxy/served.h"

#include <algorithm>

namespace ringshift::proxy {

using protocol::resp::Command;
using protocol::resp::Handling;

bool served(const Command& command) noexcept {
  switch (command.handling) {
    case Handling::routed:
    case Handling::split_mget:
    case Handling::split_mset:
    case Handling::split_count:
    case Handling::transaction:
    case Handling::blocking:
    case Handling::fan_out:
    case Handling::local:
    case Handling::pubsub:
    case Handling::names_database:
      return true;
    case Handling::container:
      return std::ranges::any_of(std::span(&command + 1, command.subcommands), served);
    case Handling::undecided:
    case Handling::unsupported:
      break;
  }
  return false;
}

std::string_view why_not_served(const Command& command) noexcept { return command.reason; }

}  // namespace ringshift::proxy
