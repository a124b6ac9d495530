// Jump consistent hash (Lamping and Veach, 2014): hash -> one of n buckets, of which only the last can be
// added or taken away. Published and generated rows: tests/vectors/jump.json. Pure; O(log n), no memory.
#pragma once
#include <cstdint>

namespace ringshift::placement::peers {

// REQUIRES: buckets >= 1.
[[nodiscard]] inline std::int32_t jump_bucket(std::uint64_t hash, std::int32_t buckets) noexcept {
  std::int64_t bucket = -1, next = 0;
  while (next < buckets) {
    bucket = next;
    hash = hash * 2862933555777941757ULL + 1;
    next =
        static_cast<std::int64_t>(static_cast<double>(bucket + 1) *
                                  (static_cast<double>(1LL << 31) / static_cast<double>((hash >> 33) + 1)));
  }
  return static_cast<std::int32_t>(bucket);
}

}  // namespace ringshift::placement::peers
