// Decides whether what clients saw of one key can be explained by its operations having happened one at a
// time, each at an instant within its own invocation and return, in each client's program order.
//
// The search goes through the history in time order and keeps every configuration that is still possible
// (state of the key, pending operations that already took effect, uncertain operations used up): the
// just-in-time linearization of Lowe, "Testing for linearizability" (2017). It is exact: `broken` means that
// no explanation exists. Three rules keep it small without losing any explanation:
//   - an operation without effect is placed as soon as it fits, because placing it earlier hinders nothing;
//   - a value that has been overwritten is read no more, so a write that would overwrite a value somebody has
//     yet to read is not tried (only for values written once, hence the workload's unique values);
//   - an uncertain write is tried only where something observes it, and of two configurations that differ
//     in uncertain writes alone, the one that used fewer covers the other.
//
// Cost: near linear in the operations for histories that a right system makes; exponential in the number of
// concurrent writes of one key at worst, and cut off at Limits: then the verdict is `inconclusive`.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringshift::check {

inline constexpr std::size_t kMaxFields = 4;         // Cells of one key's state: one, or one a hash field.
using State = std::array<std::int64_t, kMaxFields>;  // 0: absent.

struct Guard {
  enum class Test : std::uint8_t { equals, present, absent };
  std::uint8_t cell = 0;
  Test test = Test::equals;
  std::int64_t value = 0;
};

struct Effect {
  std::uint8_t cell = 0;
  bool add = false;  // Adds `value` to the cell instead of replacing it.
  std::int64_t value = 0;
};

enum class KeyTest : std::uint8_t { none, present, absent };  // Of all cells together.

// Happens at one instant: all guards hold, then all effects take place.
struct Step {
  std::int64_t invoked = 0, returned = 0;
  bool uncertain = false;  // May happen at any time after `invoked`, or never.
  int previous = -1;       // Index of the step that must happen before this one (program order).
  std::vector<Guard> guards;
  std::vector<Effect> effects;
  KeyTest key_test = KeyTest::none;
};

struct Limits {
  std::size_t max_configurations = 100'000;
  std::uint64_t max_work = 20'000'000;  // Configurations visited for one key.
  bool name_step = true;  // broken: a second, slower search finds the step that nothing explains.
};

struct Verdict {
  enum class Kind { linearizable, broken, inconclusive };
  Kind kind = Kind::linearizable;
  int step = -1;                // broken, inconclusive: the step at whose return the search ended.
  std::vector<State> possible;  // broken: the states that were possible before it; a few of them.
  std::uint64_t work = 0;
};

// REQUIRES: steps sorted by `invoked`; `previous` below the step's own index. The key is absent at first.
[[nodiscard]] Verdict check_linearizable(const std::vector<Step>& steps, const Limits& limits = {});

}  // namespace ringshift::check
