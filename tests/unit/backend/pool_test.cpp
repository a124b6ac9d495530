// The pool against real redis-servers: pipelining, stalls, crashes, orphans, drains, the Look.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "pool_world.h"

namespace ringshift::backend {
namespace {

using std::chrono::milliseconds;
using test::RedisProcess;

TEST_F(PoolTest, AnswersInOrderWithWhatTheMemberSaid) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  EXPECT_EQ(ask({"SET", "k", "v"}).raw, "+OK\r\n");
  EXPECT_EQ(ask({"GET", "k"}).raw, "$1\r\nv\r\n");
  EXPECT_EQ(ask({"GET", "none"}).raw, "$-1\r\n");
  EXPECT_EQ(ask({"NOSUCH"}).raw.substr(0, 5), "-ERR ");
  EXPECT_TRUE(backend().connected());
  EXPECT_NE(redis.command("CLIENT LIST").find("name=rs:test"), std::string::npos);
}

TEST_F(PoolTest, PipelinesTenThousandCommands) {
  RedisProcess redis;
  Options with = options();
  with.request_timeout = milliseconds(30000);  // However slow the machine.
  open_with(with, {{"m1", redis.address()}});
  Sink sink;
  for (std::uint64_t i = 0; i < 10000; ++i) backend().send(command({"INCR", "n"}), sink, i);
  EXPECT_TRUE(sink.outcomes.empty()) << "the sink is never called from inside send()";
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 10000; }));
  for (std::uint64_t i = 0; i < 10000; ++i) {
    ASSERT_EQ(sink.outcomes[i].first, i);
    ASSERT_EQ(sink.outcomes[i].second.raw, ":" + std::to_string(i + 1) + "\r\n");
  }
}

TEST_F(PoolTest, ASinkMaySendFromInsideItsReply) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  Sink sink;
  sink.then = [&](std::uint64_t tag) {
    if (tag < 100) backend().send(command({"INCR", "n"}), sink, tag + 1);
  };
  backend().send(command({"INCR", "n"}), sink, 1);
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 100; }));
  EXPECT_EQ(sink.last().raw, ":100\r\n");
}

TEST_F(PoolTest, SpeaksResp3OnAConnectionOfItsOwn) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  EXPECT_EQ(ask({"HSET", "h", "f", "1"}).raw, ":1\r\n");
  EXPECT_EQ(ask({"HGETALL", "h"}, "m1", Resp::v2).raw, "*2\r\n$1\r\nf\r\n$1\r\n1\r\n");
  EXPECT_EQ(ask({"HGETALL", "h"}, "m1", Resp::v3).raw, "%1\r\n$1\r\nf\r\n$1\r\n1\r\n");
  EXPECT_EQ(ask({"GET", "none"}, "m1", Resp::v3).raw, "_\r\n");
  // Out-of-band pushes reach nobody and shift nothing: tracking invalidates k between two replies.
  EXPECT_EQ(ask({"CLIENT", "TRACKING", "on"}, "m1", Resp::v3).raw, "+OK\r\n");
  EXPECT_EQ(ask({"GET", "k"}, "m1", Resp::v3).raw, "_\r\n");
  EXPECT_EQ(ask({"SET", "k", "v"}, "m1", Resp::v2).raw, "+OK\r\n");
  EXPECT_EQ(ask({"GET", "k"}, "m1", Resp::v3).raw, "$1\r\nv\r\n");
}

TEST_F(PoolTest, CarriesValuesOfTwentyMegabytes) {
  RedisProcess redis;
  Options with = options();
  with.request_timeout = milliseconds(5000);
  open_with(with, {{"m1", redis.address()}});
  std::string big(20U << 20, 'x');
  for (std::size_t i = 0; i < big.size(); i += 4096) big[i] = static_cast<char>('a' + i / 4096 % 26);
  EXPECT_EQ(ask({"SET", "big", big}).raw, "+OK\r\n");
  const Outcome got = ask({"GET", "big"});
  EXPECT_TRUE(got.raw == "$" + std::to_string(big.size()) + "\r\n" + big + "\r\n") << got.raw.size();
}

TEST_F(PoolTest, RefusedConnectionsFailCommandsFastAndRecover) {
  RedisProcess redis;
  redis.kill();
  open({{"m1", redis.address()}});
  Outcome first = ask({"PING"});
  EXPECT_FALSE(first.answered);
  EXPECT_EQ(first.kind, Failure::Kind::unsent);
  EXPECT_EQ(first.member, "m1");
  EXPECT_EQ(first.raw, "Connection refused");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(ask({"PING"}).raw, "Connection refused");
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(100)) << "fast, not at the deadline";
  redis.start();
  ASSERT_TRUE(run_until([&] { return backend().connected(); }));
  EXPECT_EQ(ask({"PING"}).raw, "+PONG\r\n");
}

TEST_F(PoolTest, AKilledMemberFailsWhatWasSentAsUnknownAndComesBack) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  redis.pause();
  Sink sink;
  backend().send(command({"INCR", "n"}), sink, 1);
  run_for(milliseconds(20));
  redis.kill();
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 1; }));
  EXPECT_EQ(sink.last().kind, Failure::Kind::unknown);
  bool drained = false;
  pool->drain([&] { drained = true; });
  run_for(milliseconds(30));
  EXPECT_FALSE(drained) << "whether the member still executes the command is not known yet";
  redis.start();
  ASSERT_TRUE(run_until([&] { return drained; })) << "another run id: the orphan died with its process";
  EXPECT_EQ(ask({"PING"}).raw, "+PONG\r\n");
}

TEST_F(PoolTest, AStalledMemberErrorsItsOwnCommandsAndNoOthers) {
  RedisProcess stalled, well;
  open({{"m1", stalled.address()}, {"m2", well.address()}});
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  ASSERT_EQ(ask({"PING"}, "m2").raw, "+PONG\r\n");
  stalled.pause();
  Sink lost, fine;
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < 3; ++i) backend().send(command({"INCR", "n"}), lost, i);
  fine.then = [&](std::uint64_t tag) { backend("m2").send(command({"INCR", "n"}), fine, tag + 1); };
  backend("m2").send(command({"INCR", "n"}), fine, 1);
  ASSERT_TRUE(run_until([&] { return lost.outcomes.size() == 3; }));
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, milliseconds(290));
  EXPECT_LT(took, milliseconds(5000));
  EXPECT_GT(fine.outcomes.size(), 100U);
  fine.then = {};
  for (const auto& [tag, outcome] : lost.outcomes) {
    EXPECT_EQ(outcome.kind, Failure::Kind::unknown);
    EXPECT_EQ(outcome.raw, "timed out after 300 ms");
  }
  // While it stands still, commands fail as unsent: the handshake gets no answer.
  EXPECT_EQ(ask({"PING"}).kind, Failure::Kind::unsent);
  stalled.resume();
  ASSERT_TRUE(run_until([&] { return backend().connected(); }));
  EXPECT_EQ(lost.outcomes.size(), 3U) << "late replies reach nobody";
  EXPECT_EQ(ask({"PING"}).raw, "+PONG\r\n") << "and are taken for no other command's";
}

// The heart of a resize's fence: drain() must not be done while the member may still execute a command.
TEST_F(PoolTest, DrainWaitsUntilTheBrokenConnectionIsKilledOnTheMember) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  const std::string before = ask({"CLIENT", "ID"}).raw;
  const std::string old_id = " id=" + before.substr(1, before.size() - 3) + " ";
  redis.pause();
  Sink sink;
  backend().send(command({"INCR", "n"}), sink, 1);
  bool drained = false;
  pool->drain([&] { drained = true; });
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 1; }));
  ASSERT_EQ(sink.last().kind, Failure::Kind::unknown);
  run_for(milliseconds(300));
  EXPECT_FALSE(drained) << "the command has failed for us, but the member may yet execute it";
  redis.resume();
  std::string clients;
  ASSERT_TRUE(run_until([&] {
    if (drained && clients.empty()) clients = " " + redis.command("CLIENT LIST");
    return drained;
  }));
  EXPECT_EQ(clients.find(old_id), std::string::npos) << clients;
  EXPECT_TRUE(backend().connected());
}

TEST_F(PoolTest, DrainKillsAConnectionWhoseClientIsBlocked) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  // BLPOP waits on the member for ever: only CLIENT KILL ends it, closing our end while it is blocked would
  // too.
  Sink sink;
  backend().send(command({"BLPOP", "queue", "0"}), sink, 1);
  bool drained = false;
  pool->drain([&] { drained = true; });
  ASSERT_TRUE(run_until([&] { return drained; }));
  EXPECT_EQ(sink.last().kind, Failure::Kind::unknown);
  EXPECT_NE(redis.command("INFO clients").find("blocked_clients:0"), std::string::npos);
}

TEST_F(PoolTest, DrainWithNothingInFlightIsDoneSoonAndNeverInsideTheCall) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  int done = 0;
  pool->drain([&] {
    ++done;
    pool->drain([&] { ++done; });
  });
  EXPECT_EQ(done, 0);
  ASSERT_TRUE(run_until([&] { return done == 2; }));
}

TEST_F(PoolTest, DrainDoesNotWaitForCommandsSentAfterIt) {
  RedisProcess redis;
  open({{"m1", redis.address()}});
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  Sink sink;
  std::vector<std::string> order;
  sink.then = [&](std::uint64_t tag) {
    order.push_back(std::to_string(tag));
    if (tag < 50) backend().send(command({"PING"}), sink, tag + 1);
  };
  backend().send(command({"PING"}), sink, 1);
  pool->drain([&] { order.emplace_back("drained"); });
  ASSERT_TRUE(run_until([&] { return order.size() == 51; }));
  const auto at = std::ranges::find(order, "drained") - order.begin();
  EXPECT_GE(at, 1);
  EXPECT_LT(at, 10) << "a stream of later commands must not keep it waiting";
}

TEST_F(PoolTest, AFullQueueRefusesAndSaysSo) {
  RedisProcess redis;
  Options with = options();
  with.max_queued_bytes = 1000;
  open_with(with, {{"m1", redis.address()}});
  Sink sink;
  const std::string set = command({"SET", "k", std::string(400, 'v')});
  for (std::uint64_t i = 0; i < 4; ++i) backend().send(set, sink, i);
  EXPECT_TRUE(sink.outcomes.empty());
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 4; }));
  int answered = 0, overloaded = 0;
  for (const auto& [tag, outcome] : sink.outcomes) {
    answered += outcome.answered;
    if (!outcome.answered) {
      ++overloaded;
      EXPECT_EQ(outcome.kind, Failure::Kind::overloaded);
      EXPECT_NE(outcome.raw.find("limit 1000"), std::string::npos) << outcome.raw;
    }
  }
  EXPECT_EQ(answered, 2);
  EXPECT_EQ(overloaded, 2);
}

TEST_F(PoolTest, AnOverloadedStalledMemberStaysWithinItsBound) {
  RedisProcess redis;
  Options with = options();
  with.max_queued_bytes = 8U << 20;
  open_with(with, {{"m1", redis.address()}});
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  redis.pause();
  Sink sink;
  const std::string set = command({"SET", "k", std::string(1U << 20, 'v')});
  for (std::uint64_t i = 0; i < 40; ++i) {
    backend().send(set, sink, i);
    pool->flush();
  }
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 40; }));
  std::size_t kinds[3] = {};
  for (const auto& [tag, outcome] : sink.outcomes) ++kinds[static_cast<int>(outcome.kind)];
  EXPECT_GT(kinds[static_cast<int>(Failure::Kind::overloaded)], 10U);
  EXPECT_GE(kinds[static_cast<int>(Failure::Kind::unsent)], 5U)
      << "what never left is known not to be executed";
  EXPECT_GE(kinds[static_cast<int>(Failure::Kind::unknown)], 1U);
  redis.resume();
}

TEST_F(PoolTest, FollowsTheSnapshot) {
  RedisProcess first, second;
  open({{"m1", first.address()}, {"m2", second.address()}});
  ASSERT_EQ(ask({"SET", "k", "first"}, "m1").raw, "+OK\r\n");
  ASSERT_EQ(ask({"SET", "k", "second"}, "m2").raw, "+OK\r\n");
  // Indices move, and ids keep their connections; a command under way is still answered.
  Sink sink;
  backend("m1").send(command({"GET", "k"}), sink, 1);
  adopt({{"m2", second.address()}, {"m1", first.address()}});
  EXPECT_TRUE(backend("m1").connected());
  EXPECT_EQ(ask({"GET", "k"}, "m1").raw, "$5\r\nfirst\r\n");
  EXPECT_EQ(ask({"GET", "k"}, "m2").raw, "$6\r\nsecond\r\n");
  // The same id at another address.
  backend("m1").send(command({"GET", "k"}), sink, 2);
  adopt({{"m1", second.address()}, {"m2", first.address()}});
  EXPECT_EQ(ask({"GET", "k"}, "m1").raw, "$6\r\nsecond\r\n");
  EXPECT_EQ(ask({"GET", "k"}, "m2").raw, "$5\r\nfirst\r\n");
  ASSERT_EQ(sink.outcomes.size(), 2U);
  EXPECT_EQ(sink.outcomes[1].second.raw, "$5\r\nfirst\r\n") << "answered by the member it was sent to";
  // A member that is gone loses its connection.
  adopt({{"m1", second.address()}});
  ASSERT_TRUE(
      run_until([&] { return first.command("CLIENT LIST").find("name=rs:test") == std::string::npos; }));
}

// ---- the Look ----

TEST_F(PoolTest, AMatchingStampNeedsNoRegistry) {
  RedisProcess redis;
  EXPECT_EQ(redis.command("SET rs:stamp 1.2.open.x"), "+OK\r\n");
  FakeRegistry registry;
  registry.matches = true;
  open({{"m1", redis.address()}}, &registry);
  EXPECT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  EXPECT_EQ(registry.stamp, "1.2.open.x");
  EXPECT_EQ(registry.run_id.size(), 40U);
  EXPECT_NE(redis.command("INFO server").find("run_id:" + registry.run_id), std::string::npos);
  EXPECT_TRUE(registry.waiting.empty());
}

TEST_F(PoolTest, OtherwiseNothingIsServedUntilTheRegistryWasRead) {
  RedisProcess redis;
  FakeRegistry registry;
  open({{"m1", redis.address()}}, &registry);
  ASSERT_TRUE(run_until([&] { return registry.waiting.size() == 1; }));
  EXPECT_EQ(registry.stamp, std::nullopt);
  Sink sink;
  backend().send(command({"INCR", "n"}), sink, 1);
  registry.waiting[0](false);  // The registry is away.
  ASSERT_TRUE(run_until([&] { return registry.waiting.size() == 2; })) << "tried again";
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 1; }));
  EXPECT_EQ(sink.last().kind, Failure::Kind::unsent) << "waits no longer than its deadline";
  EXPECT_NE(sink.last().raw.find("waiting for the registry"), std::string::npos) << sink.last().raw;
  backend().send(command({"INCR", "n"}), sink, 2);
  backend().send(command({"INCR", "n"}), sink, 3);
  registry.waiting[1](true);
  EXPECT_TRUE(backend().connected());
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 3; }));
  EXPECT_EQ(sink.outcomes[1].second.raw, ":1\r\n") << "the expired command was not executed";
  EXPECT_EQ(sink.outcomes[2].second.raw, ":2\r\n");
}

TEST_F(PoolTest, ALateAnswerOfTheRegistryServesNoLaterConnection) {
  RedisProcess redis;
  FakeRegistry registry;
  open({{"m1", redis.address()}}, &registry);
  ASSERT_TRUE(run_until([&] { return registry.waiting.size() == 1; }));
  EXPECT_EQ(redis.command("CLIENT KILL TYPE normal SKIPME yes"), ":1\r\n");
  ASSERT_TRUE(run_until([&] { return registry.waiting.size() == 2; }));
  registry.waiting[0](true);  // Read before the second connection was made.
  EXPECT_FALSE(backend().connected());
  registry.waiting[1](true);
  EXPECT_TRUE(backend().connected());
  pool.reset();
  registry.waiting[1](true);  // After the end of the pool.
}

TEST_F(PoolTest, AConnectionIsNamedBeforeItLooks) {
  RedisProcess redis;
  FakeRegistry registry;
  open({{"m1", redis.address()}}, &registry);
  ASSERT_TRUE(run_until([&] { return registry.looks == 1; }));
  EXPECT_NE(redis.command("CLIENT LIST").find("name=rs:test"), std::string::npos);
}

TEST_F(PoolTest, AReconnectLooksAgain) {
  RedisProcess redis;
  FakeRegistry registry;
  registry.matches = true;
  open({{"m1", redis.address()}}, &registry);
  ASSERT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  registry.matches = false;
  EXPECT_EQ(redis.command("CLIENT KILL TYPE normal SKIPME yes"), ":1\r\n");
  ASSERT_TRUE(run_until([&] { return registry.waiting.size() == 1; }));
  EXPECT_FALSE(backend().connected());
  registry.waiting[0](true);
  EXPECT_EQ(ask({"PING"}).raw, "+PONG\r\n");
}

}  // namespace
}  // namespace ringshift::backend
