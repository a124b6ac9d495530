// The search against brute force: on small random histories, right and wrong, both must agree.
#include "check/linearizable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ringshift::check {
namespace {

// Every order of every subset that contains all certain steps. Exponential; the definition itself.
bool explainable(const std::vector<Step>& steps, std::vector<bool>& done, const State& state) {
  bool complete = true;
  std::int64_t first_return = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (done[i] || steps[i].uncertain) continue;
    complete = false;
    first_return = std::min(first_return, steps[i].returned);
  }
  if (complete) return true;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (done[i] || step.invoked > first_return) continue;
    if (step.previous >= 0 && !done[static_cast<std::size_t>(step.previous)]) continue;
    const bool present = std::ranges::any_of(state, [](std::int64_t cell) { return cell != 0; });
    bool fits = step.key_test == KeyTest::none || present == (step.key_test == KeyTest::present);
    for (const Guard& guard : step.guards) {
      const std::int64_t value = state[guard.cell];
      fits =
          fits && (guard.test == Guard::Test::equals ? value == guard.value
                                                     : (value != 0) == (guard.test == Guard::Test::present));
    }
    if (!fits) continue;
    State next = state;
    for (const Effect& effect : step.effects) {
      next[effect.cell] = effect.add ? next[effect.cell] + effect.value : effect.value;
    }
    done[i] = true;
    if (explainable(steps, done, next)) return true;
    done[i] = false;
  }
  return false;
}

enum class Model { register_, counter, hash };

std::vector<Step> random_steps(std::mt19937_64& random, Model model) {
  const auto pick = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
  std::vector<Step> steps(4 + pick(4));
  std::vector<std::int64_t> values = {0};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Step& step = steps[i];
    step.invoked = pick(12);
    step.returned = step.invoked + pick(8);
    step.uncertain = pick(4) == 0;
    const auto cell = static_cast<std::uint8_t>(model == Model::hash ? pick(2) : 0);
    const auto fresh = static_cast<std::int64_t>(i) + 1;
    if (model == Model::counter) {
      if (step.uncertain || pick(2) == 0) step.effects = {{0, true, 1}};
      if (!step.uncertain) step.guards = {{0, Guard::Test::equals, pick(4)}};
      continue;
    }
    const auto seen = static_cast<std::int64_t>(pick(static_cast<std::uint32_t>(steps.size()) + 1));
    switch (step.uncertain ? 2 + pick(2) : pick(6)) {
      case 0:
      case 1:
        step.guards = {{cell, Guard::Test::equals, seen}};
        break;
      case 2:
        step.effects = {{cell, false, fresh}};
        break;
      case 3:
        step.effects = {{0, false, 0}, {1, false, 0}};
        if (model == Model::register_) step.effects = {{0, false, 0}};
        if (!step.uncertain) step.key_test = KeyTest::present;
        break;
      case 4:
        step.guards = {{cell, pick(2) == 0 ? Guard::Test::present : Guard::Test::absent, 0}};
        if (pick(2) == 0) step.effects = {{cell, false, fresh}};
        break;
      default:
        step.guards = {{0, Guard::Test::equals, seen}};
        if (model == Model::hash) step.guards.push_back({1, Guard::Test::equals, pick(4)});
        break;
    }
  }
  std::ranges::stable_sort(steps, {}, &Step::invoked);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const auto before = static_cast<std::size_t>(pick(static_cast<std::uint32_t>(i)));
    if (pick(4) == 0 && !steps[before].uncertain && !steps[i].uncertain) {
      // One connection's replies come in order.
      steps[i].previous = static_cast<int>(before);
      steps[i].returned = std::max(steps[i].returned, steps[before].returned);
    }
  }
  return steps;
}

TEST(Linearizable, AgreesWithBruteForce) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  int right = 0, wrong = 0;
  for (int round = 0; round < 30000; ++round) {
    const auto model = static_cast<Model>(round % 3);
    const std::vector<Step> steps = random_steps(random, model);
    std::vector<bool> done(steps.size(), false);
    const bool expected = explainable(steps, done, {});
    const Verdict verdict = check_linearizable(steps);
    ASSERT_EQ(verdict.kind == Verdict::Kind::linearizable, expected) << "seed " << seed << " round " << round;
    ++(expected ? right : wrong);
  }
  // Both sides were really tried.
  EXPECT_GT(right, 3000);
  EXPECT_GT(wrong, 3000);
}

TEST(Linearizable, SaysInconclusiveAtItsBound) {
  std::vector<Step> steps;
  for (int i = 0; i < 14; ++i) {
    Step write;
    write.invoked = 0;
    write.returned = 100 + i;
    write.effects = {{0, false, i + 1}};
    steps.push_back(write);
  }
  EXPECT_EQ(check_linearizable(steps).kind, Verdict::Kind::linearizable);
  EXPECT_EQ(check_linearizable(steps, {.max_configurations = 1000, .max_work = 50}).kind,
            Verdict::Kind::inconclusive);
}

}  // namespace
}  // namespace ringshift::check
