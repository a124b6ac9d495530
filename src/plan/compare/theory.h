// What mathematics expects of a placement's balance, to stand beside what was measured.
//
//   ring     a member of v points out of V has a share of Beta(v, V - v), relative sd sqrt((V-v) / (v
//   (V+1)));
//            with equal members sqrt((N-1) / (Nv+1)). Where the nearest point of either direction owns
//            (haproxy) the variance is half of that.
//   tables   (modulo, slots, maglev, partitions, the peers' modula) what the entries say, exactly
//   formula  (jump, rendezvous, memento) nothing but chance
//
// and to each the chance with which K keys fall: a share p is met with relative variance (1-p) / (Kp). A
// ring's theory holds for points that are spread evenly; a ring that strays far from it has a bad hash.
// None is known for multi-probe, for tokens and for hashes with fewer bits than the ring. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "placement/placement.h"
#include "ringshift/topology.h"

namespace ringshift::plan::compare {

// How evenly the load is spread: each member's load divided by its part by weight.
struct Balance {
  double max_avg = 1;  // The largest.
  double max_min = 1;  // The largest by the smallest; infinity when a member has nothing.
  double sd = 0;       // The relative standard deviation, over the members.
};

// REQUIRES: as many loads as members, and at least one of each.
[[nodiscard]] Balance balance_of(std::span<const double> loads, const std::vector<topology::Member>& members);

// The relative sd to expect with `keys` keys; 0 keys: of the keyspace itself. REQUIRES: indices of `compiled`
// are positions in spec.members.
[[nodiscard]] std::optional<double> expected_sd(const topology::Spec& spec,
                                                const placement::Placement& compiled, std::uint64_t keys);
// The mean of max/avg and max/min that go with it, as of `members` normal variables that sum up to nothing.
[[nodiscard]] Balance expected_balance(double sd, std::size_t members);

// The mean of the largest of `count` standard normal variables (Blom's approximation, within 5 %, from ten on
// within 1 %).
[[nodiscard]] double expected_maximum(std::size_t count);

}  // namespace ringshift::plan::compare
