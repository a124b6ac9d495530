// The text of INFO: sections as Redis has them, for people and for tools that read Redis' INFO.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "proxy/keeper.h"
#include "proxy/local_commands.h"
#include "proxy/phase_name.h"
#include "proxy/replies.h"
#include "proxy/session.h"
#include "ringshift_version.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::CommandParser;
using telemetry::Counter;

// What the workers know, added up.
struct Member {
  std::size_t workers = 0, connected = 0;  // Those that know it, and those of them that are connected.
  std::string address, down_reason;
  backend::MemberFigures sum;
};
struct Known {
  std::map<std::string, Member, std::less<>> members;  // "cache-1"; of several clusters "main/cache-1".
  std::int64_t ops = 0, in_bytes = 0, out_bytes = 0;   // In the last second.
  std::int64_t blocked = 0, paused = 0, unread = 0;
  std::map<std::string, std::uint64_t, std::less<>> errors;
  std::map<const protocol::resp::Command*, CommandTimes> times;
};
// The workers write to it in turn.
struct Collected {
  std::mutex mutex;
  Known known;
};

using Writer = void (*)(std::string& out, const Session& session, const Known& known);

template <class... Args>
void line(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  out += "\r\n";
}

void server(std::string& out, const Session& session, const Known&) {
  const Shared& shared = session.shared();
  const auto uptime = std::chrono::steady_clock::now() - shared.started_at;
  line(out, "# Server");
  line(out, "redis_version:{}", kRedisVersion);
  line(out, "redis_mode:standalone");
  line(out, "arch_bits:{}", sizeof(void*) * 8);
  line(out, "ringshift_version:{}", RINGSHIFT_VERSION);
  line(out, "router_id:{}", shared.options.router_id);
  line(out, "listen:{}", shared.address);
  line(out, "process_id:{}", getpid());
  line(out, "threads:{}", shared.options.threads);
  const std::size_t colon = shared.address.rfind(':');
  line(out, "tcp_port:{}", shared.address.starts_with("unix:") ? "0" : shared.address.substr(colon + 1));
  const auto clock = std::chrono::system_clock::now().time_since_epoch();
  line(out, "server_time_usec:{}", std::chrono::duration_cast<std::chrono::microseconds>(clock).count());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(uptime).count();
  line(out, "uptime_in_seconds:{}", seconds);
  line(out, "uptime_in_days:{}", seconds / 86400);
}

void clients(std::string& out, const Session& session, const Known& known) {
  line(out, "# Clients");
  line(out, "connected_clients:{}", session.shared().clients.load());
  line(out, "maxclients:{}", session.shared().settings.max_clients.get());
  line(out, "blocked_clients:{}", known.blocked);
  line(out, "tracking_clients:0");
  line(out, "paused_clients:{}", known.paused);
  line(out, "unread_output_bytes:{}", known.unread);
}

std::string human(double bytes) {
  constexpr std::string_view kUnits = "BKMGT";
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return unit == 0 ? fmt::format("{:.0f}B", bytes) : fmt::format("{:.2f}{}", bytes, kUnits[unit]);
}

// Of the process: the proxy keeps no data, but what clients and members have not read yet.
void memory(std::string& out, const Session&, const Known& known) {
  std::size_t pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r"); file != nullptr) {
    if (std::fscanf(file, "%*u %zu", &pages) != 1) pages = 0;
    (void)std::fclose(file);
  }
  const std::size_t resident = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  rusage usage{};
  (void)getrusage(RUSAGE_SELF, &usage);
  const auto peak = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
  line(out, "# Memory");
  line(out, "used_memory:{}", resident);
  line(out, "used_memory_human:{}", human(static_cast<double>(resident)));
  line(out, "used_memory_rss:{}", resident);
  line(out, "used_memory_rss_human:{}", human(static_cast<double>(resident)));
  line(out, "used_memory_peak:{}", peak);
  line(out, "used_memory_peak_human:{}", human(static_cast<double>(peak)));
  line(out, "mem_clients_normal:{}", known.unread);
}

void replication(std::string& out, const Session&, const Known&) {
  line(out, "# Replication");
  line(out, "role:master");
  line(out, "connected_slaves:0");
}

void cpu(std::string& out, const Session&, const Known&) {
  rusage usage{};
  (void)getrusage(RUSAGE_SELF, &usage);
  line(out, "# CPU");
  line(out, "used_cpu_sys:{}.{:06}", usage.ru_stime.tv_sec, usage.ru_stime.tv_usec);
  line(out, "used_cpu_user:{}.{:06}", usage.ru_utime.tv_sec, usage.ru_utime.tv_usec);
}

// Counted while latency-tracking, or a threshold, has commands measured.
void commandstats(std::string& out, const Session&, const Known& known) {
  line(out, "# Commandstats");
  for (const auto& [command, times] : known.times) {
    line(out, "cmdstat_{}:calls={},usec={},usec_per_call={:.2f},rejected_calls=0,failed_calls=0",
         command->name, times.calls, times.micros,
         static_cast<double>(times.micros) / static_cast<double>(std::max<std::uint64_t>(times.calls, 1)));
  }
}

void errorstats(std::string& out, const Session&, const Known& known) {
  line(out, "# Errorstats");
  for (const auto& [word, count] : known.errors) line(out, "errorstat_{}:count={}", word, count);
}

void stats(std::string& out, const Session& session, const Known& known) {
  const telemetry::Totals totals = session.shared().recent_stats();
  const auto of = [&](Counter counter) { return telemetry::get(totals, counter); };
  line(out, "# Stats");
  // The names that Redis has for the same things, so that its tools find them.
  line(out, "total_connections_received:{}", of(Counter::clients_accepted));
  line(out, "rejected_connections:{}", of(Counter::clients_rejected));
  line(out, "total_commands_processed:{}", of(Counter::requests));
  line(out, "instantaneous_ops_per_sec:{}", known.ops);
  line(out, "instantaneous_input_kbps:{:.2f}", static_cast<double>(known.in_bytes) / 1024);
  line(out, "instantaneous_output_kbps:{:.2f}", static_cast<double>(known.out_bytes) / 1024);
  line(out, "evicted_clients:{}", of(Counter::clients_cut));
  std::uint64_t errors = 0;
  for (const auto& [word, count] : known.errors) errors += count;
  line(out, "total_error_replies:{}", errors);
  line(out, "keyspace_hits:{}", of(Counter::get_hits));
  line(out, "keyspace_misses:{}", of(Counter::get_misses));
  line(out, "total_net_input_bytes:{}", of(Counter::bytes_in));
  line(out, "total_net_output_bytes:{}", of(Counter::bytes_out));
  for (std::size_t i = 0; i < telemetry::kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    if (telemetry::name(counter).starts_with("errors_") || counter == Counter::clients_cut) {
      line(out, "{}:{}", telemetry::name(counter), of(counter));
    }
  }
}

std::string one_line(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return text;
}

void topology_section(std::string& out, const Session& session, const Known&) {
  line(out, "# Topology");
  const auto& upstreams = session.worker().upstreams();
  const auto& clusters = session.shared().clusters;  // In the same order.
  for (std::size_t i = 0; i < upstreams.size(); ++i) {
    const topology::Snapshot& snapshot = upstreams[i]->snapshot();
    line(out, "cluster:{}", snapshot.topology().spec.cluster);
    line(out, "topology_version:{}", to_string(snapshot.version));
    line(out, "topology_digest:{}", snapshot.digest);
    line(out, "members:{}", snapshot.members().size());
    line(out, "resize_phase:{}", phase_name(snapshot.topology()));
    const Keeper* keeper = i < clusters.size() ? keeper_of(clusters[i].authority) : nullptr;
    if (keeper == nullptr) continue;
    const Keeper::Standing standing = keeper->standing();
    line(out, "topology_source:{}", standing.from_disk ? "disk" : "registry");
    line(out, "registry_age_seconds:{:.0f}", standing.registry_age_seconds);
    line(out, "registry_refused:{}", standing.registry_refused ? 1 : 0);
  }
}

// One section a member, whose fields bear its name so that tools keep them apart.
void members(std::string& out, const Session&, const Known& known) {
  for (const auto& [name, member] : known.members) {
    if (!out.empty() && !out.ends_with("\r\n\r\n")) out += "\r\n";
    const bool connected = member.connected == member.workers;
    line(out, "# Member {}", name);
    line(out, "{}_address:{}", name, member.address);
    line(out, "{}_state:{}", name,
         connected                    ? "connected"
         : member.down_reason.empty() ? "connecting"
                                      : "down");
    line(out, "{}_down_reason:{}", name, one_line(member.down_reason));
    line(out, "{}_connected_threads:{}", name, member.connected);
    line(out, "{}_queued:{}", name, member.sum.queued_commands);
    line(out, "{}_in_flight:{}", name, member.sum.in_flight);
    line(out, "{}_requests:{}", name, member.sum.answered);
    line(out, "{}_errors:{}", name, member.sum.failed);
    line(out, "{}_private_connections:{}", name, member.sum.private_connections);
  }
}

struct Section {
  std::string_view name;
  Writer write;
  bool by_default = true;
};
constexpr Section kSections[] = {{"server", server},
                                 {"clients", clients},
                                 {"memory", memory},
                                 {"stats", stats},
                                 {"replication", replication},
                                 {"cpu", cpu},
                                 {"commandstats", commandstats, false},
                                 {"errorstats", errorstats},
                                 {"topology", topology_section},
                                 {"members", members}};

bool asked_for(const Section& section, const std::vector<std::string>& asked) {
  if (asked.empty()) return section.by_default;
  return std::ranges::any_of(asked, [&](std::string_view name) {
    const auto is = [&](std::string_view other) { return protocol::resp::equals_ignoring_case(name, other); };
    return is(section.name) || is("all") || is("everything") || (section.by_default && is("default"));
  });
}

void collect_members(Known& known, Worker& worker) {
  for (const auto& upstream : worker.upstreams()) {
    const auto members = upstream->snapshot().members();
    for (topology::MemberIndex i = 0; i < members.size(); ++i) {
      const backend::MemberFigures figures = upstream->pool().figures(i);
      Member& member = known.members[worker.upstreams().size() == 1 ? members[i].id
                                                                    : upstream->name() + "/" + members[i].id];
      ++member.workers;
      member.connected += figures.connected ? 1 : 0;
      member.address = members[i].address;
      if (!figures.connected && !figures.down_reason.empty()) member.down_reason = figures.down_reason;
      member.sum.queued_commands += figures.queued_commands;
      member.sum.in_flight += figures.in_flight;
      member.sum.answered += figures.answered;
      member.sum.failed += figures.failed;
      member.sum.private_connections += figures.private_connections;
    }
  }
}

// On each worker's thread.
void collect(Known& known, Worker& worker) {
  const WorkerAdmin& admin = worker.admin();
  known.ops += admin.last_second[0];
  known.in_bytes += admin.last_second[1];
  known.out_bytes += admin.last_second[2];
  for (const auto& [word, count] : admin.errors) known.errors[word] += count;
  for (const auto& [command, times] : admin.times) known.times[command].add(times);
  collect_members(known, worker);
  for (const auto& session : worker.sessions()) {
    known.blocked += session->waits() ? 1 : 0;
    known.paused += session->held() ? 1 : 0;
  }
}

}  // namespace

std::string info_command(Session& session, const CommandParser& arguments) {
  std::vector<std::string> asked;
  for (std::size_t i = 1; i < arguments.argument_count(); ++i) asked.emplace_back(arguments.argument(i));
  const auto collected = std::make_shared<Collected>();
  session.gather(
      [collected, asked = std::move(asked), &session](const Gather::Part&) {
        const std::lock_guard lock(collected->mutex);
        Known& known = collected->known;
        known.unread = session.shared().unread_output.load(std::memory_order_relaxed);
        std::string text, out;
        for (const Section& section : kSections) {
          if (!asked_for(section, asked)) continue;
          if (!text.empty()) text += "\r\n";
          section.write(text, session, known);
        }
        append_verbatim(out, text, session.resp());
        return out;
      },
      [collected](Worker& worker) {
        const std::lock_guard lock(collected->mutex);
        collect(collected->known, worker);
        return Gather::Part{};
      });
  return {};
}

}  // namespace ringshift::proxy
