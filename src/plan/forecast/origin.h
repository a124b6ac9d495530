// The load of the origin (the database behind the cache) when a part of the keys is cold.
//
//   origin(f) = Q * ((1-f)(1-H) + f(1-h))
//
// Q lookups a second, H their hit rate, f the part of the traffic whose keys changed owner and were not
// moved, h the hit rate of that part. Traffic is taken to be spread over the keyspace as keys are: a hot key
// among the moved ones makes it worse, one among the others better.
#pragma once
#include <cstdint>

namespace ringshift::plan {

struct Traffic {
  double qps = 0;            // Q
  double hit_rate = 0;       // H, 0..1
  double cold_hit_rate = 0;  // h, 0..1
};

// Lookups a second that reach the origin; to a millionth, so that equal figures compare equal.
[[nodiscard]] double origin_qps(const Traffic& traffic, double cold_share);
[[nodiscard]] double hit_rate(const Traffic& traffic, double cold_share);

struct SafeStep {
  double keyspace_share = 0;  // The most of the keyspace that may be switched cold at once, 0..1.
  double cold_share = 0;      // f of such a step.
  std::uint32_t slices = 0;   // The same in whole slices, rounded down. 0: not even one is safe.
  std::uint32_t steps = 0;    // Steps of so many slices that make the whole keyspace; 0 when slices is 0.
};

// For a change that moves `moved_share` of the keys, spread evenly over the slices, and an origin that bears
// `limit_qps`. Each step is taken to be warm again before the next.
[[nodiscard]] SafeStep largest_safe_step(const Traffic& traffic, double moved_share, double limit_qps);

}  // namespace ringshift::plan
