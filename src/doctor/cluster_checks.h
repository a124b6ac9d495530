// What the doctor thinks of registry, topology, resize, membership and routers, by what was seen there
// (looks.h). Pure.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "doctor/finding.h"
#include "doctor/looks.h"
#include "ringshift/topology.h"

namespace ringshift::doctor {

// Two looks, and how long after the first the second one was.
struct Looks {
  RegistryLook first, second;
  std::chrono::milliseconds between{0};
};

void check_endpoints(const std::vector<EndpointFacts>& endpoints, Findings& out);
// Which registry, that it is always the same, and that a controller leads.
void check_registry(const Looks& looks, Findings& out);
// The spec parses and is in force, or why not; the topology parses. Gives the topology when it does.
[[nodiscard]] std::optional<topology::Topology> check_topology(const RegistryLook& look, Findings& out);
// What a resize, and the operators' last request, wait for.
void check_resize(const Looks& looks, const topology::Topology& topology, Findings& out);
// The membership policy: its source, candidates that can be no members, members whose instance is gone or at
// another address, changes that were refused. Silent where there is no policy.
void check_membership(const RegistryLook& look, const topology::Topology& topology, Findings& out);
// Each router obeys the topology, tells so, reaches every member and has files enough.
void check_routers(const Looks& looks, const topology::Topology& topology, Findings& out);
// The same of proxies that were asked themselves. `version`: "" when the cluster is static.
void check_proxies(const std::vector<ProxyFacts>& proxies, const topology::Topology& topology,
                   const std::string& version, Findings& out);

}  // namespace ringshift::doctor
