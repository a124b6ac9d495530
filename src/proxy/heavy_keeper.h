// The keys that are asked for most, in a bounded space: HeavyKeeper (Gong et al., USENIX ATC 2018). Two rows
// of buckets, each with a fingerprint and a count. A key adds to its bucket in each row; where another key
// has it, the other's count decays with a probability that falls exponentially with it. So a bucket ends with
// the heaviest key that maps to it, and light ones wear each other out.
//
// The estimate of a key is never above its true count but for fingerprints that collide (2^-32). It is below
// where heavy keys share buckets in both rows; with a load without heavy keys the list is arbitrary. age()
// halves everything, so that what was hot long ago makes room.
//
// 32 KiB of buckets, and kKept keys of up to kKeyBytesMax. add() is O(1), and O(kKept) for keys that may be
// in the list. Not thread-safe. The random numbers come from a seed that is given.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringshift::proxy {

class HeavyKeeper {
 public:
  static constexpr std::size_t kRows = 2, kBuckets = 2048;
  static constexpr std::size_t kKept = 32;
  static constexpr std::size_t kKeyBytesMax = 512;  // Longer ones are counted, but not named.
  static constexpr double kDecayBase = 1.08;        // As in the paper.
  using Counted = std::pair<std::string, std::uint64_t>;

  explicit HeavyKeeper(std::uint64_t seed) : random_(seed | 1) {
    for (std::size_t i = 0; i < decay_.size(); ++i)
      decay_[i] = static_cast<std::uint32_t>(std::pow(kDecayBase, -static_cast<double>(i)) * 4294967295.0);
  }

  // Counts one. `wanted(key)` says whether it may be in the list; asked only when it is about to get there.
  template <class Wanted>
  void add(std::string_view key, const Wanted& wanted) {
    const std::uint64_t hash = std::hash<std::string_view>{}(key) * 0x9E3779B97F4A7C15ULL;
    const auto print = static_cast<std::uint32_t>(hash >> 32) | 1U;  // 0 is an empty bucket.
    std::uint32_t estimate = 0;
    for (std::size_t row = 0; row < kRows; ++row) {
      Bucket& bucket = buckets_[row][(hash >> (11 * row)) % kBuckets];
      if (bucket.print == print) {
        estimate = std::max(estimate, ++bucket.count);
      } else if (bucket.count == 0 || (decays(bucket.count) && --bucket.count == 0)) {
        bucket = {print, 1};
        estimate = std::max(estimate, 1U);
      }
    }
    if (estimate > least_ || (estimate != 0 && top_.size() < kKept)) enlist(key, hash, estimate, wanted);
  }

  void clear() {
    for (auto& row : buckets_) row.fill({});
    top_.clear();
    least_ = 0;
  }
  void age() {
    for (auto& row : buckets_) {
      for (Bucket& bucket : row) bucket.count /= 2;
    }
    std::erase_if(top_, [](Entry& entry) { return (entry.count /= 2) == 0; });
    find_least();
  }

  // The heaviest first.
  [[nodiscard]] std::vector<Counted> top() const {
    std::vector<Counted> out;
    out.reserve(top_.size());
    for (const Entry& entry : top_) out.emplace_back(entry.key, entry.count);
    std::ranges::sort(out, [](const Counted& a, const Counted& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    return out;
  }

 private:
  struct Bucket {
    std::uint32_t print = 0, count = 0;
  };
  struct Entry {
    std::uint64_t hash = 0;
    std::uint32_t count = 0;
    std::string key;
  };
  static_assert(sizeof(Bucket) * kRows * kBuckets == 32U << 10);

  bool decays(std::uint32_t count) {
    if (count >= decay_.size()) return false;  // Once in 10^8.
    random_ ^= random_ << 13;                  // xorshift64
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return static_cast<std::uint32_t>(random_ >> 16) < decay_[count];
  }

  template <class Wanted>
  void enlist(std::string_view key, std::uint64_t hash, std::uint32_t estimate, const Wanted& wanted) {
    for (Entry& entry : top_) {
      if (entry.hash != hash || entry.key != key) continue;
      const bool was_least = entry.count == least_;
      entry.count = estimate;
      if (was_least) find_least();
      return;
    }
    if (key.size() > kKeyBytesMax || !wanted(key)) return;
    if (top_.size() < kKept) {
      top_.push_back({hash, estimate, std::string(key)});
    } else {
      auto out = std::ranges::min_element(top_, {}, &Entry::count);
      *out = {hash, estimate, std::string(key)};
    }
    find_least();
  }
  void find_least() {
    least_ = top_.size() < kKept ? 0 : std::ranges::min_element(top_, {}, &Entry::count)->count;
  }

  std::array<std::array<Bucket, kBuckets>, kRows> buckets_{};
  std::array<std::uint32_t, 240> decay_{};
  std::vector<Entry> top_;
  std::uint32_t least_ = 0;  // Of the list when it is full, else 0.
  std::uint64_t random_;
};

}  // namespace ringshift::proxy
