// The ring that all ketama-like peers share: points of 32 bits, a key belongs to the first point at or after
// its hash, wrapping past the end to the first.
//
// Invariant: sorted by hash; of points that collide the first one given wins (or the last: see Ties).
// Threads: immutable. Cost: O(1) expected through an index of equal buckets, as placement::Ring; 8 bytes a
// point and 8 to 16 of index.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "placement/member.h"

namespace ringshift::placement::peers {

struct Point32 {
  std::uint32_t hash = 0;
  MemberIndex member = kNoMember;
  bool operator==(const Point32&) const = default;
};
using Points32 = std::vector<Point32>;

// Sorts by hash; points that collide stay in the order in which they were added.
void sort_points(Points32& points);
// Of points that collide only the first (or the last) is left. REQUIRES: sorted.
void keep_first(Points32& points);
void keep_last(Points32& points);

class Ring32 {
 public:
  // REQUIRES: sorted. No points is legal and makes a ring that owns nothing.
  explicit Ring32(Points32 points);

  [[nodiscard]] MemberIndex owner(std::uint32_t hash) const noexcept {
    const std::uint32_t entry = buckets_[hash >> shift_];
    if (entry < kIndirect) return entry;
    const Point32* point = points_.data() + (entry & ~kIndirect);
    while (point->hash < hash) ++point;  // The last, artificial point stops every search.
    return point->member;
  }
  // The position in points() of the first point at or after `hash`; 0 when the search wraps.
  [[nodiscard]] std::size_t first_point(std::uint32_t hash) const noexcept;
  [[nodiscard]] std::span<const Point32> points() const noexcept {
    return {points_.data(), points_.size() - 1};
  }
  // Points and index together.
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return points_.size() * sizeof points_[0] + buckets_.size() * sizeof buckets_[0];
  }

 private:
  static constexpr std::uint32_t kIndirect = 1U << 31;

  // One more at the end, {2^32-1, owner of the first}, makes wrapping free.
  Points32 points_;
  // One entry a bucket: with no point in the bucket the owner of all of it; else kIndirect | its first point.
  std::vector<std::uint32_t> buckets_;
  int shift_ = 31;
};

// Rings that are read another way, turned into the common one with the same owners for every hash.
// The owner is the last point at or before the hash, wrapping to the last of all (dalli).
[[nodiscard]] Points32 from_floor(const Points32& sorted);
// The owner is the nearest point in either direction, the one before on a tie (HAProxy).
[[nodiscard]] Points32 from_nearest(const Points32& sorted);

}  // namespace ringshift::placement::peers
