// How the mover's rate follows a source's response time, and the two things it is made of: the window that
// p99 is taken from, and the budget of what is held at once.
#include "resize/rate_governor.h"

#include <gtest/gtest.h>

#include <thread>

#include "resize/budget.h"
#include "resize/latency_window.h"

namespace ringshift::resize {
namespace {

using std::chrono::milliseconds;

class Governor : public testing::Test {
 protected:
  // One update a tenth of a second, as the probe does it.
  RateGovernor::Decision update(RateGovernor& governor, double p99, double moved, bool origin = false) {
    now_ += milliseconds(100);
    return governor.update(p99, moved, origin, now_);
  }
  base::TimePoint now_{std::chrono::seconds(1000)};
};

TEST_F(Governor, AFastSourceIsMovedFromAtTheConfiguredRate) {
  RateGovernor governor(50'000, 10);
  governor.set_idle(0.2);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(update(governor, 9.9, 50'000).fell);
  EXPECT_EQ(governor.rate(), 50'000);
  EXPECT_EQ(governor.cause(), RateGovernor::Cause::none);
}

TEST_F(Governor, FallsToAShareOfWhatWasReallyMoved) {
  RateGovernor governor(1e9, 10);  // As good as unlimited: a share of that would hold nothing back.
  governor.set_idle(0.2);
  EXPECT_TRUE(update(governor, 11, 20'000).fell);
  EXPECT_DOUBLE_EQ(governor.rate(), 20'000 * RateGovernor::kDecrease);
  EXPECT_EQ(governor.cause(), RateGovernor::Cause::latency);
}

TEST_F(Governor, WaitsForAFallToShowBeforeTheNext) {
  RateGovernor governor(20'000, 10);
  EXPECT_TRUE(update(governor, 30, 20'000).fell);
  EXPECT_FALSE(update(governor, 30, 20'000).fell);
  EXPECT_FALSE(update(governor, 30, 20'000).fell);
  EXPECT_TRUE(update(governor, 30, 14'000).fell);
  EXPECT_DOUBLE_EQ(governor.rate(), 14'000 * RateGovernor::kDecrease);
}

TEST_F(Governor, RisesInEvenStepsAndToTheConfiguredRateAtMost) {
  RateGovernor governor(20'000, 10);
  update(governor, 30, 20'000);
  const double low = governor.rate();
  double before = low;
  for (int i = 0; i < 5; ++i) {
    update(governor, 1, before);
    EXPECT_NEAR(governor.rate() - before, low * RateGovernor::kIncrease, 1e-6) << "additive";
    before = governor.rate();
  }
  for (int i = 0; i < 100; ++i) update(governor, 1, governor.rate());
  EXPECT_EQ(governor.rate(), 20'000);
  EXPECT_EQ(governor.cause(), RateGovernor::Cause::none);
}

TEST_F(Governor, NeverBelowItsFloor) {
  for (const double configured : {50.0, 400.0, 5000.0, 1e9}) {
    RateGovernor governor(configured, 10);
    for (int i = 0; i < 500; ++i) update(governor, 1000, governor.rate());
    EXPECT_EQ(governor.rate(), governor.floor());
    EXPECT_LE(governor.floor(), configured);
    EXPECT_GE(governor.floor(), std::min(configured, RateGovernor::kFloorMin));
    EXPECT_LE(governor.floor(), RateGovernor::kFloorMax);
  }
}

TEST_F(Governor, AMemberFarAwayIsNotALoadedOne) {
  RateGovernor governor(5000, 10);
  governor.set_idle(8);
  EXPECT_FALSE(update(governor, 23, 5000).fell) << "three times 8 is more than the limit of 10";
  EXPECT_TRUE(update(governor, 25, 5000).fell);
}

TEST_F(Governor, TheOriginHoldsBackToo) {
  RateGovernor governor(5000, 10);
  EXPECT_TRUE(update(governor, 1, 5000, true).fell);
  EXPECT_EQ(governor.cause(), RateGovernor::Cause::origin);
  RateGovernor deaf(5000, 0);
  EXPECT_FALSE(update(deaf, 1e6, 5000).fell) << "move_latency_ms: 0";
  EXPECT_TRUE(update(deaf, 1, 5000, true).fell);
}

// A model of a source: its p99 follows the rate, and is twice the limit at 10,000 keys/s.
TEST_F(Governor, SettlesWhereTheSourceBearsIt) {
  RateGovernor governor(1e6, 10);
  governor.set_idle(0.5);
  double sum = 0;
  for (int i = 0; i < 600; ++i) {
    const double moved = std::min(governor.rate(), 30'000.0);
    update(governor, moved / 500, moved);
    if (i >= 300) sum += governor.rate() / 300;
  }
  EXPECT_GT(sum, 3000) << "the limit is met at 5000";
  EXPECT_LT(sum, 6000);
}

TEST(LatencyWindow, P99ByNearestRankOverItsSpan) {
  LatencyWindow window(std::chrono::seconds(1));
  base::TimePoint now{std::chrono::seconds(50)};
  EXPECT_EQ(window.p99(now), 0);
  for (int i = 1; i <= 200; ++i) window.add(i, now);
  EXPECT_EQ(window.p99(now), 198);
  window.clear();
  for (int i = 1; i <= 20; ++i) window.add(i, now);
  EXPECT_EQ(window.p99(now), 20) << "the worst of few";
  now += milliseconds(600);
  window.add(3, now);
  now += milliseconds(600);
  EXPECT_EQ(window.p99(now), 3) << "the others are over a second old";
  for (std::size_t i = 0; i < 3 * LatencyWindow::kSamplesMax; ++i) window.add(1, now);
  EXPECT_LE(window.size(), LatencyWindow::kSamplesMax + 1);
}

TEST(Budget, HoldsNoMoreThanItsCapacityAndLetsOneThatIsTooLargeIn) {
  std::atomic<bool> stopping{false};
  Budget budget(100);
  std::atomic<int> inside{0}, most{0};
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 200; ++turn) {
        const Budget::Hold hold(budget, 40, stopping);
        const int now = ++inside;
        int seen = most.load();
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 2) << "40 three times is more than 100";
  EXPECT_LE(budget.most_held(), 100U);
  {
    const Budget::Hold hold(budget, 1000, stopping);
    EXPECT_TRUE(hold);
  }
  const Budget::Hold whole(budget, 100, stopping);
  std::thread waiter([&] { EXPECT_FALSE(Budget::Hold(budget, 1, stopping)); });
  std::this_thread::sleep_for(milliseconds(20));
  stopping = true;
  budget.wake();
  waiter.join();
}

}  // namespace
}  // namespace ringshift::resize
