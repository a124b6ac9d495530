// The state that a placement carries from one member list to the next, so that the fewest keys move.
//
// Most placements are a function of their members alone. Four are not, and a spec that only changes their
// members would move far more than it must (or is refused):
//
//   partitions  the table: a partition changes owner only when its member left or holds more than its share
//   slots       the same, for 16384 slots
//   memento     buckets and removed: members that left are noted, new ones take the buckets removed last
//   tokens      members that left lose their tokens; a new one gets tokens that take an equal part from each
//               place of the circle: the middles of the widest gaps, as many as the others have on average
//
// Other placements come back as they are. Pure. Cost: O(parts log parts); tokens O(t log n) for t new tokens.
#pragma once
#include "ringshift/topology.h"

namespace ringshift::topology {

// `next` with its placement's state computed from `current`, whatever state it brought. Both algorithms must
// be the same, else `next` comes back unchanged. Fails when either spec is invalid for other reasons.
[[nodiscard]] Result<Spec> carry_over(const Spec& current, Spec next);

}  // namespace ringshift::topology
