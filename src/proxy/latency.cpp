// LATENCY: of one event, "command": an answer that took latency-monitor-threshold milliseconds or more, as
// measure.h measures it. HISTOGRAM shows what latency-tracking has counted.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "proxy/administer.h"
#include "proxy/replies.h"
#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::Command;
using protocol::resp::CommandParser;
using protocol::resp::equals_ignoring_case;
using Part = Gather::Part;

constexpr std::string_view kEvent = "command";
constexpr std::string_view kDisabled =
    "Latency monitoring is disabled. CONFIG SET latency-monitor-threshold <milliseconds> enables it.";

// Rows of samples: order is the time, the text the milliseconds; number: the longest ever.
Part samples_of(Worker& worker) {
  Part part;
  for (const LatencySample& sample : worker.admin().samples) {
    part.rows.push_back({static_cast<std::uint64_t>(sample.at), std::to_string(sample.ms)});
  }
  return part;
}

std::int64_t ms_of(const Gather::Row& row) {
  std::int64_t ms = 0;
  std::from_chars(row.text.data(), row.text.data() + row.text.size(), ms);
  return ms;
}

std::int64_t longest(const Part& all) {
  std::int64_t ms = 0;
  for (const Gather::Row& row : all.rows) ms = std::max(ms, ms_of(row));
  return ms;
}

std::string latest(Session& session) {
  session.gather(
      [](const Part& all) {
        std::string out;
        append_header(out, '*', all.rows.empty() ? 0 : 1);
        if (all.rows.empty()) return out;
        append_header(out, '*', 4);
        append_bulk(out, kEvent);
        append_integer(out, static_cast<std::int64_t>(all.rows.back().order));
        append_integer(out, ms_of(all.rows.back()));
        append_integer(out, longest(all));
        return out;
      },
      samples_of);
  return {};
}

std::string history(Session& session, const CommandParser& arguments) {
  if (!equals_ignoring_case(arguments.argument(2), kEvent)) return "*0\r\n";
  session.gather(
      [](const Part& all) {
        const std::size_t count = std::min(all.rows.size(), WorkerAdmin::kMaxSamples);
        std::string out;
        append_header(out, '*', count);
        for (std::size_t i = all.rows.size() - count; i < all.rows.size(); ++i) {
          append_header(out, '*', 2);
          append_integer(out, static_cast<std::int64_t>(all.rows[i].order));
          append_integer(out, ms_of(all.rows[i]));
        }
        return out;
      },
      samples_of);
  return {};
}

// One bar of '#' a sample, in lines of text: the ratio to the longest says its height.
std::string graph(Session& session, const CommandParser& arguments) {
  const std::string none =
      fmt::format("-ERR No samples available for event '{}'\r\n", quoted_in_error(arguments.argument(2)));
  if (!equals_ignoring_case(arguments.argument(2), kEvent)) return none;
  session.gather(
      [none, resp = session.resp()](const Part& all) {
        if (all.rows.empty()) return none;
        constexpr std::size_t kColumns = 80;
        constexpr std::int64_t kRows = 5;
        const std::size_t first = all.rows.size() - std::min(all.rows.size(), kColumns);
        const std::int64_t high = std::max<std::int64_t>(longest(all), 1);
        std::string text =
            fmt::format("{} - high {} ms, latest {} ms\n{:-<80}\n", kEvent, high, ms_of(all.rows.back()), "");
        for (std::int64_t row = kRows; row > 0; --row) {
          for (std::size_t i = first; i < all.rows.size(); ++i) {
            text += ms_of(all.rows[i]) * kRows > high * (row - 1) ? '#' : ' ';
          }
          text += '\n';
        }
        std::string out;
        append_verbatim(out, text, resp);
        return out;
      },
      samples_of);
  return {};
}

std::string doctor(Session& session) {
  session.gather(
      [enabled = session.shared().settings.latency_threshold.get() > 0,
       resp = session.resp()](const Part& all) {
        std::string out;
        std::string text;
        if (!enabled && all.rows.empty()) {
          text = kDisabled;
        } else if (all.rows.empty()) {
          text = "No command took as long as latency-monitor-threshold.";
        } else {
          std::int64_t sum = 0;
          for (const Gather::Row& row : all.rows) sum += ms_of(row);
          text = fmt::format(
              "{} of the latest commands took as long as latency-monitor-threshold: {} ms on average, {} ms "
              "at "
              "most. SLOWLOG GET names them (slowlog-log-slower-than), INFO shows each member's state and "
              "queue.",
              all.rows.size(), sum / static_cast<std::int64_t>(all.rows.size()), longest(all));
        }
        append_verbatim(out, text, resp);
        return out;
      },
      samples_of);
  return {};
}

std::string reset(Session& session, const CommandParser& arguments) {
  bool ours = arguments.argument_count() == 2;
  for (std::size_t i = 2; i < arguments.argument_count(); ++i) {
    ours |= equals_ignoring_case(arguments.argument(i), kEvent);
  }
  if (!ours) return ":0\r\n";
  session.gather(
      [](const Part& all) { return fmt::format(":{}\r\n", std::min<std::int64_t>(all.number, 1)); },
      [](Worker& worker) {
        Part part{static_cast<std::int64_t>(worker.admin().samples.size()), {}};
        worker.admin().samples.clear();
        return part;
      });
  return {};
}

// A row a command and worker: "name calls bucket bucket ...".
std::string histogram(Session& session, const CommandParser& arguments) {
  std::vector<const Command*> wanted;
  for (std::size_t i = 2; i < arguments.argument_count(); ++i) {
    if (const Command* command = protocol::resp::find_command(arguments.argument(i)))
      wanted.push_back(command);
  }
  const bool all_of_them = arguments.argument_count() == 2;
  const std::shared_ptr<std::map<const Command*, CommandTimes>> sum =
      std::make_shared<std::map<const Command*, CommandTimes>>();
  const auto mutex = std::make_shared<std::mutex>();
  session.gather(
      [sum, mutex, resp = session.resp()](const Part&) {
        const std::lock_guard lock(*mutex);
        std::string out;
        append_map_header(out, sum->size(), resp);
        for (const auto& [command, times] : *sum) {
          append_bulk(out, command->name);
          append_map_header(out, 2, resp);
          append_bulk(out, "calls");
          append_integer(out, static_cast<std::int64_t>(times.calls));
          append_bulk(out, "histogram_usec");
          const auto filled = static_cast<std::size_t>(
              std::ranges::count_if(times.buckets, [](std::uint64_t n) { return n != 0; }));
          append_map_header(out, filled, resp);
          std::uint64_t up_to = 0;
          for (std::size_t i = 0; i < times.buckets.size(); ++i) {
            if (times.buckets[i] == 0) continue;
            up_to += times.buckets[i];
            append_integer(out, std::int64_t{1} << i);
            append_integer(out, static_cast<std::int64_t>(up_to));
          }
        }
        return out;
      },
      [sum, mutex, wanted, all_of_them](Worker& worker) {
        const std::lock_guard lock(*mutex);
        for (const auto& [command, times] : worker.admin().times) {
          const bool takes = all_of_them || std::ranges::any_of(wanted, [&](const Command* one) {
                               return one == command || (command > one && command <= one + one->subcommands);
                             });
          if (takes) (*sum)[command].add(times);
        }
        return Part{};
      });
  return {};
}

}  // namespace

std::string latency_command(Session& session, const Command& command, const CommandParser& arguments) {
  const std::string_view sub = command.name.substr(command.name.find('|') + 1);
  if (sub == "latest") return latest(session);
  if (sub == "history") return history(session, arguments);
  if (sub == "graph") return graph(session, arguments);
  if (sub == "doctor") return doctor(session);
  if (sub == "reset") return reset(session, arguments);
  return histogram(session, arguments);
}

}  // namespace ringshift::proxy
