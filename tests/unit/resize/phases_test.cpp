// Every transition of the topology over a resize, and how steps share the slices out.
#include "resize/phases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ringshift/snapshot.h"

namespace ringshift::resize {
namespace {

using topology::Phase;
using topology::Topology;

topology::Spec spec(std::initializer_list<const char*> ids) {
  topology::Spec out;
  out.cluster = "test";
  int port = 7000;
  for (const char* id : ids) {
    topology::Member member;
    member.id = id;
    member.address = "127.0.0.1:" + std::to_string(port++);
    out.members.push_back(member);
  }
  return out;
}

Topology start() {
  Topology now;
  now.spec = spec({"a", "b"});
  now.fence.epoch = 3;
  now.fence.step = 7;
  return now;
}

// What a router makes of it: the document must be valid, and survive the way through the registry.
std::shared_ptr<const topology::Snapshot> compiled(const Topology& topology) {
  const auto parsed = topology::parse_topology(topology::to_json(topology), "test");
  if (!parsed) throw std::runtime_error(parsed.error().message);
  EXPECT_EQ(*parsed, topology);
  auto snapshot = topology::Snapshot::compile(*parsed, {1, 1});
  if (!snapshot) throw std::runtime_error(snapshot.error().message);
  return *snapshot;
}

const topology::SliceSet kHalf = {{0, 512}}, kRest = {{512, 1024}};

TEST(Phases, ForwardStepByStep) {
  const Topology a = start();
  const Topology prep = begin(a, spec({"a", "b", "c"}), "r1", {{"a", "1"}});
  EXPECT_EQ(prep.fence.epoch, 4U);
  EXPECT_EQ(prep.fence.step, 8U);
  EXPECT_EQ(prep.resize->phase, Phase::prep);
  EXPECT_TRUE(prep.resize->active.empty() && prep.resize->done.empty());
  EXPECT_EQ(prep.spec.members, a.spec.members);

  const Topology held = hold(prep, kHalf, {{"a", "2"}});
  EXPECT_EQ(held.fence.epoch, 4U) << "an epoch is for a direction, not for a step";
  EXPECT_EQ(held.fence.step, 9U);
  EXPECT_EQ(held.fence.run_ids.at("a"), "2");
  EXPECT_EQ(held.resize->phase, Phase::hold);
  EXPECT_EQ(held.resize->active, kHalf);

  const Topology opened = dual(held);
  EXPECT_EQ(opened.fence, held.fence) << "DUAL belongs to the barrier of its HOLD";
  EXPECT_EQ(opened.resize->phase, Phase::dual);

  const Topology settled = settle(opened);
  EXPECT_EQ(settled.fence, held.fence);
  EXPECT_EQ(settled.resize->done, kHalf);
  EXPECT_TRUE(settled.resize->active.empty());

  const Topology last = finish(settle(dual(hold(settled, kRest, {}))));
  EXPECT_FALSE(last.resize);
  EXPECT_EQ(last.spec.members.size(), 3U);
  EXPECT_EQ(last.fence.step, 10U) << "the fence only grows, for ever";
  for (const Topology& topology : {prep, held, opened, settled, last}) compiled(topology);
}

TEST(Phases, CallOffLeavesTheSlicesWithOld) {
  const Topology prep = begin(start(), spec({"a", "b", "c"}), "r1", {});
  const Topology off = call_off(hold(settle(dual(hold(prep, kHalf, {}))), kRest, {}));
  EXPECT_EQ(off.resize->phase, Phase::prep);
  EXPECT_TRUE(off.resize->active.empty());
  EXPECT_EQ(off.resize->done, kHalf) << "what an earlier step moved stays moved";
  compiled(off);
}

TEST(Phases, FinishOfAHalfDoneResizeKeepsA) {
  const Topology prep = begin(start(), spec({"a", "b", "c"}), "r1", {});
  EXPECT_EQ(finish(prep).spec, prep.spec);
  EXPECT_EQ(finish(prep).spec.members.size(), 2U);
}

// Where a key that moves goes in each topology of a resize with a rollback. This is what routers do.
TEST(Phases, RoutesOfAMovingKeyForwardAndBack) {
  const Topology a = start();
  const Topology prep = begin(a, spec({"a", "b", "c"}), "r1", {});
  const topology::SliceSet all = {{0, 1024}};
  const auto probe = compiled(prep);
  std::string key;
  for (int i = 0; key.empty(); ++i) {
    const std::string candidate = "k" + std::to_string(i);
    if (probe->owner_before(candidate) != probe->owner_after(candidate)) key = candidate;
  }
  const auto old_member = probe->owner_before(key), new_member = probe->owner_after(key);
  const auto expect = [&](const Topology& topology, topology::KeyState state, topology::MemberIndex source,
                          topology::MemberIndex member, const char* what) {
    const topology::Route route = compiled(topology)->route(key);
    EXPECT_EQ(route.state, state) << what;
    EXPECT_EQ(route.source, source) << what;
    EXPECT_EQ(route.member, member) << what;
  };
  using topology::KeyState;
  const Topology held = hold(prep, all, {}), opened = dual(held), settled = settle(opened);
  expect(prep, KeyState::settled, old_member, old_member, "PREP");
  expect(held, KeyState::hold, old_member, new_member, "HOLD");
  expect(opened, KeyState::dual, old_member, new_member, "DUAL");
  expect(settled, KeyState::settled, new_member, new_member, "NEW");
  const Topology back = begin_rollback(settled, {{"a", "9"}});
  EXPECT_EQ(back.fence.epoch, settled.fence.epoch + 1);
  EXPECT_EQ(back.fence.step, settled.fence.step + 1);
  EXPECT_EQ(back.resize->active, all);
  expect(back, KeyState::hold, new_member, old_member, "rollback HOLD");
  expect(dual(back), KeyState::dual, new_member, old_member, "rollback DUAL");
  expect(settle(dual(back)), KeyState::settled, old_member, old_member, "rollback settled: A's again");
  expect(finish(settle(dual(back))), KeyState::settled, old_member, old_member, "rolled back");
  EXPECT_EQ(finish(settle(dual(back))).spec, prep.spec);
}

TEST(Phases, RollbackTakesBackWhatMovedAndWhatMayHave) {
  const Topology prep = begin(start(), spec({"a", "b", "c"}), "r1", {});
  const Topology second = dual(hold(settle(dual(hold(prep, {{0, 100}}, {}))), {{100, 300}}, {}));
  const Topology back = begin_rollback(second, {});
  EXPECT_EQ(back.resize->active, (topology::SliceSet{{0, 300}}));
  EXPECT_TRUE(back.resize->done.empty());
}

TEST(Steps, ShareTheSlicesOutOnceEach) {
  const std::vector<std::vector<double>> plans = {{100},        {1, 10, 50, 100},       {50, 100},
                                                  {0.01, 100},  {0.01, 0.02, 0.2, 100}, {33.3, 66.6, 100},
                                                  {99.99, 100}, {99.999, 99.9999, 100}};
  for (const auto& percent : plans) {
    ASSERT_TRUE(check_steps(percent));
    std::multiset<std::uint32_t> seen;
    for (std::size_t i = 0; i < percent.size(); ++i) {
      for (const auto& range : slices_of_step(percent, i)) {
        for (std::uint32_t slice = range.begin; slice < range.end; ++slice) seen.insert(slice);
      }
    }
    EXPECT_EQ(seen.size(), topology::kSliceCount);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), topology::kSliceCount);
  }
}

TEST(Steps, NextStepWalksThroughAllAndSkipsEmptyOnes) {
  const std::vector<double> percent = {0.01, 1, 50, 100};  // The first has no slice of its own.
  topology::SliceSet done;
  std::vector<std::size_t> walked;
  for (std::size_t step = next_step(percent, done); step < percent.size(); step = next_step(percent, done)) {
    walked.push_back(step);
    ASSERT_LE(walked.size(), percent.size());
    done = topology::unite(done, slices_of_step(percent, step));
  }
  EXPECT_EQ(walked, (std::vector<std::size_t>{1, 2, 3}));
  EXPECT_EQ(topology::count(done), topology::kSliceCount);
}

TEST(Steps, BadOnesAreRefusedWithAnExample) {
  for (const std::vector<double>& bad : {std::vector<double>{},
                                         {50},
                                         {0, 100},
                                         {-1, 100},
                                         {50, 50, 100},
                                         {60, 50, 100},
                                         {100, 101},
                                         {std::nan(""), 100},
                                         {1, std::nan("")}}) {
    const Status checked = check_steps(bad);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().kind, ErrorKind::invalid);
    EXPECT_TRUE(checked.error().message.contains("example")) << checked.error().message;
  }
}

TEST(AllMembers, AThenThoseOnlyBHas) {
  const Topology prep = begin(start(), spec({"c", "b"}), "r1", {});
  std::vector<std::string> ids;
  for (const auto& member : all_members(prep)) ids.push_back(member.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(all_members(start()).size(), 2U);
}

}  // namespace
}  // namespace ringshift::resize
