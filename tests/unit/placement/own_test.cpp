// The placements beyond ring, modulo and slots: published values, and what the contract suite cannot see.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "placement/placement.h"

namespace ringshift::placement {
namespace {

std::vector<std::string> names(std::size_t count) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back("m" + std::to_string(i));
  return out;
}

// They refer to `ids`.
std::vector<Member> members(std::span<const std::string> ids, double weight = 1.0) {
  std::vector<Member> out;
  for (const std::string& id : ids) out.push_back({id, weight, static_cast<MemberIndex>(out.size())});
  return out;
}

// As other implementations of the paper's function test themselves.
TEST(Jump, PublishedValues) {
  EXPECT_EQ(jump_bucket(1, 1), 0U);
  EXPECT_EQ(jump_bucket(42, 57), 43U);
  EXPECT_EQ(jump_bucket(0xDEAD10CC, 1), 0U);
  EXPECT_EQ(jump_bucket(0xDEAD10CC, 666), 361U);
  EXPECT_EQ(jump_bucket(256, 1024), 520U);
}

TEST(Every, OwnsNothingWithoutMembers) {
  const std::vector<Member> none;
  Algorithm all[] = {Ring(none, 8),
                     Jump(none),
                     Rendezvous(none),
                     Maglev(none, 7),
                     MultiProbe(none, 1, 3),
                     Memento({}, {}),
                     Partitions(std::vector<MemberIndex>{}),
                     Tokens({}),
                     BoundedRing(none, 8, 0.25)};
  for (Algorithm& one : all) {
    const Placement placement({}, std::move(one));
    const std::size_t index = placement.algorithm().index();
    EXPECT_EQ(placement.owner("key"), kNoMember) << index;
    placement.walk(1, [&](MemberIndex) {
      ADD_FAILURE() << index;
      return true;
    });
  }
}

TEST(Rendezvous, LogarithmIsRightToTheLastFewBits) {
  for (int i = 1; i < 100'000; ++i) {
    const double x = (i + 0.5) / 100'000;
    EXPECT_NEAR(exact_log(x), std::log(x), 4e-16 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
  EXPECT_NEAR(exact_log(0x1p-54), -54 * std::log(2.0), 1e-14);
}

TEST(Maglev, PrimesAndShares) {
  EXPECT_TRUE(is_prime(2) && is_prime(65'537) && is_prime(655'373));
  EXPECT_FALSE(is_prime(0) || is_prime(1) || is_prime(65'536) || is_prime(25));
  const auto ids = names(10);
  const Maglev maglev(members(ids), 1009);
  for (MemberIndex m = 0; m < 10; ++m) {
    const auto entries = std::ranges::count(maglev.table(), m);
    EXPECT_TRUE(entries == 100 || entries == 101) << entries;
  }
}

TEST(Partitions, QuotasByLargestRemainderSumUp) {
  const std::vector<std::string> ids{"c", "a", "b"};
  std::vector<Member> three = members(ids);
  EXPECT_EQ(quotas(three, 10), (std::vector<std::uint32_t>{3, 4, 3}))
      << "the smaller id gets the one left over";
  three[0].weight = 2;
  EXPECT_EQ(quotas(three, 8), (std::vector<std::uint32_t>{4, 2, 2}));
  const std::vector<std::uint32_t> holds{3, 3, 4};
  EXPECT_EQ(quotas(members(ids), 10, holds), (std::vector<std::uint32_t>{3, 3, 4}))
      << "who holds it keeps it";
}

TEST(Partitions, ReassignMovesNoMoreThanMust) {
  const auto ids = names(6);
  const std::vector<Member> five = members({ids.begin(), ids.begin() + 5}), six = members(ids);
  const auto before = deal(five, 1024);
  EXPECT_EQ(reassign(before, five), before) << "no change, no movement";
  const auto after = reassign(before, six);
  std::size_t moved = 0;
  for (std::size_t p = 0; p < before.size(); ++p) {
    if (before[p] == after[p]) continue;
    ++moved;
    EXPECT_EQ(after[p], 5U);
  }
  EXPECT_EQ(moved, 170U) << "1024 / 6, rounded down: nobody who holds its remainder gives it up";
}

TEST(BoundedRing, NobodyExceedsTheBoundAndOwnersWithoutLoadAreTheRings) {
  const auto ids = names(10);
  const BoundedRing ring(members(ids), 64, 0.25);
  std::vector<std::uint64_t> loads(10);
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const MemberIndex taker = ring.owner(hashing::mix(i % 50), loads);  // Fifty hot keys.
    ++loads[taker];
    ASSERT_LE(loads[taker], ring.capacity(taker, i)) << i;
  }
  EXPECT_EQ(*std::ranges::max_element(loads), ring.capacity(0, 19'999)) << "the hot ones fill up";
  const std::vector<std::uint64_t> idle(10);
  for (std::uint64_t i = 0; i < 1000; ++i)
    EXPECT_EQ(ring.owner(hashing::mix(i), idle), ring.owner(hashing::mix(i)));
}

TEST(Ring, MergedEqualsBuiltAnew) {
  const auto ids = names(40);
  const std::vector<Member> before = members({ids.begin(), ids.begin() + 30});
  std::vector<Member> after, added;  // Every third leaves, one changes its weight, ten come.
  std::vector<MemberIndex> renumber(30, kNoMember);
  for (std::size_t i = 0; i < 40; ++i) {
    if (i < 30 && i % 3 == 0) continue;
    after.push_back({ids[i], i == 7 ? 2.0 : 1.0, static_cast<MemberIndex>(after.size())});
    if (i >= 30 || i == 7) {
      added.push_back(after.back());
    } else {
      renumber[i] = after.back().index;
    }
  }
  const Ring merged(Ring(before, 100), renumber, added, 100, hashing::Hash64::xxh3,
                    [&](MemberIndex index) { return after[index].id; });
  const Ring anew(after, 100);
  ASSERT_EQ(merged.size(), anew.size());
  for (std::size_t i = 0; i < anew.size(); ++i) {
    EXPECT_EQ(merged.points()[i].hash, anew.points()[i].hash);
    EXPECT_EQ(merged.points()[i].member, anew.points()[i].member);
  }
  for (std::uint64_t i = 0; i < 10'000; ++i)
    EXPECT_EQ(merged.owner(hashing::mix(i)), anew.owner(hashing::mix(i)));
}

TEST(Ring, CrowdedPointsAreStillAnsweredExactly) {
  std::vector<Ring::Point> points;  // 70,000 tokens next to each other: more than an index entry can tell.
  for (std::uint64_t i = 0; i < 70'000; ++i)
    points.push_back({1000 + 2 * i, static_cast<MemberIndex>(i % 7)});
  const Ring ring(points);
  for (const std::uint64_t i : {0U, 1U, 777U, 32'767U, 32'768U, 40'000U, 69'999U}) {
    EXPECT_EQ(ring.owner(1000 + 2 * i), i % 7);
    EXPECT_EQ(ring.owner(999 + 2 * i), i % 7);
  }
  EXPECT_EQ(ring.owner(1'000'000'000), 0U) << "past the last: wraps";
}

}  // namespace
}  // namespace ringshift::placement
