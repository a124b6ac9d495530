// For warnings that anybody who connects can provoke: one in a while, so that nobody fills the disk or hides
// other lines. Meant to be thread_local; not thread-safe.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace ringshift::base {

class Seldom {
 public:
  // Nothing: keep silent now. Else what to put behind the line: "" or how many were kept back before it.
  [[nodiscard]] std::optional<std::string> ask(TimePoint now, TimePoint::duration at_most_every) {
    if (told_at_ && now - *told_at_ < at_most_every) {
      ++untold_;
      return std::nullopt;
    }
    told_at_ = now;
    std::string tail = untold_ == 0 ? "" : " (and " + std::to_string(untold_) + " more before it)";
    untold_ = 0;
    return tail;
  }

 private:
  std::optional<TimePoint> told_at_;
  std::uint64_t untold_ = 0;
};

}  // namespace ringshift::base
