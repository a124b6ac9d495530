#include "check/shrink.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

namespace ringshift::check {
namespace {

constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::max();

// Steps and which of the original ones they are.
struct Selection {
  std::vector<Step> steps;
  std::vector<std::size_t> origin;

  void remove(std::size_t index) {
    steps = without(steps, index);
    origin.erase(origin.begin() + static_cast<std::ptrdiff_t>(index));
  }
};

bool sets(const Step& step) { return step.effects.size() == 1 && !step.effects.front().add; }

// What `guard` asks for is not there right after the write of `value`.
bool refutes(const Guard& guard, std::int64_t value) {
  switch (guard.test) {
    case Guard::Test::equals:
      return guard.value != value;
    case Guard::Test::present:
      return value == 0;
    case Guard::Test::absent:
      return value != 0;
  }
  return false;
}

class Shrinker {
 public:
  explicit Shrinker(std::size_t culprit) : culprit_(culprit) {}

  std::vector<std::size_t> run(const std::vector<Step>& steps) {
    // What began after the culprit's end is not needed; and the search did not look at it.
    Selection all;
    all.steps = steps;
    all.origin.resize(steps.size());
    std::iota(all.origin.begin(), all.origin.end(), std::size_t{0});
    for (std::size_t i = steps.size(); i-- > 0;) {
      if (steps[i].invoked > steps[culprit_].returned) all.remove(i);
    }
    now_ = std::move(all);
    project();
    increments_to_writes();
    for (std::size_t before = now_.steps.size() + 1; before != now_.steps.size() && searches_ > 0;) {
      before = now_.steps.size();
      remove_reads(0, now_.steps.size());
      if (one_cell_of_writes()) remove_writes();
    }
    return now_.origin;
  }

 private:
  bool broken(const Selection& selection) {
    if (searches_ == 0 || work_ == 0) return false;
    --searches_;
    Limits limits;
    limits.max_work = work_;
    limits.name_step = false;
    const Verdict verdict = check_linearizable(selection.steps, limits);
    work_ -= std::min(work_, verdict.work);
    return verdict.kind == Verdict::Kind::broken;
  }

  // One cell alone, if it shows the fault. Tests of the whole key are dropped.
  void project() {
    std::vector<std::uint8_t> cells;
    for (std::size_t i = 0; i < now_.steps.size(); ++i) {
      for (const Guard& guard : now_.steps[i].guards) {
        if (now_.origin[i] == culprit_) cells.push_back(guard.cell);
      }
    }
    for (const std::uint8_t cell : cells) {
      Selection one = now_;
      for (std::size_t i = one.steps.size(); i-- > 0;) {
        Step& step = one.steps[i];
        std::erase_if(step.guards, [&](const Guard& guard) { return guard.cell != cell; });
        std::erase_if(step.effects, [&](const Effect& effect) { return effect.cell != cell; });
        step.key_test = KeyTest::none;
        if (step.guards.empty() && step.effects.empty() && one.origin[i] != culprit_) one.remove(i);
      }
      if (!broken(one)) continue;
      now_ = std::move(one);
      return;
    }
  }

  // An increment that says what it came to is a write of that number. Only where all are: an increment of
  // unknown fate counts on from what those before it left.
  void increments_to_writes() {
    Selection written = now_;
    for (Step& step : written.steps) {
      for (Effect& effect : step.effects) {
        if (!effect.add) continue;
        const bool told = !step.uncertain && step.guards.size() == 1 && step.effects.size() == 1 &&
                          step.guards.front().test == Guard::Test::equals;
        if (!told) return;
        effect = {effect.cell, false, step.guards.front().value + effect.value};
      }
    }
    if (broken(written)) now_ = std::move(written);
  }

  bool one_cell_of_writes() const {
    std::optional<std::uint8_t> cell;
    const auto same = [&](std::uint8_t other) {
      if (!cell) cell = other;
      return *cell == other;
    };
    return std::ranges::all_of(now_.steps, [&](const Step& step) {
      return step.key_test == KeyTest::none && (step.effects.empty() || sets(step)) &&
             std::ranges::all_of(step.guards, same, &Guard::cell) &&
             std::ranges::all_of(step.effects, same, &Effect::cell);
    });
  }

  // Takes all reads of [begin, end) out, or those of its halves.
  void remove_reads(std::size_t begin, std::size_t end) {
    Selection fewer = now_;
    for (std::size_t i = end; i-- > begin;) {
      if (now_.steps[i].effects.empty() && now_.origin[i] != culprit_) fewer.remove(i);
    }
    if (fewer.steps.size() == now_.steps.size()) return;
    if (broken(fewer)) {
      now_ = std::move(fewer);
    } else if (end - begin > 1) {
      const std::size_t middle = begin + (end - begin) / 2;
      remove_reads(middle, end);  // First the later half: the earlier one's indices stay.
      remove_reads(begin, middle);
    }
  }

  // Whether it wrote what the culprit saw: people want to know where that came from, and what replaced it.
  bool seen_by_culprit(const Step& write) const {
    const auto at = std::ranges::find(now_.origin, culprit_) - now_.origin.begin();
    return std::ranges::any_of(now_.steps[static_cast<std::size_t>(at)].guards, [&](const Guard& guard) {
      return guard.test == Guard::Test::equals && guard.value != 0 &&
             guard.value == write.effects.front().value;
    });
  }

  // From the last to the first; what cannot go need at least not say what it saw.
  void remove_writes() {
    for (std::size_t i = now_.steps.size(); i-- > 0 && searches_ > 0;) {
      if (now_.origin[i] == culprit_ || now_.steps[i].effects.empty()) continue;
      Selection fewer = now_;
      if (!seen_by_culprit(now_.steps[i]) && may_remove(now_.steps, i)) {
        fewer.remove(i);
        if (broken(fewer)) {
          now_ = std::move(fewer);
          continue;
        }
        fewer = now_;
      }
      if (fewer.steps[i].uncertain || fewer.steps[i].guards.empty()) continue;
      fewer.steps[i].guards.clear();
      if (broken(fewer)) now_ = std::move(fewer);
    }
  }

  const std::size_t culprit_;
  Selection now_;
  std::size_t searches_ = kMaxSearches;
  std::uint64_t work_ = kMaxShrinkWork;
};

}  // namespace

std::vector<std::size_t> shrink(const std::vector<Step>& steps, std::size_t culprit) {
  return Shrinker(culprit).run(steps);
}

std::vector<Step> without(const std::vector<Step>& steps, std::size_t index) {
  std::vector<Step> left;
  left.reserve(steps.size() - 1);
  const int gone = static_cast<int>(index);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i == index) continue;
    Step step = steps[i];
    if (step.previous == gone) step.previous = steps[index].previous;
    if (step.previous > gone) --step.previous;
    left.push_back(std::move(step));
  }
  return left;
}

// No other step can take effect between this write and the next one and see its value: such a step ended
// before the write began; or began after the end of a write that itself began after this one ended; or asks
// for something that is not there then.
bool may_remove(const std::vector<Step>& steps, std::size_t index) {
  const Step& write = steps[index];
  const std::int64_t value = write.effects.front().value;
  // The end of the earliest such later write.
  std::int64_t covered = kAlways;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i == index || steps[i].uncertain || steps[i].effects.empty() || write.uncertain) continue;
    if (steps[i].invoked > write.returned) covered = std::min(covered, steps[i].returned);
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i == index) continue;
    const std::int64_t end = steps[i].uncertain ? kAlways : steps[i].returned;
    if (end < write.invoked || steps[i].invoked > covered) continue;
    if (!std::ranges::all_of(steps[i].guards, [&](const Guard& guard) { return refutes(guard, value); }))
      return false;
  }
  return true;
}

}  // namespace ringshift::check
