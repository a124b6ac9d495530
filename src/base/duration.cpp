#include "base/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ringshift::base {

using std::chrono::milliseconds;

Result<milliseconds> parse_duration(std::string_view text) {
  const auto refuse = [&] {
    return fail(
        ErrorKind::invalid,
        fmt::format("'{}' is no duration: give a number and ms, s, m or h, such as 60s, 5m or 1h30m", text));
  };
  if (text == "0") return milliseconds::zero();
  if (text.empty()) return refuse();
  std::int64_t total = 0;
  for (std::string_view rest = text; !rest.empty();) {
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (code != std::errc() || number < 0 || number > 1'000'000'000'000) return refuse();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const std::size_t unit_size = std::min(rest.find_first_of("0123456789"), rest.size());
    const std::string_view unit = rest.substr(0, unit_size);
    const std::int64_t scale = unit == "ms"  ? 1
                               : unit == "s" ? 1000
                               : unit == "m" ? 60'000
                               : unit == "h" ? 3'600'000
                                             : 0;
    if (scale == 0) return refuse();
    rest.remove_prefix(unit_size);
    constexpr std::int64_t kMost = std::chrono::duration_cast<milliseconds>(kMaxDuration).count();
    if (number > kMost / scale || total + number * scale > kMost) {
      return fail(ErrorKind::invalid, fmt::format("'{}' is longer than {} h", text, kMaxDuration.count()));
    }
    total += number * scale;
  }
  return milliseconds(total);
}

}  // namespace ringshift::base
