// What an application saw, second by second: counts, and latencies of its requests and of its origin.
//
// Requests belong to the second in which they were due, however late they were answered (an open loop: who
// waits is counted where the wait began); queries to the origin to the second in which they were asked for.
// Any number of writers and readers. Cost: an event one locked add, about 20 ns; memory 10 KB a second. What
// falls outside of the seconds it was made for is not counted.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "drill/figures.h"
#include "drill/recorder.h"

namespace ringshift::drill {

enum class Tally : std::uint8_t {
  request,         // Due, of any kind.
  get,             // Reads that asked the cache.
  hit,             // Of them, those it answered with a value.
  error,           // Requests that failed: the user saw an error.
  shed,            // Of them, those that had waited too long before a thread was free.
  cache_error,     // Commands to the cache that failed.
  origin_asked,    // Queries that the application wanted.
  origin_timeout,  // Of them, those for which no connection became free in time.
  update,
  lost,
  stale,
  late,  // Begun more than kLateAfter after they were due.
};
inline constexpr std::size_t kTallies = 12;
inline constexpr std::chrono::milliseconds kLateAfter{20};

class Timeline {
 public:
  static constexpr std::size_t kMaxSeconds = 2000;

  // REQUIRES: seconds <= kMaxSeconds.
  Timeline(base::TimePoint start, std::size_t seconds) : start_(start), seconds_(seconds) {}

  void count(Tally tally, base::TimePoint when, std::uint32_t times = 1) noexcept;
  void answered(base::TimePoint due, base::Duration latency) noexcept;
  void origin_answered(base::TimePoint asked, base::Duration latency) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return seconds_.size(); }
  [[nodiscard]] Second second(std::size_t index) const;
  // Over the seconds [first, last).
  [[nodiscard]] double quantile_ms(std::size_t first, std::size_t last, double quantile) const;
  [[nodiscard]] double origin_quantile_ms(std::size_t first, std::size_t last, double quantile) const;

 private:
  struct Cell {
    std::array<std::atomic<std::uint32_t>, kTallies> counts{};
    Histogram requests, origin;
  };
  [[nodiscard]] Cell* at(base::TimePoint when) noexcept;

  const base::TimePoint start_;
  std::vector<Cell> seconds_;
};

}  // namespace ringshift::drill
