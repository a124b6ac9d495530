// The topology as it stands in the registry. Pure, but for read_topology: one request.
#pragma once
#include <optional>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "ringshift/topology.h"

namespace ringshift::coord {

// What routers obey, as it stands in the registry.
struct StoredTopology {
  topology::Topology topology;
  topology::Version version;
  Revision revision = 0;
};
// nullopt: the cluster has none yet.
[[nodiscard]] Result<std::optional<StoredTopology>> read_topology(Coordinator& coordinator,
                                                                  const ClusterKeys& keys);
// A range's or an event's topology.
[[nodiscard]] Result<StoredTopology> parse_stored(const KeyValue& kv);

}  // namespace ringshift::coord
