#include "hashing/peers/java_hashes.h"

#include <cstddef>

namespace ringshift::hashing::peers {
namespace {

constexpr std::uint32_t kReplacement = 0xfffd;

struct Decoded {
  std::uint32_t character;
  std::size_t size;
};

bool continues(std::string_view text, std::size_t at) noexcept {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
}

// The first character of `text`, which is not empty.
Decoded decode(std::string_view text) noexcept {
  const std::uint32_t lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return {kReplacement, 1};
  std::uint32_t character = lead & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (!continues(text, i)) return {kReplacement, i};
    character = character << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  const bool overlong = (size == 3 && character < 0x800) || (size == 4 && character < 0x10000);
  const bool surrogate = character >= 0xd800 && character <= 0xdfff;
  if (overlong || surrogate || character > 0x10ffff) return {kReplacement, 1};
  return {character, size};
}

template <class Take>
void for_each_unit(std::string_view text, Take take) noexcept {
  while (!text.empty()) {
    const auto [character, size] = decode(text);
    text.remove_prefix(size);
    if (character < 0x10000) {
      take(character);
    } else {
      take(0xd7c0 + (character >> 10));  // The high surrogate, then the low one.
      take(0xdc00 + (character & 0x3ff));
    }
  }
}

// Only the low 32 bits are ever used, and neither a product nor an XOR carries anything down into them: so
// Java's 64-bit arithmetic is done in 32.
std::uint32_t fnv1(std::string_view text, std::uint32_t hash, std::uint32_t prime) noexcept {
  for_each_unit(text, [&](std::uint32_t unit) { hash = (hash * prime) ^ unit; });
  return hash;
}
std::uint32_t fnv1a(std::string_view text, std::uint32_t hash, std::uint32_t prime) noexcept {
  for_each_unit(text, [&](std::uint32_t unit) { hash = (hash ^ unit) * prime; });
  return hash;
}
constexpr std::uint32_t kStart64 = 0x84222325, kPrime64 = 0x1b3, kStart32 = 2166136261, kPrime32 = 16777619;

}  // namespace

std::uint32_t java_native(std::string_view utf8) noexcept {
  std::uint32_t hash = 0;
  for_each_unit(utf8, [&](std::uint32_t unit) { hash = hash * 31 + unit; });
  return hash;
}
std::uint32_t java_fnv1_64(std::string_view utf8) noexcept { return fnv1(utf8, kStart64, kPrime64); }
std::uint32_t java_fnv1a_64(std::string_view utf8) noexcept { return fnv1a(utf8, kStart64, kPrime64); }
std::uint32_t java_fnv1_32(std::string_view utf8) noexcept { return fnv1(utf8, kStart32, kPrime32); }
std::uint32_t java_fnv1a_32(std::string_view utf8) noexcept { return fnv1a(utf8, kStart32, kPrime32); }

}  // namespace ringshift::hashing::peers
