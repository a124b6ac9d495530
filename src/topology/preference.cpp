// Snapshot::preference_list: the walk of the placement, then hosts and zones.
#include <algorithm>
#include <map>
#include <set>

#include "topology/snapshot_impl.h"

namespace ringshift::topology {
namespace {

// Distinct members in the order in which they would inherit the key; those that leave it to others at the
// end.
std::vector<MemberIndex> heirs(const placement::Placement& placement, const Lifecycle& lifecycle,
                               std::uint64_t hash, std::size_t members) {
  std::vector<bool> met(members, false);
  std::vector<MemberIndex> out, passed;
  std::size_t left = members;
  placement.walk(hash, [&](MemberIndex member) {
    if (met[member]) return false;
    met[member] = true;
    if (!lifecycle.active() || lifecycle.takes(member, hash)) {
      out.push_back(member);
    } else if (!lifecycle.out(member)) {
      passed.push_back(member);
    }
    return --left == 0;
  });
  out.insert(out.end(), passed.begin(), passed.end());
  if (out.empty()) out.push_back(placement.owner_of(hash));  // As route(): somebody must.
  return out;
}

}  // namespace

std::vector<MemberIndex> Snapshot::preference_list(std::string_view key, std::size_t r,
                                                   bool spread_zones) const {
  const placement::Placement& placement = *impl_->before;
  const std::uint64_t hash = placement.hash(placement.tag().apply(key));
  std::vector<MemberIndex> waiting =
      heirs(placement, impl_->lifecycle, hash, impl_->topology.spec.members.size());
  if (const MemberIndex owner = owner_before(key); waiting.front() != owner) {
    std::erase(waiting, owner);  // All who wait pass the key on: route() then takes the walk's first.
    waiting.insert(waiting.begin(), owner);
  }
  std::vector<MemberIndex> out;
  std::set<std::string_view> hosts;
  std::map<std::string_view, std::size_t> zones;
  while (out.size() < r && !waiting.empty()) {
    const auto crowd = [&](MemberIndex member) {
      return spread_zones ? zones[impl_->members[member].zone] : 0;
    };
    const auto best = std::ranges::min_element(waiting, {}, crowd);  // The first of the least used.
    const MemberIndex member = *best;
    const Member& taken = impl_->members[member];
    out.push_back(member);
    ++zones[taken.zone];
    if (!taken.host.empty()) hosts.insert(taken.host);
    waiting.erase(best);
    std::erase_if(waiting, [&](MemberIndex other) { return hosts.contains(impl_->members[other].host); });
  }
  return out;
}

MemberIndex Snapshot::owner_by_load(std::string_view key,
                                    std::span<const std::uint64_t> loads) const noexcept {
  const placement::Placement& placement = *impl_->before;
  const auto* bounded = std::get_if<placement::BoundedRing>(&placement.algorithm());
  if (bounded == nullptr) return owner_before(key);
  return bounded->owner(placement.hash(placement.tag().apply(key)), loads);
}

}  // namespace ringshift::topology
