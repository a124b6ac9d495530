#include "cli/span_of_time.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/encoding.h"

namespace ringshift::cli {

Result<std::int64_t> parse_span(std::string_view text, std::string_view flag) {
  constexpr std::uint64_t kNumberMax = 1'000'000'000;
  const std::uint64_t unit = text.ends_with('d')   ? 86'400
                             : text.ends_with('h') ? 3'600
                             : text.ends_with('m') ? 60
                             : text.ends_with('s') ? 1
                                                   : 0;
  const auto number = text.empty() ? std::nullopt : base::parse_u64(text.substr(0, text.size() - 1));
  if (unit == 0 || !number || *number > kNumberMax) {
    return fail(ErrorKind::invalid,
                fmt::format("{} {}: write a number and s, m, h or d, as 10m, 12h or 90d", flag, text));
  }
  return static_cast<std::int64_t>(*number * unit);
}

std::string time_text(std::int64_t unix_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

}  // namespace ringshift::cli
