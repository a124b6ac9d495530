// The phases of a resize as the leader walks through them (RESIZE.md, "Phases").
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "base/log.h"
#include "coord/router_record.h"
#include "resize/leader.h"
#include "resize/lost.h"
#include "ringshift/diff.h"
#include "ringshift/snapshot.h"
#include "transfer/faults.h"
#include "transfer/steps.h"

namespace ringshift::resize {

using base::LogLevel;
using topology::Member;
using topology::Phase;
using topology::Topology;

namespace {

constexpr std::chrono::milliseconds kPaceTick{100};
constexpr std::chrono::milliseconds kFinalReports{1500};
constexpr std::size_t kHistoryKept = 200;
constexpr std::size_t kOpsPerWrite = 100;  // etcd takes 128 in a transaction.

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// "7.0.15" as a number that compares: 7000.
int version_number(const std::string& version) {
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) < 1) return 0;
  return major * 1000 + minor;
}

}  // namespace

std::vector<Member> Leader::destinations() const {
  const topology::Resize& resize = *topology_->resize;
  return without_lost(resize.rollback ? topology_->spec.members : resize.members, resize.lost);
}

Status Leader::drive() {
  if (const Result<bool> moved = follow_addresses(); !moved || *moved) {
    return moved ? Status{} : std::unexpected(moved.error());
  }
  const topology::Resize& resize = *topology_->resize;
  if (checkpoint_->rollback && !resize.rollback) return roll_back();
  if (checkpoint_->lost != resize.lost) return take_lost();
  if (!checkpoint_->prepared) return prepare();
  tell(false);
  const Result<bool> broken = conditions_broken();
  if (!broken) return std::unexpected(broken.error());
  if (*broken) return {};
  if (resize.phase == Phase::dual) return move();
  if (resize.phase == Phase::hold) {
    // A barrier that was not completed: again, in a new step.
    Result<RunIds> run_ids = members_.run_ids(living_members(*topology_));
    if (!run_ids) return std::unexpected(run_ids.error());
    return hold_and_open(hold(*topology_, resize.active, std::move(*run_ids)));
  }
  const std::size_t step = next_step(checkpoint_->steps, resize.done);
  const bool last = resize.rollback || step == checkpoint_->steps.size();
  if (checkpoint_->paused || (!last && !waits_for().empty())) {
    static_cast<void>(view_.wait(kPausedTick, [this] { return request_waits() || !may_lead_(); }));
    return {};
  }
  if (last) return complete();
  if (!origin_rests()) {
    static_cast<void>(view_.wait(kPaceTick, [this] { return request_waits() || !may_lead_(); }));
    return {};
  }
  Result<RunIds> run_ids = members_.run_ids(living_members(*topology_));
  if (!run_ids) return std::unexpected(run_ids.error());
  // A member restarted while the resize waited, perhaps for hours: an old dump may have brought leftovers
  // back.
  if (*run_ids != topology_->fence.run_ids) {
    if (Status purged = purge_leftovers(); !purged) return purged;
  }
  step_began_ = std::chrono::steady_clock::now();
  return hold_and_open(hold(*topology_, slices_of_step(checkpoint_->steps, step), std::move(*run_ids)));
}

Status Leader::check_members(const Topology& next, bool allow_foreign) {
  const Result<coord::Range> listed = coordinator_.list(keys_.routers());
  if (!listed) return std::unexpected(listed.error());
  std::set<std::string> routers;
  for (const coord::KeyValue& kv : listed->kvs) routers.insert("rs:" + kv.key.substr(keys_.routers().size()));
  int oldest_destination = 1 << 30, newest_source = 0;
  for (const Member& member : living_members(next)) {
    const bool joins =
        std::ranges::find(next.spec.members, member.id, &Member::id) == next.spec.members.end();
    if (Status checked = members_.check(member, allow_foreign, joins ? &routers : nullptr); !checked)
      return checked;
    const Result<std::string> text = members_.info(member, "server", "redis_version");
    if (!text) return std::unexpected(text.error());
    const int version = version_number(*text);
    const auto same = [&](const Member& other) { return other.id == member.id; };
    if (std::ranges::any_of(next.resize->members, same))
      oldest_destination = std::min(oldest_destination, version);
    if (std::ranges::any_of(next.spec.members, same)) newest_source = std::max(newest_source, version);
  }
  if (oldest_destination < newest_source) {
    return fail(ErrorKind::invalid,
                "a member that receives keys runs an older Redis than one that gives them, and "
                "RESTORE could refuse its DUMP: upgrade it first");
  }
  return {};
}

// What a member will receive, by the sources' memory and the share that leaves them, must fit its maxmemory.
Status Leader::check_memory(const Topology& next, const topology::Spec& to) {
  const topology::Spec& from = next.spec;
  const Result<topology::Diff> diff = topology::diff(from, to);
  const Result<topology::Shares> shares = topology::shares(from);
  if (!diff || !shares) return {};
  std::map<std::string, double> incoming;
  for (const topology::PairShare& pair : diff->pairs) {
    const auto source = std::ranges::find(from.members, pair.from, &Member::id);
    if (source == from.members.end() || is_lost(next, pair.from)) continue;  // The lost bring nothing.
    const double share = shares->shares[static_cast<std::size_t>(source - from.members.begin())];
    const Result<std::string> used = members_.info(*source, "memory", "used_memory_dataset");
    if (!used) return std::unexpected(used.error());
    if (share > 0) incoming[pair.to] += std::atof(used->c_str()) * pair.share / share;
  }
  for (const Member& member : to.members) {
    // One that only gives may be as full as it likes: that is what a cluster grows for.
    if (incoming[member.id] <= 0) continue;
    const Result<std::string> maximum = members_.info(member, "memory", "maxmemory");
    const Result<std::string> used = members_.info(member, "memory", "used_memory");
    if (!maximum || !used) return std::unexpected((maximum ? used : maximum).error());
    const double limit = std::atof(maximum->c_str());
    const double needed = std::atof(used->c_str()) + incoming[member.id];
    if (limit > 0 && needed > limit) {
      return fail(ErrorKind::invalid,
                  fmt::format("member {} ({}): would need about {:.0f} MiB, and its maxmemory is "
                              "{:.0f} MiB: raise it, or give the member a lower weight",
                              member.id, member.address, needed / 1048576, limit / 1048576));
    }
  }
  return {};
}

// I0: of the slices that have yet to move, NEW must have no key that only B gives it. Safe at any time before
// their HOLD: until then no router that this epoch has not fenced sends such a key there. Slices that have
// moved are spared.
Status Leader::purge_leftovers() {
  if (transfer::broken(transfer::Fault::no_purge)) return {};
  const topology::Version version{coord::kRegistryEpoch, static_cast<std::uint64_t>(topology_revision_)};
  auto snapshot = topology::Snapshot::compile(*topology_, version);
  if (!snapshot) return std::unexpected(snapshot.error());
  for (const Member& member : without_lost(topology_->resize->members, topology_->resize->lost)) {
    const Result<std::uint64_t> purged = members_.purge(member, **snapshot, topology_->resize->done);
    if (!purged) return std::unexpected(purged.error());
    if (*purged != 0) base::log(LogLevel::warning, "member {}: {} leftover keys removed", member.id, *purged);
  }
  return {};
}

Status Leader::prepare() {
  const std::uint64_t fences = checkpoint_->fences;
  if (Status fenced = await_routers_and_fence(); !fenced) return fenced;
  transfer::crash_point("prep_fenced");
  if (Status purged = purge_leftovers(); !purged) return purged;
  if (Status copied = copy_functions(); !copied) return copied;
  transfer::crash_point("prep_purged");
  checkpoint_->prepared = true;
  if (Status saved = save_checkpoint(); !saved) return saved;
  note("phase", fmt::format("prepared: members checked, leftovers purged, {} connections fenced",
                            checkpoint_->fences - fences));
  return {};
}

// New members get the functions that the old ones have. Scripts cannot be listed; clients load them again.
Status Leader::copy_functions() {
  const std::vector<Member> sources = without_lost(topology_->spec.members, topology_->resize->lost);
  if (sources.empty()) return {};
  const auto dump = members_.call(sources.front(), {"FUNCTION", "DUMP"});
  if (!dump) {
    base::log(LogLevel::info, "functions are not copied: {}", dump.error().message);  // Redis before 7.
    return {};
  }
  for (const Member& member : destinations()) {
    const auto same = [&](const Member& other) { return other.id == member.id; };
    if (std::ranges::any_of(topology_->spec.members, same)) continue;
    const auto restored = members_.call(member, {"FUNCTION", "RESTORE", dump->text, "REPLACE"});
    if (!restored) return std::unexpected(restored.error());
  }
  return {};
}

Status Leader::open_gates() { return members_.set_stamps(destinations(), topology_->fence, Gate::open); }

// HOLD, in the order that matters: stamps on every member, HOLD, all routers acknowledge or are fenced,
// connections of the dead are killed, gates open, DUAL.
Status Leader::hold_and_open(Topology held, std::vector<coord::Op> also) {
  // Nothing of these slices has moved if they come straight from PREP: then a failed HOLD can be called off.
  const bool may_call_off = topology_->resize->phase == Phase::prep && !held.resize->rollback;
  if (Status closed = members_.set_stamps(living_members(held), held.fence, Gate::closed); !closed)
    return closed;
  if (transfer::broken(transfer::Fault::no_hold)) {
    topology_->fence = held.fence;
    std::this_thread::sleep_for(std::chrono::seconds(1));  // Time for a test to hang a router that saw PREP.
    if (Status opened = open_gates(); !opened) return opened;
    checkpoint_->opened = true;
    return publish(dual(held), {checkpoint_op()});
  }
  transfer::crash_point("hold_stamped");
  const auto started = std::chrono::steady_clock::now();
  const std::uint64_t fences = checkpoint_->fences;
  if (Status published = publish(std::move(held), std::move(also)); !published) return published;
  transfer::crash_point("hold_published");
  Status fenced = await_routers_and_fence();
  transfer::crash_point("hold_fenced");
  if (fenced) fenced = open_gates();
  transfer::crash_point("gates_open");
  if (!fenced) {
    if (may_call_off && fenced.error().kind != ErrorKind::stale) return call_off_hold(fenced.error().message);
    return fenced;
  }
  holds_called_off_ = 0;
  checkpoint_->opened = true;  // With DUAL, in one transaction: from now on keys may have moved.
  if (Status published = publish(dual(*topology_), {checkpoint_op()}); !published) return published;
  transfer::crash_point("dual_published");
  const double held_ms = milliseconds_since(started);
  checkpoint_->hold_ms_max = std::max(checkpoint_->hold_ms_max, held_ms);
  if (options_.figures) options_.figures->held(held_ms);
  if (!checkpoint_->paused) status_.last_error.clear();  // What it was paused for still stands.
  if (Status saved = save_checkpoint(); !saved) return saved;
  error_noted_.clear();
  note("phase", fmt::format("{}: dual for {} of {} slices, after a hold of {:.1f} ms{}", step_name(),
                            topology::count(topology_->resize->active), topology::kSliceCount, held_ms,
                            checkpoint_->fences == fences
                                ? ""
                                : fmt::format("; {} connections fenced", checkpoint_->fences - fences)));
  return {};
}

Status Leader::await_routers_and_fence() {
  // Read after the publish: a router that is not in the list registers later, and reads the topology later
  // still, so it begins with what was just published.
  const Result<coord::Range> listed = coordinator_.list(keys_.routers());
  if (!listed) return std::unexpected(listed.error());
  const std::string prefix = keys_.routers();
  std::set<std::string> seen, waiting, allowed = {connection_name_};
  for (const coord::KeyValue& kv : listed->kvs) waiting.insert(kv.key);
  const std::function<bool()> all_there = [&] {
    for (auto it = waiting.begin(); it != waiting.end();) {
      const auto kv = view_.get(*it);
      const auto record = kv ? coord::parse_router_record(kv->value) : fail(ErrorKind::not_found, "");
      const bool acknowledged = record && record->revision >= topology_revision_;
      if (acknowledged) allowed.insert("rs:" + it->substr(prefix.size()));
      if (kv) seen.insert(*it);
      const bool gone = !kv && seen.contains(*it);  // Its lease is over: it is fenced, not waited for.
      it = acknowledged || gone ? waiting.erase(it) : std::next(it);
    }
    // Those that registered meanwhile and obey this topology have nothing that must be killed.
    for (const auto& [key, kv] : view_.under(prefix)) {
      const auto record = coord::parse_router_record(kv.value);
      if (record && record->revision >= topology_revision_) allowed.insert("rs:" + key.substr(prefix.size()));
    }
    return waiting.empty() || !may_lead_();
  };
  const bool all = view_.wait(options_.fence_timeout, all_there);
  if (!may_lead_()) return fail(ErrorKind::stale, "the lock was lost during a barrier");
  std::string silent;
  for (const std::string& key : waiting) {
    base::log(
        LogLevel::warning, "router {} did not acknowledge within {} ms: {}", key.substr(prefix.size()),
        options_.fence_timeout.count(),
        topology_->spec.consistency == topology::Consistency::strict ? "fencing it" : "going on without it");
    silent += (silent.empty() ? "" : ", ") + key.substr(prefix.size());
  }
  if (!silent.empty()) {
    note("fence", fmt::format("no acknowledgement within {} ms: {}", options_.fence_timeout.count(), silent));
  }
  if (!all && topology_->spec.consistency == topology::Consistency::cache) return {};
  if (transfer::broken(transfer::Fault::no_fence)) return {};
  const Result<std::uint64_t> killed = members_.fence(living_members(*topology_), allowed);
  if (!killed) return std::unexpected(killed.error());
  checkpoint_->fences += *killed;
  if (!waiting.empty()) fence_lost(allowed);
  return {};
}

Status Leader::roll_back() {
  if (!checkpoint_->opened) {
    base::log(LogLevel::info, "resize {}: dropped before any key moved", topology_->resize->id);
    note("phase", "dropped before any key moved");
    return complete();
  }
  Topology now = *topology_;
  now.resize->lost = checkpoint_->lost;
  Result<RunIds> run_ids = members_.run_ids(living_members(now));
  if (!run_ids) return std::unexpected(run_ids.error());
  base::log(LogLevel::info, "resize {}: rolling back", topology_->resize->id);
  step_began_ = std::chrono::steady_clock::now();
  return hold_and_open(begin_rollback(now, std::move(*run_ids)));
}

Status Leader::complete() {
  const bool rolled_back = checkpoint_->rollback;
  const std::string id = topology_->resize->id;
  std::vector<coord::Op> also = {{coord::Op::Kind::remove, keys_.checkpoints() + id, "", 0}};
  Topology last = finish(*topology_);
  if (!rolled_back) last.spec.retired = checkpoint_->target.retired;
  // The operator's spec follows, so that the next `topology apply` starts from what is.
  if (!rolled_back) also.push_back({coord::Op::Kind::put, keys_.spec(), topology::to_json(last.spec), 0});
  std::vector<coord::Op> told =
      log_ops("end", fmt::format("{}: {} keys, {} bytes moved; longest hold {:.1f} ms, {} connections fenced",
                                 rolled_back ? "rolled back" : "finished", checkpoint_->keys_moved,
                                 checkpoint_->bytes_moved, checkpoint_->hold_ms_max, checkpoint_->fences));
  also.insert(also.end(), told.begin(), told.end());
  transfer::crash_point("finishing");
  if (Status published = publish(std::move(last), std::move(also)); !published) return published;
  transfer::crash_point("finished");
  // The routers' last figures come with their acknowledgement.
  const std::function<bool()> all_told = [&] {
    return std::ranges::all_of(view_.under(keys_.routers()), [&](const auto& entry) {
      const auto record = coord::parse_router_record(entry.second.value);
      return record && record->revision >= topology_revision_;
    });
  };
  static_cast<void>(view_.wait(kFinalReports, all_told));
  count_pulls();
  status_ = current_status();
  status_.state = "finished";
  status_.last_error.clear();  // It was overcome.
  status_.rolled_back = rolled_back;
  status_.phase = "";
  status_.step = status_.steps;
  status_.eta_seconds = status_.keys_per_second = 0;
  checkpoint_.reset();
  members_.hang_up();  // Members that left are not ours any more.
  base::log(LogLevel::info, "resize {}: {}", id, rolled_back ? "rolled back" : "finished");
  tell(true);
  if (Status trimmed = trim_logs(); !trimmed) return trimmed;
  return trim_history();
}

// The registry keeps the newest kHistoryKept topologies of a cluster.
Status Leader::trim_history() {
  const Result<coord::Range> history = coordinator_.list(keys_.history());
  if (!history) return std::unexpected(history.error());
  std::vector<coord::Op> removals;
  for (std::size_t i = 0; i + kHistoryKept < history->kvs.size() && removals.size() < kOpsPerWrite; ++i) {
    removals.push_back({coord::Op::Kind::remove, history->kvs[i].key, "", 0});
  }
  return removals.empty() ? Status{} : write(std::move(removals));
}

}  // namespace ringshift::resize
