#include "hashing/xxh3.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ringshift::hashing {

std::uint64_t xxh3(std::string_view bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

std::uint64_t xxh3(std::string_view bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint32_t slice_of(std::string_view tagged_key) noexcept {
  return static_cast<std::uint32_t>(xxh3(tagged_key, kSliceSeed) >> kSliceShift);
}

}  // namespace ringshift::hashing
