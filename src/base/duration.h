// A duration as people write it, in flags and in files.
#pragma once
#include <chrono>
#include <string_view>

#include "ringshift/error.h"

namespace ringshift::base {

inline constexpr std::chrono::hours kMaxDuration{24 * 31};

// "500ms", "60s", "5m", "1h", "1h30m", "0". At most kMaxDuration. A bare number other than 0 is refused: of
// what?
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace ringshift::base
