// Partition placement: Q equal parts of the circle, each given to one member by a table.
//
// DeCandia et al., "Dynamo", SOSP 2007, section 6.2, strategy 3. Partition of a key = floor(h * Q / 2^64).
// Any table will do; deal() makes the first, and reassign() carries one over to other members with the least
// movement. A table that is computed anew for other members would move nearly everything, so a spec whose
// members changed carries its table.
//
// Behaves badly when Q is small: members get whole partitions, so shares differ by up to one of Q/n.
// Threads: immutable. Cost: one multiplication and one load; 4 Q bytes.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "placement/member.h"

namespace ringshift::placement {

inline constexpr std::uint32_t kPartitions = 1024;
inline constexpr std::uint32_t kMaxPartitions = 65'536;

class Partitions {
 public:
  // `table[p]` owns partition p.
  explicit Partitions(std::vector<MemberIndex> table) : table_(std::move(table)) {}

  [[nodiscard]] std::uint32_t partition(std::uint64_t hash) const noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint32_t>(Wide{hash} * table_.size() >> 64);
  }
  [[nodiscard]] MemberIndex owner(std::uint64_t hash) const noexcept {
    return table_.empty() ? kNoMember : table_[partition(hash)];
  }

  // The partition's owner and those of the partitions after it, wrapping, until visit gives true.
  template <class Visit>
  void walk(std::uint64_t hash, Visit visit) const {
    const std::size_t first = table_.empty() ? 0 : partition(hash);
    for (std::size_t i = 0; i < table_.size(); ++i) {
      if (visit(table_[(first + i) % table_.size()])) return;
    }
  }

  [[nodiscard]] std::span<const MemberIndex> table() const noexcept { return table_; }

 private:
  std::vector<MemberIndex> table_;
};

// How many of `parts` each member shall have, by weight and largest remainder. Ties: whoever `holds` more now
// (may be empty: nobody holds any), then the smaller id. The sum is `parts`.
[[nodiscard]] std::vector<std::uint32_t> quotas(std::span<const Member> members, std::uint32_t parts,
                                                std::span<const std::uint32_t> holds = {});

// A first table: quotas, dealt in an order that is fixed but looks random, so that neighbouring partitions
// rarely share an owner and a lost member's keys fall to many. Independent of the members' order.
[[nodiscard]] std::vector<MemberIndex> deal(std::span<const Member> members, std::uint32_t parts);

// The table for `members` that differs from `table` in the fewest entries: an entry moves only when its owner
// is gone (kNoMember or no index of `members`) or holds more than its quota. For any table of parts: slots
// too. What a member gives away is spread evenly over its entries. Independent of the members' order.
[[nodiscard]] std::vector<MemberIndex> reassign(std::span<const MemberIndex> table,
                                                std::span<const Member> members);

}  // namespace ringshift::placement
