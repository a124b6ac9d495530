// Slot placement, as Redis Cluster does it: 16384 slots, each given to one member by a table.
//
// Threads: immutable. Cost: one load; 64 KiB.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "placement/member.h"

namespace ringshift::placement {

inline constexpr std::uint32_t kSlotCount = 16384;

class Slots {
 public:
  // Contiguous ranges by weight in the members' order: member k ends at round(16384 * (w_0+..+w_k) / W).
  // With equal weights these are the ranges that `redis-cli --cluster create` gives.
  explicit Slots(std::span<const Member> members);
  // REQUIRES: table.size() == kSlotCount.
  explicit Slots(std::vector<MemberIndex> table) : table_(std::move(table)) {}

  [[nodiscard]] MemberIndex owner(std::uint64_t slot) const noexcept {
    return table_[slot & (kSlotCount - 1)];
  }

  // Calls visit(member) for the slot's owner and the owners of the slots after it, wrapping, until it gives
  // true. A member is visited once for each of its slots.
  template <class Visit>
  void walk(std::uint64_t slot, Visit visit) const {
    for (std::uint64_t i = 0; i < kSlotCount; ++i) {
      if (visit(owner(slot + i))) return;
    }
  }

  [[nodiscard]] std::span<const MemberIndex> table() const noexcept { return table_; }

 private:
  std::vector<MemberIndex> table_;
};

}  // namespace ringshift::placement
