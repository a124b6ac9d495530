#include "drill/zipf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ringshift::drill {
namespace {

TEST(Zipf, FollowsTheory) {
  constexpr std::uint64_t kRanks = 1000;
  constexpr int kSamples = 400000;
  for (const double s : {0.5, 0.99, 1.0, 1.3}) {
    std::vector<int> seen(kRanks);
    Zipf zipf(kRanks, s, 7);
    for (int i = 0; i < kSamples; ++i) {
      const std::uint64_t rank = zipf.next();
      ASSERT_LT(rank, kRanks);
      ++seen[rank];
    }
    double norm = 0;
    for (std::uint64_t k = 1; k <= kRanks; ++k) norm += std::pow(static_cast<double>(k), -s);
    // Chi-square over ranks with an expected count of at least 20, against its mean plus five deviations.
    double chi_square = 0;
    int degrees = -1;
    for (std::uint64_t k = 1; k <= kRanks; ++k) {
      const double expected = kSamples * std::pow(static_cast<double>(k), -s) / norm;
      if (expected < 20) continue;
      chi_square += std::pow(seen[k - 1] - expected, 2) / expected;
      ++degrees;
    }
    EXPECT_GT(degrees, 100) << s;
    EXPECT_LT(chi_square, degrees + 5 * std::sqrt(2.0 * degrees)) << "s = " << s;
  }
}

TEST(Zipf, OneRankAndSeeds) {
  Zipf one(1, 0.99, 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(one.next(), 0U);
  Zipf a(1'000'000'000, 0.99, 5), b(1'000'000'000, 0.99, 5), c(1'000'000'000, 0.99, 6);
  int differ = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t rank = a.next();
    EXPECT_EQ(rank, b.next());
    differ += rank != c.next() ? 1 : 0;
  }
  EXPECT_GT(differ, 50);
}

}  // namespace
}  // namespace ringshift::drill
