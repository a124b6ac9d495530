// Ring placement: every member owns many points on a 64-bit circle, and a key belongs to the first point at
// or after its hash, wrapping past the end.
//
// Point i of a member is the hash (XXH3-64 unless said otherwise) of its id, a zero byte and i as
// little-endian u32, for i in 0..round(points_per_weight * weight)-1. So a member's points depend on nothing
// but itself: a change of membership or weight moves keys only to or from the member that changed.
//
// Invariant: points_ is sorted by (hash, id) and fixed once built, so the order in which members arrive never
// matters, even when points collide (then the smaller id owns the arc).
// Threads: immutable after construction. Cost: owner() is O(1) expected through an index of equal buckets
// over the top bits, at least four a point, most of which name their owner directly; its answer is the sorted
// array's, exactly. Memory: 16 bytes a point and 16 to 32 of index.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "hashing/hash64.h"
#include "placement/member.h"

namespace ringshift::placement {

class Ring {
 public:
  struct Point {
    std::uint64_t hash = 0;
    MemberIndex member = kNoMember;
  };

  // REQUIRES: ids are unique. No members is legal and makes a ring that owns nothing.
  Ring(std::span<const Member> members, std::uint32_t points_per_weight,
       hashing::Hash64 hash = hashing::Hash64::xxh3);
  // A circle of these points. REQUIRES: their hashes are unique.
  explicit Ring(std::vector<Point> points);

  // kNoMember when the ring is empty.
  [[nodiscard]] MemberIndex owner(std::uint64_t hash) const noexcept {
    const std::uint32_t entry = buckets_[hash >> shift_];
    if (entry < kIndirect) return entry;
    const Point* point = points_.data() + (entry & ~kIndirect);
    while (point->hash < hash) ++point;  // The last, artificial point stops every search.
    return point->member;
  }

  // owner() of each hash. REQUIRES: owners.size() == hashes.size().
  void owners(std::span<const std::uint64_t> hashes, std::span<MemberIndex> owners) const noexcept;

  // Calls visit(member) clockwise from `hash`, until it gives true or the circle was walked once. A member
  // is visited once for each of its points.
  template <class Visit>
  void walk(std::uint64_t hash, Visit visit) const {
    const std::size_t first = first_point(hash);
    for (std::size_t i = first; i < size(); ++i) {
      if (visit(points_[i].member)) return;
    }
    for (std::size_t i = 0; i < first; ++i) {
      if (visit(points_[i].member)) return;
    }
  }

  // The position in points() of the first point at or after `hash`; size() when the search wraps.
  [[nodiscard]] std::size_t first_point(std::uint64_t hash) const noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return points_.size() - 1; }
  [[nodiscard]] std::span<const Point> points() const noexcept { return {points_.data(), size()}; }

  // How many points a member of this weight has. 0 is possible, and refused by the topology's validation.
  [[nodiscard]] static std::uint64_t point_count(double weight, std::uint32_t points_per_weight) noexcept;
  [[nodiscard]] static std::uint64_t point_hash(std::string_view id, std::uint32_t i,
                                                hashing::Hash64 hash = hashing::Hash64::xxh3);

 private:
  static constexpr std::uint32_t kIndirect = 1U << 31;

  void place(std::vector<Point> unsorted, std::span<const Member> members);
  void index_buckets();

  // Sorted by (hash, id). One more at the end, {2^64-1, owner of the first}, makes wrapping free.
  std::vector<Point> points_;
  // One entry a bucket: with no point in the bucket the owner of all of it; else kIndirect | its first point.
  std::vector<std::uint32_t> buckets_;
  int shift_ = 63;
};

}  // namespace ringshift::placement
