// Lifecycle factors: how a member that is warming up or draining takes only a part of its keys.
//
// Walking from the key's owner on, member m takes the key iff its factor f is 1000, or
//   mix(h(key) ^ h(m)) < f * 2^64 / 1000
// with h(key) the placement's hash of the tagged key (the slot, for slots), h(m) the XXH3-64 of m's id, and
// mix SplitMix64's finaliser. A rising f moves keys only to m, a falling one only away from it. When nobody
// takes the key, the first of the walk does.
//
// Threads: immutable. Cost: a few steps while full members exist; bounded by the ring's points otherwise.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "placement/placement.h"
#include "ringshift/topology.h"

namespace ringshift::topology {

class Lifecycle {
 public:
  Lifecycle() = default;  // Everybody is full.
  // `members[i]` is the member that placements call i.
  Lifecycle(std::span<const Member> members, const std::map<std::string, std::uint32_t>& factors);

  [[nodiscard]] bool active() const noexcept { return !members_.empty(); }

  [[nodiscard]] placement::MemberIndex owner(const placement::Placement& placement,
                                             std::uint64_t hash) const noexcept;
  [[nodiscard]] bool takes(placement::MemberIndex member, std::uint64_t hash) const noexcept;
  // Takes no key at all. REQUIRES: active().
  [[nodiscard]] bool out(placement::MemberIndex member) const noexcept {
    return !members_[member].full && members_[member].threshold == 0;
  }

 private:
  struct State {
    std::uint64_t hash = 0;       // Of the id.
    std::uint64_t threshold = 0;  // factor * 2^64 / 1000, not used when full.
    bool full = true;
  };
  std::vector<State> members_;
};

}  // namespace ringshift::topology
