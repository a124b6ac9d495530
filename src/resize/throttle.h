// A token bucket: `rate` units a second, at most `burst` at once. A debt is allowed: take() lets a request
// through when the bucket is not empty and books all of it, so that one item above the burst passes too.
// Thread-safe. Time is given by the caller.
#pragma once
#include <algorithm>
#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace ringshift::resize {

class TokenBucket {
 public:
  TokenBucket(double rate, base::TimePoint now) : rate_(rate), level_(burst()), updated_(now) {}

  void set_rate(double rate, base::TimePoint now) {
    const std::lock_guard lock(mutex_);
    refill(now);
    rate_ = rate;
    level_ = std::min(level_, burst());
  }

  // Books `amount` whatever the level.
  void spend(double amount, base::TimePoint now) {
    const std::lock_guard lock(mutex_);
    refill(now);
    level_ -= amount;
  }

  // How long until the bucket is not in debt; zero when one may go on now.
  [[nodiscard]] base::Duration wait(base::TimePoint now) {
    const std::lock_guard lock(mutex_);
    refill(now);
    if (level_ > 0) return base::Duration::zero();
    const double seconds = std::min(10.0, (1e-9 - level_) / rate_);
    return std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(seconds)) +
           std::chrono::microseconds(1);
  }

 private:
  static constexpr double kBurstSeconds = 0.02;

  [[nodiscard]] double burst() const { return std::max(1.0, rate_ * kBurstSeconds); }
  void refill(base::TimePoint now) {
    if (now <= updated_) return;
    level_ = std::min(burst(), level_ + rate_ * std::chrono::duration<double>(now - updated_).count());
    updated_ = now;
  }

  std::mutex mutex_;
  double rate_;
  double level_;  // Below zero: in debt.
  base::TimePoint updated_;
};

}  // namespace ringshift::resize
