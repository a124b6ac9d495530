// Counts the live keys of a cluster on the members themselves, past any proxy: how many there are, how many
// change owner between two topologies, and how many lie where neither a router would look for them.
//
// SCANs every member of either topology (COUNT 1000: about 0.3 ms of the member's time a call), keys of ours
// (rs:...) left out. Under load the count is one of a moving thing: a key that comes or goes meanwhile may be
// in it or not. Memory: the keys of one member at a time.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "ringshift/topology.h"

namespace ringshift::drill {

struct Census {
  std::uint64_t keys_total = 0;    // Copies on members; a key on two members counts twice, and as misplaced.
  std::uint64_t keys_minimum = 0;  // Of them, those whose owner differs between the topologies.
  std::uint64_t misplaced = 0;     // On a member that does not own them by `placed_by`.
  std::map<std::string, std::uint64_t> by_member;
};

enum class PlacedBy { from, to };

[[nodiscard]] Result<Census> take_census(const topology::Spec& from, const topology::Spec& to,
                                         PlacedBy placed_by);

}  // namespace ringshift::drill
