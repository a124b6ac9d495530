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
// array's, exactly. It needs hashes that are spread evenly: points that crowd in one bucket (tokens by hand)
// are searched one by one. Build: two counting passes, O(points). Memory: 16 bytes a point and 9 to 18 of
// index.
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

  // REQUIRES: ids are unique; indices are at most kMaxMemberIndex. No members is legal and makes a ring that
  // owns nothing.
  Ring(std::span<const Member> members, std::uint32_t points_per_weight,
       hashing::Hash64 hash = hashing::Hash64::xxh3);
  // A circle of these points. REQUIRES: their hashes are unique.
  explicit Ring(std::vector<Point> points);

  // What a change of members makes of a ring, without hashing or sorting what stays: equal, point for point,
  // to a ring built anew. `renumber[i]` is what index i of `previous` is called now, kNoMember when it left;
  // `added` are new or have a new weight (then the old one left). `id_of` names members by their new index,
  // for ties. REQUIRES: points_per_weight and hash are those of `previous`. O(points), sequential.
  template <class IdOf>
  Ring(const Ring& previous, std::span<const MemberIndex> renumber, std::span<const Member> added,
       std::uint32_t points_per_weight, hashing::Hash64 hash, IdOf id_of) {
    const std::vector<Point> fresh = Ring(added, points_per_weight, hash).points_;
    points_.reserve(previous.size() + fresh.size());
    auto next = fresh.begin();
    const auto end = fresh.end() - 1;  // Without the artificial point.
    for (Point point : previous.points()) {
      point.member = renumber[point.member];
      if (point.member == kNoMember) continue;
      while (next != end && (next->hash < point.hash ||
                             (next->hash == point.hash && id_of(next->member) < id_of(point.member))))
        points_.push_back(*next++);
      points_.push_back(point);
    }
    points_.insert(points_.end(), next, end);
    finish();
  }

  // kNoMember when the ring is empty.
  [[nodiscard]] MemberIndex owner(std::uint64_t hash) const noexcept {
    const std::uint64_t bucket = hash >> shift_;
    const std::uint16_t entry = buckets_[bucket];
    if (entry < kIndirect) [[likely]]
      return entry;
    const Point* point = points_.data() + groups_[bucket / kGroup] + (entry - kIndirect);
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
  // Points and index together.
  [[nodiscard]] std::size_t bytes() const noexcept;

  // How many points a member of this weight has. 0 is possible, and refused by the topology's validation.
  [[nodiscard]] static std::uint64_t point_count(double weight, std::uint32_t points_per_weight) noexcept;
  [[nodiscard]] static std::uint64_t point_hash(std::string_view id, std::uint32_t i,
                                                hashing::Hash64 hash = hashing::Hash64::xxh3);

 private:
  static constexpr std::uint16_t kIndirect = 1U << 15;
  static constexpr std::uint64_t kGroup = 16;  // Buckets that share an entry of groups_.

  // Members of `unsorted` are positions in `members`.
  void place(std::vector<Point> unsorted, std::span<const Member> members);
  // From sorted points: the artificial point and the index.
  void finish();

  // Sorted by (hash, id). One more at the end, {2^64-1, owner of the first}, makes wrapping free.
  std::vector<Point> points_;
  // One entry a bucket, in two bytes so that a thousand members' index stays in the cache: with no point in
  // the bucket the owner of all of it; else kIndirect + the distance of its first point from its group's
  // first (or, should that not fit, from a point before it: the search only takes longer).
  std::vector<std::uint16_t> buckets_;
  std::vector<std::uint32_t> groups_;  // The first point in or after each group.
  int shift_ = 63;
};

}  // namespace ringshift::placement
