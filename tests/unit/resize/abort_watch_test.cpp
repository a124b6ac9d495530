// When a condition breaks: figures over routers and a sliding window, three looks in a row, and nothing that
// is not known.
#include "resize/abort_watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "coord/router_record.h"

namespace ringshift::resize {
namespace {

using std::chrono::milliseconds;

class AbortWatchTest : public testing::Test {
 protected:
  // A router reports, and a second passes.
  void report(const std::string& id, std::uint64_t hits, std::uint64_t misses, double p99_ms = -1) {
    coord::RouterRecord record;
    record.hits = totals_[id].first += hits;
    record.misses = totals_[id].second += misses;
    record.p99_ms = p99_ms;
    coord::KeyValue& kv = routers_["routers/" + id];
    kv.value = coord::to_json(record);
    kv.mod_revision = ++revision_;
  }
  const std::string& look(const char* conditions) {
    now_ += milliseconds(1000);
    EXPECT_TRUE(watch_.look(now_, routers_, origin_, *parse_conditions(conditions)));
    return watch_.broken();
  }
  void write_origin(const std::string& value) {
    origin_.emplace();
    origin_->value = value;
    origin_->mod_revision = ++revision_;
  }

  AbortWatch watch_;
  base::TimePoint now_{std::chrono::hours(1)};
  coord::Revision revision_ = 0;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> totals_;
  std::map<std::string, coord::KeyValue> routers_;
  std::optional<coord::KeyValue> origin_;
};

TEST_F(AbortWatchTest, HitRateMustBeLowThreeTimesInARow) {
  report("a", 1'000'000, 9'000'000);  // What was before we looked does not count.
  EXPECT_EQ(look("hit_rate<0.9"), "");
  for (int i = 0; i < 10; ++i) {
    report("a", 950, 50);
    EXPECT_EQ(look("hit_rate<0.9"), "") << i;
  }
  EXPECT_NEAR(*watch_.figures().hit_rate, 0.95, 1e-9);
  int looks = 0;
  for (; looks < 20 && watch_.broken().empty(); ++looks) {
    report("a", 500, 500);
    look("hit_rate<0.9");
  }
  EXPECT_GE(looks, 3);
  EXPECT_TRUE(watch_.broken().starts_with("hit_rate 0.") && watch_.broken().ends_with("< 0.9 for 3 s"))
      << watch_.broken();
}

TEST_F(AbortWatchTest, OneBadSecondIsForgotten) {
  report("a", 1, 0, 1);
  for (int i = 0; i < 12; ++i) {
    report("a", 1, 0, i % 3 == 2 ? 5 : 50);  // Bad twice, good once.
    EXPECT_EQ(look("p99_ms>20"), "") << i;
  }
}

TEST_F(AbortWatchTest, TheWorstRouterCountsForP99AndAllOfThemForTheHitRate) {
  for (int i = 0; i < 4; ++i) {
    report("a", 300, 0, 1.5);
    report("b", 0, 100, 30);
    look("p99_ms>20,hit_rate<0.5");
  }
  EXPECT_EQ(*watch_.figures().p99_ms, 30);
  EXPECT_NEAR(*watch_.figures().hit_rate, 0.75, 1e-9);
  EXPECT_EQ(watch_.broken(), "p99_ms 30 > 20 for 4 s");
  routers_.erase("routers/b");
  look("p99_ms>20,hit_rate<0.5");
  EXPECT_EQ(*watch_.figures().p99_ms, 1.5);
  EXPECT_EQ(watch_.broken(), "");
}

TEST_F(AbortWatchTest, WhatIsNotKnownBreaksNothing) {
  EXPECT_EQ(look("hit_rate<0.9,p99_ms>20,origin_qps>1"), "") << "no router at all";
  EXPECT_FALSE(watch_.figures().hit_rate || watch_.figures().p99_ms || watch_.figures().origin_qps);
  for (int i = 0; i < 6; ++i) {
    report("a", 0, 9);  // Fewer lookups in ten seconds than tell anything.
    EXPECT_EQ(look("hit_rate<0.9"), "");
  }
  report("a", 0, 0, 99);
  EXPECT_EQ(look("p99_ms>20"), "");
  for (int i = 0; i < 10; ++i) look("p99_ms>20");  // The registry is away: no news.
  EXPECT_FALSE(watch_.figures().p99_ms) << "a report of ten seconds ago is none";
  EXPECT_EQ(watch_.broken(), "");
}

TEST_F(AbortWatchTest, ARouterThatBeganAnewCountsFromThere) {
  report("a", 1000, 0);
  look("hit_rate<0.9");
  totals_["a"] = {0, 0};
  report("a", 0, 500);
  look("hit_rate<0.9");
  EXPECT_FALSE(watch_.figures().hit_rate) << "its counters fell: that second is left out";
  report("a", 500, 0);
  look("hit_rate<0.9");
  EXPECT_NEAR(*watch_.figures().hit_rate, 1.0, 1e-9);
}

TEST_F(AbortWatchTest, OriginIsTheMissesOrWhatTheOperatorSays) {
  report("a", 0, 0);
  look("origin_qps>150");
  for (int i = 0; i < 4; ++i) {
    report("a", 0, 100);
    report("b", 0, 0);
    look("origin_qps>150");
  }
  EXPECT_NEAR(*watch_.figures().origin_qps, 100, 1);
  EXPECT_EQ(watch_.broken(), "");
  for (int i = 0; i < 3; ++i) {
    write_origin("200");
    look("origin_qps>150");
  }
  EXPECT_EQ(watch_.broken(), "origin_qps 200 > 150 for 3 s");
  write_origin("nonsense");
  look("origin_qps>150");
  EXPECT_FALSE(watch_.figures().origin_qps);
  write_origin("300");
  look("origin_qps>150");
  for (int i = 0; i < 12; ++i) look("origin_qps>150");
  EXPECT_FALSE(watch_.figures().origin_qps) << "nobody writes it any more";
}

TEST_F(AbortWatchTest, OneLookASecond) {
  const auto conditions = *parse_conditions("p99_ms>20");
  report("a", 0, 0, 50);
  EXPECT_TRUE(watch_.look(now_, routers_, origin_, conditions));
  for (int i = 0; i < 9; ++i)
    EXPECT_FALSE(watch_.look(now_ += milliseconds(100), routers_, origin_, conditions));
  EXPECT_EQ(watch_.broken(), "");
  EXPECT_TRUE(watch_.look(now_ += milliseconds(100), routers_, origin_, conditions));
}

}  // namespace
}  // namespace ringshift::resize
