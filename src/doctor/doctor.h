// Looks at a deployment as a whole and lists what it found: `ringshift doctor`.
//
// Changes nothing. Takes about three seconds with a registry, for it looks twice; without, as long as its
// slowest member. Failure of any part is a finding; what depends on it is left out.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/access.h"
#include "coord/coordinator.h"
#include "coord/keys.h"
#include "doctor/finding.h"
#include "http/client.h"
#include "ringshift/topology.h"

namespace ringshift::doctor {

// Longer than two reports of a router.
inline constexpr std::chrono::milliseconds kBetweenLooks{2500};

struct Options {
  std::vector<std::string> proxies;                                          // To be asked themselves.
  std::shared_ptr<const backend::MemberAccess> member_access, proxy_access;  // Null: plain, no password.
  http::ClientTls registry_tls{};
};

// A cluster of a registry. `endpoints`: the registry's URLs, each looked at by itself.
[[nodiscard]] std::vector<Finding> examine_cluster(coord::Coordinator& coordinator,
                                                   const coord::ClusterKeys& keys,
                                                   const std::vector<std::string>& endpoints,
                                                   const Options& options);
// A static cluster.
[[nodiscard]] std::vector<Finding> examine_static(const topology::Spec& spec, const Options& options);

}  // namespace ringshift::doctor
