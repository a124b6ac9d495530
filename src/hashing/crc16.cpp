#include "hashing/crc16.h"

#include <array>

namespace ringshift::hashing {
namespace {

constexpr std::uint32_t kPolynomial = 0x1021;

constexpr std::array<std::uint16_t, 256> make_table() {
  std::array<std::uint16_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000) != 0 ? (crc << 1) ^ kPolynomial : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}
constexpr std::array<std::uint16_t, 256> kTable = make_table();

}  // namespace

std::uint16_t crc16(std::string_view bytes) noexcept {
  std::uint32_t crc = 0;
  for (const char c : bytes) {
    crc = ((crc << 8) ^ kTable[((crc >> 8) ^ static_cast<unsigned char>(c)) & 0xff]) & 0xffff;
  }
  return static_cast<std::uint16_t>(crc);
}

}  // namespace ringshift::hashing
