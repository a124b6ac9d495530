// CONFIG GET, SET and RESETSTAT: the proxy's own settings, under Redis' names where they mean the same.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "proxy/administer.h"
#include "proxy/arguments.h"
#include "proxy/replies.h"
#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::Command;
using protocol::resp::CommandParser;
using protocol::resp::equals_ignoring_case;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

// Bytes that clients may leave unread, as Redis says it for three classes of clients.
constexpr std::string_view kOutputLimit = "client-output-buffer-limit";

constexpr std::string_view kDatabaseCount = "databases";  // Those that the client may select.

enum class Form : std::uint8_t { number, memory, yes_no };

struct Changeable {
  std::string_view name;
  Setting Settings::* setting;
  std::int64_t lowest, highest;
  Form form = Form::number;
};
constexpr Changeable kChangeable[] = {
    {"latency-monitor-threshold", &Settings::latency_threshold, 0, kMax / 1000},
    {"latency-tracking", &Settings::latency_tracking, 0, 1, Form::yes_no},
    {"maxclients", &Settings::max_clients, 1, 4294967295},
    {"ringshift-slow-log-ms", &Settings::slow_log_ms, 0, kMaxInt},
    {"ringshift-slow-client-timeout", &Settings::slow_client_timeout, 1, kMaxInt},
    {"ringshift-total-output", &Settings::total_output, 1, kMax, Form::memory},
    {"slowlog-log-slower-than", &Settings::slowlog_slower_than, -1, kMax},
    {"slowlog-max-len", &Settings::slowlog_max_len, 0, kMaxInt},
    {"tcp-keepalive", &Settings::tcp_keepalive, 0, kMaxInt},
    {"timeout", &Settings::timeout, 0, kMaxInt},
};

// Settings that stand still, and those of Redis' that tools ask for and whose answer is always the same here.
struct Fixed {
  std::string_view name;
  std::string (*value)(const Shared& shared);
};
std::pair<std::string, std::string> host_and_port(const Shared& shared) {
  const std::string& address = shared.address;
  const std::size_t colon = address.rfind(':');
  if (address.starts_with("unix:")) return {"", "0"};
  return {address.substr(0, colon), address.substr(colon + 1)};
}
constexpr Fixed kFixed[] = {
    {"appendonly", [](const Shared&) { return std::string("no"); }},
    {"bind", [](const Shared& shared) { return host_and_port(shared).first; }},
    {"cluster-enabled", [](const Shared&) { return std::string("no"); }},
    {"io-threads", [](const Shared& shared) { return std::to_string(shared.options.threads); }},
    {"port", [](const Shared& shared) { return host_and_port(shared).second; }},
    {"proto-max-bulk-len",
     [](const Shared&) { return std::to_string(protocol::resp::CommandLimits{}.max_bulk_bytes); }},
    {"ringshift-allow-flush",
     [](const Shared& shared) { return std::string(shared.options.allow_flush ? "yes" : "no"); }},
    {"ringshift-connect-timeout-ms",
     [](const Shared& shared) { return std::to_string(shared.options.connect_timeout.count()); }},
    {"ringshift-id", [](const Shared& shared) { return shared.options.router_id; }},
    {"ringshift-max-in-flight",
     [](const Shared& shared) { return std::to_string(shared.options.max_in_flight); }},
    {"ringshift-request-timeout-ms",
     [](const Shared& shared) { return std::to_string(shared.options.request_timeout.count()); }},
    {"save", [](const Shared&) { return std::string(); }},
    {"unixsocket",
     [](const Shared& shared) {
       return shared.address.starts_with("unix:") ? shared.address.substr(5) : std::string();
     }},
};

std::string text_of(const Changeable& one, const Settings& settings) {
  const std::int64_t value = (settings.*one.setting).get();
  if (one.form == Form::yes_no) return value != 0 ? "yes" : "no";
  return std::to_string(value);
}

std::string output_limit(const Settings& settings) {
  return fmt::format("normal {} 0 0 slave 0 0 0 pubsub {} 0 0", settings.cut_output.get(),
                     settings.cut_pubsub.get());
}

// All settings, by name.
std::vector<std::pair<std::string_view, std::string>> all_settings(const Session& session) {
  const Shared& shared = session.shared();
  std::vector<std::pair<std::string_view, std::string>> all;
  for (const Changeable& one : kChangeable) all.emplace_back(one.name, text_of(one, shared.settings));
  for (const Fixed& one : kFixed) all.emplace_back(one.name, one.value(shared));
  all.emplace_back(kOutputLimit, output_limit(shared.settings));
  all.emplace_back(kDatabaseCount, std::to_string(session.databases()));
  std::ranges::sort(all);
  return all;
}

std::string get(const Session& session, const CommandParser& arguments) {
  std::vector<std::pair<std::string_view, std::string>> found;
  for (auto& [name, value] : all_settings(session)) {
    for (std::size_t i = 2; i < arguments.argument_count(); ++i) {
      if (!matches_ignoring_case(arguments.argument(i), name)) continue;
      found.emplace_back(name, std::move(value));
      break;
    }
  }
  std::string out;
  append_map_header(out, found.size(), session.resp());
  for (const auto& [name, value] : found) {
    append_bulk(out, name);
    append_bulk(out, value);
  }
  return out;
}

// One parameter of CONFIG SET: what to do, or why not.
struct Change {
  Setting Settings::* setting = nullptr;
  std::int64_t value = 0;
  std::optional<std::int64_t> cut_pubsub{};  // Comes with client-output-buffer-limit, too.
  std::string error;
};

Change parse(const Changeable& one, std::string_view text) {
  std::optional<std::int64_t> value;
  if (one.form == Form::yes_no) {
    if (equals_ignoring_case(text, "yes")) value = 1;
    if (equals_ignoring_case(text, "no")) value = 0;
    if (!value) return {.error = "argument must be 'yes' or 'no'"};
  } else if (one.form == Form::memory) {
    value = parse_memory(text);
    if (!value) return {.error = "argument must be a memory value"};
  } else {
    value = parse_integer(text);
    if (!value) return {.error = "argument couldn't be parsed into an integer"};
  }
  if (*value < one.lowest || *value > one.highest) {
    return {.error = fmt::format("argument must be between {} and {} inclusive", one.lowest, one.highest)};
  }
  return {.setting = one.setting, .value = *value, .error = {}};
}

// "normal 1gb 0 0", and the same of other classes, which have the bound of the normal ones. The soft limit is
// not kept: a client over it would be cut later instead of at once.
Change parse_output_limit(std::string_view text) {
  Change change;
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (words.empty() || words.size() % 4 != 0) {
    return {.error = "Wrong number of arguments in buffer limit configuration."};
  }
  for (std::size_t i = 0; i < words.size(); i += 4) {
    const auto is = [&](std::string_view name) { return equals_ignoring_case(words[i], name); };
    if (!is("normal") && !is("pubsub") && !is("slave") && !is("replica")) {
      return {.error = "Invalid client class specified in buffer limit configuration."};
    }
    const auto hard = parse_memory(words[i + 1]);
    if (!hard || !parse_memory(words[i + 2]) || !parse_memory(words[i + 3])) {
      return {.error = "Error in hard, soft or soft_seconds setting in buffer limit configuration."};
    }
    if (is("normal")) {
      change.setting = &Settings::cut_output;
      change.value = *hard == 0 ? kMax : *hard;
    } else if (is("pubsub")) {
      change.cut_pubsub = *hard == 0 ? kMax : *hard;
    }
  }
  return change;
}

// Raises the limit of open files when that helps.
std::string too_many_clients(const Shared& shared, const Change& change) {
  if (!change.error.empty() || change.setting != &Settings::max_clients) return {};
  const auto wanted = static_cast<std::size_t>(change.value);
  const std::size_t room = shared.open_files->room_for(wanted);
  if (room == wanted) return {};
  return fmt::format(
      "The operating system is not able to handle the specified number of clients, try with {}", room);
}

std::string failed(std::string_view name, std::string_view why) {
  return fmt::format("-ERR CONFIG SET failed (possibly related to argument '{}') - {}\r\n",
                     quoted_in_error(name), why);
}

std::string unknown(std::string_view name) {
  return fmt::format("-ERR Unknown option or number of arguments for CONFIG SET - '{}'\r\n",
                     quoted_in_error(name));
}

// All of it or nothing, as in Redis: first it is checked whole.
std::string set(Session& session, const CommandParser& arguments) {
  if (arguments.argument_count() % 2 != 0) return "-ERR syntax error\r\n";
  std::vector<Change> changes;
  std::vector<std::string_view> names;
  for (std::size_t i = 2; i + 1 < arguments.argument_count(); i += 2) {
    const std::string_view name = arguments.argument(i), value = arguments.argument(i + 1);
    const auto named = [&](const auto& one) { return equals_ignoring_case(name, one.name); };
    const auto changeable = std::ranges::find_if(kChangeable, named);
    const bool limit = equals_ignoring_case(name, kOutputLimit);
    if (changeable == std::end(kChangeable) && !limit) {
      if (std::ranges::none_of(kFixed, named) && !equals_ignoring_case(name, kDatabaseCount))
        return unknown(name);
      return failed(name, "can't set immutable config");
    }
    const std::string_view known = limit ? kOutputLimit : changeable->name;
    if (std::ranges::find(names, known) != names.end()) return failed(name, "duplicate parameter");
    names.push_back(known);
    changes.push_back(limit ? parse_output_limit(value) : parse(*changeable, value));
    if (const std::string error = too_many_clients(session.shared(), changes.back()); !error.empty()) {
      return failed(name, error);
    }
    if (!changes.back().error.empty()) return failed(name, changes.back().error);
  }
  for (const Change& change : changes) {
    if (change.setting != nullptr) (session.shared().settings.*change.setting).set(change.value);
    if (change.cut_pubsub) session.shared().settings.cut_pubsub.set(*change.cut_pubsub);
  }
  session.gather([](const Gather::Part&) { return std::string("+OK\r\n"); },
                 [](Worker& worker) {
                   worker.look_at_settings();
                   return Gather::Part{};
                 });
  return {};
}

// The counters themselves go on, for metrics; INFO shows what came since.
std::string reset_statistics(Session& session) {
  session.shared().reset_stats();
  session.gather([](const Gather::Part&) { return std::string("+OK\r\n"); },
                 [](Worker& worker) {
                   worker.admin().times.clear();
                   worker.admin().errors.clear();
                   return Gather::Part{};
                 });
  return {};
}

}  // namespace

std::string config_command(Session& session, const Command& command, const CommandParser& arguments) {
  if (command.name == "config|get") return get(session, arguments);
  if (command.name == "config|set") return set(session, arguments);
  return reset_statistics(session);
}

}  // namespace ringshift::proxy
