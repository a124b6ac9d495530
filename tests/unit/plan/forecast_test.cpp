// The planner's arithmetic: the published cases to the figure, and each bound from both of its sides.
#include "plan/forecast/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plan/forecast/units.h"

namespace ringshift::plan {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;
using testing::Not;
using topology::Spec;

Spec spec_of(const std::string& algorithm, const std::vector<double>& weights) {
  Spec spec;
  spec.cluster = "cache";
  spec.placement.algorithm = algorithm;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    topology::Member member;
    member.id = "cache-" + std::to_string(i + 1);
    member.address = "127.0.0.1:" + std::to_string(7001 + i);
    member.weight = weights[i];
    spec.members.push_back(member);
  }
  return spec;
}

Spec equal(const std::string& algorithm, std::size_t count) {
  return spec_of(algorithm, std::vector<double>(count, 1.0));
}

// Jump from 4 to 5 moves exactly a fifth, modulo exactly four fifths.
ForecastInputs growth(const std::string& algorithm) {
  ForecastInputs in;
  in.from = equal(algorithm, 4);
  in.to = equal(algorithm, 5);
  in.keys = 1'000'000;
  in.value_bytes = 1024;
  in.traffic = {100'000, 0.95, 0.2};
  in.keys_per_second = 5000;
  in.bytes_per_second = 50 << 20;
  in.steps = {1, 10, 50, 100};
  return in;
}

Forecast made(const ForecastInputs& in) {
  const Result<Forecast> out = forecast(in);
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return out ? *out : Forecast{};
}

const MemberForecast& member(const Forecast& out, const std::string& id) {
  for (const MemberForecast& one : out.members) {
    if (one.id == id) return one;
  }
  ADD_FAILURE() << id << " is not there";
  return out.members.front();
}

TEST(Origin, AFifthMovedWithAFifthOfItsHitsLeftIsFourTimesTheLoad) {
  const Forecast out = made(growth("jump"));
  EXPECT_EQ(out.moved_share, 0.2);
  EXPECT_EQ(out.origin_now, 5000);
  EXPECT_EQ(out.origin_cold, 20'000) << "to the figure: 100,000 x (0.8 x 0.05 + 0.2 x 0.8)";
  EXPECT_EQ(out.origin_cold / out.origin_now, 4);
  EXPECT_DOUBLE_EQ(out.hit_rate_cold, 0.80);
  EXPECT_EQ(out.origin_live, 5000) << "a live resize adds nothing";
}

TEST(Origin, ModuloFullyColdIsEightyOneThousand) {
  ForecastInputs in = growth("modulo");
  in.traffic.cold_hit_rate = 0;
  const Forecast out = made(in);
  EXPECT_EQ(out.moved_share, 0.8);
  EXPECT_EQ(out.origin_cold, 81'000);
}

TEST(Origin, BoundsOfTheRates) {
  EXPECT_EQ(origin_qps({1000, 1, 0}, 0), 0);
  EXPECT_EQ(origin_qps({1000, 1, 0}, 1), 1000);
  EXPECT_EQ(origin_qps({1000, 0, 0}, 0.5), 1000) << "nothing was cached, so nothing is lost";
  EXPECT_EQ(origin_qps({0, 0.9, 0}, 1), 0);
}

// f_max = (L - Q(1-H)) / (Q (H-h)).
TEST(SafeStep, IsWhereTheLimitIsMetAndNotBeyond) {
  const Traffic traffic{100'000, 0.95, 0.2};
  const SafeStep safe = largest_safe_step(traffic, 0.2, 12'500);
  EXPECT_DOUBLE_EQ(safe.keyspace_share, 0.5) << "half of the way from 5,000 to 20,000";
  EXPECT_DOUBLE_EQ(safe.cold_share, 0.1);
  EXPECT_EQ(safe.slices, 512U);
  EXPECT_EQ(safe.steps, 2U);
  EXPECT_LE(origin_qps(traffic, safe.cold_share), 12'500);
  EXPECT_GT(origin_qps(traffic, safe.cold_share * 1.0001), 12'500);
}

TEST(SafeStep, JustAtAndJustBelowWhatAllAtOnceNeeds) {
  const Traffic traffic{100'000, 0.95, 0.2};
  EXPECT_EQ(largest_safe_step(traffic, 0.2, 20'000).slices, 1024U) << "equal is within the limit";
  EXPECT_EQ(largest_safe_step(traffic, 0.2, 20'000).steps, 1U);
  EXPECT_EQ(largest_safe_step(traffic, 0.2, 19'999).slices, 1023U);
  EXPECT_EQ(largest_safe_step(traffic, 0.2, 19'999).steps, 2U);
}

TEST(SafeStep, NoneWhenTheOriginIsFullAlready) {
  const Traffic traffic{100'000, 0.95, 0.2};
  EXPECT_EQ(largest_safe_step(traffic, 0.2, 4999).slices, 0U);
  EXPECT_EQ(largest_safe_step(traffic, 0.2, 5000).slices, 0U) << "at the limit there is nothing to spare";
  // One slice costs 15,000 / 1024 = 14.6 lookups.
  EXPECT_EQ(largest_safe_step(traffic, 0.2, 5014).slices, 0U);
  EXPECT_EQ(largest_safe_step(traffic, 0.2, 5015).slices, 1U);
  EXPECT_EQ(largest_safe_step(traffic, 0.2, 5015).steps, 1024U);
}

TEST(SafeStep, EverythingWhenColdIsNoWorseThanWarm) {
  EXPECT_EQ(largest_safe_step({100'000, 0.2, 0.2}, 0.8, 80'000).slices, 1024U);
  EXPECT_EQ(largest_safe_step({100'000, 0.2, 0.5}, 0.8, 80'000).slices, 1024U);
}

TEST(Forecast, KeysAndBytesToMoveByPairsAndByMembers) {
  const Forecast out = made(growth("jump"));
  EXPECT_TRUE(out.exact);
  EXPECT_NEAR(out.keys_to_move, 200'000, 1e-3);
  EXPECT_NEAR(out.bytes_to_move, 200'000.0 * 1024, 1);
  ASSERT_EQ(out.pairs.size(), 4U);
  for (const PairForecast& pair : out.pairs) {
    EXPECT_EQ(pair.to, "cache-5");
    EXPECT_NEAR(pair.keys, 50'000, 1e-3);
    EXPECT_FALSE(pair.between_unchanged);
  }
  ASSERT_EQ(out.members.size(), 5U);
  EXPECT_DOUBLE_EQ(member(out, "cache-1").share_before, 0.25);
  EXPECT_DOUBLE_EQ(member(out, "cache-1").share_after, 0.2);
  EXPECT_EQ(member(out, "cache-5").share_before, 0);
  EXPECT_NEAR(member(out, "cache-5").keys_after, 200'000, 1e-3);
  EXPECT_NEAR(member(out, "cache-5").ops_after, 20'000, 1e-3);
  EXPECT_NEAR(member(out, "cache-1").bytes_out, 50'000.0 * 1024, 1);
}

TEST(Forecast, AMemberThatLeavesGivesAll) {
  ForecastInputs in = growth("ring");
  std::swap(in.from, in.to);
  const Forecast out = made(in);
  EXPECT_EQ(member(out, "cache-5").share_after, 0);
  EXPECT_NEAR(member(out, "cache-5").keys_after, 0, 1e-3);
  for (const PairForecast& pair : out.pairs) EXPECT_EQ(pair.from, "cache-5");
}

TEST(Forecast, AMembersOwnFiguresCountForWhatItGives) {
  ForecastInputs in = growth("jump");
  in.members = {{"cache-1", 100, {}, {}, 40}, {"cache-2", 0, {}, {}, {}}};
  const Forecast out = made(in);
  // A fifth of what each has; cache-3 and cache-4 have a quarter of the million.
  EXPECT_NEAR(out.keys_to_move, 20 + 0 + 50'000 + 50'000, 1e-3);
  EXPECT_NEAR(member(out, "cache-1").keys_after, 80, 1e-6);
  EXPECT_NEAR(member(out, "cache-1").ops_after, 32, 1e-6);
}

TEST(Duration, TheSlowerOfKeysAndBytes) {
  ForecastInputs in = growth("jump");
  Forecast out = made(in);
  EXPECT_NEAR(out.seconds, 40, 1e-6) << "200,000 keys at 5,000 a second; their bytes take 3.9 s";
  EXPECT_FALSE(out.bound_by_bytes);
  in.value_bytes = 100 * 1024;
  out = made(in);
  EXPECT_NEAR(out.seconds, 200'000.0 * 100 / 1024 / 50, 1e-6) << "19.07 GiB at 50 MiB a second";
  EXPECT_TRUE(out.bound_by_bytes);
}

TEST(Steps, EachMovesItsSlicesAndTheyMakeTheWhole) {
  const Forecast out = made(growth("jump"));
  ASSERT_EQ(out.steps.size(), 4U);
  EXPECT_EQ(out.steps[0].slices, 10U) << "1 % of 1024 slices, rounded";
  EXPECT_EQ(out.steps[1].slices, 92U);
  EXPECT_EQ(out.steps[3].slices, 512U);
  EXPECT_NEAR(out.steps[3].cold_share, 0.1, 1e-12);
  EXPECT_EQ(out.steps[3].cold_origin_qps, 12'500);
  EXPECT_EQ(out.steps[3].cold_extra_qps, 7500);
  double keys = 0, seconds = 0, share = 0;
  for (const StepForecast& step : out.steps) {
    keys += step.keys;
    seconds += step.seconds;
    share += step.cold_share;
  }
  EXPECT_NEAR(keys, out.keys_to_move, 1e-3);
  EXPECT_NEAR(seconds, out.seconds, 1e-6);
  EXPECT_NEAR(share, out.moved_share, 1e-12);
}

TEST(Pairs, WeightedKetamaMovesKeysBetweenMembersThatDidNotChange) {
  ForecastInputs in = growth("libmemcached");
  in.from = spec_of("libmemcached", {1, 2, 3, 4});
  in.to = spec_of("libmemcached", {1, 2, 3, 4, 5});
  for (Spec* spec : {&in.from, &in.to}) {
    spec->placement.hash = "md5";
    spec->placement.options = {{"distribution", "ketama_weighted"}};
  }
  const Forecast ketama = made(in);
  EXPECT_GT(ketama.between_unchanged_share, 0);
  double between = 0;
  for (const PairForecast& pair : ketama.pairs) {
    EXPECT_EQ(pair.between_unchanged, pair.to != "cache-5") << pair.from << " -> " << pair.to;
    if (pair.between_unchanged) between += pair.share;
  }
  EXPECT_DOUBLE_EQ(between, ketama.between_unchanged_share);
  EXPECT_EQ(made(growth("ring")).between_unchanged_share, 0) << "the ring has none";
}

TEST(Pairs, AMemberWithANewWeightIsNotUnchanged) {
  ForecastInputs in = growth("ring");
  in.to = spec_of("ring", {1, 1, 1, 2});
  const Forecast out = made(in);
  ASSERT_GT(out.pairs.size(), 0U);
  for (const PairForecast& pair : out.pairs) {
    EXPECT_EQ(pair.to, "cache-4");
    EXPECT_FALSE(pair.between_unchanged);
  }
}

TEST(Headroom, JustEnoughAndOneByteLess) {
  ForecastInputs in = growth("jump");
  const double arrives = 200'000.0 * 1024;
  in.members = {{"cache-5", {}, 1000, 0, {}}};
  EXPECT_TRUE(member(made(in), "cache-5").has_room) << "no maxmemory, no bound";
  in.members[0].max_memory = arrives + 1000 + 1;
  Forecast out = made(in);
  EXPECT_TRUE(member(out, "cache-5").has_room);
  EXPECT_NEAR(*member(out, "cache-5").memory_peak, arrives + 1000, 1);
  EXPECT_EQ(out.verdict, Verdict::caution) << "it fits, but tightly";
  EXPECT_THAT(out.reason, HasSubstr("cache-5"));
  in.members[0].max_memory = arrives + 1000 - 1;
  out = made(in);
  EXPECT_FALSE(member(out, "cache-5").has_room);
  EXPECT_EQ(out.verdict, Verdict::unsafe);
  EXPECT_EQ(out.live.verdict, Verdict::unsafe);
  EXPECT_THAT(out.reason, HasSubstr("cache-5 would need 195.3 MiB of its maxmemory of 195.3 MiB"));
  in.members[0].max_memory = arrives * 2;
  EXPECT_EQ(made(in).verdict, Verdict::safe);
}

TEST(Headroom, AFullMemberThatOnlyGivesIsWhatAClusterGrowsFor) {
  ForecastInputs in = growth("jump");
  in.members = {{"cache-1", 250'000, 900, 800, {}}};
  const Forecast out = made(in);
  EXPECT_TRUE(member(out, "cache-1").has_room);
  EXPECT_EQ(out.live.verdict, Verdict::safe);
}

TEST(Judgement, LiveAndColdByTheOriginsLimit) {
  ForecastInputs in = growth("jump");
  in.origin_limit_qps = 10'000;
  Forecast out = made(in);
  EXPECT_EQ(out.live.verdict, Verdict::safe);
  EXPECT_EQ(out.cold.verdict, Verdict::unsafe);
  EXPECT_EQ(out.verdict, Verdict::safe) << "the word is for what ringshift does";
  EXPECT_THAT(out.reason, HasSubstr("from 5,000/s to 20,000/s (4.0 times), above its limit of 10,000/s"));
  EXPECT_THAT(out.reason, HasSubstr("safe only in 4 steps of at most 33.33 % of the keyspace"));
  EXPECT_EQ(out.safe_step->slices, 341U);
  in.origin_limit_qps = 20'000;
  EXPECT_EQ(made(in).cold.verdict, Verdict::caution) << "equal is within, but close";
  in.origin_limit_qps = 40'000;
  EXPECT_EQ(made(in).cold.verdict, Verdict::safe);
  in.origin_limit_qps = 4000;
  out = made(in);
  EXPECT_EQ(out.cold.verdict, Verdict::unsafe);
  EXPECT_EQ(out.live.verdict, Verdict::caution);
  EXPECT_THAT(out.reason, HasSubstr("above its limit of 4,000/s already"));
  in.origin_limit_qps.reset();
  out = made(in);
  EXPECT_EQ(out.cold.verdict, Verdict::caution) << "without a limit nobody can say";
  EXPECT_FALSE(out.safe_step);
}

TEST(Judgement, IsOneSentence) {
  for (const char* algorithm : {"jump", "modulo", "ring"}) {
    for (const double limit : {100.0, 5015.0, 10'000.0, 1e6}) {
      ForecastInputs in = growth(algorithm);
      in.origin_limit_qps = limit;
      const std::string reason = made(in).reason;
      EXPECT_EQ(reason.find(". "), std::string::npos) << reason;
      EXPECT_TRUE(reason.ends_with(".")) << reason;
      EXPECT_FALSE(reason.ends_with("..")) << reason;
      EXPECT_TRUE(std::isupper(static_cast<unsigned char>(reason.front())) != 0) << reason;
    }
  }
}

TEST(Judgement, WhereNoLiveResizeCanBeTheColdSwitchIsJudged) {
  ForecastInputs in = growth("jump");
  in.origin_limit_qps = 10'000;
  in.from.consistency = in.to.consistency = topology::Consistency::none;
  const Forecast out = made(in);
  EXPECT_FALSE(out.can_resize_live);
  EXPECT_EQ(out.verdict, Verdict::unsafe);
  EXPECT_THAT(out.reason, HasSubstr("no data to move"));
  in = growth("jump");
  in.to.members[0].address = "127.0.0.1:9999";
  const Forecast moved = made(in);
  EXPECT_FALSE(moved.can_resize_live);
  EXPECT_THAT(moved.warnings, testing::Contains(HasSubstr("cache-1 changes from 127.0.0.1:7001")));
}

TEST(Forecast, NoChangeAtAll) {
  ForecastInputs in = growth("ring");
  in.to = in.from;
  in.origin_limit_qps = 10;  // Far below what the origin has: still nothing changes by the plan.
  const Forecast out = made(in);
  EXPECT_EQ(out.moved_share, 0);
  EXPECT_EQ(out.keys_to_move, 0);
  EXPECT_EQ(out.seconds, 0);
  EXPECT_TRUE(out.pairs.empty());
  EXPECT_EQ(out.origin_cold, out.origin_now);
  EXPECT_EQ(out.verdict, Verdict::safe);
}

TEST(Forecast, ZeroKeys) {
  ForecastInputs in = growth("jump");
  in.keys = 0;
  in.traffic.qps = 0;
  const Forecast out = made(in);
  EXPECT_EQ(out.keys_to_move, 0);
  EXPECT_EQ(out.seconds, 0);
  EXPECT_EQ(out.origin_cold, 0);
  EXPECT_EQ(out.live.verdict, Verdict::safe);
  EXPECT_THAT(out.reason, Not(HasSubstr("nan")));
  EXPECT_THAT(out.reason, Not(HasSubstr("inf")));
}

TEST(Forecast, OneMemberBeforeAndTwoAfter) {
  ForecastInputs in = growth("jump");
  in.from = equal("jump", 1);
  in.to = equal("jump", 2);
  const Forecast out = made(in);
  EXPECT_EQ(out.moved_share, 0.5);
  EXPECT_EQ(member(out, "cache-1").share_before, 1);
  in.to = in.from;
  EXPECT_EQ(made(in).moved_share, 0);
}

TEST(Forecast, WarningsOfTheSpecAndOfTheChange) {
  ForecastInputs in = growth("jump");
  in.to.members.erase(in.to.members.begin());
  const Forecast out = made(in);
  EXPECT_THAT(out.warnings,
              testing::Contains(HasSubstr("jump counts members by their place in the list: add")));
  EXPECT_THAT(out.warnings, testing::Contains(HasSubstr("nearly every key behind them moves")));
}

TEST(Forecast, FiguresThatMakeNoSenseAreNamed) {
  struct Case {
    void (*spoil)(ForecastInputs&);
    const char* says;
  };
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const Case cases[] = {
      {[](ForecastInputs& in) { in.traffic.hit_rate = 1.01; }, "hit rate: 1.01"},
      {[](ForecastInputs& in) { in.traffic.hit_rate = -0.1; }, "hit rate: -0.1"},
      {[](ForecastInputs& in) { in.traffic.hit_rate = kNone; }, "hit rate: nan"},
      {[](ForecastInputs& in) { in.traffic.cold_hit_rate = 20; }, "cold hit rate: 20"},
      {[](ForecastInputs& in) { in.keys = -1; }, "keys: -1"},
      {[](ForecastInputs& in) { in.value_bytes = kNone; }, "value bytes: nan"},
      {[](ForecastInputs& in) { in.traffic.qps = std::numeric_limits<double>::infinity(); }, "qps: inf"},
      {[](ForecastInputs& in) { in.origin_limit_qps = -5; }, "origin limit: -5"},
      {[](ForecastInputs& in) { in.keys_per_second = 0; }, "rate: 0"},
      {[](ForecastInputs& in) { in.bytes_per_second = 0; }, "byte rate: 0"},
      {[](ForecastInputs& in) { in.steps = {10, 5, 100}; }, "steps: 5"},
      {[](ForecastInputs& in) { in.steps = {10, 50}; }, "steps: 50"},
      {[](ForecastInputs& in) { in.steps.clear(); }, "steps: 0"},
      {[](ForecastInputs& in) { in.to.members.clear(); }, "members"},
  };
  for (const Case& one : cases) {
    ForecastInputs in = growth("ring");
    one.spoil(in);
    const Result<Forecast> out = forecast(in);
    ASSERT_FALSE(out) << one.says;
    EXPECT_EQ(out.error().kind, ErrorKind::invalid);
    EXPECT_THAT(out.error().message, HasSubstr(one.says));
  }
}

TEST(Units, AsPeopleReadThem) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999.6), "1,000");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(1024.0 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(bytes_text(200'000.0 * 1024), "195.3 MiB");
  EXPECT_EQ(seconds_text(0), "0 s");
  EXPECT_EQ(seconds_text(0.2), "under 1 s");
  EXPECT_EQ(seconds_text(59.7), "1 min");
  EXPECT_EQ(seconds_text(200), "3 min 20 s");
  EXPECT_EQ(seconds_text(3600), "1 h");
  EXPECT_EQ(seconds_text(3 * 3600 + 59 * 60 + 40), "4 h");
  EXPECT_EQ(seconds_text(26 * 3600), "1 d 2 h");
  EXPECT_EQ(percent_text(0.2), "20.00 %");
}

}  // namespace
}  // namespace ringshift::plan
