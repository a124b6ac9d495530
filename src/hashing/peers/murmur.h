// Austin Appleby's MurmurHash2 (32 and 64 bits) and MurmurHash3 x86_32, from his public-domain description.
// Check values are in tests/unit/hashing/peers_test.cpp. Pure, thread-safe.
#pragma once
#include <cstdint>
#include <string_view>

namespace ringshift::hashing::peers {

[[nodiscard]] std::uint32_t murmur2_32(std::string_view bytes, std::uint32_t seed) noexcept;
// MurmurHash64A. Envoy and libstdc++ seed it with 0xc70f6907.
[[nodiscard]] std::uint64_t murmur2_64(std::string_view bytes, std::uint64_t seed) noexcept;
[[nodiscard]] std::uint32_t murmur3_x86_32(std::string_view bytes, std::uint32_t seed) noexcept;

}  // namespace ringshift::hashing::peers
