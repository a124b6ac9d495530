// Ring placement: every member owns many points on a 64-bit circle, and a key belongs to the first point at
// or after its hash, wrapping past the end.
//
// Point i of a member is the hash (XXH3-64 unless said otherwise) of its id, a zero byte and i as
// little-endian u32, for i in 0..round(points_per_weight * weight)-1. So a member's points depend on nothing
// but itself: a change of membership or weight moves keys only to or from the member that changed.
//
// Invariant: points_ is sorted by (hash, id) and fixed once built, so the order in which members arrive never
// matters, even when points collide (then the smaller id owns the arc).
// Threads: immutable after construction. Cost: owner() is O(1) expected: one cache line of an index of equal
// parts of the circle, about seven points a line, and no branch that depends on the key; its answer is the
// sorted array's, exactly. Where points crowd (tokens by hand) it is O(log points). Build: two counting
// passes, O(points). Memory: 16 bytes a point and about 9 of index.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

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
    points_.resize(previous.size() + fresh.size());
    std::size_t filled = 0;
    const auto precedes = [&](const Point& old, const Point& added_point) {
      if (old.hash != added_point.hash) [[likely]]
        return old.hash < added_point.hash;
      const MemberIndex member = renumber[old.member];
      return member == kNoMember || id_of(member) < id_of(added_point.member);
    };
    const auto take = [&](const Point& old) {  // The point of a member that left is written over by the next.
      const MemberIndex member = renumber[old.member];
      points_[filled] = {old.hash, member};
      filled += member == kNoMember ? 0U : 1U;
    };
    auto old = previous.points().begin();
    const auto end = previous.points().end();
    for (const Point& point : std::span(fresh).first(fresh.size() - 1)) {  // Without the artificial point.
      while (old != end && precedes(*old, point)) take(*old++);
      points_[filled++] = point;
    }
    while (old != end) take(*old++);
    points_.resize(filled);
    finish();
  }

  // kNoMember when the ring is empty.
  [[nodiscard]] MemberIndex owner(std::uint64_t hash) const noexcept {
    const MemberIndex owner = quick_owner(hash);
    if (owner == kSearch) [[unlikely]]
      return search(hash);
    return owner;
  }

  // owner(), or kSearch for the few hashes (fewer than one in 100, when hashes are spread evenly) that the
  // index cannot answer for. Calls nothing, for callers that want to keep their registers.
  [[nodiscard]] MemberIndex quick_owner(std::uint64_t hash) const noexcept {
    const Place at = place(hash);
    const Line& line = lines_[at.line];
    const unsigned i = first_at_or_after(line.ends, at.fragment);
    // A fragment equal to a point's (one look-up in 10,000) does not say which of the two hashes is larger.
    if (line.ends[i] == at.fragment) [[unlikely]]
      return kSearch;
    return line.owners[i];
  }
  static constexpr std::uint16_t kSearch = 0xffff;  // No member: kMaxMemberIndex is less.

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
  static constexpr std::uint64_t kPointsPerLine = 7;  // On average. More than kLinePoints: 1 line in 400.
  static constexpr std::size_t kLinePoints = 15;

  // An equal part of the circle, as one cache line:
  //
  //   ends    |f0|f1|..|fn-1|ffff ... ffff|   where in this part its points lie, ascending: 16 bits each
  //   owners  |m0|m1|..|mn-1|next|  ...   |   whom they belong to, then the owner of the next part's first
  //
  // A key of fragment f belongs to owners[first i with ends[i] >= f]; the last end is always ffff. A part
  // with more than kLinePoints has kSearch for all owners, and the range of its points instead of ends.
  struct alignas(64) Line {
    std::array<std::uint16_t, kLinePoints + 1> ends, owners;
  };

  struct Place {
    std::size_t line = 0;
    std::uint16_t fragment = 0;
  };
  // hash / 2^64 * lines: the whole part is the line, the first 16 bits behind the point are the fragment.
  // Both together grow with the hash.
  [[nodiscard]] Place place(std::uint64_t hash) const noexcept {
    __extension__ typedef unsigned __int128 Wide;  // NOLINT(modernize-use-using)
    const Wide product = Wide{hash} * line_count_;
    return {static_cast<std::size_t>(product >> 64), static_cast<std::uint16_t>(product >> 48)};
  }

  [[nodiscard]] static unsigned first_at_or_after(const std::array<std::uint16_t, kLinePoints + 1>& ends,
                                                  std::uint16_t fragment) noexcept {
#if defined(__SSE2__)
    const __m128i key = _mm_set1_epi16(static_cast<short>(fragment));
    const auto reached = [&](std::size_t at) {  // key <= end: their saturated difference is 0.
      const __m128i end = _mm_load_si128(reinterpret_cast<const __m128i*>(ends.data() + at));
      return _mm_cmpeq_epi16(_mm_subs_epu16(key, end), _mm_setzero_si128());
    };
    const int mask = _mm_movemask_epi8(_mm_packs_epi16(reached(0), reached(8)));
    return static_cast<unsigned>(__builtin_ctz(static_cast<unsigned>(mask)));  // The last end is reached.
#else
    unsigned before = 0;
    for (const std::uint16_t end : ends) before += end < fragment ? 1U : 0U;
    return before;
#endif
  }

  // The owner by the points themselves.
  [[nodiscard]] MemberIndex search(std::uint64_t hash) const noexcept;
  // Sorts what generate(visit) visits, twice the same: visit(hash, position in `members`). `count` of them.
  template <class Generate>
  void sort(std::size_t count, Generate generate, std::span<const Member> members);
  // From sorted points: the artificial point and the index.
  void finish();

  // Sorted by (hash, id). One more at the end, {2^64-1, owner of the first}, makes wrapping free.
  std::vector<Point> points_;
  std::vector<Line> lines_;
  std::uint64_t line_count_ = 0;  // lines_.size(), which is a subtraction away.
};

}  // namespace ringshift::placement
