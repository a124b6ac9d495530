#include "hashing/hash64.h"

#include <bit>
#include <cstring>

namespace ringshift::hashing {
namespace {

constexpr std::uint64_t kMurmur1 = 0x87c37b91114253d5ULL;
constexpr std::uint64_t kMurmur2 = 0x4cf5ad432745937fULL;

std::uint64_t load64(const char* bytes) noexcept {
  std::uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

// Up to eight bytes as a little-endian number.
std::uint64_t load_tail(std::string_view bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::uint64_t murmur_mix(std::uint64_t k) noexcept {
  k = (k ^ (k >> 33)) * 0xff51afd7ed558ccdULL;
  k = (k ^ (k >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return k ^ (k >> 33);
}

}  // namespace

std::uint64_t murmur3_64(std::string_view bytes) noexcept {
  std::uint64_t h1 = 0, h2 = 0;
  std::string_view rest = bytes;
  for (; rest.size() >= 16; rest.remove_prefix(16)) {
    h1 ^= std::rotl(load64(rest.data()) * kMurmur1, 31) * kMurmur2;
    h1 = (std::rotl(h1, 27) + h2) * 5 + 0x52dce729;
    h2 ^= std::rotl(load64(rest.data() + 8) * kMurmur2, 33) * kMurmur1;
    h2 = (std::rotl(h2, 31) + h1) * 5 + 0x38495ab5;
  }
  if (rest.size() > 8) h2 ^= std::rotl(load_tail(rest.substr(8)) * kMurmur2, 33) * kMurmur1;
  if (!rest.empty()) h1 ^= std::rotl(load_tail(rest.substr(0, 8)) * kMurmur1, 31) * kMurmur2;
  h1 ^= bytes.size();
  h2 ^= bytes.size();
  h1 += h2;
  h2 += h1;
  return murmur_mix(h1) + murmur_mix(h2);
}

std::uint64_t fnv1a_64_mixed(std::string_view bytes) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mix(hash);
}

}  // namespace ringshift::hashing
