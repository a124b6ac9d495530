#include "hashing/peers/memcached_hashes.h"

#include <algorithm>
#include <array>

#include "hashing/crc16.h"
#include "hashing/peers/crc32.h"
#include "hashing/peers/lookup3.h"
#include "hashing/peers/md5.h"
#include "hashing/peers/murmur.h"

namespace ringshift::hashing::peers {
namespace {

constexpr std::uint32_t kLengthSeed = 0xdeadbeef;
constexpr std::uint32_t kJenkinsInitval = 13;
constexpr std::uint64_t kFnv64Start = 0xcbf29ce484222325, kFnv64Prime = 0x100000001b3;
constexpr std::uint32_t kFnv32Start = 2166136261, kFnv32Prime = 16777619;

// As C's signed char widens: 0x80 becomes 0xffffff80.
std::uint32_t widen(char c) noexcept {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<signed char>(c)));
}
std::uint32_t length_of(std::string_view key) noexcept { return static_cast<std::uint32_t>(key.size()); }

std::uint32_t pair_at(std::string_view key, std::size_t at) noexcept {
  return static_cast<std::uint32_t>(static_cast<unsigned char>(key[at])) |
         static_cast<std::uint32_t>(static_cast<unsigned char>(key[at + 1])) << 8;
}

}  // namespace

std::uint32_t one_at_a_time(std::string_view key) noexcept {
  std::uint32_t value = 0;
  for (const char c : key) {
    value += widen(c);
    value += value << 10;
    value ^= value >> 6;
  }
  value += value << 3;
  value ^= value >> 11;
  return value + (value << 15);
}

std::uint32_t md5_le(std::string_view key) noexcept { return md5(key)[0]; }

std::uint32_t crc16_unmasked(std::string_view key) noexcept {
  // What is shifted out above bit 15 stays there, and never comes back into the table's index.
  std::uint32_t crc = 0;
  for (const char c : key) {
    const auto index = static_cast<unsigned char>(((crc >> 8) ^ static_cast<unsigned char>(c)) & 0xff);
    const char one = static_cast<char>(index);
    crc = (crc << 8) ^ crc16({&one, 1});  // The CRC of one byte is the table's entry.
  }
  return crc;
}

std::uint32_t crc32_15(std::string_view key) noexcept { return (crc32(key) >> 16) & 0x7fff; }
std::uint32_t crc32a(std::string_view key) noexcept { return crc32(key); }

std::uint32_t fnv1_64_low(std::string_view key) noexcept {
  std::uint64_t hash = kFnv64Start;
  for (const char c : key) {
    hash *= kFnv64Prime;
    hash ^= static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<signed char>(c)));
  }
  return static_cast<std::uint32_t>(hash);
}

std::uint32_t fnv1a_64_short(std::string_view key) noexcept {
  auto hash = static_cast<std::uint32_t>(kFnv64Start);
  for (const char c : key) hash = (hash ^ widen(c)) * static_cast<std::uint32_t>(kFnv64Prime);
  return hash;
}

std::uint32_t fnv1_32(std::string_view key) noexcept {
  std::uint32_t hash = kFnv32Start;
  for (const char c : key) hash = (hash * kFnv32Prime) ^ widen(c);
  return hash;
}

std::uint32_t fnv1a_32(std::string_view key) noexcept {
  std::uint32_t hash = kFnv32Start;
  for (const char c : key) hash = (hash ^ widen(c)) * kFnv32Prime;
  return hash;
}

std::uint32_t hsieh(std::string_view key) noexcept {
  std::uint32_t hash = 0;
  std::size_t at = 0;
  for (; at + 4 <= key.size(); at += 4) {
    hash += pair_at(key, at);
    hash = (hash << 16) ^ ((pair_at(key, at + 2) << 11) ^ hash);
    hash += hash >> 11;
  }
  switch (key.size() - at) {
    case 3:
      hash += pair_at(key, at);
      hash ^= hash << 16;
      hash ^= widen(key[at + 2]) << 18;
      hash += hash >> 11;
      break;
    case 2:
      hash += pair_at(key, at);
      hash ^= hash << 11;
      hash += hash >> 17;
      break;
    case 1:
      hash += static_cast<unsigned char>(key[at]);
      hash ^= hash << 10;
      hash += hash >> 1;
      break;
    default:
      break;
  }
  hash ^= hash << 3;
  hash += hash >> 5;
  hash ^= hash << 4;
  hash += hash >> 17;
  hash ^= hash << 25;
  return hash + (hash >> 6);
}

std::uint32_t murmur2_peer(std::string_view key) noexcept {
  return murmur2_32(key, kLengthSeed * length_of(key));
}
std::uint32_t murmur3_peer(std::string_view key) noexcept {
  return murmur3_x86_32(key, kLengthSeed * length_of(key));
}
std::uint32_t jenkins(std::string_view key) noexcept { return lookup3(key, kJenkinsInitval); }

std::span<const NamedHash> libmemcached_hashes() noexcept {
  static constexpr std::array<NamedHash, 11> kHashes{{{"default", one_at_a_time, 32},
                                                      {"md5", md5_le, 32},
                                                      {"crc", crc32_15, 15},
                                                      {"fnv1_64", fnv1_64_low, 32},
                                                      {"fnv1a_64", fnv1a_64_short, 32},
                                                      {"fnv1_32", fnv1_32, 32},
                                                      {"fnv1a_32", fnv1a_32, 32},
                                                      {"hsieh", hsieh, 32},
                                                      {"murmur", murmur2_peer, 32},
                                                      {"jenkins", jenkins, 32},
                                                      {"murmur3", murmur3_peer, 32}}};
  return kHashes;
}

std::span<const NamedHash> twemproxy_hashes() noexcept {
  static constexpr std::array<NamedHash, 12> kHashes{{{"one_at_a_time", one_at_a_time, 32},
                                                      {"md5", md5_le, 32},
                                                      {"crc16", crc16_unmasked, 32},
                                                      {"crc32", crc32_15, 15},
                                                      {"crc32a", crc32a, 32},
                                                      {"fnv1_64", fnv1_64_low, 32},
                                                      {"fnv1a_64", fnv1a_64_short, 32},
                                                      {"fnv1_32", fnv1_32, 32},
                                                      {"fnv1a_32", fnv1a_32, 32},
                                                      {"hsieh", hsieh, 32},
                                                      {"murmur", murmur2_peer, 32},
                                                      {"jenkins", jenkins, 32}}};
  return kHashes;
}

const NamedHash* find_hash(std::span<const NamedHash> hashes, std::string_view name) noexcept {
  const auto found = std::ranges::find(hashes, name, &NamedHash::name);
  return found == hashes.end() ? nullptr : &*found;
}

}  // namespace ringshift::hashing::peers
