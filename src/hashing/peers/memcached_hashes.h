// The key hashes of libmemcached and twemproxy, quirks included: a byte of 0x80 and above is taken as a
// negative number in one_at_a_time, in every FNV and in hsieh's tail, because C's char is signed on x86.
//
// Source: libhashkit 1.1.4 and twemproxy 0.5.0 as recorded in tests/vectors/{libmemcached,twemproxy}.json.
// Pure, thread-safe, 32 bits each. Check values (of "123456789") are in tests/unit/hashing.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ringshift::hashing::peers {

using Hash32 = std::uint32_t (*)(std::string_view) noexcept;

[[nodiscard]] std::uint32_t one_at_a_time(std::string_view key) noexcept;   // Jenkins'.
[[nodiscard]] std::uint32_t md5_le(std::string_view key) noexcept;          // The digest's first four bytes.
[[nodiscard]] std::uint32_t crc16_unmasked(std::string_view key) noexcept;  // XMODEM, never cut to 16 bits.
[[nodiscard]] std::uint32_t crc32_15(std::string_view key) noexcept;  // Bits 16..30 of CRC-32: 32768 values.
[[nodiscard]] std::uint32_t crc32a(std::string_view key) noexcept;    // CRC-32 itself.
[[nodiscard]] std::uint32_t fnv1_64_low(std::string_view key) noexcept;     // 64 bits, the low half returned.
[[nodiscard]] std::uint32_t fnv1a_64_short(std::string_view key) noexcept;  // In 32 bits all along.
[[nodiscard]] std::uint32_t fnv1_32(std::string_view key) noexcept;
[[nodiscard]] std::uint32_t fnv1a_32(std::string_view key) noexcept;
[[nodiscard]] std::uint32_t hsieh(std::string_view key) noexcept;
[[nodiscard]] std::uint32_t murmur2_peer(std::string_view key) noexcept;  // Seeded by the length.
[[nodiscard]] std::uint32_t murmur3_peer(std::string_view key) noexcept;  // x86_32, seeded by the length.
[[nodiscard]] std::uint32_t jenkins(std::string_view key) noexcept;       // lookup3, initval 13.

struct NamedHash {
  std::string_view name;
  Hash32 hash;
  int bits;  // How many bits of the result vary.
};
// By the names of each program's configuration.
[[nodiscard]] std::span<const NamedHash> libmemcached_hashes() noexcept;
[[nodiscard]] std::span<const NamedHash> twemproxy_hashes() noexcept;
// nullptr when there is none of that name.
[[nodiscard]] const NamedHash* find_hash(std::span<const NamedHash> hashes, std::string_view name) noexcept;

}  // namespace ringshift::hashing::peers
