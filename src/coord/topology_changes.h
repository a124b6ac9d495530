// What is new in a topology, in words, a line each. Pure.
#pragma once
#include <string>
#include <vector>

#include "ringshift/topology.h"

namespace ringshift::coord {

[[nodiscard]] std::vector<std::string> topology_changes(const topology::Topology& before,
                                                        const topology::Topology& after);

}  // namespace ringshift::coord
