// CRC-16/XMODEM, the hash of Redis Cluster's slots.
//
//   width 16, polynomial 0x1021, initial value 0x0000, input and output not reflected, no final XOR
//   check value: "123456789" -> 0x31C3
//
// Pure, thread-safe; one table look-up a byte.
#pragma once
#include <cstdint>
#include <string_view>

namespace ringshift::hashing {

[[nodiscard]] std::uint16_t crc16(std::string_view bytes) noexcept;

}  // namespace ringshift::hashing
