// What other programs' placements promise: the same contract as ours (placement_contract_test.cpp), row by
// row.
//
// What a row does not promise is tried too: it must really fail to be so, else the row is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "ringshift/diff.h"
#include "tests/contract/placement_rows.h"

namespace ringshift::topology::contract {
namespace {

constexpr std::size_t kKeys = 100'000;

using Pairs = std::map<std::pair<std::string, std::string>, double>;  // (from, to) -> share of the keys.

Pairs moved(const Spec& from, const Spec& to, std::size_t count) {
  const auto a = compiled(from), b = compiled(to);
  Pairs out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& x = a->members()[a->owner_before(scattered_keys()[i])].id;
    const std::string& y = b->members()[b->owner_before(scattered_keys()[i])].id;
    if (x != y) out[{x, y}] += 1.0 / static_cast<double>(count);
  }
  return out;
}

double total(const Pairs& pairs) {
  double sum = 0;
  for (const auto& [pair, share] : pairs) sum += share;
  return sum;
}

// The share that moves between members that neither came nor left.
double between_others(const Pairs& pairs, const std::string& changed) {
  double sum = 0;
  for (const auto& [pair, share] : pairs)
    if (pair.first != changed && pair.second != changed) sum += share;
  return sum;
}

double noise(double share, std::size_t count) { return 6 * std::sqrt(share / static_cast<double>(count)); }

class PeerContract : public testing::TestWithParam<PlacementRow> {};

TEST_P(PeerContract, NoMembersAreRefused) {
  Topology topology;
  topology.spec = spec_of(GetParam(), 0);
  const auto snapshot = Snapshot::compile(topology, {});
  ASSERT_FALSE(snapshot);
  EXPECT_THAT(snapshot.error().message, testing::HasSubstr("the list is empty"));
}

TEST_P(PeerContract, OneMemberOwnsEverything) {
  const auto snapshot = compiled(spec_of(GetParam(), 1));
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(snapshot->owner_before(scattered_keys()[i]), 0U);
  EXPECT_EQ(snapshot->owner_before(""), 0U) << "the empty key is legal";
}

TEST_P(PeerContract, IsAFunctionOfTheSpecsText) {
  const Spec original = spec_of(GetParam(), 7);
  const auto again = parse_spec(to_json(original), "json");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, original);
  const auto a = compiled(original), b = compiled(*again);
  EXPECT_EQ(a->digest, b->digest);
  std::vector<std::string_view> views(scattered_keys().begin(), scattered_keys().begin() + 2000);
  std::vector<Route> routes(views.size());
  a->route_many(views, routes);
  for (std::size_t i = 0; i < views.size(); ++i) {
    ASSERT_EQ(a->owner_before(views[i]), b->owner_before(views[i]));
    ASSERT_EQ(routes[i].member, a->owner_before(views[i])) << "a batch answers as single calls do";
  }
}

TEST_P(PeerContract, OrderOfMembersMattersOnlyWhereTheRowSaysSo) {
  const Spec forward = spec_of(GetParam(), 8);
  Spec backward = forward;
  std::ranges::reverse(backward.members);
  const double different = total(moved(forward, backward, kKeys));
  if (GetParam().any_order) {
    EXPECT_EQ(different, 0);
  } else {
    EXPECT_GT(different, 0.1) << "the order does not matter here: correct the row";
  }
}

TEST_P(PeerContract, SharesFollowWeights) {
  const std::vector<double> weights = {1, 2, 3, 4, 2};
  const Spec weighted = spec_of(GetParam(), weights);
  const auto exact = shares(weighted);
  ASSERT_TRUE(exact) << exact.error().message;
  EXPECT_TRUE(exact->exact);
  const auto snapshot = compiled(weighted);
  std::vector<double> counted(weights.size());
  for (std::size_t i = 0; i < kKeys; ++i) counted[snapshot->owner_before(scattered_keys()[i])] += 1.0 / kKeys;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double fair = GetParam().weights ? weights[i] / 12 : 1.0 / 5;
    EXPECT_NEAR(counted[i], fair, fair * GetParam().balance + noise(fair, kKeys)) << i;
    EXPECT_NEAR(counted[i], exact->shares[i], noise(fair, kKeys)) << "counted, and by shares(): " << i;
  }
}

TEST_P(PeerContract, AnAddedMemberTakesAndNobodyElseMovesWherePromised) {
  for (const std::size_t members : {4U, 9U}) {
    const Spec current = spec_of(GetParam(), members);
    const Spec next = spec_of(GetParam(), members + 1);
    const Pairs pairs = moved(current, next, kKeys);
    const std::string& fresh = next.members.back().id;
    const double minimum = 1.0 / static_cast<double>(members + 1);
    if (!GetParam().minimal) {
      EXPECT_GT(between_others(pairs, fresh), 0) << "promises nothing, and yet is minimal: correct the row";
      continue;
    }
    EXPECT_EQ(between_others(pairs, fresh), 0);
    EXPECT_NEAR(total(pairs), minimum, minimum * GetParam().balance * 1.5 + noise(minimum, kKeys));
  }
}

// Where all points are counted anew, a new weight moves keys between members that did not change.
TEST_P(PeerContract, AmongUnequalWeightsTooWherePromised) {
  if (!GetParam().weights || !GetParam().minimal) GTEST_SKIP() << "no weights, or no promise";
  const std::vector<double> weights = {6, 3, 2, 4, 10, 8, 9, 1};
  std::vector<double> more = weights;
  more.push_back(1);
  const Spec current = spec_of(GetParam(), weights), next = spec_of(GetParam(), more);
  const double others = between_others(moved(current, next, kKeys), next.members.back().id);
  if (GetParam().weighted) {
    EXPECT_EQ(others, 0);
  } else {
    EXPECT_GT(others, 0) << "is minimal by weight: correct the row";
  }
}

TEST_P(PeerContract, ARemovedMembersKeysSpreadOverTheSurvivors) {
  if (!GetParam().minimal) GTEST_SKIP() << "moves keys between members that stay";
  constexpr std::size_t kMembers = 6;
  const Spec current = spec_of(GetParam(), kMembers);
  Spec next = current;
  const std::size_t gone = GetParam().removes_anywhere ? 2 : kMembers - 1;
  next.members.erase(next.members.begin() + static_cast<std::ptrdiff_t>(gone));
  const Pairs pairs = moved(current, next, kKeys);
  EXPECT_EQ(between_others(pairs, current.members[gone].id), 0);
  EXPECT_EQ(pairs.size(), kMembers - 1) << "every survivor inherits";
  const double even = total(pairs) / (kMembers - 1);
  for (const auto& [pair, share] : pairs) {
    EXPECT_EQ(pair.first, current.members[gone].id);
    EXPECT_GT(share, even * GetParam().least_heir - noise(even, kKeys)) << pair.second;
  }
  if (GetParam().removes_anywhere) return;
  Spec middle = current;
  middle.members.erase(middle.members.begin() + 2);
  EXPECT_GT(between_others(moved(current, middle, kKeys), current.members[2].id), 0) << "correct the row";
}

TEST_P(PeerContract, DiffAgreesWithACountOverAMillionKeys) {
  const std::size_t count = scattered_keys().size();
  for (const std::vector<double>& weights : {std::vector<double>{1, 1, 1, 1, 1}, {1, 2, 3, 4, 2}}) {
    const Spec current = spec_of(GetParam(), weights);
    std::vector<double> more = weights;
    more.push_back(1);
    const Spec next = spec_of(GetParam(), more);
    const auto diff = topology::diff(current, next);
    ASSERT_TRUE(diff) << diff.error().message;
    EXPECT_EQ(diff->exact, GetParam().exact_diff);
    Pairs counted = moved(current, next, count);
    EXPECT_NEAR(diff->moved_share, total(counted), noise(diff->moved_share, count) + 2e-6);
    for (const PairShare& pair : diff->pairs) {
      EXPECT_NEAR(pair.share, (counted[{pair.from, pair.to}]), noise(pair.share, count) + 3e-6)
          << pair.from << " -> " << pair.to;
      counted.erase({pair.from, pair.to});
    }
    for (const auto& [pair, share] : counted)
      EXPECT_LT(share, 6e-6) << pair.first << " -> " << pair.second << " is missing in the diff";
  }
}

TEST_P(PeerContract, PreferenceListsAreDistinctKeepHostsApartAndSpreadZones) {
  Spec placed = spec_of(GetParam(), 8);
  for (std::size_t i = 0; i < placed.members.size(); ++i) {
    placed.members[i].host = "h" + std::to_string(i / 2);      // Two members a host: four hosts,
    placed.members[i].zone = i < 4 ? "a" : i < 6 ? "b" : "c";  // of which a has two.
  }
  const auto alone = compiled(spec_of(GetParam(), 8)), snapshot = compiled(placed);
  for (std::size_t i = 0; i < 500; ++i) {
    const std::string& key = scattered_keys()[i];
    const auto every = alone->preference_list(key, 8);
    ASSERT_EQ(std::set<MemberIndex>(every.begin(), every.end()).size(), 8U) << "all, each once";
    ASSERT_EQ(every.front(), alone->owner_before(key));
    const auto two = alone->preference_list(key, 2);
    ASSERT_TRUE(std::equal(two.begin(), two.end(), every.begin())) << "a longer list only adds";
    const auto apart = snapshot->preference_list(key, 8);
    std::set<std::string> hosts, zones;
    for (const MemberIndex index : apart) hosts.insert(snapshot->members()[index].host);
    ASSERT_EQ(apart.size(), 4U) << "fewer hosts than replicas: a shorter list";
    ASSERT_EQ(hosts.size(), 4U);
    const auto spread = snapshot->preference_list(key, 3, /*spread_zones=*/true);
    for (const MemberIndex index : spread) zones.insert(snapshot->members()[index].zone);
    ASSERT_EQ(zones.size(), 3U);
    ASSERT_EQ(spread.front(), snapshot->owner_before(key));
  }
}

// HAProxy numbers servers by their place unless they have ids of their own.
TEST(PeerOptions, HaproxysServersWithIdsMayLeaveAnywhere) {
  const auto row = std::ranges::find(peer_rows(), std::string_view("haproxy consistent"),
                                     [](const PlacementRow& each) { return std::string_view(each.name); });
  ASSERT_NE(row, peer_rows().end());
  Spec current = spec_of(*row, 6);
  for (std::size_t i = 0; i < current.members.size(); ++i) current.members[i].label = std::to_string(i + 1);
  Spec next = current;
  next.members.erase(next.members.begin() + 2);
  const Pairs pairs = moved(current, next, kKeys);
  EXPECT_GT(total(pairs), 0.05);
  EXPECT_EQ(between_others(pairs, current.members[2].id), 0);
  Spec backward = current;
  std::ranges::reverse(backward.members);
  EXPECT_EQ(total(moved(current, backward, kKeys)), 0) << "nor does their order matter then";
}

std::string test_name(const testing::TestParamInfo<PlacementRow>& row) {
  std::string name = row.param.name;
  std::ranges::replace_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Every, PeerContract, testing::ValuesIn(peer_rows()), test_name);

}  // namespace
}  // namespace ringshift::topology::contract
