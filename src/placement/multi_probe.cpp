#include "placement/multi_probe.h"

#include <algorithm>
#include <bit>

#include "placement/ring.h"

namespace ringshift::placement {

MultiProbe::MultiProbe(std::span<const Member> members, std::uint32_t points_per_weight, std::uint32_t probes,
                       hashing::Hash64 hash)
    : probes_(probes) {
  // The ring's points, in the ring's order: the same circle with another question asked of it.
  const Ring ring(members, points_per_weight, hash);
  for (const Ring::Point& point : ring.points()) {
    hashes_.push_back(point.hash);
    members_.push_back(point.member);
  }
  const std::size_t buckets = std::bit_ceil(std::max<std::size_t>(2, hashes_.size()));
  shift_ = 64 - std::countr_zero(buckets);
  std::size_t point = 0;
  for (std::uint64_t bucket = 0; bucket < buckets; ++bucket) {
    while (point < hashes_.size() && hashes_[point] >> shift_ < bucket) ++point;
    buckets_.push_back(static_cast<std::uint32_t>(point));
  }
}

std::size_t MultiProbe::point_after(std::uint64_t probe) const noexcept {
  std::size_t point = buckets_[probe >> shift_];
  while (point < hashes_.size() && hashes_[point] < probe) ++point;
  return point == hashes_.size() ? 0 : point;
}

MemberIndex MultiProbe::owner(std::uint64_t hash) const noexcept {
  if (hashes_.empty()) return kNoMember;
  Cursor best = start(hash);
  for (std::uint32_t i = 1; i < probes_; ++i) {
    const Cursor next = start(probe(hash, i));
    if (next.distance < best.distance) best = next;
  }
  return members_[best.point];
}

}  // namespace ringshift::placement
