// The hash-tag rule: which part of a key is hashed, so that keys with one tag live together.
//
// Redis's rule for "{}": from the first open character to the first close character after it; only when
// there is something between them, else the whole key. The two characters may be the same.
// Pure; a key without the open character costs one memchr.
#pragma once
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
    if (!enabled_) return key;
    const auto open = key.find(open_);
    if (open == std::string_view::npos) return key;
    const auto close = key.find(close_, open + 1);
    if (close == std::string_view::npos || close == open + 1) return key;
    return key.substr(open + 1, close - open - 1);
  }

  bool operator==(const HashTag&) const = default;

 private:
  char open_ = '\0';
  char close_ = '\0';
  bool enabled_ = false;
};

}  // namespace ringshift::hashing
