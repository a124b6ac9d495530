// Quantiles from buckets: never too low, at most an eighth too high, and only of what was added in between.
#include "telemetry/times.h"

#include <gtest/gtest.h>

#include <limits>

namespace ringshift::telemetry {
namespace {

TEST(Times, ABucketHoldsWhatIsPutIntoIt) {
  std::size_t before = 0;
  for (std::int64_t micros = 0; micros < 200'000; ++micros) {
    const std::size_t bucket = Times::bucket(micros);
    ASSERT_TRUE(bucket == before || bucket == before + 1) << micros;
    before = bucket;
    ASSERT_GE(Times::upper(bucket), static_cast<std::uint64_t>(micros));
    ASSERT_LE(static_cast<double>(Times::upper(bucket)), static_cast<double>(micros) * 1.125 + 1) << micros;
  }
  EXPECT_EQ(Times::bucket(-5), 0U);
  EXPECT_LT(Times::bucket(std::numeric_limits<std::int64_t>::max()), kTimeBuckets);
}

TEST(Times, QuantileOfWhatWasAddedInBetween) {
  Times times;
  TimesTotals before{}, after{};
  EXPECT_EQ(quantile(before, after, 0.99), -1) << "nothing";
  times.add(1'000'000);
  times.add_to(before);
  for (int i = 0; i < 990; ++i) times.add(100);
  for (int i = 0; i < 10; ++i) times.add(50'000);
  times.add_to(after);
  EXPECT_NEAR(quantile(before, after, 0.99), 100, 13);
  EXPECT_NEAR(quantile(before, after, 0.995), 50'000, 6'250);
  EXPECT_NEAR(quantile(before, after, 1.0), 50'000, 6'250) << "the second before is not in it";
}

}  // namespace
}  // namespace ringshift::telemetry
