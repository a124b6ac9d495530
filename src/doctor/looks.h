// What the registry and the proxies say. Two looks at the registry, a few seconds apart, tell what moves and
// what stands still without comparing anybody's clock.
//
// Blocking; one HTTP request for each key asked. Failure is part of what is returned.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/access.h"
#include "coord/coordinator.h"
#include "coord/keys.h"
#include "http/client.h"

namespace ringshift::doctor {

struct RegistryLook {
  std::string unreachable;  // "" when all was read.
  double round_trip_ms = 0;
  std::uint64_t cluster_id = 0;
  coord::Revision revision = 0;
  std::optional<coord::KeyValue> spec, topology, controller, request, status, discovery, membership;
  std::vector<coord::KeyValue> routers;
  std::string routers_prefix;  // What their keys begin with.
};
[[nodiscard]] RegistryLook look_at_registry(coord::Coordinator& coordinator, const coord::ClusterKeys& keys);

struct EndpointFacts {
  std::string url, unreachable;
  double round_trip_ms = 0;
  std::optional<std::int64_t> clock_ahead_s;  // Of this machine's, to a second; by the Date of its answer.
};
[[nodiscard]] EndpointFacts look_at_endpoint(const std::string& url, const http::ClientTls& tls);

struct ProxyFacts {
  std::string address, unreachable;
  std::string info;  // Its sections server, clients, topology and members.
};
[[nodiscard]] ProxyFacts look_at_proxy(const std::string& address,
                                       std::shared_ptr<const backend::MemberAccess> access);

}  // namespace ringshift::doctor
