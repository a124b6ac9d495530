// `ringshift topology apply`: publishes a spec that changes no key's owner. One that does needs the data
// moved first, which is a resize.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/cli.h"
#include "cli/spec_file.h"
#include "cli/topology_registry.h"
#include "coord/membership_keys.h"
#include "plan/edit.h"
#include "ringshift/diff.h"
#include "topology/discovery.h"

namespace ringshift::cli {
namespace {

constexpr std::chrono::milliseconds kPollInterval{100};

struct Flags {
  RegistryFlags registry;
  std::string file;
  bool force = false, json = false;
  double timeout_seconds = 10;
};

// What the registry holds when we decide; the write happens only if that is still so.
struct Before {
  std::optional<coord::KeyValue> spec;
  std::optional<StoredTopology> topology;
};

Result<Before> read_before(coord::Coordinator& coordinator, const coord::ClusterKeys& keys) {
  Before before;
  auto spec = coordinator.get(keys.spec());
  if (!spec) return std::unexpected(spec.error());
  before.spec = *std::move(spec);
  auto topology = read_topology(coordinator, keys);
  if (!topology) return std::unexpected(topology.error());
  before.topology = *std::move(topology);
  return before;
}

// From the spec in force, or from the one that the resize leads to: what a failover needs.
bool only_addresses_differ(const topology::Topology& current, const topology::Spec& next) {
  const auto same_but_for_addresses = [&](const std::vector<topology::Member>& members,
                                          const topology::Placement& placement) {
    if (members.size() != next.members.size() || placement != next.placement) return false;
    for (std::size_t i = 0; i < members.size(); ++i) {
      topology::Member moved = members[i];
      moved.address = next.members[i].address;
      if (moved != next.members[i]) return false;
    }
    return next.protocol == current.spec.protocol && next.consistency == current.spec.consistency;
  };
  return same_but_for_addresses(current.spec.members, current.spec.placement) ||
         same_but_for_addresses(current.resize->members, current.resize->placement);
}

// Whether the topology has what `next` says: all of it, or during a resize the addresses.
bool in_force(const topology::Topology& topology, const topology::Spec& next) {
  if (!topology.resize) return topology.spec == next;
  const auto at_its_address = [&](const topology::Member& member) {
    const auto there = std::ranges::find(next.members, member.id, &topology::Member::id);
    return there == next.members.end() || there->address == member.address;
  };
  return std::ranges::all_of(topology.spec.members, at_its_address) &&
         std::ranges::all_of(topology.resize->members, at_its_address);
}

Status check(const Before& before, const topology::Spec& next, const Flags& flags,
             const std::string& spec_key) {
  if (before.spec) {
    const auto stored = topology::parse_spec(before.spec->value, spec_key);
    if (!stored) return std::unexpected(stored.error());
    if (const Status follows = topology::check_succession(*stored, next, flags.force); !follows)
      return follows;
  }
  if (!before.topology) return {};
  const topology::Topology& current = before.topology->topology;
  if (current.resize) {
    if (only_addresses_differ(current, next)) return {};
    return fail(
        ErrorKind::stale,
        fmt::format(
            "resize {} is under way, and of the spec only members' addresses may change under it: wait until "
            "'ringshift resize status' says finished, or take it back with 'ringshift resize rollback'",
            current.resize->id));
  }
  const bool no_data = current.spec.consistency == topology::Consistency::none &&
                       next.consistency == topology::Consistency::none;
  if (no_data) return {};
  const auto diff = topology::diff(current.spec, next);
  if (!diff) return std::unexpected(diff.error());
  if (diff->moved_share <= 0) return {};
  return fail(
      ErrorKind::invalid,
      fmt::format(
          "{}: {}{:.2f} % of the keys would change owner, and their data would be left behind: move it "
          "while the cluster serves, with 'ringshift resize start --spec {}'",
          flags.file, diff->exact ? "" : "about ", diff->moved_share * 100, flags.file));
}

// Writes the spec if nobody was faster. The revision of the write.
Result<coord::Revision> write(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                              const Before& before, const topology::Spec& next) {
  using coord::Compare;
  const auto unchanged = [](const std::string& key, coord::Revision revision) {
    return Compare{key, Compare::Target::mod_revision, revision};
  };
  const auto written =
      coordinator.transact({unchanged(keys.spec(), before.spec ? before.spec->mod_revision : 0),
                            unchanged(keys.topology(), before.topology ? before.topology->revision : 0)},
                           {{coord::Op::Kind::put, keys.spec(), topology::to_json(next), 0}});
  if (!written) return std::unexpected(written.error());
  if (!*written) {
    return fail(ErrorKind::stale,
                fmt::format("{} was changed by somebody else meanwhile, and nothing was written: "
                            "look at it with 'ringshift topology get', then apply again",
                            keys.prefix));
  }
  return **written;
}

// The topology with that spec, once the controller has made it.
Result<StoredTopology> wait_for(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                                const topology::Spec& spec, const Flags& flags) {
  const auto give_up =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(flags.timeout_seconds);
  std::string last;
  for (;;) {
    const auto stored = read_topology(coordinator, keys);
    if (stored && *stored && in_force((*stored)->topology, spec)) return **stored;
    if (!stored) last = stored.error().message;
    if (std::chrono::steady_clock::now() >= give_up) break;
    std::this_thread::sleep_for(kPollInterval);
  }
  if (!last.empty()) return fail(ErrorKind::retryable, "the spec is written, but: " + last);
  const auto lock = coordinator.get(keys.controller());
  const bool alone = lock && !*lock;
  return fail(
      ErrorKind::retryable,
      alone ? fmt::format("the spec is written, but no controller is running to publish it: start one with "
                          "'ringshift controller --registry {} --cluster {}'",
                          flags.registry.registry, flags.registry.cluster)
            : fmt::format("the spec is written, but the controller has not published it within {} s: see its "
                          "log, and 'ringshift topology get'",
                          flags.timeout_seconds));
}

Status apply(Flags& flags) {
  const auto text = read_text(flags.file);
  if (!text) return std::unexpected(text.error());
  auto next = topology::parse_spec(*text, flags.file);
  if (!next) return std::unexpected(next.error());
  const auto discovery = discovery_of_text(*text, flags.file);
  if (!discovery) return std::unexpected(discovery.error());
  if (flags.registry.cluster.empty()) flags.registry.cluster = next->cluster;
  if (flags.registry.cluster != next->cluster) {
    return fail(ErrorKind::invalid,
                fmt::format("{}: the spec is for cluster '{}', but --cluster says '{}': correct one "
                            "of them",
                            flags.file, next->cluster, flags.registry.cluster));
  }
  const auto coordinator = flags.registry.connect();
  if (!coordinator) return std::unexpected(coordinator.error());
  const coord::ClusterKeys keys = flags.registry.keys();
  const auto before = read_before(**coordinator, keys);
  if (!before) return std::unexpected(before.error());
  if (before->topology) {
    // A file that says nothing of its placement's table means the one in force, as for `resize start`.
    next = plan::successor(before->topology->topology.spec, *std::move(next));
    if (!next) return std::unexpected(next.error());
  }
  if (const Status allowed = check(*before, *next, flags, keys.spec()); !allowed) return allowed;
  const bool same = before->spec && before->spec->value == topology::to_json(*next);
  if (!same) {
    if (const auto written = write(**coordinator, keys, *before, *next); !written) {
      return std::unexpected(written.error());
    }
  }
  // It moves no key and routers do not read it, so it has a key of its own. A file without it leaves it
  // alone.
  if (*discovery) {
    const auto put = (*coordinator)->put(coord::discovery_key(keys), topology::to_json(**discovery));
    if (!put) return std::unexpected(put.error());
  }
  for (const std::string& note : topology::warnings(*next)) report("warning: " + note);
  const auto stored = wait_for(**coordinator, keys, *next, flags);
  if (!stored) return std::unexpected(stored.error());
  const std::string digest = topology::digest(stored->topology);
  if (flags.json) {
    const nlohmann::json out = {
        {"version", topology::to_string(stored->version)}, {"digest", digest}, {"changed", !same}};
    fmt::print("{}\n", out.dump());
  } else {
    fmt::print("{}: cluster {} has version {}, digest {}\n", same ? "unchanged" : "applied", next->cluster,
               topology::to_string(stored->version), digest);
  }
  return {};
}

}  // namespace

void add_topology_apply(CLI::App& topology) {
  CLI::App* command = topology.add_subcommand("apply", "Publish a spec that changes no key's owner");
  auto flags = std::make_shared<Flags>();
  command->add_option("FILE", flags->file, "The spec, YAML or JSON; - is standard input")->required();
  flags->registry.add_to(*command, false);
  command->add_flag("--force", flags->force, "Also when more than half of the members vanish");
  command->add_option("--timeout", flags->timeout_seconds, "Seconds to wait for the controller")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "One JSON object: version, digest, changed");
  command->footer(
      "Examples:\n"
      "  ringshift topology apply cache.yaml\n"
      "  ringshift topology apply cache.yaml --registry http://10.0.0.1:2379,http://10.0.0.2:2379\n"
      "A spec that would move keys is refused: 'ringshift resize start --spec FILE' moves their data.");
  command->callback([flags] {
    if (const Status done = apply(*flags); !done) {
      report(done.error().message);
      throw CLI::RuntimeError(kFailed);
    }
  });
}

}  // namespace ringshift::cli
