// --mode expire: old copies run out, and what does not is moved or dropped.
#include "controller_world.h"
#include "resize/leftovers.h"
#include "resize/phases.h"

namespace ringshift::resize {
namespace {

class Expire : public ControllerTest {
 protected:
  void begin(const char* ttl_ms) {
    start_controller();
    ASSERT_TRUE(wait([&] { return topology().has_value(); }));
    start_router();
    const auto client = connection(a_, "rs:test");
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = fmt::format("k{}", i);
      ASSERT_TRUE(client->call({"SET", key, fmt::format("v{}", i)}));
      if (*ttl_ms != '\0') {
        ASSERT_TRUE(client->call({"PEXPIRE", key, ttl_ms}));
      }
    }
  }
  std::string start_expiring(const char* rest, std::uint64_t deadline_seconds = 3600,
                             std::vector<double> steps = {100}) {
    Request request;
    request.spec = spec({"a", "b"});
    request.steps = std::move(steps);
    request.allow_foreign = true;
    request.expire = true;
    request.rest = rest;
    request.deadline_seconds = deadline_seconds;
    return ask(request);
  }
  [[nodiscard]] std::shared_ptr<const topology::Snapshot> grown() {
    return *topology::Snapshot::compile(resize::begin(*topology(), spec({"a", "b"}), "r", {}), {1, 1});
  }
  static bool moves(const topology::Snapshot& snapshot, const std::string& key) {
    return snapshot.owner_before(key) != snapshot.owner_after(key);
  }
};

TEST_F(Expire, KeysWithoutATimeToLiveAreRefusedByName) {
  begin("");
  static_cast<void>(a_.command("PEXPIRE k1 100000"));
  const std::string answer = start_expiring("");
  EXPECT_TRUE(answer.contains("keys that move have no time to live")) << answer;
  EXPECT_TRUE(answer.contains("for example k") && answer.contains("--move-rest")) << answer;
  EXPECT_FALSE(topology()->resize);
}

TEST_F(Expire, OldCopiesRunOutAndNobodyMovesThem) {
  begin("2500");
  ASSERT_EQ(start_expiring(""), "");
  ASSERT_TRUE(wait([&] { return status().expire_until_ms != 0; }));
  EXPECT_EQ(status().mode, "expire");
  const std::uint64_t until = status().expire_until_ms;
  EXPECT_TRUE(in_phase(Phase::dual));
  controller_.reset();  // The next one does not begin to wait anew.
  start_controller();
  ASSERT_TRUE(wait([&] { return status().state == "finished" || status().expire_until_ms == until; }));
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_EQ(status().keys_moved, 0U);
  EXPECT_EQ(topology()->spec.members.size(), 2U);
  EXPECT_TRUE(b_.command("GET rs:stamp").contains(".done.")) << "I10";
  EXPECT_EQ(b_.command("DBSIZE"), ":1\r\n");
}

TEST_F(Expire, TheRestIsMovedAtTheDeadline) {
  begin("");
  ASSERT_EQ(start_expiring("move", 1), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_GT(status().keys_without_ttl, 50U);
  EXPECT_FALSE(status().keys_without_ttl_examples.empty());
  expect_all_keys_in_place();
}

TEST_F(Expire, TheRestIsDroppedAndNothingElse) {
  begin("");
  const auto snapshot = grown();
  ASSERT_EQ(start_expiring("drop", 1, {40, 100}), "");
  ASSERT_TRUE(wait_for("finished"));
  std::uint64_t moving = 0;
  const auto on_a = connection(a_, "rs:test");
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = fmt::format("k{}", i);
    const bool moved = moves(*snapshot, key);
    moving += moved;
    EXPECT_EQ(on_a->call({"EXISTS", key})->integer, moved ? 0 : 1) << key;
  }
  EXPECT_EQ(status().keys_dropped, moving);
  EXPECT_EQ(status().keys_moved, 0U);
  EXPECT_EQ(b_.command("DBSIZE"), ":1\r\n");
}

TEST_F(Expire, ARollbackMovesBackWhatWentOver) {
  begin("600000");
  ASSERT_EQ(start_expiring("move"), "");
  ASSERT_TRUE(wait([&] { return status().expire_until_ms != 0; }));
  ASSERT_EQ(ask(Request::Action::rollback), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_TRUE(status().rolled_back);
  EXPECT_EQ(connection(a_, "rs:test")->call({"DBSIZE"})->integer, kKeys + 1);
}

// A drop that comes late, from a controller that leads no more: the member has the stamp of a later step.
TEST_F(Expire, I3ADropOfAnEarlierStepDoesNothing) {
  begin("");
  topology::Topology held = resize::begin(*topology(), spec({"a", "b"}), "r", {{"a", "run"}, {"b", "run"}});
  held = dual(hold(held, {{0, topology::kSliceCount}}, {{"a", "run"}, {"b", "run"}}));
  const auto snapshot = *topology::Snapshot::compile(held, {1, 1});
  Members members("rs:test");
  topology::Fence later = held.fence;
  ++later.step;
  ASSERT_TRUE(members.set_stamps({held.spec.members[0]}, later, Gate::closed));
  TokenBucket rate(1e6, std::chrono::steady_clock::now());
  Leftovers leftovers(members, snapshot, held.resize->active, [] { return true; });
  const auto dropped = leftovers.drop(rate);
  ASSERT_TRUE(dropped) << dropped.error().message;
  EXPECT_TRUE(dropped->gated);
  EXPECT_EQ(dropped->dropped, 0U);
  EXPECT_EQ(connection(a_, "rs:test")->call({"DBSIZE"})->integer, kKeys + 1);
}

}  // namespace
}  // namespace ringshift::resize
