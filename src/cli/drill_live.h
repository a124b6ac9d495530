// The line on the terminal while a strategy runs: figures of the last whole second, and sparklines.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/console.h"
#include "drill/timeline.h"

namespace ringshift::cli::drilling {

class Live {
 public:
  // `change`: the second of the timeline at which the change begins.
  Live(Console& console, std::string name, const drill::Timeline& timeline, base::TimePoint begin,
       std::size_t change)
      : console_(console), name_(std::move(name)), timeline_(timeline), begin_(begin), change_(change) {}

  void show(base::TimePoint now);  // At most once for each second.

 private:
  Console& console_;
  const std::string name_;
  const drill::Timeline& timeline_;
  const base::TimePoint begin_;
  const std::size_t change_;
  std::size_t shown_ = 0;
};

// Two sparklines of at most `width` bars each: hit rate (0 to 1) and origin queries (0 to the most).
struct Sparklines {
  std::string hit_rate, origin;
};
[[nodiscard]] Sparklines sparklines(const std::vector<drill::Second>& seconds, std::size_t width);

}  // namespace ringshift::cli::drilling
