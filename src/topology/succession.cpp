// What may follow what, and what an operator should know of a change.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "ringshift/topology.h"
#include "topology/reader.h"
#include "topology/validate.h"

namespace ringshift::topology {

std::vector<std::string> change_warnings(const Spec& current, const Spec& next) {
  std::vector<std::string> out;
  const Placement& a = current.placement;
  const Placement& b = next.placement;
  if (a.algorithm != b.algorithm) return out;
  const auto ids = [](const Spec& spec) {
    std::vector<std::string> list;
    for (const Member& member : spec.members) list.push_back(member.id);
    return list;
  };
  const auto prefix = [](const std::vector<std::string>& x, const std::vector<std::string>& y) {
    return std::equal(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(std::min(x.size(), y.size())),
                      y.begin());
  };
  const std::vector<std::string> before = ids(current), after = ids(next);
  if (a.algorithm == "jump" && !prefix(before, after)) {
    out.push_back(
        "members: jump counts members by their place in the list, and members before its end came, went or "
        "changed places: nearly every key behind them moves; change only the end of the list, or use "
        "memento");
  }
  if (a.algorithm == "memento" && a.buckets.empty() && b.buckets.empty() && !prefix(before, after)) {
    out.push_back(
        "placement.buckets: without it the members' order makes the buckets, and it changed before its end: "
        "nearly every key moves; carry the buckets over and name the members that left in removed");
  }
  if (a.algorithm == "partitions" && before != after && b.table.empty()) {
    out.push_back(
        "placement.table: without it the partitions are dealt anew for the changed members, and nearly every "
        "key moves; carry the table over");
  }
  if (a.algorithm == "slots" && before != after && b.slots.empty()) {
    out.push_back(
        "placement.slots: without it the ranges are cut anew for the changed members, and far more keys move "
        "than must; carry the table over");
  }
  return out;
}

Status check_succession(const Spec& current, const Spec& next, bool force) {
  if (next.cluster != current.cluster) {
    return fail(ErrorKind::invalid,
                fmt::format("cluster: {} cannot become {}: give the new cluster a spec of its own",
                            shown(current.cluster), shown(next.cluster)));
  }
  if (next.protocol != current.protocol) {
    return fail(ErrorKind::invalid, "protocol: a cluster's protocol cannot change: make a new cluster");
  }
  const std::unordered_set<std::string_view> retired(current.retired.begin(), current.retired.end());
  std::unordered_set<std::string_view> ids;
  for (std::size_t i = 0; i < next.members.size(); ++i) {
    ids.insert(next.members[i].id);
    if (retired.contains(next.members[i].id)) {
      return fail(
          ErrorKind::invalid,
          fmt::format("members[{}].id: {} is retired, and a retired id never comes back: choose a new id", i,
                      shown(next.members[i].id)));
    }
  }
  // Data does not follow an address: members that exchange theirs would each miss all of their keys.
  for (std::size_t i = 0; !force && i < next.members.size(); ++i) {
    const Member& member = next.members[i];
    const auto owner = std::ranges::find(current.members, canonical_address(member.address),
                                         [](const Member& one) { return canonical_address(one.address); });
    if (owner == current.members.end() || owner->id == member.id) continue;
    return fail(
        ErrorKind::invalid,
        fmt::format("members[{}].address: {} is the address of {} now, and its keys would be taken for those "
                    "of {}: a server keeps its id; --force if its data is gone",
                    i, shown(member.address), shown(owner->id), shown(member.id)));
  }
  const auto lost =
      std::ranges::count_if(current.members, [&](const Member& member) { return !ids.contains(member.id); });
  if (!force && static_cast<std::size_t>(lost) * 2 > current.members.size()) {
    return fail(ErrorKind::invalid, fmt::format("members: {} of {} members vanish at once, more than half: "
                                                "is it the right file? --force if it is",
                                                lost, current.members.size()));
  }
  return {};
}

}  // namespace ringshift::topology
