#include "hashing/peers/lookup3.h"

#include <array>
#include <bit>
#include <cstring>

namespace ringshift::hashing::peers {
namespace {

constexpr std::size_t kBlock = 12;

struct State {
  std::uint32_t a, b, c;

  void add(const char* block, std::size_t size) noexcept {
    static_assert(std::endian::native == std::endian::little);
    std::array<std::uint32_t, 3> words{};
    std::memcpy(words.data(), block, size);
    a += words[0];
    b += words[1];
    c += words[2];
  }
  void mix() noexcept {
    step(a, c, b, 4);
    step(b, a, c, 6);
    step(c, b, a, 8);
    step(a, c, b, 16);
    step(b, a, c, 19);
    step(c, b, a, 4);
  }
  void finish() noexcept {
    fold(c, b, 14);
    fold(a, c, 11);
    fold(b, a, 25);
    fold(c, b, 16);
    fold(a, c, 4);
    fold(b, a, 14);
    fold(c, b, 24);
  }

 private:
  static void step(std::uint32_t& x, std::uint32_t& y, std::uint32_t z, int turn) noexcept {
    x = (x - y) ^ std::rotl(y, turn);
    y += z;
  }
  static void fold(std::uint32_t& x, std::uint32_t y, int turn) noexcept { x = (x ^ y) - std::rotl(y, turn); }
};

}  // namespace

std::uint32_t lookup3(std::string_view bytes, std::uint32_t initval) noexcept {
  const std::uint32_t start = 0xdeadbeef + static_cast<std::uint32_t>(bytes.size()) + initval;
  State state{start, start, start};
  for (; bytes.size() > kBlock; bytes.remove_prefix(kBlock)) {
    state.add(bytes.data(), kBlock);
    state.mix();
  }
  if (bytes.empty()) return state.c;
  state.add(bytes.data(), bytes.size());
  state.finish();
  return state.c;
}

}  // namespace ringshift::hashing::peers
