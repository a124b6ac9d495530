// Large replies and large commands in pieces, before a real server.
#include <algorithm>
#include <chrono>

#include "pool_world.h"

namespace ringshift::backend {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMiB = 1U << 20;

struct Taker final : PieceTaker {
  LargeReply* from = nullptr;
  std::string bytes;
  bool take_all = true;
  bool paused = false, last = false, hurried = false, broken = false, gone = false;

  bool on_piece(std::string_view piece, bool is_last) override {
    bytes += piece;
    last = is_last;
    paused = !take_all && !is_last;
    return !paused;
  }
  void hurry() override {
    hurried = take_all = true;
    if (std::exchange(paused, false)) from->resume();
  }
  void on_broken(const Failure&) override { broken = true; }
  void on_gone() override { gone = true; }
};

struct LargeSink final : ReplySink {
  Taker taker;
  std::size_t announced = 0;
  std::string whole;
  bool wants = true;
  PieceTaker* on_large_reply(std::uint64_t, std::size_t size, LargeReply& from) override {
    ++asked;
    announced = size;
    taker.from = &from;
    return wants ? &taker : nullptr;
  }
  void on_reply(std::uint64_t, std::string_view raw) override { whole = raw; }
  void on_failure(std::uint64_t, const Failure&) override {}
  int asked = 0;
};

class InPieces : public PoolTest {
 protected:
  // Made at the server, since it takes long to get there; with marks, so that nothing is lost or moved
  // unseen.
  void fill(RedisProcess& redis, std::size_t size) {
    value.assign(size, '\0');
    static_cast<void>(redis.command("SETRANGE big " + std::to_string(size - 1) + " e"));
    value.back() = 'e';
    for (std::size_t at = 0; at + 10 < size; at += size / 61) {
      const std::string mark = std::to_string(at);
      static_cast<void>(redis.command("SETRANGE big " + std::to_string(at) + " " + mark));
      value.replace(at, mark.size(), mark);
    }
    reply = "$" + std::to_string(size) + "\r\n" + value + "\r\n";
    Options with = options();
    with.request_timeout = milliseconds(1000);
    with.max_handed_over = max_handed_over;
    open_with(with, {{"m1", redis.address()}});
    ASSERT_EQ(ask({"SET", "small", "s"}).raw, "+OK\r\n");
  }
  std::size_t max_handed_over = 16;
  std::string value, reply;
};

TEST_F(InPieces, AReplyComesInPiecesAndItsConnectionServesNobodyElse) {
  RedisProcess redis;
  fill(redis, 40 * kMiB);
  LargeSink sink;
  sink.taker.take_all = false;
  backend().send(command({"GET", "big"}), sink, 1);
  ASSERT_TRUE(run_until([&] { return sink.taker.paused; }));
  EXPECT_EQ(sink.announced, reply.size());
  EXPECT_LT(sink.taker.bytes.size(), kMiB) << "it is not read on while its taker has enough";
  EXPECT_EQ(ask({"GET", "small"}).raw, "$1\r\ns\r\n");
  run_for(milliseconds(1300));  // Longer than the deadline.
  EXPECT_FALSE(sink.taker.hurried) << "nobody waits";
  EXPECT_FALSE(sink.taker.broken);
  sink.taker.hurry();
  ASSERT_TRUE(run_until([&] { return sink.taker.last; }));
  EXPECT_TRUE(sink.taker.bytes == reply);
  EXPECT_TRUE(sink.whole.empty());
}

TEST_F(InPieces, CommandsBehindItAreAnsweredThoughItsTakerIsSlow) {
  RedisProcess redis;
  fill(redis, 40 * kMiB);
  LargeSink large;
  large.taker.take_all = false;
  Sink behind;
  backend().send(command({"GET", "big"}), large, 1);
  for (std::uint64_t i = 0; i < 3; ++i) backend().send(command({"INCR", "n"}), behind, i);
  ASSERT_TRUE(run_until([&] { return behind.outcomes.size() == 3; }));
  EXPECT_TRUE(large.taker.hurried);
  EXPECT_TRUE(large.taker.bytes == reply);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(behind.outcomes[i].first, i);
    EXPECT_EQ(behind.outcomes[i].second.raw, ":" + std::to_string(i + 1) + "\r\n");
  }
}

TEST_F(InPieces, WhoDoesNotWantPiecesGetsItWhole) {
  RedisProcess redis;
  fill(redis, 9 * kMiB);
  LargeSink sink;
  sink.wants = false;
  backend().send(command({"GET", "big"}), sink, 1);
  ASSERT_TRUE(run_until([&] { return !sink.whole.empty(); }));
  EXPECT_TRUE(sink.whole == reply);
  EXPECT_EQ(sink.asked, 1);
}

TEST_F(InPieces, BeyondTheBoundOfConnectionsRepliesAreKeptWhole) {
  RedisProcess redis;
  max_handed_over = 1;
  fill(redis, 9 * kMiB);
  LargeSink first;
  first.taker.take_all = false;
  backend().send(command({"GET", "big"}), first, 1);
  ASSERT_TRUE(run_until([&] { return first.taker.paused; }));
  LargeSink second;
  backend().send(command({"GET", "big"}), second, 1);
  ASSERT_TRUE(run_until([&] { return !second.whole.empty(); }));
  EXPECT_EQ(second.asked, 0);
  first.taker.from->forget();
  run_for(milliseconds(50));
  LargeSink third;
  backend().send(command({"GET", "big"}), third, 1);
  ASSERT_TRUE(run_until([&] { return third.taker.last; })) << "there is room again";
}

TEST_F(InPieces, AMemberThatStopsInTheMiddleBreaksItOff) {
  RedisProcess redis;
  fill(redis, 64 * kMiB);
  LargeSink sink;
  sink.taker.take_all = false;
  backend().send(command({"GET", "big"}), sink, 1);
  ASSERT_TRUE(run_until([&] { return sink.taker.paused; }));
  redis.pause();
  sink.taker.hurry();
  const auto begin = steady_clock::now();
  ASSERT_TRUE(run_until([&] { return sink.taker.broken; }));
  EXPECT_LT(steady_clock::now() - begin, milliseconds(2500));
  redis.resume();
  std::string answer;
  for (int i = 0; i < 50 && answer != "$1\r\ns\r\n"; ++i) {  // It was away for fresh connections, too.
    run_for(milliseconds(100));
    answer = ask({"GET", "small"}).raw;
  }
  EXPECT_EQ(answer, "$1\r\ns\r\n");
}

TEST_F(InPieces, ThePoolsEndIsToldToTakers) {
  RedisProcess redis;
  fill(redis, 40 * kMiB);
  LargeSink sink;
  sink.taker.take_all = false;
  backend().send(command({"GET", "big"}), sink, 1);
  ASSERT_TRUE(run_until([&] { return sink.taker.paused; }));
  pool.reset();
  EXPECT_TRUE(sink.taker.gone);
}

// A reply that has begun is no longer in flight, so no step of a resize waits for a slow client.
TEST_F(InPieces, ADrainDoesNotWaitForAReplyThatHasBegun) {
  RedisProcess redis;
  fill(redis, 40 * kMiB);
  LargeSink sink;
  sink.taker.take_all = false;
  backend().send(command({"GET", "big"}), sink, 1);
  ASSERT_TRUE(run_until([&] { return sink.taker.paused; }));
  bool drained = false;
  pool->drain([&] { drained = true; });
  EXPECT_TRUE(run_until([&] { return drained; }, milliseconds(5000)));
  EXPECT_TRUE(sink.taker.paused);
  sink.taker.from->forget();
}

// ---- commands ----

struct Owner final : PrivateOwner {
  bool ready = false, lost = false;
  int drained = 0;
  void on_ready() override { ready = true; }
  void on_lost(const Failure&) override { lost = true; }
  void on_drained() override { ++drained; }
};

TEST_F(InPieces, ACommandInPiecesIsInFlightUntilItIsAnswered) {
  RedisProcess redis;
  fill(redis, 10 * kMiB);
  Owner owner;
  Sink sink;
  auto connection = pool->open_private(0, Resp::v2, owner);
  ASSERT_TRUE(run_until([&] { return owner.ready; }));
  const std::string bytes = command({"SET", "new", value});
  connection->begin_command(sink, 7);
  connection->add_piece(std::string_view(bytes).substr(0, 5 * kMiB));
  run_for(milliseconds(1300));  // The owner may take its time.
  bool drained = false;
  pool->drain([&] { drained = true; });
  run_for(milliseconds(100));
  EXPECT_FALSE(drained);
  EXPECT_EQ(ask({"EXISTS", "new"}).raw, ":0\r\n");
  connection->add_piece(std::string_view(bytes).substr(5 * kMiB));
  connection->end_command();
  ASSERT_TRUE(run_until([&] { return !sink.outcomes.empty() && drained; }));
  EXPECT_EQ(sink.last().raw, "+OK\r\n");
  EXPECT_EQ(ask({"STRLEN", "new"}).raw, ":10485760\r\n");
  pool->give_back(std::move(connection));
}

TEST_F(InPieces, ACommandThatIsCutOffIsNotExecutedAndNoDrainWaitsForIt) {
  RedisProcess redis;
  fill(redis, 10 * kMiB);
  Owner owner;
  Sink sink;
  auto connection = pool->open_private(0, Resp::v2, owner);
  ASSERT_TRUE(run_until([&] { return owner.ready; }));
  const std::string bytes = command({"SET", "new", value});
  connection->begin_command(sink, 7);
  connection->add_piece(std::string_view(bytes).substr(0, bytes.size() - 1));
  bool drained = false;
  pool->drain([&] { drained = true; });
  connection.reset();
  ASSERT_TRUE(run_until([&] { return drained; }));
  EXPECT_TRUE(sink.outcomes.empty());
  EXPECT_EQ(ask({"EXISTS", "new"}).raw, ":0\r\n");
}

TEST_F(InPieces, AMemberThatTakesNoPiecesIsGivenUp) {
  RedisProcess redis;
  fill(redis, 40 * kMiB);
  Owner owner;
  Sink sink;
  auto connection = pool->open_private(0, Resp::v2, owner);
  ASSERT_TRUE(run_until([&] { return owner.ready; }));
  redis.pause();
  connection->begin_command(sink, 7);
  connection->add_piece(command({"SET", "new", value}).substr(0, 39 * kMiB));
  EXPECT_GT(connection->unsent(), kMiB);
  ASSERT_TRUE(run_until([&] { return !sink.outcomes.empty(); }));
  EXPECT_EQ(sink.last().kind, Failure::Kind::unsent);
  EXPECT_NE(sink.last().raw.find("took nothing"), std::string::npos) << sink.last().raw;
  redis.resume();
  EXPECT_TRUE(run_until([&] { return owner.lost; }));
}

}  // namespace
}  // namespace ringshift::backend
