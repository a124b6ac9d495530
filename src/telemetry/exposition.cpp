#include "telemetry/exposition.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <map>

namespace ringshift::telemetry {
namespace {

constexpr unsigned kFirstDoubling = 6, kLastDoubling = 24;  // 2^n microseconds.

}  // namespace

struct Exposition::Impl {
  std::vector<prometheus::MetricFamily> families;
  std::map<std::string, std::size_t, std::less<>> index;
  std::uint64_t dropped = 0;

  // Null when the family is full.
  prometheus::ClientMetric* add(std::string_view name, std::string_view help, prometheus::MetricType type,
                                const Labels& labels) {
    auto found = index.find(name);
    if (found == index.end()) {
      found = index.emplace(std::string(name), families.size()).first;
      prometheus::MetricFamily& family = families.emplace_back();
      family.name = name;
      family.help = help;
      family.type = type;
    }
    std::vector<prometheus::ClientMetric>& samples = families[found->second].metric;
    if (samples.size() >= kSamplesMax) {
      ++dropped;
      return nullptr;
    }
    prometheus::ClientMetric& sample = samples.emplace_back();
    sample.label.reserve(labels.size());
    for (const auto& [label, value] : labels)
      sample.label.push_back({std::string(label), std::string(value)});
    return &sample;
  }
};

Exposition::Exposition() : impl_(std::make_unique<Impl>()) {}
Exposition::~Exposition() = default;

void Exposition::counter(std::string_view name, std::string_view help, double value, const Labels& labels) {
  if (auto* sample = impl_->add(name, help, prometheus::MetricType::Counter, labels))
    sample->counter.value = value;
}

void Exposition::gauge(std::string_view name, std::string_view help, double value, const Labels& labels) {
  if (auto* sample = impl_->add(name, help, prometheus::MetricType::Gauge, labels))
    sample->gauge.value = value;
}

void Exposition::histogram(std::string_view name, std::string_view help, std::span<const Bucket> buckets,
                           std::uint64_t count, double sum, const Labels& labels) {
  auto* sample = impl_->add(name, help, prometheus::MetricType::Histogram, labels);
  if (sample == nullptr) return;
  sample->histogram.sample_count = count;
  sample->histogram.sample_sum = sum;
  sample->histogram.bucket.reserve(buckets.size());
  // The serialiser adds the bucket without a bound by itself.
  for (const Bucket& bucket : buckets) sample->histogram.bucket.push_back({bucket.cumulative, bucket.upper});
}

void Exposition::histogram(std::string_view name, std::string_view help, const TimesTotals& times,
                           double sum_seconds, const Labels& labels) {
  std::vector<Bucket> buckets;
  std::uint64_t cumulative = 0;
  std::size_t next = 0;
  for (unsigned doubling = kFirstDoubling; doubling <= kLastDoubling; ++doubling) {
    // Times holds whole microseconds, cut off: up to 2^n - 1 of them is below 2^n.
    const std::uint64_t end = std::uint64_t{1} << doubling;
    for (; next < kTimeBuckets && Times::upper(next) < end; ++next) cumulative += times[next];
    buckets.push_back({static_cast<double>(end) / 1e6, cumulative});
  }
  for (; next < kTimeBuckets; ++next) cumulative += times[next];
  histogram(name, help, buckets, cumulative, sum_seconds, labels);
}

std::string Exposition::text() {
  gauge("ringshift_metrics_dropped_samples",
        "Samples that were left out of this page because their family was full",
        static_cast<double>(impl_->dropped));
  const prometheus::TextSerializer serializer;
  return static_cast<const prometheus::Serializer&>(serializer).Serialize(impl_->families);
}

}  // namespace ringshift::telemetry
