// Numbers and patterns among a command's arguments, read as Redis reads them.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace ringshift::proxy {

// Decimal, without a sign '+', spaces or leading zeros.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text) noexcept;
// Digits with an optional unit, "512mb": k, m, g of a thousand; kb, mb, gb of 1024. Not negative.
[[nodiscard]] std::optional<std::int64_t> parse_memory(std::string_view text) noexcept;
// Redis' glob: * ? [a-c] [^a] and a backslash; letters in any case. O(pattern x text) at worst.
[[nodiscard]] bool matches_ignoring_case(std::string_view pattern, std::string_view text) noexcept;

}  // namespace ringshift::proxy
