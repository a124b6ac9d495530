// What the DualRouter does in each phase, over real servers.
#include "dual_world.h"
#include "proxy/hot_keys.h"

namespace ringshift::proxy {
namespace {

using backend::Resp;
using std::chrono::milliseconds;
using topology::ReadOrder;

TEST(DualRouter, PrepAndKeysThatStayGoToTheirOwner) {
  DualWorld world;
  EXPECT_EQ(world.run({"SET", world.key, "1"}), "+OK\r\n");
  EXPECT_EQ(world.get("a", world.key), "1") << "PREP: OLD";
  world.hold();
  EXPECT_EQ(world.run({"SET", world.staying, "2"}), "+OK\r\n") << "HOLD is for keys that move";
  EXPECT_EQ(world.get("a", world.staying), "2");
  EXPECT_FALSE(world.router->busy());
}

// A burst on one key: answers as if the commands had run one after the other, in every phase.
TEST(DualRouter, ProgramOrderOfABurst) {
  DualWorld world;
  const auto burst = [&](const char* what) {
    SCOPED_TRACE(what);
    const std::string& k = world.key;
    world.answers.order.clear();
    std::vector<std::uint64_t> tags;
    tags.push_back(world.submit({"SET", k, "5"}));
    tags.push_back(world.submit({"GET", k}));
    tags.push_back(world.submit({"INCR", k}));
    tags.push_back(world.submit({"STRLEN", k}));
    tags.push_back(world.submit({"GET", k}));
    tags.push_back(world.submit({"DEL", k}));
    tags.push_back(world.submit({"GET", k}));
    tags.push_back(world.submit({"INCR", k}));
    tags.push_back(world.submit({"GET", k}));
    const char* expected[] = {"+OK\r\n", "$1\r\n5\r\n", ":6\r\n", ":1\r\n",     "$1\r\n6\r\n",
                              ":1\r\n",  "$-1\r\n",     ":1\r\n", "$1\r\n1\r\n"};
    for (std::size_t i = 0; i < tags.size(); ++i) EXPECT_EQ(world.answer(tags[i]), expected[i]) << i;
    EXPECT_EQ(world.answers.order, tags) << "answers came out of order";
    EXPECT_FALSE(world.router->busy());
    EXPECT_FALSE(world.router->pending(k));
  };
  burst("PREP");
  world.hold_drain_dual();
  burst("DUAL, the key on OLD");
  burst("DUAL, the key known");
  world.hold_drain_dual();
  burst("DUAL of a new step, the key on NEW");
  world.read_order(ReadOrder::new_first);
  burst("NEW first");
  world.settle();
  burst("NEW");
  world.rollback();
  world.drain();
  world.dual();
  burst("rollback");
  world.settle();
  burst("rolled back");
  EXPECT_EQ(world.get("a", world.key), "1");
  EXPECT_EQ(world.get("b", world.key), "(nil)");
}

TEST(DualRouter, HoldParksAndDualReleasesInOrder) {
  DualWorld world;
  ASSERT_EQ(world.run({"SET", world.key, "1"}), "+OK\r\n");
  world.hold();
  const auto first = world.submit({"INCR", world.key}), second = world.submit({"GET", world.key}),
             third = world.submit({"INCR", world.key});
  EXPECT_TRUE(world.router->busy());
  EXPECT_TRUE(world.router->pending(world.key));
  EXPECT_FALSE(world.router->pending(world.moving_keys[1]));
  world.run_for(milliseconds(50));
  EXPECT_EQ(world.answers.find(first), nullptr) << "nothing may be sent in HOLD";
  EXPECT_EQ(world.get("a", world.key), "1");
  world.drain();  // Parked commands do not keep HOLD from its end.
  world.dual();
  EXPECT_EQ(world.answer(third), ":3\r\n");
  EXPECT_EQ(world.answer(second), "$1\r\n2\r\n");
  EXPECT_EQ(world.answer(first), ":2\r\n");
  EXPECT_EQ(world.get("b", world.key), "3");
  EXPECT_EQ(world.get("a", world.key), "(nil)");
}

TEST(DualRouter, ParkingEndsAtItsTimeoutAsUnsent) {
  DualRouter::Options options;
  options.hold_timeout = milliseconds(100);
  DualWorld world(options);
  world.hold();
  const auto set = world.submit({"SET", world.key, "1"}), get = world.submit({"GET", world.key});
  EXPECT_TRUE(world.answer(set).starts_with("(unsent)")) << world.answer(set);
  EXPECT_TRUE(world.answer(get).starts_with("(unsent)")) << world.answer(get);
  EXPECT_FALSE(world.router->busy());
  world.drain();
  world.dual();
  world.run_for(milliseconds(20));
  EXPECT_EQ(world.get("a", world.key) + world.get("b", world.key), "(nil)(nil)")
      << "unsent means not executed";
}

TEST(DualRouter, ParkedBytesAreBounded) {
  DualRouter::Options options;
  options.max_parked_bytes = 1000;
  DualWorld world(options);
  world.hold();
  const std::string value(300, 'x');
  std::vector<std::uint64_t> tags;
  for (int i = 0; i < 6; ++i) tags.push_back(world.submit({"SET", world.key, value + std::to_string(i)}));
  EXPECT_TRUE(world.run_until([&] { return world.answers.by_tag.size() == 3; }));
  for (int i = 3; i < 6; ++i) {
    EXPECT_TRUE(world.answer(tags[static_cast<std::size_t>(i)]).starts_with("(overloaded)")) << i;
  }
  world.drain();
  world.dual();
}

TEST(DualRouter, AWritePullsValueTypeAndTtl) {
  DualWorld world;
  const auto& keys = world.moving_keys;
  world.ask("a", {"SET", keys[0], "5", "PX", "60000"});
  world.ask("a", {"RPUSH", keys[1], "x", "y"});
  world.hold_drain_dual();
  EXPECT_EQ(world.run({"INCR", keys[0]}), ":6\r\n");
  EXPECT_GT(world.ask("b", {"PTTL", keys[0]}).integer, 50000);
  EXPECT_EQ(world.run({"RPUSH", keys[1], "z"}), ":3\r\n");
  EXPECT_EQ(world.ask("b", {"TYPE", keys[1]}).text, "list");
  EXPECT_EQ(world.run({"INCR", keys[1]}).substr(0, 10), "-WRONGTYPE");
  EXPECT_EQ(world.run({"SET", keys[2], "v"}), "+OK\r\n") << "a key that was nowhere";
  EXPECT_EQ(world.ask("a", {"DBSIZE"}).integer, 1) << "only the stamp";
  EXPECT_EQ(world.ask("b", {"KEYS", "rs:claim:*"}).items.size(), 0U) << "every pull is sealed";
}

TEST(DualRouter, AReadHitOnOldAsksNobodyElse) {
  DualWorld world;
  world.ask("a", {"SET", world.key, "v"});
  world.hold_drain_dual();
  world.reset_stats();
  EXPECT_EQ(world.run({"GET", world.key}), "$1\r\nv\r\n");
  EXPECT_EQ(world.run({"STRLEN", world.key}), ":1\r\n");
  EXPECT_EQ(world.calls("b", "get") + world.calls("b", "strlen") + world.calls("b", "del"), 0U);
  EXPECT_EQ(world.calls("a", "exists"), 1U) << "a read that is no GET asks EXISTS behind it";
  EXPECT_EQ(world.get("a", world.key), "v");
}

// I8: a read that misses on OLD seals before it asks NEW, and from then on the key is known.
TEST(DualRouter, I8AReadMissSealsAndIsKnownAfterwards) {
  for (const bool get : {true, false}) {
    DualWorld world;
    world.hold_drain_dual();
    world.ask("b", {"SET", world.key, "on new"});
    world.ask("b", {"SET", transfer::claim_key(world.key), "another's"});
    const auto read = [&] { return get ? world.run({"GET", world.key}) : world.run({"STRLEN", world.key}); };
    const std::string expected = get ? "$6\r\non new\r\n" : ":6\r\n";
    EXPECT_EQ(read(), expected);
    EXPECT_EQ(world.get("b", transfer::claim_key(world.key)), "(nil)") << "no seal";
    world.reset_stats();
    EXPECT_EQ(read(), expected);
    EXPECT_EQ(world.calls("a", "get") + world.calls("a", "strlen"), 0U) << "known keys go straight to NEW";
  }
}

TEST(DualRouter, NewFirstAnswersFromNewAndLooksAtOldOnlyOnNil) {
  DualWorld world;
  world.ask("a", {"SET", world.key, "old"});
  world.hold_drain_dual();
  world.read_order(ReadOrder::new_first);
  world.reset_stats();
  EXPECT_EQ(world.run({"GET", world.key}), "$3\r\nold\r\n");
  EXPECT_EQ(world.calls("b", "get"), 1U);
  world.move_one(world.key);
  world.reset_stats();
  EXPECT_EQ(world.run({"GET", world.key}), "$3\r\nold\r\n");
  EXPECT_EQ(world.calls("a", "get"), 0U) << "a hit on NEW is the answer";
  EXPECT_EQ(world.run({"GET", world.moving_keys[1]}, Resp::v3), "_\r\n") << "RESP3's nil, on both";
}

// I6: "known" is forgotten with its step: after a rollback and another start the key may be on OLD again.
TEST(DualRouter, I6KnownIsForgottenInANewStep) {
  DualWorld world;
  world.ask("a", {"SET", world.key, "1"});
  world.hold_drain_dual();
  EXPECT_EQ(world.run({"INCR", world.key}), ":2\r\n");
  world.rollback();
  world.drain();
  world.dual();
  EXPECT_EQ(world.run({"INCR", world.key}), ":3\r\n");
  EXPECT_EQ(world.get("a", world.key), "3");
  EXPECT_EQ(world.get("b", world.key), "(nil)");
  world.topology.resize->rollback = false;  // A next resize, the same way.
  ++world.topology.fence.epoch;
  world.hold_drain_dual();
  EXPECT_EQ(world.run({"INCR", world.key}), ":4\r\n") << "a pull skipped for what an earlier step knew";
  EXPECT_EQ(world.get("b", world.key), "4");
}

TEST(DualRouter, WhatKnownCannotHoldIsPulledAgain) {
  DualRouter::Options options;
  options.max_known_bytes = 0;
  DualWorld world(options);
  world.ask("a", {"SET", world.key, "1"});
  world.hold_drain_dual();
  for (int i = 2; i < 6; ++i) EXPECT_EQ(world.run({"INCR", world.key}), fmt::format(":{}\r\n", i));
}

// The bound is of memory, what an entry costs beside its name included; beyond it keys are pulled again.
TEST(DualRouter, WhatIsKnownIsBounded) {
  DualRouter::Options options;
  options.max_known_bytes = 250;  // Two short names.
  DualWorld world(options);
  world.hold_drain_dual();
  for (const std::string& key : world.moving_keys) EXPECT_EQ(world.run({"INCR", key}), ":1\r\n");
  const auto claims = [&](const std::string& key) {
    const std::uint64_t before = world.calls("b", "eval");
    EXPECT_EQ(world.run({"INCR", key}), ":2\r\n");
    return world.calls("b", "eval") - before;
  };
  EXPECT_EQ(claims(world.moving_keys[0]), 0U);
  EXPECT_EQ(claims(world.moving_keys[1]), 0U);
  EXPECT_GT(claims(world.moving_keys[2]), 0U);
  EXPECT_GT(claims(world.moving_keys[3]), 0U);
}

// Which keys clients ask for most is counted while a resize runs, and at no other time.
TEST(DualRouter, HotKeysOfTheMovingOnesArePutUpWhileAResizeRuns) {
  DualRouter::Options options;
  options.hot_keys = std::make_shared<HotKeyBoard>();
  DualWorld world(options);
  EXPECT_TRUE(world.router->busy()) << "so that sessions ask";
  for (int i = 0; i < 40; ++i) {
    world.router->note(world.key);
    world.router->note(world.staying);
    if (i % 4 == 0) world.router->note(world.moving_keys[1]);
  }
  const auto top = options.hot_keys->top(10);
  ASSERT_GE(top.size(), 2U);
  EXPECT_EQ(top[0].first, world.key);
  EXPECT_EQ(top[1].first, world.moving_keys[1]);
  for (const auto& [key, count] : top) EXPECT_NE(key, world.staying) << "it does not move";
  world.topology.resize.reset();
  world.publish();
  EXPECT_FALSE(world.router->busy());
  EXPECT_TRUE(options.hot_keys->top(10).empty());
  world.router->note(world.key);
  EXPECT_TRUE(options.hot_keys->top(10).empty());
}

// The gate is closed when our snapshot is late: a write waits, a read is answered.
TEST(DualRouter, AClosedGateMakesAWriteWaitForTheNextSnapshot) {
  DualWorld world;
  world.ask("a", {"SET", world.key, "1"});
  world.hold_drain_dual();
  world.set_gate("b", false);
  const auto incr = world.submit({"INCR", world.key});
  world.run_for(milliseconds(50));
  EXPECT_EQ(world.answers.find(incr), nullptr);
  world.hold();  // What the controller was at.
  world.drain();
  world.dual();
  EXPECT_EQ(world.answer(incr), ":2\r\n");
}

TEST(DualRouter, AGateThatStaysClosedEndsAtTheTimeoutAsUnsent) {
  DualRouter::Options options;
  options.request_timeout = milliseconds(100);
  DualWorld world(options);
  world.ask("a", {"SET", world.key, "1"});
  world.hold_drain_dual();
  world.set_gate("b", false);
  const auto incr = world.submit({"INCR", world.key});
  EXPECT_TRUE(world.answer(incr).starts_with("(unsent)")) << world.answer(incr);
  EXPECT_EQ(world.get("a", world.key), "1");
  EXPECT_EQ(world.run({"GET", world.key}), "$1\r\n1\r\n") << "reads never wait for a gate";
}

TEST(DualRouter, AnothersClaimIsWaitedFor) {
  DualWorld world;
  world.ask("a", {"SET", world.key, "1"});
  world.hold_drain_dual();
  world.ask("b", {"SET", transfer::claim_key(world.key), "another's"});
  const auto incr = world.submit({"INCR", world.key});
  world.run_for(milliseconds(30));
  EXPECT_EQ(world.answers.find(incr), nullptr);
  world.ask("b", {"DEL", transfer::claim_key(world.key)});
  EXPECT_EQ(world.answer(incr), ":2\r\n");
}

// The claim vanishes again and again between CLAIM and RESTORE: STALE, and another try with a fresh token.
TEST(DualRouter, I9ALostClaimIsTriedAgain) {
  DualWorld world;
  world.ask("a", {"SET", world.key, "1"});
  world.hold_drain_dual();
  world.reset_stats();
  world.old_redis.pause();  // DUMP waits, the claim does not.
  const auto incr = world.submit({"INCR", world.key});
  ASSERT_TRUE(world.run_until([&] { return world.get("b", transfer::claim_key(world.key)) == "(nil)"; }));
  world.run_for(milliseconds(20));
  world.ask("b", {"DEL", transfer::claim_key(world.key)});
  world.ask("b", {"SET", transfer::claim_key(world.key), "another's", "PX", "50"});
  world.old_redis.resume();
  EXPECT_EQ(world.answer(incr), ":2\r\n");
  EXPECT_GE(world.calls("b", "eval"), 3U) << "CLAIM, RESTORE (STALE), CLAIM ...";
}

TEST(DualRouter, OutOfMemoryOnNewIsAnErrorAndTheKeyStaysOnOld) {
  DualWorld world;
  world.ask("a", {"SET", world.key, "1"});
  world.hold_drain_dual();
  world.ask("b", {"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(world.run({"INCR", world.key}).substr(0, 4), "-OOM");
  EXPECT_EQ(world.get("a", world.key), "1");
  EXPECT_EQ(world.run({"GET", world.key}), "$1\r\n1\r\n");
  world.ask("b", {"CONFIG", "SET", "maxmemory", "0"});
  world.ask("b", {"DEL", transfer::claim_key(world.key)});
  EXPECT_EQ(world.run({"INCR", world.key}), ":2\r\n");
}

// NEW is down: nothing is lost and nothing is in doubt, since no command was sent.
TEST(DualRouter, AMemberThatIsGoneFailsWritesAsUnsent) {
  DualRouter::Options options;
  options.request_timeout = milliseconds(300);
  backend::Options pool_options;
  pool_options.request_timeout = milliseconds(300);
  DualWorld world(options, pool_options);
  world.ask("a", {"SET", world.key, "1"});
  world.hold_drain_dual();
  world.new_redis.kill();
  const auto incr = world.submit({"INCR", world.key});
  EXPECT_TRUE(world.answer(incr).starts_with("(unsent)")) << world.answer(incr);
  EXPECT_EQ(world.get("a", world.key), "1");
  EXPECT_EQ(world.run({"GET", world.key}), "$1\r\n1\r\n") << "OLD still answers";
  EXPECT_FALSE(world.router->busy());
}

// I3: a pull stands between two steps when HOLD comes. Nothing of the old step may be sent after adopt(), and
// HOLD must not wait for anything but what was sent.
TEST(DualRouter, I3NothingOfAnOldStepIsSentAfterHold) {
  DualWorld world;
  world.ask("a", {"SET", world.key, "1"});
  world.hold_drain_dual();
  ASSERT_EQ(world.run({"GET", world.key}), "$1\r\n1\r\n");  // Connected.
  world.old_redis.pause();                                  // EXISTS and DUMP are not answered.
  const auto incr = world.submit({"INCR", world.key});
  world.run_for(milliseconds(30));
  world.topology.fence.step++;
  world.topology.resize->phase = topology::Phase::hold;
  world.set_gate("b", false);
  world.publish();
  const auto get = world.submit({"GET", world.key});
  world.old_redis.resume();
  world.reset_stats();
  world.drain();
  world.run_for(milliseconds(50));
  EXPECT_EQ(world.answers.find(incr), nullptr);
  EXPECT_EQ(world.calls("b", "eval") + world.calls("b", "incr") + world.calls("b", "del"), 0U);
  EXPECT_EQ(world.get("a", world.key), "1");
  world.set_gate("a", false);
  world.dual();
  EXPECT_EQ(world.answer(incr), ":2\r\n");
  EXPECT_EQ(world.answer(get), "$1\r\n2\r\n");
}

// The same at every continuation of a pull: CLAIM/EXISTS, DUMP, RESTORE, UNLINK. The member at which the step
// waits is stopped, HOLD is adopted, the member goes on.
TEST(DualRouter, I3AStepThatEndsAtAnyPointOfAPullLosesNothing) {
  for (int delay_us = 0; delay_us < 6000; delay_us += 300) {
    DualWorld world;
    world.ask("a", {"SET", world.key, "1"});
    world.hold_drain_dual();
    ASSERT_EQ(world.run({"GET", world.key}), "$1\r\n1\r\n");
    const auto incr = world.submit({"INCR", world.key});
    const auto until = DualWorld::Clock::now() + std::chrono::microseconds(delay_us);
    static_cast<void>(world.run_until([&] { return DualWorld::Clock::now() > until; }));
    world.hold();
    const auto again = world.submit({"INCR", world.key});
    world.drain();
    const std::string old_before = world.get("a", world.key), new_before = world.get("b", world.key);
    world.run_for(milliseconds(5));
    EXPECT_EQ(world.get("a", world.key), old_before) << "a command ran after HOLD was acknowledged";
    EXPECT_EQ(world.get("b", world.key), new_before) << "a command ran after HOLD was acknowledged";
    world.dual();
    EXPECT_EQ(world.answer(incr), ":2\r\n") << delay_us;
    EXPECT_EQ(world.answer(again), ":3\r\n") << delay_us;
    EXPECT_EQ(world.get("b", world.key), "3");
    EXPECT_EQ(world.get("a", world.key), "(nil)");
  }
}

// DUAL -> NEW while a pull waits for its claim: it goes on at NEW.
TEST(DualRouter, NewWhileAPullIsInFlight) {
  DualWorld world;
  world.ask("a", {"SET", world.key, "1"});
  world.hold_drain_dual();
  world.ask("b", {"SET", transfer::claim_key(world.key), "another's"});
  const auto incr = world.submit({"INCR", world.key}), get = world.submit({"GET", world.key});
  world.run_for(milliseconds(10));
  EXPECT_EQ(world.answers.find(incr), nullptr);
  // The other completes its transfer without the router's help.
  const auto value = world.ask("a", {"GET", world.key});
  world.ask("b", {"SET", world.key, value.text});
  world.ask("a", {"UNLINK", world.key});
  world.set_gate("b", false);
  world.topology.resize->done = world.topology.resize->active;
  world.topology.resize->active.clear();
  world.topology.resize->phase = topology::Phase::prep;
  world.publish();
  EXPECT_EQ(world.answer(incr), ":2\r\n");
  EXPECT_EQ(world.answer(get), "$1\r\n2\r\n");
}

// Commands that a connection had not sent when a step passed are refused, not sent under the new step.
TEST(DualRouter, I3CommandsQueuedUnderAnOlderFenceAreDropped) {
  DualWorld world;
  ASSERT_EQ(world.run({"SET", world.key, "1"}), "+OK\r\n");
  world.old_redis.kill();  // No snapshot on disk: it comes back empty.
  ASSERT_TRUE(world.run_until([&] { return !world.pool->at(0, Resp::v2).connected(); }));
  // While it is being connected again, a command of the old step is queued.
  world.old_redis.start();
  const auto set = world.submit({"SET", world.key, "late"});
  ++world.topology.fence.step;
  world.topology.resize->phase = topology::Phase::hold;
  world.topology.resize->active = {{0, topology::kSliceCount}};
  world.publish();
  EXPECT_TRUE(world.answer(set).starts_with("(unsent)")) << world.answer(set);
  world.run_for(milliseconds(200));
  EXPECT_EQ(
      backend::SyncClient::connect(world.old_redis.address()).value()->call({"EXISTS", world.key})->integer,
      0)
      << "a command of an older step reached OLD after HOLD";
}

}  // namespace
}  // namespace ringshift::proxy
