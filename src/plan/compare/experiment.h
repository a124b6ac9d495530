// The experiment: one placement, before and after a change of members, over a set of keys. How much moves,
// how much of that between members that did not change, how evenly the load falls, and what it costs.
//
// A change that a placement cannot make (jump with weights, say) gives a row that says why. Stateful
// placements carry their tables over, as a resize does.
// Single-threaded; times are measured on the calling thread, each within a bound of tens of milliseconds.
// Cost: two look-ups a key, two sets of owners (8 bytes a key), and the diff's.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/compare/change.h"
#include "plan/compare/key_set.h"
#include "plan/compare/theory.h"
#include "plan/compare/variants.h"

namespace ringshift::plan::compare {

// Of the whole, 0..1.
struct Moved {
  double share = 0;
  double between_unchanged =
      0;  // From and to members that are the same on both sides: none of it was needed.
};

struct Cost {
  double lookup_ns = 0;  // Hash and owner of one key: the median of some rounds.
  double build_us = 0;   // The median of some builds, after the change.
  std::size_t bytes = 0;
};

struct Row {
  std::string name;
  Family family = Family::ours;
  std::string refused;         // Why the placement cannot make this change: all else is empty then.
  Moved measured;              // Of the keys.
  std::optional<Moved> exact;  // Of the keyspace, by arcs, residues or slots.
  double minimum = 0;          // No balanced placement moves less.
  Balance before, after;
  std::optional<Balance> expected;   // Of `after`.
  std::vector<std::uint64_t> loads;  // Keys of each member of change.after.
  Cost cost;
  std::vector<std::string> warnings;
};

// Asked now and then with how far it is, 0..1: false ends the work, which then fails as `overloaded`.
using Progress = std::function<bool(double fraction)>;

// REQUIRES: keys is not empty, and both lists of the change have members.
[[nodiscard]] Result<Row> run(const Variant& variant, const Change& change, const KeySet& keys,
                              const Progress& progress = {});

// The placement after the change, whose owners are positions in change.after. Fails as run() refuses.
[[nodiscard]] Result<placement::Placement> placement_after(const Variant& variant, const Change& change);

// Ring at many points a member: how the balance is paid for.
struct CurvePoint {
  std::uint32_t points = 0;
  Balance exact;     // By arcs.
  Balance expected;  // By the theory.
  Cost cost;
};
[[nodiscard]] Result<std::vector<CurvePoint>> balance_curve(const std::vector<topology::Member>& members,
                                                            const KeySet& keys,
                                                            const Progress& progress = {});

}  // namespace ringshift::plan::compare
