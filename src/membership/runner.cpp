#include "membership/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backend/sync_client.h"
#include "base/log.h"
#include "coord/membership_keys.h"
#include "coord/stored_topology.h"
#include "plan/edit.h"
#include "resize/ask.h"
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

std::string Runner::source_trouble() const {
  if (!source_error_.empty()) return source_error_;
  if (!source_) return "there is no source yet";
  const discovery::Guard::State state = guard_->state();
  if (!state.trouble.empty()) return state.trouble;
  if (state.held) {
    return fmt::format("it shows {} instances, without {} of the {} before: held until that stays so",
                       state.held->seen, state.held->missing, state.held->of);
  }
  return {};
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
}

// Who was seen by the leader before us may be found gone by us.
void Runner::load_memory() {
  memory_ = {};
  const auto kv = view_.get(coord::membership_key(keys_));
  if (!kv) return;
  if (const Result<Report> before = parse_report(kv->value)) memory_.seen = before->seen;
}

bool Runner::follow_spec(base::TimePoint now) {
  const auto kv = view_.get(coord::discovery_key(keys_));
  if (!kv) {
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
        source_error_.clear();
      }
    }
  }
  if (!discovery_) return false;
  if (source_ || (source_tried_ != base::TimePoint{} && now - source_tried_ < kSourceRetry)) return true;
  source_tried_ = now;
  drop_source();
  discovery::Sink& here = *this;  // Our base is private to others.
  guard_ = std::make_unique<discovery::Guard>(here);
  auto made = make_source_(discovery_->source);
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
  std::string trouble = source_trouble();
  {
    const std::lock_guard lock(mutex_);
    if (seen_) instances = *seen_;
    if (trouble.empty() && !seen_) trouble = "it has not answered yet";
  }
  std::set<std::string> drained;
  const std::string prefix = coord::drained_prefix(keys_);
  for (const auto& [key, mark] : view_.under(prefix)) drained.insert(key.substr(prefix.size()));
  const Situation situation{.discovery = *discovery_,
                            .spec = stored->topology.spec,
                            .resizing = stored->topology.resize.has_value() || view_.get(keys_.request()) ||
                                        view_.get(keys_.next()),
                            .source_well = trouble.empty(),
                            .instances = instances,
                            .drained = drained};
  const Decision decision = decide(situation, now, memory_);
  tell(decision, trouble, now);
  if (decision.admit || decision.remove) act(stored->topology.spec, decision);
}

void Runner::act(const topology::Spec& spec, const Decision& decision) {
  const Status done = ask(spec, decision);
  changed(memory_);
  const std::string what = decision.remove ? "member " + *decision.remove + " leaves by policy"
                                           : "instance " + decision.admit->id + " is admitted by policy";
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
  request.spec = std::move(*target);
  return resize::ask_controller(coordinator_, keys_, std::move(request), resize::kControllerAnswer,
                                &stopping_);
}

void Runner::tell(const Decision& decision, const std::string& trouble, base::TimePoint now) {
  if (told_at_ != base::TimePoint{} && now - told_at_ < kReportEvery) return;
  Report report;
  report.source = source_name_;
  report.trouble = trouble;
  report.last_error = last_error_;
  report.admit_auto = discovery_->admit_auto;
  report.seen = memory_.seen;
  report.candidates = decision.candidates;
  if (report.candidates.size() > kCandidatesTold) {
    report.candidates_more = report.candidates.size() - kCandidatesTold;
    report.candidates.resize(kCandidatesTold);
  }
  for (const Gone& gone : decision.gone) report.gone.push_back({gone.id, gone.waits_for});
  std::string json = to_json(report);
  if (json == told_) return;
  if (!coordinator_.put(coord::membership_key(keys_), json)) return;
  told_ = std::move(json);
  told_at_ = now;
}

}  // namespace ringshift::membership
