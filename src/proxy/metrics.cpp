// What a proxy shows at /metrics: docs/metrics.md lists it, section "Router".
//
// Read from counters that each worker keeps for itself: a scrape disturbs no worker, and sums are of no one
// instant. Any thread. Cost: some microseconds a member; shares of keys are computed once a topology.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "proxy/hot_keys.h"
#include "proxy/keeper.h"
#include "proxy/phase_name.h"
#include "proxy/proxy_impl.h"
#include "ringshift/diff.h"
#include "telemetry/exposition.h"

namespace ringshift::proxy {
namespace {

using backend::MemberSums;
using telemetry::Counter;
using telemetry::Exposition;

constexpr std::size_t kHotKeysShown = 20;
constexpr std::size_t kKeyShown = 64;  // Bytes of a hot key's label, as they are written.

double seconds(base::Duration time) { return std::chrono::duration<double>(time).count(); }
double whole(std::uint64_t count) { return static_cast<double>(count); }

struct RouterCounter {
  Counter counter;
  const char* name;
  const char* help;
};
constexpr RouterCounter kRouterCounters[] = {
    {Counter::requests, "ringshift_router_requests_total",
     "Commands read from clients, refused ones included"},
    {Counter::bytes_in, "ringshift_router_bytes_received_total", "Bytes read from clients"},
    {Counter::bytes_out, "ringshift_router_bytes_sent_total", "Bytes written to clients"},
    {Counter::clients_accepted, "ringshift_router_clients_accepted_total", "Clients that connected"},
    {Counter::clients_rejected, "ringshift_router_clients_rejected_total",
     "Clients turned away, over max clients or by protected mode"},
    {Counter::clients_closed, "ringshift_router_clients_closed_total", "Clients that are gone"},
    {Counter::clients_cut, "ringshift_router_clients_cut_total",
     "Clients that were disconnected for answers that they did not read"},
    {Counter::keys_pulled, "ringshift_router_keys_pulled_total",
     "Keys that this router moved in a resize because a client's command needed them"},
    {Counter::bytes_pulled, "ringshift_router_pulled_bytes_total", "Bytes of those keys' values"},
    {Counter::messages, "ringshift_router_pubsub_messages_total",
     "Published messages, each delivery to a client"},
    {Counter::subscribers_cut, "ringshift_router_subscribers_cut_total",
     "Subscribed clients that were disconnected because a member's connection broke"}};

void collect_router(Exposition& out, const Shared& shared, const telemetry::Totals& totals,
                    const Proxy::Sampled& sampled) {
  for (const auto& [counter, name, help] : kRouterCounters)
    out.counter(name, help, whole(get(totals, counter)));
  for (std::size_t i = 0; i < telemetry::kCounterCount; ++i) {
    std::string_view kind = telemetry::name(static_cast<Counter>(i));
    if (!kind.starts_with("errors_")) continue;
    kind.remove_prefix(std::string_view("errors_").size());
    out.counter(
        "ringshift_router_errors_total",
        "Error answers to clients: protocol, refused (unknown or malformed), member (passed on), unsent (not "
        "executed, no connection in time), unknown (sent, no answer in time), overloaded (a queue was full), "
        "denied, limited",
        whole(totals[i]), {{"kind", kind}});
  }
  out.gauge("ringshift_router_clients", "Clients that are connected", whole(shared.clients.load()));
  out.gauge("ringshift_router_max_clients", "Clients beyond which others are turned away",
            whole(shared.settings.max_clients.size()));
  out.gauge("ringshift_router_client_output_bytes", "Answers in this process that clients have not read yet",
            static_cast<double>(shared.unread_output.load(std::memory_order_relaxed)));
  out.histogram("ringshift_router_request_seconds",
                "From the read of a client's command to its answer's turn; of a sample of the commands: the "
                "first 64 of each second and thread, and one in 64 of those behind them",
                sampled.times, whole(sampled.micros) / 1e6);
}

// ---- a cluster's topology ----

void collect_topology(Exposition& out, const std::string& cluster, const topology::Snapshot& snapshot,
                      const AppliedTopology& applied, base::Duration build) {
  const Exposition::Labels labels{{"cluster", cluster}};
  const std::string version = to_string(snapshot.version);
  out.gauge("ringshift_router_topology_info", "1; the newest topology that this router has is in the labels",
            1,
            {{"cluster", cluster},
             {"version", version},
             {"digest", snapshot.digest},
             {"phase", phase_name(snapshot.topology())}});
  out.gauge("ringshift_router_topology_revision",
            "Of the topology by which all threads route; no command sent under an older one is unanswered",
            whole(applied.reported.revision), labels);
  out.counter("ringshift_router_topology_changes_total", "Topologies that were applied",
              whole(applied.changes), labels);
  if (applied.changes != 0) {
    out.gauge("ringshift_router_topology_age_seconds", "Since the topology in force was applied",
              seconds(std::chrono::steady_clock::now() - applied.at), labels);
  }
  out.gauge("ringshift_router_topology_build_seconds", "What reading and building the newest topology took",
            seconds(build), labels);
  out.gauge(
      "ringshift_router_topology_swap_seconds",
      "From the last snapshot's being published here to all threads' routing by it, with all older commands "
      "answered",
      seconds(applied.swap), labels);
  out.histogram(
      "ringshift_router_topology_push_seconds",
      "From the topology's having been received here to its being applied, by this host's clock alone: "
      "building, swapping, and waiting for older commands",
      applied.push, applied.push_seconds, labels);
}

void collect_standing(Exposition& out, const std::string& cluster, const Keeper& keeper) {
  const Exposition::Labels labels{{"cluster", cluster}};
  const Keeper::Standing standing = keeper.standing();
  out.gauge(
      "ringshift_router_topology_from_disk",
      "1 while this router serves by the topology that it found on its disk, because the registry has not "
      "answered since it started",
      standing.from_disk ? 1 : 0, labels);
  out.gauge("ringshift_router_registry_age_seconds", "Since the registry last answered",
            standing.registry_age_seconds, labels);
  out.gauge(
      "ringshift_router_registry_refused",
      "1 while this router does not obey its registry: it was rebuilt or restored, is older than what the "
      "router knows, or gives one version two contents",
      standing.registry_refused ? 1 : 0, labels);
}

// ---- members ----

struct MemberFamily {
  const char* name;
  const char* help;
  std::uint64_t MemberSums::* value;
};
constexpr MemberFamily kMemberCounters[] = {
    {"ringshift_router_member_timeouts_total",
     "Requests without an answer for a deadline that passed, with those behind them on the connection",
     &MemberSums::timeouts},
    {"ringshift_router_member_connects_total", "Connections that came to serve", &MemberSums::connects},
    {"ringshift_router_member_reconnects_total", "Of those, in place of one that broke",
     &MemberSums::reconnects},
    {"ringshift_router_member_connect_failures_total", "Connections that never came to serve",
     &MemberSums::connect_failures},
    {"ringshift_router_member_bytes_sent_total", "Bytes of commands for the member", &MemberSums::bytes_out},
    {"ringshift_router_member_bytes_received_total", "Bytes of the member's replies", &MemberSums::bytes_in},
    {"ringshift_router_member_steps_total",
     "Commands of the router's own that were answered: transfers of keys, claims, and questions that another "
     "member "
     "answered",
     &MemberSums::steps}};

struct LabelledFamily {
  const char* name;
  const char* help;
  const char* label;
  const char* value;
  std::uint64_t MemberSums::* sum;
};
constexpr const char* kRequestsHelp =
    "Clients' commands that the member answered, error replies included, and a part of a split command each; "
    "a "
    "transaction is one";
constexpr const char* kHitsHelp = "Keys that were there: of GET and MGET (read), of GETEX and GETDEL (write)";
constexpr const char* kMissesHelp = "Keys that were not there, of the same commands";
constexpr const char* kErrorsHelp =
    "reply: error replies; and requests without an answer: unsent (not executed), unknown (it may have been "
    "executed), "
    "overloaded (its queue was full)";
constexpr LabelledFamily kLabelled[] = {
    {"ringshift_router_member_requests_total", kRequestsHelp, "class", "read", &MemberSums::reads},
    {"ringshift_router_member_requests_total", kRequestsHelp, "class", "write", &MemberSums::writes},
    {"ringshift_router_member_requests_total", kRequestsHelp, "class", "other", &MemberSums::others},
    {"ringshift_router_member_hits_total", kHitsHelp, "class", "read", &MemberSums::read_hits},
    {"ringshift_router_member_hits_total", kHitsHelp, "class", "write", &MemberSums::write_hits},
    {"ringshift_router_member_misses_total", kMissesHelp, "class", "read", &MemberSums::read_misses},
    {"ringshift_router_member_misses_total", kMissesHelp, "class", "write", &MemberSums::write_misses},
    {"ringshift_router_member_errors_total", kErrorsHelp, "kind", "reply", &MemberSums::error_replies},
    {"ringshift_router_member_errors_total", kErrorsHelp, "kind", "unsent", &MemberSums::unsent},
    {"ringshift_router_member_errors_total", kErrorsHelp, "kind", "unknown", &MemberSums::unknown},
    {"ringshift_router_member_errors_total", kErrorsHelp, "kind", "overloaded", &MemberSums::overloaded}};

void collect_member(Exposition& out, const std::string& cluster, const std::string& id,
                    const MemberSums& sums) {
  const Exposition::Labels labels{{"cluster", cluster}, {"member", id}};
  for (const auto& [name, help, label, value, sum] : kLabelled)
    out.counter(name, help, whole(sums.*sum), {{"cluster", cluster}, {"member", id}, {label, value}});
  for (const auto& [name, help, value] : kMemberCounters) out.counter(name, help, whole(sums.*value), labels);
  out.gauge("ringshift_router_member_connected", "1 while every thread has its connection to the member",
            sums.pools != 0 && sums.pools_connected == sums.pools ? 1 : 0, labels);
  out.gauge("ringshift_router_member_in_flight",
            "Commands for the member that are sent or queued and not answered",
            whole(static_cast<std::uint64_t>(std::max<std::int64_t>(sums.in_flight, 0))), labels);
  out.gauge("ringshift_router_member_queued_bytes", "Bytes of commands that have not left for the member",
            static_cast<double>(sums.unsent_bytes), labels);
  out.gauge("ringshift_router_member_connections", "Connections to the member, those being made included",
            static_cast<double>(sums.connections), labels);
  out.histogram(
      "ringshift_router_member_seconds",
      "From handing a command to the member's connection to its reply, exact but for the loop's clock; "
      "commands that block are left out",
      sums.times, whole(sums.micros) / 1e6, labels);
}

// ---- hot keys ----

// What is no printable ASCII is written as \xNN; never longer than kKeyShown.
std::string key_label(std::string_view key) {
  std::string out;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    const std::string shown = c == '\\'                     ? "\\\\"
                              : byte < 0x20 || byte >= 0x7f ? fmt::format("\\x{:02x}", byte)
                                                            : std::string(1, c);
    if (out.size() + shown.size() > kKeyShown) break;
    out += shown;
  }
  return out;
}

void collect_hot_keys(Exposition& out, const std::string& cluster, const HotKeyBoard& board) {
  // Keys that are cut to the same label are one.
  std::vector<std::pair<std::string, std::uint64_t>> shown;
  for (const auto& [key, count] : board.top(kHotKeysShown)) {
    std::string label = key_label(key);
    const auto same = std::ranges::find(shown, label, &std::pair<std::string, std::uint64_t>::first);
    if (same != shown.end()) {
      same->second += count;
    } else {
      shown.emplace_back(std::move(label), count);
    }
  }
  for (const auto& [label, count] : shown) {
    out.gauge(
        "ringshift_router_hot_key_requests_per_second",
        "The keys asked for most, at most 20: how often in the last ten seconds, estimated from a sample",
        whole(count) / std::chrono::duration<double>(HotKeySampler::kWindow).count(),
        {{"cluster", cluster}, {"key", label}});
  }
}

}  // namespace

// Members that a resize takes out, or whose factor is 0: no key is theirs in the end.
std::vector<std::string> Proxy::Impl::leaving(const topology::Topology& topology) {
  std::vector<std::string> out;
  const auto has = [](const std::vector<topology::Member>& members, std::string_view id) {
    return std::ranges::find(members, id, &topology::Member::id) != members.end();
  };
  const auto add = [&](const std::vector<topology::Member>& from, const std::vector<topology::Member>& to) {
    for (const topology::Member& member : from)
      if (!has(to, member.id)) out.push_back(member.id);
  };
  if (topology.resize && topology.resize->rollback) {
    add(topology.resize->members, topology.spec.members);
  } else if (topology.resize) {
    add(topology.spec.members, topology.resize->members);
  }
  for (const auto& [id, factor] : topology.factors)
    if (factor == 0) out.push_back(id);
  return out;
}

// REQUIRES: applied_mutex is held.
void Proxy::Impl::note_applied(std::size_t cluster, topology::Version version) {
  AppliedTopology& of = applied[cluster];
  const base::TimePoint now = std::chrono::steady_clock::now();
  of.at = now;
  ++of.changes;
  const auto timing = shared.clusters[cluster].holder->timing();  // First: of this snapshot, or an older one.
  const auto snapshot = shared.clusters[cluster].holder->load();
  if (snapshot->version != version || timing.version != version)
    return;  // A newer one is there already, and tells soon.
  // What a router starts with was not pushed to it.
  if (of.changes > 1) {
    of.swap = now - timing.published;
    const base::Duration push = now - timing.received;
    of.push[telemetry::Times::bucket(std::chrono::duration_cast<std::chrono::microseconds>(push).count())] +=
        1;
    of.push_seconds += seconds(push);
  }
  std::map<std::string, std::uint64_t> residual;
  const std::vector<std::string> gone = leaving(snapshot->topology());
  if (!gone.empty()) {
    const auto sums = shared.clusters[cluster].members->members();
    for (const std::string& id : gone) {
      const auto known = of.leaving_since.find(id);
      const auto found = sums.find(id);
      residual[id] = known != of.leaving_since.end() ? known->second
                     : found != sums.end()           ? found->second.requests()
                                                     : 0;
    }
  }
  of.leaving_since = std::move(residual);
}

void Proxy::collect(Exposition& out) {
  Impl& self = *impl_;
  collect_router(out, self.shared, stats(), sampled_times());
  for (std::size_t i = 0; i < self.shared.clusters.size(); ++i) {
    const ServedCluster& cluster = self.shared.clusters[i];
    const auto snapshot = cluster.holder->load();
    const std::string name = cluster.name.empty() ? snapshot->topology().spec.cluster : cluster.name;
    AppliedTopology applied;
    {
      const std::lock_guard lock(self.applied_mutex);
      applied = self.applied[i];
    }
    const auto timing = cluster.holder->timing();
    collect_topology(out, name, *snapshot, applied, timing.published - timing.received);
    if (const Keeper* keeper = keeper_of(cluster.authority)) collect_standing(out, name, *keeper);
    const MemberSums all = cluster.members->all();
    constexpr const char* kLookupsHelp =
        "Keys that GET, GETEX, GETDEL and MGET found (hit) and did not (miss), at all members that there "
        "were";
    out.counter("ringshift_router_lookups_total", kLookupsHelp, whole(all.hits()),
                {{"cluster", name}, {"result", "hit"}});
    out.counter("ringshift_router_lookups_total", kLookupsHelp, whole(all.misses()),
                {{"cluster", name}, {"result", "miss"}});
    const auto members = cluster.members->members();
    for (const auto& [id, sums] : members) collect_member(out, name, id, sums);
    for (const auto& [id, before] : applied.leaving_since) {
      const auto found = members.find(id);
      if (found == members.end()) continue;
      out.counter("ringshift_router_member_residual_requests_total",
                  "Requests to a member that leaves or drains, since this router was told that it does",
                  whole(found->second.requests() - std::min(before, found->second.requests())),
                  {{"cluster", name}, {"member", id}});
    }
    collect_shares(out, name, i, *snapshot);
    collect_hot_keys(out, name, *cluster.hot_keys);
  }
}

void Proxy::collect_shares(Exposition& out, const std::string& cluster, std::size_t index,
                           const topology::Snapshot& snapshot) {
  Impl& self = *impl_;
  const std::lock_guard lock(self.shares_mutex);
  Impl::Shares& known = self.shares[index];
  if (known.digest != snapshot.digest) {
    known = {snapshot.digest, {}, {}};
    const topology::Topology& topology = snapshot.topology();
    const auto of = [](const topology::Spec& spec) {
      std::vector<std::pair<std::string, double>> shares;
      if (const auto found = topology::shares(spec)) {
        for (std::size_t i = 0; i < spec.members.size(); ++i)
          shares.emplace_back(spec.members[i].id, found->shares[i]);
      }
      return shares;
    };
    known.now = of(topology.spec);
    if (topology.resize) {
      topology::Spec target = topology.spec;
      target.members = topology.resize->members;
      target.placement = topology.resize->placement;
      known.target = of(target);
    }
  }
  for (const auto& [id, share] : known.now) {
    out.gauge("ringshift_router_member_share",
              "Share of the keyspace by the topology's placement, 0 to 1; exact where the placement allows",
              share, {{"cluster", cluster}, {"member", id}});
  }
  for (const auto& [id, share] : known.target) {
    out.gauge("ringshift_router_member_target_share",
              "While a resize runs: the share by the placement it leads to", share,
              {{"cluster", cluster}, {"member", id}});
  }
}

}  // namespace ringshift::proxy
