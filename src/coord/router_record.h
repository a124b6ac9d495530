// What a router says of itself under `routers/<id>`: the topology it obeys, and a few figures.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "coord/coordinator.h"

namespace ringshift::coord {

struct RouterRecord {
  Revision revision = 0;  // Of the topology applied: every command sent under an older one has ended.
  std::string digest;     // Of that topology.
  std::uint64_t requests = 0, hits = 0, misses = 0;
  std::uint64_t keys_pulled = 0, bytes_pulled = 0;  // Moved by this router for a client's command.
  double p99_ms = -1;  // Of clients' commands in the last second, sampled while a resize runs; -1: not known.
  bool operator==(const RouterRecord&) const = default;
};

[[nodiscard]] std::string to_json(const RouterRecord& record);
[[nodiscard]] Result<RouterRecord> parse_router_record(std::string_view json);

}  // namespace ringshift::coord
