#include "hashing/peers/md5.h"

#include <bit>
#include <cstring>

namespace ringshift::hashing::peers {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kLengthAt = 56;  // Where the message's length in bits stands in the last block.

// floor(2^32 * |sin(i + 1)|).
constexpr std::array<std::uint32_t, 64> kSines{
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
constexpr std::array<std::array<int, 4>, 4> kTurns{
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

template <int kRound>
constexpr std::uint32_t choose(std::uint32_t b, std::uint32_t c, std::uint32_t d) noexcept {
  if constexpr (kRound == 0) return d ^ (b & (c ^ d));
  if constexpr (kRound == 1) return c ^ (d & (b ^ c));
  if constexpr (kRound == 2) return b ^ c ^ d;
  return c ^ (b | ~d);
}
constexpr std::array<std::size_t, 4> kStep{1, 5, 3, 7}, kStart{0, 1, 5, 0};  // Which word a step takes.

template <int kRound>
inline void round(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d,
                  const std::array<std::uint32_t, 16>& words) noexcept {
  constexpr auto kThis = static_cast<std::size_t>(kRound);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint32_t sum =
        a + choose<kRound>(b, c, d) + kSines[16 * kThis + i] + words[(kStart[kThis] + kStep[kThis] * i) % 16];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kTurns[kThis][i % 4]);
  }
}

void take_block(Md5Words& state, const char* block) noexcept {
  static_assert(std::endian::native == std::endian::little);
  std::array<std::uint32_t, 16> words;
  std::memcpy(words.data(), block, kBlock);
  auto [a, b, c, d] = state;
  round<0>(a, b, c, d, words);
  round<1>(a, b, c, d, words);
  round<2>(a, b, c, d, words);
  round<3>(a, b, c, d, words);
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

}  // namespace

Md5Words md5(std::string_view bytes) noexcept {
  Md5Words state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock)) take_block(state, bytes.data());
  std::array<char, kBlock> last{};
  if (!bytes.empty()) std::memcpy(last.data(), bytes.data(), bytes.size());
  last[bytes.size()] = static_cast<char>(0x80);
  if (bytes.size() >= kLengthAt) {
    take_block(state, last.data());
    last.fill(0);
  }
  std::memcpy(last.data() + kLengthAt, &bits, sizeof bits);
  take_block(state, last.data());
  return state;
}

}  // namespace ringshift::hashing::peers
