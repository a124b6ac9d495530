#include "proxy/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "base/log.h"
#include "base/seldom.h"
#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::Command;

constexpr std::chrono::milliseconds kSlowLogged{100};  // At most one line in this time and worker.

std::vector<std::string> for_the_log(const protocol::resp::CommandParser& arguments) {
  std::vector<std::string> texts;
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
                    const protocol::resp::CommandParser& arguments, std::string member) {
  if (!under_way_.empty() && under_way_.back().number == number) {  // It had to wait, or had no answer.
    under_way_.back().command = &command;
    under_way_.back().arguments = for_the_log(arguments);
    under_way_.back().member = std::move(member);
    return;
  }
  if (under_way_.size() == kMaxUnderWay) under_way_.pop_front();
  under_way_.push_back({number, now, &command, for_the_log(arguments), std::move(member)});
}

void Measure::ready(std::uint64_t number, base::TimePoint now) {
  const auto found = std::ranges::lower_bound(under_way_, number, {}, &UnderWay::number);
  if (found != under_way_.end() && found->number == number) found->ready = now;
}

// Never a value, nor a key: those are the application's.
void Measure::log_slow(const Session& session, const UnderWay& done, base::TimePoint now) {
  thread_local base::Seldom seldom;
  const auto tail = seldom.ask(now, kSlowLogged);
  if (!tail) return;
  const auto ms = [](base::Duration time) { return std::chrono::duration<double, std::milli>(time).count(); };
  const base::TimePoint ready = done.ready == base::TimePoint{} ? now : done.ready;
  base::log_fields(
      base::LogLevel::warning,
      {{"client", session.id()},
       {"peer", session.peer()},
       {"command", done.command->name},
       {"member", done.member},
       {"total_ms", ms(now - done.since)},
       {"member_ms", ms(ready - done.since)},
       {"turn_ms", ms(now - ready)}},
      "proxy: slow request: {} of client {} ({}): {:.1f} ms, of which member {} took {:.1f} ms and "
      "waiting for earlier answers {:.1f} ms{}",
      done.command->name, session.id(), session.peer(), ms(now - done.since),
      done.member.empty() ? "-" : done.member, ms(ready - done.since), ms(now - ready), *tail);
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
    const std::int64_t slow_ms = settings.slow_log_ms.get();
    if (slow_ms > 0 && micros >= slow_ms * 1000) log_slow(session, done, now);
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
