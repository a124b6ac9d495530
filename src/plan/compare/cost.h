// What a compiled placement costs: time of a look-up, time of a build, bytes. Times are medians of a few
// rounds, each bounded, of the calling thread's own processor time, so that a busy machine does not blur
// them.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "placement/placement.h"
#include "plan/compare/key_set.h"

namespace ringshift::plan::compare {

// Some keys laid side by side, few enough to stay in the cache, so that the look-up is measured and not the
// reading of keys. The views live as long as `keys` is unchanged.
[[nodiscard]] std::vector<std::string_view> timing_keys(const KeySet& keys);

// Nanoseconds that `lookup` takes for a key, the median of five rounds of about `round` each. What it gives
// is summed up, so that no compiler leaves it out. REQUIRES: keys is not empty.
[[nodiscard]] double lookup_ns(const std::vector<std::string_view>& keys,
                               const std::function<std::uint64_t(const std::vector<std::string_view>&)>& pass,
                               std::chrono::milliseconds round = std::chrono::milliseconds(3));
[[nodiscard]] double lookup_ns(const placement::Placement& compiled,
                               const std::vector<std::string_view>& keys);

// Microseconds of one call, the median of up to five within about 50 ms.
[[nodiscard]] double build_us(const std::function<void()>& build);

// What owner() reads, and what it was made from as far as it is kept.
[[nodiscard]] std::size_t memory_bytes(const placement::Placement& compiled);

}  // namespace ringshift::plan::compare
