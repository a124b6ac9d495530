// XXH3-64, the hash of our own placements and of the slices. Pure, thread-safe, about 2 ns for 16 bytes.
//
// Values never change: XXH3 is frozen since xxHash 0.8.0, and tests/unit/hashing pins them.
#pragma once
#include <cstdint>
#include <string_view>

namespace ringshift::hashing {

[[nodiscard]] std::uint64_t xxh3(std::string_view bytes) noexcept;
[[nodiscard]] std::uint64_t xxh3(std::string_view bytes, std::uint64_t seed) noexcept;

inline constexpr std::uint64_t kSliceSeed =
    1;                                  // Another seed than placements use, so slices are independent.
inline constexpr int kSliceShift = 54;  // The top ten bits: 1024 slices.

// REQUIRES: `tagged_key` is what the hash-tag rule left of the key.
[[nodiscard]] std::uint32_t slice_of(std::string_view tagged_key) noexcept;

// A bijective scrambler (the finaliser of SplitMix64): every input bit flips every output bit with
// probability one half. Used where two hashes are combined by XOR.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace ringshift::hashing
