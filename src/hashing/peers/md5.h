// MD5 (RFC 1321), where a peer's ring needs it: as a scatterer of labels and keys, never as a protection.
//
// Our own, because OpenSSL 3's costs four times as much on a short key (it fetches an algorithm a call).
// Check value: md5("abc") = 900150983cd24fb0d6963f7d28e17f72. Pure, thread-safe.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace ringshift::hashing::peers {

// The digest as four little-endian words, in the order of its bytes.
using Md5Words = std::array<std::uint32_t, 4>;
[[nodiscard]] Md5Words md5(std::string_view bytes) noexcept;

}  // namespace ringshift::hashing::peers
