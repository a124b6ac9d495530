#include "cli/size_flag.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ringshift::cli {

std::string size_to_bytes(std::string& text) {
  constexpr double kMaxBytes = 1ULL << 60;
  const std::size_t unit_at = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = std::string_view(text).substr(0, unit_at);
  const std::string_view unit = std::string_view(text).substr(unit_at);
  const double scale = unit.empty() || unit == "B" ? 1
                       : unit == "KiB"             ? 1024.0
                       : unit == "MiB"             ? 1024.0 * 1024
                       : unit == "GiB"             ? 1024.0 * 1024 * 1024
                                                   : 0;
  double value = 0;
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (code != std::errc() || end != number.data() + number.size() || scale == 0 ||
      value * scale > kMaxBytes) {
    return fmt::format("'{}' is no size: give bytes, or KiB, MiB, GiB, such as 1.5KiB", text);
  }
  text = fmt::format("{:.0f}", value * scale);
  return "";
}

}  // namespace ringshift::cli
