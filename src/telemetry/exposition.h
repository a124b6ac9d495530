// One page of metrics for Prometheus: families (a name, a type, a help text) with their samples, and the text
// format that it reads.
//
// A page is made anew for each scrape, filled by one part of the program after another (each has a function
// of the form `collect(Exposition&)`), and written once. Not thread-safe; the parts read counters of other
// threads as telemetry/counters.h lets them. Names are `ringshift_<part>_<what>_<unit>`, counters end in
// `_total`, and a label's values are few or have a bound: docs/metrics.md lists all of them, and a test
// compares. Cost: some hundred nanoseconds a sample. Nothing fails: beyond kSamplesMax samples of a family
// the rest is left out, and `ringshift_metrics_dropped_samples` says how many.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "telemetry/times.h"

namespace ringshift::telemetry {

class Exposition {
 public:
  static constexpr std::size_t kSamplesMax = 20'000;  // Of one family.
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;
  // How many observations were at most `upper`, from the first bucket on.
  struct Bucket {
    double upper = 0;
    std::uint64_t cumulative = 0;
  };

  Exposition();
  ~Exposition();
  Exposition(const Exposition&) = delete;
  Exposition& operator=(const Exposition&) = delete;

  // Adds a sample to the family `name`, which its first sample makes. REQUIRES: a family has one type.
  void counter(std::string_view name, std::string_view help, double value, const Labels& labels = {});
  void gauge(std::string_view name, std::string_view help, double value, const Labels& labels = {});
  // The bucket without an upper bound is added, with `count`.
  void histogram(std::string_view name, std::string_view help, std::span<const Bucket> buckets,
                 std::uint64_t count, double sum, const Labels& labels = {});
  // In seconds, of what telemetry::Times counted in microseconds: a bucket for each doubling from 64 us to 17
  // s.
  void histogram(std::string_view name, std::string_view help, const TimesTotals& times, double sum_seconds,
                 const Labels& labels = {});

  // The families in the order of their first samples.
  [[nodiscard]] std::string text();
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::telemetry
