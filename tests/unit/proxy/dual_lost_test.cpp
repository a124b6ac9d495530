// Keys whose old member is gone for good: past HOLD they are the new member's, and HOLD does not wait for the
// dead.
#include "dual_world.h"

namespace ringshift::proxy {
namespace {

using std::chrono::milliseconds;

class Lost : public testing::Test {
 protected:
  void hold_without_old() {
    ++world.topology.fence.step;
    world.topology.fence.run_ids.erase("a");
    world.topology.resize->lost = {"a"};
    world.topology.resize->phase = topology::Phase::hold;
    world.topology.resize->active = {{0, topology::kSliceCount / 2}};
    world.set_gate("b", false);
    world.publish();
  }
  void dual_without_old() {
    world.set_gate("b", true);
    world.topology.resize->phase = topology::Phase::dual;
    world.publish();
  }
  // Those that move in the half that has its turn, and one in the other half.
  [[nodiscard]] std::string moving_key(bool in_turn) const {
    for (int i = 0;; ++i) {
      std::string candidate = fmt::format("lost{}", i);
      const bool first_half = world.snapshot->slice(candidate) < topology::kSliceCount / 2;
      if (world.snapshot->owner_after(candidate) == 1 && first_half == in_turn) return candidate;
    }
  }
  DualWorld world;
};

TEST_F(Lost, HoldEndsAndTheNewMemberServes) {
  const std::string key = moving_key(true), later = moving_key(false);
  ASSERT_EQ(world.run({"SET", key, "old"}), "+OK\r\n");
  world.old_redis.pause();  // It hangs, with a command in it, and is given up.
  const auto unanswered = world.submit({"INCR", later});
  world.run_for(milliseconds(20));
  hold_without_old();
  const auto parked = world.submit({"GET", key});
  world.drain();
  EXPECT_TRUE(world.answer(unanswered).starts_with("(unknown)"));
  EXPECT_EQ(world.answers.find(parked), nullptr) << "HOLD is for its keys, too";
  dual_without_old();
  EXPECT_EQ(world.answer(parked), "$-1\r\n") << "a miss, which the origin fills";
  EXPECT_EQ(world.run({"SET", key, "new"}), "+OK\r\n");
  EXPECT_EQ(world.run({"APPEND", key, "er"}), ":5\r\n");
  EXPECT_EQ(world.run({"GET", key}), "$5\r\nnewer\r\n");
  EXPECT_EQ(world.run({"STRLEN", key}), ":5\r\n");
  EXPECT_FALSE(world.router->busy()) << "no transfer, no second look";
  EXPECT_TRUE(world.run({"GET", later}).starts_with("("))
      << "its slice has not had its turn: an error as before";
  // It wakes. What it answers reaches nobody, and what it has is not read.
  world.old_redis.resume();
  world.run_for(milliseconds(100));
  EXPECT_EQ(world.run({"GET", key}), "$5\r\nnewer\r\n");
  EXPECT_EQ(world.get("a", key), "old");
}

TEST_F(Lost, AMultiKeyCommandNeedsNoPull) {
  const std::string key = moving_key(true);
  world.old_redis.kill();
  hold_without_old();
  world.drain();
  dual_without_old();
  MultiCommand command;
  protocol::resp::append_command(command.bytes, {"SETNX", key, "1"});
  command.keys = {key};
  command.sink = &world.answers;
  command.tag = 4711;
  world.router->submit_multi(std::move(command));
  EXPECT_EQ(world.answer(4711), ":1\r\n");
  EXPECT_EQ(world.get("b", key), "1");
}

}  // namespace
}  // namespace ringshift::proxy
