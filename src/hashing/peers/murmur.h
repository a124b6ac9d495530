// Austin Appleby's MurmurHash2 (32 and 64 bits) and MurmurHash3 (x86_32 and x64_128), from his public-domain
// description. Check values are in tests/unit/hashing/peers_test.cpp. Pure, thread-safe.
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>

namespace ringshift::hashing::peers {

[[nodiscard]] std::uint32_t murmur2_32(std::string_view bytes, std::uint32_t seed) noexcept;
// MurmurHash64A. Envoy and libstdc++ seed it with 0xc70f6907.
[[nodiscard]] std::uint64_t murmur2_64(std::string_view bytes, std::uint64_t seed) noexcept;
[[nodiscard]] std::uint32_t murmur3_x86_32(std::string_view bytes, std::uint32_t seed) noexcept;
// MurmurHash3 x64_128: its two halves, the lower one first.
[[nodiscard]] std::pair<std::uint64_t, std::uint64_t> murmur3_x64_128(std::string_view bytes,
                                                                      std::uint32_t seed) noexcept;

}  // namespace ringshift::hashing::peers
