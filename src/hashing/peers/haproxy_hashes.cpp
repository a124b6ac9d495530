#include "hashing/peers/haproxy_hashes.h"

#include <bit>
#include <utility>

namespace ringshift::hashing::peers {
namespace {

std::uint32_t byte(char c) noexcept { return static_cast<unsigned char>(c); }

}  // namespace

std::uint32_t sdbm(std::string_view key) noexcept {
  std::uint32_t hash = 0;
  for (const char c : key) hash = byte(c) + (hash << 6) + (hash << 16) - hash;
  return hash;
}

std::uint32_t djb2(std::string_view key) noexcept {
  std::uint32_t hash = 5381;
  for (const char c : key) hash = (hash << 5) + hash + byte(c);
  return hash;
}

std::uint32_t wt6(std::string_view key) noexcept {
  std::uint32_t first = 0xa53c965a, second = 0x5ca6953a;
  int first_turn = 6, second_turn = 18;
  for (const char c : key) {
    first = ~(first ^ byte(c));
    second = ~(second + byte(c));
    const std::uint32_t turned = std::rotl(second, first_turn);
    second = std::rotl(first, second_turn);
    first = turned;
    const std::uint32_t turns = ((first >> 16) ^ second) & 0xffff;
    first_turn = static_cast<int>(turns & 0x1f);
    second_turn = static_cast<int>(turns >> 11);
  }
  return first ^ second;
}

std::uint32_t full_hash(std::uint32_t value) noexcept {
  value = (value + 0x7ed55d16) + (value << 12);
  value = (value ^ 0xc761c23c) ^ (value >> 19);
  value = (value + 0x165667b1) + (value << 5);
  value = (value + 0xd3a2646c) ^ (value << 9);
  value = (value + 0xfd7046c5) + (value << 3);
  value = (value ^ 0xb55a4f09) ^ (value >> 16);
  return value * 3221225473U;
}

}  // namespace ringshift::hashing::peers
