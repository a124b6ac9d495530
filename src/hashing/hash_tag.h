// The hash-tag rule: which part of a key is hashed, so that keys with one tag live together.
//
// Redis's rule for "{}": from the first open character to the first close character after it; only when
// there is something between them, else the whole key. The two characters may be the same.
// Pure; a key of up to 32 bytes without the open character costs a few instructions, a longer one a memchr.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ringshift::hashing {

class HashTag {
 public:
  HashTag() = default;  // No rule: whole keys.
  // REQUIRES: `rule` is empty or two characters, open then close.
  explicit HashTag(std::string_view rule) noexcept
      : open_(rule.size() == 2 ? rule[0] : '\0'),
        close_(rule.size() == 2 ? rule[1] : '\0'),
        enabled_(rule.size() == 2) {}

  [[nodiscard]] bool enabled() const noexcept { return enabled_; }

  // The part of `key` that is hashed; a view into `key`.
  [[nodiscard]] std::string_view apply(std::string_view key) const noexcept {
    if (surely_absent(key)) return key;
    const auto open = key.find(open_);
    if (open == std::string_view::npos) return key;
    const auto close = key.find(close_, open + 1);
    if (close == std::string_view::npos || close == open + 1) return key;
    return key.substr(open + 1, close - open - 1);
  }

  // True only when the whole of `key` is hashed; false says nothing. Looks at keys of 4 to 32 bytes, eight at
  // a time, overlapping: for those the call of memchr costs more than a whole look-up on a ring.
  [[nodiscard]] bool surely_absent(std::string_view key) const noexcept {
    if (!enabled_) return true;
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    if (key.size() < kWord / 2 || key.size() > 4 * kWord) return false;
    const std::uint64_t wanted = 0x0101010101010101ULL * static_cast<unsigned char>(open_);
    const auto lacks = [&](std::size_t at) { return !has_zero(load<std::uint64_t>(key, at) ^ wanted); };
    if (key.size() < kWord) {
      const std::uint64_t both = std::uint64_t{load<std::uint32_t>(key, 0)} << 32 |
                                 load<std::uint32_t>(key, key.size() - sizeof(std::uint32_t));
      return !has_zero(both ^ wanted);
    }
    const std::size_t last = key.size() - kWord;
    if (!lacks(0) || !lacks(last)) return false;
    return key.size() <= 2 * kWord || (lacks(kWord) && lacks(last - kWord));
  }

  bool operator==(const HashTag&) const = default;

 private:
  // Whether one of a word's bytes is zero (exact in the answer, not in the place).
  [[nodiscard]] static bool has_zero(std::uint64_t word) noexcept {
    return ((word - 0x0101010101010101ULL) & ~word & 0x8080808080808080ULL) != 0;
  }
  template <class Word>
  [[nodiscard]] static Word load(std::string_view bytes, std::size_t at) noexcept {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    return word;
  }

  char open_ = '\0';
  char close_ = '\0';
  bool enabled_ = false;
};

}  // namespace ringshift::hashing
