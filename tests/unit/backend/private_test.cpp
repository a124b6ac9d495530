// Blocks on the shared connection, and private connections, against real redis-servers.
#include <algorithm>

#include "backend/connection.h"
#include "pool_world.h"

namespace ringshift::backend {
namespace {

using std::chrono::milliseconds;
using test::RedisProcess;

using Words = std::initializer_list<std::string_view>;

std::string block_of(std::initializer_list<Words> commands) {
  std::string out = command({"MULTI"});
  for (const Words& words : commands) out += command(words);
  return out + command({"EXEC"});
}

struct Owner final : PrivateOwner {
  std::unique_ptr<PrivateConnection> connection;
  int ready = 0;
  std::vector<std::string> pushes;
  std::optional<Outcome> lost;
  bool ends_it_when_lost = false;

  void on_ready() override { ++ready; }
  void on_push(std::string_view raw) override { pushes.emplace_back(raw); }
  void on_lost(const Failure& failure) override {
    EXPECT_FALSE(lost) << "told twice";
    lost = Outcome{false, std::string(failure.reason), failure.kind, std::string(failure.member)};
    if (ends_it_when_lost) connection.reset();
  }
};

class PrivateTest : public PoolTest {
 protected:
  void open_for(Owner& owner, Resp resp = Resp::v2, std::string_view member = "m1") {
    owner.connection = pool->open_private(snapshot->index_of(member), resp, owner);
  }
  void open_and_wait(Owner& owner, Resp resp = Resp::v2) {
    open_for(owner, resp);
    EXPECT_EQ(owner.ready, 0) << "called from inside open_private()";
    ASSERT_TRUE(run_until([&] { return owner.ready == 1; }));
  }
  Outcome ask_private(Owner& owner, Words words) {
    Sink one;
    owner.connection->send(command(words), one, 1);
    if (!run_until([&] { return !one.outcomes.empty(); })) return {false, "no outcome", {}, ""};
    return one.last();
  }
  // Blocks on `list`; returns once the member says that it does.
  void block(Owner& owner, Sink& sink, const RedisProcess& redis, std::string_view list = "queue") {
    owner.connection->send_untimed(command({"BLPOP", list, "0"}), sink, 1);
    ASSERT_TRUE(run_until([&] { return blocked_clients(redis) == 1; }));
  }
  static int blocked_clients(const RedisProcess& redis) {
    const std::string info = redis.command("INFO clients");
    return std::stoi(info.substr(info.find("blocked_clients:") + 16));
  }
  static bool knows_client(const RedisProcess& redis, std::uint64_t id) {
    return redis.command("CLIENT LIST ID " + std::to_string(id)).find("id=") != std::string::npos;
  }
  bool drain_ends(milliseconds limit = milliseconds(10000)) {
    auto drained = std::make_shared<bool>(false);
    pool->drain([drained] { *drained = true; });
    return run_until([&] { return *drained; }, limit);
  }
};

// ---- blocks ----

TEST_F(PrivateTest, ABlockHasOneAnswerInItsTurn) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  Sink sink;
  for (std::uint64_t i = 0; i < 3; ++i) {  // The first ones wait for the connection.
    backend().send(command({"INCR", "n"}), sink, 10 * i);
    backend().send_block(block_of({{"INCR", "n"}, {"GET", "n"}}), 4, sink, 10 * i + 1);
    backend().send_block(command({"GET", "n"}), 1, sink, 10 * i + 2);
    ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 3 * (i + 1); }));
  }
  EXPECT_EQ(sink.outcomes[0].second.raw, ":1\r\n");
  EXPECT_EQ(sink.outcomes[1].second.raw, "*2\r\n:2\r\n$1\r\n2\r\n");
  EXPECT_EQ(sink.outcomes[2].second.raw, "$1\r\n2\r\n");
  EXPECT_EQ(sink.outcomes[8].second.raw, "$1\r\n6\r\n");
  EXPECT_EQ(sink.outcomes[8].first, 22U);
  EXPECT_TRUE(drain_ends());
}

TEST_F(PrivateTest, ABlockWithABadCommandIsAborted) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  Sink sink;
  backend().send_block(block_of({{"SET", "k", "v"}, {"NOSUCH"}}), 4, sink, 1);
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 1; }));
  EXPECT_TRUE(sink.last().raw.starts_with("-EXECABORT")) << sink.last().raw;
  EXPECT_EQ(ask({"GET", "k"}).raw, "$-1\r\n");
}

TEST_F(PrivateTest, ABlockIsQueuedWholeOrNotAtAll) {
  RedisProcess redis;
  Options with = options();
  with.max_queued_bytes = 1000;
  open_with(with, {{"m1", redis.address()}});
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  Sink sink;
  const std::string value(400, 'v');
  backend().send(command({"SET", "first", value}), sink, 1);
  backend().send_block(block_of({{"SET", "a", value}, {"SET", "b", value}}), 4, sink, 2);
  backend().send(command({"SET", "behind", "v"}), sink, 3);
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 3; }));
  std::ranges::sort(sink.outcomes, {}, [](const auto& one) { return one.first; });
  EXPECT_TRUE(sink.outcomes[0].second.answered);
  EXPECT_EQ(sink.outcomes[1].second.kind, Failure::Kind::overloaded);
  EXPECT_FALSE(sink.outcomes[2].second.answered) << "what is behind must not overtake";
  EXPECT_EQ(ask({"EXISTS", "a", "b", "behind"}).raw, ":0\r\n");
  // By the number of commands, too. Nothing of it is sent, so what it says does not matter.
  backend().send_block(command({"PING"}), Connection::kMaxPending + 1, sink, 4);
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 4; }));
  EXPECT_EQ(sink.last().kind, Failure::Kind::overloaded);
  EXPECT_EQ(ask({"PING"}).raw, "+PONG\r\n");
}

TEST_F(PrivateTest, ABlockThatBreaksBeforeItsEndIsUnsentAndNeverExecuted) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  // More than the sockets hold, so EXEC does not leave.
  const std::string big = block_of({{"SET", "cut", "1"}, {"SET", "big", std::string(30U << 20, 'x')}});
  run_for(milliseconds(1));  // The loop's clock is late after that.
  redis.pause();
  Sink whole, cut;
  backend().send_block(block_of({{"SET", "whole", "1"}}), 3, whole, 1);
  backend().send_block(big, 4, cut, 2);
  pool->flush();
  ASSERT_TRUE(run_until([&] { return whole.outcomes.size() == 1 && cut.outcomes.size() == 1; }));
  EXPECT_EQ(whole.last().kind, Failure::Kind::unknown);
  EXPECT_EQ(cut.last().kind, Failure::Kind::unsent);
  redis.resume();
  ASSERT_TRUE(run_until([&] { return backend().connected(); }));
  EXPECT_EQ(ask({"SET", "plain", "1"}).raw, "+OK\r\n") << "outside of any MULTI";
  EXPECT_EQ(ask({"EXISTS", "cut", "big"}).raw, ":0\r\n");
  EXPECT_TRUE(drain_ends());
  EXPECT_EQ(whole.outcomes.size(), 1U);
}

// ---- private connections ----

TEST_F(PrivateTest, ServesItsOwnerAlone) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  Owner one, two;
  open_and_wait(one);
  open_and_wait(two);
  EXPECT_EQ(ask_private(one, {"CLIENT", "ID"}).raw,
            ":" + std::to_string(one.connection->client_id()) + "\r\n");
  EXPECT_NE(one.connection->client_id(), two.connection->client_id());
  EXPECT_EQ(one.connection->member(), "m1");
  EXPECT_NE(
      redis.command("CLIENT LIST ID " + std::to_string(one.connection->client_id())).find("name=rs:test"),
      std::string::npos);
  // WATCH is what it is for.
  EXPECT_EQ(ask_private(one, {"WATCH", "k"}).raw, "+OK\r\n");
  EXPECT_EQ(ask_private(two, {"SET", "k", "other"}).raw, "+OK\r\n");
  Sink sink;
  one.connection->send_block(block_of({{"SET", "k", "mine"}}), 3, sink, 1);
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 1; }));
  EXPECT_EQ(sink.last().raw, "*-1\r\n");
}

TEST_F(PrivateTest, CommandsMayBeSentBeforeItIsReady) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  Owner owner;
  open_for(owner, Resp::v3);
  EXPECT_EQ(ask_private(owner, {"GET", "none"}).raw, "_\r\n");
}

TEST_F(PrivateTest, ABlockingCommandHasNoDeadline) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  Owner owner;
  open_and_wait(owner);
  Sink sink;
  block(owner, sink, redis);
  owner.connection->send(command({"PING"}), sink, 2);  // Its deadline counts from its turn.
  run_for(milliseconds(700));
  EXPECT_TRUE(sink.outcomes.empty()) << "twice the request timeout, and still waiting";
  EXPECT_EQ(redis.command("RPUSH queue v"), ":1\r\n");
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 2; }));
  EXPECT_EQ(sink.outcomes[0].second.raw, "*2\r\n$5\r\nqueue\r\n$1\r\nv\r\n");
  EXPECT_EQ(sink.outcomes[1].second.raw, "+PONG\r\n");
}

TEST_F(PrivateTest, UnblockEndsWhatBlocks) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  Owner owner;
  open_and_wait(owner);
  Sink sink;
  // In the wakeup in which it was sent: the member may see the UNBLOCK first, and must be asked again.
  for (std::uint64_t i = 1; i <= 20; ++i) {
    owner.connection->send_untimed(command({"BLPOP", "queue", "0"}), sink, i);
    owner.connection->unblock(i % 2 == 0);
    ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == i; }));
    EXPECT_EQ(sink.last().raw.substr(0, 5), i % 2 == 0 ? "-UNBL" : "*-1\r\n");
    ASSERT_EQ(ask_private(owner, {"PING"}).raw, "+PONG\r\n");
    ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");  // The last UNBLOCK is over.
  }
  block(owner, sink, redis);
  pool->unblock(snapshot->index_of("m1"), owner.connection->client_id());
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 21; }));
  EXPECT_EQ(sink.last().raw, "*-1\r\n");
}

TEST_F(PrivateTest, ClosingOneThatBlocksKillsItOnTheMemberAndDrainsEnd) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  const std::string shared = ask({"CLIENT", "ID"}).raw;
  Owner owner;
  open_and_wait(owner);
  Sink sink;
  block(owner, sink, redis);
  bool drained = false;
  pool->drain([&] { drained = true; });
  run_for(milliseconds(100));
  EXPECT_FALSE(drained) << "a blocked pop may yet take an element";
  const std::uint64_t id = owner.connection->client_id();
  owner.connection.reset();
  bool alive_when_drained = true;
  ASSERT_TRUE(run_until([&] {
    if (drained) alive_when_drained = knows_client(redis, id);
    return drained;
  }));
  EXPECT_FALSE(alive_when_drained);
  EXPECT_TRUE(sink.outcomes.empty()) << "nobody hears of it after the end of the connection";
  EXPECT_EQ(ask({"CLIENT", "ID"}).raw, shared) << "without a new handshake";
  EXPECT_TRUE(drain_ends());
}

TEST_F(PrivateTest, ClosedWhileTheMemberStandsStillItIsKilledLater) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  Owner owner;
  open_and_wait(owner);
  redis.pause();
  Sink sink;
  owner.connection->send(command({"INCR", "n"}), sink, 1);
  run_for(milliseconds(20));
  owner.connection.reset();
  EXPECT_FALSE(drain_ends(milliseconds(700))) << "the member may yet execute it";
  redis.resume();
  EXPECT_TRUE(drain_ends());
}

TEST_F(PrivateTest, AStandstillBreaksItAtTheDeadline) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  Owner owner;
  owner.ends_it_when_lost = true;
  open_and_wait(owner);
  redis.pause();
  const Outcome outcome = ask_private(owner, {"INCR", "n"});
  EXPECT_EQ(outcome.kind, Failure::Kind::unknown);
  EXPECT_EQ(outcome.raw, "timed out after 300 ms");
  ASSERT_TRUE(run_until([&] { return owner.lost.has_value(); }));
  EXPECT_EQ(owner.lost->raw, "timed out after 300 ms");
  EXPECT_EQ(owner.lost->kind, Failure::Kind::unknown);
  EXPECT_EQ(owner.lost->member, "m1");
  // One that is opened now is lost within the time to connect.
  Owner late;
  open_for(late);
  Sink sink;
  late.connection->send_untimed(command({"BLPOP", "queue", "0"}), sink, 1);
  ASSERT_TRUE(run_until([&] { return late.lost.has_value(); }, milliseconds(2000)));
  EXPECT_EQ(late.lost->kind, Failure::Kind::unsent);
  ASSERT_EQ(sink.outcomes.size(), 1U) << "and its commands were told before";
  EXPECT_EQ(sink.last().kind, Failure::Kind::unsent);
  EXPECT_TRUE(late.connection->lost());
  late.connection->send(command({"PING"}), sink, 2);
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 2; })) << "lost is lost, and says so";
  redis.resume();
  EXPECT_TRUE(drain_ends());
}

TEST_F(PrivateTest, ExemptOnesDoNotHoldUpADrain) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  Owner owner;
  open_and_wait(owner);
  Sink sink;
  block(owner, sink, redis);
  owner.connection->set_exempt(true);
  EXPECT_TRUE(drain_ends());
  owner.connection->set_exempt(false);
  bool drained = false;
  pool->drain([&] { drained = true; });
  run_for(milliseconds(100));
  EXPECT_FALSE(drained);
  owner.connection->set_exempt(true);
  EXPECT_TRUE(run_until([&] { return drained; })) << "also when declared during the drain";
  EXPECT_TRUE(sink.outcomes.empty());
}

TEST_F(PrivateTest, FencedFromOutsideItTellsItsOwnerAndStaysBroken) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  Owner blocked, quiet;
  open_and_wait(blocked);
  open_and_wait(quiet);
  Sink sink;
  block(blocked, sink, redis);
  for (Owner* owner : {&blocked, &quiet}) {
    EXPECT_EQ(redis.command("CLIENT KILL ID " + std::to_string(owner->connection->client_id())), ":1\r\n");
  }
  ASSERT_TRUE(run_until([&] { return blocked.lost && quiet.lost; }));
  ASSERT_EQ(sink.outcomes.size(), 1U);
  EXPECT_EQ(sink.last().kind, Failure::Kind::unknown);
  EXPECT_EQ(blocked.lost->kind, Failure::Kind::unknown);
  EXPECT_EQ(quiet.lost->kind, Failure::Kind::unsent);
  EXPECT_EQ(quiet.lost->raw, "the member closed the connection");
  EXPECT_TRUE(drain_ends()) << "the member says that it is gone";
  EXPECT_EQ(ask_private(quiet, {"PING"}).kind, Failure::Kind::unsent);
  EXPECT_FALSE(quiet.connection->connected());
}

TEST_F(PrivateTest, PushesGoToTheOwner) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  Owner owner;
  open_and_wait(owner, Resp::v3);
  owner.connection->send_for_pushes(command({"SUBSCRIBE", "news", "more"}));
  ASSERT_TRUE(run_until([&] { return owner.pushes.size() == 2; }));
  EXPECT_EQ(owner.pushes[0], ">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
  EXPECT_EQ(ask({"PUBLISH", "news", "hi"}).raw, ":1\r\n");
  ASSERT_TRUE(run_until([&] { return owner.pushes.size() == 3; }));
  EXPECT_EQ(owner.pushes[2], ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n");
  EXPECT_EQ(ask_private(owner, {"PING"}).raw, "+PONG\r\n");
  EXPECT_TRUE(drain_ends()) << "a subscription is no unanswered command";
  owner.connection->send_for_pushes(command({"SUBSCRIBE"}));
  ASSERT_TRUE(run_until([&] { return owner.lost.has_value(); }));
  EXPECT_NE(owner.lost->raw.find("wrong number of arguments"), std::string::npos) << owner.lost->raw;
}

TEST_F(PrivateTest, CleanOnesAreUsedAgain) {
  RedisProcess redis;
  Options with = options();
  with.max_idle_per_member = 2;
  open_with(with, {{"m1", redis.address()}});
  std::vector<std::unique_ptr<Owner>> owners;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 3; ++i) {
    owners.push_back(std::make_unique<Owner>());
    open_and_wait(*owners.back());
    ids.push_back(owners.back()->connection->client_id());
  }
  for (auto& owner : owners) pool->give_back(std::move(owner->connection));
  owners.clear();
  ASSERT_TRUE(run_until([&] { return !knows_client(redis, ids[2]); })) << "more than are kept";
  Owner again, other_resp;
  open_and_wait(again);
  EXPECT_EQ(again.connection->client_id(), ids[1]);
  EXPECT_EQ(ask_private(again, {"PING"}).raw, "+PONG\r\n");
  open_and_wait(other_resp, Resp::v3);
  EXPECT_NE(other_resp.connection->client_id(), ids[0]);
  // One that is not clean is closed, in whatever way its owner lets it go.
  Sink sink;
  block(again, sink, redis);
  pool->give_back(std::move(again.connection));
  ASSERT_TRUE(run_until([&] { return !knows_client(redis, ids[1]); }));
  // An idle one that breaks is not given to anybody.
  EXPECT_EQ(redis.command("CLIENT KILL ID " + std::to_string(ids[0])), ":1\r\n");
  run_for(milliseconds(20));
  Owner fresh;
  open_and_wait(fresh);
  EXPECT_NE(fresh.connection->client_id(), ids[0]);
  EXPECT_TRUE(drain_ends());
}

TEST_F(PrivateTest, TheirNumberIsBounded) {
  RedisProcess redis;
  Options with = options();
  with.max_private = 2;
  open_with(with, {{"m1", redis.address()}});
  Owner one, two, three;
  open_and_wait(one);
  open_and_wait(two);
  open_for(three);
  Sink sink;
  three.connection->send(command({"PING"}), sink, 1);
  ASSERT_TRUE(run_until([&] { return three.lost.has_value(); }));
  EXPECT_EQ(three.lost->kind, Failure::Kind::overloaded);
  EXPECT_EQ(three.lost->raw, "this worker has its limit of 2 private connections");
  ASSERT_EQ(sink.outcomes.size(), 1U);
  EXPECT_EQ(sink.last().kind, Failure::Kind::overloaded);
  pool->give_back(std::move(one.connection));
  Owner four;
  open_and_wait(four, Resp::v3);  // The idle one makes room.
  EXPECT_EQ(ask_private(four, {"PING"}).raw, "+PONG\r\n");
}

TEST_F(PrivateTest, AMemberThatLeavesOrMovesLosesThem) {
  RedisProcess first, second;
  open({{"m1", first.address()}, {"m2", second.address()}});
  Owner leaves, moves;
  open_for(leaves);
  open_for(moves, Resp::v2, "m2");
  ASSERT_TRUE(run_until([&] { return leaves.ready == 1 && moves.ready == 1; }));
  Sink sink;
  block(leaves, sink, first);
  adopt({{"m2", first.address()}});
  EXPECT_FALSE(leaves.lost || moves.lost) << "told from inside adopt()";
  ASSERT_TRUE(run_until([&] { return leaves.lost && moves.lost; }));
  EXPECT_EQ(leaves.lost->raw, "the member left the cluster");
  EXPECT_EQ(leaves.lost->kind, Failure::Kind::unknown);
  EXPECT_EQ(moves.lost->raw, "the member moved from " + second.address() + " to " + first.address());
  EXPECT_EQ(sink.last().kind, Failure::Kind::unknown);
  EXPECT_TRUE(drain_ends());
}

TEST_F(PrivateTest, ItsOwnerMayEndItInAnyOfItsCallbacks) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  Owner owner;
  Sink sink;
  sink.then = [&](std::uint64_t) { owner.connection.reset(); };
  open_and_wait(owner);
  for (std::uint64_t i = 0; i < 5; ++i) owner.connection->send(command({"PING"}), sink, i);
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 1; }));
  EXPECT_TRUE(drain_ends());
  EXPECT_EQ(sink.outcomes.size(), 1U) << "in a reply";

  Owner failing;
  Sink failed;
  failed.then = [&](std::uint64_t) { failing.connection.reset(); };
  open_and_wait(failing);
  redis.pause();
  for (std::uint64_t i = 0; i < 5; ++i) failing.connection->send(command({"PING"}), failed, i);
  ASSERT_TRUE(run_until([&] { return failed.outcomes.size() == 1; }));
  redis.resume();
  EXPECT_TRUE(drain_ends());
  EXPECT_EQ(failed.outcomes.size(), 1U) << "in a failure";
  EXPECT_FALSE(failing.lost);
}

TEST_F(PrivateTest, ItMayOutliveThePool) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  Owner owner;
  open_and_wait(owner);
  Sink sink;
  block(owner, sink, redis);
  pool.reset();
  EXPECT_TRUE(owner.connection->lost());
  EXPECT_EQ(owner.connection->unanswered(), 0U);
  owner.connection->send(command({"PING"}), sink, 2);
  owner.connection->unblock();
  owner.connection.reset();
  EXPECT_TRUE(sink.outcomes.empty());
}

TEST_F(PrivateTest, ItLooksBeforeItServes) {
  RedisProcess redis;
  FakeRegistry registry;
  registry.matches = true;
  open({{"m1", redis.address()}}, &registry);
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  registry.matches = false;
  Owner owner, late;
  Sink sink;
  open_for(owner);
  owner.connection->send(command({"PING"}), sink, 1);
  ASSERT_TRUE(run_until([&] { return registry.waiting.size() == 1; }));
  EXPECT_TRUE(sink.outcomes.empty());
  registry.waiting[0](true);
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 1; }));
  EXPECT_EQ(sink.last().raw, "+PONG\r\n");
  open_for(late);
  late.connection->send_untimed(command({"BLPOP", "queue", "0"}), sink, 2);
  ASSERT_TRUE(run_until([&] { return late.lost.has_value(); }, milliseconds(3000)));
  EXPECT_NE(late.lost->raw.find("waiting for the registry"), std::string::npos) << late.lost->raw;
  EXPECT_EQ(sink.last().kind, Failure::Kind::unsent);
}

TEST_F(PrivateTest, I3WhatWaitsForItsConnectionIsDroppedWhenAStepPasses) {
  RedisProcess redis;
  FakeRegistry registry;
  open({{"m1", redis.address()}}, &registry);
  Owner owner;
  Sink sink;
  open_for(owner);
  owner.connection->send_untimed(command({"BLPOP", "queue", "0"}), sink, 1);
  ASSERT_TRUE(run_until([&] { return registry.waiting.size() == 2; }));
  topology::Topology next = snapshot->topology();
  ++next.fence.step;
  snapshot = *topology::Snapshot::compile(next, {0, 1U << 30});
  pool->adopt(snapshot);
  EXPECT_TRUE(sink.outcomes.empty());
  registry.waiting[0](true);
  registry.waiting[1](true);
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 1 && owner.ready == 1; }));
  EXPECT_EQ(sink.last().kind, Failure::Kind::unsent);
  EXPECT_EQ(ask_private(owner, {"PING"}).raw, "+PONG\r\n") << "the connection itself goes on";
  EXPECT_EQ(blocked_clients(redis), 0);
}

}  // namespace
}  // namespace ringshift::backend
