// The parts of `ringshift topology` that speak to a registry: apply, get, history, watch.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "ringshift/topology.h"

namespace CLI {
class App;
}

namespace ringshift::cli {

void add_topology_registry(CLI::App& topology);  // apply, get, history, watch
void add_topology_apply(CLI::App& topology);     // Part of the above.

// Which cluster of which registry.
struct RegistryFlags {
  std::string registry = "http://127.0.0.1:7379";  // Several: separated by commas.
  std::string name_space{coord::kDefaultNamespace};
  std::string cluster;

  // --registry, --namespace and --cluster, with their environment variables.
  void add_to(CLI::App& command, bool cluster_required);
  [[nodiscard]] Result<std::unique_ptr<coord::Coordinator>> connect() const;
  [[nodiscard]] coord::ClusterKeys keys() const { return {name_space, cluster}; }
};

// What routers obey, as it stands in the registry.
struct StoredTopology {
  topology::Topology topology;
  topology::Version version;
  coord::Revision revision = 0;
};
// nullopt: the cluster has none yet.
[[nodiscard]] Result<std::optional<StoredTopology>> read_topology(coord::Coordinator& coordinator,
                                                                  const coord::ClusterKeys& keys);
// A range's or an event's topology.
[[nodiscard]] Result<StoredTopology> parse_stored(const coord::KeyValue& kv, std::uint64_t cluster_id);

// "version ..., digest ..., 4 members, resize ... in phase ...": one line for people.
[[nodiscard]] std::string summary(const StoredTopology& stored);

}  // namespace ringshift::cli
