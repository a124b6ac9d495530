#include "resize/lost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "resize/phases.h"
#include "ringshift/diff.h"

namespace ringshift::resize {

using topology::Member;
using topology::Topology;

namespace {

Result<topology::Diff> diff_of(const Topology& topology) {
  topology::Spec to = topology.spec;
  to.members = topology.resize->members;
  to.placement = topology.resize->placement;
  return topology::diff(topology.spec, to);
}

bool has(const std::vector<std::string>& ids, const std::string& id) {
  return std::ranges::find(ids, id) != ids.end();
}

}  // namespace

std::vector<std::string> sorted_ids(std::vector<std::string> ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

bool is_lost(const Topology& topology, const std::string& member) {
  return topology.resize && has(topology.resize->lost, member);
}

std::vector<Member> without_lost(std::vector<Member> members, const std::vector<std::string>& lost) {
  std::erase_if(members, [&](const Member& member) { return has(lost, member.id); });
  return members;
}

std::vector<Member> living_members(const Topology& topology) {
  return without_lost(all_members(topology),
                      topology.resize ? topology.resize->lost : std::vector<std::string>{});
}

Status check_forward(const Topology& topology, const std::vector<std::string>& lost) {
  const Result<topology::Diff> diff = diff_of(topology);
  if (!diff) return std::unexpected(diff.error());
  for (const topology::PairShare& pair : diff->pairs) {
    if (pair.share <= 0 || !has(lost, pair.to)) continue;
    return fail(
        ErrorKind::invalid,
        fmt::format("the resize cannot go on without {}: keys of {} are to move to it", pair.to, pair.from));
  }
  return {};
}

Status check_back(const Topology& topology, const std::vector<std::string>& lost, bool opened) {
  if (!opened) return {};  // Nothing has moved, so nothing has to come back.
  const Result<topology::Diff> diff = diff_of(topology);
  if (!diff) return std::unexpected(diff.error());
  for (const topology::PairShare& pair : diff->pairs) {
    if (pair.share <= 0 || !has(lost, pair.from)) continue;
    return fail(ErrorKind::invalid,
                fmt::format("a rollback is not possible without {}: its keys, which are {}'s now or will be, "
                            "would have to go back to it, and what it still has is older than what was "
                            "written since",
                            pair.from, pair.to));
  }
  return {};
}

std::vector<double> finer_steps(const std::vector<double>& steps, const topology::SliceSet& touched) {
  // Slices have their turn in order, so those that had it are the first ones.
  const long had_turn = topology::count(touched);
  std::vector<double> out;
  double from = 0;
  for (const double step : steps) {
    if (std::lround(from / 100 * topology::kSliceCount) >= had_turn) break;  // As slices_of_step() rounds.
    out.push_back(from = step);
  }
  for (double next = from + kLostStepPercent; next < 100 - kLostStepPercent / 2; next += kLostStepPercent)
    out.push_back(next);
  if (out.empty() || out.back() < 100) out.push_back(100);
  return out;
}

}  // namespace ringshift::resize
