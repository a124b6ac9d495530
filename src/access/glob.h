// Redis' glob patterns: `*`, `?`, `[abc]`, `[^a-z]`, `\` before a character that is meant as such. As Redis
// 7.0 matches them, oddities included: an unclosed `[` ends with the pattern, and no pattern but the empty
// one matches the empty text.
//
// Pure; any thread. Cost: O(pattern x text) at worst, no recursion, no allocation: patterns may be a
// client's.
#pragma once
#include <string_view>

namespace ringshift::access {

[[nodiscard]] bool matches_glob(std::string_view pattern, std::string_view text) noexcept;

}  // namespace ringshift::access
