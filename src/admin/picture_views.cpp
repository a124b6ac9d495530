// What the picture looks like as JSON: one function for each schema of docs/openapi.yaml.
#include <fmt/format.h>

#include <algorithm>

#include "admin/picture.h"
#include "base/encoding.h"
#include "resize/controls.h"

namespace ringshift::admin {
namespace {

constexpr std::size_t kIdsListed = 100;

std::optional<double> hit_rate_of(const std::optional<RouterRates>& rates) {
  if (!rates || rates->hits + rates->misses <= 0) return std::nullopt;
  return rates->hits / (rates->hits + rates->misses);
}

std::optional<double> known_ms(double value) { return value >= 0 ? std::optional(value) : std::nullopt; }

template <class Get>
std::optional<double> field_of(const std::optional<RouterRates>& rates, Get get) {
  return rates ? std::optional<double>(get(*rates)) : std::nullopt;
}

std::string lease_text(coord::LeaseId lease) {
  return string_json(lease == 0 ? "" : fmt::format("{:x}", lease));
}

std::string moment_of(std::int64_t unix_seconds) {
  return unix_seconds > 0 ? whole(unix_seconds * 1000) : std::string(kNull);
}

std::string alert_object(const Alert& alert) {
  Object values;
  for (const auto& [name, value] : alert.values) values.add(name, figure(value));
  return Object()
      .add("severity", string_json(to_string(alert.severity)))
      .add("code", string_json(alert.code))
      .add("subject", string_json(alert.subject))
      .add("values", values.text())
      .add("text", string_json(alert.text))
      .add("since_ms", whole(alert.since_ms))
      .text();
}

std::string info_object(const MemberInfo& info) {
  return Object()
      .add("at_ms", whole(info.at_ms))
      .add("server_version", string_json(info.server_version))
      .add("keys", whole(info.keys))
      .add("memory_used_bytes", whole(info.memory_used))
      .add("memory_max_bytes", whole(info.memory_max))
      .add("evicted_keys_per_second", figure(info.evicted_per_second))
      .add("ops_per_second", figure(info.ops_per_second))
      .add("clients", whole(info.clients))
      .add("uptime_seconds", whole(info.uptime_seconds))
      .add("role", string_json(info.role))
      .text();
}

bool has_member(const std::vector<topology::Member>& members, const std::string& id) {
  return std::ranges::find(members, id, &topology::Member::id) != members.end();
}

const char* state_of(const topology::Topology& topology, const std::string& id) {
  if (topology.resize) {
    if (std::ranges::binary_search(topology.resize->lost, id)) return "lost";
    if (!has_member(topology.spec.members, id)) return "joining";
    if (!has_member(topology.resize->members, id)) return "leaving";
  }
  const auto factor = topology.factors.find(id);
  return factor == topology.factors.end() ? "active" : factor->second == 0 ? "draining" : "warmup";
}

}  // namespace

std::string Picture::version_text() const { return snapshot_ ? topology::to_string(snapshot_->version) : ""; }

std::optional<double> Picture::origin_qps(const std::optional<RouterRates>& rates) const {
  if (origin_reported_) return origin_reported_;
  return field_of(rates, [](const RouterRates& r) { return r.misses; });
}

SeriesPoint Picture::point_of(Moment now) const {
  SeriesPoint point;
  point.at_ms = now.unix_ms;
  const auto& rates = totals_.now;
  point.qps = field_of(rates, [](const RouterRates& r) { return r.requests; });
  point.hit_rate = hit_rate_of(rates);
  point.misses_per_second = field_of(rates, [](const RouterRates& r) { return r.misses; });
  point.errors_per_second = field_of(rates, [](const RouterRates& r) { return r.errors; });
  point.origin_qps = origin_qps(rates);
  point.p99_ms = known_ms(totals_.p99_ms);
  if (rates) point.clients = static_cast<double>(totals_.clients);
  const bool moves =
      status_.state == "running" || status_.state == "rolling_back" || status_.state == "paused";
  if (moves) point.keys_per_second = status_.keys_per_second;
  point.share_done = share_done(status_);
  return point;
}

AlertFacts Picture::alert_facts(Moment now) const {
  AlertFacts facts;
  facts.now_ms = now.unix_ms;
  facts.connected = connected_;
  facts.connection_since_ms = connection_since_ms_;
  facts.connection_error = connection_error_;
  facts.has_topology = stored_ != nullptr;
  facts.has_controller = controller_.has_value();
  facts.controller_lost_ms = controller_lost_ms_;
  facts.topology_since_ms = topology_seen_ms_;
  facts.version = version_text();
  for (const auto& [id, router] : routers_) {
    if (router.history.empty()) continue;
    const coord::RouterRecord& record = router.history.last();
    const bool same_version = stored_ && record.revision == stored_->revision;
    const bool same_digest = snapshot_ && record.digest == snapshot_->digest;
    facts.routers.push_back({id, &record, same_version && same_digest, same_version && !same_digest});
  }
  facts.members = infos_;
  facts.requests_per_second = field_of(totals_.smooth, [](const RouterRates& r) { return r.requests; });
  facts.errors_per_second = field_of(totals_.smooth, [](const RouterRates& r) { return r.errors; });
  facts.hot_keys = hot_facts_;
  facts.resize = status_;
  facts.membership = report_ ? &*report_ : nullptr;
  return facts;
}

Object Picture::overview_of(const std::vector<Alert>& alerts) const {
  std::vector<std::string> alert_texts, behind, other;
  for (const Alert& alert : alerts) alert_texts.push_back(alert_object(alert));
  std::uint64_t agree = 0, reachable = 0, unreachable = 0, joining = 0, leaving = 0, total = 0;
  std::uint64_t keys = 0, used = 0, most = 0, informed = 0;
  bool limited = true;
  for (const auto& [id, router] : routers_) {
    if (router.history.empty() || !stored_) continue;
    const coord::RouterRecord& record = router.history.last();
    if (record.revision != stored_->revision) {
      if (behind.size() < kIdsListed) behind.push_back(id);
    } else if (record.digest != snapshot_->digest) {
      if (other.size() < kIdsListed) other.push_back(id);
    } else {
      ++agree;
    }
  }
  std::set<std::string> out_of_reach;
  for (const auto& [id, router] : routers_) {
    if (router.history.empty()) continue;
    for (const auto& [member, why] : router.history.last().unreachable) out_of_reach.insert(member);
  }
  if (snapshot_) {
    for (const topology::Member& member : snapshot_->members()) {
      ++total;
      const std::string_view state = state_of(snapshot_->topology(), member.id);
      joining += state == "joining" ? 1U : 0U;
      leaving += state == "leaving" ? 1U : 0U;
      const auto info = infos_.find(member.id);
      const bool answers = info != infos_.end() && info->second->error.empty();
      if (out_of_reach.contains(member.id) || (info != infos_.end() && !answers)) {
        ++unreachable;
      } else if (answers) {
        ++reachable;
      }
      if (!answers) continue;
      ++informed;
      keys += info->second->keys.value_or(0);
      used += info->second->memory_used.value_or(0);
      most += info->second->memory_max.value_or(0);
      limited = limited && info->second->memory_max.value_or(0) > 0;
    }
  }
  const auto of_all = [&](std::uint64_t value, bool holds) {
    return informed > 0 && holds ? whole(value) : std::string(kNull);
  };
  const Alert* worst = alerts.empty() || alerts[0].severity == Alert::Severity::info ? nullptr : &alerts[0];
  const bool critical = worst != nullptr && worst->severity == Alert::Severity::critical;
  const topology::Spec* spec = snapshot_ ? &snapshot_->topology().spec : nullptr;
  const auto protocol = [&] { return spec->protocol == topology::Protocol::redis ? "redis" : "memcached"; };
  constexpr const char* kConsistency[] = {"strict", "cache", "none"};
  return Object()
      .add("cluster", string_json(names_.cluster))
      .add("namespace", string_json(names_.name_space))
      .add("protocol", string_json(spec != nullptr ? protocol() : ""))
      .add("consistency",
           string_json(spec != nullptr ? kConsistency[static_cast<std::size_t>(spec->consistency)] : ""))
      .add("placement", string_json(spec != nullptr ? spec->placement.algorithm : ""))
      .add("health", string_json(critical           ? "critical"
                                 : worst != nullptr ? "warning"
                                                    : "ok"))
      .add("health_text", string_json(worst != nullptr ? worst->text : "All is well."))
      .add("version", string_json(version_text()))
      .add("digest", string_json(snapshot_ ? snapshot_->digest : ""))
      .add("members", Object()
                          .add("total", whole(total))
                          .add("reachable", whole(reachable))
                          .add("unreachable", whole(unreachable))
                          .add("joining", whole(joining))
                          .add("leaving", whole(leaving))
                          .text())
      .add("routers", Object()
                          .add("total", whole(std::uint64_t{routers_.size()}))
                          .add("agree", whole(agree))
                          .add("behind", string_list(behind))
                          .add("other_digest", string_list(other))
                          .text())
      .add("qps", figure(field_of(totals_.smooth, [](const RouterRates& r) { return r.requests; })))
      .add("hit_rate", share(hit_rate_of(totals_.smooth)))
      .add("misses_per_second",
           figure(field_of(totals_.smooth, [](const RouterRates& r) { return r.misses; })))
      .add("errors_per_second",
           figure(field_of(totals_.smooth, [](const RouterRates& r) { return r.errors; })))
      .add("p99_ms", figure(known_ms(totals_.p99_ms)))
      .add("clients", whole(totals_.clients))
      .add("keys", of_all(keys, true))
      .add("memory_used_bytes", of_all(used, true))
      .add("memory_max_bytes", of_all(most, limited))
      .add("origin", Object()
                         .add("qps", figure(origin_qps(totals_.smooth)))
                         .add("source", string_json(origin_reported_ ? "reported" : "misses"))
                         .text())
      .add("alerts", list(alert_texts))
      .add("resize", Object()
                         .add("state", string_json(status_.state))
                         .add("id", string_json(status_.id))
                         .add("phase", string_json(status_.phase))
                         .add("step", whole(status_.step))
                         .add("steps", whole(status_.steps))
                         .add("share_done", figure(share_done(status_)))
                         .add("eta_seconds", figure(status_.eta_seconds))
                         .text())
      .add("controller", controller_ ? string_json(controller_->value) : std::string(kNull))
      .add("registry_connected", truth(connected_));
}

std::map<std::string, Object> Picture::member_objects(Moment now) const {
  std::map<std::string, Object> out;
  if (!snapshot_) return out;
  const topology::Topology& topology = snapshot_->topology();
  std::map<std::string, MemberRates> rates;
  std::map<std::string, std::string> why;
  for (const auto& [id, router] : routers_) {
    if (router.history.empty()) continue;
    router.history.add_members(now.steady, rates);
    for (const auto& [member, reason] : router.history.last().unreachable)
      why.try_emplace(member, fmt::format("router {}: {}", id, reason));
  }
  double all = 0;
  for (const auto& [id, one] : rates) all += one.requests;
  for (const topology::Member& member : snapshot_->members()) {
    const auto found = rates.find(member.id);
    const MemberRates* rate = found == rates.end() ? nullptr : &found->second;
    const auto known = [&](double value) { return rate != nullptr ? figure(value) : std::string(kNull); };
    const auto info = infos_.find(member.id);
    std::string unreachable = why.contains(member.id) ? why[member.id] : "";
    if (info != infos_.end() && !info->second->error.empty()) unreachable = info->second->error;
    const bool nobody_looked = unreachable.empty() && info == infos_.end() && routers_.empty();
    const auto factor = topology.factors.find(member.id);
    const auto now_share = shares_.now.find(member.id), target = shares_.target.find(member.id);
    const double lookups = rate != nullptr ? rate->hits + rate->misses : 0;
    out.emplace(
        member.id,
        Object()
            .add("id", string_json(member.id))
            .add("address", string_json(member.address))
            .add("weight", share(member.weight))
            .add("zone", string_json(member.zone))
            .add("host", string_json(member.host))
            .add("label", string_json(member.label))
            .add("factor", factor == topology.factors.end() ? "1000" : std::to_string(factor->second))
            .add("state", string_json(state_of(topology, member.id)))
            .add("share", share(now_share == shares_.now.end() ? 0.0 : now_share->second))
            .add("share_after", !topology.resize                 ? std::string(kNull)
                                : target == shares_.target.end() ? "0"
                                                                 : share(target->second))
            .add("requests_share",
                 rate != nullptr && all > 0 ? figure(rate->requests / all) : std::string(kNull))
            .add("requests_per_second", known(rate != nullptr ? rate->requests : 0))
            .add("hits_per_second", known(rate != nullptr ? rate->hits : 0))
            .add("misses_per_second", known(rate != nullptr ? rate->misses : 0))
            .add("hit_rate", lookups > 0 ? figure(rate->hits / lookups) : std::string(kNull))
            .add("errors_per_second", known(rate != nullptr ? rate->errors : 0))
            .add("timeouts_per_second", known(rate != nullptr ? rate->timeouts : 0))
            .add("in_flight", rate != nullptr ? whole(rate->in_flight) : std::string(kNull))
            .add("p99_ms", figure(known_ms(rate != nullptr ? rate->p99_ms : -1)))
            .add("reachable", nobody_looked ? std::string(kNull) : truth(unreachable.empty()))
            .add("unreachable_why", string_json(unreachable))
            .add("info", info == infos_.end() || !info->second->error.empty() ? std::string(kNull)
                                                                              : info_object(*info->second)));
  }
  return out;
}

std::map<std::string, Object> Picture::router_objects(Moment now) const {
  std::map<std::string, Object> out;
  for (const auto& [id, router] : routers_) {
    if (router.history.empty()) continue;
    const coord::RouterRecord& record = router.history.last();
    const bool agrees = stored_ && record.revision == stored_->revision && record.digest == snapshot_->digest;
    const auto rates = router.history.rates(now.steady, RouterHistory::kSmooth);
    const auto rate = [&](auto get) { return figure(field_of(rates, get)); };
    std::vector<std::string> unreachable;
    for (const auto& [member, why] : record.unreachable)
      unreachable.push_back(Object().add("member", string_json(member)).add("why", string_json(why)).text());
    const topology::Version version{coord::kRegistryEpoch, static_cast<std::uint64_t>(record.revision)};
    out.emplace(
        id,
        Object()
            .add("id", string_json(id))
            .add("listen", string_json(record.listen))
            .add("version", string_json(record.revision > 0 ? topology::to_string(version) : ""))
            .add("digest", string_json(record.digest))
            .add("agrees", truth(agrees))
            .add("behind_ms",
                 agrees || !stored_ ? "0" : whole(std::max<std::int64_t>(0, now.unix_ms - topology_seen_ms_)))
            .add("started_at_ms", moment_of(record.started_at))
            .add("applied_at_ms", moment_of(record.applied_at))
            .add("updated_at_ms", whole(router.updated_ms))
            .add("requests_per_second", rate([](const RouterRates& r) { return r.requests; }))
            .add("hits_per_second", rate([](const RouterRates& r) { return r.hits; }))
            .add("misses_per_second", rate([](const RouterRates& r) { return r.misses; }))
            .add("hit_rate", share(hit_rate_of(rates)))
            .add("errors_per_second", rate([](const RouterRates& r) { return r.errors; }))
            .add("bytes_in_per_second", rate([](const RouterRates& r) { return r.bytes_in; }))
            .add("bytes_out_per_second", rate([](const RouterRates& r) { return r.bytes_out; }))
            .add("clients", whole(record.clients))
            .add("max_clients", record.max_clients > 0 ? whole(record.max_clients) : std::string(kNull))
            .add("p50_ms", figure(known_ms(record.p50_ms)))
            .add("p99_ms", figure(known_ms(record.p99_ms)))
            .add("p999_ms", figure(known_ms(record.p999_ms)))
            .add("keys_pulled_per_second", rate([](const RouterRates& r) { return r.keys_pulled; }))
            .add("unreachable", list(unreachable))
            .add("lease", lease_text(router.lease)));
  }
  return out;
}

std::string Picture::hot_keys_text(Moment now) {
  struct Heat {
    double per_second = 0;
    std::uint64_t routers = 0;
  };
  std::map<std::string, Heat> heats;
  for (const auto& [id, router] : routers_) {
    if (!router.history.fresh(now.steady)) continue;
    for (const auto& [key, count] : router.history.last().hot_keys) {
      Heat& heat = heats[key];
      heat.per_second += static_cast<double>(count) /
                         std::chrono::duration<double>(coord::RouterRecord::kHotKeysOver).count();
      ++heat.routers;
    }
  }
  std::vector<std::pair<std::string, Heat>> hottest(heats.begin(), heats.end());
  std::ranges::stable_sort(
      hottest, [](const auto& a, const auto& b) { return a.second.per_second > b.second.per_second; });
  if (hottest.size() > kHotKeysShown) hottest.resize(kHotKeysShown);
  hot_facts_.clear();
  const double all = totals_.smooth ? totals_.smooth->requests : 0;
  std::vector<std::string> keys;
  for (const auto& [key, heat] : hottest) {
    const std::string shown = base::printable(key, kHotKeyBytesShown);
    const double part = all > 0 ? std::min(1.0, heat.per_second / all) : 0;
    hot_facts_.push_back({shown, heat.per_second, part});
    keys.push_back(
        Object()
            .add("key", string_json(shown))
            .add("key_base64", string_json(base::to_base64(key)))
            .add("requests_per_second", figure(heat.per_second))
            .add("share", all > 0 ? figure(part) : std::string(kNull))
            .add("member",
                 string_json(snapshot_ ? snapshot_->members()[snapshot_->route(key).member].id : ""))
            .add("slice", whole(std::uint64_t{snapshot_ ? snapshot_->slice(key) : 0}))
            .add("routers", whole(heat.routers))
            .text());
  }
  std::string body = list(keys);
  // The same keys with the same figures are no news: then their time stays, too.
  if (last_ && last_->hot_keys->ends_with("\"keys\":" + body + "}")) return *last_->hot_keys;
  return Object().add("at_ms", whole(now.unix_ms)).add("keys", std::move(body)).text();
}

std::string Picture::registry_text() const {
  constexpr std::size_t kListed = 1000;
  Object counts;
  for (const auto& [word, count] : key_counts_) counts.add(word, whole(count));
  std::vector<std::string> instances, routers;
  for (const auto& [id, kv] : instances_) {
    if (instances.size() == kListed) break;
    instances.push_back(Object()
                            .add("id", string_json(id))
                            .add("lease", lease_text(kv.lease))
                            .add("value", string_json(kv.value))
                            .text());
  }
  for (const auto& [id, router] : routers_) {
    if (routers.size() == kListed) break;
    routers.push_back(Object()
                          .add("id", string_json(id))
                          .add("lease", lease_text(router.lease))
                          // Of the version that it obeys: its own report's changes every second.
                          .add("revision", whole(router.history.empty() ? 0 : router.history.last().revision))
                          .text());
  }
  std::string controller(kNull);
  if (controller_) {
    controller =
        Object()
            .add("id", string_json(controller_->value))
            .add("lease", lease_text(controller_->lease))
            .add("revision", whole(controller_->create_revision))
            .add("since_ms", controller_since_ms_ ? whole(*controller_since_ms_) : std::string(kNull))
            .text();
  }
  return Object()
      .add("url", string_json(names_.registry_url))
      .add("connected", truth(connected_))
      .add("since_ms", whole(connection_since_ms_))
      .add("error", string_json(connection_error_))
      .add("cluster_id", string_json(fmt::format("{:x}", cluster_id_)))
      .add("revision", whole(stored_ ? stored_->revision : 0))
      .add("prefix", string_json(keys_.prefix))
      .add("keys", counts.text())
      .add("controller", std::move(controller))
      .add("instances", list(instances))
      .add("routers", list(routers))
      .text();
}

std::string Picture::topology_text() const {
  if (!stored_) return std::string(kNull);
  const auto past = history_.find(stored_->revision);
  if (past != history_.end()) return past_text(past->second, stored_->revision);
  PastTopology now;
  now.revision = stored_->revision;
  now.digest = snapshot_->digest;
  now.algorithm = stored_->topology.spec.placement.algorithm;
  now.members = stored_->topology.spec.members.size();
  now.resize = kNull;
  return past_text(now, stored_->revision);
}

}  // namespace ringshift::admin
