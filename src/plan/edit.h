// The spec that follows another: by a verb (add, remove, weight), or by a file that an operator wrote.
//
// Pure. `plan`, `topology apply`, `resize start` and whatever edits a cluster's members must all make the
// next spec here, so that what was planned is what happens.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ringshift/topology.h"

namespace ringshift::plan {

// Any of the three may be empty; they are done in this order: weight, remove, add.
struct Edit {
  std::vector<topology::Member> add;
  std::vector<std::string> remove;
  std::vector<std::pair<std::string, double>> weights;  // Member id -> its new weight.
  bool retire = false;  // The ids in `remove` never return: they are put on the spec's `retired` list.
};

// `current` with the edit done, its placement's state (table, slots, buckets, tokens) carried over. Fails
// when an id is unknown or exists already, or when what comes out is no valid spec. Whether it may follow
// `current` is for topology::check_succession to say.
[[nodiscard]] Result<topology::Spec> edit(const topology::Spec& current, const Edit& edit);

// `next`, which somebody wrote, as it takes the place of `current`: where it brings no state of its placement
// and `current` has a placement of the same kind, the state is carried over, so that only the keys that must
// move do. A state that `next` brings is somebody's will and stays. Both must be valid.
[[nodiscard]] Result<topology::Spec> successor(const topology::Spec& current, topology::Spec next);

}  // namespace ringshift::plan
