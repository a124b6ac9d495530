#include "resize/throttle.h"

#include <gtest/gtest.h>

namespace ringshift::resize {
namespace {

using std::chrono::milliseconds;

const base::TimePoint kStart = base::TimePoint() + std::chrono::hours(1);

TEST(TokenBucket, AFullBucketLetsThroughAndADebtWaitsForItsRate) {
  TokenBucket bucket(1000, kStart);  // 20 at once.
  EXPECT_EQ(bucket.wait(kStart), base::Duration::zero());
  bucket.spend(120, kStart);  // Above the burst: let through, and 100 in debt.
  const auto wait = bucket.wait(kStart);
  EXPECT_GE(wait, milliseconds(100));
  EXPECT_LE(wait, milliseconds(101));
  EXPECT_GT(bucket.wait(kStart + milliseconds(99)), base::Duration::zero());
  EXPECT_EQ(bucket.wait(kStart + milliseconds(101)), base::Duration::zero());
}

TEST(TokenBucket, IdleTimeIsWorthNoMoreThanTheBurst) {
  TokenBucket bucket(1000, kStart);
  const base::TimePoint later = kStart + std::chrono::hours(10);
  bucket.spend(21, later);
  EXPECT_GT(bucket.wait(later), base::Duration::zero());
}

// Over a long time the rate is kept, however the amounts fall.
TEST(TokenBucket, KeepsItsRate) {
  TokenBucket bucket(500, kStart);
  base::TimePoint now = kStart;
  double spent = 0;
  for (int i = 0; i < 1000; ++i) {
    now += bucket.wait(now);
    const double amount = 1 + i % 37;
    bucket.spend(amount, now);
    spent += amount;
  }
  const double seconds = std::chrono::duration<double>(now - kStart).count();
  EXPECT_NEAR(spent / seconds, 500, 5);
}

TEST(TokenBucket, ARateBelowOneASecondStillMoves) {
  TokenBucket bucket(0.5, kStart);
  EXPECT_EQ(bucket.wait(kStart), base::Duration::zero());
  bucket.spend(1, kStart);
  EXPECT_LE(bucket.wait(kStart), std::chrono::seconds(10)) << "never longer than ten seconds at once";
  EXPECT_EQ(bucket.wait(kStart + std::chrono::seconds(3)), base::Duration::zero());
}

TEST(TokenBucket, ANewRateCountsFromNowOn) {
  TokenBucket bucket(1, kStart);
  bucket.spend(101, kStart);  // 100 in debt.
  bucket.set_rate(1000, kStart);
  EXPECT_LE(bucket.wait(kStart), milliseconds(101));
}

TEST(TokenBucket, TimeThatGoesBackChangesNothing) {
  TokenBucket bucket(1000, kStart);
  bucket.spend(20, kStart);
  EXPECT_GT(bucket.wait(kStart - std::chrono::seconds(5)), base::Duration::zero());
  EXPECT_EQ(bucket.wait(kStart + milliseconds(2)), base::Duration::zero());
}

}  // namespace
}  // namespace ringshift::resize
