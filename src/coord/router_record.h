// What a router says of itself under `routers/<id>`: the topology it obeys, and a few figures.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coord/coordinator.h"

namespace ringshift::coord {

// So many members without a connection are named; what is beyond looks like a fault of the router's own.
inline constexpr std::size_t kUnreachableNamed = 64;

struct RouterRecord {
  Revision revision = 0;  // Of the topology applied: every command sent under an older one has ended.
  std::string digest;     // Of that topology.
  std::uint64_t requests = 0, hits = 0, misses = 0;
  std::uint64_t keys_pulled = 0, bytes_pulled = 0;  // Moved by this router for a client's command.
  // What `ringshift doctor` asks of it.
  std::string listen;                                  // Where clients connect.
  std::map<std::string, std::string> unreachable;      // Member id -> why it is not connected to it.
  std::uint64_t max_clients = 0, open_file_limit = 0;  // 0: not told.
  // While a resize runs: the keys of moving slices that were asked for most, and about how often of late. At
  // most kHotKeysMax.
  static constexpr std::size_t kHotKeysMax = 64;
  std::vector<std::pair<std::string, std::uint64_t>> hot_keys;
  double p99_ms = -1;  // Of clients' commands in the last second, sampled while a resize runs; -1: not known.
  bool operator==(const RouterRecord&) const = default;
};

[[nodiscard]] std::string to_json(const RouterRecord& record);
[[nodiscard]] Result<RouterRecord> parse_router_record(std::string_view json);

}  // namespace ringshift::coord
