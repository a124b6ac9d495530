// What a connection that breaks takes along to the next one, through real servers that restart.
#include <chrono>
#include <map>

#include "pool_world.h"

namespace ringshift::backend {
namespace {

using std::chrono::steady_clock;

class Retry : public PoolTest {
 protected:
  void serve(RedisProcess& redis) {
    Options with = options();
    with.request_timeout = milliseconds(2000);
    open_with(with, {{"m1", redis.address()}});
    ASSERT_EQ(ask({"SET", "small", "s"}).raw, "+OK\r\n");
  }
  // By tag. Fails when a tag has two outcomes.
  std::map<std::uint64_t, Outcome> outcomes() {
    std::map<std::uint64_t, Outcome> all;
    for (const auto& [tag, outcome] : sink.outcomes) EXPECT_TRUE(all.emplace(tag, outcome).second) << tag;
    return all;
  }
  void send(std::uint64_t tag, std::initializer_list<std::string_view> words) {
    backend().send(command(words), sink, tag);
  }
  Sink sink;
};

// How often the server executed this command.
int calls(RedisProcess& redis, const std::string& name) {
  const std::string info = redis.command("INFO commandstats");
  const std::string field = "cmdstat_" + name + ":calls=";
  const auto at = info.find(field);
  return at == std::string::npos ? 0 : std::stoi(info.substr(at + field.size()));
}

TEST_F(Retry, ReadsThatNeverLeftSurviveARestartAndWritesDoNot) {
  RedisProcess redis;
  serve(redis);
  redis.kill();
  redis.start();
  // Nobody has seen yet that the connection is gone, so these go into its output.
  send(1, {"GET", "small"});
  send(2, {"INCR", "n"});
  send(3, {"EXISTS", "small"});
  send(4, {"OBJECT", "ENCODING", "small"});
  send(5, {"GETDEL", "small"});
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 5; }));
  const auto all = outcomes();
  EXPECT_EQ(all.at(1).raw, "$-1\r\n");
  EXPECT_EQ(all.at(3).raw, ":0\r\n");
  EXPECT_EQ(all.at(4).raw, "$-1\r\n");
  for (const std::uint64_t write : {2U, 5U}) {
    EXPECT_FALSE(all.at(write).answered);
    EXPECT_EQ(all.at(write).kind, Failure::Kind::unsent);
  }
  EXPECT_EQ(calls(redis, "get"), 1);
  EXPECT_EQ(calls(redis, "incr"), 0);
  EXPECT_EQ(calls(redis, "getdel"), 0);
  EXPECT_EQ(ask({"EXISTS", "n"}).raw, ":0\r\n");
}

TEST_F(Retry, WhatMayHaveLeftIsNeverSentAgain) {
  RedisProcess redis;
  serve(redis);
  redis.pause();
  send(1, {"GET", "small"});
  pool->flush();  // It is written.
  redis.kill();
  redis.start();
  send(2, {"GET", "small"});
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 2; }));
  const auto all = outcomes();
  EXPECT_FALSE(all.at(1).answered);
  EXPECT_EQ(all.at(1).kind, Failure::Kind::unknown);
  EXPECT_EQ(all.at(2).raw, "$-1\r\n");
  EXPECT_EQ(calls(redis, "get"), 1);
}

TEST_F(Retry, OnceOnly) {
  RedisProcess redis;
  serve(redis);
  redis.kill();
  send(1, {"GET", "small"});
  const auto begin = steady_clock::now();
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 1; }));
  EXPECT_EQ(sink.last().kind, Failure::Kind::unsent);
  EXPECT_EQ(sink.last().raw, "Connection refused");
  EXPECT_LT(steady_clock::now() - begin, milliseconds(1500)) << "well before its deadline";
}

TEST_F(Retry, BlocksAreNotTakenApart) {
  RedisProcess redis;
  serve(redis);
  redis.kill();
  redis.start();
  backend().send_block(command({"MULTI"}) + command({"GET", "small"}) + command({"EXEC"}), 3, sink, 1);
  send(2, {"GET", "small"});
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 2; }));
  const auto all = outcomes();
  EXPECT_EQ(all.at(1).kind, Failure::Kind::unsent);
  EXPECT_FALSE(all.at(1).answered);
  EXPECT_EQ(all.at(2).raw, "$-1\r\n");
  EXPECT_EQ(calls(redis, "multi"), 0);
}

// The member takes a part of a large write and no more: what is behind it was not written, and goes by the
// next connection, within its own deadline.
TEST_F(Retry, BehindAWriteThatTheMemberDidNotTake) {
  RedisProcess redis;
  serve(redis);
  redis.pause();
  send(1, {"SET", "big", std::string(30U << 20, 'v')});
  pool->flush();
  run_for(milliseconds(1200));
  send(2, {"GET", "small"});
  send(3, {"APPEND", "small", "x"});
  send(4, {"STRLEN", "small"});
  ASSERT_TRUE(run_until([&] { return !sink.outcomes.empty(); }));
  redis.resume();
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 4; }));
  const auto all = outcomes();
  EXPECT_EQ(all.at(1).kind, Failure::Kind::unsent);
  EXPECT_EQ(all.at(2).raw, "$1\r\ns\r\n");
  EXPECT_EQ(all.at(3).kind, Failure::Kind::unsent);
  EXPECT_EQ(all.at(4).raw, ":1\r\n");
  EXPECT_EQ(calls(redis, "append"), 0);
  EXPECT_EQ(ask({"EXISTS", "big"}).raw, ":0\r\n");
}

// A step of a resize drops what was routed before it.
TEST_F(Retry, AStepOfAResizeDropsThem) {
  RedisProcess redis;
  serve(redis);
  redis.kill();
  send(1, {"GET", "small"});
  ASSERT_TRUE(run_until([&] { return !backend().connected(); }));
  auto topology = snapshot->topology();
  ++topology.fence.step;
  auto next = topology::Snapshot::compile(topology, {0, 1'000'000});
  ASSERT_TRUE(next.has_value());
  pool->adopt(*next);
  redis.start();
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == 1; }));
  EXPECT_EQ(sink.last().kind, Failure::Kind::unsent);
  EXPECT_NE(sink.last().raw.find("resize step"), std::string::npos) << sink.last().raw;
  EXPECT_EQ(calls(redis, "get"), 0);
}

TEST_F(Retry, ThroughManyRestartsEveryCommandHasOneOutcome) {
  RedisProcess redis;
  serve(redis);
  std::uint64_t tag = 0;
  for (int restart = 0; restart < 4; ++restart) {
    for (int i = 0; i < 20; ++i) {
      send(++tag, {"GET", "small"});
      send(++tag, {"INCR", "n"});
      run_for(milliseconds(3));
    }
    redis.kill();
    redis.start();
  }
  ASSERT_TRUE(run_until([&] { return sink.outcomes.size() == tag; }));
  std::size_t answered = 0;
  for (const auto& [number, outcome] : outcomes()) answered += outcome.answered;
  EXPECT_GT(answered, tag / 4);
  const std::string counted = ask({"GET", "n"}).raw;
  EXPECT_TRUE(counted == "$-1\r\n" || counted.starts_with("$")) << counted;
}

}  // namespace
}  // namespace ringshift::backend
