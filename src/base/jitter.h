// How long to wait before one tries again, so that many who failed together do not come back together: full
// jitter (M. Brooker, "Exponential Backoff And Jitter", 2015), before the first attempt, too.
#pragma once
#include <algorithm>
#include <random>

namespace ringshift::base {

// Anywhere from nothing to `most`.
template <class Duration, class Random>
[[nodiscard]] Duration full_jitter(Duration most, Random& random) {
  return Duration(std::uniform_int_distribution<typename Duration::rep>(0, most.count())(random));
}

// The same, below a cap of `first`, which doubles with each failure up to `most`.
template <class Duration, class Random>
[[nodiscard]] Duration backoff(Duration first, Duration most, unsigned failures, Random& random) {
  constexpr unsigned kDoublingsMax = 20;  // No overflow: what is waited for is below a day.
  return full_jitter(std::min<Duration>(most, first * (1LL << std::min(failures, kDoublingsMax))), random);
}

}  // namespace ringshift::base
