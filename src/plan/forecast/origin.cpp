#include "plan/forecast/origin.h"

#include <algorithm>
#include <cmath>

#include "ringshift/topology.h"

namespace ringshift::plan {
namespace {

// Binary fractions have no 0.95: without this 20,000 is 20,000.000000000004, and over a limit of 20,000.
double to_a_millionth(double value) { return std::round(value * 1e6) / 1e6; }

constexpr double kPartOfASlice = 1e-9;  // Below it a share that is not quite a whole slice is one.

}  // namespace

double origin_qps(const Traffic& traffic, double cold_share) {
  return to_a_millionth(
      traffic.qps * ((1 - cold_share) * (1 - traffic.hit_rate) + cold_share * (1 - traffic.cold_hit_rate)));
}

double hit_rate(const Traffic& traffic, double cold_share) {
  return (1 - cold_share) * traffic.hit_rate + cold_share * traffic.cold_hit_rate;
}

SafeStep largest_safe_step(const Traffic& traffic, double moved_share, double limit_qps) {
  SafeStep safe;
  if (origin_qps(traffic, 0) > limit_qps) return safe;
  safe.keyspace_share = 1;
  if (origin_qps(traffic, moved_share) > limit_qps) {
    // Linear in the share, and above the limit at 1: so the slope is positive.
    const double spare = limit_qps - origin_qps(traffic, 0);
    const double slope = traffic.qps * (traffic.hit_rate - traffic.cold_hit_rate) * moved_share;
    safe.keyspace_share = std::clamp(spare / slope, 0.0, 1.0);
  }
  safe.cold_share = safe.keyspace_share * moved_share;
  safe.slices = static_cast<std::uint32_t>(safe.keyspace_share * topology::kSliceCount + kPartOfASlice);
  if (safe.slices != 0) safe.steps = (topology::kSliceCount + safe.slices - 1) / safe.slices;
  return safe;
}

}  // namespace ringshift::plan
