// XXH3-64 inlined, for the few places where a call costs as much as the hash: key -> owner. Everything else
// uses xxh3.h, which compiles in a fraction of the time. The same values.
#pragma once
#include <cstdint>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <utility>

namespace ringshift::hashing {

[[nodiscard]] inline std::uint64_t xxh3_inline(std::string_view bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

// The same, without the code (and the registers) for long inputs. REQUIRES: bytes.size() <= kXxh3Short.
inline constexpr std::size_t kXxh3Short = 16;
[[nodiscard]] inline std::uint64_t xxh3_short(std::string_view bytes) noexcept {
  if (bytes.size() > kXxh3Short) std::unreachable();
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace ringshift::hashing
