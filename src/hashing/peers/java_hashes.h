// The hashes of Java's spymemcached. Java strings are UTF-16, so its native and FNV hashes run over UTF-16
// code units (two for a character above U+FFFF), and its CRC and MD5 over UTF-8 bytes.
//
// A key that is not UTF-8 has no Java string; each bad byte then counts as U+FFFD, as Java's decoder has it.
// Check value: native_hash("hello") = 99162322 (the documentation of String.hashCode's formula). Pure; no
// allocation.
#pragma once
#include <cstdint>
#include <string_view>

namespace ringshift::hashing::peers {

[[nodiscard]] std::uint32_t java_native(std::string_view utf8) noexcept;  // String.hashCode().
[[nodiscard]] std::uint32_t java_fnv1_64(std::string_view utf8) noexcept;
[[nodiscard]] std::uint32_t java_fnv1a_64(std::string_view utf8) noexcept;
[[nodiscard]] std::uint32_t java_fnv1_32(std::string_view utf8) noexcept;
[[nodiscard]] std::uint32_t java_fnv1a_32(std::string_view utf8) noexcept;

}  // namespace ringshift::hashing::peers
