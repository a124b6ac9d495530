// Key skew: the heaviest prefixes of a key set, and how unevenly each one falls over the members.
//
// A prefix is a key up to and with one of its separators (: / . | -), up to kMaxDepth of them. Heavy ones are
// found by Misra and Gries ("Finding repeated elements", 1982) with kCounters counters a depth: whatever
// begins more than 1 of kCounters keys is found, in one pass; a second pass counts what was found exactly.
// A prefix whose keys all share a longer one is shown as the longer one alone.
// Memory: kCounters entries a depth. Cost: two passes, a hash table access for each key and depth; an owner
// for each key.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "placement/placement.h"
#include "plan/compare/key_set.h"
#include "ringshift/topology.h"

namespace ringshift::plan::compare {

inline constexpr std::size_t kMaxDepth = 4;
inline constexpr std::size_t kCounters = 2048;
inline constexpr std::size_t kMaxPrefixes = 12;  // Shown.
inline constexpr double kLeastShare = 0.001;     // Of all keys, to be shown.

struct PrefixLoad {
  std::string prefix;
  std::uint64_t keys = 0;
  double share = 0;              // Of all keys.
  double max_avg = 1;            // The heaviest member's part of them, by its part by weight.
  double max_avg_by_chance = 1;  // What so many keys would give if they fell by chance.
  std::string heaviest;          // The member's id.
};

// The heaviest first. REQUIRES: `owners` answers with positions in `members`.
[[nodiscard]] std::vector<PrefixLoad> heaviest_prefixes(const KeySet& keys,
                                                        const placement::Placement& owners,
                                                        const std::vector<topology::Member>& members);

}  // namespace ringshift::plan::compare
