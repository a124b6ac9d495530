// One suite over every placement of our own: what each must keep, and what some promise beyond that.
//
// A change of members goes through carry_over, as a resize does, so that placements with state (partitions,
// slots, memento, tokens) are judged by the change that they make and not by an order they do not promise.
// Keys are fixed; a failure repeats. Tolerances are six standard deviations where the share of a key set is
// compared, else the algorithm's own balance, which each row states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "hashing/xxh3.h"
#include "ringshift/carry_over.h"
#include "ringshift/diff.h"
#include "ringshift/snapshot.h"

namespace ringshift::topology {
namespace {

constexpr std::size_t kManyKeys = 1'000'000;
constexpr std::size_t kKeys = 100'000;

struct Row {
  const char* name;
  const char* algorithm;
  const char* hash = "xxh3";
  double balance = 0.01;         // Relative deviation of a share allowed beyond the sampling error.
  bool weights = true;           // Shares follow weights.
  bool any_order = true;         // The order of the members does not matter.
  bool minimal = true;           // A change moves keys only to or from the member that changed.
  bool removes_anywhere = true;  // Minimal also when the member removed is not the last.
  double least_heir = 0.85;      // A removed member's keys: the least that a survivor gets, of an even part.
  bool walk_is_removal = false;  // The second choice is the owner after the first one's removal.
  bool exact_diff = true;
  std::uint32_t points = 256;
};

// Ring shares deviate by 1/sqrt(points) a member; three of those. Its heirs by the few arcs that each gets.
const Row kRows[] = {
    {.name = "ring", .algorithm = "ring", .balance = 0.2, .least_heir = 0.4, .walk_is_removal = true},
    {.name = "ring_murmur3",
     .algorithm = "ring",
     .hash = "murmur3",
     .balance = 0.2,
     .least_heir = 0.4,
     .walk_is_removal = true},
    {.name = "ring_fnv1a_64",
     .algorithm = "ring",
     .hash = "fnv1a-64",
     .balance = 0.2,
     .least_heir = 0.4,
     .walk_is_removal = true},
    {.name = "bounded_ring",
     .algorithm = "bounded-ring",
     .balance = 0.2,
     .least_heir = 0.4,
     .walk_is_removal = true},
    {.name = "tokens",
     .algorithm = "tokens",
     .balance = 0.2,
     .weights = false,
     .least_heir = 0.4,
     .walk_is_removal = true},
    {.name = "multi_probe",
     .algorithm = "multi-probe",
     .balance = 0.15,
     .least_heir = 0.2,
     .walk_is_removal = true,
     .exact_diff = false,
     .points = 1},
    {.name = "rendezvous", .algorithm = "rendezvous", .walk_is_removal = true, .exact_diff = false},
    {.name = "jump", .algorithm = "jump", .weights = false, .any_order = false, .removes_anywhere = false},
    {.name = "memento", .algorithm = "memento", .weights = false, .any_order = false, .exact_diff = false},
    {.name = "partitions", .algorithm = "partitions", .least_heir = 0.8},
    {.name = "slots", .algorithm = "slots", .hash = "crc16", .any_order = false},
    {.name = "maglev", .algorithm = "maglev", .minimal = false},
    {.name = "modulo", .algorithm = "modulo", .any_order = false, .minimal = false},
};

std::string key(std::size_t i) { return "user:" + std::to_string(i); }

const std::vector<std::string>& keys() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < kManyKeys; ++i) out.push_back(key(i));
    return out;
  }();
  return all;
}

Member member(std::size_t number, double weight) {
  const std::string name = std::to_string(number);
  return {"cache-" + name, "10.0.0.1:" + std::to_string(7000 + number), weight, "", "", ""};
}

void give_tokens(Spec& spec, const std::string& id) {
  auto& list = spec.placement.tokens[id];
  for (std::uint64_t i = 0; i < spec.placement.points; ++i) list.push_back(hashing::xxh3(id, i));
}

Spec spec(const Row& row, const std::vector<double>& weights) {
  Spec out;
  out.cluster = "c";
  out.consistency = Consistency::none;
  out.placement.algorithm = row.algorithm;
  out.placement.hash = row.hash;
  out.placement.points = row.points;
  for (const double weight : weights) {
    out.members.push_back(member(out.members.size(), weight));
    if (row.algorithm == std::string_view("tokens")) give_tokens(out, out.members.back().id);
  }
  return out;
}

Spec spec(const Row& row, std::size_t members) { return spec(row, std::vector<double>(members, 1.0)); }

std::shared_ptr<const Snapshot> compile(Spec spec) {
  Topology topology;
  topology.spec = std::move(spec);
  auto snapshot = Snapshot::compile(std::move(topology), {});
  if (!snapshot) ADD_FAILURE() << snapshot.error().message;
  return snapshot ? *snapshot : nullptr;
}

Spec carried(const Spec& current, Spec next) {
  auto spec = carry_over(current, std::move(next));
  if (!spec) ADD_FAILURE() << spec.error().message;
  return spec ? *spec : current;
}

using Pairs = std::map<std::pair<std::string, std::string>, double>;  // (from, to) -> share of the keys.

Pairs moved(const Snapshot& a, const Snapshot& b, std::size_t count) {
  std::vector<std::size_t> counts(a.members().size() * b.members().size());
  std::vector<MemberIndex> same(a.members().size());
  for (std::size_t i = 0; i < same.size(); ++i) same[i] = b.index_of(a.members()[i].id);
  for (std::size_t i = 0; i < count; ++i) {
    const MemberIndex x = a.owner_before(keys()[i]), y = b.owner_before(keys()[i]);
    if (same[x] != y) ++counts[x * b.members().size() + y];
  }
  Pairs out;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    out[{a.members()[i / b.members().size()].id, b.members()[i % b.members().size()].id}] =
        static_cast<double>(counts[i]) / static_cast<double>(count);
  }
  return out;
}

double total(const Pairs& pairs) {
  double sum = 0;
  for (const auto& [pair, share] : pairs) sum += share;
  return sum;
}

std::vector<double> counted_shares(const Snapshot& snapshot) {
  std::vector<double> out(snapshot.members().size());
  for (std::size_t i = 0; i < kKeys; ++i) out[snapshot.owner_before(keys()[i])] += 1.0 / kKeys;
  return out;
}

double noise(double share, std::size_t count) { return 6 * std::sqrt(share / static_cast<double>(count)); }

class PlacementContract : public testing::TestWithParam<Row> {};

TEST_P(PlacementContract, NoMembersAreRefused) {
  Topology topology;
  topology.spec = spec(GetParam(), 0);
  const auto snapshot = Snapshot::compile(topology, {});
  ASSERT_FALSE(snapshot);
  EXPECT_THAT(snapshot.error().message, testing::HasSubstr("the list is empty"));
}

TEST_P(PlacementContract, OneMemberOwnsEverything) {
  const auto snapshot = compile(spec(GetParam(), 1));
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(snapshot->owner_before(key(i)), 0U);
}

TEST_P(PlacementContract, IsAFunctionOfTheSpecsText) {
  const Spec original = spec(GetParam(), 7);
  const auto again = parse_spec(to_json(original), "json");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, original);
  const auto a = compile(original), b = compile(*again);
  EXPECT_EQ(a->digest, b->digest);
  for (std::size_t i = 0; i < 2000; ++i) ASSERT_EQ(a->owner_before(key(i)), b->owner_before(key(i)));
}

TEST_P(PlacementContract, BatchesAnswerAsSingles) {
  const auto snapshot = compile(spec(GetParam(), 9));
  std::vector<std::string_view> views(keys().begin(), keys().begin() + 1001);
  std::vector<Route> routes(views.size());
  snapshot->route_many(views, routes);
  for (std::size_t i = 0; i < views.size(); ++i)
    ASSERT_EQ(routes[i].member, snapshot->route(views[i]).member);
}

TEST_P(PlacementContract, OrderOfMembersDoesNotMatterWherePromised) {
  if (!GetParam().any_order) GTEST_SKIP() << "by order: the list's order is part of the placement";
  Spec forward = spec(GetParam(), std::vector<double>(GetParam().weights ? 4 : 0, 2.0));
  for (std::size_t i = forward.members.size(); i < 8; ++i) {
    forward.members.push_back(member(i, 1));
    if (forward.placement.algorithm == "tokens") give_tokens(forward, forward.members.back().id);
  }
  Spec backward = forward;
  std::ranges::reverse(backward.members);
  const auto a = compile(forward), b = compile(backward);
  EXPECT_EQ(total(moved(*a, *b, kKeys)), 0);
}

TEST_P(PlacementContract, OrderDoesNotMatterOnceTheStateIsExplicit) {
  const Spec current = spec(GetParam(), 8);
  const std::string_view algorithm = GetParam().algorithm;
  if (algorithm == "jump" || algorithm == "modulo") GTEST_SKIP() << "nothing but the order says who is who";
  const Spec forward = carried(current, current);
  Spec backward = forward;
  std::ranges::reverse(backward.members);
  EXPECT_EQ(total(moved(*compile(current), *compile(backward), kKeys)), 0);
}

TEST_P(PlacementContract, SharesFollowWeights) {
  const std::vector<double> weights =
      GetParam().weights ? std::vector<double>{1, 2, 3, 4, 2} : std::vector<double>(5, 1.0);
  double sum = 0;
  for (const double weight : weights) sum += weight;
  const Spec weighted = spec(GetParam(), weights);
  const auto shares = counted_shares(*compile(weighted));
  const auto exact = topology::shares(weighted);
  ASSERT_TRUE(exact) << exact.error().message;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double fair = weights[i] / sum;
    EXPECT_NEAR(shares[i], fair, fair * GetParam().balance + noise(fair, kKeys)) << i;
    EXPECT_NEAR(shares[i], exact->shares[i], noise(fair, kKeys)) << "counted, and by shares(): " << i;
  }
}

TEST_P(PlacementContract, UnequalWeightsAreRefusedWhereTheyMeanNothing) {
  const std::string_view algorithm = GetParam().algorithm;
  if (algorithm != "jump" && algorithm != "memento") GTEST_SKIP() << "weights are legal";
  Topology topology;
  topology.spec = spec(GetParam(), {1, 2});
  EXPECT_THAT(Snapshot::compile(topology, {}).error().message, testing::HasSubstr("knows no weights"));
}

TEST_P(PlacementContract, AddedMemberTakesAndNobodyElseMoves) {
  for (const std::size_t members : {1U, 4U, 10U}) {
    const Spec current = spec(GetParam(), members);
    Spec next = current;
    next.members.push_back(member(members, 1));
    if (next.placement.algorithm == "tokens" && members > 1) {
      give_tokens(next, next.members.back().id);  // As an operator does; carry_over's gaps are tried below.
    } else {
      next = carried(current, next);
    }
    const Pairs pairs = moved(*compile(current), *compile(next), kKeys);
    const double minimum = 1.0 / static_cast<double>(members + 1);
    if (!GetParam().minimal) {
      double others = 0;
      for (const auto& [pair, share] : pairs)
        if (pair.second != next.members.back().id) others += share;
      EXPECT_EQ(others == 0, members == 1) << "promises nothing, and yet is minimal: correct the row";
      std::printf("%s %zu -> %zu: moved %.3f, of which %.3f between others; minimum %.3f\n", GetParam().name,
                  members, members + 1, total(pairs), others, minimum);
      continue;
    }
    for (const auto& [pair, share] : pairs) EXPECT_EQ(pair.second, next.members.back().id);
    EXPECT_NEAR(total(pairs), minimum, minimum * GetParam().balance + noise(minimum, kKeys));
  }
}

TEST_P(PlacementContract, RemovedMembersKeysSpreadOverTheSurvivors) {
  if (!GetParam().minimal) GTEST_SKIP() << "moves keys between members that stay";
  const std::size_t members = 8, gone = GetParam().removes_anywhere ? 3 : members - 1;
  const Spec current = spec(GetParam(), members);
  Spec next = current;
  next.members.erase(next.members.begin() + static_cast<std::ptrdiff_t>(gone));
  const Pairs pairs = moved(*compile(current), *compile(carried(current, next)), kKeys);
  const double even = total(pairs) / static_cast<double>(members - 1);
  EXPECT_EQ(pairs.size(), members - 1) << "every survivor inherits";
  for (const auto& [pair, share] : pairs) {
    EXPECT_EQ(pair.first, current.members[gone].id);
    EXPECT_GT(share, even * GetParam().least_heir - noise(even, kKeys)) << pair.second;
    EXPECT_LT(share, even / GetParam().least_heir + noise(even, kKeys)) << pair.second;
  }
}

// Three come, two go, one comes back: each step minimal, whatever the state that it left behind.
TEST_P(PlacementContract, AHistoryOfChangesStaysMinimal) {
  if (!GetParam().minimal || !GetParam().removes_anywhere) GTEST_SKIP() << "no promise";
  Spec current = spec(GetParam(), 6);
  const auto step = [&](const std::set<std::size_t>& numbers, double minimum) {
    Spec next = current;
    next.members.clear();
    for (const std::size_t number : numbers) next.members.push_back(member(number, 1));
    if (next.placement.algorithm == "tokens") {
      next.placement.tokens.clear();
      for (const Member& one : next.members) give_tokens(next, one.id);
    } else {
      next = carried(current, next);
    }
    const Pairs pairs = moved(*compile(current), *compile(next), kKeys);
    std::set<std::string> before, after;
    for (const Member& one : current.members) before.insert(one.id);
    for (const Member& one : next.members) after.insert(one.id);
    for (const auto& [pair, share] : pairs)
      EXPECT_NE(after.contains(pair.first), before.contains(pair.second))
          << pair.first << " -> " << pair.second;
    EXPECT_NEAR(total(pairs), minimum, minimum * GetParam().balance * 2 + noise(minimum, kKeys));
    current = next;
  };
  step({0, 1, 2, 3, 4, 5, 6}, 1.0 / 7);
  step({0, 1, 2, 3, 4, 5, 6, 7, 8}, 2.0 / 9);
  step({0, 1, 3, 4, 5, 6, 7, 8}, 1.0 / 9);
  step({0, 1, 3, 4, 6, 7, 8}, 1.0 / 8);
  step({0, 1, 3, 4, 6, 7, 8, 9}, 1.0 / 8);
  step({0, 1, 2, 3, 4, 6, 7, 8, 9}, 1.0 / 9);
  step({0, 1, 2, 3, 4, 6, 7, 8}, 1.0 / 9);
  const auto shares = counted_shares(*compile(current));
  for (const double share : shares)
    EXPECT_NEAR(share, 1.0 / 8, (GetParam().balance + 0.001) / 4 + noise(1.0 / 8, kKeys));
}

TEST_P(PlacementContract, DiffAgreesWithACountOverAMillionKeys) {
  const Spec current = spec(GetParam(), 5);
  Spec next = current;
  next.members.push_back(member(5, 1));
  next = carried(current, next);
  const auto diff = topology::diff(current, next);
  ASSERT_TRUE(diff) << diff.error().message;
  EXPECT_EQ(diff->exact, GetParam().exact_diff);
  Pairs counted = moved(*compile(current), *compile(next), kManyKeys);
  EXPECT_NEAR(diff->moved_share, total(counted), noise(diff->moved_share, kManyKeys));
  // A sampled diff has the same noise once more.
  const double times = diff->exact ? 1 : std::sqrt(2.0);
  for (const PairShare& pair : diff->pairs) {
    EXPECT_NEAR(pair.share, (counted[{pair.from, pair.to}]), times * noise(pair.share, kManyKeys) + 2e-6)
        << pair.from << " -> " << pair.to;
    counted.erase({pair.from, pair.to});
  }
  for (const auto& [pair, share] : counted)
    EXPECT_LT(share, 3e-6) << pair.first << " -> " << pair.second << " is missing in the diff";
}

TEST_P(PlacementContract, PreferenceListsAreDistinctAndBeginAtTheOwner) {
  const auto snapshot = compile(spec(GetParam(), 6));
  for (std::size_t i = 0; i < 500; ++i) {
    const auto list = snapshot->preference_list(key(i), 6);
    ASSERT_EQ(list.size(), 6U);
    EXPECT_EQ(list.front(), snapshot->owner_before(key(i)));
    EXPECT_EQ(std::set<MemberIndex>(list.begin(), list.end()).size(), 6U);
    const auto shorter = snapshot->preference_list(key(i), 2);
    EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), list.begin())) << "a longer list only adds";
  }
}

TEST_P(PlacementContract, PreferenceListsKeepHostsApartAndSpreadZones) {
  Spec placed = spec(GetParam(), 8);
  for (std::size_t i = 0; i < placed.members.size(); ++i) {
    placed.members[i].host = "h" + std::to_string(i / 2);      // Two members a host: four hosts,
    placed.members[i].zone = i < 4 ? "a" : i < 6 ? "b" : "c";  // of which a has two.
  }
  const auto snapshot = compile(placed);
  for (std::size_t i = 0; i < 500; ++i) {
    const auto all = snapshot->preference_list(key(i), 8);
    ASSERT_EQ(all.size(), 4U) << "fewer hosts than replicas: a shorter list";
    std::set<std::string> hosts, zones;
    for (const MemberIndex index : all) hosts.insert(snapshot->members()[index].host);
    EXPECT_EQ(hosts.size(), 4U);
    const auto spread = snapshot->preference_list(key(i), 3, /*spread_zones=*/true);
    for (const MemberIndex index : spread) zones.insert(snapshot->members()[index].zone);
    EXPECT_EQ(zones.size(), 3U);
    EXPECT_EQ(spread.front(), snapshot->owner_before(key(i)));
  }
}

TEST_P(PlacementContract, SecondChoiceInheritsWherePromised) {
  if (!GetParam().walk_is_removal) GTEST_SKIP() << "the walk is our own and promises only to meet everybody";
  const Spec current = spec(GetParam(), 6);
  Spec next = current;
  next.members.erase(next.members.begin() + 2);
  next = carried(current, next);
  const auto a = compile(current), b = compile(next);
  for (std::size_t i = 0; i < 20'000; ++i) {
    if (a->owner_before(keys()[i]) != 2) continue;
    const MemberIndex heir = a->preference_list(keys()[i], 2)[1];
    ASSERT_EQ(a->members()[heir].id, b->members()[b->owner_before(keys()[i])].id);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, PlacementContract, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace ringshift::topology
