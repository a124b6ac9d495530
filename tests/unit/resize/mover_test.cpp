// The mover over real servers: every outcome, and what it does beside moving.
#include "resize/mover.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "resize/phases.h"
#include "tests/support/redis_process.h"
#include "transfer/faults.h"
#include "transfer/steps.h"

namespace ringshift::resize {
namespace {

using backend::SyncClient;
using std::chrono::seconds;
using test::RedisProcess;

class MoverTest : public testing::Test {
 protected:
  MoverTest() {
    topology::Topology now;
    now.spec.cluster = "test";
    now.spec.members = {member("a", a_)};
    topology::Spec target = now.spec;
    target.members.push_back(member("b", b_));
    topology_ = dual(hold(begin(now, target, "r", {}), {{0, 1024}}, {{"a", "ra"}, {"b", "rb"}}));
    snapshot_ = *topology::Snapshot::compile(topology_, {1, 1});
    old_ = dial(a_);
    new_ = dial(b_);
    stamp(transfer::open_stamp(topology_.fence, "b"));
  }
  static topology::Member member(const std::string& id, const RedisProcess& redis) {
    topology::Member out;
    out.id = id;
    out.address = redis.address();
    return out;
  }
  static std::unique_ptr<SyncClient> dial(const RedisProcess& redis) {
    auto client = SyncClient::connect(redis.address());
    if (!client) throw std::runtime_error(client.error().message);
    return std::move(*client);
  }
  void stamp(const std::string& text) { ASSERT_TRUE(new_->call({"SET", transfer::kStampKey, text})); }
  void fill(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string key = fmt::format("k{}", i);
      ASSERT_TRUE(old_->call({"SET", key, "v" + key}));
      (snapshot_->route(key).state == topology::KeyState::dual ? moving_ : staying_).push_back(key);
    }
    ASSERT_FALSE(moving_.empty());
  }
  std::unique_ptr<Mover> mover() {
    options_.name = "rs:controller";
    options_.keys = &keys_;
    options_.bytes = &bytes_;
    return std::make_unique<Mover>(snapshot_, options_);
  }
  // A key that moves from a to b.
  std::string moving_key(const std::string& prefix) {
    for (int i = 0;; ++i) {
      std::string key = fmt::format("{}{}", prefix, i);
      if (snapshot_->route(key).state == topology::KeyState::dual) return key;
    }
  }
  void expect_moved() {
    for (const std::string& key : moving_) {
      EXPECT_EQ(new_->call({"GET", key})->text, "v" + key);
      EXPECT_EQ(old_->call({"EXISTS", key})->integer, 0);
    }
    for (const std::string& key : staying_) EXPECT_EQ(old_->call({"GET", key})->text, "v" + key);
  }

  RedisProcess a_, b_;
  topology::Topology topology_;
  std::shared_ptr<const topology::Snapshot> snapshot_;
  std::unique_ptr<SyncClient> old_, new_;
  std::vector<std::string> moving_, staying_;
  Mover::Options options_ = fast();
  static Mover::Options fast() {
    Mover::Options out;
    out.limits.move_keys_per_second = 1'000'000'000;
    out.limits.move_latency_ms = 0;  // A busy machine is no reason to be slow here.
    return out;
  }
  TokenBucket keys_{1e9, std::chrono::steady_clock::now()}, bytes_{1e12, std::chrono::steady_clock::now()};
};

TEST_F(MoverTest, CleanWhenEverythingThatMovesHasMoved) {
  fill(2500);  // More than one page of SCAN.
  auto at_work = mover();
  ASSERT_TRUE(at_work->wait(seconds(20)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::clean) << at_work->error();
  const Mover::Progress progress = at_work->progress();
  EXPECT_EQ(progress.moved, moving_.size());
  EXPECT_EQ(progress.pairs.at({"a", "b"}), moving_.size());
  EXPECT_GT(progress.bytes, 0U);
  expect_moved();
}

TEST_F(MoverTest, NothingToMoveIsClean) {
  auto at_work = mover();
  ASSERT_TRUE(at_work->wait(seconds(10)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::clean);
}

TEST_F(MoverTest, AClosedGateIsTold) {
  fill(100);
  stamp(transfer::closed_stamp(topology_.fence, "b"));
  auto at_work = mover();
  ASSERT_TRUE(at_work->wait(seconds(10)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::gated);
  EXPECT_EQ(old_->call({"DBSIZE"})->integer, 100);
}

TEST_F(MoverTest, OutOfMemoryIsToldAndTheKeysStayOnOld) {
  fill(100);
  ASSERT_TRUE(new_->call({"CONFIG", "SET", "maxmemory", "1"}));
  auto at_work = mover();
  ASSERT_TRUE(at_work->wait(seconds(10)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::failed);
  EXPECT_TRUE(at_work->error().contains("from a to b")) << at_work->error();
  EXPECT_TRUE(at_work->error().contains("OOM")) << at_work->error();
  EXPECT_EQ(old_->call({"DBSIZE"})->integer, 100);
}

TEST_F(MoverTest, AnothersClaimIsWaitedFor) {
  fill(100);
  ASSERT_TRUE(new_->call({"SET", transfer::claim_key(moving_[0]), "a router's", "PX", "300"}));
  auto at_work = mover();
  ASSERT_TRUE(at_work->wait(seconds(10)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::clean);
  expect_moved();
}

TEST_F(MoverTest, StopEndsItSoonAndLeavesNothingHalf) {
  fill(2000);
  keys_.set_rate(100, std::chrono::steady_clock::now());
  auto at_work = mover();
  EXPECT_FALSE(at_work->wait(std::chrono::milliseconds(200)));
  const auto asked = std::chrono::steady_clock::now();
  at_work->stop();
  ASSERT_TRUE(at_work->wait(seconds(5)));
  EXPECT_LT(std::chrono::steady_clock::now() - asked, seconds(2));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::stopped);
  const std::uint64_t moved = at_work->progress().moved;
  EXPECT_GT(moved, 0U);
  EXPECT_LT(moved, moving_.size());
  at_work.reset();
  EXPECT_EQ(old_->call({"DBSIZE"})->integer + static_cast<std::int64_t>(moved), 2000);
  keys_.set_rate(1e9, std::chrono::steady_clock::now());
  at_work = mover();  // Another one goes on.
  ASSERT_TRUE(at_work->wait(seconds(20)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::clean);
  expect_moved();
}

TEST_F(MoverTest, ASourceThatRestartsIsNoticed) {
  fill(2000);
  keys_.set_rate(200, std::chrono::steady_clock::now());
  auto at_work = mover();
  EXPECT_FALSE(at_work->wait(std::chrono::milliseconds(300)));
  a_.kill();
  a_.start();
  ASSERT_TRUE(at_work->wait(seconds(10)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::restarted) << at_work->error();
}

TEST_F(MoverTest, ASourceThatIsGoneIsToldByName) {
  fill(100);
  a_.kill();
  auto at_work = mover();
  ASSERT_TRUE(at_work->wait(seconds(20)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::unreachable);
  EXPECT_TRUE(at_work->error().contains("member a")) << at_work->error();
  EXPECT_GE(at_work->progress().retries, 5U);
}

TEST_F(MoverTest, ADestinationThatIsGoneIsToldByName) {
  fill(100);
  b_.kill();
  auto at_work = mover();
  ASSERT_TRUE(at_work->wait(seconds(20)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::unreachable);
  EXPECT_TRUE(at_work->error().contains("member b")) << at_work->error();
  EXPECT_EQ(old_->call({"DBSIZE"})->integer, 100);
}

// A connection that breaks, and a member that is busy for a moment, cost a repetition and nothing else.
TEST_F(MoverTest, BrokenConnectionsAndABusyMemberAreOvercome) {
  fill(1500);
  keys_.set_rate(1500, std::chrono::steady_clock::now());
  auto at_work = mover();
  for (int i = 0; i < 5; ++i) {
    ASSERT_FALSE(at_work->wait(std::chrono::milliseconds(60)));
    for (SyncClient* member : {old_.get(), new_.get()})
      ASSERT_TRUE(member->call({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}));
  }
  ASSERT_TRUE(at_work->wait(seconds(30)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::clean) << at_work->error();
  EXPECT_GT(at_work->progress().retries, 0U);
  expect_moved();
}

TEST_F(MoverTest, ABigKeyWaitsForAWordAndIsNamed) {
  fill(200);
  const std::string big = moving_key("big");
  const std::string list = moving_key("list");
  ASSERT_TRUE(old_->call({"SET", big, std::string(3U << 20, 'x')}));
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(old_->call({"RPUSH", list, std::string(50'000, 'y')}));
  options_.limits.big_key_bytes = 1U << 20;
  auto at_work = mover();
  ASSERT_TRUE(at_work->wait(seconds(20)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::big_keys) << at_work->error();
  expect_moved();
  const Mover::Progress progress = at_work->progress();
  EXPECT_EQ(progress.waiting_keys, 2U);
  ASSERT_EQ(progress.waiting.size(), 2U);
  for (const BigKey& key : progress.waiting) {
    EXPECT_TRUE(key.key == big || key.key == list) << key.key;
    EXPECT_GT(key.bytes, 1900'000U);
    EXPECT_EQ(key.from + key.to, "ab");
  }
  EXPECT_EQ(old_->call({"STRLEN", big})->integer, 3 << 20) << "it was not touched";

  options_.big_key_limit = 2500'000;  // The list, but not the string.
  at_work = mover();
  ASSERT_TRUE(at_work->wait(seconds(20)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::big_keys) << at_work->error();
  ASSERT_EQ(at_work->progress().waiting.size(), 1U);
  EXPECT_EQ(at_work->progress().waiting[0].key, big);
  EXPECT_EQ(new_->call({"LLEN", list})->integer, 40);

  options_.big_key_limit = ~std::uint64_t{0};
  at_work = mover();
  ASSERT_TRUE(at_work->wait(seconds(20)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::clean) << at_work->error();
  EXPECT_EQ(new_->call({"STRLEN", big})->integer, 3 << 20);
  EXPECT_EQ(at_work->progress().waiting_keys, 0U);
}

TEST_F(MoverTest, HotKeysMoveBeforeTheScanFindsThem) {
  fill(3000);
  keys_.set_rate(100, std::chrono::steady_clock::now());
  std::vector<std::string> hot = {"not there", staying_.back()};
  for (std::size_t i = 0; i < 20; ++i) hot.push_back(moving_[i * moving_.size() / 20]);
  auto at_work = mover();
  at_work->prefer(hot);
  const auto moved = [&] {
    std::size_t there = 0;
    for (std::size_t i = 2; i < hot.size(); ++i)
      there += static_cast<std::size_t>(new_->call({"EXISTS", hot[i]})->integer);
    return there;
  };
  const auto until = std::chrono::steady_clock::now() + seconds(20);
  while (moved() < 20 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(moved(), 20U);
  EXPECT_LT(at_work->progress().moved, moving_.size() / 3)
      << "with the scan's order it were about all of them";
  keys_.set_rate(1e9, std::chrono::steady_clock::now());
  ASSERT_TRUE(at_work->wait(seconds(20)));
  expect_moved();
}

// The source does not answer for 30 ms again and again: a client of it would wait as long.
TEST_F(MoverTest, ASlowSourceIsMovedFromSlowlyAndTheReasonIsTold) {
  fill(20'000);
  options_.limits.move_latency_ms = 15;
  auto probe = [&](const char* why) {
    auto at_work = mover();
    EXPECT_FALSE(at_work->wait(std::chrono::milliseconds(300)));  // It was measured idle.
    const auto until = std::chrono::steady_clock::now() + seconds(15);
    bool held = false;
    while (!held && std::chrono::steady_clock::now() < until &&
           !at_work->wait(std::chrono::milliseconds(1))) {
      a_.pause();
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      a_.resume();
      const Mover::Progress progress = at_work->progress();
      held = progress.rate < 10'000 && !progress.held_back.empty() && progress.held_back[0].contains(why);
    }
    return held;
  };
  keys_.set_rate(2000, std::chrono::steady_clock::now());
  EXPECT_TRUE(probe("a: "));
}

TEST_F(MoverTest, TheOriginHoldsItBack) {
  fill(5000);
  keys_.set_rate(2000, std::chrono::steady_clock::now());
  auto at_work = mover();
  at_work->hold_back_for_origin(true);
  const auto until = std::chrono::steady_clock::now() + seconds(15);
  bool held = false;
  while (!held && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const Mover::Progress progress = at_work->progress();
    held = !progress.held_back.empty() && progress.held_back[0].contains("origin");
  }
  EXPECT_TRUE(held);
}

TEST_F(MoverTest, HoldsNoMorePayloadThanAllowed) {
  options_.limits.move_memory_bytes = 1U << 20;
  options_.limits.move_batches_in_flight = 8;
  for (int i = 0; i < 300; ++i)
    ASSERT_TRUE(old_->call({"SET", fmt::format("value{}", i), std::string(100'000, 'x')}));
  auto at_work = mover();
  ASSERT_TRUE(at_work->wait(seconds(20)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::clean) << at_work->error();
  EXPECT_GT(at_work->most_payload_held(), 0U);
  EXPECT_LE(at_work->most_payload_held(), 1U << 20);
}

TEST_F(MoverTest, VerifiedMovesCountWhatTheyCompared) {
  fill(500);
  options_.verify = transfer::Verify::all;
  auto at_work = mover();
  ASSERT_TRUE(at_work->wait(seconds(20)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::clean) << at_work->error();
  EXPECT_EQ(at_work->progress().verified, moving_.size());
  expect_moved();
}

#if defined(RINGSHIFT_PROTOCOL_FAULTS)
TEST_F(MoverTest, AWrongCopyEndsItLoudly) {
  fill(200);
  options_.verify = transfer::Verify::all;
  transfer::set_broken(transfer::Fault::wrong_copy, true);
  auto at_work = mover();
  const bool ended = at_work->wait(seconds(20));
  transfer::set_broken(transfer::Fault::wrong_copy, false);
  ASSERT_TRUE(ended);
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::mismatched);
  EXPECT_TRUE(at_work->error().contains("the copy of key 'k")) << at_work->error();
  EXPECT_EQ(old_->call({"DBSIZE"})->integer, 200);
  EXPECT_EQ(new_->call({"KEYS", "k*"})->items.size(), 0U);
}
#endif

// In a rollback keys come from B's members and go back to A's.
TEST_F(MoverTest, RollbackMovesBack) {
  fill(500);
  auto forward = mover();
  ASSERT_TRUE(forward->wait(seconds(10)));
  forward.reset();
  topology_ = dual(begin_rollback(settle(topology_), {{"a", "ra"}, {"b", "rb"}}));
  snapshot_ = *topology::Snapshot::compile(topology_, {1, 2});
  ASSERT_TRUE(old_->call({"SET", transfer::kStampKey, transfer::open_stamp(topology_.fence, "a")}));
  auto back = mover();
  ASSERT_TRUE(back->wait(seconds(10)));
  EXPECT_EQ(back->outcome(), Mover::Outcome::clean) << back->error();
  EXPECT_EQ(back->progress().moved, moving_.size());
  for (const std::string& key : moving_) EXPECT_EQ(old_->call({"GET", key})->text, "v" + key);
  EXPECT_EQ(new_->call({"DBSIZE"})->integer, 1) << "only the stamp";
}

}  // namespace
}  // namespace ringshift::resize
