#include "hashing/peers/murmur.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ringshift::hashing::peers {
namespace {

template <class Word>
Word word_at(std::string_view bytes, std::size_t at) noexcept {
  static_assert(std::endian::native == std::endian::little);
  Word word;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

// The bytes from `at` on, fewer than a word, as a little-endian number.
template <class Word>
Word tail_at(std::string_view bytes, std::size_t at) noexcept {
  Word word = 0;
  for (std::size_t i = bytes.size(); i > at; --i) {
    word = static_cast<Word>(word << 8) | static_cast<unsigned char>(bytes[i - 1]);
  }
  return word;
}

}  // namespace

std::uint32_t murmur2_32(std::string_view bytes, std::uint32_t seed) noexcept {
  constexpr std::uint32_t kMultiplier = 0x5bd1e995;
  std::uint32_t hash = seed ^ static_cast<std::uint32_t>(bytes.size());
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    auto word = word_at<std::uint32_t>(bytes, at) * kMultiplier;
    word = (word ^ (word >> 24)) * kMultiplier;
    hash = (hash * kMultiplier) ^ word;
  }
  if (at < bytes.size()) hash = (hash ^ tail_at<std::uint32_t>(bytes, at)) * kMultiplier;
  hash = (hash ^ (hash >> 13)) * kMultiplier;
  return hash ^ (hash >> 15);
}

std::uint64_t murmur2_64(std::string_view bytes, std::uint64_t seed) noexcept {
  constexpr std::uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  std::uint64_t hash = seed ^ (bytes.size() * kMultiplier);
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    auto word = word_at<std::uint64_t>(bytes, at) * kMultiplier;
    word = (word ^ (word >> 47)) * kMultiplier;
    hash = (hash ^ word) * kMultiplier;
  }
  if (at < bytes.size()) hash = (hash ^ tail_at<std::uint64_t>(bytes, at)) * kMultiplier;
  hash = (hash ^ (hash >> 47)) * kMultiplier;
  return hash ^ (hash >> 47);
}

std::uint32_t murmur3_x86_32(std::string_view bytes, std::uint32_t seed) noexcept {
  constexpr std::uint32_t kFirst = 0xcc9e2d51, kSecond = 0x1b873593;
  const auto scramble = [](std::uint32_t word) { return std::rotl(word * kFirst, 15) * kSecond; };
  std::uint32_t hash = seed;
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    hash = std::rotl(hash ^ scramble(word_at<std::uint32_t>(bytes, at)), 13) * 5 + 0xe6546b64;
  }
  if (at < bytes.size()) hash ^= scramble(tail_at<std::uint32_t>(bytes, at));
  hash ^= static_cast<std::uint32_t>(bytes.size());
  hash = (hash ^ (hash >> 16)) * 0x85ebca6b;
  hash = (hash ^ (hash >> 13)) * 0xc2b2ae35;
  return hash ^ (hash >> 16);
}

std::pair<std::uint64_t, std::uint64_t> murmur3_x64_128(std::string_view bytes, std::uint32_t seed) noexcept {
  constexpr std::uint64_t kFirst = 0x87c37b91114253d5, kSecond = 0x4cf5ad432745937f;
  const auto scramble_low = [](std::uint64_t word) { return std::rotl(word * kFirst, 31) * kSecond; };
  const auto scramble_high = [](std::uint64_t word) { return std::rotl(word * kSecond, 33) * kFirst; };
  std::uint64_t low = seed, high = seed;
  std::size_t at = 0;
  for (; at + 16 <= bytes.size(); at += 16) {
    low ^= scramble_low(word_at<std::uint64_t>(bytes, at));
    low = (std::rotl(low, 27) + high) * 5 + 0x52dce729;
    high ^= scramble_high(word_at<std::uint64_t>(bytes, at + 8));
    high = (std::rotl(high, 31) + low) * 5 + 0x38495ab5;
  }
  if (at + 8 < bytes.size()) high ^= scramble_high(tail_at<std::uint64_t>(bytes, at + 8));
  if (at < bytes.size())
    low ^= scramble_low(tail_at<std::uint64_t>(bytes.substr(0, std::min(at + 8, bytes.size())), at));
  low ^= bytes.size();
  high ^= bytes.size();
  low += high;
  high += low;
  const auto finish = [](std::uint64_t word) {
    word = (word ^ (word >> 33)) * 0xff51afd7ed558ccd;
    word = (word ^ (word >> 33)) * 0xc4ceb9fe1a85ec53;
    return word ^ (word >> 33);
  };
  low = finish(low);
  high = finish(high);
  low += high;
  return {low, high + low};
}

}  // namespace ringshift::hashing::peers
