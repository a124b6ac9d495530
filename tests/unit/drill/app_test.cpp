// The application with real servers, and the faults of sharding clients, which the ledger must notice.
#include "drill/app.h"

#include <gtest/gtest.h>

#include "drill/redis_fleet.h"
#include "drill/run_directory.h"

namespace ringshift::drill {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

class Application : public testing::Test {
 protected:
  void SetUp() override {
    auto directory = RunDirectory::create_temporary();
    ASSERT_TRUE(directory);
    directory_.emplace(std::move(*directory));
    FleetOptions fleet;
    fleet.directory = directory_->path();
    fleet_.emplace(std::move(fleet));
    for (int i = 0; i < 3; ++i) {
      const auto node = fleet_->add();
      ASSERT_TRUE(node) << node.error().message;
      topology::Member member;
      member.id = "cache-" + std::to_string(i + 1);
      member.address = node->address;
      three_.members.push_back(std::move(member));
    }
    three_.cluster = "test";
    two_ = three_;
    two_.members.pop_back();
    workload_ = zipf_workload({.keys = 2000, .exponent = 0.8, .updates = 0.1, .body_bytes = 0, .seed = 3});
    auto origin = Origin::create(directory_->path() + "/origin.db", workload_->keys());
    ASSERT_TRUE(origin) << origin.error().message;
    origin_ = std::move(*origin);
    auto pool = OriginPool::create(*origin_, {.connections = 4, .query = 0ms, .timeout = 5s});
    ASSERT_TRUE(pool);
    pool_ = std::move(*pool);
    auto cache = ShardedCache::create(two_);
    ASSERT_TRUE(cache) << cache.error().message;
    cache_ = std::move(*cache);
    app_ = std::make_unique<App>(
        AppOptions{.threads = 4, .requests_per_second = 1500, .ttl = 60s, .deadline = 10s, .seed = 3},
        *workload_, *cache_, *pool_);
    const Status filled = app_->fill({});
    ASSERT_TRUE(filled) << filled.error().message;
    begin_ = steady_clock::now();
    timeline_.emplace(begin_, 60);
    app_->start(Schedule(begin_, 1500), *timeline_);
  }

  Verdicts end() {
    app_->stop();
    const Status read = app_->verify({});
    EXPECT_TRUE(read) << read.error().message;
    return app_->verdicts();
  }
  // Until the load has served its first `seconds` seconds, however slow this machine is.
  void run_for(std::size_t seconds) {
    const auto served = [this](std::size_t i) { return timeline_->second(i).requests >= 1500; };
    for (int i = 0; i < 3000 && !served(seconds - 1); ++i) std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(served(seconds - 1));
  }

  std::optional<RunDirectory> directory_;
  std::optional<RedisFleet> fleet_;
  topology::Spec two_, three_;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<Origin> origin_;
  std::unique_ptr<OriginPool> pool_;
  std::unique_ptr<ShardedCache> cache_;
  base::TimePoint begin_{};
  std::optional<Timeline> timeline_;
  std::unique_ptr<App> app_;
};

TEST_F(Application, WithoutAChangeNothingIsWrongAndTheHitRateStands) {
  run_for(2);
  const Verdicts v = end();
  EXPECT_EQ(v.lost_writes, 0U) << (v.examples.empty() ? "" : v.examples[0]);
  EXPECT_EQ(v.stale_reads, 0U) << (v.examples.empty() ? "" : v.examples[0]);
  EXPECT_GT(v.reads_checked, 1000U);
  const Second s = timeline_->second(0);
  EXPECT_EQ(s.requests, 1500U);
  EXPECT_EQ(s.errors, 0U);
  EXPECT_GT(s.hit_rate(), 0.4);
  EXPECT_EQ(origin_->reads(), [this] {
    std::uint64_t asked = 0;
    for (std::size_t i = 0; i < timeline_->size(); ++i) asked += timeline_->second(i).origin_asked;
    return asked;
  }());
}

TEST_F(Application, ASwitchLosesWhatChangesItsOwner) {
  run_for(1);
  ASSERT_TRUE(cache_->switch_to(three_, ShardedCache::DualRead::off));
  run_for(2);
  const Verdicts v = end();
  EXPECT_GT(v.lost_writes, 100U);
  EXPECT_EQ(cache_->copies(), 0U);
}

TEST_F(Application, ADualReadCopiesAndBringsBackWhatWasDeleted) {
  run_for(1);
  ASSERT_TRUE(cache_->switch_to(three_, ShardedCache::DualRead::reads));
  run_for(4);
  const Verdicts v = end();
  EXPECT_GT(cache_->copies(), 50U);
  EXPECT_GT(v.stale_reads, 0U);  // Deletes go to the new owner alone; the old copy is read again.
}

TEST_F(Application, WhatADeadMemberHeldIsAskedOfTheOrigin) {
  run_for(1);
  fleet_->kill(1);
  run_for(3);
  app_->stop();
  std::uint64_t errors = 0;
  for (std::size_t i = 0; i < 4; ++i) errors += timeline_->second(i).cache_errors;
  EXPECT_GT(errors, 50U);
  EXPECT_GT(timeline_->second(2).origin_asked, 200U);
}

}  // namespace
}  // namespace ringshift::drill
