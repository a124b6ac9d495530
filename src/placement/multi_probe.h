// Multi-probe placement: a ring with one point a member, and k probes of it for each key; the probe that is
// nearest to the point after it decides.
//
// Appleton and O'Reilly, "Multi-Probe Consistent Hashing", 2015: k = 21 keeps the fullest member within 5 %
// of the mean, with 12 bytes a member where a ring needs hundreds of points. Probe i of a key is h + i *
// (mix(h) | 1). Ties (equal distances): the earlier probe; equal points: the smaller id. A change of members
// moves keys only to or from the member that changed; a removed member's keys spread over all. Weights: a
// member has weight * points points, which must be whole (validated).
//
// Behaves badly on speed: k look-ups, so k cache misses when there are many members. Threads: immutable.
// Cost: O(k) expected, through an index of buckets over the top bits; 20 to 28 bytes a point.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hashing/hash64.h"
#include "placement/member.h"

namespace ringshift::placement {

inline constexpr std::uint32_t kProbes = 21;
inline constexpr std::uint32_t kMaxProbes = 64;

class MultiProbe {
 public:
  // REQUIRES: ids are unique; 1 <= probes <= kMaxProbes.
  MultiProbe(std::span<const Member> members, std::uint32_t points_per_weight, std::uint32_t probes,
             hashing::Hash64 hash = hashing::Hash64::xxh3);

  [[nodiscard]] MemberIndex owner(std::uint64_t hash) const noexcept;

  // Calls visit(member) by growing distance over all probes, until it gives true. A member that is passed
  // over leaves its keys to whom they would go at its removal. Visited members may come again.
  template <class Visit>
  void walk(std::uint64_t hash, Visit visit) const {
    if (hashes_.empty()) return;
    std::array<Cursor, kMaxProbes> cursors;
    for (std::uint32_t i = 0; i < probes_; ++i) cursors[i] = start(probe(hash, i));
    // A cursor that went round has met everybody.
    while (true) {
      Cursor* nearest = cursors.data();
      for (std::uint32_t i = 1; i < probes_; ++i) {
        if (cursors[i].distance < nearest->distance) nearest = &cursors[i];
      }
      if (visit(members_[nearest->point]) || ++nearest->steps == hashes_.size()) return;
      nearest->point = nearest->point + 1 == hashes_.size() ? 0 : nearest->point + 1;
      nearest->distance = hashes_[nearest->point] - nearest->probe;
    }
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return hashes_.size() * (sizeof hashes_[0] + sizeof members_[0]) + buckets_.size() * sizeof buckets_[0];
  }

 private:
  struct Cursor {
    std::uint64_t probe = 0, distance = 0;
    std::size_t point = 0, steps = 0;
  };

  [[nodiscard]] static std::uint64_t probe(std::uint64_t hash, std::uint32_t i) noexcept {
    return hash + i * (hashing::mix(hash) | 1);
  }
  [[nodiscard]] std::size_t point_after(std::uint64_t probe) const noexcept;
  [[nodiscard]] Cursor start(std::uint64_t probe) const noexcept {
    const std::size_t point = point_after(probe);
    return {probe, hashes_[point] - probe, point, 0};
  }

  std::vector<std::uint64_t> hashes_;   // The points, sorted by (hash, id).
  std::vector<MemberIndex> members_;    // Of each point.
  std::vector<std::uint32_t> buckets_;  // The first point in or after each bucket.
  int shift_ = 63;
  std::uint32_t probes_;
};

}  // namespace ringshift::placement
