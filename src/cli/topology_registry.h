// The parts of `ringshift topology` that speak to a registry: apply, get, history, watch.
#pragma once
#include <string>

#include "cli/registry_flags.h"
#include "coord/stored_topology.h"

namespace CLI {
class App;
}

namespace ringshift::cli {

void add_topology_registry(CLI::App& topology);  // apply, get, history, watch
void add_topology_apply(CLI::App& topology);     // Part of the above.

using coord::parse_stored;
using coord::read_topology;
using coord::StoredTopology;

// "version ..., digest ..., 4 members, resize ... in phase ...": one line for people.
[[nodiscard]] std::string summary(const StoredTopology& stored);

}  // namespace ringshift::cli
