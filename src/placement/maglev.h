// Maglev placement: a table of M entries, filled by the members in turns, each along a permutation of its
// own.
//
// Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load Balancer", NSDI 2016, section 3.4. A
// member's permutation is offset + j * skip (mod M) with offset = XXH3-64(id, seed 2) mod M and skip =
// XXH3-64(id, seed 3) mod (M-1) + 1. Weights: in round t member m takes a turn when it had fewer than
// t * w/w_max of them (the largest weight has one a round). Turns go by id, so the order of the list never
// matters.
//
// Behaves badly when members change: some keys move between members that did not change (a few per cent at
// M = 100 n, more for smaller tables), so a live resize moves more than the minimum. It is here for its
// balance and its look-up.
// Threads: immutable. Cost: one division and one load; 4 M bytes; build O(M log M) expected. Balance: within
// n/M of exact.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "placement/member.h"

namespace ringshift::placement {

inline constexpr std::uint32_t kMaglevTableSize =
    65'537;  // The paper's small table: about 1 % at 650 members.

class Maglev {
 public:
  // REQUIRES: table_size is a prime and not less than the number of members; ids are unique.
  Maglev(std::span<const Member> members, std::uint32_t table_size);

  [[nodiscard]] MemberIndex owner(std::uint64_t hash) const noexcept {
    return table_.empty() ? kNoMember : table_[hash % table_.size()];
  }

  // The entry's owner and those of the entries after it, wrapping, until visit gives true.
  template <class Visit>
  void walk(std::uint64_t hash, Visit visit) const {
    const std::size_t size = table_.size();
    for (std::size_t i = 0; i < size; ++i) {
      if (visit(table_[(hash % size + i) % size])) return;
    }
  }

  // table()[r] owns every hash with hash % size == r. Empty without members.
  [[nodiscard]] std::span<const MemberIndex> table() const noexcept { return table_; }

 private:
  std::vector<MemberIndex> table_;
};

[[nodiscard]] bool is_prime(std::uint32_t number) noexcept;

}  // namespace ringshift::placement
