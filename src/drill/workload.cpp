#include "drill/workload.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "drill/dice.h"
#include "drill/zipf.h"

namespace ringshift::drill {
namespace {

constexpr std::uint64_t kRequestStream = 1;

class ZipfWorkload final : public Workload {
 public:
  explicit ZipfWorkload(const ZipfLoad& load) : load_(load), zipf_(load.keys, load.exponent, load.seed) {
    double sum = 0;
    for (std::uint64_t key = 0; key < load.keys; ++key) sum += weight(key);
    whole_ = sum;
  }

  std::uint64_t keys() const override { return load_.keys; }
  std::string name(std::uint64_t key) const override { return fmt::format("object:{}", key); }
  Request at(std::uint64_t n) const override {
    Dice dice(load_.seed, kRequestStream, n);
    const bool update = dice.unit() < load_.updates;
    return {zipf_.rank([&dice] { return dice.unit(); }), update};
  }
  double reads_share(std::uint64_t key) const override { return (1 - load_.updates) * weight(key) / whole_; }
  double updates_share(std::uint64_t key) const override { return load_.updates * weight(key) / whole_; }
  std::size_t body_bytes(std::uint64_t) const override { return load_.body_bytes; }

 private:
  double weight(std::uint64_t key) const {
    return std::exp(-load_.exponent * std::log(static_cast<double>(key + 1)));
  }

  const ZipfLoad load_;
  const Zipf zipf_;
  double whole_ = 1;
};

class TraceWorkload final : public Workload {
 public:
  explicit TraceWorkload(Trace trace)
      : trace_(std::move(trace)), reads_(trace_.keys.size()), updates_(trace_.keys.size()) {
    for (std::size_t i = 0; i < trace_.size(); ++i) ++(trace_.update(i) ? updates_ : reads_)[trace_.key(i)];
  }

  std::uint64_t keys() const override { return trace_.keys.size(); }
  std::string name(std::uint64_t key) const override { return trace_.keys[key]; }
  Request at(std::uint64_t n) const override {
    const std::size_t i = n % trace_.size();
    return {trace_.key(i), trace_.update(i)};
  }
  double reads_share(std::uint64_t key) const override { return share(reads_[key]); }
  double updates_share(std::uint64_t key) const override { return share(updates_[key]); }
  std::size_t body_bytes(std::uint64_t key) const override { return trace_.bytes[key]; }

 private:
  double share(std::uint32_t count) const {
    return static_cast<double>(count) / static_cast<double>(trace_.size());
  }

  const Trace trace_;
  std::vector<std::uint32_t> reads_, updates_;
};

}  // namespace

std::unique_ptr<Workload> zipf_workload(const ZipfLoad& load) { return std::make_unique<ZipfWorkload>(load); }
std::unique_ptr<Workload> trace_workload(Trace trace) {
  return std::make_unique<TraceWorkload>(std::move(trace));
}

// A renewal process: there for D = E[min(ttl, Exp(updates))], then away until the next read, 1 / reads.
Standing standing(double reads, double updates, double ttl) {
  const double there = updates > 0 ? -std::expm1(-updates * ttl) / updates : ttl;
  return {.present = reads * there / (1 + reads * there), .ttl = ttl, .updates = updates};
}

// The density of the age is proportional to the chance to live that long: exp(-updates * age) up to the ttl.
double Standing::age(double u) const {
  if (updates <= 0) return u * ttl;
  return std::min(ttl, -std::log1p(u * std::expm1(-updates * ttl)) / updates);
}

}  // namespace ringshift::drill
