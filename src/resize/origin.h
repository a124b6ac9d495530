// How hard the origin is hit: the misses a second of all routers, from the counters in their records. A miss
// is a GET that was answered with nil, which a cache's client follows with a question to the origin.
//
// The figure is an average over a window, which is longer than the routers' interval of a second between two
// reports. Thread: the leader's.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace ringshift::resize {

class OriginMeter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kSample{100};  // Bounds how many samples a window has.

  explicit OriginMeter(std::chrono::milliseconds window) : window_(window) {}

  // What the routers say at `now`: id -> its counter, which begins anew when the router does.
  void add(const std::map<std::string, std::uint64_t>& misses, TimePoint now) {
    for (const auto& [router, count] : misses) {
      const auto [seen, is_new] = seen_.try_emplace(router, count);
      if (!is_new && count > seen->second) total_ += count - seen->second;
      seen->second = count;
    }
    std::erase_if(seen_, [&](const auto& entry) { return !misses.contains(entry.first); });
    if (!samples_.empty() && now - samples_.back().at < kSample) return;
    samples_.push_back({now, total_});
    while (samples_.size() > 2 && now - samples_[1].at >= window_) samples_.pop_front();
  }

  // Misses a second within the last window; nullopt before a whole one was looked at since `from`.
  [[nodiscard]] std::optional<double> rate(TimePoint now, TimePoint from) const {
    if (now - from < window_ || samples_.empty() || now - samples_.front().at < window_) return std::nullopt;
    const double seconds = std::chrono::duration<double>(now - samples_.front().at).count();
    return static_cast<double>(total_ - samples_.front().total) / seconds;
  }

 private:
  struct Sample {
    TimePoint at;
    std::uint64_t total;
  };
  const std::chrono::milliseconds window_;
  std::map<std::string, std::uint64_t> seen_;
  std::deque<Sample> samples_;
  std::uint64_t total_ = 0;
};

}  // namespace ringshift::resize
