// Modulo placement, as simple clients do it: hash % n over the members in their order, a member of weight w
// counted w times. Any change of the members moves nearly all keys; it is here to migrate away from.
//
// Weights are whole numbers, 1 or more (the topology's validation refuses others): fractions would need a
// common denominator that no client agrees on. The order of the members matters.
// Threads: immutable. Cost: one division and one load.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "placement/member.h"

namespace ringshift::placement {

class Modulo {
 public:
  explicit Modulo(std::span<const Member> members) {
    for (const Member& member : members) {
      residues_.insert(residues_.end(), static_cast<std::size_t>(member.weight), member.index);
    }
  }

  [[nodiscard]] MemberIndex owner(std::uint64_t hash) const noexcept {
    return residues_.empty() ? kNoMember : residues_[hash % residues_.size()];
  }

  // Calls visit(member) from the owner on in the members' order, wrapping, until it gives true. A member is
  // visited once for each unit of its weight.
  template <class Visit>
  void walk(std::uint64_t hash, Visit visit) const {
    const std::size_t total = residues_.size();
    for (std::size_t i = 0; i < total; ++i) {
      if (visit(residues_[(hash % total + i) % total])) return;
    }
  }

  // residues()[r] owns every hash with hash % size == r.
  [[nodiscard]] std::span<const MemberIndex> residues() const noexcept { return residues_; }

 private:
  std::vector<MemberIndex> residues_;
};

}  // namespace ringshift::placement
