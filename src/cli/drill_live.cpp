#include "cli/drill_live.h"

#include <fmt/format.h>

#include <algorithm>

#include "drill/figures.h"

namespace ringshift::cli::drilling {
namespace {

constexpr std::size_t kShownSeconds = 24;

}  // namespace

void Live::show(base::TimePoint now) {
  if (!console_.terminal() || now < begin_) return;
  // The second before the last: late answers of the last one may be under way.
  const auto passed = static_cast<std::size_t>((now - begin_) / std::chrono::seconds(1));
  if (passed < 2 || passed == shown_) return;
  shown_ = passed;
  const std::size_t last = std::min(passed - 2, timeline_.size() - 1);
  std::vector<drill::Second> seconds;
  for (std::size_t i = last + 1 > kShownSeconds ? last + 1 - kShownSeconds : 0; i <= last; ++i)
    seconds.push_back(timeline_.second(i));
  const drill::Second& s = seconds.back();
  const Sparklines lines = sparklines(seconds, kShownSeconds);
  console_.transient(fmt::format("{:<16} {:+4} s  hits {:5.1f} % {}  origin {:>6}/s {}  p99 {:.0f} ms", name_,
                                 static_cast<long>(last) - static_cast<long>(change_), 100 * s.hit_rate(),
                                 lines.hit_rate, grouped(s.origin_asked), lines.origin, s.p99_ms));
}

Sparklines sparklines(const std::vector<drill::Second>& seconds, std::size_t width) {
  const std::size_t each = std::max<std::size_t>(1, (seconds.size() + width - 1) / width);
  std::vector<double> hits, origin;
  for (std::size_t i = 0; i < seconds.size(); i += each) {
    double low = 1, high = 0;  // The worst second of those that share a bar.
    for (std::size_t k = i; k < std::min(i + each, seconds.size()); ++k) {
      low = std::min(low, seconds[k].hit_rate());
      high = std::max(high, static_cast<double>(seconds[k].origin_asked));
    }
    hits.push_back(low);
    origin.push_back(high);
  }
  const double most = origin.empty() ? 0 : *std::ranges::max_element(origin);
  return {drill::sparkline(hits, 0, 1), drill::sparkline(origin, 0, most)};
}

}  // namespace ringshift::cli::drilling
