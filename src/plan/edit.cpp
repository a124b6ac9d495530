#include "plan/edit.h"

#include <fmt/format.h>

#include <algorithm>

#include "ringshift/carry_over.h"

namespace ringshift::plan {
namespace {

using topology::Member;
using topology::Spec;

constexpr std::size_t kIdsNamed = 12;  // In a message; a cluster may have thousands.

std::unexpected<Error> no_such_member(const Spec& spec, const std::string& id) {
  std::string there;
  for (std::size_t i = 0; i < std::min(kIdsNamed, spec.members.size()); ++i) {
    there += (i == 0 ? "" : ", ") + spec.members[i].id;
  }
  if (spec.members.size() > kIdsNamed) {
    there += fmt::format(" and {} more", spec.members.size() - kIdsNamed);
  }
  return fail(ErrorKind::not_found,
              fmt::format("cluster '{}' has no member '{}': its members are {}", spec.cluster, id, there));
}

// Whether the placement's state is in the spec, and not computed from the members.
bool has_state(const topology::Placement& placement) {
  return !placement.table.empty() || !placement.slots.empty() || !placement.buckets.empty() ||
         !placement.tokens.empty();
}

// The same list to a placement: what else members have does not matter to those that carry a state.
bool same_list(const std::vector<Member>& a, const std::vector<Member>& b) {
  return std::ranges::equal(
      a, b, [](const Member& x, const Member& y) { return x.id == y.id && x.weight == y.weight; });
}

}  // namespace

Result<Spec> edit(const Spec& current, const Edit& edit) {
  Spec next = current;
  for (const auto& [id, weight] : edit.weights) {
    const auto member = std::ranges::find(next.members, id, &Member::id);
    if (member == next.members.end()) return no_such_member(current, id);
    member->weight = weight;
  }
  for (const std::string& id : edit.remove) {
    const auto member = std::ranges::find(next.members, id, &Member::id);
    if (member == next.members.end()) return no_such_member(current, id);
    next.members.erase(member);
    if (edit.retire && std::ranges::find(next.retired, id) == next.retired.end()) next.retired.push_back(id);
  }
  if (next.members.empty() && edit.add.empty()) {
    return fail(ErrorKind::invalid, "members: none would be left: a cluster has at least one");
  }
  for (const Member& added : edit.add) {
    const auto there = std::ranges::find(current.members, added.id, &Member::id);
    if (there != current.members.end()) {
      return fail(
          ErrorKind::invalid,
          fmt::format("member '{}' exists already ({}, weight {}): choose a new id, or change its weight",
                      added.id, there->address, there->weight));
    }
    next.members.push_back(added);
  }
  return topology::carry_over(current, std::move(next));
}

Result<Spec> successor(const Spec& current, Spec next) {
  if (current.placement.algorithm != next.placement.algorithm || has_state(next.placement)) return next;
  // Another number of partitions is asked for: a table of the old number cannot serve it.
  if (current.placement.partitions != next.placement.partitions) return next;
  if (current.placement == next.placement && same_list(current.members, next.members)) return next;
  return topology::carry_over(current, std::move(next));
}

}  // namespace ringshift::plan
