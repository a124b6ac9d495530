// The mover over real servers: every outcome but `restarted`, which needs a source whose restart does not
// break the connection (a TCP proxy in between).
#include "resize/mover.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "resize/phases.h"
#include "tests/support/redis_process.h"
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
    Mover::Options options;
    options.name = "rs:controller";
    options.keys = &keys_;
    options.bytes = &bytes_;
    return std::make_unique<Mover>(snapshot_, options);
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

TEST_F(MoverTest, ASourceThatRestartsIsToldByName) {
  fill(2000);
  keys_.set_rate(200, std::chrono::steady_clock::now());
  auto at_work = mover();
  EXPECT_FALSE(at_work->wait(std::chrono::milliseconds(100)));
  a_.kill();
  a_.start();
  ASSERT_TRUE(at_work->wait(seconds(10)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::unreachable);
  EXPECT_TRUE(at_work->error().contains("a")) << at_work->error();
  EXPECT_FALSE(at_work->error().empty());
}

TEST_F(MoverTest, ADestinationThatIsGoneIsToldByName) {
  fill(100);
  b_.kill();
  auto at_work = mover();
  ASSERT_TRUE(at_work->wait(seconds(10)));
  EXPECT_EQ(at_work->outcome(), Mover::Outcome::unreachable);
  EXPECT_TRUE(at_work->error().contains("member b")) << at_work->error();
  EXPECT_EQ(old_->call({"DBSIZE"})->integer, 100);
}

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
