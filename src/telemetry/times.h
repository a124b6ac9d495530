// How long things took, as counts in buckets an eighth of an octave wide: a quantile read from them is at
// most 13 % too high.
//
// One writer, as Counters: adding is a plain load, add and store. Any thread may read; what it reads is of no
// one instant. 2 KiB.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ringshift::telemetry {

inline constexpr std::size_t kTimeBuckets = 256;
using TimesTotals = std::array<std::uint64_t, kTimeBuckets>;

class Times {
 public:
  // The owner's thread only.
  void add(std::int64_t micros, std::uint64_t times = 1) noexcept {
    std::atomic<std::uint64_t>& count = counts_[bucket(micros)];
    count.store(count.load(std::memory_order_relaxed) + times, std::memory_order_relaxed);
  }
  // Any thread.
  void add_to(TimesTotals& totals) const noexcept {
    for (std::size_t i = 0; i < kTimeBuckets; ++i) totals[i] += counts_[i].load(std::memory_order_relaxed);
  }

  [[nodiscard]] static std::size_t bucket(std::int64_t micros) noexcept {
    const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(0, micros));
    if (value < 16) return value;
    const auto exponent = static_cast<std::size_t>(std::bit_width(value)) - 1;
    return std::min(kTimeBuckets - 1, 16 + (exponent - 4) * 8 + ((value >> (exponent - 3)) & 7));
  }
  // The longest time that the bucket holds.
  [[nodiscard]] static std::uint64_t upper(std::size_t bucket) noexcept {
    if (bucket < 16) return bucket;
    const std::size_t exponent = (bucket - 16) / 8 + 4;
    return ((9 + (bucket - 16) % 8) << (exponent - 3)) - 1;
  }

 private:
  std::array<std::atomic<std::uint64_t>, kTimeBuckets> counts_{};
};

// Of what was added between two readings, in microseconds; -1 when that is nothing. `share`: 0.99 for p99.
[[nodiscard]] inline double quantile(const TimesTotals& earlier, const TimesTotals& later, double share) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < kTimeBuckets; ++i) all += later[i] - std::min(later[i], earlier[i]);
  if (all == 0) return -1;
  double left = share * static_cast<double>(all);
  std::size_t last = 0;
  for (std::size_t i = 0; i < kTimeBuckets; ++i) {
    const std::uint64_t here = later[i] - std::min(later[i], earlier[i]);
    if (here == 0) continue;
    last = i;
    left -= static_cast<double>(here);
    if (left <= 0) break;
  }
  return static_cast<double>(Times::upper(last));
}

}  // namespace ringshift::telemetry
