// The operator's controls, with a real registry and real members: what holds a resize back, what rolls it
// back by itself, what replaces it, and what the log says of it. Each survives a change of controllers.
#include <algorithm>

#include "controller_world.h"
#include "resize/controller.h"
#include "resize/decisions.h"

namespace ringshift::resize {
namespace {

class ControlsTest : public ControllerTest {
 protected:
  void begin_world() {
    start_controller();
    ASSERT_TRUE(wait([&] { return topology().has_value(); }));
    start_router();
    fill();
  }
  Request request_to(const topology::Spec& target, std::vector<double> steps = {100}) {
    Request request;
    request.spec = target;
    request.steps = std::move(steps);
    request.allow_foreign = true;
    request.by = "ann@here";
    return request;
  }
  bool wait_until_waiting(const std::string& reason) {
    const bool reached = wait([&] { return status().waiting == reason; });
    if (!reached) ADD_FAILURE() << "waiting for " << reason << ": " << to_json(status());
    return reached;
  }
  void change_controllers() {
    controller_.reset();
    start_controller();
  }
  std::vector<Decision> log_of(const std::string& id) {
    const LoggedResizes logged = read_decisions(keys_, coordinator_->list(keys_.log())->kvs);
    const auto found = logged.find(id);
    return found == logged.end() ? std::vector<Decision>{} : found->second;
  }
  bool logged(const std::string& id, const std::string& event, const std::string& part,
              const std::string& by = "") {
    const auto log = log_of(id);
    return std::ranges::any_of(log, [&](const Decision& one) {
      return one.event == event && one.text.contains(part) && one.by == by;
    });
  }
};

TEST_F(ControlsTest, ASoakHoldsTheNextStepBackAndAnotherControllerKeepsIt) {
  begin_world();
  Request request = request_to(spec({"a", "b"}), {50, 100});
  request.soak = milliseconds(3'600'000);
  ASSERT_EQ(ask(request), "");
  ASSERT_TRUE(wait_until_waiting("soak"));
  EXPECT_EQ(topology::count(topology()->resize->done), topology::kSliceCount / 2);
  const std::string until = status().waiting_until;
  EXPECT_NE(until, "");
  change_controllers();
  std::this_thread::sleep_for(milliseconds(700));
  EXPECT_EQ(status().waiting, "soak");
  EXPECT_EQ(status().waiting_until, until);
  EXPECT_TRUE(topology()->resize) << "and it has not gone on";
  ASSERT_EQ(ask(Request::Action::resume), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_TRUE(logged(status().id, "phase", "step 1/2: done"));
  EXPECT_TRUE(logged(status().id, "resume", "soak is skipped"));
  expect_all_keys_in_place();
}

TEST_F(ControlsTest, AShortSoakEndsByItself) {
  begin_world();
  Request request = request_to(spec({"a", "b"}), {50, 100});
  request.soak = milliseconds(400);
  ASSERT_EQ(ask(request), "");
  ASSERT_TRUE(wait_for("finished"));
  expect_all_keys_in_place();
}

// I0: what a member's old dump brings back while the resize waits for its window is purged before the first
// HOLD. Without that a key's old value on NEW would count as written there, and OLD's newer one be unlinked.
TEST_F(ControlsTest, I0LeftoversThatARestartBringsBackWhileItWaits) {
  begin_world();
  Request request = request_to(spec({"a", "b"}));
  request.at = "2100-01-01T00:00:00Z";
  ASSERT_EQ(ask(request), "");
  ASSERT_TRUE(wait_until_waiting("window"));
  EXPECT_EQ(status().waiting_until.substr(0, 4), "2100");
  EXPECT_TRUE(in_phase(Phase::prep));
  b_.kill();
  b_.start();
  {
    const auto old = connection(b_, "rs:test");
    for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(old->call({"SET", fmt::format("k{}", i), "of an old dump"}));
  }
  change_controllers();
  ASSERT_TRUE(wait_until_waiting("window"));
  ASSERT_EQ(ask(Request::Action::resume), "");
  ASSERT_TRUE(wait_for("finished"));
  const auto on_a = connection(a_, "rs:test"), on_b = connection(b_, "rs:test");
  const auto snapshot = *topology::Snapshot::compile(*topology(), {1, 1});
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = fmt::format("k{}", i);
    const bool at_a = snapshot->members()[snapshot->route(key).member].id == "a";
    EXPECT_EQ((at_a ? on_a : on_b)->call({"GET", key})->text, fmt::format("v{}", i));
  }
}

TEST_F(ControlsTest, AWindowThatClosesStopsTheMoverAndARollbackNeedsNone) {
  begin_world();
  Request request = request_to(spec({"a", "b"}, 50));
  request.until = local_time(unix_now() + 2500);
  ASSERT_EQ(ask(request), "");
  ASSERT_TRUE(wait_until_waiting("window"));
  EXPECT_EQ(status().waiting_until, "") << "it never opens again";
  EXPECT_EQ(status().state, "running");
  const std::string before = b_.command("DBSIZE");
  std::this_thread::sleep_for(milliseconds(600));
  EXPECT_EQ(b_.command("DBSIZE"), before);
  ASSERT_EQ(ask(Request::Action::rollback), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_TRUE(status().rolled_back);
  expect_all_keys_in_place();
}

TEST_F(ControlsTest, ABrokenConditionRollsBackAndSaysWhy) {
  begin_world();
  Request request = request_to(spec({"a", "b"}, 50));
  request.abort_if = "hit_rate<0.9,origin_qps>8000";
  ASSERT_EQ(ask(request), "");
  ASSERT_TRUE(wait([&] { return status().keys_moved > 5; }));
  change_controllers();  // The conditions are in the checkpoint.
  EXPECT_EQ(status().abort_if, "hit_rate<0.9,origin_qps>8000");
  ASSERT_TRUE(wait([&] {
    put(keys_.origin(), "9000");
    return status().state == "finished" || status().state == "rolling_back";
  }));
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_TRUE(status().rolled_back);
  EXPECT_TRUE(status().aborted.starts_with("aborted: origin_qps 9000 > 8000 for ")) << status().aborted;
  EXPECT_TRUE(logged(status().id, "abort", "origin_qps 9000 > 8000"));
  EXPECT_TRUE(logged(status().id, "end", "rolled back"));
  expect_all_keys_in_place();
}

TEST_F(ControlsTest, RatesAreOfTheResizeAndNotOfTheSpec) {
  begin_world();
  Request request = request_to(spec({"a", "b"}, 100));
  request.keys_per_second = 20;
  ASSERT_EQ(ask(request), "");
  ASSERT_TRUE(wait([&] { return status().keys_moved > 2; }));
  EXPECT_EQ(status().rate, 20U);
  Request rate;
  rate.action = Request::Action::set_rate;
  EXPECT_NE(ask(rate), "") << "neither rate";
  rate.keys_per_second = 100000;
  rate.bytes_per_second = 1 << 20;
  ASSERT_EQ(ask(rate), "");
  change_controllers();
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_EQ(status().byte_rate, 1U << 20);
  EXPECT_EQ(topology()->spec.limits.move_keys_per_second, 100U);
  EXPECT_TRUE(logged(status().id, "rate", "100000 keys/s"));
  expect_all_keys_in_place();
}

TEST_F(ControlsTest, AChangeOfMindRollsBackAndThenStartsTheOther) {
  begin_world();
  ASSERT_EQ(ask(request_to(spec({"a", "b"}, 100))), "");
  ASSERT_TRUE(wait([&] { return status().keys_moved > 5; }));
  const std::string first = status().id;
  topology::Spec heavy = spec({"a", "b"});
  heavy.members[1].weight = 3;
  Request other = request_to(heavy);
  EXPECT_TRUE(ask(other).contains("--replace"));
  other.replace = true;
  other.steps = {7};
  EXPECT_TRUE(ask(other).contains("steps")) << "and the first one goes on";
  EXPECT_FALSE(status().queued);
  other.steps = {100};
  ASSERT_EQ(ask(other), "");
  change_controllers();  // Wherever it is by now.
  ASSERT_TRUE(wait([&] { return status().id != first && status().state == "finished"; }))
      << to_json(status());
  EXPECT_FALSE(status().rolled_back);
  EXPECT_FALSE(status().queued);
  EXPECT_FALSE(*coordinator_->get(keys_.next()));
  EXPECT_EQ(topology()->spec.members.at(1).weight, 3);
  EXPECT_TRUE(logged(first, "replace", "rolls back, then starts", "ann@here"));
  EXPECT_TRUE(logged(first, "end", "rolled back"));
  EXPECT_TRUE(logged(status().id, "accepted", "from 1 members to 2", "ann@here"));
  expect_all_keys_in_place();
}

TEST_F(ControlsTest, TheOneThatFollowsIsRefusedOrDroppedAndSaysSo) {
  begin_world();
  ASSERT_EQ(ask(request_to(spec({"a", "b"}, 100))), "");
  ASSERT_TRUE(wait([&] { return status().keys_moved > 5; }));
  topology::Spec unfit = spec({"a", "b"});
  unfit.members[1].id = "nobody";
  unfit.members[1].address = "127.0.0.1:1";
  Request other = request_to(unfit);
  other.replace = true;
  ASSERT_EQ(ask(other), "");
  ASSERT_TRUE(wait([&] { return status().last_error.contains("that was to follow is refused"); }))
      << to_json(status());
  EXPECT_TRUE(status().rolled_back && !status().queued && status().state == "finished");
  EXPECT_FALSE(*coordinator_->get(keys_.next()));
  EXPECT_EQ(ask(request_to(spec({"a", "b"}))), "") << "the cluster is as good as before";
  ASSERT_TRUE(wait_for("finished"));
  expect_all_keys_in_place();
}

TEST_F(ControlsTest, TheLogTellsTheWholeStoryAndStays) {
  begin_world();
  EXPECT_NE(ask(Request::Action::pause), "");
  Request request = request_to(spec({"a", "b"}), {50, 100});
  ASSERT_EQ(ask(request), "");
  ASSERT_TRUE(wait_for("finished"));
  const std::string id = status().id;
  std::vector<std::string> events;
  UnixMs before = 0;
  for (const Decision& one : log_of(id)) {
    events.push_back(one.event);
    EXPECT_GE(one.at, before);
    before = one.at;
  }
  EXPECT_EQ(events,
            (std::vector<std::string>{"accepted", "phase", "phase", "phase", "phase", "phase", "end"}))
      << "accepted, prepared, dual and done of two steps, the end";
  EXPECT_TRUE(logged(id, "phase", "after a hold of "));
  Request late = request_to(spec({"a"}), {50});
  EXPECT_NE(ask(late), "");
  EXPECT_TRUE(logged(id, "refused", "start: steps", "ann@here"));
}

}  // namespace
}  // namespace ringshift::resize
