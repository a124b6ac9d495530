// What is shown of a fault is itself inexplicable, and nothing was left out that could have explained it.
#include "check/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ringshift::check {
namespace {

// A register that is right: overlapping clients, each step at an instant of its own; some of unknown fate.
std::vector<Step> right_history(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::uint32_t below) { return static_cast<std::int64_t>(random() % below); };
  struct Planned {
    Step step;
    std::int64_t effect;
    int what;
  };
  std::vector<Planned> plan;
  for (std::size_t i = 0; i < count; ++i) {
    Planned p{};
    p.step.invoked = pick(static_cast<std::uint32_t>(count) * 4);
    p.effect = p.step.invoked + pick(12);
    p.step.returned = p.effect + pick(12);
    p.what = static_cast<int>(pick(5));
    p.step.uncertain = p.what < 2 && pick(6) == 0;
    if (p.step.uncertain) p.effect = pick(2) == 0 ? -1 : p.effect + pick(60);
    plan.push_back(p);
  }
  std::ranges::stable_sort(plan, {}, &Planned::effect);
  std::int64_t value = 0, next = 1;
  for (Planned& p : plan) {
    Step& step = p.step;
    const bool happens = p.effect >= 0;
    const auto saw = [&] { return Guard{0, Guard::Test::equals, value}; };
    const auto presence = [&] { return Guard{0, value ? Guard::Test::present : Guard::Test::absent, 0}; };
    if (p.what == 0) step.effects = {{0, false, next++}};  // SET
    if (p.what == 1) {                                     // DEL
      if (!step.uncertain) step.guards = {presence()};
      step.effects = {{0, false, 0}};
    }
    if (p.what == 2) {  // GETSET
      step.guards = {saw()};
      step.effects = {{0, false, next++}};
    }
    if (p.what == 3) step.guards = {saw()};
    if (p.what == 4) step.guards = {presence()};
    if (happens && !step.effects.empty()) value = step.effects.front().value;
  }
  std::vector<Step> steps;
  for (const Planned& p : plan) steps.push_back(p.step);
  std::ranges::stable_sort(steps, {}, &Step::invoked);
  return steps;
}

bool explained(const std::vector<Step>& steps) {
  return check_linearizable(steps).kind == Verdict::Kind::linearizable;
}

TEST(Shrink, WhatMayGoNeverTakesAnExplanationAway) {
  const std::uint64_t base = std::random_device{}();
  std::size_t removed = 0;
  for (std::uint64_t seed = base; seed < base + 100; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Step> steps = right_history(seed, 40);
    ASSERT_TRUE(explained(steps)) << "seed " << seed;
    for (int tries = 0; tries < 40 && !steps.empty(); ++tries) {
      const auto index = static_cast<std::size_t>(random() % steps.size());
      if (steps[index].effects.empty()) {
        if (random() % 4 == 0) steps = without(steps, index);
        continue;
      }
      if (may_remove(steps, index)) {
        steps = without(steps, index);
        ++removed;
      } else if (!steps[index].uncertain) {
        steps[index].guards.clear();
      }
      ASSERT_TRUE(explained(steps)) << "seed " << seed << ", after " << tries;
    }
  }
  EXPECT_GT(removed, 150U);
}

TEST(Shrink, LeavesLittleThatIsStillInexplicable) {
  const std::uint64_t base = std::random_device{}();
  std::size_t most = 0, broken = 0;
  for (std::uint64_t seed = base; seed < base + 60; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Step> steps = right_history(seed, 60);
    for (Step& step : steps) {  // One read sees another value that was written.
      if (step.effects.empty() && step.guards.front().test == Guard::Test::equals && random() % 8 == 0) {
        step.guards.front().value = 1 + static_cast<std::int64_t>(random() % 10);
        break;
      }
    }
    const Verdict verdict = check_linearizable(steps);
    if (verdict.kind != Verdict::Kind::broken) continue;
    ++broken;
    const auto culprit = static_cast<std::size_t>(verdict.step);
    const auto kept = shrink(steps, culprit);
    EXPECT_TRUE(std::ranges::is_sorted(kept));
    EXPECT_TRUE(std::ranges::find(kept, culprit) != kept.end()) << "seed " << seed;
    most = std::max(most, kept.size());
  }
  EXPECT_GT(broken, 10U);
  EXPECT_LE(most, 20U);
}

TEST(Shrink, ACountersFaultNeedsNotItsWholePast) {
  std::vector<Step> steps;
  for (int i = 0; i < 300; ++i) {
    Step step;
    step.invoked = 10 * i;
    step.returned = 10 * i + 5;
    step.previous = i - 1;
    step.guards = {{0, Guard::Test::equals, i == 250 ? 200 : i}};  // One number twice.
    step.effects = {{0, true, 1}};
    steps.push_back(step);
  }
  const Verdict verdict = check_linearizable(steps);
  ASSERT_EQ(verdict.kind, Verdict::Kind::broken);
  EXPECT_LE(shrink(steps, static_cast<std::size_t>(verdict.step)).size(), 4U);
}

}  // namespace
}  // namespace ringshift::check
