// The response times of the last second, and their percentiles; the 99th of fewer than a hundred samples is
// the worst. Bounded by kSamplesMax: the oldest go first. Not thread-safe; time is given by the caller.
#pragma once
#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace ringshift::resize {

class LatencyWindow {
 public:
  static constexpr std::size_t kSamplesMax = 1024;
  explicit LatencyWindow(base::Duration span = std::chrono::seconds(1)) : span_(span) {}

  void add(double milliseconds, base::TimePoint now) {
    samples_.emplace_back(now, milliseconds);
    trim(now);
  }
  // Forgets everything: what was measured before the rate changed says nothing about the new one.
  void clear() { samples_.clear(); }
  [[nodiscard]] std::size_t size() const noexcept { return samples_.size(); }

  // 0 without samples. By nearest rank; O(n).
  [[nodiscard]] double p99(base::TimePoint now) { return percentile(99, now); }
  [[nodiscard]] double percentile(std::size_t percent, base::TimePoint now) {
    trim(now);
    if (samples_.empty()) return 0;
    std::vector<double> values;
    values.reserve(samples_.size());
    for (const auto& [when, value] : samples_) values.push_back(value);
    const std::size_t rank = (values.size() * percent + 99) / 100 - 1;
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(rank));
    return values[rank];
  }

 private:
  void trim(base::TimePoint now) {
    while (!samples_.empty() && (samples_.size() > kSamplesMax || now - samples_.front().first > span_)) {
      samples_.pop_front();
    }
  }
  const base::Duration span_;
  std::deque<std::pair<base::TimePoint, double>> samples_;
};

}  // namespace ringshift::resize
