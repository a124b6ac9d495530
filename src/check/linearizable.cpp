#include "check/linearizable.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace ringshift::check {
namespace {

// A set of small numbers. 256 is the bound on one key's pending and on its uncertain operations.
class Bits {
 public:
  static constexpr std::size_t kSize = 256;
  void set(std::size_t i) noexcept { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void clear(std::size_t i) noexcept { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  [[nodiscard]] bool test(std::size_t i) const noexcept { return ((words_[i / 64] >> (i % 64)) & 1) != 0; }
  [[nodiscard]] bool within(const Bits& other) const noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & ~other.words_[i]) != 0) return false;
    }
    return true;
  }
  bool operator==(const Bits&) const = default;
  [[nodiscard]] std::uint64_t mix(std::uint64_t hash) const noexcept {
    for (const std::uint64_t word : words_) hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL + (hash >> 29);
    return hash;
  }

 private:
  std::array<std::uint64_t, kSize / 64> words_{};
};

struct Configuration {
  State state{};
  Bits done;                // Slots of pending steps that took effect.
  std::uint8_t unread = 0;  // Cells whose value an uncertain step wrote and nothing has observed yet.
  bool operator==(const Configuration&) const = default;
};

struct Hash {
  std::size_t operator()(const Configuration& c) const noexcept {
    std::uint64_t hash = c.unread;
    for (const std::int64_t cell : c.state)
      hash = (hash ^ static_cast<std::uint64_t>(cell)) * 0xff51afd7ed558ccdULL;
    return static_cast<std::size_t>(c.done.mix(hash));
  }
};

// Configurations, each with the smallest sets of uncertain steps that reach it.
class Frontier {
 public:
  // False when what is there covers it already.
  bool insert(const Configuration& configuration, const Bits& used) {
    std::vector<Bits>& sets = map_[configuration];
    for (const Bits& other : sets) {
      if (other.within(used)) return false;
    }
    std::erase_if(sets, [&](const Bits& other) { return used.within(other); });
    sets.push_back(used);
    return true;
  }
  [[nodiscard]] std::size_t size() const noexcept { return map_.size(); }
  [[nodiscard]] auto begin() const { return map_.begin(); }
  [[nodiscard]] auto end() const { return map_.end(); }

 private:
  std::unordered_map<Configuration, std::vector<Bits>, Hash> map_;
};

class Search {
 public:
  // `look_ahead` off: the search ends at the step that nothing explains, not already where one destroys
  // what a later step must see. Slower; for the report.
  Search(const std::vector<Step>& steps, const Limits& limits, bool look_ahead)
      : steps_(steps), limits_(limits), slot_(steps.size(), -1), returned_(steps.size(), false) {
    if (look_ahead) index_observers();
    frontier_.insert({}, {});
  }

  Verdict run();

 private:
  void index_observers();
  [[nodiscard]] bool invoke(int step);
  [[nodiscard]] std::optional<Verdict::Kind> finish(int step);
  bool expand(int goal, const Configuration& from, const Bits& used, Frontier& result);
  [[nodiscard]] bool enabled(const Configuration& c, const Step& step) const;
  [[nodiscard]] bool overwrites_needed(const Configuration& c, const Step& step, int index) const;
  [[nodiscard]] bool taken(const Configuration& c, int step) const {
    const auto i = static_cast<std::size_t>(step);
    return returned_[i] || (slot_[i] >= 0 && c.done.test(static_cast<std::size_t>(slot_[i])));
  }
  void settle(Configuration& c) const;
  [[nodiscard]] const Step& at(int i) const { return steps_[static_cast<std::size_t>(i)]; }

  const std::vector<Step>& steps_;
  Limits limits_;
  std::vector<int> slot_;  // Of a pending step; -1 before its invocation, and for uncertain ones.
  std::vector<bool> returned_;
  std::vector<int> pending_, uncertain_;
  std::vector<int> free_slots_;
  int slots_ = 0;
  // cell -> value -> the steps that must see it. Only values with one writer.
  std::array<std::unordered_map<std::int64_t, std::vector<int>>, kMaxFields> observers_;
  Frontier frontier_;
  std::uint64_t work_ = 0;
};

void Search::index_observers() {
  std::array<std::unordered_map<std::int64_t, int>, kMaxFields> writers;
  std::array<bool, kMaxFields> adds{};
  for (const Step& step : steps_) {
    for (const Effect& effect : step.effects) {
      if (effect.add) adds[effect.cell] = true;
      if (!effect.add && effect.value != 0) ++writers[effect.cell][effect.value];
    }
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (const Guard& guard : steps_[i].guards) {
      if (guard.test != Guard::Test::equals || guard.value == 0) continue;
      // A counter that is only added to passes each value once; a mixture makes no promise.
      const auto writer = writers[guard.cell].find(guard.value);
      const bool once = writer != writers[guard.cell].end() ? writer->second == 1 && !adds[guard.cell]
                                                            : adds[guard.cell] && writers[guard.cell].empty();
      if (once) observers_[guard.cell][guard.value].push_back(static_cast<int>(i));
    }
  }
}

bool Search::enabled(const Configuration& c, const Step& step) const {
  if (step.previous >= 0 && !taken(c, step.previous)) return false;
  for (const Guard& guard : step.guards) {
    const std::int64_t value = c.state[guard.cell];
    if (guard.test == Guard::Test::equals && value != guard.value) return false;
    if (guard.test == Guard::Test::present && value == 0) return false;
    if (guard.test == Guard::Test::absent && value != 0) return false;
  }
  if (step.key_test == KeyTest::none) return true;
  const bool present = std::ranges::any_of(c.state, [](std::int64_t cell) { return cell != 0; });
  return present == (step.key_test == KeyTest::present);
}

// Whether the step destroys a value that another step has yet to see: then this way leads nowhere.
bool Search::overwrites_needed(const Configuration& c, const Step& step, int index) const {
  for (const Effect& effect : step.effects) {
    const std::int64_t value = c.state[effect.cell];
    const auto found = observers_[effect.cell].find(value);
    if (value == 0 || found == observers_[effect.cell].end()) continue;
    for (const int observer : found->second) {
      if (observer != index && !taken(c, observer)) return true;
    }
  }
  return false;
}

// What a step tests it has observed: a SET NX sees the DEL before it.
std::uint8_t unread_after_guards(const Configuration& c, const Step& step) {
  if (step.key_test != KeyTest::none) return 0;
  std::uint8_t unread = c.unread;
  for (const Guard& guard : step.guards) unread &= static_cast<std::uint8_t>(~(1U << guard.cell));
  return unread;
}

void apply(Configuration& c, const Step& step) {
  c.unread = unread_after_guards(c, step);
  for (const Effect& effect : step.effects) {
    std::int64_t& cell = c.state[effect.cell];
    cell = effect.add ? cell + effect.value : effect.value;
  }
}

void Search::settle(Configuration& c) const {
  for (bool again = true; again;) {
    again = false;
    for (const int index : pending_) {
      const Step& step = at(index);
      if (!step.effects.empty() || taken(c, index) || !enabled(c, step)) continue;
      apply(c, step);
      c.done.set(static_cast<std::size_t>(slot_[static_cast<std::size_t>(index)]));
      again = true;
    }
  }
}

// False when a bound is reached.
bool Search::invoke(int index) {
  if (at(index).uncertain) {
    uncertain_.push_back(index);
    return uncertain_.size() <= Bits::kSize;
  }
  int slot = slots_;
  if (free_slots_.empty()) {
    if (++slots_ > static_cast<int>(Bits::kSize)) return false;
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  slot_[static_cast<std::size_t>(index)] = slot;
  pending_.push_back(index);
  if (!at(index).effects.empty()) return true;
  Frontier next;
  for (const auto& [configuration, sets] : frontier_) {
    Configuration settled = configuration;
    settle(settled);
    for (const Bits& used : sets) next.insert(settled, used);
  }
  frontier_ = std::move(next);
  return true;
}

// Every way to have `goal` happen from `from`, ending with it: what may come later, comes later.
bool Search::expand(int goal, const Configuration& from, const Bits& used, Frontier& result) {
  const auto goal_slot = static_cast<std::size_t>(slot_[static_cast<std::size_t>(goal)]);
  Frontier seen;
  std::vector<std::pair<Configuration, Bits>> stack{{from, used}};
  const auto visit = [&](Configuration next, const Bits& next_used) {
    settle(next);
    if (!next.done.test(goal_slot)) {
      if (seen.insert(next, next_used)) stack.emplace_back(next, next_used);
    } else if (next.unread == 0) {  // Otherwise the uncertain step could as well come later.
      next.done.clear(goal_slot);
      result.insert(next, next_used);
    }
  };
  while (!stack.empty()) {
    const auto [now, now_used] = stack.back();
    stack.pop_back();
    if (++work_ > limits_.max_work || result.size() > limits_.max_configurations) return false;
    for (const int index : pending_) {
      const Step& step = at(index);
      if (step.effects.empty() || taken(now, index) || !enabled(now, step)) continue;
      if (overwrites_needed(now, step, index)) continue;
      Configuration next = now;
      apply(next, step);
      bool blind = false;  // Overwrites an uncertain write that nothing saw: the same without that write.
      for (const Effect& effect : step.effects)
        blind |= ((next.unread >> effect.cell) & 1) != 0 && !effect.add;
      if (blind) continue;
      next.done.set(static_cast<std::size_t>(slot_[static_cast<std::size_t>(index)]));
      visit(next, now_used);
    }
    bool added = false;
    for (std::size_t u = 0; u < uncertain_.size(); ++u) {
      const Step& step = at(uncertain_[u]);
      if (now_used.test(u) || !enabled(now, step) || overwrites_needed(now, step, uncertain_[u])) continue;
      const bool adds = std::ranges::all_of(step.effects, &Effect::add);
      if (adds && added) continue;  // Additions of one are alike: the oldest stands for all.
      Configuration next = now;
      bool useful = false, blind = false;
      const std::uint8_t unseen = unread_after_guards(now, step);
      for (const Effect& effect : step.effects) {
        const bool unread = ((unseen >> effect.cell) & 1) != 0;
        blind |= unread && !effect.add;
        useful |= effect.add || now.state[effect.cell] != effect.value;
        // One that writes several cells is observed through any of them, so it is not marked.
        if (step.effects.size() == 1)
          next.unread = static_cast<std::uint8_t>(next.unread | (1U << effect.cell));
      }
      if (!useful || blind) continue;
      added |= adds;
      apply(next, step);
      Bits next_used = now_used;
      next_used.set(u);
      visit(next, next_used);
    }
  }
  return true;
}

std::optional<Verdict::Kind> Search::finish(int index) {
  const auto i = static_cast<std::size_t>(index);
  const auto slot = static_cast<std::size_t>(slot_[i]);
  Frontier next;
  for (const auto& [configuration, sets] : frontier_) {
    for (const Bits& used : sets) {
      if (configuration.done.test(slot)) {
        Configuration kept = configuration;
        kept.done.clear(slot);
        next.insert(kept, used);
      } else if (!expand(index, configuration, used, next)) {
        return Verdict::Kind::inconclusive;
      }
    }
  }
  if (next.size() == 0) return Verdict::Kind::broken;
  frontier_ = std::move(next);
  returned_[i] = true;
  slot_[i] = -1;
  free_slots_.push_back(static_cast<int>(slot));
  std::erase(pending_, index);
  return std::nullopt;
}

Verdict Search::run() {
  // At equal times invocations come first: then the two are concurrent, which accuses nobody wrongly.
  struct Moment {
    std::int64_t time;
    bool is_return;
    int step;
  };
  std::vector<Moment> moments;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    moments.push_back({steps_[i].invoked, false, static_cast<int>(i)});
    if (!steps_[i].uncertain) moments.push_back({steps_[i].returned, true, static_cast<int>(i)});
  }
  std::ranges::stable_sort(moments, [](const Moment& a, const Moment& b) {
    return a.time != b.time ? a.time < b.time : a.is_return < b.is_return;
  });
  Verdict verdict;
  for (const Moment& moment : moments) {
    std::optional<Verdict::Kind> end;
    if (moment.is_return) {
      end = finish(moment.step);
    } else if (!invoke(moment.step)) {
      end = Verdict::Kind::inconclusive;
    }
    if (!end) continue;
    verdict.kind = *end;
    verdict.step = moment.step;
    for (const auto& [configuration, sets] : frontier_) {
      if (verdict.possible.size() == 8) break;
      if (std::ranges::find(verdict.possible, configuration.state) == verdict.possible.end()) {
        verdict.possible.push_back(configuration.state);
      }
    }
    break;
  }
  verdict.work = work_;
  return verdict;
}

}  // namespace

Verdict check_linearizable(const std::vector<Step>& steps, const Limits& limits) {
  const Verdict verdict = Search(steps, limits, true).run();
  if (verdict.kind != Verdict::Kind::broken || !limits.name_step) return verdict;
  const Verdict plain = Search(steps, limits, false).run();
  return plain.kind == Verdict::Kind::broken ? plain : verdict;
}

}  // namespace ringshift::check
