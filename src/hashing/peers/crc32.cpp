#include "hashing/peers/crc32.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace ringshift::hashing::peers {
namespace {

constexpr std::uint32_t kPolynomial = 0xedb88320;
constexpr std::size_t kStride = 8;
using Tables = std::array<std::array<std::uint32_t, 256>, kStride>;

// tables[k][b]: what byte b still does to the CRC after k zero bytes more.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ kPolynomial : crc >> 1;
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < kStride; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32_more(std::uint32_t crc, std::string_view bytes) noexcept {
  crc = ~crc;
  for (; bytes.size() >= kStride; bytes.remove_prefix(kStride)) {
    std::array<std::uint32_t, 2> word;
    std::memcpy(word.data(), bytes.data(), kStride);
    word[0] ^= crc;
    crc = kTables[7][word[0] & 0xff] ^ kTables[6][(word[0] >> 8) & 0xff] ^
          kTables[5][(word[0] >> 16) & 0xff] ^ kTables[4][word[0] >> 24] ^ kTables[3][word[1] & 0xff] ^
          kTables[2][(word[1] >> 8) & 0xff] ^ kTables[1][(word[1] >> 16) & 0xff] ^ kTables[0][word[1] >> 24];
  }
  for (const char c : bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

std::uint32_t crc32(std::string_view bytes) noexcept { return crc32_more(0, bytes); }

}  // namespace ringshift::hashing::peers
