// A change of members: the two lists that an experiment compares, and the edits that lead from one to the
// other. Pure.
#pragma once
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ringshift/topology.h"

namespace ringshift::plan::compare {

inline constexpr std::size_t kMaxSyntheticMembers = 10'000;

struct Change {
  std::vector<topology::Member> before, after;
};

// cache-1, cache-2, ... at 10.0.0.1:6379, 10.0.0.2:6379, ... REQUIRES: count <= kMaxSyntheticMembers.
[[nodiscard]] std::vector<topology::Member> synthetic_members(std::size_t count);

struct Edits {
  std::vector<std::string> add;       // ID=ADDRESS
  std::vector<std::string> remove;    // ID
  std::vector<std::string> reweight;  // ID=WEIGHT
  [[nodiscard]] bool empty() const noexcept { return add.empty() && remove.empty() && reweight.empty(); }
};

// `members` after the edits, in their order, new ones at the end. Fails on an id that is not there (or is,
// for add) and on what is no edit; the message names it.
[[nodiscard]] Result<std::vector<topology::Member>> apply(const Edits& edits,
                                                          std::vector<topology::Member> members);

// The ids that have the same weight, address and label on both sides: between them no key needs to move.
[[nodiscard]] std::unordered_set<std::string_view> unchanged_members(const Change& change);

}  // namespace ringshift::plan::compare
