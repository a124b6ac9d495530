#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/encoding.h"
#include "coord/router_record.h"
#include "doctor/cluster_checks.h"
#include "resize/lost.h"
#include "resize/members.h"

namespace ringshift::doctor {
namespace {

// Of a proxy's descriptors, beside one for each client: listeners, event queues, connections to members.
constexpr std::uint64_t kFilesBesideClients = 64;

std::vector<topology::Member> members_of(const topology::Topology& topology) {
  return topology.resize ? resize::living_members(topology) : topology.spec.members;
}

void judge_files(const std::string& id, const coord::RouterRecord& record, Findings& out) {
  if (record.open_file_limit == 0) return;
  const std::string text =
      fmt::format("may open {} files for at most {} clients", record.open_file_limit, record.max_clients);
  if (record.open_file_limit >= record.max_clients + kFilesBesideClients)
    return out.ok("open files", id, text);
  out.warning("open files", id, text,
              fmt::format("raise its limit (ulimit -n, LimitNOFILE=) to {}, or lower --max-clients",
                          record.max_clients + kFilesBesideClients));
}

void judge_reach(const std::string& id, const std::map<std::string, std::string>& down, std::size_t members,
                 Findings& out) {
  if (down.empty()) return out.ok("reaches members", id, fmt::format("all {}", members));
  for (const auto& [member, why] : down) {
    out.problem("reaches members", id, fmt::format("not {}: {}", member, why),
                "look at that member, and at what lies between the two machines (routes, firewalls, names)");
  }
}

void judge_version(const std::string& id, const coord::RouterRecord& record, const Looks& looks,
                   const std::string& digest, Findings& out) {
  const coord::Revision wanted = looks.second.topology->mod_revision;
  if (record.revision < wanted) {
    // What was published between the looks may be on its way.
    if (!looks.first.topology || looks.first.topology->mod_revision != wanted) {
      return out.ok("topology", id, "follows a change that was published just now");
    }
    return out.problem(
        "topology", id,
        fmt::format("obeys 1.{}, and 1.{} is in force: it has not acknowledged it", record.revision, wanted),
        "commands that it sent under the old one have no answer yet, or it hangs: look at its log. "
        "A resize waits for it, or fences it");
  }
  if (record.revision == wanted && !record.digest.empty() && record.digest != digest) {
    return out.problem("topology", id, fmt::format("version 1.{} with another digest", record.revision),
                       "it reads the document differently: restart it with the version that the others have");
  }
  out.ok("topology", id, fmt::format("version 1.{}, acknowledged", record.revision));
}

}  // namespace

void check_routers(const Looks& looks, const topology::Topology& topology, Findings& out) {
  if (!looks.second.topology) return;
  for (const coord::KeyValue& kv : looks.first.routers) {
    if (std::ranges::find(looks.second.routers, kv.key, &coord::KeyValue::key) != looks.second.routers.end())
      continue;
    out.warning("registered", kv.key.substr(looks.second.routers_prefix.size()),
                "was there a moment ago, and is not any more",
                "nothing, if it was stopped; else it hangs, or has lost the registry: look at that machine");
  }
  if (looks.second.routers.empty()) {
    return out.warning(
        "registered", "", "no proxy follows this cluster",
        "start 'ringshift proxy --registry ... --cluster ...'; one that runs says in its log why it "
        "does not register");
  }
  const std::string digest = topology::digest(topology);
  const std::size_t members = members_of(topology).size();
  std::map<std::string, coord::Revision> reported;
  for (const coord::KeyValue& kv : looks.first.routers) reported[kv.key] = kv.mod_revision;
  for (const coord::KeyValue& kv : looks.second.routers) {
    const std::string id = kv.key.substr(looks.second.routers_prefix.size());
    const Result<coord::RouterRecord> record = coord::parse_router_record(kv.value);
    if (!record) {
      out.problem("registered", id, record.error().message,
                  "restart it, with the version that the others have");
      continue;
    }
    const auto before = reported.find(kv.key);
    if (before != reported.end() && before->second == kv.mod_revision) {
      out.problem("reports", id,
                  fmt::format("none for more than {:.1f} s; it tells one a second",
                              static_cast<double>(looks.between.count()) / 1000),
                  "it hangs, or has lost the registry: look at that machine. A resize fences it");
      continue;  // What it told is old.
    }
    out.ok("reports", id, record->listen.empty() ? "every second" : "serves at " + record->listen);
    judge_version(id, *record, looks, digest, out);
    std::map<std::string, std::string> down = record->unreachable;
    if (topology.resize) {
      for (const std::string& lost : topology.resize->lost) down.erase(lost);  // Nobody expects it back.
    }
    judge_reach(id, down, members, out);
    judge_files(id, *record, out);
  }
}

void check_proxies(const std::vector<ProxyFacts>& proxies, const topology::Topology& topology,
                   const std::string& version, Findings& out) {
  using resize::info_field;
  const std::string digest = topology::digest(topology);
  for (const ProxyFacts& proxy : proxies) {
    if (!proxy.unreachable.empty()) {
      out.problem("reachable", proxy.address, proxy.unreachable,
                  "start it, or give its user and password: --proxy-user, --proxy-password-file");
      continue;
    }
    if (info_field(proxy.info, "ringshift_version").empty()) {
      out.problem("reachable", proxy.address, "is no Ringshift proxy",
                  "give the address where clients connect");
      continue;
    }
    const std::string has = info_field(proxy.info, "topology_digest");
    if (has == digest) {
      out.ok("topology", proxy.address, "the same as here");
    } else {
      out.problem("topology", proxy.address,
                  fmt::format("version {}, digest {}; here {}{}", info_field(proxy.info, "topology_version"),
                              has.substr(0, 12), version, digest.substr(0, 12)),
                  version.empty() ? "its spec is another one: give all proxies the same file, then SIGHUP"
                                  : "it does not follow the registry: look at its log");
    }
    std::map<std::string, std::string> down;
    for (const topology::Member& member : members_of(topology)) {
      if (info_field(proxy.info, member.id + "_state") != "down") continue;
      down[member.id] = info_field(proxy.info, member.id + "_down_reason");
    }
    judge_reach(proxy.address, down, members_of(topology).size(), out);
  }
}

}  // namespace ringshift::doctor
