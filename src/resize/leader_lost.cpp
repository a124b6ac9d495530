// Members that are gone for good, in a resize (resize/lost.h; docs/protocol.md, "Members that are lost").
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "coord/router_record.h"
#include "resize/leader.h"
#include "resize/lost.h"

namespace ringshift::resize {

using base::LogLevel;
using topology::Member;
using topology::Topology;

// A member that answers has its keys, and clients of a router that hangs may yet be served by it.
Status Leader::check_gone(const Member& member, bool force) {
  Result<std::string> there = members_.run_id(member);
  if (!there) there = members_.run_id(member);  // The first may have broken an old connection only.
  if (!there || force) return {};
  return fail(
      ErrorKind::invalid,
      fmt::format("member {} ({}) answers, so it is not lost: leave it out of the spec without --lost, "
                  "and its keys are moved; to give them up switch the server off first, or say "
                  "--force",
                  member.id, member.address));
}

Status Leader::check_lost(const Request& request, const topology::Spec& target) {
  for (const std::string& id : request.lost) {
    const auto member = std::ranges::find(topology_->spec.members, id, &Member::id);
    if (member == topology_->spec.members.end())
      return fail(ErrorKind::invalid, fmt::format("--lost {}: the cluster has no such member", id));
    if (std::ranges::find(target.members, id, &Member::id) != target.members.end()) {
      return fail(
          ErrorKind::invalid,
          fmt::format("--lost {}: the new spec still has it: take it out there; a server in its place "
                      "gets an id of its own",
                      id));
    }
    if (Status gone = check_gone(*member, request.force); !gone) return gone;
  }
  return {};
}

// In the midst of a resize. What it needs is looked at here; take_lost() or roll_back() does it.
Status Leader::declare_lost(const Request& request) {
  if (request.lost.empty()) return fail(ErrorKind::invalid, "no member is named");
  const std::vector<Member> members = all_members(*topology_);
  std::vector<std::string> lost = checkpoint_->lost;
  for (const std::string& id : request.lost) {
    const auto member = std::ranges::find(members, id, &Member::id);
    if (member == members.end())
      return fail(ErrorKind::invalid, fmt::format("{}: the resize has no such member", id));
    if (Status gone = check_gone(*member, request.force); !gone) return gone;
    lost.push_back(id);
  }
  lost = sorted_ids(std::move(lost));
  const bool going_back = checkpoint_->rollback || topology_->resize->rollback;
  const Status forward = check_forward(*topology_, lost);
  if (going_back || !forward) {
    const Status back = check_back(*topology_, lost, checkpoint_->opened);
    if (!back) {
      return fail(ErrorKind::invalid,
                  fmt::format("{}{}; start an empty server at its address, and the resize goes on with that",
                              going_back ? "" : forward.error().message + ", and ", back.error().message));
    }
    checkpoint_->rollback = true;
    checkpoint_->paused = false;
  }
  const topology::Resize& resize = *topology_->resize;
  checkpoint_->lost = std::move(lost);
  checkpoint_->steps = finer_steps(checkpoint_->steps, topology::unite(resize.done, resize.active));
  if (request.origin_budget != 0) checkpoint_->origin_budget = request.origin_budget;
  return {};
}

// What is in HOLD or DUAL goes through HOLD once more: only past it may a router take a lost member's keys
// for settled, and only the new stamps keep out a transfer from it that is still on its way.
Status Leader::take_lost() {
  Topology next = *topology_;
  next.resize->lost = checkpoint_->lost;
  for (const std::string& id : next.resize->lost)
    base::log_fields(LogLevel::warning, {{"member", id}, {"state", "lost"}, {"resize", next.resize->id}},
                     "resize {}: goes on without member {}", next.resize->id, id);
  if (next.resize->phase == topology::Phase::prep) return publish(std::move(next));
  Result<RunIds> run_ids = members_.run_ids(living_members(next));
  if (!run_ids) return std::unexpected(run_ids.error());
  const topology::SliceSet active = next.resize->active;
  return hold_and_open(hold(next, active, std::move(*run_ids)));
}

// After a barrier that some router did not acknowledge: should a lost member answer after all, that router
// must not be served by it any more. Where it does not answer there is nothing to cut.
void Leader::fence_lost(const std::set<std::string>& allowed) {
  for (const Member& member : all_members(*topology_)) {
    if (!is_lost(*topology_, member.id)) continue;
    const Result<std::uint64_t> killed = members_.fence({member}, allowed);
    if (killed) checkpoint_->fences += *killed;
  }
}

// What a cache's clients do not find, they ask the origin for.
void Leader::feed_origin(OriginMeter::TimePoint now) {
  std::map<std::string, std::uint64_t> misses;
  for (const auto& [key, kv] : view_.under(keys_.routers())) {
    if (const auto record = coord::parse_router_record(kv.value)) misses[key] = record->misses;
  }
  origin_.add(misses, now);
}

// Whether the next step may begin. Each gives up a part of the lost keys, and their clients go to the origin.
bool Leader::origin_rests() {
  status_.waits_for.clear();
  status_.misses_per_second = 0;
  if (checkpoint_->origin_budget == 0 || topology_->resize->lost.empty()) return true;
  const auto now = std::chrono::steady_clock::now();
  feed_origin(now);
  const std::optional<double> rate = origin_.rate(now, step_ended_at_);
  if (!rate) {
    status_.waits_for = "the routers' figures after the last step";
    return false;
  }
  status_.misses_per_second = *rate;
  if (*rate <= static_cast<double>(checkpoint_->origin_budget)) return true;
  status_.waits_for =
      fmt::format("the origin: {:.0f} misses/s, and the budget is {}", *rate, checkpoint_->origin_budget);
  return false;
}

}  // namespace ringshift::resize
