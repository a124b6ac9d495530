#include "topology/lifecycle.h"

#include "hashing/xxh3.h"
#include "topology/validate.h"

namespace ringshift::topology {

Lifecycle::Lifecycle(std::span<const Member> members, const std::map<std::string, std::uint32_t>& factors) {
  if (factors.empty()) return;
  __extension__ using Wide = unsigned __int128;
  for (const Member& member : members) {
    State state;
    state.hash = hashing::xxh3(member.id);
    if (const auto factor = factors.find(member.id); factor != factors.end()) {
      state.full = false;
      state.threshold = static_cast<std::uint64_t>((Wide{factor->second} << 64) / kFullFactor);
    }
    members_.push_back(state);
  }
}

bool Lifecycle::takes(placement::MemberIndex member, std::uint64_t hash) const noexcept {
  const State& state = members_[member];
  return state.full || hashing::mix(hash ^ state.hash) < state.threshold;
}

placement::MemberIndex Lifecycle::owner(const placement::Placement& placement,
                                        std::uint64_t hash) const noexcept {
  placement::MemberIndex taker = placement.owner_of(hash);
  // A member met again on the walk answers as before, so nobody needs to remember whom it met.
  placement.walk(hash, [&](placement::MemberIndex member) {
    if (!takes(member, hash)) return false;
    taker = member;
    return true;
  });
  return taker;
}

}  // namespace ringshift::topology
