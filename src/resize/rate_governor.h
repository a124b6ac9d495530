// How fast one source is moved from: additive increase, multiplicative decrease. When its clients wait longer
// than the limit (its p99, as the mover itself sees it), or the origin is asked more often than it may be,
// the rate falls to a share of what was really moved; otherwise it rises towards the configured rate, in
// steps that are a share of the rate at the last fall. Never below floor(): a slow source must get empty,
// too.
//
// The limit is the configured one or three times what the source needs when idle, whichever is more: a member
// far away is no loaded member.
//
// Pure: time and measurements are given by the caller. Not thread-safe.
#pragma once
#include <algorithm>
#include <string>

#include "base/clock.h"

namespace ringshift::resize {

class RateGovernor {
 public:
  static constexpr double kDecrease = 0.7;    // Of what was moved.
  static constexpr double kIncrease = 0.05;   // Of the rate at the last fall, each update.
  static constexpr double kGrowthFree = 1.2;  // Where the rate is not what holds the mover back.
  static constexpr double kIdleFactor = 3;
  static constexpr double kFloorMin = 200, kFloorMax = 2000;  // Keys a second.
  static constexpr std::chrono::milliseconds kSettle{300};    // From one fall to the next.

  // Both rates in keys a second. `latency_ms` 0: latency is not looked at.
  RateGovernor(double configured, double latency_ms)
      : configured_(configured), latency_ms_(latency_ms), rate_(configured) {}

  // What the source answers in when nothing is moved.
  void set_idle(double median_ms) { idle_ms_ = median_ms; }
  [[nodiscard]] double limit_ms() const { return std::max(latency_ms_, kIdleFactor * idle_ms_); }
  [[nodiscard]] double floor() const {
    return std::min(configured_, std::clamp(configured_ / 10, kFloorMin, kFloorMax));
  }

  enum class Cause { none, latency, origin };
  struct Decision {
    bool fell = false;  // The samples until now belong to the old rate.
  };

  // Now and then (about ten times a second). `moved`: keys a second that were moved of late.
  Decision update(double p99_ms, double moved, bool origin_over, base::TimePoint now) {
    const bool slow = latency_ms_ > 0 && p99_ms > limit_ms();
    if (slow || origin_over) {
      if (fell_once_ && now - fell_at_ < kSettle) return {};
      fell_once_ = true;
      fell_at_ = now;
      cause_ = slow ? Cause::latency : Cause::origin;
      rate_ = std::max(floor(), std::min(rate_, std::max(moved, floor())) * kDecrease);
      step_ = std::max(1.0, rate_ * kIncrease);
      return {true};
    }
    if (rate_ >= configured_) {
      cause_ = Cause::none;
      return {};
    }
    rate_ = moved < rate_ / 2 ? std::max(rate_ * kGrowthFree, rate_ + step_) : rate_ + step_;
    if (rate_ >= configured_) {
      rate_ = configured_;
      cause_ = Cause::none;
    }
    return {};
  }

  [[nodiscard]] double rate() const noexcept { return rate_; }
  [[nodiscard]] Cause cause() const noexcept { return cause_; }

 private:
  const double configured_, latency_ms_;
  double idle_ms_ = 0;
  double rate_;
  double step_ = 1;
  bool fell_once_ = false;
  base::TimePoint fell_at_{};
  Cause cause_ = Cause::none;
};

}  // namespace ringshift::resize
