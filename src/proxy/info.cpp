// The text of INFO: sections as Redis has them, for people and for tools that read Redis' INFO.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <iterator>

#include "proxy/local_commands.h"
#include "proxy/session.h"
#include "ringshift_version.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::CommandParser;
using telemetry::Counter;

using Writer = void (*)(std::string& out, const Session& session);

template <class... Args>
void line(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  out += "\r\n";
}

void server(std::string& out, const Session& session) {
  const Shared& shared = session.shared();
  const auto uptime = std::chrono::steady_clock::now() - shared.started_at;
  line(out, "# Server");
  line(out, "redis_version:{}", kRedisVersion);
  line(out, "redis_mode:standalone");
  line(out, "ringshift_version:{}", RINGSHIFT_VERSION);
  line(out, "router_id:{}", shared.options.router_id);
  line(out, "listen:{}", shared.address);
  line(out, "process_id:{}", getpid());
  line(out, "threads:{}", shared.options.threads);
  line(out, "uptime_in_seconds:{}", std::chrono::duration_cast<std::chrono::seconds>(uptime).count());
}

void clients(std::string& out, const Session& session) {
  line(out, "# Clients");
  line(out, "connected_clients:{}", session.shared().clients.load());
  line(out, "maxclients:{}", session.shared().options.max_clients);
}

void stats(std::string& out, const Session& session) {
  const telemetry::Totals totals = session.shared().stats();
  const auto of = [&](Counter counter) { return telemetry::get(totals, counter); };
  line(out, "# Stats");
  // The names that Redis has for the same things, so that its tools find them.
  line(out, "total_connections_received:{}", of(Counter::clients_accepted));
  line(out, "rejected_connections:{}", of(Counter::clients_rejected));
  line(out, "total_commands_processed:{}", of(Counter::requests));
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

std::string_view phase_of(const topology::Topology& topology) {
  if (!topology.resize) return "none";
  switch (topology.resize->phase) {
    case topology::Phase::prep:
      return "prep";
    case topology::Phase::hold:
      return "hold";
    case topology::Phase::dual:
      return "dual";
  }
  return "none";
}

void topology_section(std::string& out, const Session& session) {
  line(out, "# Topology");
  for (const auto& upstream : session.worker().upstreams()) {
    const topology::Snapshot& snapshot = upstream->snapshot();
    line(out, "cluster:{}", snapshot.topology().spec.cluster);
    line(out, "topology_version:{}", to_string(snapshot.version));
    line(out, "topology_digest:{}", snapshot.digest);
    line(out, "members:{}", snapshot.members().size());
    line(out, "resize_phase:{}", phase_of(snapshot.topology()));
  }
}

struct Section {
  std::string_view name;
  Writer write;
};
constexpr Section kSections[] = {
    {"server", server}, {"clients", clients}, {"stats", stats}, {"topology", topology_section}};

bool asked_for(std::string_view section, const CommandParser& arguments) {
  if (arguments.argument_count() == 1) return true;
  for (std::size_t i = 1; i < arguments.argument_count(); ++i) {
    const std::string_view asked = arguments.argument(i);
    for (const std::string_view match :
         {section, std::string_view("all"), std::string_view("default"), std::string_view("everything")}) {
      if (protocol::resp::equals_ignoring_case(asked, match)) return true;
    }
  }
  return false;
}

}  // namespace

std::string info_text(const Session& session, const CommandParser& arguments) {
  std::string out;
  for (const Section& section : kSections) {
    if (!asked_for(section.name, arguments)) continue;
    if (!out.empty()) out += "\r\n";
    section.write(out, session);
  }
  return out;
}

}  // namespace ringshift::proxy
