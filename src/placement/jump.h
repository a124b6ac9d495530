// Jump placement: a bucket number computed from the hash alone, with no table at all.
//
// Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", 2014. Bucket i is the i-th member
// of the list, so the ORDER OF THE MEMBERS MATTERS: a member appended takes 1/(n+1) of the keys, evenly from
// all others, and nothing else moves; the last one removed gives its keys back the same way. A member removed
// from anywhere else renumbers all behind it, and nearly everything moves (topology::change_warnings says
// so). Members are of equal weight.
//
// Threads: immutable. Cost: about ln(n) rounds of one multiplication and one division; 4 bytes a member.
// Balance: that of the hash; no placement here is more even.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "hashing/xxh3.h"
#include "placement/member.h"

namespace ringshift::placement {

// The bucket, 0..buckets-1, of `hash`. REQUIRES: buckets > 0. The published function, bit for bit: the
// product of two doubles is correctly rounded everywhere, so every machine agrees.
[[nodiscard]] inline std::uint32_t jump_bucket(std::uint64_t hash, std::uint32_t buckets) noexcept {
  std::int64_t bucket = -1, next = 0;
  while (next < static_cast<std::int64_t>(buckets)) {
    bucket = next;
    hash = hash * 2862933555777941757ULL + 1;
    next =
        static_cast<std::int64_t>(static_cast<double>(bucket + 1) *
                                  (static_cast<double>(1LL << 31) / static_cast<double>((hash >> 33) + 1)));
  }
  return static_cast<std::uint32_t>(bucket);
}

class Jump {
 public:
  explicit Jump(std::span<const Member> members) {
    members_.reserve(members.size());
    for (const Member& member : members) members_.push_back(member.index);
  }

  [[nodiscard]] MemberIndex owner(std::uint64_t hash) const noexcept {
    return members_.empty() ? kNoMember
                            : members_[jump_bucket(hash, static_cast<std::uint32_t>(members_.size()))];
  }

  // The owner, then the list from a place that depends on the key (so that a sick member's keys spread over
  // all others), wrapping, until visit gives true. The paper defines no second choice; this one is ours.
  template <class Visit>
  void walk(std::uint64_t hash, Visit visit) const {
    if (members_.empty() || visit(owner(hash))) return;
    const std::size_t start = hashing::mix(hash) % members_.size();
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (visit(members_[(start + i) % members_.size()])) return;
    }
  }

  // In the order of their buckets.
  [[nodiscard]] std::span<const MemberIndex> members() const noexcept { return members_; }

 private:
  std::vector<MemberIndex> members_;
};

}  // namespace ringshift::placement
