// Nodes to values, shared by the spec's and the topology's parser: form only; validate.h judges the sense.
#pragma once
#include <string>

#include "ringshift/topology.h"
#include "topology/reader.h"

namespace ringshift::topology {

[[nodiscard]] Spec read_spec(Reader& reader, const Node& node, const std::string& path);
[[nodiscard]] Placement read_placement(Reader& reader, const Node& node, const std::string& path);
[[nodiscard]] std::vector<Member> read_members(Reader& reader, const Node& node, const std::string& path);

}  // namespace ringshift::topology
