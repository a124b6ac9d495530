// Snapshots: who takes a key in each phase of a resize, and with lifecycle factors; and the diff of two
// specs.
#include "ringshift/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "ringshift/diff.h"
#include "ringshift/snapshot_holder.h"

namespace ringshift::topology {
namespace {

std::vector<Member> members(int count) {
  std::vector<Member> out;
  for (int i = 1; i <= count; ++i) {
    out.push_back({"cache-" + std::to_string(i), "10.0.0.1:" + std::to_string(7000 + i), 1.0, "", "", ""});
  }
  return out;
}

Spec spec(int count, std::string algorithm = "ring") {
  Spec out;
  out.cluster = "cache";
  out.members = members(count);
  if (algorithm == "slots") out.placement.hash = "crc16";
  out.placement.algorithm = std::move(algorithm);
  return out;
}

Topology growing(Phase phase, bool rollback) {
  Topology topology;
  topology.spec = spec(4);
  Resize resize;
  resize.id = "r";
  resize.placement = topology.spec.placement;
  resize.members = members(5);
  resize.phase = phase;
  resize.rollback = rollback;
  resize.done = {{0, 256}};
  resize.active = {{256, 512}};
  topology.resize = resize;
  return topology;
}

std::shared_ptr<const Snapshot> compile(Topology topology) {
  auto snapshot = Snapshot::compile(std::move(topology), {1, 2});
  EXPECT_TRUE(snapshot) << snapshot.error().message;
  return *snapshot;
}

std::string key(int i) { return "user:" + std::to_string(i); }

// The definition, written once more in the plainest way.
Route expected(const Snapshot& snapshot, const std::string& k) {
  const Resize& resize = *snapshot.topology().resize;
  const std::uint32_t slice = snapshot.slice(k);
  const MemberIndex a = snapshot.owner_before(k), b = snapshot.owner_after(k);
  if (slice < 256) return {b, b, KeyState::settled};
  if (slice >= 512) return {a, a, KeyState::settled};
  const MemberIndex source = resize.rollback ? b : a, destination = resize.rollback ? a : b;
  if (a == b || resize.phase == Phase::prep) return {source, source, KeyState::settled};
  return {destination, source, resize.phase == Phase::hold ? KeyState::hold : KeyState::dual};
}

TEST(Snapshot, EveryPhaseInBothDirections) {
  for (const Phase phase : {Phase::prep, Phase::hold, Phase::dual}) {
    for (const bool rollback : {false, true}) {
      const auto snapshot = compile(growing(phase, rollback));
      std::map<KeyState, int> states;
      for (int i = 0; i < 20'000; ++i) {
        const Route route = snapshot->route(key(i)), want = expected(*snapshot, key(i));
        ASSERT_EQ(route.member, want.member) << key(i);
        ASSERT_EQ(route.source, want.source) << key(i);
        ASSERT_EQ(route.state, want.state) << key(i);
        ++states[route.state];
      }
      const int moving = 20'000 - states[KeyState::settled];
      if (phase == Phase::prep) {
        EXPECT_EQ(moving, 0);
      } else {
        EXPECT_NEAR(moving, 20'000 * 0.25 * 0.21, 200) << "a fifth of the active quarter";
      }
    }
  }
}

// A lost source's keys wait in HOLD like all others; past it they are their destination's.
TEST(Snapshot, PastHoldALostSourceIsNotAsked) {
  for (const Phase phase : {Phase::prep, Phase::hold, Phase::dual}) {
    for (const bool rollback : {false, true}) {
      Topology topology = growing(phase, rollback);
      const auto whole = compile(topology);
      topology.resize->lost = {rollback ? "cache-5" : "cache-2"};
      const auto snapshot = compile(topology);
      const MemberIndex lost = snapshot->index_of(topology.resize->lost[0]);
      int given_up = 0;
      for (int i = 0; i < 20'000; ++i) {
        const Route route = snapshot->route(key(i)), before = whole->route(key(i));
        ASSERT_EQ(route.member, before.member) << key(i);
        const bool given = before.state == KeyState::dual && before.source == lost;
        given_up += given;
        ASSERT_EQ(route.state, given ? KeyState::settled : before.state) << key(i);
        ASSERT_EQ(route.source, given ? route.member : before.source) << key(i);
      }
      EXPECT_EQ(given_up > 0, phase == Phase::dual);
    }
  }
}

TEST(Snapshot, OwnersAgreeWithCompiledSpecs) {
  const auto snapshot = compile(growing(Phase::dual, false));
  Topology four, five;
  four.spec = spec(4);
  five.spec = spec(5);
  const auto before = compile(four), after = compile(five);
  ASSERT_EQ(snapshot->members().size(), 5U);
  EXPECT_EQ(snapshot->index_of("cache-5"), 4U);
  EXPECT_EQ(snapshot->index_of("cache-9"), kNoMember);
  for (int i = 0; i < 5'000; ++i) {
    EXPECT_EQ(snapshot->owner_before(key(i)), before->route(key(i)).member);
    EXPECT_EQ(snapshot->owner_after(key(i)), after->route(key(i)).member);
    EXPECT_EQ(before->route(key(i)).state, KeyState::settled);
  }
}

TEST(Snapshot, SlicesUseTheTagOfAOrElseOfB) {
  Topology topology = growing(Phase::dual, false);
  EXPECT_NE(compile(topology)->slice("{tag}1"), compile(topology)->slice("tag"));
  topology.resize->placement.hash_tag = "{}";
  EXPECT_EQ(compile(topology)->slice("{tag}1"), slice_of("tag"));
  topology.spec.placement.hash_tag = "[]";
  EXPECT_EQ(compile(topology)->slice("[tag]{x}"), slice_of("tag"));
}

TEST(Snapshot, RefusesWhatCannotBeCompiled) {
  Topology topology;
  topology.spec = spec(2);
  topology.spec.placement.algorithm = "chord";
  EXPECT_THAT(Snapshot::compile(topology, {}).error().message, testing::HasSubstr("'chord'"));
  topology.spec = spec(0);
  EXPECT_THAT(Snapshot::compile(topology, {}).error().message, testing::HasSubstr("empty"));
}

TEST(Snapshot, ExplainNamesTheOwner) {
  for (const char* algorithm : {"ring", "modulo", "slots"}) {
    Topology topology;
    topology.spec = spec(4, algorithm);
    const auto snapshot = compile(topology);
    const auto walk = snapshot->explain("user:1");
    EXPECT_EQ(walk.back(), "owner " + snapshot->members()[snapshot->owner_before("user:1")].id);
  }
}

TEST(Holder, OnlyNewerVersionsArePublished) {
  Topology topology;
  topology.spec = spec(1);
  const auto make = [&](Version version) { return *Snapshot::compile(topology, version); };
  SnapshotHolder<Snapshot> holder(make({1, 5}));
  EXPECT_FALSE(holder.publish(make({1, 5})));
  EXPECT_FALSE(holder.publish(make({0, 9})));
  EXPECT_TRUE(holder.publish(make({1, 6})));
  EXPECT_TRUE(holder.publish(make({2, 1})));
  EXPECT_EQ(holder.generation(), 2U);
  EXPECT_EQ(to_string(holder.load()->version), "2.1");
}

TEST(Lifecycle, ARisingFactorMovesKeysOnlyToTheMember) {
  for (const char* algorithm : {"ring", "modulo", "slots"}) {
    Topology topology;
    topology.spec = spec(4, algorithm);
    topology.spec.consistency = Consistency::none;
    const auto full = compile(topology);
    std::vector<MemberIndex> previous;
    int at_half = 0, at_full = 0;
    for (const std::uint32_t factor : {0U, 250U, 500U, 999U}) {
      topology.factors["cache-2"] = factor;
      const auto snapshot = compile(topology);
      std::vector<MemberIndex> now;
      for (int i = 0; i < 4'000; ++i) now.push_back(snapshot->route(key(i)).member);
      for (std::size_t i = 0; i < now.size(); ++i) {
        const MemberIndex home = full->route(key(static_cast<int>(i))).member;
        if (home != 1) {
          EXPECT_EQ(now[i], home) << "the others' keys stay";
        } else if (factor == 0) {
          EXPECT_NE(now[i], 1U) << "0 is out";
        }
        if (!previous.empty() && now[i] != previous[i]) {
          EXPECT_EQ(now[i], 1U) << "only to the member";
        }
        at_half += factor == 500 && now[i] == 1;
        at_full += factor == 500 && home == 1;
      }
      previous = now;
    }
    EXPECT_NEAR(at_half, at_full / 2, 80) << algorithm;
  }
}

TEST(Lifecycle, WhenNobodyTakesAKeyItsOwnerDoes) {
  Topology topology;
  topology.spec = spec(3);
  topology.spec.consistency = Consistency::cache;
  const auto full = compile(topology);
  topology.factors = {{"cache-1", 0}, {"cache-2", 0}, {"cache-3", 0}};
  const auto none = compile(topology);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(none->route(key(i)).member, full->route(key(i)).member);
}

double counted(const Spec& from, const Spec& to) {
  Topology a, b;
  a.spec = from;
  b.spec = to;
  const auto before = compile(a), after = compile(b);
  int moved = 0;
  for (int i = 0; i < 100'000; ++i) {
    moved += before->members()[before->route(key(i)).member].id !=
             after->members()[after->route(key(i)).member].id;
  }
  return moved / 100'000.0;
}

TEST(Diff, FourToFiveOnTheRing) {
  const auto diff = topology::diff(spec(4), spec(5));
  ASSERT_TRUE(diff);
  EXPECT_TRUE(diff->exact);
  EXPECT_NEAR(diff->moved_share, 0.20, 0.02);
  EXPECT_DOUBLE_EQ(diff->minimum_share, 0.2);
  ASSERT_EQ(diff->pairs.size(), 4U);
  double sum = 0;
  for (const PairShare& pair : diff->pairs) {
    EXPECT_EQ(pair.to, "cache-5") << "only to the new member";
    sum += pair.share;
  }
  EXPECT_NEAR(sum, diff->moved_share, 1e-12);
  EXPECT_NEAR(counted(spec(4), spec(5)), diff->moved_share, 0.005);
  EXPECT_NEAR(shares(spec(5))->shares[4], diff->moved_share, 1e-12) << "the new member has nothing else";
}

TEST(Diff, ModuloIsExactByResidues) {
  struct Case {
    int from, to;
    double moved;
  };
  for (const Case& c : {Case{3, 4, 0.75}, {4, 5, 0.80}, {6, 8, 0.75}, {7, 8, 0.875}, {10, 11, 10.0 / 11}}) {
    const auto diff = topology::diff(spec(c.from, "modulo"), spec(c.to, "modulo"));
    EXPECT_TRUE(diff->exact);
    EXPECT_NEAR(diff->moved_share, c.moved, 1e-12) << c.from << " -> " << c.to;
  }
}

TEST(Diff, SlotsAreExactAndUnlikePlacementsAreSampled) {
  const auto slots = topology::diff(spec(3, "slots"), spec(4, "slots"));
  EXPECT_TRUE(slots->exact);
  EXPECT_NEAR(slots->moved_share, counted(spec(3, "slots"), spec(4, "slots")), 0.005);
  const auto mixed = topology::diff(spec(4, "modulo"), spec(4));
  EXPECT_FALSE(mixed->exact);
  EXPECT_NEAR(mixed->moved_share, 0.75, 0.01);
  EXPECT_EQ(topology::diff(spec(4), spec(4))->moved_share, 0);
  EXPECT_TRUE(topology::diff(spec(4), spec(4))->pairs.empty());
  Spec bad = spec(4);
  bad.members[0].weight = -1;
  EXPECT_THAT(topology::diff(spec(4), bad).error().message, testing::HasSubstr("to: members[0].weight"));
}

TEST(Shares, SumToOne) {
  for (const char* algorithm : {"ring", "modulo", "slots"}) {
    Spec weighted = spec(5, algorithm);
    weighted.members[2].weight = 3;
    const auto result = shares(weighted);
    double sum = 0;
    for (const double share : result->shares) sum += share;
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_NEAR(result->shares[2], 3.0 / 7, 0.04) << algorithm;
  }
}

}  // namespace
}  // namespace ringshift::topology
