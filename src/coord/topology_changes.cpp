#include "coord/topology_changes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringshift::coord {
namespace {

using topology::Member;
using topology::Resize;
using topology::Topology;

void compare_members(const std::vector<Member>& before, const std::vector<Member>& after,
                     std::vector<std::string>& out) {
  for (const Member& old : before) {
    const auto now = std::ranges::find(after, old.id, &Member::id);
    if (now == after.end()) {
      out.push_back(fmt::format("member {} left", old.id));
      continue;
    }
    if (now->address != old.address) {
      out.push_back(fmt::format("member {}: address {} -> {}", old.id, old.address, now->address));
    }
    if (now->weight != old.weight) {
      out.push_back(fmt::format("member {}: weight {} -> {}", old.id, old.weight, now->weight));
    }
    if (now->zone != old.zone || now->host != old.host || now->label != old.label) {
      out.push_back(fmt::format("member {}: zone, host or label changed", old.id));
    }
  }
  for (const Member& now : after) {
    if (std::ranges::find(before, now.id, &Member::id) == before.end()) {
      out.push_back(fmt::format("member {} ({}, weight {}) joined", now.id, now.address, now.weight));
    }
  }
}

void compare_resize(const Resize& before, const Resize& after, std::vector<std::string>& out) {
  constexpr const char* kPhases[] = {"prep", "hold", "dual"};
  if (!before.rollback && after.rollback) out.push_back(fmt::format("resize {}: rolls back", after.id));
  const auto phase = static_cast<std::size_t>(after.phase);
  if (before.phase != after.phase || before.active != after.active) {
    out.push_back(after.active.empty() ? "resize: no slices under way"
                                       : fmt::format("resize: {} for {} of {} slices", kPhases[phase],
                                                     topology::count(after.active), topology::kSliceCount));
  }
  if (before.done != after.done) {
    out.push_back(fmt::format("resize: {} of {} slices have moved", topology::count(after.done),
                              topology::kSliceCount));
  }
  if (before.read_order != after.read_order) {
    out.push_back(after.read_order == topology::ReadOrder::new_first
                      ? "resize: reads ask the new member first"
                      : "resize: reads ask the old member first");
  }
}

}  // namespace

std::vector<std::string> topology_changes(const Topology& before, const Topology& after) {
  std::vector<std::string> out;
  compare_members(before.spec.members, after.spec.members, out);
  if (before.spec.placement.algorithm != after.spec.placement.algorithm) {
    out.push_back(
        fmt::format("placement {} -> {}", before.spec.placement.algorithm, after.spec.placement.algorithm));
  } else if (before.spec.placement != after.spec.placement) {
    out.push_back(
        fmt::format("placement {}: other parameters, or another table", after.spec.placement.algorithm));
  }
  if (before.spec.limits != after.spec.limits) {
    out.push_back(fmt::format("limits: {} keys/s, {} bytes/s", after.spec.limits.move_keys_per_second,
                              after.spec.limits.move_bytes_per_second));
  }
  if (before.spec.retired != after.spec.retired) {
    out.push_back(fmt::format("{} retired ids", after.spec.retired.size()));
  }
  if (before.factors != after.factors) out.emplace_back("members' factors changed");
  if (before.resize && after.resize && before.resize->id == after.resize->id) {
    compare_resize(*before.resize, *after.resize, out);
    return out;
  }
  if (before.resize) out.push_back(fmt::format("resize {} is over", before.resize->id));
  if (after.resize) {
    out.push_back(fmt::format("resize {} to {} members, {} begins", after.resize->id,
                              after.resize->members.size(), after.resize->placement.algorithm));
  }
  return out;
}

}  // namespace ringshift::coord
