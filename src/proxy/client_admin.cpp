#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

#include "proxy/administer.h"
#include "proxy/arguments.h"
#include "proxy/replies.h"
#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::Command;
using protocol::resp::CommandParser;
using protocol::resp::equals_ignoring_case;
using Part = Gather::Part;

constexpr std::string_view kOk = "+OK\r\n";
constexpr std::string_view kSyntaxError = "-ERR syntax error\r\n";
constexpr std::int64_t kLongestPause = 365LL * 24 * 3600 * 1000;  // Milliseconds; more is as good.

// The type as describe() has it; nothing when there is no such.
std::optional<std::string_view> client_type(std::string_view text) {
  for (const std::string_view type : {"normal", "replica", "pubsub", "master"}) {
    if (equals_ignoring_case(text, type)) return type;
  }
  if (equals_ignoring_case(text, "slave")) return "replica";
  return std::nullopt;
}

std::string unknown_type(std::string_view text) {
  return fmt::format("-ERR Unknown client type '{}'\r\n", quoted_in_error(text));
}

// What CLIENT LIST and CLIENT KILL choose by; what is not set chooses all.
struct Filter {
  std::optional<std::unordered_set<std::uint64_t>> ids;
  std::optional<std::string> type, address, local_address, user;
  std::optional<std::uint64_t> not_this;

  [[nodiscard]] bool takes(const Session& session) const {
    return (!ids || ids->contains(session.id())) && (!type || *type == session.type()) &&
           (!address || *address == session.peer()) &&
           (!local_address || *local_address == session.local_address()) &&
           (!user || *user == session.user()) && (!not_this || *not_this != session.id());
  }
};

std::string list(Session& session, const CommandParser& arguments) {
  const std::size_t count = arguments.argument_count();
  Filter filter;
  if (count == 4 && equals_ignoring_case(arguments.argument(2), "type")) {
    const auto type = client_type(arguments.argument(3));
    if (!type) return unknown_type(arguments.argument(3));
    filter.type = *type;
  } else if (count > 3 && equals_ignoring_case(arguments.argument(2), "id")) {
    filter.ids.emplace();
    for (std::size_t i = 3; i < count; ++i) {
      const auto id = parse_integer(arguments.argument(i));
      if (!id) return "-ERR Invalid client ID\r\n";
      filter.ids->insert(static_cast<std::uint64_t>(*id));
    }
  } else if (count != 2) {
    return std::string(kSyntaxError);
  }
  session.gather(
      [resp = session.resp()](const Part& all) {
        std::string text, out;
        for (const Gather::Row& row : all.rows) text.append(row.text).append("\n");
        append_verbatim(out, text, resp);
        return out;
      },
      [filter = std::move(filter)](Worker& worker) {
        Part part;
        for (const auto& one : worker.sessions()) {
          if (one->connected() && filter.takes(*one)) part.rows.push_back({one->id(), one->describe()});
        }
        return part;
      });
  return {};
}

// CLIENT KILL with filters, or an error.
std::string read_kill_filter(const Session& session, const CommandParser& arguments, Filter& filter) {
  bool skip_me = true;
  for (std::size_t i = 2; i < arguments.argument_count(); i += 2) {
    if (i + 1 == arguments.argument_count()) return std::string(kSyntaxError);
    const std::string_view what = arguments.argument(i);
    const std::string_view value = arguments.argument(i + 1);
    const auto is = [&](std::string_view name) { return equals_ignoring_case(what, name); };
    if (is("id")) {
      const auto id = parse_integer(value);
      if (!id || *id < 1) return "-ERR client-id should be greater than 0\r\n";
      filter.ids.emplace({static_cast<std::uint64_t>(*id)});
    } else if (is("type")) {
      const auto type = client_type(value);
      if (!type) return unknown_type(value);
      filter.type = *type;
    } else if (is("addr")) {
      filter.address = value;
    } else if (is("laddr")) {
      filter.local_address = value;
    } else if (is("user")) {
      if (session.worker().rules().rules.users.find(value) == nullptr)
        return fmt::format("-ERR No such user '{}'\r\n", quoted_in_error(value));
      filter.user = value;
    } else if (is("skipme") && equals_ignoring_case(value, "yes")) {
      skip_me = true;
    } else if (is("skipme") && equals_ignoring_case(value, "no")) {
      skip_me = false;
    } else {
      return std::string(kSyntaxError);
    }
  }
  if (skip_me) filter.not_this = session.id();
  return {};
}

std::string kill(Session& session, const CommandParser& arguments) {
  Filter filter;
  const bool old_form = arguments.argument_count() == 3;
  if (old_form) {
    filter.address = arguments.argument(2);
  } else if (std::string error = read_kill_filter(session, arguments, filter); !error.empty()) {
    return error;
  }
  session.gather(
      [old_form](const Part& all) {
        if (!old_form) return fmt::format(":{}\r\n", all.number);
        return all.number > 0 ? std::string(kOk) : std::string("-ERR No such client\r\n");
      },
      [filter = std::move(filter), asking = session.id()](Worker& worker) {
        Part part;
        for (const auto& one : worker.sessions()) {
          if (!one->connected() || !filter.takes(*one)) continue;
          ++part.number;
          if (one->id() == asking) {
            one->close_when_done();  // It is still to hear of it.
          } else {
            one->kill();
          }
        }
        return part;
      });
  return {};
}

std::string answer_ok(const Part&) { return std::string(kOk); }

std::string pause(Session& session, const CommandParser& arguments) {
  const std::size_t count = arguments.argument_count();
  if (count > 4) return std::string(kSyntaxError);
  PauseMode mode = PauseMode::all;
  if (count == 4) {
    if (equals_ignoring_case(arguments.argument(3), "write")) {
      mode = PauseMode::write;
    } else if (!equals_ignoring_case(arguments.argument(3), "all")) {
      return "-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n";
    }
  }
  const auto ms = parse_integer(arguments.argument(2));
  if (!ms) return "-ERR timeout is not an integer or out of range\r\n";
  if (*ms < 0) return "-ERR timeout is negative\r\n";
  const base::TimePoint until =
      session.worker().loop().now() + std::chrono::milliseconds(std::min(*ms, kLongestPause));
  session.gather(answer_ok, [mode, until](Worker& worker) {
    worker.pause_clients(mode, until);
    return Part{};
  });
  return {};
}

std::string unpause(Session& session) {
  session.gather(answer_ok, [](Worker& worker) {
    worker.unpause_clients();
    return Part{};
  });
  return {};
}

std::string unblock(Session& session, const CommandParser& arguments) {
  const std::size_t count = arguments.argument_count();
  bool with_error = false;
  if (count == 4) {
    with_error = equals_ignoring_case(arguments.argument(3), "error");
    if (!with_error && !equals_ignoring_case(arguments.argument(3), "timeout")) {
      return "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n";
    }
  } else if (count != 3) {
    return std::string(kSyntaxError);
  }
  const auto id = parse_integer(arguments.argument(2));
  if (!id) return "-ERR value is not an integer or out of range\r\n";
  session.gather([](const Part& all) { return fmt::format(":{}\r\n", all.number); },
                 [id = static_cast<std::uint64_t>(*id), with_error](Worker& worker) {
                   Part part;
                   for (const auto& one : worker.sessions()) {
                     if (one->id() == id && one->unblock(with_error)) part.number = 1;
                   }
                   return part;
                 });
  return {};
}

std::string no_evict(Session& session, const CommandParser& arguments) {
  const bool on = equals_ignoring_case(arguments.argument(2), "on");
  if (!on && !equals_ignoring_case(arguments.argument(2), "off")) return std::string(kSyntaxError);
  session.set_no_evict(on);
  return std::string(kOk);
}

std::string tracking(const Command& command, const CommandParser& arguments) {
  if (equals_ignoring_case(arguments.argument(2), "off") && arguments.argument_count() == 3) {
    return std::string(kOk);
  }
  if (!equals_ignoring_case(arguments.argument(2), "on")) return std::string(kSyntaxError);
  return unsupported(command, command.reason) + "\r\n";
}

std::string caching(const CommandParser& arguments) {
  (void)arguments;
  return "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT "
         "mode "
         "enabled\r\n";
}

std::string tracking_info(const Session& session) {
  std::string out;
  append_map_header(out, 3, session.resp());
  append_bulk(out, "flags");
  append_header(out, session.resp() == backend::Resp::v3 ? '~' : '*', 1);
  append_bulk(out, "off");
  append_bulk(out, "redirect");
  append_integer(out, -1);
  append_bulk(out, "prefixes");
  append_header(out, '*', 0);
  return out;
}

}  // namespace

std::string administer_clients(Session& session, const Command& command, const CommandParser& arguments) {
  const std::string_view sub = command.name.substr(command.name.find('|') + 1);
  if (sub == "list") return list(session, arguments);
  if (sub == "kill") return kill(session, arguments);
  if (sub == "pause") return pause(session, arguments);
  if (sub == "unpause") return unpause(session);
  if (sub == "unblock") return unblock(session, arguments);
  if (sub == "no-evict") return no_evict(session, arguments);
  if (sub == "tracking") return tracking(command, arguments);
  if (sub == "caching") return caching(arguments);
  if (sub == "getredir") return ":-1\r\n";
  if (sub == "trackinginfo") return tracking_info(session);
  return unknown_subcommand("client", sub) + "\r\n";
}

}  // namespace ringshift::proxy
