// How the topology changes over a resize: pure functions from one document to the next. Who may call which,
// and what must have happened in the world before, is the controller's business (RESIZE.md, "Phases").
//
//   begin -> [hold -> dual -> settle] for each step -> finish
//                 \-> call_off (nothing moved yet)
//   begin_rollback (= hold with a new epoch and exchanged roles) -> dual -> settle -> finish
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ringshift/topology.h"

namespace ringshift::resize {

using RunIds = std::map<std::string, std::string>;

inline const std::vector<double> kDefaultSteps = {1, 10, 50, 100};

// Percentages: each above 0 and above the one before, the last 100.
[[nodiscard]] Status check_steps(const std::vector<double>& percent);

// The slices of step `index`: those between the share before it and its own, at least one each.
[[nodiscard]] topology::SliceSet slices_of_step(const std::vector<double>& percent, std::size_t index);

// The first step whose slices are not all in `done`; percent.size() when all are.
[[nodiscard]] std::size_t next_step(const std::vector<double>& percent, const topology::SliceSet& done);

// Every id that a resize deals with: A's members, then those only B has.
[[nodiscard]] std::vector<topology::Member> all_members(const topology::Topology& topology);

// PREP: a new epoch and a new step, nothing active.
[[nodiscard]] topology::Topology begin(const topology::Topology& now, const topology::Spec& target,
                                       std::string id, RunIds run_ids);
// HOLD of `slices` in a new step. Also used again for slices in HOLD or DUAL whose barrier must be repeated.
[[nodiscard]] topology::Topology hold(const topology::Topology& now, const topology::SliceSet& slices,
                                      RunIds run_ids);
[[nodiscard]] topology::Topology dual(const topology::Topology& now);
// HOLD did not come about and nothing has moved: the slices stay with OLD.
[[nodiscard]] topology::Topology call_off(const topology::Topology& now);
// NEW: the active slices belong to the members that they moved to: B's, or A's in a rollback.
[[nodiscard]] topology::Topology settle(const topology::Topology& now);
// HOLD of all that moved or may have moved, in a new epoch, back to A.
[[nodiscard]] topology::Topology begin_rollback(const topology::Topology& now, RunIds run_ids);
// No resize any more: B's members and placement, or A's after a rollback or when nothing had moved.
[[nodiscard]] topology::Topology finish(const topology::Topology& now);

}  // namespace ringshift::resize
