#include "coord/stored_topology.h"

namespace ringshift::coord {

Result<StoredTopology> parse_stored(const KeyValue& kv) {
  Result<topology::Topology> parsed = topology::parse_topology(kv.value, kv.key);
  if (!parsed) return std::unexpected(std::move(parsed.error()));
  return StoredTopology{
      *std::move(parsed), {kRegistryEpoch, static_cast<std::uint64_t>(kv.mod_revision)}, kv.mod_revision};
}

Result<std::optional<StoredTopology>> read_topology(Coordinator& coordinator, const ClusterKeys& keys) {
  const Result<Range> range = coordinator.list(keys.topology());
  if (!range) return std::unexpected(range.error());
  for (const KeyValue& kv : range->kvs) {
    if (kv.key != keys.topology()) continue;
    Result<StoredTopology> stored = parse_stored(kv);
    if (!stored) return std::unexpected(std::move(stored.error()));
    return *std::move(stored);
  }
  return std::nullopt;
}

}  // namespace ringshift::coord
