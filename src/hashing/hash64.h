// The 64-bit hashes that our own placements may use, chosen by name in the spec.
//
//   xxh3      XXH3-64, the default: about 2 ns for 16 bytes.
//   murmur3   MurmurHash3 x64_128 (Appleby 2011), seed 0, its first 64 bits. Cassandra's variant differs for
//             bytes above 0x7f (it extends their sign).
//   fnv1a-64  FNV-1a, then SplitMix64's finaliser. Plain FNV-1a leaves keys that differ in their last byte
//             next to each other in the high bits, and a ring then gives them all to one member. One
//             multiplication a byte: slow for long keys.
//
// Pure, thread-safe. Values never change: tests/unit/hashing pins them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "hashing/xxh3.h"

namespace ringshift::hashing {

enum class Hash64 : std::uint8_t { xxh3, murmur3, fnv1a_64 };

inline constexpr std::array<std::string_view, 3> kHash64Names{"xxh3", "murmur3", "fnv1a-64"};

[[nodiscard]] constexpr std::string_view to_string(Hash64 hash) noexcept {
  return kHash64Names[static_cast<std::size_t>(hash)];
}
[[nodiscard]] constexpr std::optional<Hash64> hash64_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kHash64Names.size(); ++i) {
    if (kHash64Names[i] == name) return static_cast<Hash64>(i);
  }
  return std::nullopt;
}

[[nodiscard]] std::uint64_t murmur3_64(std::string_view bytes) noexcept;
[[nodiscard]] std::uint64_t fnv1a_64_mixed(std::string_view bytes) noexcept;

[[nodiscard]] inline std::uint64_t hash64(Hash64 hash, std::string_view bytes) noexcept {
  if (hash == Hash64::xxh3) [[likely]]
    return xxh3(bytes);
  return hash == Hash64::murmur3 ? murmur3_64(bytes) : fnv1a_64_mixed(bytes);
}

}  // namespace ringshift::hashing
