// Memento placement: jump's buckets, of which any may have been removed.
//
// Coluccia, Coppola, Dean, Dazzi et al., "MementoHash: A Stateful, Minimal Memory, Best Performing Consistent
// Hash Algorithm", 2023. The state is the number of buckets and, for each removed one, how many were left
// working after its removal; so the ORDER OF REMOVALS is part of the placement, and two routers agree only
// when they replay the same one. Hence the spec carries it: `buckets`, ids in bucket order with the removed
// among them, and `removed`, ids in the order of their removal. A new member takes the bucket removed last
// (the paper's rule: only that restores the mapping of before), or else a new one at the end;
// topology::carry_over does both.
//
// A removed member's keys spread evenly over all that are left, and nothing else moves; a member added takes
// an equal part of everybody's. Members are of equal weight.
// Behaves badly when most buckets are removed: a look-up then takes about (1 + ln(n/w))^2 steps for w working
// of n.
// Threads: immutable. Cost: jump, plus one hash for each removed bucket met; 8 bytes a bucket.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "placement/jump.h"
#include "placement/member.h"

namespace ringshift::placement {

class Memento {
 public:
  // `buckets[i].index` is what owner() answers for bucket i. `removed` are positions in `buckets` in the
  // order of removal. REQUIRES: they are in range and different, and at least one bucket is left (or there
  // are no buckets: a placement that owns nothing).
  Memento(std::span<const MemberIndex> buckets, std::span<const std::uint32_t> removed);

  [[nodiscard]] MemberIndex owner(std::uint64_t hash) const noexcept {
    return working_.empty() ? kNoMember : buckets_[bucket(hash)];
  }

  // As Jump::walk, over the working members.
  template <class Visit>
  void walk(std::uint64_t hash, Visit visit) const {
    if (working_.empty() || visit(owner(hash))) return;
    const std::size_t start = hashing::mix(hash) % working_.size();
    for (std::size_t i = 0; i < working_.size(); ++i) {
      if (visit(working_[(start + i) % working_.size()])) return;
    }
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return buckets_.size() * (sizeof buckets_[0] + sizeof replacer_[0]) +
           working_.size() * sizeof working_[0];
  }

 private:
  static constexpr std::uint32_t kWorks = ~std::uint32_t{0};

  [[nodiscard]] std::uint32_t bucket(std::uint64_t hash) const noexcept;

  std::vector<MemberIndex> buckets_;
  std::vector<std::uint32_t> replacer_;  // kWorks, or how many buckets worked after this one's removal.
  std::vector<MemberIndex> working_;
};

}  // namespace ringshift::placement
