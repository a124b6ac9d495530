#include "drill/recorder.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ringshift::drill {
namespace {

constexpr std::size_t kSubBits = 5;  // 32 buckets a power of two.

std::size_t bucket_of(std::uint64_t ns) {
  if (ns < (1U << kSubBits)) return ns;
  const auto exponent = static_cast<std::size_t>(std::bit_width(ns)) - 1 - kSubBits;
  return std::min(((exponent + 1) << kSubBits) + ((ns >> exponent) & 31), Histogram::kBuckets - 1);
}

double upper_edge_ns(std::size_t bucket) {
  if (bucket < (1U << kSubBits)) return static_cast<double>(bucket + 1);
  const auto exponent = static_cast<int>((bucket >> kSubBits) - 1);
  return std::ldexp(static_cast<double>(32 + (bucket & 31) + 1), exponent);
}

template <class T>
void bump(std::atomic<T>& counter, T by) {  // One writer: no need for a locked instruction.
  counter.store(static_cast<T>(counter.load(std::memory_order_relaxed) + by), std::memory_order_relaxed);
}

}  // namespace

void Histogram::record(base::Duration latency) noexcept {
  const auto ns = static_cast<std::uint64_t>(std::max<base::Duration::rep>(latency.count(), 0));
  bump(counts_[bucket_of(ns)], 1U);
}

void Histogram::record_shared(base::Duration latency) noexcept {
  const auto ns = static_cast<std::uint64_t>(std::max<base::Duration::rep>(latency.count(), 0));
  counts_[bucket_of(ns)].fetch_add(1, std::memory_order_relaxed);
}

void Histogram::add_to(std::vector<std::uint64_t>& counts) const {
  counts.resize(kBuckets);
  for (std::size_t i = 0; i < kBuckets; ++i) counts[i] += counts_[i].load(std::memory_order_relaxed);
}

double Histogram::quantile_ms(const std::vector<std::uint64_t>& counts, double quantile) {
  std::uint64_t total = 0;
  for (const std::uint64_t count : counts) total += count;
  if (total == 0) return 0;
  const auto rank = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(quantile * static_cast<double>(total))));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    seen += counts[i];
    if (seen >= rank) return upper_edge_ns(i) / 1e6;
  }
  return 0;
}

Recorder::Recorder(std::size_t lanes, base::TimePoint start) : start_(start) {
  for (std::size_t i = 0; i < lanes; ++i) lanes_.push_back(std::make_unique<Lane>());
  ranges_[0].begin = ranges_[0].end = start;
}

void Recorder::count(std::size_t lane, Event event, base::TimePoint when, std::uint32_t times) noexcept {
  const auto index = static_cast<std::size_t>(event);
  bump(lanes_[lane]->totals[index], std::uint64_t{times});
  const auto bin = static_cast<std::size_t>(std::max<base::Duration::rep>((when - start_) / kBin, 0));
  if (bin < kMaxBins) bump(lanes_[lane]->bins[bin][index], times);
}

void Recorder::latency(std::size_t lane, base::Duration latency) noexcept {
  lanes_[lane]->latencies[static_cast<std::size_t>(stage_.load(std::memory_order_relaxed))].record(latency);
}

void Recorder::begin(Stage stage, base::TimePoint when) {
  ranges_[static_cast<std::size_t>(stage_.load(std::memory_order_relaxed))].end = when;
  ranges_[static_cast<std::size_t>(stage)] = {when, when};
  stage_.store(stage, std::memory_order_relaxed);
}

std::uint64_t Recorder::sum(Event event, std::size_t first_bin, std::size_t bins) const {
  std::uint64_t total = 0;
  for (const auto& lane : lanes_) {
    for (std::size_t bin = first_bin; bin < std::min(first_bin + bins, kMaxBins); ++bin) {
      total += lane->bins[bin][static_cast<std::size_t>(event)].load(std::memory_order_relaxed);
    }
  }
  return total;
}

StageFigures Recorder::figures(Stage stage) const {
  const auto index = static_cast<std::size_t>(stage);
  const Range range = ranges_[index];
  // Only bins that lie in the stage as a whole; at least one window of them, even for a shorter stage.
  const auto first = static_cast<std::size_t>((range.begin - start_ + kBin - base::Duration(1)) / kBin);
  const auto last = static_cast<std::size_t>((range.end - start_) / kBin);
  const std::size_t bins = std::max(last > first ? last - first : 0, kBinsPerWindow);

  StageFigures f;
  f.seconds = static_cast<double>(bins) * std::chrono::duration<double>(kBin).count();
  f.gets = sum(Event::get, first, bins);
  f.hits = sum(Event::hit, first, bins);
  f.origin_reads = sum(Event::origin_read, first, bins);
  f.origin_updates = sum(Event::origin_update, first, bins);
  f.requests = sum(Event::request, first, bins);
  f.errors = sum(Event::error, first, bins);
  f.skipped = sum(Event::skipped, first, bins);
  f.get_per_second = static_cast<double>(f.gets) / f.seconds;
  f.hit_rate = f.gets == 0 ? 0 : static_cast<double>(f.hits) / static_cast<double>(f.gets);
  f.origin_qps = static_cast<double>(f.origin_reads) / f.seconds;

  f.hit_rate_min_1s = 1;
  for (std::size_t offset = 0; offset < bins; offset += kBinsPerWindow) {
    const std::size_t bin = first + std::min(offset, bins - kBinsPerWindow);
    const auto gets = static_cast<double>(sum(Event::get, bin, kBinsPerWindow));
    const auto hits = static_cast<double>(sum(Event::hit, bin, kBinsPerWindow));
    f.hit_rate_min_1s = std::min(f.hit_rate_min_1s, gets > 0 ? hits / gets : 0);
    f.origin_qps_max_1s =
        std::max(f.origin_qps_max_1s, static_cast<double>(sum(Event::origin_read, bin, kBinsPerWindow)));
    f.window_gets += gets;
    ++f.windows;
  }
  f.window_gets /= static_cast<double>(f.windows);
  f.hit_rate_standard_error =
      f.window_gets > 0 ? std::sqrt(f.hit_rate * (1 - f.hit_rate) / f.window_gets) : 0;

  std::vector<std::uint64_t> latencies;
  for (const auto& lane : lanes_) lane->latencies[index].add_to(latencies);
  f.p50_ms = Histogram::quantile_ms(latencies, 0.5);
  f.p99_ms = Histogram::quantile_ms(latencies, 0.99);
  f.p999_ms = Histogram::quantile_ms(latencies, 0.999);
  return f;
}

Totals Recorder::totals() const {
  Totals totals;
  for (const auto& lane : lanes_) {
    for (std::size_t i = 0; i < kEvents; ++i) totals.of[i] += lane->totals[i].load(std::memory_order_relaxed);
  }
  return totals;
}

}  // namespace ringshift::drill
