#include "doctor/cluster_checks.h"

#include <fmt/format.h>

#include <cstdlib>

#include "resize/status.h"
#include "ringshift/diff.h"
#include "ringshift/snapshot.h"

namespace ringshift::doctor {
namespace {

constexpr std::int64_t kClockOffSeconds = 2;  // HTTP's Date has whole seconds.

double in_seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1000; }

resize::ResizeStatus status_of(const RegistryLook& look) {
  if (!look.status) return {};
  return resize::parse_status(look.status->value).value_or(resize::ResizeStatus{});
}

bool same_version(const Looks& looks) {
  return looks.first.topology && looks.second.topology &&
         looks.first.topology->mod_revision == looks.second.topology->mod_revision;
}

// Why it stands still as it was told to; "" when it was not.
std::string meant_to_wait(const resize::ResizeStatus& status) {
  if (!status.waiting.empty()) {
    return status.waiting_until.empty() ? status.waiting
                                        : fmt::format("{}, until {}", status.waiting, status.waiting_until);
  }
  if (status.mode == "expire") return "old copies expire";
  return status.waits_for;
}

// The same key, unchanged, in both looks.
bool stands(const std::optional<coord::KeyValue>& first, const std::optional<coord::KeyValue>& second) {
  return first && second && first->mod_revision == second->mod_revision;
}

void compare_spec(const topology::Spec& spec, const topology::Topology& topology, Findings& out) {
  // A resize brings its own limits, and the spec in the registry follows when it is over.
  const bool during = topology.resize && spec.cluster == topology.spec.cluster &&
                      spec.members == topology.spec.members && spec.placement == topology.spec.placement;
  if (spec == topology.spec || during) {
    return out.ok("spec", "",
                  fmt::format("in force, {} members, {}", spec.members.size(), spec.placement.algorithm));
  }
  if (spec.cluster != topology.spec.cluster) {
    return out.problem(
        "spec", "",
        fmt::format("is for cluster '{}', and the topology is '{}'s", spec.cluster, topology.spec.cluster),
        "apply the right file: 'ringshift topology apply'");
  }
  const Result<topology::Diff> diff = topology::diff(topology.spec, spec);
  if (!diff) {
    return out.problem("spec", "", "cannot be compared with the topology: " + diff.error().message,
                       "apply a correct one: 'ringshift topology apply'");
  }
  if (topology.resize) {
    return out.warning("spec", "", "differs from the topology while a resize runs",
                       "the resize's own spec replaces it at the end: apply yours again then");
  }
  if (diff->moved_share > 0) {
    return out.warning(
        "spec", "",
        fmt::format("is not in force: it would move {:.2f} % of the keys", diff->moved_share * 100),
        "'ringshift topology get --spec > FILE', look at it, 'ringshift resize start --spec FILE'");
  }
  out.warning("spec", "", "is not in force yet, though it moves no keys",
              "the controller takes it up by itself when it leads: look at its log");
}

}  // namespace

void check_endpoints(const std::vector<EndpointFacts>& endpoints, Findings& out) {
  std::size_t up = 0;
  for (const EndpointFacts& one : endpoints) up += one.unreachable.empty() ? 1 : 0;
  for (const EndpointFacts& one : endpoints) {
    if (!one.unreachable.empty()) {
      if (up == 0) {
        out.problem("reachable", one.url, one.unreachable, "start it, or say where it is: --registry");
      } else {
        out.warning("reachable", one.url, one.unreachable,
                    "start it: with fewer than half of them nothing changes");
      }
      continue;
    }
    out.ok("reachable", one.url, fmt::format("answers in {:.1f} ms", one.round_trip_ms));
    if (!one.clock_ahead_s) continue;
    if (std::abs(*one.clock_ahead_s) <= kClockOffSeconds) {
      out.ok("clock", one.url, fmt::format("within {} s of this machine's", kClockOffSeconds));
    } else {
      out.warning("clock", one.url,
                  fmt::format("{} s {} this machine's", std::abs(*one.clock_ahead_s),
                              *one.clock_ahead_s > 0 ? "ahead of" : "behind"),
                  "run NTP on both: Ringshift compares no clocks, but logs do not line up");
    }
  }
}

void check_registry(const Looks& looks, Findings& out) {
  const RegistryLook& look = looks.second;
  if (!look.unreachable.empty()) {
    return out.problem("answers", "", look.unreachable, "look at its log and its disk");
  }
  if (looks.first.cluster_id != look.cluster_id) {
    out.problem("one registry", "",
                fmt::format("cluster id {:x}, then {:x}: the endpoints are of different registries",
                            looks.first.cluster_id, look.cluster_id),
                "name the endpoints of one etcd cluster, or one registry");
  } else {
    out.ok("one registry", "", fmt::format("cluster id {:x}, revision {}", look.cluster_id, look.revision));
  }
  // Twice: a controller takes over from one that died within its lease.
  if (look.controller) return out.ok("controller", "", look.controller->value + " leads");
  out.problem("controller", "", "nobody holds the cluster's lock: the topology cannot change",
              "start 'ringshift controller'; one that runs says in its log why it does not lead");
}

std::optional<topology::Topology> check_topology(const RegistryLook& look, Findings& out) {
  std::optional<topology::Topology> topology;
  if (!look.topology) {
    out.problem("topology", "", "there is none: no proxy can serve",
                look.spec
                    ? "a controller makes it from the spec: start one, and look at its log"
                    : "write one with 'ringshift topology apply FILE', and check --cluster and --namespace");
  } else {
    auto parsed = topology::parse_topology(look.topology->value, look.topology->key);
    auto snapshot = parsed
                        ? topology::Snapshot::compile(*parsed, {1, 1})
                        : Result<std::shared_ptr<const topology::Snapshot>>(std::unexpected(parsed.error()));
    if (!snapshot) {
      out.problem("topology", "", "cannot be read: " + snapshot.error().message,
                  "'ringshift topology history' has those before; restore the registry's backup");
    } else {
      out.ok("topology", "",
             fmt::format("version 1.{}, epoch {}, step {}", look.topology->mod_revision, parsed->fence.epoch,
                         parsed->fence.step));
      topology = std::move(*parsed);
    }
  }
  if (!look.spec) {
    out.problem("spec", "", "there is none", "write one with 'ringshift topology apply FILE'");
    return topology;
  }
  const Result<topology::Spec> spec = topology::parse_spec(look.spec->value, look.spec->key);
  if (!spec) {
    out.problem("spec", "", "cannot be read: " + spec.error().message,
                "apply a correct one: 'ringshift topology apply'");
    return topology;
  }
  for (const std::string& warning : topology::warnings(*spec)) {
    out.warning("spec", "", warning, "change the spec, or leave it if that is meant");
  }
  if (topology) compare_spec(*spec, *topology, out);
  return topology;
}

void check_resize(const Looks& looks, const topology::Topology& topology, Findings& out) {
  if (stands(looks.first.request, looks.second.request)) {
    out.problem("request", "", fmt::format("has waited for more than {:.1f} s", in_seconds(looks.between)),
                "no controller takes it: start one, or look at its log");
  }
  const resize::ResizeStatus before = status_of(looks.first), now = status_of(looks.second);
  if (!topology.resize) return out.ok("resize", "", "none runs");
  const std::string at = fmt::format("{}, step {} of {}, {} of about {} keys", now.state, now.step, now.steps,
                                     now.keys_moved, now.keys_to_move);
  const std::string reason = now.last_error.empty() ? "" : ": " + now.last_error;
  if (now.state == "paused") {
    return out.warning(
        "resize", topology.resize->id, at + reason,
        "'ringshift resize resume', once what it says is mended, or 'ringshift resize rollback'");
  }
  const bool moved = !same_version(looks) || before.keys_moved != now.keys_moved;
  if (topology.resize->phase == topology::Phase::hold && same_version(looks)) {
    return out.problem("resize", topology.resize->id,
                       fmt::format("in HOLD for more than {:.1f} s: commands on its keys wait{}",
                                   in_seconds(looks.between), reason),
                       looks.second.controller ? "mend what the routers and members below miss"
                                               : "start 'ringshift controller': it goes on from here");
  }
  if (!looks.second.controller) {
    return out.problem("resize", topology.resize->id, "stands still: no controller leads (" + at + ")",
                       "start 'ringshift controller': it goes on from here");
  }
  if (!now.last_error.empty()) {
    return out.problem("resize", topology.resize->id, at + reason,
                       "mend what it says: it tries again by itself. Or 'ringshift resize rollback'");
  }
  if (const std::string why = meant_to_wait(now); !why.empty()) {
    return out.ok("resize", topology.resize->id, fmt::format("{}; waits: {}", at, why));
  }
  if (now.big_keys_waiting != 0) {
    return out.warning("resize", topology.resize->id,
                       fmt::format("{} big keys wait for your word: {}", now.big_keys_waiting, at),
                       "'ringshift resize big-keys move' once their size does no harm, or 'refuse'");
  }
  if (!moved) {
    return out.warning(
        "resize", topology.resize->id,
        fmt::format("nothing moved for {:.1f} s: {}{}{}", in_seconds(looks.between), at,
                    now.held_back.empty() ? "" : "; held back: ", fmt::join(now.held_back, ", ")),
        "look at limits.move_keys_per_second ('ringshift resize set-rate') and at slow members");
  }
  out.ok("resize", topology.resize->id, at);
}

}  // namespace ringshift::doctor
