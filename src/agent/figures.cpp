#include "agent/figures.h"

#include "telemetry/exposition.h"

namespace ringshift::agent {

void collect(telemetry::Exposition& page, const Record& record, const Health& health, bool registered) {
  const telemetry::Exposition::Labels of{{"instance_id", record.id}};
  const auto number = [](auto value) { return static_cast<double>(value); };
  for (const State state : {State::ready, State::unhealthy, State::draining}) {
    page.gauge("ringshift_agent_state", "1 for the state that the agent gives its server, 0 for the others",
               record.state == state ? 1 : 0, {{"instance_id", record.id}, {"state", name(state)}});
  }
  page.gauge("ringshift_agent_registered", "1 while the registry has the agent's record", registered ? 1 : 0,
             of);
  page.gauge("ringshift_agent_server_up", "1 when the last look at the server found it well",
             health.good ? 1 : 0, of);
  page.gauge("ringshift_agent_server_loading", "1 while the server loads its data", health.loading ? 1 : 0,
             of);
  page.gauge("ringshift_agent_server_used_memory_bytes", "Memory that the server says it uses",
             number(health.used_memory), of);
  page.gauge("ringshift_agent_server_max_memory_bytes", "Memory that the server may use; 0: no limit",
             number(health.max_memory), of);
  page.gauge("ringshift_agent_server_clients", "Clients connected to the server", number(health.clients), of);
  page.gauge("ringshift_agent_server_requests_per_second", "Commands that the server answers in a second",
             number(health.ops_per_second), of);
}

}  // namespace ringshift::agent
