// Text forms of bytes: hex (lower case), base64 (RFC 4648 section 4, padded), and one for people.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringshift::base {

[[nodiscard]] std::string to_hex(std::string_view bytes);
// nullopt on an odd length or a character that is no hex digit. Either case is accepted.
[[nodiscard]] std::optional<std::string> from_hex(std::string_view text);

[[nodiscard]] std::string to_base64(std::string_view bytes);
// nullopt on anything but whole, padded base64 without white space.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

// For messages and JSON: printable ASCII as it is, other bytes as \xNN; after `max_bytes` of them "..." and
// how many bytes there are.
[[nodiscard]] std::string printable(std::string_view bytes, std::size_t max_bytes);

// The whole of `text` as an unsigned decimal number; nullopt when it is not one, or does not fit.
[[nodiscard]] std::optional<std::uint64_t> parse_u64(std::string_view text) noexcept;

}  // namespace ringshift::base
