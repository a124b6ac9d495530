// What the load saw: counts in bins of 100 ms, and latencies, by phase.
//
// Each load thread writes its own lane (plain loads and stores of relaxed atomics: no contention); anybody
// may read at any time. begin() and end() of phases come from one thread.
// Cost: an event a few ns; memory about 0.5 MiB a lane. After kMaxBins only totals are counted.
//
// One-second windows are ten bins each, side by side from the start of the phase; the last one ends with
// the phase and may overlap its neighbour. So every second of a phase is in a window.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"

namespace ringshift::drill {

enum class Event : std::uint8_t { get, hit, origin_read, origin_update, request, error, skipped };
inline constexpr std::size_t kEvents = 7;

enum class Stage : std::uint8_t { other, before, during, after };
inline constexpr std::size_t kStages = 4;

// Latencies in buckets of at most 3.2 % width: 32 a power of two. One writer, or many with record_shared();
// any reader.
class Histogram {
 public:
  void record(base::Duration latency) noexcept;
  void record_shared(base::Duration latency) noexcept;
  void add_to(std::vector<std::uint64_t>& counts) const;  // Resized as needed.
  // The upper edge of the bucket in which the quantile lies; 0 when nothing was recorded.
  [[nodiscard]] static double quantile_ms(const std::vector<std::uint64_t>& counts, double quantile);
  static constexpr std::size_t kBuckets = 32 * 36;  // Up to 2^40 ns, 18 minutes.

 private:
  std::array<std::atomic<std::uint32_t>, kBuckets> counts_{};
};

struct StageFigures {
  double seconds = 0;  // Whole bins of 100 ms.
  std::uint64_t gets = 0, hits = 0, origin_reads = 0, origin_updates = 0, requests = 0, errors = 0,
                skipped = 0;
  double get_per_second = 0;
  double hit_rate = 0;
  double hit_rate_min_1s = 0;          // A second without any GET counts as 0.
  double hit_rate_standard_error = 0;  // Of a one-second window, from its size: sqrt(p (1 - p) / n).
  double window_gets = 0;              // Mean GETs in a one-second window.
  std::size_t windows = 0;
  double origin_qps = 0, origin_qps_max_1s = 0;
  double p50_ms = 0, p99_ms = 0, p999_ms = 0;
};

struct Totals {
  std::array<std::uint64_t, kEvents> of{};
  [[nodiscard]] std::uint64_t operator[](Event event) const { return of[static_cast<std::size_t>(event)]; }
};

class Recorder {
 public:
  static constexpr base::Duration kBin = std::chrono::milliseconds(100);
  static constexpr std::size_t kBinsPerWindow = 10;
  static constexpr std::size_t kMaxBins = 6000;  // Ten minutes.

  Recorder(std::size_t lanes, base::TimePoint start);

  void count(std::size_t lane, Event event, base::TimePoint when, std::uint32_t times = 1) noexcept;
  void latency(std::size_t lane, base::Duration latency) noexcept;  // Into the current stage.

  void begin(Stage stage, base::TimePoint when);  // Ends the stage before it.
  [[nodiscard]] StageFigures figures(Stage stage) const;
  [[nodiscard]] Totals totals() const;

 private:
  using Counter = std::atomic<std::uint32_t>;
  struct Lane {
    std::array<std::atomic<std::uint64_t>, kEvents> totals{};
    std::vector<std::array<Counter, kEvents>> bins = std::vector<std::array<Counter, kEvents>>(kMaxBins);
    std::array<Histogram, kStages> latencies;
  };
  struct Range {
    base::TimePoint begin, end;
  };
  [[nodiscard]] std::uint64_t sum(Event event, std::size_t first_bin, std::size_t bins) const;

  const base::TimePoint start_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::array<Range, kStages> ranges_{};
  std::atomic<Stage> stage_{Stage::other};
};

}  // namespace ringshift::drill
