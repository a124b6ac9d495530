// The controller with a real registry and real members.
#include "resize/controller.h"

#include <atomic>

#include "controller_world.h"

namespace ringshift::resize {
namespace {

TEST_F(ControllerTest, FirstTopologyThenAResizeInSteps) {
  start_controller();
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  start_router();
  fill();
  EXPECT_EQ(start(spec({"a", "b"}), {10, 50, 100}), "");
  ASSERT_TRUE(wait_for("finished"));
  const ResizeStatus last = status();
  EXPECT_FALSE(last.rolled_back);
  EXPECT_EQ(last.steps, 3U);
  EXPECT_EQ(last.fences, 0U);
  EXPECT_GT(last.keys_moved, 50U);
  ASSERT_EQ(last.pairs.size(), 1U);
  EXPECT_EQ(last.pairs[0].moved, last.keys_moved);
  EXPECT_EQ(topology()->spec.members.size(), 2U);
  EXPECT_EQ(topology::parse_spec((*coordinator_->get(keys_.spec()))->value, "spec")->members.size(), 2U);
  expect_all_keys_in_place();
  EXPECT_TRUE(b_.command("GET rs:stamp").contains(".done.")) << "I10: no gate is left open";
  // Each HOLD is a step of its own, all of one epoch, and DUAL comes only after it.
  std::uint64_t holds = 0;
  for (const topology::Topology& one : history()) {
    if (!one.resize) continue;
    EXPECT_EQ(one.fence.epoch, 1U);
    holds += one.resize->phase == Phase::hold ? 1 : 0;
    if (one.resize->phase == Phase::dual) {
      EXPECT_EQ(one.fence.step, holds + 1);
    }
  }
  EXPECT_EQ(holds, 3U);
}

TEST_F(ControllerTest, RefusedRequestsSayWhy) {
  start_controller();
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  start_router();
  const auto expect = [](const std::string& answer, const char* part) {
    EXPECT_TRUE(answer.contains(part)) << answer;
  };
  expect(ask(Request::Action::pause), "no resize is running");
  expect(ask(Request::Action::rollback), "no resize is running");
  expect(ask(Request::Action::start), "no spec");
  topology::Spec other = spec({"a", "b"});
  other.cluster = "other";
  expect(start(other), "cluster 'other'");
  topology::Spec moved = spec({"a", "b"});
  moved.members[0].address = "127.0.0.1:1";
  expect(start(moved), "its address is");
  topology::Spec none = spec({"a", "b"});
  none.consistency = topology::Consistency::none;
  expect(start(none), "consistency");
  expect(start(spec({"a", "b"}), {50}), "the last one must be 100");
  static_cast<void>(b_.command("SET stray 1"));
  const auto foreign = connection(b_, "app");
  Request strict;
  strict.spec = spec({"a", "b"});
  expect(ask(strict), "is not ours");
  b_.kill();
  expect(start(spec({"a", "b"})), "member b");
  EXPECT_FALSE(topology()->resize) << "a refused request changes nothing";
}

TEST_F(ControllerTest, NonsenseInTheRegistryIsAnsweredAndDoesNoHarm) {
  start_controller();
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  put(keys_.request(), "\xff{]");
  ASSERT_TRUE(wait([&] { return !(*coordinator_->get(keys_.request())); }));
  EXPECT_NE(status().request_error, "");
  put(keys_.status(), "[]");
  EXPECT_TRUE(ask(Request::Action::pause).contains("no resize"));
}

TEST_F(ControllerTest, PauseStopsTheMoveAndResumeEndsIt) {
  start_controller();
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  start_router();
  fill();
  ASSERT_EQ(start(spec({"a", "b"}, 50)), "");
  ASSERT_TRUE(wait([&] { return status().keys_moved > 5; }));
  ASSERT_EQ(ask(Request::Action::pause), "");
  ASSERT_TRUE(wait_for("paused"));
  const std::string before = b_.command("DBSIZE");
  std::this_thread::sleep_for(milliseconds(600));
  EXPECT_EQ(b_.command("DBSIZE"), before);
  EXPECT_TRUE(in_phase(Phase::dual));
  ASSERT_EQ(ask(Request::Action::resume), "");
  Request rate;
  rate.action = Request::Action::set_rate;
  rate.keys_per_second = 100000;
  ASSERT_EQ(ask(rate), "");
  ASSERT_TRUE(wait_for("finished"));
  expect_all_keys_in_place();
}

TEST_F(ControllerTest, RollbackBeforeAnythingMovedDropsTheResize) {
  start_controller(milliseconds(1500));
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  const auto silent = router("silent", [](const topology::Topology&) { return false; });
  fill();
  ASSERT_EQ(start(spec({"a", "b"})), "");  // PREP waits for the silent router.
  ASSERT_EQ(ask(Request::Action::rollback), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_TRUE(status().rolled_back);
  EXPECT_EQ(topology()->spec.members.size(), 1U);
  for (const topology::Topology& one : history()) {
    EXPECT_FALSE(one.resize && one.resize->phase == Phase::dual);
  }
  expect_all_keys_in_place();
}

// The rollback of a resize that has moved keys. In every topology on the way, a key that moved is either
// held, or in DUAL back to A, or with A: never settled at B once the rollback has begun.
TEST_F(ControllerTest, RollbackAfterDualBringsEveryKeyBack) {
  start_controller();
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  start_router();
  fill();
  ASSERT_EQ(start(spec({"a", "b"}, 100), {30, 100}), "");
  ASSERT_TRUE(wait([&] {
    return topology()->resize && topology::count(topology()->resize->done) > 0 && in_phase(Phase::dual);
  }));
  ASSERT_EQ(ask(Request::Action::rollback), "");
  EXPECT_NE(ask(Request::Action::rollback), "") << "it is being rolled back already, or has been";
  Request rate;
  rate.action = Request::Action::set_rate;
  rate.keys_per_second = 100000;
  static_cast<void>(ask(rate));
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_TRUE(status().rolled_back);
  EXPECT_EQ(topology()->spec.members.size(), 1U);
  EXPECT_EQ(topology()->fence.epoch, 2U);
  expect_all_keys_in_place();
  bool seen = false;
  for (const topology::Topology& one : history()) {
    if (!one.resize || !one.resize->rollback) continue;
    seen = true;
    EXPECT_TRUE(one.resize->done.empty()) << topology::to_json(one);
    const auto snapshot = *topology::Snapshot::compile(one, {1, 1});
    for (int i = 0; i < kKeys; ++i) {
      const auto route = snapshot->route(fmt::format("k{}", i));
      EXPECT_EQ(snapshot->members()[route.member].id, "a");
    }
  }
  EXPECT_TRUE(seen);
}

// A controller that dies in any phase: the next one goes on from what the registry says.
TEST_F(ControllerTest, AnotherControllerGoesOnInEveryPhase) {
  start_controller(milliseconds(600));
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  fill();
  bool hold_seen = false;
  {
    // Acknowledges PREP late and HOLD never, so that both last.
    const auto slow = router("slow", [](const topology::Topology&) { return false; });
    ASSERT_EQ(start(spec({"a", "b"}, 100)), "");
    ASSERT_TRUE(in_phase(Phase::prep));
    controller_.reset();
    start_controller(milliseconds(600));
    ASSERT_TRUE(wait([&] { return in_phase(Phase::hold); }));
    hold_seen = true;
    controller_.reset();
    EXPECT_FALSE(in_phase(Phase::dual))
        << "a controller that stops must not open the gate without its barrier";
  }
  EXPECT_TRUE(hold_seen);
  start_router();
  start_controller();
  ASSERT_TRUE(wait([&] { return in_phase(Phase::dual) && status().keys_moved > 5; }));
  controller_.reset();
  const std::uint64_t moved = status().keys_moved;
  start_controller();
  Request rate;
  rate.action = Request::Action::set_rate;
  rate.keys_per_second = 100000;
  ASSERT_EQ(ask(rate), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_GT(status().keys_moved, moved) << "progress is not counted from zero again";
  expect_all_keys_in_place();
}

TEST_F(ControllerTest, TwoControllersOneLeads) {
  start_controller();
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  start_router();
  fill();
  Controller second(*coordinator_, keys_, {.id = "second", .fence_timeout = milliseconds(300)});
  ASSERT_EQ(start(spec({"a", "b"}, 200)), "");
  ASSERT_TRUE(wait([&] { return status().keys_moved > 5; }));
  EXPECT_EQ((*coordinator_->get(keys_.controller()))->value, "controller-1");
  controller_.reset();
  ASSERT_TRUE(wait_for("finished"));
  expect_all_keys_in_place();
}

// I3: a router that does not acknowledge is cut off at the members; one that does is left alone.
TEST_F(ControllerTest, I3ARouterThatNeverAcknowledgesIsFenced) {
  start_controller();
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  start_router();
  const auto silent = router("silent", [](const topology::Topology&) { return false; });
  const auto of_good = connection(a_, "rs:good"), of_silent = connection(a_, "rs:silent"),
             of_dead = connection(b_, "rs:dead-router");
  fill();
  ASSERT_EQ(start(spec({"a", "b"})), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_TRUE(of_good->call({"PING"}));
  EXPECT_FALSE(of_silent->call({"PING"}));
  EXPECT_FALSE(of_dead->call({"PING"})) << "the connection of a router that is no longer there";
  EXPECT_GE(status().fences, 2U);
  EXPECT_GE(status().hold_ms_max, 250) << "HOLD waited for the silent one first";
  expect_all_keys_in_place();
}

// A router hangs, and a member lets nobody cut its connection: each try keeps clients waiting, so it ends
// with a pause that says why, with every key where it was. Once the router is well the resize goes on.
TEST_F(ControllerTest, AHoldThatCannotEndIsCalledOffAndPausesAfterAFew) {
  start_controller();
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  start_router();
  std::atomic<bool> hangs{false};
  const auto silent = router("silent", [&](const topology::Topology&) { return !hangs; });
  const auto of_silent = connection(a_, "rs:silent");
  fill();
  ASSERT_EQ(start(spec({"a", "b"}, 100), {50, 100}), "");
  ASSERT_TRUE(wait([&] { return status().keys_moved > 5; }));
  static_cast<void>(a_.command("ACL SETUSER default -client|kill"));
  hangs = true;
  Request rate;
  rate.action = Request::Action::set_rate;
  rate.keys_per_second = 100000;
  ASSERT_EQ(ask(rate), "");
  ASSERT_TRUE(wait_for("paused"));
  const std::string said = status().last_error;
  EXPECT_TRUE(said.contains("step 2/2") && said.contains("client|kill") && said.contains("resume")) << said;
  EXPECT_TRUE(in_phase(Phase::prep)) << "nobody's commands wait any more";
  EXPECT_TRUE(of_silent->call({"PING"}));
  hangs = false;
  ASSERT_EQ(ask(Request::Action::resume), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_EQ(status().fences, 0U);
  expect_all_keys_in_place();
}

// A member that runs out of memory pauses the resize and says so; with room it goes on.
TEST_F(ControllerTest, OutOfMemoryPausesAndSaysSo) {
  start_controller();
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  start_router();
  fill();
  ASSERT_EQ(start(spec({"a", "b"}, 100)), "");
  ASSERT_TRUE(wait([&] { return status().keys_moved > 5; }));
  static_cast<void>(b_.command("CONFIG SET maxmemory 1"));
  ASSERT_TRUE(wait_for("paused"));
  EXPECT_TRUE(status().last_error.contains("OOM") && status().last_error.contains("resume"))
      << status().last_error;
  static_cast<void>(b_.command("CONFIG SET maxmemory 0"));
  ASSERT_EQ(ask(Request::Action::resume), "");
  Request rate;
  rate.action = Request::Action::set_rate;
  rate.keys_per_second = 100000;
  ASSERT_EQ(ask(rate), "");
  ASSERT_TRUE(wait_for("finished"));
  expect_all_keys_in_place();
}

// I4: NEW restarts within DUAL. Its stamp is gone, so that nothing is let in, and the slices go back through
// HOLD in a new step. What NEW had is lost with it (it has no persistence here); nothing else is.
TEST_F(ControllerTest, I4ARestartedMemberSendsItsSlicesBackThroughHold) {
  start_controller();
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  start_router();
  fill();
  ASSERT_EQ(start(spec({"a", "b"}, 50)), "");
  ASSERT_TRUE(wait([&] { return status().keys_moved > 5; }));
  ASSERT_EQ(ask(Request::Action::pause), "");
  ASSERT_TRUE(wait_for("paused"));
  const std::uint64_t step = topology()->fence.step;
  const auto lost = connection(b_, "rs:test")->call({"DBSIZE"})->integer - 1;  // But for the stamp.
  b_.kill();
  b_.start();
  ASSERT_TRUE(wait([&] { return topology()->fence.step > step && in_phase(Phase::dual); }));
  EXPECT_TRUE(wait([&] { return b_.command("GET rs:stamp").contains(fmt::format("1.{}.open.", step + 1)); }));
  ASSERT_EQ(ask(Request::Action::resume), "");
  Request rate;
  rate.action = Request::Action::set_rate;
  rate.keys_per_second = 100000;
  ASSERT_EQ(ask(rate), "");
  ASSERT_TRUE(wait_for("finished"));
  const auto on_a = connection(a_, "rs:test"), on_b = connection(b_, "rs:test");
  EXPECT_EQ(on_a->call({"DBSIZE"})->integer + on_b->call({"DBSIZE"})->integer - 2 + lost, kKeys);
}

// I10: NEW evicts its stamp within DUAL. It could have been "done", so its gate is not simply opened again.
TEST_F(ControllerTest, I10AnEvictedStampSendsItsSlicesBackThroughHold) {
  start_controller();
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  start_router();
  fill();
  ASSERT_EQ(start(spec({"a", "b"}, 50)), "");
  ASSERT_TRUE(wait([&] { return status().keys_moved > 5; }));
  const std::uint64_t step = topology()->fence.step;
  ASSERT_EQ(b_.command("DEL rs:stamp"), ":1\r\n");
  ASSERT_TRUE(wait([&] { return topology()->fence.step > step && in_phase(Phase::dual); }));
  Request rate;
  rate.action = Request::Action::set_rate;
  rate.keys_per_second = 100000;
  ASSERT_EQ(ask(rate), "");
  ASSERT_TRUE(wait_for("finished"));
  expect_all_keys_in_place();
}

#if defined(RINGSHIFT_PROTOCOL_FAULTS)
// A router that acknowledges PREP and then hangs. With the protocol DUAL has to wait for it (for ever, here);
// with the switch it is published over its head.
class NoHold : public ControllerTest {
 protected:
  void begin() {
    start_controller(milliseconds(60000));
    ASSERT_TRUE(wait([&] { return topology().has_value(); }));
    hanging_ = router(
        "hanging", [](const topology::Topology& t) { return !t.resize || t.resize->phase == Phase::prep; });
    ASSERT_EQ(start(spec({"a", "b"})), "");
  }
  std::unique_ptr<coord::RouterLink> hanging_;
};

TEST_F(NoHold, TheProtocolWaitsForTheAcknowledgement) {
  begin();
  ASSERT_TRUE(wait([&] { return in_phase(Phase::hold); }));
  EXPECT_FALSE(wait([&] { return !in_phase(Phase::hold); }, milliseconds(800)));
  EXPECT_TRUE(b_.command("GET rs:stamp").contains(".closed.")) << "the gate opens after the barrier";
  hanging_.reset();  // It leaves: its lease is over, and HOLD goes on without it.
  EXPECT_TRUE(wait([&] { return !in_phase(Phase::hold); }));
}

TEST_F(NoHold, WithTheSwitchDualIsPublishedUnacknowledged) {
  transfer::set_broken(transfer::Fault::no_hold, true);
  begin();
  const bool opened = wait([&] {
    for (const auto& one : history()) {
      if (one.resize && one.resize->phase == Phase::dual) return true;
    }
    return false;
  });
  transfer::set_broken(transfer::Fault::no_hold, false);
  EXPECT_TRUE(opened);
  for (const auto& one : history()) EXPECT_FALSE(one.resize && one.resize->phase == Phase::hold);
}
#endif

}  // namespace
}  // namespace ringshift::resize
