// A member that moves to another address while a resize runs: its replica took over, or its machine was
// replaced. The operator applies the spec of now, or that of the resize's target, with the new address.
//
// Why it is safe: the new process is to the resize what a restarted one is. Its run id is another, so the
// stamp that it copied lets no transfer in, and what is under way goes back through HOLD, in the very
// topology that names the new address: once that HOLD is acknowledged nobody speaks to the old process any
// more (I3), and the stamps for it bear the new run id (I4). What may take over is a copy, which bears a
// stamp of this epoch, or an empty server: anything else could hold keys that nobody cleaned away (I0).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/log.h"
#include "resize/leader.h"
#include "resize/lost.h"
#include "transfer/steps.h"

namespace ringshift::resize {

using topology::Member;
using topology::Topology;

namespace {

using Addresses = std::map<std::string, std::string>;

void set_addresses(std::vector<Member>& members, const Addresses& addresses) {
  for (Member& member : members) {
    if (const auto found = addresses.find(member.id); found != addresses.end())
      member.address = found->second;
  }
}

}  // namespace

bool Leader::spec_waits() const {
  const auto kv = view_.get(keys_.spec());
  return kv && kv->mod_revision > spec_seen_;
}

// Its own addresses as its spec names them; the old process is not asked.
Status Leader::check_successor(const Member& moved) {
  const Result<std::string> role = members_.info(moved, "replication", "role");
  if (!role) return std::unexpected(role.error());
  if (*role == "slave") {
    return fail(ErrorKind::retryable,
                fmt::format("member {} ({}): is a replica still: promote it", moved.id, moved.address));
  }
  const Result<std::uint64_t> keys = members_.key_count(moved);
  if (!keys) return std::unexpected(keys.error());
  if (*keys == 0) return {};
  const Result<std::string> stamp = members_.stamp(moved);
  if (!stamp) return std::unexpected(stamp.error());
  const auto there = transfer::step_of_stamp(*stamp);
  if (there && there->epoch == topology_->fence.epoch && there->step <= topology_->fence.step) return {};
  return fail(
      ErrorKind::invalid,
      fmt::format("member {} ({}): has {} keys and no {} of this resize, so it is no copy of the member; "
                  "empty it (FLUSHALL), or name the right address",
                  moved.id, moved.address, *keys, transfer::kStampKey));
}

Result<bool> Leader::follow_addresses() {
  const auto kv = view_.get(keys_.spec());
  if (!kv || kv->mod_revision <= spec_seen_) return false;
  const Result<topology::Spec> spec = topology::parse_spec(kv->value, keys_.spec());
  if (!spec || spec->cluster != topology_->spec.cluster) {
    spec_seen_ = kv->mod_revision;
    return false;
  }
  Addresses changed;
  std::vector<Member> moved;
  for (const Member& before : all_members(*topology_)) {
    const auto now = std::ranges::find(spec->members, before.id, &Member::id);
    if (now == spec->members.end() || now->address == before.address) continue;
    changed[before.id] = now->address;
    moved.push_back(*now);
  }
  if (changed.empty()) {
    spec_seen_ = kv->mod_revision;
    return false;
  }
  for (const Member& member : moved) {
    if (Status fit = check_successor(member); !fit) return std::unexpected(fit.error());
  }
  Topology next = *topology_;
  set_addresses(next.spec.members, changed);
  set_addresses(next.resize->members, changed);
  set_addresses(checkpoint_->target.members, changed);
  for (const auto& [id, address] : changed) {
    base::log_fields(base::LogLevel::warning, {{"member", id}, {"address", address}},
                     "member {}: is at {} from now on", id, address);
  }
  // What was applied may have been the target's spec; what is in force is A's, until the end.
  const std::vector<coord::Op> also = {checkpoint_op(),
                                       {coord::Op::Kind::put, keys_.spec(), topology::to_json(next.spec), 0}};
  if (next.resize->phase == topology::Phase::prep) {
    if (Status published = publish(std::move(next), also); !published)
      return std::unexpected(published.error());
    return true;
  }
  Result<RunIds> run_ids = members_.run_ids(living_members(next));
  if (!run_ids) return std::unexpected(run_ids.error());
  const topology::SliceSet active = next.resize->active;
  if (Status held = hold_and_open(hold(next, active, std::move(*run_ids)), also); !held) {
    return std::unexpected(held.error());
  }
  return true;
}

}  // namespace ringshift::resize
