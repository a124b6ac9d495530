#include "resize/leader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "coord/ejected.h"
#include "plan/edit.h"
#include "resize/lost.h"
#include "ringshift/diff.h"
#include "transfer/steps.h"
#include "transfer/verify.h"

namespace ringshift::resize {

using base::LogLevel;
using coord::Compare;
using coord::KeyValue;
using coord::Op;
using topology::Topology;

namespace {
constexpr std::chrono::milliseconds kIdle{250};
constexpr std::chrono::milliseconds kAfterError{200};

// Two ids for one server (an address and its alias): what moves from one to the other would be deleted.
Status check_one_server_each(const RunIds& run_ids) {
  std::map<std::string, std::string> member_of;
  for (const auto& [member, run_id] : run_ids) {
    const auto [before, is_first] = member_of.try_emplace(run_id, member);
    if (is_first) continue;
    return fail(ErrorKind::invalid,
                fmt::format("members {} and {} are one server (run id {}): give each its own", before->second,
                            member, run_id));
  }
  return {};
}
}  // namespace

Leader::Leader(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
               const ControllerOptions& options, ClusterView& view, coord::Revision lock_revision,
               std::function<bool()> may_lead)
    : coordinator_(coordinator),
      keys_(keys),
      options_(options),
      view_(view),
      lock_revision_(lock_revision),
      may_lead_(std::move(may_lead)),
      connection_name_("rs:" + options.id),
      members_(connection_name_, options.member_access),
      origin_(options.origin_window) {
  const base::TimePoint now = std::chrono::steady_clock::now();
  const topology::Limits defaults;
  key_rate_ = std::make_unique<TokenBucket>(static_cast<double>(defaults.move_keys_per_second), now);
  byte_rate_ = std::make_unique<TokenBucket>(static_cast<double>(defaults.move_bytes_per_second), now);
}

void Leader::run() {
  while (may_lead_()) {
    Status done = load();
    while (done && may_lead_()) done = tick();
    if (done || !may_lead_()) continue;
    base::log(LogLevel::warning, "controller: {}; trying again", done.error().message);
    status_.last_error = done.error().message;
    note_error(done.error().message);
    tell(true);
    static_cast<void>(view_.wait(kAfterError, [this] { return !may_lead_(); }));
  }
}

Status Leader::load() {
  // What was moved while the registry was away is in no checkpoint there: it must not be forgotten here.
  const std::optional<Checkpoint> ours = checkpoint_;
  const std::string ours_of = topology_ && topology_->resize ? topology_->resize->id : "";
  topology_.reset();
  topology_revision_ = 0;
  checkpoint_.reset();
  log_id_.clear();
  const auto next = coordinator_.get(keys_.next());
  if (!next) return std::unexpected(next.error());
  queued_ = next->has_value();
  const auto kv = coordinator_.get(keys_.topology());
  if (!kv) return std::unexpected(kv.error());
  if (const auto status = coordinator_.get(keys_.status()); status && *status) {
    if (Result<ResizeStatus> parsed = parse_status((*status)->value)) status_ = std::move(*parsed);
  }
  if (!*kv) return {};
  Result<Topology> parsed = topology::parse_topology((*kv)->value, keys_.topology());
  if (!parsed) return std::unexpected(parsed.error());
  topology_ = std::move(*parsed);
  topology_revision_ = (*kv)->mod_revision;
  if (!topology_->resize) return {};
  const auto saved = coordinator_.get(keys_.checkpoints() + topology_->resize->id);
  if (!saved) return std::unexpected(saved.error());
  if (!*saved) {
    return fail(ErrorKind::internal,
                fmt::format("resize {} has no checkpoint in the registry", topology_->resize->id));
  }
  Result<Checkpoint> checkpoint = parse_checkpoint((*saved)->value);
  if (!checkpoint) return std::unexpected(checkpoint.error());
  checkpoint_ = std::move(*checkpoint);
  if (ours && ours_of == topology_->resize->id && ours->keys_moved > checkpoint_->keys_moved) {
    checkpoint_->keys_moved = ours->keys_moved;
    checkpoint_->bytes_moved = std::max(checkpoint_->bytes_moved, ours->bytes_moved);
    checkpoint_->keys_verified = std::max(checkpoint_->keys_verified, ours->keys_verified);
    checkpoint_->pairs = ours->pairs;
    checkpoint_->big_keys.insert(ours->big_keys.begin(), ours->big_keys.end());
  }
  return {};
}

Status Leader::tick() {
  if (!topology_) {
    if (Status done = create_topology(); !done) return done;
  }
  if (const auto request = coordinator_.get(keys_.request()); !request) {
    return std::unexpected(request.error());
  } else if (*request) {
    if (Status done = handle_request(**request); !done) return done;
  }
  if (topology_ && topology_->resize) return drive();
  if (topology_ && queued_) return start_next();
  if (topology_) {
    if (Status done = follow_spec(); !done) return done;
    if (Status done = follow_ejected(); !done) return done;
  }
  tell(false);
  bool changed = false;  // wait() asks once at the start, and again after a change.
  static_cast<void>(view_.wait(kIdle, [&] { return std::exchange(changed, true) || !may_lead_(); }));
  return {};
}

Status Leader::write(std::vector<Op> ops) {
  const std::vector<Compare> compares = {
      {keys_.controller(), Compare::Target::create_revision, lock_revision_}};
  const auto written = coordinator_.transact(compares, ops);
  if (!written) return std::unexpected(written.error());
  if (!*written) return fail(ErrorKind::stale, "another controller holds the lock");
  return {};
}

Status Leader::publish(Topology next, std::vector<Op> also, std::vector<Compare> when) {
  const std::string json = topology::to_json(next);
  when.push_back({keys_.controller(), Compare::Target::create_revision, lock_revision_});
  when.push_back({keys_.topology(), Compare::Target::mod_revision, topology_revision_});
  also.push_back({Op::Kind::put, keys_.topology(), json, 0});
  also.push_back({Op::Kind::put, fmt::format("{}{:020}", keys_.history(), topology_revision_), json, 0});
  const auto written = coordinator_.transact(when, also);
  if (!written) return std::unexpected(written.error());
  if (!*written) return fail(ErrorKind::stale, "the topology or the lock changed under this controller");
  topology_ = std::move(next);
  topology_revision_ = **written;
  base::log_fields(
      LogLevel::info,
      {{"cluster", topology_->spec.cluster},
       {"version", fmt::format("{}.{}", coord::kRegistryEpoch, topology_revision_)},
       {"digest", topology::digest(*topology_)},
       {"epoch", topology_->fence.epoch},
       {"step", topology_->fence.step},
       {"resize", topology_->resize ? std::string_view(topology_->resize->id) : std::string_view()}},
      "published topology {}.{} epoch {} step {}", coord::kRegistryEpoch, topology_revision_,
      topology_->fence.epoch, topology_->fence.step);
  return {};
}

Op Leader::checkpoint_op() const {
  return {Op::Kind::put, keys_.checkpoints() + topology_->resize->id, to_json(*checkpoint_), 0};
}

Status Leader::save_checkpoint() { return write({checkpoint_op()}); }

Status Leader::create_topology() {
  const auto kv = coordinator_.get(keys_.spec());
  if (!kv) return std::unexpected(kv.error());
  if (!*kv) return {};
  Result<topology::Spec> spec = topology::parse_spec((*kv)->value, keys_.spec());
  if (!spec) return std::unexpected(spec.error());
  Topology first;
  first.spec = std::move(*spec);
  return publish(std::move(first));
}

// A spec that changes no owner takes effect at once; one that does waits for `resize start`.
Status Leader::follow_spec() {
  const auto kv = view_.get(keys_.spec());
  if (!kv) return {};
  Result<topology::Spec> spec = topology::parse_spec(kv->value, keys_.spec());
  if (!spec) {
    status_.last_error = spec.error().message;
    return {};
  }
  if (*spec == topology_->spec || spec->cluster != topology_->spec.cluster) return {};
  const Result<topology::Diff> diff = topology::diff(topology_->spec, *spec);
  if (!diff) return std::unexpected(diff.error());
  if (diff->moved_share > 0 && spec->consistency != topology::Consistency::none) {
    status_.last_error = fmt::format(
        "the spec in the registry would move {:.2f} % of the keys: it takes effect by "
        "'ringshift resize start', not by itself",
        diff->moved_share * 100);
    return {};
  }
  Topology next = *topology_;
  next.spec = std::move(*spec);
  next.factors = factors_for(next.spec);
  // Our view may be behind, and of a registry that was set back it may show what is there no more.
  return publish(std::move(next), {}, {{keys_.spec(), Compare::Target::mod_revision, kv->mod_revision}});
}

// While no resize runs a member that the membership policy has ejected takes no key.
std::map<std::string, std::uint32_t> Leader::factors_for(const topology::Spec& spec) const {
  std::map<std::string, std::uint32_t> factors;
  if (spec.consistency == topology::Consistency::strict) return factors;
  const auto kv = view_.get(coord::ejected_key(keys_));
  if (!kv) return factors;
  const std::set<std::string> ejected = coord::parse_ejected(kv->value);
  for (const topology::Member& member : spec.members)
    if (ejected.contains(member.id)) factors[member.id] = 0;
  if (factors.size() == spec.members.size()) factors.clear();  // Somebody must take them.
  return factors;
}

Status Leader::follow_ejected() {
  std::map<std::string, std::uint32_t> factors = factors_for(topology_->spec);
  if (factors == topology_->factors) return {};
  Topology next = *topology_;
  next.factors = std::move(factors);
  return publish(std::move(next));
}

bool Leader::request_waits() const { return view_.get(keys_.request()).has_value(); }

Status Leader::answer_request(const KeyValue& kv, const Request& request, const Status& answer) {
  status_.request_id = request.id;
  status_.request_error = answer ? "" : answer.error().message;
  const std::vector<Compare> compares = {
      {keys_.controller(), Compare::Target::create_revision, lock_revision_},
      {keys_.request(), Compare::Target::mod_revision, kv.mod_revision}};
  const auto written =
      coordinator_.transact(compares, {{Op::Kind::remove, keys_.request(), "", 0},
                                       {Op::Kind::put, keys_.status(), to_json(current_status()), 0}});
  if (!written) return std::unexpected(written.error());
  return {};  // Changed meanwhile: the new request is handled next.
}

Status Leader::handle_request(const KeyValue& kv) {
  Result<Request> request = parse_request(kv.value);
  if (!request) return answer_request(kv, Request{}, std::unexpected(request.error()));
  if (request->action == Request::Action::start) {
    const bool replaces = request->replace && topology_ && topology_->resize;
    const Status started = replaces ? replace_running(*request) : start(*request, keys_.request());
    if (started && replaces) return answer_request(kv, *request, {});
    if (started) return {};  // Answered with the topology, in one transaction.
    if (started.error().kind == ErrorKind::stale) return started;
    base::log(LogLevel::warning, "resize refused: {}", started.error().message);
    note("refused", "start: " + started.error().message, request->by);
    if (!topology_ || !topology_->resize) checkpoint_.reset();  // start() had begun to fill one in.
    return answer_request(kv, *request, started);
  }
  const Status changed = change_checkpoint(*request);
  if (!changed) note("refused", changed.error().message, request->by);
  return answer_request(kv, *request, changed);
}

Status Leader::change_checkpoint(const Request& request) {
  if (!topology_ || !topology_->resize) return fail(ErrorKind::invalid, "no resize is running");
  switch (request.action) {
    case Request::Action::pause:
      checkpoint_->paused = true;
      break;
    case Request::Action::resume:
      status_.last_error.clear();
      return go_on(request.by);
    case Request::Action::rollback:
      return ask_rollback(request.by);
    case Request::Action::set_rate:
      if (request.keys_per_second == 0 && request.bytes_per_second == 0)
        return fail(ErrorKind::invalid, "set-rate: the rate must be above 0");
      if (request.keys_per_second != 0) checkpoint_->keys_per_second = request.keys_per_second;
      if (request.bytes_per_second != 0) checkpoint_->bytes_per_second = request.bytes_per_second;
      break;
    case Request::Action::big_keys:
      if (Status changed = change_big_keys(request); !changed) return changed;
      break;
    case Request::Action::lost:
      if (Status declared = declare_lost(request); !declared) return declared;
      break;
    case Request::Action::start:
      break;
  }
  status_.last_error.clear();
  if (Status saved = save_checkpoint(); !saved) return saved;
  if (request.action == Request::Action::lost) {
    std::string ids;
    for (const std::string& id : checkpoint_->lost) ids += (ids.empty() ? "" : ", ") + id;
    note("lost", fmt::format("{} without {}", checkpoint_->rollback ? "rolls back" : "goes on", ids),
         request.by);
  }
  if (request.action == Request::Action::big_keys)
    note("big-keys", fmt::format("big keys: {}", checkpoint_->big_key_policy), request.by);
  if (request.action == Request::Action::pause) note("pause", "pauses", request.by);
  if (request.action == Request::Action::set_rate) {
    const topology::Limits limits = limits_now();
    note("rate",
         fmt::format("at most {} keys/s, {} bytes/s", limits.move_keys_per_second,
                     limits.move_bytes_per_second),
         request.by);
  }
  return {};
}

Status Leader::ask_rollback(const std::string& by) {
  const bool under_way = checkpoint_->rollback || topology_->resize->rollback;
  if (under_way && !queued_) return fail(ErrorKind::invalid, "the resize is already being rolled back");
  if (Status back = check_back(*topology_, checkpoint_->lost, checkpoint_->opened); !back) return back;
  checkpoint_->rollback = true;
  checkpoint_->paused = false;
  std::vector<Op> ops = {checkpoint_op()};
  if (queued_) ops.push_back({Op::Kind::remove, keys_.next(), "", 0});
  if (Status written = write(std::move(ops)); !written) return written;
  note("rollback", queued_ ? "rolls back; the resize that was to follow is dropped" : "rolls back", by);
  queued_ = false;
  status_.last_error.clear();
  return {};
}

Status Leader::check_start(const Request& request) const {
  if (!topology_) return fail(ErrorKind::invalid, "the cluster has no topology yet: apply a spec first");
  if (topology_->resize && !request.replace) {
    return fail(
        ErrorKind::invalid,
        fmt::format("resize {} is running: wait for it ('ringshift resize watch'), take it back "
                    "('ringshift resize rollback'), or have it rolled back and this one started after "
                    "it, with --replace",
                    topology_->resize->id));
  }
  if (!request.spec) return fail(ErrorKind::invalid, "the request has no spec");
  const topology::Spec& from = topology_->spec;
  const topology::Spec& to = *request.spec;
  if (to.cluster != from.cluster) {
    return fail(ErrorKind::invalid,
                fmt::format("the spec is for cluster '{}', this is '{}'", to.cluster, from.cluster));
  }
  if (to.protocol != from.protocol || to.consistency != from.consistency) {
    return fail(ErrorKind::invalid, "a resize changes members and placement, not protocol or consistency");
  }
  if (to.protocol != topology::Protocol::redis || to.consistency == topology::Consistency::none) {
    return fail(
        ErrorKind::invalid,
        "a resize moves the data of Redis clusters with consistency strict or cache; where there is no "
        "data to move, 'ringshift topology apply' of the new spec is all");
  }
  if (from.databases != 1 || to.databases != 1) {
    return fail(ErrorKind::invalid,
                fmt::format("a resize moves database 0 only, and the {} spec has databases: {}; empty the "
                            "others and apply a spec without the field first",
                            from.databases != 1 ? "present" : "new",
                            from.databases != 1 ? from.databases : to.databases));
  }
  for (const topology::Member& member : to.members) {
    const auto before = std::ranges::find(from.members, member.id, &topology::Member::id);
    if (before != from.members.end() && before->address != member.address) {
      return fail(ErrorKind::invalid,
                  fmt::format("member {}: its address is {}, the new spec says {}; change addresses "
                              "first, by 'ringshift topology apply'",
                              member.id, before->address, member.address));
    }
  }
  return topology::check_succession(from, to, request.force);
}

// A stamp of a later step was written for another registry: ours is new, or was restored, or the member
// serves a second cluster. The member would refuse all our stamps, for ever. With --force we go on above it.
Status Leader::pass_stamps(Topology& now, const std::vector<topology::Member>& members, bool force) {
  for (const topology::Member& member : members) {
    const Result<std::string> stamp = members_.stamp(member);
    if (!stamp) return std::unexpected(stamp.error());
    const std::optional<transfer::StampStep> there = transfer::step_of_stamp(*stamp);
    // One ahead of us is our own start that could not be published.
    const transfer::StampStep next{topology_->fence.epoch + 1, topology_->fence.step + 1};
    if (!there || *there <= next) continue;
    if (!force) {
      return fail(
          ErrorKind::invalid,
          fmt::format(
              "member {} ({}): {} is '{}', and this registry knows of epoch {}, step {} only: the member "
              "is in another cluster, or this cluster's registry was lost; --force if it was lost",
              member.id, member.address, transfer::kStampKey, *stamp, topology_->fence.epoch,
              topology_->fence.step));
    }
    now.fence.epoch = std::max(now.fence.epoch, there->epoch);
    now.fence.step = std::max(now.fence.step, there->step);
  }
  return {};
}

// The operator's controls as a resize begins with them; the rest of the checkpoint is empty.
Result<Checkpoint> Leader::controls_of(const Request& request) {
  Checkpoint out;
  const std::vector<double> usual = request.lost.empty() ? kDefaultSteps : finer_steps({}, {});
  out.steps = request.steps.empty() ? usual : request.steps;
  if (Status checked = check_steps(out.steps); !checked) return std::unexpected(checked.error());
  Result<Window> window = make_window(request.at, request.until, unix_now());
  if (!window) return std::unexpected(window.error());
  out.window = *window;
  Result<std::vector<Condition>> conditions = parse_conditions(request.abort_if);
  if (!conditions) return std::unexpected(conditions.error());
  out.abort_if = std::move(*conditions);
  out.soak = request.soak;
  out.keys_per_second = request.keys_per_second;
  out.bytes_per_second = request.bytes_per_second;
  out.allow_foreign = request.allow_foreign;
  return out;
}

Status Leader::start(const Request& request, const std::string& consumed) {
  if (Status checked = check_start(request); !checked) return checked;
  const std::vector<std::string> lost = sorted_ids(request.lost);
  Result<Checkpoint> controls = controls_of(request);
  if (!controls) return std::unexpected(controls.error());
  members_.hang_up();  // A member that restarted, or closes idle connections, must not cost the operator a
                       // refusal.
  Topology now = *topology_;
  // A file that says nothing of its placement's table means the one in force, with the fewest changes.
  const Result<topology::Spec> target = plan::successor(topology_->spec, *request.spec);
  if (!target) return std::unexpected(target.error());
  if (Status gone = check_lost(request, *target); !gone) return gone;
  const std::vector<topology::Member> members = without_lost(all_members(begin(now, *target, "", {})), lost);
  if (Status passed = pass_stamps(now, members, request.force); !passed) return passed;
  const std::string id = fmt::format("{}-{}", now.fence.epoch + 1, topology_revision_);
  Topology next = begin(now, *target, id, {});
  next.resize->lost = lost;
  // As every reader will judge it: a document that they refuse would stop the cluster for good.
  if (const auto readable = topology::parse_topology(topology::to_json(next), "the resize"); !readable) {
    return std::unexpected(readable.error());
  }
  if (Status checked = check_members(next, request.allow_foreign); !checked) return checked;
  if (Status checked = check_memory(next, *target); !checked) return checked;
  Result<RunIds> run_ids = members_.run_ids(members);
  if (!run_ids) return std::unexpected(run_ids.error());
  if (Status own = check_one_server_each(*run_ids); !own) return own;
  next.fence.run_ids = std::move(*run_ids);

  checkpoint_ = std::move(*controls);
  checkpoint_->target = *target;
  if (Status taken = change_big_keys(request); !taken) return taken;
  if (!request.verify.empty() && !transfer::verify_by_name(request.verify)) {
    return fail(ErrorKind::invalid,
                fmt::format("--verify: '{}' is none of counts, sample, all", request.verify));
  }
  if (!request.verify.empty()) checkpoint_->verify = request.verify;
  checkpoint_->lost = lost;
  checkpoint_->origin_budget = request.origin_budget;
  status_ = ResizeStatus{};
  status_.id = id;
  abort_watch_ = {};
  error_noted_.clear();
  pulls_seen_.clear();
  pulled_bytes_seen_.clear();
  count_pulls();
  checkpoint_->keys_moved = checkpoint_->bytes_moved = 0;
  estimate_keys_to_move(topology_->spec, *target);

  if (request.expire) {
    if (Status measured = measure_before_start(next, request); !measured) return measured;
  }

  // Stamped before anybody is fenced (I4), and with every gate closed.
  if (Status closed = members_.set_stamps(members, next.fence, Gate::closed); !closed) return closed;
  std::vector<Op> also = {{Op::Kind::put, keys_.checkpoints() + id, to_json(*checkpoint_), 0},
                          {Op::Kind::remove, consumed, "", 0}};
  std::vector<Op> entry = log_ops_of(
      id, "accepted",
      fmt::format("from {} members to {}, {} steps{}{}{}", topology_->spec.members.size(),
                  target->members.size(), checkpoint_->steps.size(),
                  checkpoint_->soak.count() == 0 ? "" : ", soak " + duration_text(checkpoint_->soak),
                  checkpoint_->window.always() ? "" : ", " + to_text(checkpoint_->window),
                  checkpoint_->abort_if.empty() ? "" : ", abort if " + to_text(checkpoint_->abort_if)),
      request.by);
  also.insert(also.end(), entry.begin(), entry.end());
  if (Status published = publish(std::move(next), std::move(also)); !published) {
    return fail(ErrorKind::stale, published.error().message);
  }
  base::log(LogLevel::info, "resize {} begins: {} members to {}", id, topology_->spec.members.size(),
            checkpoint_->target.members.size());
  status_.request_id = request.id;  // Only now is it accepted.
  tell(true);
  return {};
}

}  // namespace ringshift::resize
