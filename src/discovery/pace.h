// How often a question that should wait for a change may be asked, when it returns at once: two in a row,
// then one a second; each quick return that brought nothing new doubles the pause, up to kSlowest. A change,
// or a return that waited, sets it back. Pure: time is passed in.
#pragma once
#include <algorithm>

#include "base/clock.h"

namespace ringshift::discovery {

class Pace {
 public:
  static constexpr std::chrono::milliseconds kFastest{1000};
  static constexpr std::chrono::milliseconds kSlowest{15'000};
  static constexpr double kBurst = 2;

  // Before a question: how long to wait first. Takes its share.
  base::Duration before(base::TimePoint now) {
    if (last_ != base::TimePoint{}) {
      tokens_ = std::min(kBurst, tokens_ + std::chrono::duration<double>(now - last_) /
                                               std::chrono::duration<double>(period_));
    }
    last_ = now;
    tokens_ -= 1;
    if (tokens_ >= 0) return base::Duration{0};
    return std::chrono::duration_cast<base::Duration>(-tokens_ * std::chrono::duration<double>(period_));
  }
  // After its answer.
  void after(bool waited, bool changed) {
    period_ = waited || changed ? kFastest : std::min(kSlowest, 2 * period_);
  }

 private:
  std::chrono::milliseconds period_ = kFastest;
  double tokens_ = kBurst;
  base::TimePoint last_{};
};

}  // namespace ringshift::discovery
