#include "admin/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "admin/membership_view.h"
#include "base/encoding.h"
#include "base/log.h"
#include "coord/membership_keys.h"
#include "coord/topology_changes.h"

namespace ringshift::admin {
namespace {

// The first word of a key's name: "routers" of "routers/p1".
std::string first_word(std::string_view name) { return std::string(name.substr(0, name.find('/'))); }

std::string resize_object(const std::optional<topology::Resize>& resize) {
  if (!resize) return std::string(kNull);
  constexpr const char* kPhases[] = {"prep", "hold", "dual"};
  return Object()
      .add("id", string_json(resize->id))
      .add("rollback", truth(resize->rollback))
      .add("phase", string_json(kPhases[static_cast<std::size_t>(resize->phase)]))
      .add("done", whole(std::uint64_t{topology::count(resize->done)}))
      .add("active", whole(std::uint64_t{topology::count(resize->active)}))
      .add("members", whole(std::uint64_t{resize->members.size()}))
      .text();
}

// The shares of a spec's members by id; with what is not exact told.
std::map<std::string, double> shares_of(const topology::Spec& spec, bool& exact) {
  std::map<std::string, double> out;
  const Result<topology::Shares> shares = topology::shares(spec);
  if (!shares) {
    exact = false;
    return out;
  }
  exact = exact && shares->exact;
  for (std::size_t i = 0; i < spec.members.size(); ++i) out[spec.members[i].id] = shares->shares[i];
  return out;
}

}  // namespace

Picture::Picture(coord::ClusterKeys keys, PictureNames names)
    : keys_(std::move(keys)), names_(std::move(names)) {}

void Picture::reset(const coord::Range& range, Moment now) {
  // Figures of routers that are still there go on.
  std::map<std::string, Router> routers = std::move(routers_);
  std::erase_if(routers, [&](const auto& entry) {
    return std::ranges::find(range.kvs, keys_.router(entry.first), &coord::KeyValue::key) == range.kvs.end();
  });
  routers_ = std::move(routers);
  instances_.clear();
  key_counts_.clear();
  known_keys_.clear();
  stored_.reset();
  snapshot_.reset();
  spec_.reset();
  history_.clear();
  history_keys_.clear();
  last_past_.reset();
  logs_.clear();
  audit_.clear();
  if (controller_ || controller_lost_ms_ == 0) controller_lost_ms_ = now.unix_ms;
  controller_.reset();
  controller_since_ms_.reset();
  origin_reported_.reset();
  take_membership(coord::discovery_key(keys_), "");
  take_membership(coord::membership_key(keys_), "");
  pending_.clear();
  history_changed_ = logs_changed_ = audit_changed_ = fresh_start_ = true;
  cluster_id_ = range.cluster_id;
  revision_ = range.revision;
  bool has_status = false;
  for (const coord::KeyValue& kv : range.kvs) {
    has_status = has_status || kv.key == keys_.status();
    take(kv, now, /*news=*/false);
  }
  if (!has_status) status_ = {};
  connection(true, "", now);
}

void Picture::apply(const coord::Event& event, Moment now) {
  revision_ = std::max(revision_, event.kv.mod_revision);
  if (event.kind == coord::Event::Kind::put) {
    take(event.kv, now, /*news=*/true);
  } else {
    forget(event.kv.key, now);
  }
}

void Picture::connection(bool connected, std::string why, Moment now) {
  if (connected != connected_ || connection_since_ms_ == 0) connection_since_ms_ = now.unix_ms;
  connected_ = connected;
  connection_error_ = std::move(why);
}

void Picture::take(const coord::KeyValue& kv, Moment now, bool news) {
  if (!kv.key.starts_with(keys_.prefix)) return;
  const std::string_view name = std::string_view(kv.key).substr(keys_.prefix.size());
  if (known_keys_.insert(std::string(name)).second) ++key_counts_[first_word(name)];
  if (kv.key == keys_.topology()) return take_topology(kv, now);
  if (kv.key == keys_.spec()) {
    spec_ = std::make_shared<const coord::KeyValue>(kv);
  } else if (kv.key == keys_.status()) {
    take_status(kv, now);
  } else if (kv.key == keys_.controller()) {
    if (news && (!controller_ || controller_->create_revision != kv.create_revision))
      controller_since_ms_ = now.unix_ms;
    controller_ = kv;
  } else if (kv.key == keys_.origin()) {
    double qps = 0;
    const auto [end, code] = std::from_chars(kv.value.data(), kv.value.data() + kv.value.size(), qps);
    origin_reported_ = code == std::errc() && std::isfinite(qps) ? std::optional(qps) : std::nullopt;
    origin_reported_ms_ = now.unix_ms;
  } else if (kv.key == coord::discovery_key(keys_) || kv.key == coord::membership_key(keys_)) {
    take_membership(kv.key, kv.value);
  } else if (kv.key.starts_with(keys_.routers())) {
    take_router(kv, now);
  } else if (kv.key.starts_with(keys_.history())) {
    take_history(kv, now, news);
  } else if (kv.key.starts_with(keys_.log())) {
    take_log(kv, news);
  } else if (kv.key.starts_with(audit_prefix(keys_))) {
    take_audit(kv, news);
  } else if (kv.key.starts_with(keys_.instances())) {
    instances_[kv.key.substr(keys_.instances().size())] = kv;
  }
}

void Picture::forget(const std::string& key, Moment now) {
  if (!key.starts_with(keys_.prefix)) return;
  const std::string name = key.substr(keys_.prefix.size());
  if (known_keys_.erase(name) > 0) {
    const auto count = key_counts_.find(first_word(name));
    if (count != key_counts_.end() && --count->second == 0) key_counts_.erase(count);
  }
  if (key == keys_.topology()) {
    stored_.reset();
    snapshot_.reset();
  } else if (key == keys_.spec()) {
    spec_.reset();
  } else if (key == keys_.status()) {
    status_ = {};
  } else if (key == keys_.controller()) {
    controller_.reset();
    controller_since_ms_.reset();
    controller_lost_ms_ = now.unix_ms;
  } else if (key == keys_.origin()) {
    origin_reported_.reset();
  } else if (key == coord::discovery_key(keys_) || key == coord::membership_key(keys_)) {
    take_membership(key, "");
  } else if (key.starts_with(keys_.routers())) {
    routers_.erase(key.substr(keys_.routers().size()));
  } else if (key.starts_with(keys_.history())) {
    if (const auto found = history_keys_.find(name); found != history_keys_.end()) {
      history_.erase(found->second);
      history_keys_.erase(found);
      history_changed_ = true;
    }
  } else if (key.starts_with(keys_.log())) {
    // Entries go from the oldest on.
    const resize::DecisionPlace place = resize::place_of_decision(keys_, key);
    const auto log = logs_.find(place.resize_id);
    if (log == logs_.end()) return;
    log->second.erase(log->second.begin());
    if (log->second.empty()) logs_.erase(log);
    logs_changed_ = true;
  } else if (key.starts_with(audit_prefix(keys_))) {
    audit_.erase(key.substr(audit_prefix(keys_).size()));
    audit_changed_ = true;
  } else if (key.starts_with(keys_.instances())) {
    instances_.erase(key.substr(keys_.instances().size()));
  }
}

void Picture::take_membership(const std::string& key, std::string value) {
  (key == coord::membership_key(keys_) ? membership_ : discovery_) = std::move(value);
  report_.reset();
  membership_changed_ = true;
  if (discovery_.empty() || membership_.empty()) return;
  if (auto report = membership::parse_report(membership_)) report_ = *std::move(report);
}

void Picture::take_topology(const coord::KeyValue& kv, Moment now) {
  Result<coord::StoredTopology> stored = coord::parse_stored(kv);
  if (!stored) {
    base::log(base::LogLevel::warning, "admin: {}", stored.error().message);
    return;
  }
  auto compiled = topology::Snapshot::compile(stored->topology, stored->version, snapshot_.get());
  if (!compiled) {
    base::log(base::LogLevel::warning, "admin: {}: {}", kv.key, compiled.error().message);
    return;
  }
  stored_ = std::make_shared<const coord::StoredTopology>(*std::move(stored));
  snapshot_ = *std::move(compiled);
  topology_seen_ms_ = now.unix_ms;
  update_shares();
}

void Picture::update_shares() {
  const topology::Topology& topology = stored_->topology;
  std::optional<std::pair<topology::Placement, std::vector<topology::Member>>> after;
  if (topology.resize) after.emplace(topology.resize->placement, topology.resize->members);
  if (shares_.before == topology.spec && shares_.after == after) return;
  bool exact = topology.factors.empty();
  shares_.now = shares_of(topology.spec, exact);
  shares_.target.clear();
  if (after) {
    topology::Spec target = topology.spec;
    target.placement = after->first;
    target.members = after->second;
    shares_.target = shares_of(target, exact);
  }
  shares_.before = topology.spec;
  shares_.after = std::move(after);
  shares_.exact = exact;
}

// The newest entry is the topology in force: both are written at once, so that their revisions are the same.
void Picture::take_history(const coord::KeyValue& kv, Moment now, bool news) {
  const Result<coord::StoredTopology> stored = coord::parse_stored(kv);
  if (!stored) return;
  PastTopology past;
  past.revision = kv.mod_revision;
  past.json = std::make_shared<const std::string>(kv.value);
  past.digest = topology::digest(stored->topology);
  past.algorithm = stored->topology.spec.placement.algorithm;
  past.members = stored->topology.spec.members.size();
  past.resize = resize_object(stored->topology.resize);
  if (last_past_) past.changes = coord::topology_changes(*last_past_, stored->topology);
  if (news) past.seen_at_ms = now.unix_ms;
  last_past_ = stored->topology;
  history_keys_[kv.key.substr(keys_.prefix.size())] = kv.mod_revision;
  if (news) pending_.push_back({Topic::topology, past_text(past, kv.mod_revision)});
  history_[kv.mod_revision] = std::move(past);
  history_changed_ = true;
}

void Picture::take_log(const coord::KeyValue& kv, bool news) {
  const resize::DecisionPlace place = resize::place_of_decision(keys_, kv.key);
  const Result<resize::Decision> decision = resize::parse_decision(kv.value);
  if (place.resize_id.empty() || !decision) return;
  logs_[place.resize_id].push_back(*decision);
  logs_changed_ = true;
  if (news) pending_.push_back({Topic::log, decision_text(place.resize_id, *decision)});
}

void Picture::take_audit(const coord::KeyValue& kv, bool news) {
  const std::string id = kv.key.substr(audit_prefix(keys_).size());
  const Result<AuditEntry> entry = parse_audit(id, kv.value);
  if (!entry) return;
  if (news) pending_.push_back({Topic::audit, audit_text(*entry)});
  audit_[id] = *entry;
  audit_changed_ = true;
}

void Picture::take_status(const coord::KeyValue& kv, Moment now) {
  const Result<resize::ResizeStatus> status = resize::parse_status(kv.value);
  if (!status) return;
  // A resize that was over before we came makes no mark.
  if (last_ != nullptr) {
    const std::size_t added = series_.follow(status_, *status, now.unix_ms);
    const auto& marks = series_.marks();
    for (std::size_t i = marks.size() - added; i < marks.size(); ++i)
      pending_.push_back({Topic::mark, mark_text(marks[i])});
    series_changed_ = series_changed_ || added > 0;
  }
  status_ = *status;
}

void Picture::take_router(const coord::KeyValue& kv, Moment now) {
  Result<coord::RouterRecord> record = coord::parse_router_record(kv.value);
  if (!record) return;
  Router& router = routers_[kv.key.substr(keys_.routers().size())];
  if (router.revision == kv.mod_revision) return;  // A range that brought no news.
  router.revision = kv.mod_revision;
  router.lease = kv.lease;
  router.updated_ms = now.unix_ms;
  router.history.add(std::make_shared<const coord::RouterRecord>(*std::move(record)), now.steady);
}

std::vector<topology::Member> Picture::members_to_ask() const {
  if (!snapshot_ || snapshot_->topology().spec.protocol != topology::Protocol::redis) return {};
  const auto members = snapshot_->members();
  std::vector<topology::Member> out(members.begin(), members.end());
  if (const auto& resize = snapshot_->topology().resize) {
    std::erase_if(out, [&](const topology::Member& member) {
      return std::ranges::binary_search(resize->lost, member.id);
    });
  }
  return out;
}

void Picture::sum_up(Moment now) {
  totals_ = {};
  const auto add = [](std::optional<RouterRates>& sum, const std::optional<RouterRates>& one) {
    if (!one) return;
    if (!sum) sum.emplace();
    sum->requests += one->requests;
    sum->hits += one->hits;
    sum->misses += one->misses;
    sum->errors += one->errors;
    sum->bytes_in += one->bytes_in;
    sum->bytes_out += one->bytes_out;
    sum->keys_pulled += one->keys_pulled;
  };
  for (const auto& [id, router] : routers_) {
    if (!router.history.fresh(now.steady)) continue;
    add(totals_.now, router.history.rates(now.steady, RouterHistory::kShortest));
    add(totals_.smooth, router.history.rates(now.steady, RouterHistory::kSmooth));
    totals_.p99_ms = std::max(totals_.p99_ms, router.history.last().p99_ms);
    totals_.clients += router.history.last().clients;
  }
}

// What has as many parts as there are members or routers.
void Picture::build_slow_parts(State& state, Moment now) {
  slow_at_ = now.steady;
  std::string news = member_texts_.update(member_objects(now));
  if (!news.empty() || !last_) {
    auto texts = std::make_shared<std::map<std::string, std::string>>();
    for (const auto& [id, object] : member_texts_.known()) texts->emplace(id, object.text());
    state.members = std::move(texts);
    if (!news.empty()) say(state, Topic::members, std::move(news));
  }
  news = router_texts_.update(router_objects(now));
  if (!news.empty()) say(state, Topic::routers, std::move(news));
  std::vector<std::string> routers;
  for (const auto& [id, object] : router_texts_.known()) routers.push_back(object.text());
  state.routers =
      std::make_shared<const std::string>(Object()
                                              .add("version", string_json(version_text()))
                                              .add("digest", string_json(snapshot_ ? snapshot_->digest : ""))
                                              .add("routers", list(routers))
                                              .text());
  std::string hot = hot_keys_text(now);
  if (!last_ || hot != *last_->hot_keys) {
    state.hot_keys = std::make_shared<const std::string>(hot);
    say(state, Topic::hot_keys, std::move(hot));
  }
}

std::shared_ptr<const State> Picture::build(Moment now) {
  auto state = std::make_shared<State>();
  if (last_) *state = *last_;
  state->number = last_ ? last_->number + 1 : 1;
  state->at_ms = now.unix_ms;
  state->fresh_start = std::exchange(fresh_start_, false);
  state->news = std::exchange(pending_, {});
  const bool topology_changed = state->stored != stored_;
  state->stored = stored_;
  state->snapshot = snapshot_;
  state->spec = spec_;
  state->connected = connected_;
  state->connection_error = connection_error_;
  if (!last_ || state->status != status_) {
    state->status = status_;
    state->resize = std::make_shared<const std::string>(resize::to_json(status_));
    say(*state, Topic::resize, *state->resize);
  }
  if (std::exchange(history_changed_, false))
    state->history = std::make_shared<const std::map<coord::Revision, PastTopology>>(history_);
  if (std::exchange(logs_changed_, false)) state->logs = std::make_shared<const resize::LoggedResizes>(logs_);
  if (std::exchange(audit_changed_, false))
    state->audit = std::make_shared<const std::map<std::string, AuditEntry>>(audit_);
  if (topology_changed || !last_) {
    state->topology = std::make_shared<const std::string>(topology_text());
    state->members_head =
        fmt::format("\"version\":{},\"exact_shares\":{}", string_json(version_text()), truth(shares_.exact));
  }
  std::string registry = registry_text();
  if (!last_ || registry != *last_->registry) {
    state->registry = std::make_shared<const std::string>(registry);
    say(*state, Topic::registry, std::move(registry));
  }

  if (std::exchange(membership_changed_, false)) {
    std::string text = membership_text(discovery_, report_);
    if (!last_ || text != *last_->membership) {
      state->membership = std::make_shared<const std::string>(text);
      say(*state, Topic::membership, std::move(text));
    }
  }

  sum_up(now);
  if (!last_ || topology_changed || now.steady - slow_at_ >= kMembersEvery) build_slow_parts(*state, now);
  if (!last_ || topology_changed || now.steady - overview_at_ >= kOverviewEvery) {
    overview_at_ = now.steady;
    Object overview = overview_of(alert_book_.judge(alert_facts(now)));
    const bool changed = overview != last_overview_;
    last_overview_ = overview;
    state->overview = std::make_shared<const std::string>(overview.add("at_ms", whole(now.unix_ms)).text());
    if (changed) say(*state, Topic::overview, *state->overview);
  }
  if (now.steady - point_at_ >= kPointEvery || !last_) {
    // Steady from one point to the next, unless we were held up.
    point_at_ = last_ && now.steady - point_at_ < 2 * kPointEvery ? point_at_ + kPointEvery : now.steady;
    series_.add(point_of(now));
    say(*state, Topic::series, point_text(series_.points().back()));
    series_changed_ = true;
  }
  if (std::exchange(series_changed_, false)) {
    state->points =
        std::make_shared<const std::vector<SeriesPoint>>(series_.points().begin(), series_.points().end());
    state->marks =
        std::make_shared<const std::vector<SeriesMark>>(series_.marks().begin(), series_.marks().end());
  }
  last_ = state;
  return state;
}

}  // namespace ringshift::admin
