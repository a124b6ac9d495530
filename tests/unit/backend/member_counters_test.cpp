// What a member's counters make of replies and failures, what the board adds up, and that a pool before real
// servers counts what was sent.
#include "backend/member_counters.h"

#include "pool_world.h"

namespace ringshift::backend {
namespace {

MemberSums sums_of(const MemberCounters& counters) {
  MemberSums sums;
  counters.add_to(sums);
  return sums;
}

TEST(MemberCounters, AGetIsAHitOrAMissOrAnError) {
  MemberCounters counters;
  counters.answered(Traffic::get, "$1\r\na\r\n");
  counters.answered(Traffic::get, "$0\r\n\r\n");
  counters.answered(Traffic::get, "$-1\r\n");
  counters.answered(Traffic::get, "_\r\n");
  counters.answered(Traffic::get, "-WRONGTYPE ...\r\n");
  counters.answered(Traffic::get_write, "$1\r\na\r\n");
  counters.answered(Traffic::get_write, "$-1\r\n");
  counters.answered(Traffic::get_write, "-ERR\r\n");
  const MemberSums sums = sums_of(counters);
  EXPECT_EQ(sums.reads, 5U);
  EXPECT_EQ(sums.writes, 3U);
  EXPECT_EQ(sums.read_hits, 2U);
  EXPECT_EQ(sums.read_misses, 2U);
  EXPECT_EQ(sums.write_hits, 1U);
  EXPECT_EQ(sums.write_misses, 1U);
  EXPECT_EQ(sums.error_replies, 2U);
  EXPECT_EQ(sums.requests(), 8U);
}

TEST(MemberCounters, OtherCommandsAreNoLookups) {
  MemberCounters counters;
  counters.answered(Traffic::write, "$-1\r\n");  // SET ... NX
  counters.answered(Traffic::read, "_\r\n");
  counters.answered(Traffic::other, "+PONG\r\n");
  counters.answered(Traffic::none, "-NOAUTH\r\n");
  const MemberSums sums = sums_of(counters);
  EXPECT_EQ(sums.hits() + sums.misses(), 0U);
  EXPECT_EQ(sums.writes, 1U);
  EXPECT_EQ(sums.reads, 1U);
  EXPECT_EQ(sums.others, 1U);
  EXPECT_EQ(sums.steps, 1U);
  EXPECT_EQ(sums.error_replies, 0U) << "of our own steps nobody's";
  EXPECT_EQ(sums.requests(), 3U);
}

TEST(MemberCounters, AnMgetCountsEachKey) {
  MemberCounters counters;
  counters.answered(Traffic::mget, "*4\r\n$3\r\n$-1\r\n$-1\r\n$0\r\n\r\n_\r\n");
  MemberSums sums = sums_of(counters);
  EXPECT_EQ(sums.reads, 1U);
  EXPECT_EQ(sums.read_hits, 2U) << "$-1 as a value is a value";
  EXPECT_EQ(sums.read_misses, 2U);
  counters.answered(Traffic::mget, "*0\r\n");
  counters.answered(Traffic::mget, "-ERR\r\n");
  counters.answered(Traffic::mget, "*2\r\n$100\r\nshort");  // Cut off: nothing is read beyond its end.
  sums = sums_of(counters);
  EXPECT_EQ(sums.reads, 4U);
  EXPECT_EQ(sums.error_replies, 1U);
  EXPECT_EQ(sums.read_hits, 3U);
}

// Of two members that are asked for one command, one counts.
TEST(MemberCounters, AQuestionCountsOnlyWhenItIsTheAnswer) {
  MemberCounters counters;
  counters.answered(Traffic::get_if_there, "$-1\r\n");
  counters.answered(Traffic::read_if_exists, ":0\r\n");
  counters.answered(Traffic::mget_if_exists, ":0\r\n");
  EXPECT_EQ(sums_of(counters).requests(), 0U);
  EXPECT_EQ(sums_of(counters).steps, 3U);
  counters.answered(Traffic::get_if_there, "$1\r\na\r\n");
  counters.answered(Traffic::read_if_exists, ":1\r\n");
  counters.answered(Traffic::mget_if_exists, ":1\r\n");
  const MemberSums sums = sums_of(counters);
  EXPECT_EQ(sums.reads, 3U);
  EXPECT_EQ(sums.read_hits, 2U);
  EXPECT_EQ(sums.read_misses, 0U);
}

TEST(MemberCounters, FailuresByKind) {
  MemberCounters counters;
  counters.failed(Traffic::get, Failure::Kind::unsent);
  counters.failed(Traffic::write, Failure::Kind::unknown, true);
  counters.failed(Traffic::read_if_exists, Failure::Kind::overloaded);
  counters.failed(Traffic::none, Failure::Kind::unknown, true);
  const MemberSums sums = sums_of(counters);
  EXPECT_EQ(sums.unsent, 1U);
  EXPECT_EQ(sums.unknown, 1U);
  EXPECT_EQ(sums.overloaded, 1U);
  EXPECT_EQ(sums.timeouts, 1U);
  EXPECT_EQ(sums.requests(), 3U);
}

TEST(MemberBoard, WhatAMemberCountedStaysWhenItIsGone) {
  MemberBoard board;
  auto one = board.join("a"), two = board.join("a"), other = board.join("b");
  one->answered(Traffic::get, "$1\r\na\r\n");
  one->change(5, 100);
  two->answered(Traffic::get, "$-1\r\n");
  EXPECT_EQ(board.members().size(), 2U);
  EXPECT_EQ(board.members().at("a").reads, 2U);
  EXPECT_EQ(board.members().at("a").pools, 2U);
  one.reset();
  EXPECT_EQ(board.members().at("a").reads, 2U) << "of a pool that is gone, the sums";
  EXPECT_EQ(board.members().at("a").pools, 1U);
  EXPECT_EQ(board.members().at("a").in_flight, 0) << "but not what was under way";
  two.reset();
  EXPECT_FALSE(board.members().contains("a"));
  EXPECT_EQ(board.all().hits(), 1U);
  EXPECT_EQ(board.all().misses(), 1U);
  auto again = board.join("a");
  EXPECT_EQ(board.members().at("a").reads, 0U) << "it begins anew";
  EXPECT_EQ(board.all().reads, 2U);
}

class CountingPool : public PoolTest {
 protected:
  void open_counted(std::vector<std::pair<std::string, std::string>> members) {
    Options with = options();
    with.board = board;
    open_with(with, std::move(members));
  }
  MemberSums member(std::string_view id = "m1") const { return board->members().find(id)->second; }
  void send(std::initializer_list<std::string_view> words, Traffic traffic) {
    backend().send(command(words), sink, sent++, traffic);
  }
  bool all_there() {
    return run_until([&] { return sink.outcomes.size() == sent; });
  }

  const std::shared_ptr<MemberBoard> board = std::make_shared<MemberBoard>();
  Sink sink;
  std::uint64_t sent = 0;
};

TEST_F(CountingPool, CountsWhatWasSentAndHowLongItTook) {
  RedisProcess redis;
  open_counted({{"m1", redis.address()}});
  for (int i = 0; i < 10; ++i) send({"SET", "key", "value"}, Traffic::write);
  for (int i = 0; i < 7; ++i) send({"GET", "key"}, Traffic::get);
  for (int i = 0; i < 3; ++i) send({"GET", "none"}, Traffic::get);
  send({"INCR", "key"}, Traffic::write);
  send({"PING"}, Traffic::none);
  ASSERT_TRUE(all_there());
  const std::uint64_t bytes_out = 10 * command({"SET", "key", "value"}).size() +
                                  7 * command({"GET", "key"}).size() + 3 * command({"GET", "none"}).size() +
                                  command({"INCR", "key"}).size() + command({"PING"}).size();
  ASSERT_TRUE(run_until([&] { return member().bytes_out == bytes_out && member().in_flight == 0; }))
      << "with a tick";
  const MemberSums sums = member();
  EXPECT_EQ(sums.writes, 11U);
  EXPECT_EQ(sums.reads, 10U);
  EXPECT_EQ(sums.hits(), 7U);
  EXPECT_EQ(sums.misses(), 3U);
  EXPECT_EQ(sums.error_replies, 1U);
  EXPECT_EQ(sums.steps, 1U);
  EXPECT_EQ(sums.in_flight, 0);
  EXPECT_EQ(sums.unsent_bytes, 0);
  EXPECT_EQ(sums.connects, 1U);
  EXPECT_EQ(sums.connections, 1);
  EXPECT_EQ(sums.pools_connected, 1U);
  EXPECT_GE(sums.bytes_in, 7 * std::string_view("$5\r\nvalue\r\n").size());
  std::uint64_t timed = 0;
  for (const std::uint64_t count : sums.times) timed += count;
  EXPECT_EQ(timed, 22U);
}

TEST_F(CountingPool, ASilentMemberShowsTimeoutsAndThatItIsAway) {
  RedisProcess redis;
  open_counted({{"m1", redis.address()}});
  send({"SET", "key", "value"}, Traffic::write);
  ASSERT_TRUE(all_there());
  redis.pause();
  for (int i = 0; i < 5; ++i) send({"GET", "key"}, Traffic::get);
  ASSERT_TRUE(all_there());
  MemberSums sums = member();
  EXPECT_EQ(sums.unknown, 5U);
  EXPECT_EQ(sums.timeouts, 5U);
  EXPECT_EQ(sums.reads, 0U);
  EXPECT_EQ(sums.requests(), 6U);
  EXPECT_EQ(sums.in_flight, 0);
  EXPECT_EQ(sums.pools_connected, 0U);
  redis.resume();
  ASSERT_TRUE(run_until([&] { return member().reconnects == 1; }));
  EXPECT_EQ(member().pools_connected, 1U);
}

TEST_F(CountingPool, AMemberThatIsNotThereFailsConnections) {
  std::string address;
  {
    RedisProcess redis;
    address = redis.address();
  }
  open_counted({{"m1", address}});
  ASSERT_TRUE(run_until([&] { return member().connect_failures != 0; }));
  send({"GET", "key"}, Traffic::get);
  ASSERT_TRUE(all_there());
  EXPECT_EQ(member().unsent, 1U);
  EXPECT_EQ(member().connects, 0U);
}

TEST_F(CountingPool, ALargeReplyInPiecesIsAHit) {
  RedisProcess redis;
  Options with = options();
  with.board = board;
  with.large_reply = 1000;
  open_with(with, {{"m1", redis.address()}});
  send({"SET", "key", std::string(5000, 'x')}, Traffic::write);
  send({"GET", "key"}, Traffic::get);
  ASSERT_TRUE(all_there());
  EXPECT_EQ(member().hits(), 1U);
  EXPECT_EQ(member().requests(), 2U);
}

}  // namespace
}  // namespace ringshift::backend
