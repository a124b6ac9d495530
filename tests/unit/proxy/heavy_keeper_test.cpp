// HeavyKeeper against exact counts, on loads whose keys have Zipf's frequencies; and what a worker puts up.
#include "proxy/heavy_keeper.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "proxy/hot_keys.h"

namespace ringshift::proxy {
namespace {

constexpr auto kAny = [](std::string_view) { return true; };

// `keys` keys, the i-th asked for in proportion to 1 / i^s.
class Zipf {
 public:
  Zipf(std::size_t keys, double s, std::uint64_t seed) : random_(seed) {
    for (std::size_t i = 1; i <= keys; ++i)
      sums_.push_back((sums_.empty() ? 0 : sums_.back()) + std::pow(static_cast<double>(i), -s));
  }
  std::size_t next() {
    const double at = std::uniform_real_distribution<double>(0, sums_.back())(random_);
    return static_cast<std::size_t>(std::ranges::lower_bound(sums_, at) - sums_.begin());
  }

 private:
  std::vector<double> sums_;
  std::mt19937_64 random_;
};

TEST(HeavyKeeper, FindsTheHeaviestOfAZipfLoad) {
  constexpr std::size_t kKeys = 60'000;  // Thirty times as many keys as a row has buckets.
  std::vector<std::string> names;
  names.reserve(kKeys);
  for (std::size_t i = 0; i < kKeys; ++i) names.push_back(fmt::format("key:{}", i));
  for (const double s : {0.9, 1.2}) {
    HeavyKeeper keeper(7);
    Zipf zipf(kKeys, s, 42);
    std::map<std::string, std::uint64_t> exact;
    std::vector<std::uint64_t> counts(kKeys);
    for (int i = 0; i < 200'000; ++i) {
      const std::size_t key = zipf.next();
      ++counts[key];
      keeper.add(names[key], kAny);
    }
    std::vector<std::pair<std::uint64_t, std::string>> order;
    for (std::size_t i = 0; i < kKeys; ++i) {
      order.emplace_back(counts[i], names[i]);
      exact[names[i]] = counts[i];
    }
    std::ranges::sort(order, std::ranges::greater{});
    std::set<std::string> named;
    for (const auto& [key, count] : keeper.top()) {
      named.insert(key);
      EXPECT_LE(count, exact[key]) << "never above the truth: " << key;
    }
    EXPECT_EQ(named.size(), HeavyKeeper::kKept);
    int found = 0;
    for (std::size_t i = 0; i < 20; ++i) {
      found += named.contains(order[i].second) ? 1 : 0;
      if (i < 10) {
        EXPECT_TRUE(named.contains(order[i].second)) << "s " << s << ", rank " << i;
      }
    }
    EXPECT_GE(found, 18) << "of the 20 heaviest, s " << s;
    const auto top = keeper.top();
    EXPECT_EQ(top.front().first, order.front().second);
    EXPECT_GT(static_cast<double>(top.front().second), 0.9 * static_cast<double>(order.front().first));
  }
}

TEST(HeavyKeeper, NamesOnlyWhatIsWantedAndNotTooLong) {
  HeavyKeeper keeper(7);
  const std::string endless(HeavyKeeper::kKeyBytesMax + 1, 'x');
  for (int i = 0; i < 100; ++i) {
    for (const std::string& key : {std::string("moves"), std::string("stays"), endless})
      keeper.add(key, [](std::string_view one) { return one != "stays"; });
  }
  const auto top = keeper.top();
  ASSERT_EQ(top.size(), 1U);
  EXPECT_EQ(top[0], HeavyKeeper::Counted("moves", 100));
}

TEST(HeavyKeeper, AgeMakesRoomForWhatIsHotNow) {
  HeavyKeeper keeper(7);
  for (int i = 0; i < 64; ++i) {
    for (int k = 0; k < 32; ++k) keeper.add(fmt::format("old:{}", k), kAny);
  }
  for (int i = 0; i < 5; ++i) keeper.age();
  for (int i = 0; i < 40; ++i) keeper.add("new", kAny);
  EXPECT_EQ(keeper.top().front().first, "new");
  keeper.age();
  keeper.age();
  EXPECT_EQ(keeper.top().size(), 1U) << "what fell to nothing is gone";
}

TEST(HotKeyBoard, AddsUpTheWorkersAndForgetsThoseThatEnded) {
  HotKeyBoard board;
  int one = 0, two = 0;
  board.put_up(&one, {{"a", 5}, {"b", 3}});
  board.put_up(&two, {{"b", 4}, {"c", 1}});
  EXPECT_EQ(board.top(2), (std::vector<HeavyKeeper::Counted>{{"b", 7}, {"a", 5}}));
  board.take_down(&two);
  EXPECT_EQ(board.top(10), (std::vector<HeavyKeeper::Counted>{{"a", 5}, {"b", 3}}));
}

}  // namespace
}  // namespace ringshift::proxy
