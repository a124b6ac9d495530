// What changes between two topologies: which share of the keyspace moves, from whom to whom.
//
// Exact, by arcs or residues or slots and not by sampling, when both sides use the same kind of placement,
// hash and hash tag and every factor is 1000; else a sample of fixed keys, and `exact` says so.
#pragma once
#include <string>
#include <vector>

#include "ringshift/snapshot.h"

namespace ringshift::topology {

struct PairShare {
  std::string from, to;
  double share = 0;  // Of the whole keyspace, 0..1.
};

struct Diff {
  double moved_share = 0;
  double minimum_share = 0;  // No balanced placement can move less: sum of max(0, w'/W' - w/W).
  bool exact = true;
  std::vector<PairShare> pairs;  // Largest share first, then by (from, to).
};

[[nodiscard]] Result<Diff> diff(const Spec& from, const Spec& to);

// Each member's share of the keyspace, in member order. `exact` as above.
struct Shares {
  std::vector<double> shares;
  bool exact = true;
};
[[nodiscard]] Result<Shares> shares(const Spec& spec);

}  // namespace ringshift::topology
