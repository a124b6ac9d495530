#include "cli/top_figures.h"

#include <algorithm>
#include <utility>

#include "coord/membership_keys.h"
#include "ringshift/diff.h"
#include "ringshift/topology.h"

namespace ringshift::cli {
namespace {

using coord::RouterRecord;

double since(std::uint64_t earlier, std::uint64_t later) {
  return later < earlier ? 0 : static_cast<double>(later - earlier);
}

std::optional<double> worse(const std::optional<double>& a, double b) {
  if (b < 0) return a;
  return a ? std::max(*a, b) : b;
}

// Shares by member id; empty when they cannot be told.
std::map<std::string, double> shares_of(const topology::Spec& spec) {
  std::map<std::string, double> out;
  const Result<topology::Shares> shares = topology::shares(spec);
  if (!shares) return out;
  for (std::size_t i = 0; i < spec.members.size(); ++i) out[spec.members[i].id] = shares->shares[i];
  return out;
}

std::vector<TopMember> members_of(const topology::Topology& topology) {
  std::vector<TopMember> out;
  const std::map<std::string, double> now = shares_of(topology.spec);
  std::map<std::string, double> then;
  double over = 0;  // The part of the keyspace that is B's already.
  topology::Spec target = topology.spec;
  if (topology.resize) {
    target.members = topology.resize->members;
    target.placement = topology.resize->placement;
    then = shares_of(target);
    over = static_cast<double>(topology::count(topology.resize->done)) / topology::kSliceCount;
  }
  const auto add = [&](const topology::Member& member, std::string state) {
    TopMember& row = out.emplace_back();
    row.id = member.id;
    row.address = member.address;
    row.state = std::move(state);
    const auto a = now.find(member.id);
    const auto b = then.find(member.id);
    if (now.empty() || (topology.resize && then.empty())) return;
    row.share = (a == now.end() ? 0 : a->second) * (1 - over) + (b == then.end() ? 0 : b->second) * over;
  };
  const auto has = [](const std::vector<topology::Member>& members, const std::string& id) {
    return std::ranges::find(members, id, &topology::Member::id) != members.end();
  };
  for (const topology::Member& member : topology.spec.members) {
    const bool lost = topology.resize && std::ranges::count(topology.resize->lost, member.id) != 0;
    const bool leaves = topology.resize && !has(topology.resize->members, member.id);
    add(member, lost ? "lost" : leaves ? "leaving" : "active");
  }
  if (!topology.resize) return out;
  for (const topology::Member& member : topology.resize->members) {
    if (!has(topology.spec.members, member.id)) add(member, "joining");
  }
  return out;
}

// What adds up over routers.
struct Sums {
  double requests = 0, errors = 0, hits = 0, misses = 0;
  std::optional<double> p99_ms;

  template <class Counts>
  void add(const Counts& earlier, const Counts& later, double seconds) {
    requests += since(earlier.requests, later.requests) / seconds;
    errors += since(earlier.errors, later.errors) / seconds;
    hits += since(earlier.hits, later.hits) / seconds;
    misses += since(earlier.misses, later.misses) / seconds;
  }
  [[nodiscard]] TopFigures figures() const {
    const double lookups = hits + misses;
    return {requests, errors, lookups > 0 ? std::optional(hits / lookups) : std::nullopt, p99_ms};
  }
};

}  // namespace

TopWatch::TopWatch(const resize::ClusterView& view, coord::ClusterKeys keys, std::string cluster)
    : view_(view), keys_(std::move(keys)), cluster_(std::move(cluster)) {}

void TopWatch::read_topology() {
  const std::optional<coord::KeyValue> kv = view_.get(keys_.topology());
  if (!kv || kv->mod_revision == topology_seen_) return;
  topology_seen_ = kv->mod_revision;
  const Result<topology::Topology> topology = topology::parse_topology(kv->value, keys_.topology());
  if (!topology) return;
  base_.revision = kv->mod_revision;
  base_.digest = topology::digest(*topology);
  base_.members = members_of(*topology);
}

void TopWatch::look(TimePoint now) {
  read_topology();
  const std::map<std::string, coord::KeyValue> records = view_.under(keys_.routers());
  std::erase_if(routers_, [&](const auto& entry) { return !records.contains(entry.first); });
  for (const auto& [key, kv] : records) {
    Router& router = routers_[key];
    if (kv.mod_revision == router.seen) continue;
    router.seen = kv.mod_revision;
    Result<RouterRecord> record = coord::parse_router_record(kv.value);
    if (!record) continue;
    router.samples.push_back({now, std::move(*record)});
    // The oldest is the last one from before the window, so that rates are of all of it.
    while (router.samples.size() > 2 && now - router.samples[1].at >= kWindow) router.samples.pop_front();
  }
}

TopFrame TopWatch::frame(TimePoint now) const {
  TopFrame out = base_;
  out.cluster = cluster_;
  if (const auto controller = view_.get(keys_.controller())) out.controller = controller->value;
  if (const auto status = view_.get(keys_.status())) {
    if (Result<resize::ResizeStatus> parsed = resize::parse_status(status->value))
      out.resize = std::move(*parsed);
  }
  if (const auto told = view_.get(coord::membership_key(keys_));
      told && view_.get(coord::discovery_key(keys_))) {
    if (Result<membership::Report> report = membership::parse_report(told->value))
      out.membership = std::move(*report);
  }
  Sums all;
  std::map<std::string, Sums> members;
  std::map<std::string, TopMember*> rows;
  for (TopMember& row : out.members) rows[row.id] = &row;
  out.rates_known = true;
  for (const auto& [key, router] : routers_) {
    if (router.samples.empty()) continue;
    const Sample &first = router.samples.front(), &last = router.samples.back();
    const double seconds = std::chrono::duration<double>(last.at - first.at).count();
    TopRouter& row = out.routers.emplace_back();
    row.id = key.substr(keys_.routers().size());
    row.listen = last.record.listen;
    row.digest = last.record.digest;
    row.revision = last.record.revision;
    row.clients = last.record.clients;
    row.age_seconds = std::chrono::duration<double>(now - last.at).count();
    out.clients += last.record.clients;
    Sums own;
    own.p99_ms = worse({}, last.record.p99_ms);
    all.p99_ms = worse(all.p99_ms, last.record.p99_ms);
    if (seconds > 0) {
      own.add(first.record, last.record, seconds);
      all.add(first.record, last.record, seconds);
      out.bytes_in += since(first.record.bytes_in, last.record.bytes_in) / seconds;
      out.bytes_out += since(first.record.bytes_out, last.record.bytes_out) / seconds;
    } else {
      out.rates_known = false;
    }
    row.figures = own.figures();
    for (const auto& [id, counts] : last.record.members) {
      const auto member = rows.find(id);
      if (member == rows.end()) continue;
      Sums& sums = members[id];
      sums.p99_ms = worse(sums.p99_ms, counts.p99_ms);
      member->second->in_flight += counts.in_flight;
      const auto earlier = first.record.members.find(id);
      if (seconds <= 0 || earlier == first.record.members.end()) continue;
      sums.add(earlier->second, counts, seconds);
      member->second->timeouts += since(earlier->second.timeouts, counts.timeouts) / seconds;
    }
    for (const auto& [id, why] : last.record.unreachable) {
      if (const auto member = rows.find(id); member != rows.end()) ++member->second->away;
    }
  }
  for (const auto& [id, sums] : members) rows.at(id)->figures = sums.figures();
  out.all = all.figures();
  return out;
}

}  // namespace ringshift::cli
