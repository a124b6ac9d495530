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

// Eight words at once, for eight messages: two vectors, whose chains of dependent steps overlap.
struct Lanes {
  typedef std::uint32_t Four __attribute__((vector_size(16)));  // NOLINT(modernize-use-using)
  Four low, high;

  static constexpr std::size_t kCount = 8;
  static Lanes all(std::uint32_t x) noexcept { return {Four{x, x, x, x}, Four{x, x, x, x}}; }
  friend Lanes operator+(Lanes a, Lanes b) noexcept { return {a.low + b.low, a.high + b.high}; }
  friend Lanes operator^(Lanes a, Lanes b) noexcept { return {a.low ^ b.low, a.high ^ b.high}; }
  friend Lanes operator&(Lanes a, Lanes b) noexcept { return {a.low & b.low, a.high & b.high}; }
  friend Lanes operator|(Lanes a, Lanes b) noexcept { return {a.low | b.low, a.high | b.high}; }
  Lanes operator~() const noexcept { return {~low, ~high}; }
};

std::uint32_t constant(std::uint32_t value, std::uint32_t) noexcept { return value; }
Lanes constant(std::uint32_t value, Lanes) noexcept { return Lanes::all(value); }
std::uint32_t turned(std::uint32_t x, int bits) noexcept { return std::rotl(x, bits); }
Lanes turned(Lanes x, int bits) noexcept {
  return {x.low << bits | x.low >> (32 - bits), x.high << bits | x.high >> (32 - bits)};
}

template <int kRound, class Word>
inline Word choose(Word b, Word c, Word d) noexcept {
  if constexpr (kRound == 0) return d ^ (b & (c ^ d));
  if constexpr (kRound == 1) return c ^ (d & (b ^ c));
  if constexpr (kRound == 2) return b ^ c ^ d;
  return c ^ (b | ~d);
}
constexpr std::array<std::size_t, 4> kStep{1, 5, 3, 7}, kStart{0, 1, 5, 0};  // Which word a step takes.

template <int kRound, class Word>
inline void round(Word& a, Word& b, Word& c, Word& d, const std::array<Word, 16>& words) noexcept {
  constexpr auto kThis = static_cast<std::size_t>(kRound);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i) {
    const Word sum = a + constant(kSines[16 * kThis + i], a) +
                     words[(kStart[kThis] + kStep[kThis] * i) % 16] + choose<kRound>(b, c, d);
    a = d;
    d = c;
    c = b;
    b = b + turned(sum, kTurns[kThis][i % 4]);
  }
}

template <class Word>
inline void take_words(std::array<Word, 4>& state, const std::array<Word, 16>& words) noexcept {
  auto [a, b, c, d] = state;
  round<0>(a, b, c, d, words);
  round<1>(a, b, c, d, words);
  round<2>(a, b, c, d, words);
  round<3>(a, b, c, d, words);
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

void take_block(Md5Words& state, const char* block) noexcept {
  static_assert(std::endian::native == std::endian::little);
  std::array<std::uint32_t, 16> words;
  std::memcpy(words.data(), block, kBlock);
  take_words(state, words);
}

constexpr Md5Words kFirst{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};

// Messages that fit one block with their padding, eight at a time. What was not add()ed is hashed as zeros.
class Batch {
 public:
  static constexpr std::size_t kMostBytes = kLengthAt - 1;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // REQUIRES: fewer than eight so far; message.size() <= kMostBytes.
  void add(std::string_view message) noexcept {
    std::array<char, kBlock> block{};
    if (!message.empty()) std::memcpy(block.data(), message.data(), message.size());
    block[message.size()] = static_cast<char>(0x80);
    const std::uint64_t bits = std::uint64_t{message.size()} * 8;
    std::memcpy(block.data() + kLengthAt, &bits, sizeof bits);
    std::memcpy(blocks_[size_++].data(), block.data(), kBlock);
  }
  // The first words of all digests; the batch is empty then.
  [[nodiscard]] std::array<std::uint32_t, Lanes::kCount> take() noexcept {
    std::array<Lanes, 16> words;
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = Lanes{Lanes::Four{blocks_[0][i], blocks_[1][i], blocks_[2][i], blocks_[3][i]},
                       Lanes::Four{blocks_[4][i], blocks_[5][i], blocks_[6][i], blocks_[7][i]}};
    }
    std::array<Lanes, 4> state{Lanes::all(kFirst[0]), Lanes::all(kFirst[1]), Lanes::all(kFirst[2]),
                               Lanes::all(kFirst[3])};
    take_words(state, words);
    std::array<std::uint32_t, Lanes::kCount> out;
    std::memcpy(out.data(), &state[0], sizeof out);
    size_ = 0;
    return out;
  }

 private:
  std::array<std::array<std::uint32_t, 16>, Lanes::kCount> blocks_{};
  std::size_t size_ = 0;
};

}  // namespace

Md5Words md5(std::string_view bytes) noexcept {
  Md5Words state = kFirst;
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

void md5_first_words(std::span<const std::string_view> messages, std::span<std::uint64_t> out) noexcept {
  Batch batch;
  std::array<std::size_t, Lanes::kCount> places;
  const auto flush = [&] {
    const std::size_t count = batch.size();
    const auto words = batch.take();
    for (std::size_t i = 0; i < count; ++i) out[places[i]] = words[i];
  };
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].size() > Batch::kMostBytes) {
      out[i] = md5(messages[i])[0];
      continue;
    }
    places[batch.size()] = i;
    batch.add(messages[i]);
    if (batch.size() == places.size()) flush();
  }
  if (batch.size() > 0) flush();
}

}  // namespace ringshift::hashing::peers
