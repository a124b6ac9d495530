#include "drill/workload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sstream>

#include "drill/schedule.h"

namespace ringshift::drill {
namespace {

using namespace std::chrono_literals;

TEST(Schedule, IsDueWhetherOrNotAnybodyIsThere) {
  const base::TimePoint start{};
  const Schedule schedule(start, 5000);
  EXPECT_EQ(schedule.due(0), start);
  EXPECT_EQ(schedule.due(1), start + 200us);
  EXPECT_EQ(schedule.due(5000), start + 1s);
  // No rounding adds up: a day later to the nanosecond or so, also for a rate that no clock divides.
  EXPECT_EQ(schedule.due(5000ULL * 86'400), start + 24h);
  const Schedule third(start, 3);
  EXPECT_NEAR(static_cast<double>((third.due(3ULL * 86'400) - (start + 24h)).count()), 0, 1000);
}

TEST(Workload, ZipfIsTheSameRequestByRequestAndAsPopularAsItSays) {
  const auto load =
      zipf_workload({.keys = 1000, .exponent = 0.99, .updates = 0.1, .body_bytes = 0, .seed = 7});
  const auto same =
      zipf_workload({.keys = 1000, .exponent = 0.99, .updates = 0.1, .body_bytes = 0, .seed = 7});
  const auto other =
      zipf_workload({.keys = 1000, .exponent = 0.99, .updates = 0.1, .body_bytes = 0, .seed = 8});
  constexpr std::uint64_t kRequests = 200'000;
  std::vector<double> reads(1000), updates(1000);
  std::uint64_t differ = 0;
  for (std::uint64_t n = 0; n < kRequests; ++n) {
    const Request request = load->at(n);
    ASSERT_LT(request.key, 1000U);
    ++(request.update ? updates : reads)[request.key];
    EXPECT_EQ(same->at(n).key, request.key);
    EXPECT_EQ(same->at(n).update, request.update);
    differ += other->at(n).key != request.key ? 1 : 0;
  }
  EXPECT_GT(differ, kRequests / 2);
  double whole = 0;
  for (std::uint64_t key = 0; key < 1000; ++key) whole += load->reads_share(key) + load->updates_share(key);
  EXPECT_NEAR(whole, 1, 1e-9);
  for (const std::uint64_t key : {0U, 1U, 9U, 99U}) {
    const double expected = load->reads_share(key) * kRequests;
    EXPECT_NEAR(reads[key], expected, 5 * std::sqrt(expected)) << key;
  }
  const double expected_updates = load->updates_share(0) * kRequests;
  EXPECT_NEAR(updates[0], expected_updates, 5 * std::sqrt(expected_updates));
}

TEST(Workload, ATraceGoesOnAtItsBeginning) {
  std::istringstream in("a\nb\nSET a 10\na\n");
  auto trace = read_trace(in, "t");
  ASSERT_TRUE(trace);
  const auto load = trace_workload(std::move(*trace));
  EXPECT_EQ(load->keys(), 2U);
  EXPECT_EQ(load->name(1), "b");
  EXPECT_EQ(load->body_bytes(0), 10U);
  EXPECT_DOUBLE_EQ(load->reads_share(0), 0.5);
  EXPECT_DOUBLE_EQ(load->updates_share(0), 0.25);
  EXPECT_EQ(load->at(4 * 1000 + 1).key, 1U);
  EXPECT_TRUE(load->at(4 * 1000 + 2).update);
}

// The closed form against the thing itself, simulated.
TEST(Workload, StandingIsTheLongRun) {
  for (const auto& [reads, updates, ttl] :
       {std::tuple(2.0, 0.0, 3.0), std::tuple(0.3, 0.2, 5.0), std::tuple(5.0, 1.0, 0.5)}) {
    std::mt19937_64 random(1);
    std::exponential_distribution<double> next_read(reads);
    double there = 0, whole = 0, ages = 0;
    for (int i = 0; i < 200'000; ++i) {
      const double life =
          updates > 0 ? std::min(ttl, std::exponential_distribution<double>(updates)(random)) : ttl;
      there += life;
      ages += life * life / 2;  // The integral of the age over a life.
      whole += life + next_read(random);
    }
    const Standing standing_here = standing(reads, updates, ttl);
    EXPECT_NEAR(standing_here.present, there / whole, 0.005);
    double mean_age = 0;
    constexpr int kSteps = 10'000;
    for (int i = 0; i < kSteps; ++i) {
      const double age = standing_here.age((i + 0.5) / kSteps);
      ASSERT_GE(age, 0);
      ASSERT_LE(age, ttl);
      mean_age += age / kSteps;
    }
    EXPECT_NEAR(mean_age, ages / there, 0.02 * ttl);
  }
  EXPECT_DOUBLE_EQ(standing(0, 1, 60).present, 0);
}

}  // namespace
}  // namespace ringshift::drill
