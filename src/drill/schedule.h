// When the requests of an open loop are due: the n-th at start + n / rate, whether or not those before it
// have been answered. Pure; any thread.
#pragma once
#include <cstdint>

#include "base/clock.h"

namespace ringshift::drill {

class Schedule {
 public:
  // REQUIRES: per_second > 0.
  Schedule(base::TimePoint start, double per_second) : start_(start), per_second_(per_second) {}

  // By one division each, so that no rounding adds up over a long run.
  [[nodiscard]] base::TimePoint due(std::uint64_t n) const {
    return start_ + std::chrono::duration_cast<base::Duration>(
                        std::chrono::duration<double>(static_cast<double>(n) / per_second_));
  }
  [[nodiscard]] base::TimePoint start() const { return start_; }
  [[nodiscard]] double per_second() const { return per_second_; }

 private:
  base::TimePoint start_;
  double per_second_;
};

}  // namespace ringshift::drill
