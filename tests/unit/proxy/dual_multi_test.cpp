// Commands on several keys of which some are between two members, over real servers.
#include "dual_world.h"
#include "proxy/dual_router_impl.h"

namespace ringshift::proxy {
namespace {

using backend::Resp;
using std::chrono::milliseconds;

using Words = std::initializer_list<std::string_view>;

struct MultiWorld : DualWorld {
  using DualWorld::DualWorld;

  // One command.
  std::uint64_t submit_multi(Words words, std::vector<std::string> keys, Resp resp = Resp::v2) {
    MultiCommand command;
    protocol::resp::append_command(command.bytes, words);
    return submit_bytes(std::move(command), std::move(keys), resp);
  }
  // MULTI ... EXEC.
  std::uint64_t submit_block(std::initializer_list<Words> commands, std::vector<std::string> keys) {
    MultiCommand command;
    protocol::resp::append_command(command.bytes, {"MULTI"});
    for (const Words& words : commands) protocol::resp::append_command(command.bytes, words);
    protocol::resp::append_command(command.bytes, {"EXEC"});
    command.count = commands.size() + 2;
    return submit_bytes(std::move(command), std::move(keys), Resp::v2);
  }
  std::uint64_t submit_bytes(MultiCommand command, std::vector<std::string> keys, Resp resp) {
    command.keys = std::move(keys);
    command.resp = resp;
    command.sink = &answers;
    command.tag = ++last_tag;
    router->submit_multi(std::move(command));
    EXPECT_EQ(answers.find(last_tag), nullptr) << "answered from inside submit_multi()";
    return last_tag;
  }
  std::string run_multi(Words words, std::vector<std::string> keys) {
    return answer(submit_multi(words, std::move(keys)));
  }
  Pulled pull(std::vector<std::string> keys) {
    std::optional<Pulled> got;
    router->pull(std::move(keys), [&](const Pulled& pulled) { got = pulled; });
    EXPECT_FALSE(got) << "told from inside pull()";
    EXPECT_TRUE(run_until([&] { return got.has_value(); }));
    return got.value_or(Pulled{});
  }
  // A key that NEW keeps or never had a part in, so that its owner differs from that of the moving keys.
  const std::string& k(std::size_t i) const { return moving_keys[i]; }
};

TEST(DualMulti, RenameOfAKeyOnOldRunsOnNew) {
  MultiWorld world;
  ASSERT_EQ(world.run({"SET", world.k(0), "v"}), "+OK\r\n");
  ASSERT_EQ(world.run({"SET", world.k(1), "gone"}), "+OK\r\n");
  world.hold_drain_dual();
  EXPECT_EQ(world.run_multi({"RENAME", world.k(0), world.k(1)}, {world.k(0), world.k(1)}), "+OK\r\n");
  EXPECT_EQ(world.get("b", world.k(1)), "v");
  EXPECT_EQ(world.get("b", world.k(0)), "(nil)");
  EXPECT_EQ(world.get("a", world.k(0)) + world.get("a", world.k(1)), "(nil)(nil)");
  EXPECT_EQ(world.run({"GET", world.k(1)}), "$1\r\nv\r\n");
  EXPECT_FALSE(world.router->busy());
}

TEST(DualMulti, KeysOnOldOnNewAndAbsentAtOnce) {
  MultiWorld world;
  ASSERT_EQ(world.run({"SADD", world.k(0), "x", "y"}), ":2\r\n");
  ASSERT_EQ(world.run({"SADD", world.k(1), "y", "z"}), ":2\r\n");
  ASSERT_EQ(world.run({"EXPIRE", world.k(0), "1000"}), ":1\r\n");
  world.hold_drain_dual();
  ASSERT_EQ(world.run({"SADD", world.k(1), "w"}), ":1\r\n");  // Pulled to NEW.
  EXPECT_EQ(world.run_multi({"SINTERSTORE", world.k(2), world.k(0), world.k(1)},
                            {world.k(2), world.k(0), world.k(1), world.k(0)}),
            ":1\r\n");
  EXPECT_EQ(world.ask("b", {"SMEMBERS", world.k(2)}).items.size(), 1U);
  EXPECT_GT(world.ask("b", {"TTL", world.k(0)}).integer, 900) << "the TTL travels";
  EXPECT_EQ(world.ask("a", {"EXISTS", world.k(0), world.k(1), world.k(2)}).integer, 0);
  EXPECT_EQ(world.ask("b", {"KEYS", "rs:claim:*"}).items.size(), 0U) << "every claim is sealed";
}

TEST(DualMulti, MsetnxSeesTheCopyOnOld) {
  MultiWorld world;
  ASSERT_EQ(world.run({"SET", world.k(1), "there"}), "+OK\r\n");
  world.hold_drain_dual();
  EXPECT_EQ(world.run_multi({"MSETNX", world.k(0), "1", world.k(1), "2"}, {world.k(0), world.k(1)}),
            ":0\r\n");
  EXPECT_EQ(world.run({"GET", world.k(0)}), "$-1\r\n");
  EXPECT_EQ(world.run_multi({"MSETNX", world.k(0), "1", world.k(2), "2"}, {world.k(0), world.k(2)}),
            ":1\r\n");
  EXPECT_EQ(world.run({"GET", world.k(1)}), "$5\r\nthere\r\n");
}

TEST(DualMulti, ABlockGetsTheAnswerOfExecAlone) {
  MultiWorld world;
  ASSERT_EQ(world.run({"SET", world.k(0), "5"}), "+OK\r\n");
  world.hold_drain_dual();
  const auto block = world.submit_block({{"INCR", world.k(0)}, {"INCR", world.k(1)}, {"GET", world.k(0)}},
                                        {world.k(0), world.k(1)});
  EXPECT_EQ(world.answer(block), "*3\r\n:6\r\n:1\r\n$1\r\n6\r\n");
  EXPECT_EQ(world.answers.by_tag.size(), 2U);
  EXPECT_EQ(world.get("b", world.k(0)), "6");
}

TEST(DualMulti, InPrepAndWhenSettledItGoesToTheOwner) {
  MultiWorld world;
  EXPECT_EQ(world.run_multi({"MSET", world.k(0), "1", world.k(1), "2"}, {world.k(0), world.k(1)}), "+OK\r\n");
  EXPECT_EQ(world.get("a", world.k(1)), "2");
  world.hold_drain_dual();
  world.settle();
  EXPECT_EQ(world.run_multi({"MSET", world.k(0), "3", world.k(1), "4"}, {world.k(0), world.k(1)}), "+OK\r\n");
  EXPECT_EQ(world.get("b", world.k(1)), "4");
}

TEST(DualMulti, OwnersThatDifferAreCrossSlotAndNothingIsExecuted) {
  MultiWorld world;
  world.hold_drain_dual();
  EXPECT_EQ(world.run_multi({"MSET", world.k(0), "1", world.staying, "2"}, {world.k(0), world.staying}),
            kCrossSlot);
  EXPECT_EQ(world.get("a", world.staying) + world.get("a", world.k(0)) + world.get("b", world.k(0)),
            "(nil)(nil)(nil)");
  EXPECT_FALSE(world.router->busy());
  EXPECT_EQ(world.run({"SET", world.k(0), "1"}), "+OK\r\n") << "the queues go on";
}

TEST(DualMulti, SingleCommandsAroundItKeepTheirOrder) {
  MultiWorld world;
  const std::string &x = world.k(0), &y = world.k(1);
  ASSERT_EQ(world.run({"SET", x, "1"}), "+OK\r\n");
  ASSERT_EQ(world.run({"SET", y, "10"}), "+OK\r\n");
  world.hold_drain_dual();
  world.answers.order.clear();
  std::vector<std::uint64_t> tags;
  tags.push_back(world.submit({"GET", x}));
  tags.push_back(world.submit({"INCR", x}));
  tags.push_back(world.submit_multi({"MSET", x, "5", y, "50"}, {x, y}));
  EXPECT_TRUE(world.router->pending(y)) << "commands on a locked key queue behind it";
  tags.push_back(world.submit({"INCR", y}));
  tags.push_back(world.submit({"INCR", x}));
  tags.push_back(world.submit_multi({"RENAME", y, x}, {y, x}));
  tags.push_back(world.submit({"INCR", x}));
  tags.push_back(world.submit({"GET", y}));
  const char* expected[] = {"$1\r\n1\r\n", ":2\r\n",  "+OK\r\n", ":51\r\n",
                            ":6\r\n",      "+OK\r\n", ":52\r\n", "$-1\r\n"};
  for (std::size_t i = 0; i < tags.size(); ++i) EXPECT_EQ(world.answer(tags[i]), expected[i]) << i;
  EXPECT_FALSE(world.router->busy());
}

TEST(DualMulti, ManyThatOverlapInAnyOrderOfKeysAllEnd) {
  MultiWorld world;
  for (std::size_t i = 0; i < 4; ++i) ASSERT_EQ(world.run({"SET", world.k(i), "0"}), "+OK\r\n");
  world.hold_drain_dual();
  std::vector<std::uint64_t> tags;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::string &x = world.k(i % 4), &y = world.k((i * 7 + 1) % 4);
    tags.push_back(world.submit_block({{"INCR", x}, {"INCR", y}}, {x, y}));
    tags.push_back(world.submit({"INCR", x}));
  }
  for (const auto tag : tags) EXPECT_NE(world.answer(tag)[0], '-');
  long sum = 0;
  for (std::size_t i = 0; i < 4; ++i) sum += std::stol(world.get("b", world.k(i)));
  EXPECT_EQ(sum, 600);
  EXPECT_FALSE(world.router->busy());
}

TEST(DualMulti, HoldParksItAndDualLetsItGo) {
  MultiWorld world;
  ASSERT_EQ(world.run({"SET", world.k(0), "1"}), "+OK\r\n");
  world.hold();
  const auto rename = world.submit_multi({"RENAME", world.k(0), world.k(1)}, {world.k(0), world.k(1)});
  const auto after = world.submit({"GET", world.k(1)});
  world.run_for(milliseconds(30));
  EXPECT_EQ(world.answers.find(rename), nullptr) << "nothing may be sent in HOLD";
  EXPECT_EQ(world.get("a", world.k(0)), "1");
  world.drain();
  world.dual();
  EXPECT_EQ(world.answer(rename), "+OK\r\n");
  EXPECT_EQ(world.answer(after), "$1\r\n1\r\n");
}

TEST(DualMulti, ParkingEndsAtItsTimeoutAsUnsent) {
  DualRouter::Options options;
  options.hold_timeout = milliseconds(100);
  MultiWorld world(options);
  world.hold();
  const auto mset = world.submit_multi({"MSET", world.k(0), "1", world.k(1), "2"}, {world.k(0), world.k(1)});
  EXPECT_EQ(world.answer(mset), "(unsent) its keys wait for a resize step that does not end");
  EXPECT_FALSE(world.router->busy());
  world.drain();
  world.dual();
  world.run_for(milliseconds(20));
  EXPECT_EQ(world.get("a", world.k(0)) + world.get("b", world.k(0)), "(nil)(nil)");
}

TEST(DualMulti, ParkedAndWaitingBytesAreBounded) {
  DualRouter::Options options;
  options.max_parked_bytes = 1000;
  options.max_waiting_bytes = 2000;
  MultiWorld world(options);
  world.hold();
  const std::string value(700, 'x');
  const auto fits =
      world.submit_multi({"MSET", world.k(0), value, world.k(1), "1"}, {world.k(0), world.k(1)});
  const auto over =
      world.submit_multi({"MSET", world.k(0), value, world.k(2), "1"}, {world.k(0), world.k(2)});
  EXPECT_EQ(world.answer(over), "(overloaded) too many commands wait for a resize step");
  const std::string huge(1500, 'x');
  const auto refused =
      world.submit_multi({"MSET", world.k(0), huge, world.k(2), "1"}, {world.k(0), world.k(2)});
  EXPECT_EQ(world.answer(refused), "(overloaded) too much waits for keys that are being moved");
  EXPECT_EQ(world.answers.find(fits), nullptr);
  world.drain();
  world.dual();
  EXPECT_EQ(world.answer(fits), "+OK\r\n");
  EXPECT_FALSE(world.router->busy());
}

TEST(DualMulti, AnothersClaimIsWaitedFor) {
  MultiWorld world;
  ASSERT_EQ(world.run({"SET", world.k(0), "1"}), "+OK\r\n");
  world.hold_drain_dual();
  world.ask("b", {"SET", transfer::claim_key(world.k(0)), "somebody:1", "PX", "150"});
  const auto began = DualWorld::Clock::now();
  EXPECT_EQ(world.run_multi({"RENAME", world.k(0), world.k(1)}, {world.k(0), world.k(1)}), "+OK\r\n");
  EXPECT_GE(DualWorld::Clock::now() - began, milliseconds(100));
  EXPECT_EQ(world.get("b", world.k(1)), "1");
}

TEST(DualMulti, AKeyThatCannotBeMovedInTimeFailsItAsUnsent) {
  DualRouter::Options options;
  options.request_timeout = milliseconds(100);
  MultiWorld world(options);
  ASSERT_EQ(world.run({"SET", world.k(0), "1"}), "+OK\r\n");
  world.hold_drain_dual();
  world.ask("b", {"SET", transfer::claim_key(world.k(0)), "somebody:1", "PX", "5000"});
  EXPECT_EQ(world.run_multi({"RENAME", world.k(0), world.k(1)}, {world.k(0), world.k(1)}),
            "(unsent) the key could not be moved in time");
  EXPECT_EQ(world.get("a", world.k(0)), "1");
  EXPECT_FALSE(world.router->busy());
}

TEST(DualMulti, OutOfMemoryOnNewIsTheAnswerAndNothingIsExecuted) {
  MultiWorld world;
  ASSERT_EQ(world.run({"SET", world.k(0), "1"}), "+OK\r\n");
  world.hold_drain_dual();
  world.ask("b", {"CONFIG", "SET", "maxmemory", "1"});
  const std::string refused = world.run_multi({"RENAME", world.k(0), world.k(1)}, {world.k(0), world.k(1)});
  EXPECT_TRUE(refused.starts_with("-OOM")) << refused;
  EXPECT_EQ(world.get("a", world.k(0)), "1");
  world.ask("b", {"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(world.run_multi({"RENAME", world.k(0), world.k(1)}, {world.k(0), world.k(1)}), "+OK\r\n");
}

// The step ends, and the next begins, at any point of its work: between any two events of the loop.
TEST(DualMulti, I3AStepThatPassesAtAnyPointLosesNothing) {
  for (int turns = 0; turns < 14; ++turns) {
    SCOPED_TRACE(turns);
    MultiWorld world;
    ASSERT_EQ(world.run({"SET", world.k(0), "1"}), "+OK\r\n");
    ASSERT_EQ(world.run({"SET", world.k(1), "2"}), "+OK\r\n");
    world.hold_drain_dual();
    const auto block = world.submit_block({{"INCR", world.k(0)}, {"INCR", world.k(1)}, {"INCR", world.k(2)}},
                                          {world.k(0), world.k(1), world.k(2)});
    int left = turns;
    static_cast<void>(world.run_until([&] { return left-- <= 0; }));
    world.hold_drain_dual();
    EXPECT_EQ(world.answer(block), "*3\r\n:2\r\n:3\r\n:1\r\n");
    EXPECT_EQ(world.get("b", world.k(0)) + world.get("b", world.k(1)) + world.get("b", world.k(2)), "231");
    EXPECT_FALSE(world.router->busy());
  }
}

TEST(DualMulti, ARollbackInTheMiddleTakesItBackToOld) {
  MultiWorld world;
  ASSERT_EQ(world.run({"SET", world.k(0), "1"}), "+OK\r\n");
  world.hold_drain_dual();
  ASSERT_EQ(world.run({"INCR", world.k(0)}), ":2\r\n");
  world.rollback();
  const auto rename = world.submit_multi({"RENAME", world.k(0), world.k(1)}, {world.k(0), world.k(1)});
  world.drain();
  world.dual();
  EXPECT_EQ(world.answer(rename), "+OK\r\n");
  EXPECT_EQ(world.get("a", world.k(1)), "2");
  EXPECT_EQ(world.get("b", world.k(0)) + world.get("b", world.k(1)), "(nil)(nil)");
}

// Keys that it had pulled to NEW already are to be pulled back: what counted in one step counts no more.
TEST(DualMulti, I6ARollbackAtAnyPointTakesItBackToOld) {
  for (int turns = 0; turns < 14; ++turns) {
    SCOPED_TRACE(turns);
    DualRouter::Options options;
    if (turns % 2 == 1) options.max_known_bytes = 0;  // Then only the operation itself remembers.
    MultiWorld world(options);
    ASSERT_EQ(world.run({"SET", world.k(0), "1"}), "+OK\r\n");
    ASSERT_EQ(world.run({"SET", world.k(1), "2"}), "+OK\r\n");
    world.hold_drain_dual();
    // The second key's claim is another's, so that the first is pulled and the command not sent.
    world.ask("b", {"SET", transfer::claim_key(world.k(1)), "somebody:1", "PX", "60"});
    const auto block =
        world.submit_block({{"INCR", world.k(0)}, {"INCR", world.k(1)}}, {world.k(0), world.k(1)});
    int left = turns;
    static_cast<void>(world.run_until([&] { return left-- <= 0; }));
    world.rollback();
    world.drain();
    world.dual();
    EXPECT_EQ(world.answer(block), "*2\r\n:2\r\n:3\r\n");
    EXPECT_EQ(world.get("a", world.k(0)) + world.get("a", world.k(1)), "23");
    EXPECT_EQ(world.get("b", world.k(0)) + world.get("b", world.k(1)), "(nil)(nil)");
    EXPECT_FALSE(world.router->busy());
  }
}

TEST(DualMulti, WhatKnownCannotHoldIsStillPulledOnce) {
  DualRouter::Options options;
  options.max_known_bytes = 0;
  MultiWorld world(options);
  ASSERT_EQ(world.run({"SET", world.k(0), "1"}), "+OK\r\n");
  world.hold_drain_dual();
  EXPECT_EQ(world.run_multi({"RENAME", world.k(0), world.k(1)}, {world.k(0), world.k(1)}), "+OK\r\n");
}

TEST(DualMulti, MoreKeysThanPullsAtOnce) {
  MultiWorld world;
  std::vector<std::string> keys;
  for (int i = 0; keys.size() < 3 * MultiOperation::kMaxPullsAtOnce; ++i) {
    const std::string name = fmt::format("many{}", i);
    if (world.snapshot->owner_after(name) == 1) keys.push_back(name);
  }
  MultiCommand del;
  std::vector<std::string_view> words = {"DEL"};
  for (const std::string& name : keys) {
    ASSERT_EQ(world.run({"SET", name, "1"}), "+OK\r\n");
    words.push_back(name);
  }
  world.hold_drain_dual();
  protocol::resp::append_command(del.bytes, words);
  const auto tag = world.submit_bytes(std::move(del), keys, Resp::v2);
  EXPECT_EQ(world.answer(tag), fmt::format(":{}\r\n", keys.size()));
  EXPECT_EQ(world.ask("a", {"DBSIZE"}).integer, 1) << "rs:stamp alone";
}

TEST(DualMulti, WithoutKeysItGoesToTheMemberThatIsNamed) {
  MultiWorld world;
  MultiCommand ping;
  protocol::resp::append_command(ping.bytes, {"ECHO", "hi"});
  ping.member = "b";
  world.reset_stats();
  EXPECT_EQ(world.answer(world.submit_bytes(ping, {}, Resp::v2)), "$2\r\nhi\r\n");
  EXPECT_EQ(world.calls("b", "echo"), 1U);
  ping.member = "x";
  EXPECT_EQ(world.answer(world.submit_bytes(ping, {}, Resp::v2)), "(unsent) it left the cluster");
}

// ---- pull() ----

TEST(DualMulti, PullSaysWhereTheKeysAre) {
  MultiWorld world;
  ASSERT_EQ(world.run({"SET", world.k(0), "1"}), "+OK\r\n");
  Pulled pulled = world.pull({world.k(0), world.k(1)});
  EXPECT_EQ(pulled.error, "");
  EXPECT_EQ(pulled.member, 0U) << "PREP: OLD";
  world.hold_drain_dual();
  pulled = world.pull({world.k(0), world.k(1)});
  EXPECT_EQ(pulled.error, "");
  EXPECT_EQ(pulled.member, 1U);
  EXPECT_EQ(pulled.epoch, world.topology.fence.epoch);
  EXPECT_EQ(pulled.step, world.topology.fence.step);
  EXPECT_EQ(world.get("b", world.k(0)), "1");
  EXPECT_EQ(world.get("a", world.k(0)), "(nil)");
  pulled = world.pull({world.k(0), world.staying});
  EXPECT_EQ(pulled.error, kCrossSlot);
}

TEST(DualMulti, PullWaitsForHoldAndTellsFailuresAsReplies) {
  DualRouter::Options options;
  options.hold_timeout = milliseconds(100);
  MultiWorld world(options);
  world.hold();
  const Pulled pulled = world.pull({world.k(0)});
  EXPECT_TRUE(pulled.error.starts_with("-TRYAGAIN")) << pulled.error;
  EXPECT_TRUE(pulled.error.ends_with("\r\n"));
}

TEST(DualMulti, PullMaySubmitFromInsideItsAnswer) {
  MultiWorld world;
  ASSERT_EQ(world.run({"SET", world.k(0), "1"}), "+OK\r\n");
  world.hold_drain_dual();
  std::uint64_t inner = 0;
  world.router->pull({world.k(0), world.k(1)}, [&](const Pulled&) {
    inner = world.submit_multi({"RENAME", world.k(0), world.k(1)}, {world.k(0), world.k(1)});
  });
  ASSERT_TRUE(world.run_until([&] { return inner != 0; }));
  EXPECT_EQ(world.answer(inner), "+OK\r\n");
}

}  // namespace
}  // namespace ringshift::proxy
