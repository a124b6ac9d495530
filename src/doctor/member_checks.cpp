#include "doctor/member_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/encoding.h"
#include "transfer/steps.h"

namespace ringshift::doctor {
namespace {

using resize::info_field;

constexpr double kMiB = 1048576;
constexpr double kNearlyFull = 0.9, kMuchOfTheMachine = 0.8;
constexpr double kSlowMs = 50;  // Of a round trip: a write of a key that moves takes five.
constexpr double kManyClients = 0.8;
constexpr std::int64_t kClockOffMs = 1000;
constexpr int kOldest = 5000;  // CLIENT ID and UNLINK; 5.0 as version_of() gives it.

double figure(const MemberFacts& facts, std::string_view field) {
  return static_cast<double>(base::parse_u64(info_field(facts.info, field)).value_or(0));
}

// "7.0.15" as a number that compares: 7000.
int version_of(const MemberFacts& facts) {
  int major = 0, minor = 0;
  if (std::sscanf(info_field(facts.info, "redis_version").c_str(), "%d.%d", &major, &minor) < 1) return 0;
  return major * 1000 + minor;
}

bool answered(const MemberFacts& facts) { return facts.unreachable.empty(); }

// What to do about a member that gives this instead of service.
std::string way_in(const std::string& error, const topology::Member& member) {
  const auto says = [&](std::string_view word) { return error.find(word) != std::string::npos; };
  if (says("NOAUTH") || says("WRONGPASS") || says("password")) {
    return "give the members' user and password as the proxies have them: --member-user, "
           "--member-password-file";
  }
  if (says("TLS") || says("certificate")) return "look at --tls-members and its files: docs/tls.md";
  if (says("name the connection")) return "allow CLIENT SETNAME and CLIENT ID to the user that Ringshift has";
  if (says("LOADING")) return "wait until it has read its file";
  if (says("max number of clients")) return "raise its maxclients, or find who opens so many";
  return fmt::format("start it, or correct the address {} by 'ringshift topology apply'", member.address);
}

}  // namespace

void check_reached(const MemberFacts& facts, Findings& out) {
  const topology::Member& member = facts.member;
  if (!answered(facts)) {
    return out.problem("reachable", member.id, fmt::format("{}: {}", member.address, facts.unreachable),
                       way_in(facts.unreachable, member));
  }
  const std::string text = fmt::format("{} answers in {:.1f} ms", member.address, facts.round_trip_ms);
  if (facts.round_trip_ms < kSlowMs) return out.ok("reachable", member.id, text);
  out.warning(
      "reachable", member.id, text,
      "each write of a key that moves takes five round trips: look at the network and at SLOWLOG there");
}

void check_role(const MemberFacts& facts, Findings& out) {
  if (!answered(facts)) return;
  if (info_field(facts.info, "role") != "slave") {
    const std::string replicas = info_field(facts.info, "connected_slaves");
    return out.ok(
        "role", facts.member.id,
        replicas.empty() || replicas == "0" ? "master" : fmt::format("master, replicas: {}", replicas));
  }
  const std::string master =
      fmt::format("{}:{}", info_field(facts.info, "master_host"), info_field(facts.info, "master_port"));
  out.problem(
      "role", facts.member.id, fmt::format("is a replica of {} and refuses writes", master),
      fmt::format("after a failover: put {} into the spec and 'ringshift topology apply' it; else say "
                  "REPLICAOF NO ONE there",
                  master));
}

void check_permissions(const MemberFacts& facts, Findings& out) {
  if (!answered(facts)) return;
  for (const Refused& one : facts.refused) {
    out.problem("permissions", facts.member.id, fmt::format("{} is refused: {}", one.command, one.error),
                "a resize needs it: allow it to the user that Ringshift has (docs/operations.md lists them)");
  }
  if (facts.refused.empty()) {
    out.ok("permissions", facts.member.id,
           "scripts, DUMP, RESTORE, CLIENT LIST, KILL and SETNAME are allowed");
  }
}

void check_memory(const MemberFacts& facts, Findings& out) {
  if (!answered(facts)) return;
  const std::string& id = facts.member.id;
  const double used = figure(facts, "used_memory"), maximum = figure(facts, "maxmemory");
  const double machine = figure(facts, "total_system_memory");
  const std::string policy = info_field(facts.info, "maxmemory_policy");
  if (facts.write_refused.find("OOM") != std::string::npos) {
    return out.problem("memory", id,
                       fmt::format("is full and refuses writes: {:.0f} of {:.0f} MiB, {}", used / kMiB,
                                   maximum / kMiB, policy),
                       "raise maxmemory, or let a resize take keys away from it");
  }
  if (maximum == 0) {
    const std::string text = fmt::format("{:.0f} MiB used, no maxmemory", used / kMiB);
    if (machine == 0 || used < machine * kMuchOfTheMachine) return out.ok("memory", id, text);
    return out.warning("memory", id, fmt::format("{}, and the machine has {:.0f} MiB", text, machine / kMiB),
                       "set maxmemory: the kernel ends a process that takes all of it");
  }
  const std::string text = fmt::format("{:.0f} of {:.0f} MiB used, {}", used / kMiB, maximum / kMiB, policy);
  if (policy.starts_with("allkeys")) {
    return out.warning("memory", id, text,
                       "nothing to mend for a cache; know that it may evict rs:stamp during a resize, which "
                       "then goes back through HOLD: volatile-* policies do not");
  }
  if (used > maximum * kNearlyFull && policy == "noeviction") {
    return out.warning("memory", id, text, "soon it refuses writes: raise maxmemory, or grow the cluster");
  }
  out.ok("memory", id, text);
}

void check_persistence(const MemberFacts& facts, Findings& out) {
  if (!answered(facts)) return;
  const std::string& id = facts.member.id;
  const bool aof = info_field(facts.info, "aof_enabled") == "1";
  const bool aof_bad = aof && info_field(facts.info, "aof_last_write_status") == "err";
  const bool rdb_bad = info_field(facts.info, "rdb_last_bgsave_status") == "err";
  if (facts.write_refused.starts_with("MISCONF")) {
    return out.problem("persistence", id, "refuses writes: " + facts.write_refused,
                       "free space on its disk and look at its log; it takes writes again by itself");
  }
  if (aof_bad || rdb_bad) {
    return out.warning(
        "persistence", id,
        fmt::format("the last {} failed", aof_bad ? "write of its append-only file" : "BGSAVE"),
        "look at its log and its disk: it may refuse writes soon");
  }
  const bool rdb = !facts.save.empty();
  out.ok("persistence", id,
         aof   ? "append-only file"
         : rdb ? "snapshots: what was written since the last one is lost when it dies, and what was deleted "
                 "since then comes back"
               : "none: it comes back empty");
}

void check_databases(const MemberFacts& facts, unsigned databases, Findings& out) {
  if (!answered(facts)) return;
  std::string others;
  std::string_view rest = facts.info;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    if (!line.starts_with("db") || colon == std::string_view::npos ||
        !line.substr(colon).starts_with(":keys="))
      continue;
    const auto number = base::parse_u64(line.substr(2, colon - 2));
    if (!number || *number < databases) continue;
    if (!others.empty()) others += ", ";
    others += std::to_string(*number);
  }
  if (others.empty()) {
    return out.ok("databases", facts.member.id,
                  databases == 1 ? "keys in database 0 only"
                                 : fmt::format("keys in databases 0 to {} only", databases - 1));
  }
  out.problem("databases", facts.member.id,
              fmt::format("has keys in databases that no proxy serves: {}", others),
              "a resize is refused: find who writes there, and empty them (SELECT N, FLUSHDB)");
}

void check_foreign_clients(const MemberFacts& facts, Findings& out) {
  if (!answered(facts) || !facts.clients) return;
  std::size_t count = 0;
  std::string named;
  for (const resize::ClientEntry& entry : *facts.clients) {
    if (!resize::is_foreign(entry)) continue;
    if (++count <= kExamplesKept) {
      named += fmt::format("{}{} (last command {})", named.empty() ? "" : ", ", entry.address, entry.command);
    }
  }
  if (count == 0) return out.ok("foreign clients", facts.member.id, "only Ringshift is connected");
  out.warning(
      "foreign clients", facts.member.id, fmt::format("{} that are not Ringshift's: {}", count, named),
      "what writes around the proxies loses data in a resize: connect it to a proxy; if it only reads, "
      "'resize start --allow-foreign'");
}

void check_connections(const MemberFacts& facts, Findings& out) {
  if (!answered(facts)) return;
  const double now = figure(facts, "connected_clients"), most = figure(facts, "maxclients");
  if (most == 0) return;  // Before Redis 7.
  const std::string text = fmt::format("{:.0f} of {:.0f}", now, most);
  if (now < most * kManyClients) return out.ok("connections", facts.member.id, text);
  out.warning("connections", facts.member.id, text,
              "a proxy that restarts may find no room: raise its maxclients and its limit of open files");
}

void check_clock(const MemberFacts& facts, Findings& out) {
  if (!answered(facts) || !facts.clock_ahead_ms) return;
  const std::int64_t ahead = *facts.clock_ahead_ms;
  if (ahead > -kClockOffMs && ahead < kClockOffMs) {
    return out.ok("clock", facts.member.id, fmt::format("within {} ms of this machine's", kClockOffMs));
  }
  out.warning(
      "clock", facts.member.id,
      fmt::format("{:.1f} s {} this machine's", static_cast<double>(std::abs(ahead)) / 1000,
                  ahead > 0 ? "ahead of" : "behind"),
      "run NTP on both. Ringshift compares no clocks, but a clock that is set expires keys too soon or "
      "too late");
}

void check_placed_keys(const MemberFacts& facts, Findings& out) {
  if (!answered(facts) || facts.keys_sampled == 0) return;
  const std::string of = facts.keys_sampled + 1 >= facts.keys
                             ? fmt::format("{} keys", facts.keys_sampled)
                             : fmt::format("{} keys sampled of {}", facts.keys_sampled, facts.keys);
  if (facts.keys_elsewhere == 0)
    return out.ok("placed keys", facts.member.id, fmt::format("all {} belong there", of));
  std::string named;
  for (const std::string& key : facts.examples) named += (named.empty() ? "" : ", ") + key;
  out.warning("placed keys", facts.member.id,
              fmt::format("{} of {} belong to other members: {}", facts.keys_elsewhere, of, named),
              "no proxy reads them there. Either something writes with another placement (compare its answer "
              "with 'ringshift route KEY'), or they are left from before, take memory, and can be UNLINKed");
}

void check_stamp(const MemberFacts& facts, const topology::Topology& topology, Findings& out) {
  if (!answered(facts) || !facts.stamp) return;
  const std::string& id = facts.member.id;
  const std::string& stamp = *facts.stamp;
  const topology::Fence& fence = topology.fence;
  const auto there = transfer::step_of_stamp(stamp);
  const transfer::StampStep known{fence.epoch, fence.step};
  // The next resize's first stamps come before its topology.
  if (there && *there > transfer::StampStep{fence.epoch + 1, fence.step + 1}) {
    return out.problem(
        "stamp", id,
        fmt::format("rs:stamp is '{}', and this registry knows of epoch {}, step {} only", stamp, fence.epoch,
                    fence.step),
        "the member serves another cluster, or this cluster's registry was lost and made anew: "
        "then 'resize start --force' goes on above it");
  }
  if (fence.epoch == 0) return out.ok("stamp", id, "none yet: no resize ever ran");
  const auto bound = fence.run_ids.find(id);
  if (bound == fence.run_ids.end()) return out.ok("stamp", id, "it took no part in the last resize");
  const std::string run_id = info_field(facts.info, "run_id");
  if (there && *there == known && bound->second == run_id) return out.ok("stamp", id, stamp);
  const std::string why = !there                    ? "has no rs:stamp: it was restarted empty, or evicts it"
                          : bound->second != run_id ? "was restarted since its stamp was written"
                                                    : fmt::format("has the stamp of another step: {}", stamp);
  out.warning("stamp", id, why,
              topology.resize
                  ? "the controller takes the step back through HOLD by itself; if this stays, look "
                    "at 'ringshift resize status'"
                  : "nothing, while the registry answers: proxies that connect ask it instead. The "
                    "next resize writes it anew");
}

void check_versions(const std::vector<MemberFacts>& all, const topology::Topology& topology, Findings& out) {
  std::map<int, std::string> by_version;  // Version -> who has it.
  int newest_source = 0;
  for (const MemberFacts& facts : all) {
    if (!answered(facts)) continue;
    const int version = version_of(facts);
    by_version[version] += (by_version[version].empty() ? "" : ", ") + facts.member.id;
    const bool gives = std::ranges::find(topology.spec.members, facts.member.id, &topology::Member::id) !=
                       topology.spec.members.end();
    if (gives) newest_source = std::max(newest_source, version);
  }
  if (by_version.empty()) return;
  const auto& [oldest, oldest_ids] = *by_version.begin();
  const auto shown = [](int version) { return fmt::format("{}.{}", version / 1000, version % 1000); };
  if (oldest < kOldest) {
    return out.problem("versions", oldest_ids, fmt::format("Redis {} is too old", shown(oldest)),
                       "a resize needs Redis 5 or newer: upgrade it");
  }
  if (by_version.size() == 1) return out.ok("versions", "", fmt::format("all have Redis {}", shown(oldest)));
  std::string text;
  for (const auto& [version, ids] : by_version) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", shown(version), ids);
  }
  if (oldest < newest_source) {
    return out.warning(
        "versions", "", text,
        "a member that receives keys must not be older than one that gives them, or a resize is "
        "refused: upgrade the older ones");
  }
  out.ok("versions", "", text);
}

void check_one_server_each(const std::vector<MemberFacts>& all, Findings& out) {
  std::map<std::string, std::string> member_of;  // Run id -> member.
  bool good = true;
  for (const MemberFacts& facts : all) {
    if (!answered(facts)) continue;
    const std::string run_id = info_field(facts.info, "run_id");
    const auto [before, first] = member_of.try_emplace(run_id, facts.member.id);
    if (first || run_id.empty()) continue;
    good = false;
    out.problem("one server each", facts.member.id,
                fmt::format("is the same server as {} (run id {})", before->second, run_id),
                "give each member a server of its own: what moves from one to the other would be deleted");
  }
  if (good && !member_of.empty()) out.ok("one server each", "", fmt::format("{} servers", member_of.size()));
}

std::vector<Finding> check_members(const std::vector<MemberFacts>& all, const topology::Topology& topology,
                                   bool from_registry) {
  Findings out("members");
  for (const MemberFacts& facts : all) check_reached(facts, out);
  check_versions(all, topology, out);
  check_one_server_each(all, out);
  for (const MemberFacts& facts : all) check_role(facts, out);
  for (const MemberFacts& facts : all) check_permissions(facts, out);
  for (const MemberFacts& facts : all) check_memory(facts, out);
  for (const MemberFacts& facts : all) check_persistence(facts, out);
  for (const MemberFacts& facts : all) check_databases(facts, topology.spec.databases, out);
  for (const MemberFacts& facts : all) check_foreign_clients(facts, out);
  for (const MemberFacts& facts : all) check_connections(facts, out);
  for (const MemberFacts& facts : all) check_clock(facts, out);
  for (const MemberFacts& facts : all) check_placed_keys(facts, out);
  if (from_registry) {
    for (const MemberFacts& facts : all) check_stamp(facts, topology, out);
  }
  return std::move(out).take();
}

}  // namespace ringshift::doctor
