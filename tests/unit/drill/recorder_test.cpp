#include "drill/recorder.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ringshift::drill {
namespace {

using namespace std::chrono_literals;

// 1000 GETs a second in two lanes, one in ten a miss; in [5 s, 6 s) every second one.
TEST(Recorder, WindowsShowTheWorstSecond) {
  const base::TimePoint start{};
  Recorder recorder(2, start);
  recorder.begin(Stage::before, start);
  for (int i = 0; i < 10000; ++i) {
    if (i == 4000) recorder.begin(Stage::during, start + 4s);
    if (i == 8500) recorder.begin(Stage::after, start + 8500ms);
    const base::TimePoint now = start + i * 1ms;
    const auto lane = static_cast<std::size_t>(i % 2);
    const bool dip = i >= 5000 && i < 6000;
    const bool miss = dip ? i % 2 == 0 : i % 10 == 0;
    recorder.count(lane, Event::get, now);
    recorder.count(lane, miss ? Event::origin_read : Event::hit, now);
    recorder.latency(lane, dip ? 8ms : 1ms);
  }
  recorder.begin(Stage::other, start + 10s);

  const StageFigures before = recorder.figures(Stage::before);
  EXPECT_DOUBLE_EQ(before.seconds, 4);
  EXPECT_EQ(before.gets, 4000U);
  EXPECT_DOUBLE_EQ(before.hit_rate, 0.9);
  EXPECT_DOUBLE_EQ(before.hit_rate_min_1s, 0.9);
  EXPECT_DOUBLE_EQ(before.origin_qps_max_1s, 100);
  EXPECT_EQ(before.windows, 4U);
  EXPECT_DOUBLE_EQ(before.window_gets, 1000);
  EXPECT_NEAR(before.hit_rate_standard_error, std::sqrt(0.9 * 0.1 / 1000), 1e-12);

  const StageFigures during = recorder.figures(Stage::during);
  EXPECT_DOUBLE_EQ(during.seconds, 4.5);
  EXPECT_EQ(during.windows, 5U) << "the last half second is in a window, too";
  EXPECT_DOUBLE_EQ(during.hit_rate_min_1s, 0.5);
  EXPECT_DOUBLE_EQ(during.origin_qps_max_1s, 500);
  EXPECT_NEAR(during.origin_qps, (500 + 350) / 4.5, 1e-9);
  EXPECT_NEAR(during.p99_ms, 8, 8 * 0.032);
  EXPECT_NEAR(during.p50_ms, 1, 1 * 0.032);
  EXPECT_EQ(recorder.totals()[Event::get], 10000U);
}

TEST(Recorder, ASecondWithoutGetsIsNoGoodSecond) {
  const base::TimePoint start{};
  Recorder recorder(1, start);
  recorder.begin(Stage::during, start);
  for (int i = 0; i < 1000; ++i) {
    recorder.count(0, Event::get, start + i * 1ms);
    recorder.count(0, Event::hit, start + i * 1ms);
  }
  recorder.begin(Stage::other, start + 2s);
  EXPECT_DOUBLE_EQ(recorder.figures(Stage::during).hit_rate_min_1s, 0);
}

TEST(Histogram, QuantilesWithinABucket) {
  for (const std::int64_t ns : {1LL, 31LL, 32LL, 1000LL, 123456LL, 98765432LL, 5000000000LL}) {
    Histogram histogram;
    histogram.record(base::Duration(ns));
    std::vector<std::uint64_t> counts;
    histogram.add_to(counts);
    const double got = Histogram::quantile_ms(counts, 0.99) * 1e6;
    EXPECT_GT(got, static_cast<double>(ns));
    EXPECT_LE(got, std::max(static_cast<double>(ns) * 1.032, static_cast<double>(ns) + 1) + 1e-6) << ns;
  }
  EXPECT_EQ(Histogram::quantile_ms({}, 0.99), 0);
}

TEST(Histogram, ExtremesStayInBounds) {
  Histogram histogram;
  histogram.record(base::Duration(-5));
  histogram.record(base::Duration::max());
  std::vector<std::uint64_t> counts;
  histogram.add_to(counts);
  EXPECT_EQ(counts.front(), 1U);
  EXPECT_EQ(counts.back(), 1U);
}

}  // namespace
}  // namespace ringshift::drill
