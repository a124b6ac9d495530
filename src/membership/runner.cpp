#include "membership/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backend/sync_client.h"
#include "base/log.h"
#include "coord/ejected.h"
#include "coord/membership_keys.h"
#include "coord/stored_topology.h"
#include "membership/admit.h"
#include "plan/edit.h"
#include "resize/ask.h"
#include "resize/controls.h"
#include "topology/discovery.h"

namespace ringshift::membership {

using base::LogLevel;
using discovery::Instance;

namespace {

constexpr std::string_view kPolicyAsks = "policy";  // Who asks, in the resize's log.

bool answers(const topology::Member& member, const std::shared_ptr<const backend::MemberAccess>& access) {
  backend::SyncOptions options;
  options.request_timeout = std::chrono::milliseconds(1000);
  options.name = "rs:observer";
  options.access = access;
  auto client = backend::SyncClient::connect(member.address, options);
  return client && (*client)->call({"PING"}).has_value();
}

}  // namespace

Runner::Runner(coord::Coordinator& coordinator, coord::ClusterKeys keys, Options options,
               MakeSource make_source)
    : coordinator_(coordinator),
      keys_(std::move(keys)),
      options_(std::move(options)),
      make_source_(std::move(make_source)),
      view_(coordinator, keys_),
      thread_([this] { work(); }) {}

Runner::~Runner() {
  stopping_ = true;
  view_.ring();
  thread_.join();
  drop_source();
}

void Runner::instances(const std::vector<Instance>& all) {
  const std::lock_guard lock(mutex_);
  seen_ = all;
}

// As of now it is told by the guard's state; this is the moment.
void Runner::trouble(const Error& why) {
  base::log(LogLevel::warning, "membership: nothing changes meanwhile: {}", why.message);
}

void Runner::drop_source() {
  source_.reset();
  guard_.reset();
  const std::lock_guard lock(mutex_);
  seen_.reset();
}

Runner::SourceState Runner::source_state(base::TimePoint now) const {
  SourceState out;
  out.age = now - source_wanted_;  // Until there is a list.
  if (!source_error_.empty() || !source_) {
    out.trouble = source_error_.empty() ? "there is no source yet" : source_error_;
    return out;
  }
  const discovery::Guard::State guard = guard_->state();
  if (guard.age) out.age = *guard.age;
  out.answers = guard.trouble.empty() && (guard.age || guard.held);
  out.held = guard.held.has_value();
  if (!guard.trouble.empty()) {
    out.trouble = guard.trouble;
  } else if (guard.held) {
    out.trouble = fmt::format("it {}: held until that stays so", guard.held->text());
  } else if (!guard.age) {
    out.trouble = "it has not answered yet";
  }
  return out;
}

// An operator's word on the list that is held. It is about what he was shown, and nothing else; once read it
// is taken away, when the next report says what came of it.
void Runner::heed_operator(const SourceState& source) {
  const std::string key = coord::confirm_key(keys_);
  const auto word = view_.get(key);
  if (!word || word->mod_revision == heeded_) return;
  if (confirm_pending_ != word->mod_revision) {
    const bool right = source.held && guard_ && confirmed_of(word->value) == source.trouble;
    if (right) static_cast<void>(guard_->confirm());
    base::log(LogLevel::warning, "membership: an operator confirms the list that is held{}",
              right ? "" : ": it is another one by now, which stays held");
    confirm_pending_ = word->mod_revision;  // The report of the next look comes first.
    return;
  }
  if (coordinator_.remove(key)) heeded_ = word->mod_revision;  // Our view may show it a little longer.
}

void Runner::work() {
  while (!stopping_) {
    tick();
    static_cast<void>(view_.wait(kTick, [this] { return stopping_.load(); }));
  }
}

bool Runner::leads() const {
  const auto lock = view_.get(keys_.controller());
  return lock && lock->value == options_.controller_id;
}

void Runner::rest() {
  drop_source();
  discovery_.reset();
  words_.clear();
  leading_ = false;
  figures_.rests();
}

// Who was seen by the leader before us may be found gone by us.
void Runner::load_memory() {
  memory_ = {};
  seen_in_.clear();
  told_.clear();
  last_report_ = {};
  last_change_ = {};
  last_error_.clear();
  if (const auto kv = view_.get(coord::ejected_key(keys_))) memory_.ejected = coord::parse_ejected(kv->value);
  const auto kv = view_.get(coord::membership_key(keys_));
  if (!kv) return;
  Result<Report> before = parse_report(kv->value);
  if (!before) return;
  memory_.seen = before->seen;
  seen_in_ = before->source;
  last_change_ = before->last_change;
  last_error_ = before->last_error;
  last_report_ = *std::move(before);
}

// Who was never seen where we look now is not gone from there.
void Runner::look_elsewhere(const std::string& source) {
  if (seen_in_ == source) return;
  memory_.seen.clear();
  seen_in_ = source;
}

// Whose instances stood in the list when somebody looked last, us or the leader before us: a first list that
// lacks most of them is no more to be believed than a later one.
std::vector<std::string> Runner::expected() const {
  std::vector<std::string> ids;
  for (const std::string& id : memory_.seen)
    if (std::ranges::find(last_report_.gone, id, &Report::GoneMember::id) == last_report_.gone.end())
      ids.push_back(id);
  return ids;
}

bool Runner::follow_spec(base::TimePoint now) {
  const auto kv = view_.get(coord::discovery_key(keys_));
  if (!kv) {
    eject({});
    rest();
    return false;
  }
  if (kv->value != words_) {
    auto parsed = topology::parse_discovery(kv->value, kv->key);
    words_ = kv->value;
    if (!parsed) {
      base::log(LogLevel::error, "membership: the policy in force stays: {}", parsed.error().message);
    } else {
      const bool same_source = discovery_ && discovery_->source == parsed->source;
      discovery_ = std::move(*parsed);
      if (!same_source) {
        drop_source();
        source_tried_ = {};
        source_wanted_ = now;
        source_error_.clear();
      }
    }
  }
  if (!discovery_) return false;
  if (source_ || (source_tried_ != base::TimePoint{} && now - source_tried_ < kSourceRetry)) return true;
  source_tried_ = now;
  drop_source();
  discovery::Sink& here = *this;  // Our base is private to others.
  auto made = make_source_(discovery_->source);
  if (made) look_elsewhere((*made)->describe());
  guard_ = std::make_unique<discovery::Guard>(here, discovery::Guard::kConfirmAfter, expected());
  Status started = made ? (*made)->start(*guard_) : Status(std::unexpected(made.error()));
  if (!started) {
    if (std::exchange(source_error_, started.error().message) != started.error().message)
      base::log(LogLevel::error, "membership: {}", started.error().message);
    source_name_ = discovery_->source.kind;
    return true;
  }
  source_error_.clear();
  source_ = std::move(*made);
  source_name_ = source_->describe();
  base::log(LogLevel::info, "membership: watching {}, admission is {}", source_name_,
            discovery_->admit_auto ? "automatic" : "an operator's");
  return true;
}

void Runner::tick() {
  const base::TimePoint now = std::chrono::steady_clock::now();
  if (!leads()) return rest();
  if (!std::exchange(leading_, true)) load_memory();
  if (!follow_spec(now)) return;
  const auto kv = view_.get(keys_.topology());
  if (!kv) return;
  const auto stored = coord::parse_stored(*kv);
  if (!stored) return;
  std::vector<Instance> instances;
  SourceState source = source_state(now);
  {
    const std::lock_guard lock(mutex_);
    if (seen_) instances = *seen_;
    if (source.trouble.empty() && !seen_) source.trouble = "it has not answered yet";
  }
  std::set<std::string> drained;
  const std::string prefix = coord::drained_prefix(keys_);
  for (const auto& [key, mark] : view_.under(prefix)) drained.insert(key.substr(prefix.size()));
  const Situation situation{.discovery = *discovery_,
                            .spec = stored->topology.spec,
                            .resizing = stored->topology.resize.has_value() || view_.get(keys_.request()) ||
                                        view_.get(keys_.next()),
                            .source_well = source.trouble.empty(),
                            .instances = instances,
                            .drained = drained};
  const Decision decision = decide(situation, now, memory_);
  eject(decision.ejected);
  show(source, instances, decision);
  tell(source, decision, now);
  heed_operator(source);
  if (decision.admit || decision.remove) act(stored->topology.spec, decision);
}

// What cannot be written now is by the next look.
void Runner::eject(const std::set<std::string>& ids) {
  const std::string key = coord::ejected_key(keys_);
  const auto there = view_.get(key);
  const std::set<std::string> before = there ? coord::parse_ejected(there->value) : std::set<std::string>{};
  if (ids == before) return;
  if (!(ids.empty() ? coordinator_.remove(key) : coordinator_.put(key, coord::ejected_json(ids)))) return;
  for (const std::string& id : ids)
    if (!before.contains(id))
      base::log(LogLevel::warning, "membership: member {} is gone: the next ones take its keys", id);
  for (const std::string& id : before)
    if (!ids.contains(id)) base::log(LogLevel::info, "membership: member {} takes its keys again", id);
}

void Runner::act(const topology::Spec& spec, const Decision& decision) {
  const Status done = ask(spec, decision);
  const std::string what = decision.remove ? "member " + *decision.remove + " leaves by policy"
                                           : "instance " + decision.admit->id + " is admitted by policy";
  const std::string& id = decision.remove ? *decision.remove : decision.admit->id;
  changed(memory_, id, done.has_value());
  last_change_ = {id, !decision.remove, resize::unix_now()};
  figures_.count(!done ? Outcome::refused : decision.remove ? Outcome::removed : Outcome::admitted);
  if (done) {
    last_error_.clear();
    base::log(LogLevel::warning, "membership: {}", what);
    return;
  }
  last_error_ = fmt::format("{}: refused: {}", what, done.error().message);
  base::log(LogLevel::warning, "membership: {}; again after the cool-down", last_error_);
}

Status Runner::ask(const topology::Spec& spec, const Decision& decision) {
  plan::Edit edit;
  resize::Request request;
  request.action = resize::Request::Action::start;
  request.by = std::string(kPolicyAsks);
  if (decision.remove) {
    edit.remove = {*decision.remove};
    // With its server running only its agent is gone: its keys can be moved. Else they are lost, and said to
    // be.
    const auto member = std::ranges::find(spec.members, *decision.remove, &topology::Member::id);
    if (member != spec.members.end() && !answers(*member, options_.access)) request.lost = {*decision.remove};
  } else {
    edit.add = {*decision.admit};
  }
  Result<topology::Spec> target = plan::edit(spec, edit);
  if (!target) return std::unexpected(target.error());
  if (spec.consistency == topology::Consistency::none) return write_spec(spec, *target);
  request.spec = std::move(*target);
  return resize::ask_controller(coordinator_, keys_, std::move(request), resize::kControllerAnswer,
                                &stopping_);
}

// Where there is no data to move there is no resize: what changes is the spec, as by 'topology apply'.
Status Runner::write_spec(const topology::Spec& from, const topology::Spec& to) {
  using coord::Compare;
  const auto spec = view_.get(keys_.spec());
  const auto topology = view_.get(keys_.topology());
  if (!spec || !topology) return fail(ErrorKind::stale, "the spec is not in the registry any more");
  const auto wanted = topology::parse_spec(spec->value, spec->key);
  const auto stored = coord::parse_stored(*topology);
  if (!wanted || !stored || *wanted != from || stored->topology.spec != from)
    return fail(ErrorKind::stale, "an operator's spec is being put into force");
  const auto written =
      coordinator_.transact({{spec->key, Compare::Target::mod_revision, spec->mod_revision},
                             {topology->key, Compare::Target::mod_revision, topology->mod_revision}},
                            {{coord::Op::Kind::put, spec->key, topology::to_json(to), 0}});
  if (!written) return std::unexpected(written.error());
  if (!*written) return fail(ErrorKind::stale, "somebody else changed the spec meanwhile");
  return {};
}

void Runner::show(const SourceState& source, const std::vector<Instance>& instances,
                  const Decision& decision) {
  PolicyFigures::Look look;
  look.source_kind = discovery_->source.kind;
  look.source_answers = source.answers;
  look.held = source.held;
  look.source_age_seconds = std::max(0.0, std::chrono::duration<double>(source.age).count());
  for (const Instance& instance : instances) ++look.instances[static_cast<std::size_t>(instance.state)];
  for (const Candidate& candidate : decision.candidates)
    ++(candidate.why_not.empty() ? look.fit : look.unfit);
  look.gone = decision.gone.size();
  look.elsewhere = decision.elsewhere.size();
  figures_.looked(std::move(look));
}

Report Runner::report_of(const SourceState& source, const Decision& decision) {
  const std::int64_t now_ms = resize::unix_now();
  const auto ms = [](base::Duration time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  };
  Report report;
  report.source = source_name_;
  report.trouble = source.trouble;
  if (!source.trouble.empty())
    report.trouble_since_ms = same_moment(last_report_.trouble_since_ms, now_ms - ms(source.age));
  report.held = source.held && source.answers;
  report.last_error = last_error_;
  report.admit_auto = discovery_->admit_auto;
  report.last_change = last_change_;
  if (decision.cooldown_left.count() > 0) {
    report.cooldown_until_ms =
        same_moment(last_report_.cooldown_until_ms, now_ms + ms(decision.cooldown_left));
  }
  report.seen = memory_.seen;
  report.candidates = decision.candidates;
  if (report.candidates.size() > kCandidatesTold) {
    report.candidates_more = report.candidates.size() - kCandidatesTold;
    report.candidates.resize(kCandidatesTold);
  }
  for (const Gone& gone : decision.gone) {
    const auto before = std::ranges::find(last_report_.gone, gone.id, &Report::GoneMember::id);
    const Report::GoneMember known = before == last_report_.gone.end() ? Report::GoneMember{} : *before;
    report.gone.push_back(
        {gone.id, gone.waits_for, gone.code, same_moment(known.since_ms, now_ms - ms(gone.since)),
         gone.leaves_in ? same_moment(known.leaves_at_ms, now_ms + ms(*gone.leaves_in)) : 0, gone.ejected});
  }
  report.elsewhere = decision.elsewhere;
  return report;
}

void Runner::tell(const SourceState& source, const Decision& decision, base::TimePoint now) {
  Report report = report_of(source, decision);
  const bool just_told = told_at_ != base::TimePoint{} && now - told_at_ < kReportEvery;
  if (just_told && essence(report) == essence(last_report_)) return;
  std::string json = to_json(report);
  if (json == told_) return;
  if (!coordinator_.put(coord::membership_key(keys_), json)) return;
  last_report_ = std::move(report);
  told_ = std::move(json);
  told_at_ = now;
}

}  // namespace ringshift::membership
