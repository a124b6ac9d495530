// The last 15 minutes of a cluster, a point a second, and marks of what a resize did.
//
// Plain values; one thread. Bounds: kPoints, kMarks; the oldest go first.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "resize/status.h"

namespace ringshift::admin {

using UnixMs = std::int64_t;

struct SeriesPoint {
  UnixMs at_ms = 0;
  std::optional<double> qps, hit_rate, misses_per_second, origin_qps, p99_ms, errors_per_second, clients,
      keys_per_second, share_done;
};

struct SeriesMark {
  UnixMs at_ms = 0;
  std::string resize, event;  // begin|phase|pause|resume|rollback|finished|failed
  std::uint64_t step = 0;
  std::string phase, text;
};

class Series {
 public:
  static constexpr std::size_t kPoints = 900, kMarks = 200;
  static constexpr UnixMs kInterval = 1000;

  void add(const SeriesPoint& point);
  // What is new in `now` against the status before it; gives how many marks it added, at the end of marks().
  std::size_t follow(const resize::ResizeStatus& before, const resize::ResizeStatus& now, UnixMs at);

  [[nodiscard]] const std::deque<SeriesPoint>& points() const noexcept { return points_; }
  [[nodiscard]] const std::deque<SeriesMark>& marks() const noexcept { return marks_; }

 private:
  std::deque<SeriesPoint> points_;
  std::deque<SeriesMark> marks_;
};

// Of the keys to move, 0..1; nullopt when nobody knows how many there are, or nothing runs.
[[nodiscard]] std::optional<double> share_done(const resize::ResizeStatus& status);

}  // namespace ringshift::admin
