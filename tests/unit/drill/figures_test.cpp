#include "drill/figures.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ringshift::drill {
namespace {

Second second(std::uint64_t gets, std::uint64_t hits, std::uint64_t asked) {
  Second s;
  s.requests = s.gets = gets;
  s.hits = hits;
  s.origin_asked = asked;
  return s;
}

std::vector<Second> steady_seconds(std::size_t n) { return std::vector<Second>(n, second(1000, 900, 100)); }

TEST(Figures, SummaryWeighsByRequestsAndFindsTheWorstSeconds) {
  const std::vector<Second> seconds = {second(1000, 900, 100), second(500, 250, 250), second(1500, 1500, 0)};
  const Span span = summary(seconds);
  EXPECT_EQ(span.seconds, 3U);
  EXPECT_DOUBLE_EQ(span.hit_rate, 2650.0 / 3000);
  EXPECT_DOUBLE_EQ(span.hit_rate_min, 0.5);
  EXPECT_DOUBLE_EQ(span.gets_per_second, 1000);
  EXPECT_DOUBLE_EQ(span.origin_qps, 350.0 / 3);
  EXPECT_EQ(span.origin_max, 250U);
  EXPECT_EQ(summary({}).seconds, 0U);
}

TEST(Figures, ASecondWithoutReadsAnsweredNone) {
  EXPECT_DOUBLE_EQ(summary(std::vector<Second>{second(10, 10, 0), Second{}}).hit_rate_min, 0);
}

TEST(Figures, StandardErrorIsTheBinomials) {
  EXPECT_DOUBLE_EQ(standard_error(0.9, 900), 0.01);  // sqrt(0.09 / 900)
  EXPECT_DOUBLE_EQ(standard_error(0.5, 0), 0);
  EXPECT_DOUBLE_EQ(standard_error(1, 1000), 0);
  const Span steady = summary(steady_seconds(4));
  EXPECT_NEAR(hit_rate_floor(steady), 0.9 - 0.01 - 3 * std::sqrt(0.09 / 1000), 1e-12);
  EXPECT_NEAR(origin_ceiling(steady), 110 + 3 * 10, 1e-12);
}

TEST(Figures, RecoveryEndsWithTheLastSecondOutOfTheOrdinary) {
  const Span steady = summary(steady_seconds(10));
  std::vector<Second> after = steady_seconds(20);
  EXPECT_DOUBLE_EQ(recovery(steady, after).seconds, 0);
  EXPECT_TRUE(recovery(steady, after).recovered);
  after[0] = second(1000, 500, 500);
  after[4] = second(1000, 850, 100);  // The hit rate alone.
  EXPECT_DOUBLE_EQ(recovery(steady, after).seconds, 5);
  after[11] = second(1000, 900, 141);  // The origin alone.
  EXPECT_DOUBLE_EQ(recovery(steady, after).seconds, 12);
  EXPECT_TRUE(recovery(steady, after).recovered);
  after[17] = second(1000, 500, 100);  // Two good seconds at the end are too few to tell.
  EXPECT_DOUBLE_EQ(recovery(steady, after).seconds, 18);
  EXPECT_FALSE(recovery(steady, after).recovered);
}

PromiseInput good_input() {
  PromiseInput in;
  in.steady = summary(steady_seconds(10));
  in.during = summary(steady_seconds(10));
  in.control_steady = in.control = summary(steady_seconds(10));
  return in;
}

Judged verdict(const PromiseInput& in, std::string_view name) {
  for (const Promise& promise : promises(in)) {
    if (promise.name == name) return promise.judged;
  }
  ADD_FAILURE() << "no promise " << name;
  return Judged::broken;
}

TEST(Figures, PromisesAreKeptUpToTheirBoundsAndBrokenBeyond) {
  for (const Promise& promise : promises(good_input()))
    EXPECT_EQ(promise.judged, Judged::kept) << promise.text;

  PromiseInput in = good_input();
  in.during.hit_rate_min = hit_rate_floor(in.steady) - 1e-9;
  EXPECT_EQ(verdict(in, "hit_rate"), Judged::broken);
  in.during.hit_rate_min = hit_rate_floor(in.steady);
  EXPECT_EQ(verdict(in, "hit_rate"), Judged::kept);

  in.during.origin_qps = 105;
  EXPECT_EQ(verdict(in, "origin_mean"), Judged::kept);
  in.during.origin_qps = 105.1;
  EXPECT_EQ(verdict(in, "origin_mean"), Judged::broken);

  // The same excess without a resize is the load's; a smaller one is no excuse.
  in.control.origin_qps = 104;
  EXPECT_EQ(verdict(in, "origin_mean"), Judged::unjudged);
  in.during.origin_qps = 1.05 * 104 + 0.1;
  EXPECT_EQ(verdict(in, "origin_mean"), Judged::broken);

  in.control.origin_max = 130;
  in.during.origin_max = 143;
  EXPECT_EQ(verdict(in, "origin_worst"), Judged::kept);
  in.during.origin_max = 144;
  EXPECT_EQ(verdict(in, "origin_worst"), Judged::broken);
}

TEST(Figures, ANoisyMachineExcusesWhatDependsOnTimeAndNothingElse) {
  PromiseInput in = good_input();
  in.noisy = true;
  in.during.hit_rate_min = 0.1;
  in.lost_writes = 1;
  in.stale_reads = 2;
  in.keys_misplaced = 3;
  EXPECT_EQ(verdict(in, "hit_rate"), Judged::unjudged);
  EXPECT_EQ(verdict(in, "origin_mean"), Judged::kept);
  EXPECT_EQ(verdict(in, "nothing_lost"), Judged::broken);
  EXPECT_EQ(verdict(in, "nothing_stale"), Judged::broken);
  EXPECT_EQ(verdict(in, "nothing_misplaced"), Judged::broken);
}

TEST(Figures, WithADeadMemberOnlyWhatCanBeKeptIsPromised) {
  PromiseInput in = good_input();
  in.keeps_every_key = false;
  in.lost_writes = 1000;
  in.during.hit_rate_min = 0;
  for (const Promise& promise : promises(in)) EXPECT_EQ(promise.judged, Judged::kept) << promise.text;
  in.stale_reads = 1;
  EXPECT_EQ(verdict(in, "nothing_stale"), Judged::broken);
}

TEST(Figures, NoiseIsNamed) {
  EXPECT_TRUE(noise({.others = 0.1, .stolen = 0.01, .late = 0.001}).empty());
  EXPECT_EQ(noise({.others = 0.5, .stolen = 0.2, .late = 0.1}).size(), 3U);
}

TEST(Figures, SparklineSpansItsBars) {
  EXPECT_EQ(sparkline(std::vector<double>{0, 0.5, 1, 2, -1}, 0, 1), "▁▅██▁");
  EXPECT_EQ(sparkline(std::vector<double>{1, 1}, 1, 1), "▁▁");
  EXPECT_EQ(sparkline({}, 0, 1), "");
}

}  // namespace
}  // namespace ringshift::drill
