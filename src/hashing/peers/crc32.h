// CRC-32 as zip, PNG and nginx compute it, and its running form, which nginx and Cache::Memcached::Fast chain
// from one point of their ring to the next.
//
//   width 32, polynomial 0x04c11db7 reflected (0xedb88320), initial value and final XOR 0xffffffff
//   check value: "123456789" -> 0xcbf43926
//
// Pure, thread-safe; eight bytes a step.
#pragma once
#include <cstdint>
#include <string_view>

namespace ringshift::hashing::peers {

[[nodiscard]] std::uint32_t crc32(std::string_view bytes) noexcept;
// The CRC of what `crc` was of, followed by `bytes`.
[[nodiscard]] std::uint32_t crc32_more(std::uint32_t crc, std::string_view bytes) noexcept;

}  // namespace ringshift::hashing::peers
