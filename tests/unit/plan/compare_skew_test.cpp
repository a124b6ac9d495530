// The skew finder: exact counts of what is heavy, bounded however many prefixes there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plan/compare/experiment.h"
#include "plan/compare/skew.h"

namespace ringshift::plan::compare {
namespace {

std::vector<PrefixLoad> skew_of(const KeySet& keys, std::size_t members, const std::string& hash_tag = {}) {
  const auto list = synthetic_members(members);
  Variant ring{"ring", {}, Family::ours};
  ring.placement.hash_tag = hash_tag;
  const auto placement = placement_after(ring, {list, list});
  EXPECT_TRUE(placement);
  return heaviest_prefixes(keys, *placement, list);
}

const PrefixLoad* find(const std::vector<PrefixLoad>& all, const std::string& prefix) {
  const auto found = std::ranges::find(all, prefix, &PrefixLoad::prefix);
  return found == all.end() ? nullptr : &*found;
}

TEST(Skew, CountsPrefixesOfEverySeparator) {
  KeySet keys;
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(keys.add("user:" + std::to_string(i)));
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(keys.add("img/small/" + std::to_string(i)));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(keys.add("a.b|c-d:" + std::to_string(i)));
  const auto found = skew_of(keys, 4);
  ASSERT_EQ(found.size(), 3U) << "a prefix is not shown beside the longer one that all its keys share";
  EXPECT_EQ(found[0].prefix, "user:");
  EXPECT_EQ(found[0].keys, 300U);
  EXPECT_DOUBLE_EQ(found[0].share, 0.5);
  EXPECT_EQ(found[1].prefix, "img/small/");
  EXPECT_EQ(found[1].keys, 200U);
  EXPECT_EQ(found[2].prefix, "a.b|c-d:");
}

TEST(Skew, ATagThatHoldsManyKeysIsOnOneMember) {
  KeySet keys;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(keys.add("cart:{shop-7}:" + std::to_string(i)));
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(keys.add("user:" + std::to_string(i)));
  const auto found = skew_of(keys, 4, "{}");
  const PrefixLoad* tagged = find(found, "cart:{shop-7}:");
  const PrefixLoad* plain = find(found, "user:");
  ASSERT_TRUE(tagged && plain);
  EXPECT_DOUBLE_EQ(tagged->max_avg, 4.0) << "all on one of four";
  EXPECT_LT(plain->max_avg, 1.6);
  EXPECT_LT(plain->max_avg_by_chance, 1.1);
}

TEST(Skew, FindsTheHeavyAmongMorePrefixesThanCounters) {
  KeySet keys;
  constexpr int kRounds = 40'000;  // Each brings a prefix of its own: 20 times the counters.
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_TRUE(keys.add("u" + std::to_string(i) + ":x"));
    if (i % 20 == 0) {
      ASSERT_TRUE(keys.add("hot:" + std::to_string(i)));
    }
  }
  const auto found = skew_of(keys, 4);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].prefix, "hot:");
  EXPECT_EQ(found[0].keys, 2'000U) << "counted exactly by the second pass";
  EXPECT_LE(found.size(), kMaxPrefixes);
}

TEST(Skew, KeysWithoutPrefixes) {
  KeySet keys;
  for (const char* key : {"", ":", "plain", "end:", "a:b"}) ASSERT_TRUE(keys.add(key));
  EXPECT_TRUE(skew_of(keys, 2).empty()) << "one key makes no prefix";
}

}  // namespace
}  // namespace ringshift::plan::compare
