#include "drill/timeline.h"

#include <algorithm>

namespace ringshift::drill {

Timeline::Cell* Timeline::at(base::TimePoint when) noexcept {
  if (when < start_) return nullptr;
  const auto index = static_cast<std::size_t>((when - start_) / std::chrono::seconds(1));
  return index < seconds_.size() ? &seconds_[index] : nullptr;
}

void Timeline::count(Tally tally, base::TimePoint when, std::uint32_t times) noexcept {
  if (Cell* cell = at(when))
    cell->counts[static_cast<std::size_t>(tally)].fetch_add(times, std::memory_order_relaxed);
}

void Timeline::answered(base::TimePoint due, base::Duration latency) noexcept {
  if (Cell* cell = at(due)) cell->requests.record_shared(latency);
}

void Timeline::origin_answered(base::TimePoint asked, base::Duration latency) noexcept {
  if (Cell* cell = at(asked)) cell->origin.record_shared(latency);
}

Second Timeline::second(std::size_t index) const {
  const Cell& cell = seconds_[index];
  const auto of = [&cell](Tally tally) {
    return std::uint64_t{cell.counts[static_cast<std::size_t>(tally)].load(std::memory_order_relaxed)};
  };
  Second s;
  s.requests = of(Tally::request);
  s.gets = of(Tally::get);
  s.hits = of(Tally::hit);
  s.errors = of(Tally::error);
  s.shed = of(Tally::shed);
  s.cache_errors = of(Tally::cache_error);
  s.origin_asked = of(Tally::origin_asked);
  s.origin_timeouts = of(Tally::origin_timeout);
  s.updates = of(Tally::update);
  s.lost = of(Tally::lost);
  s.stale = of(Tally::stale);
  s.late = of(Tally::late);
  s.p99_ms = quantile_ms(index, index + 1, 0.99);
  s.origin_p99_ms = origin_quantile_ms(index, index + 1, 0.99);
  return s;
}

double Timeline::quantile_ms(std::size_t first, std::size_t last, double quantile) const {
  std::vector<std::uint64_t> counts;
  for (std::size_t i = first; i < std::min(last, seconds_.size()); ++i) seconds_[i].requests.add_to(counts);
  return Histogram::quantile_ms(counts, quantile);
}

double Timeline::origin_quantile_ms(std::size_t first, std::size_t last, double quantile) const {
  std::vector<std::uint64_t> counts;
  for (std::size_t i = first; i < std::min(last, seconds_.size()); ++i) seconds_[i].origin.add_to(counts);
  return Histogram::quantile_ms(counts, quantile);
}

}  // namespace ringshift::drill
