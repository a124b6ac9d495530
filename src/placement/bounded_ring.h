// Bounded-load ring: a ring on which a member that is full passes its keys on, clockwise.
//
// Mirrokni, Thorup and Zadimoghaddam, "Consistent Hashing with Bounded Loads", SODA 2018: no member takes
// more than ceil((1 + epsilon) * (total + 1) * w / W) at once, where total is the load of all and the 1 the
// key that is being placed. The load (requests under way, sessions) is passed in by the caller, who counts
// it.
//
// The owner depends on live load, so two routers may answer differently and a key has no fixed place: allowed
// with `consistency: none` only. owner(hash) without loads is the plain ring's.
// Behaves badly for small epsilon: keys wander far (about 2/epsilon^2 members are tried), and a hot moment
// moves keys that had nothing to do with it.
// Threads: immutable. Cost: the ring's, and one load for each point passed.
#pragma once
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "placement/ring.h"

namespace ringshift::placement {

inline constexpr double kEpsilon = 0.25;

class BoundedRing {
 public:
  // REQUIRES: as Ring; epsilon > 0.
  BoundedRing(std::span<const Member> members, std::uint32_t points_per_weight, double epsilon,
              hashing::Hash64 hash = hashing::Hash64::xxh3)
      : ring_(members, points_per_weight, hash), epsilon_(epsilon) {
    double total = 0;
    for (const Member& member : members) total += member.weight;
    for (const Member& member : members) {
      if (member.index >= shares_.size()) shares_.resize(member.index + std::size_t{1});
      shares_[member.index] = member.weight / total;
    }
  }

  [[nodiscard]] MemberIndex owner(std::uint64_t hash) const noexcept { return ring_.owner(hash); }

  // The most that `member` may hold once one more is placed on top of `total`.
  [[nodiscard]] std::uint64_t capacity(MemberIndex member, std::uint64_t total) const noexcept {
    const double fair = static_cast<double>(total + 1) * shares_[member];
    return static_cast<std::uint64_t>(std::ceil((1 + epsilon_) * fair));
  }

  // `loads[m]` is member m's load; REQUIRES: one for each member. The first member clockwise below its
  // capacity; there is always one, for the capacities sum up to more than the loads.
  [[nodiscard]] MemberIndex owner(std::uint64_t hash, std::span<const std::uint64_t> loads) const noexcept {
    std::uint64_t total = 0;
    for (const std::uint64_t load : loads) total += load;
    MemberIndex taker = ring_.owner(hash);
    ring_.walk(hash, [&](MemberIndex member) {
      if (loads[member] >= capacity(member, total)) return false;
      taker = member;
      return true;
    });
    return taker;
  }

  template <class Visit>
  void walk(std::uint64_t hash, Visit visit) const {
    ring_.walk(hash, visit);
  }
  [[nodiscard]] const Ring& ring() const noexcept { return ring_; }

 private:
  Ring ring_;
  std::vector<double> shares_;  // By member index; 0 for an index that is not on the ring.
  double epsilon_;
};

}  // namespace ringshift::placement
