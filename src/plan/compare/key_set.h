// The keys of an experiment, all in memory: real ones from a file or a server, or made up.
//
// Invariant: bounded by kMaxKeys and kMaxBytes; add() refuses what is beyond. The views that operator[] gives
// are good until the next add(). Not thread-safe while it grows. Cost: the keys' bytes and 8 more for each.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringshift::plan::compare {

class KeySet {
 public:
  static constexpr std::size_t kMaxKeys = 20'000'000;
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

  // False, and nothing changed, when a bound was reached.
  [[nodiscard]] bool add(std::string_view key) {
    if (ends_.size() == kMaxKeys || bytes_.size() + key.size() > kMaxBytes) return false;
    bytes_.append(key);
    ends_.push_back(bytes_.size());
    return true;
  }
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  [[nodiscard]] bool empty() const noexcept { return ends_.empty(); }
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;  // Where each key ends in bytes_.
};

// `count` different keys such as a cache has, always the same: users' profiles, sessions, orders, pages of
// feeds. REQUIRES: count <= KeySet::kMaxKeys.
[[nodiscard]] KeySet synthetic_keys(std::size_t count);

}  // namespace ringshift::plan::compare
