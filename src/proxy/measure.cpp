#include "proxy/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::Command;

std::vector<std::string> for_the_log(const protocol::resp::CommandParser* parser) {
  std::vector<std::string> texts;
  if (parser == nullptr) return texts;
  const protocol::resp::CommandParser& arguments = *parser;
  const std::size_t count = arguments.argument_count();
  const std::size_t shown = std::min(count, Measure::kMaxArguments);
  texts.reserve(shown);
  for (std::size_t i = 0; i < shown; ++i) {
    if (count > shown && i + 1 == shown) {
      texts.push_back(fmt::format("... ({} more arguments)", count - shown + 1));
      break;
    }
    const std::string_view text = arguments.argument(i);
    texts.emplace_back(text.substr(0, Measure::kMaxText));
    if (text.size() > Measure::kMaxText)
      texts.back() += fmt::format("... ({} more bytes)", text.size() - Measure::kMaxText);
  }
  return texts;
}

std::int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void Measure::begin(std::uint64_t number, base::TimePoint now, const Command& command,
                    const protocol::resp::CommandParser* arguments) {
  if (!under_way_.empty() && under_way_.back().number == number) {  // It had to wait, or had no answer.
    under_way_.back().command = &command;
    under_way_.back().arguments = for_the_log(arguments);
    return;
  }
  if (under_way_.size() == kMaxUnderWay) under_way_.pop_front();
  under_way_.push_back({number, now, &command, for_the_log(arguments)});
}

void Measure::settle(Session& session, std::uint64_t head, base::TimePoint now) {
  WorkerAdmin& admin = session.worker().admin();
  const Settings& settings = session.shared().settings;
  for (; !under_way_.empty() && under_way_.front().number < head; under_way_.pop_front()) {
    UnderWay& done = under_way_.front();
    const std::int64_t micros =
        std::chrono::duration_cast<std::chrono::microseconds>(now - done.since).count();
    if (settings.latency_tracking.get() != 0) {
      CommandTimes& times = admin.times[done.command];
      ++times.calls;
      times.micros += micros;
      const auto bucket =
          static_cast<std::size_t>(micros <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(micros - 1)));
      ++times.buckets[std::min(bucket, CommandTimes::kBuckets - 1)];
    }
    // Those that wait by their nature are not slow.
    if (done.command->handling == protocol::resp::Handling::blocking) continue;
    if (admin.sampling) admin.sampled.add(micros);
    const std::int64_t threshold = settings.latency_threshold.get();
    if (threshold > 0 && micros >= threshold * 1000) {
      if (admin.samples.size() == WorkerAdmin::kMaxSamples) admin.samples.pop_front();
      admin.samples.push_back({unix_time(), micros / 1000});
    }
    const std::int64_t slow = settings.slowlog_slower_than.get();
    if (slow < 0 || micros < slow || (done.command->flags & protocol::resp::k_skip_slowlog) != 0) continue;
    admin.slow.push_front({session.shared().next_slow_id(), unix_time(), micros, std::move(done.arguments),
                           session.peer(), session.name()});
    while (admin.slow.size() > settings.slowlog_max_len.size()) admin.slow.pop_back();
  }
}

}  // namespace ringshift::proxy
