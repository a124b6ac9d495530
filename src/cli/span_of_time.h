// Spans and points of time as people write and read them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ringshift/error.h"

namespace ringshift::cli {

// "90d", "12h", "10m" or "30s" in seconds; `flag` is for errors.
[[nodiscard]] Result<std::int64_t> parse_span(std::string_view text, std::string_view flag);
// "2026-11-30T21:00:00Z"
[[nodiscard]] std::string time_text(std::int64_t unix_seconds);

}  // namespace ringshift::cli
