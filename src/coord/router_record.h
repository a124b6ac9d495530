// What a router says of itself under `routers/<id>`, once a second and with each topology that it has
// applied: which one that is, and figures. Figures that are zero or not known are left out; a reader takes
// what is absent for that, so that routers and readers of several versions get along. Bounds: kHotKeysMax,
// kMembersMax, kUnreachableNamed; about 20 KiB at most.
#pragma once
#include <chrono>
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
  static constexpr std::size_t kHotKeysMax = 64;
  static constexpr std::size_t kMembersMax = 128;
  static constexpr std::chrono::seconds kHotKeysOver{10};

  // Of the commands that this router sent to one member for its clients. Counted since the router began to
  // know the member.
  struct Member {
    std::uint64_t requests = 0;   // Answered, or failed.
    std::uint64_t hits = 0;       // Keys that GET, GETEX, GETDEL or MGET found there,
    std::uint64_t misses = 0;     // and keys that they did not.
    std::uint64_t errors = 0;     // Error replies, and requests without an answer.
    std::uint64_t timeouts = 0;   // Of those, for a deadline that passed.
    std::uint64_t in_flight = 0;  // Now: sent or queued, not answered.
    double p99_ms = -1;           // Of the last seconds, from send to reply; -1: nothing was answered.
    bool operator==(const Member&) const = default;
  };

  Revision revision = 0;  // Of the topology applied: every command sent under an older one has ended.
  std::string digest;     // Of that topology.
  std::int64_t started_at = 0,
               applied_at = 0;  // Unix seconds, of the router, and of that topology; 0: not told.
  // Since the router started. A hit is a key that a GET, GETEX, GETDEL or MGET of a client found. Errors:
  // error replies of any kind, ours and the members'.
  std::uint64_t requests = 0, hits = 0, misses = 0, errors = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;        // From clients, and to them.
  std::uint64_t keys_pulled = 0, bytes_pulled = 0;  // Moved by this router for a client's command.
  std::uint64_t clients = 0;                        // Now.
  // Of clients' commands, from reading one to putting its answer out, in the last seconds; samples. -1: there
  // were none.
  double p50_ms = -1, p99_ms = -1, p999_ms = -1;
  // What `ringshift doctor` asks of it.
  std::string listen;                                  // Where clients connect.
  std::map<std::string, std::string> unreachable;      // Member id -> why it is not connected to it.
  std::uint64_t max_clients = 0, open_file_limit = 0;  // 0: not told.
  // The keys that clients ask for most, each with about how often in the last kHotKeysOver. At most
  // kHotKeysMax.
  std::vector<std::pair<std::string, std::uint64_t>> hot_keys;
  // The same of the slices that a resize moves, while one runs; here the numbers only tell the order.
  std::vector<std::pair<std::string, std::uint64_t>> moving_keys;
  std::map<std::string, Member> members;  // By id; the busiest kMembersMax.
  bool operator==(const RouterRecord&) const = default;
};

// Drops what is beyond kMembersMax.
void keep_busiest(std::map<std::string, RouterRecord::Member>& members);

[[nodiscard]] std::string to_json(const RouterRecord& record);
// Unknown fields are ignored; one of another type than ours is an error.
[[nodiscard]] Result<RouterRecord> parse_router_record(std::string_view json);

}  // namespace ringshift::coord
