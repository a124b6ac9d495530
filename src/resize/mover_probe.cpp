// The mover's probe of one source: asks it for a PING every few milliseconds over a connection of its own, as
// a client would, and lets the rate follow (rate_governor.h).
#include <fmt/format.h>

#include "backend/sync_client.h"
#include "resize/mover_source.h"

namespace ringshift::resize {

namespace {

constexpr std::chrono::milliseconds kProbeInterval{5};
constexpr std::chrono::milliseconds kIdleInterval{2};
constexpr int kIdleSamples = 25;
constexpr std::chrono::milliseconds kIdlePatienceMax{2000};
constexpr std::chrono::milliseconds kDecideInterval{100};
constexpr std::chrono::milliseconds kProbePatience{3000};
constexpr std::chrono::milliseconds kProbeRetry{500};

}  // namespace

// Returns when the source was measured without the mover, or is too slow to say.
void MoverSource::start_probe() {
  probe_ = std::thread([this] { probe(); });
  if (shared_.options.limits.move_latency_ms == 0) return;
  const auto until = std::chrono::steady_clock::now() + kIdlePatienceMax;
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until, [this] { return idle_known_ || verdict_ || shared_.stopping; });
}

void MoverSource::tell_rate(double p99_ms) {
  std::string why;
  switch (governor_.cause()) {
    case RateGovernor::Cause::none:
      break;
    case RateGovernor::Cause::latency:
      why = fmt::format("{}: {:.0f} keys/s, its p99 is {:.1f} ms (limit {:.1f})", id(index_),
                        governor_.rate(), p99_ms, governor_.limit_ms());
      break;
    case RateGovernor::Cause::origin:
      why = fmt::format("{}: {:.0f} keys/s, the origin is asked too often", id(index_), governor_.rate());
      break;
  }
  const std::lock_guard lock(shared_.mutex);
  shared_.rates[index_] = {governor_.rate(), std::move(why)};
}

void MoverSource::probe() {
  using std::chrono::steady_clock;
  Client client;
  LatencyWindow window;
  // Without a limit nothing is asked; the origin may still hold us back.
  const bool asks = shared_.options.limits.move_latency_ms != 0;
  int idle_samples = asks ? 0 : kIdleSamples;
  steady_clock::time_point decided = steady_clock::now();
  std::uint64_t moved_before = 0;
  double moved_rate = 0;
  const auto stopped = [this] {
    const std::lock_guard lock(mutex_);
    return closed_ || verdict_.has_value() || shared_.stopping;
  };
  while (!stopped()) {
    if (asks && (client == nullptr || !client->connected())) {
      auto connected = dial(index_, kProbePatience);
      if (!connected) {  // The lanes say so, and count.
        if (!shared_.pause(kProbeRetry)) return;
        continue;
      }
      client = std::move(*connected);
    }
    const auto asked = steady_clock::now();
    const bool heard = asks && client->call({"PING"}).has_value();
    const auto now = steady_clock::now();
    if (heard) window.add(std::chrono::duration<double, std::milli>(now - asked).count(), now);
    if (idle_samples < kIdleSamples) {
      if (++idle_samples == kIdleSamples) {
        governor_.set_idle(window.percentile(50, now));  // Not p99: a hiccup just now is not how it is.
        window.clear();
        decided = now;
        const std::lock_guard lock(mutex_);
        idle_known_ = true;
        changed_.notify_all();
      }
      if (!shared_.pause(kIdleInterval)) return;
      continue;
    }
    if (now - decided >= kDecideInterval) {
      const std::uint64_t moved = moved_;
      const double seconds = std::chrono::duration<double>(now - decided).count();
      // Smoothed over about half a second.
      moved_rate +=
          (static_cast<double>(moved - moved_before) / seconds - moved_rate) * std::min(1.0, 2 * seconds);
      moved_before = moved;
      decided = now;
      const double p99 = window.p99(now);
      const RateGovernor::Decision decision = governor_.update(p99, moved_rate, shared_.origin_over, now);
      rate_.set_rate(governor_.rate(), now);
      tell_rate(p99);
      if (decision.fell) window.clear();
    }
    if (!shared_.pause(asks ? kProbeInterval : kDecideInterval)) return;
  }
}

}  // namespace ringshift::resize
