// What the admin API knows of its cluster at one moment: immutable, shared by whoever asks.
//
// The parts that most are asked for are JSON already (docs/openapi.yaml); the rest are values that a question
// is answered from. Everything is shared with the states before and after that have the same.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admin/audit.h"
#include "admin/series.h"
#include "coord/stored_topology.h"
#include "resize/decisions.h"
#include "resize/status.h"
#include "ringshift/snapshot.h"

namespace ringshift::admin {

using Text = std::shared_ptr<const std::string>;  // A JSON value.

// In the order in which a snapshot has them.
enum class Topic {
  overview,
  members,
  routers,
  resize,
  log,
  topology,
  series,
  mark,
  hot_keys,
  registry,
  membership,
  audit
};
inline constexpr const char* kTopicNames[] = {"overview", "members",  "routers",    "resize",
                                              "log",      "topology", "series",     "mark",
                                              "hot_keys", "registry", "membership", "audit"};
inline constexpr std::size_t kTopics = std::size(kTopicNames);

// What is new: the data of an SSE event.
struct News {
  Topic topic = Topic::overview;
  std::string data;
};

// One of the topologies that were.
struct PastTopology {
  coord::Revision revision = 0;
  Text json;  // As it stands in the registry.
  std::string digest, algorithm;
  std::size_t members = 0;
  std::string resize;                      // A JSON object, or null.
  std::vector<std::string> changes;        // Against the one before.
  std::optional<std::int64_t> seen_at_ms;  // nullopt: it was there before we were.
};

struct State {
  std::uint64_t number = 0;  // One more than the state's before.
  std::int64_t at_ms = 0;
  std::vector<News> news;    // Against the state before.
  bool fresh_start = false;  // The registry was read anew: who follows takes a snapshot.

  Text overview, routers, resize, hot_keys, registry, membership, topology;  // topology: a summary, or null.
  std::shared_ptr<const std::map<std::string, std::string>> members;         // Id -> JSON.
  std::string members_head;  // "version":"1.17","exact_shares":true

  std::shared_ptr<const coord::StoredTopology> stored;  // Null: there is none yet.
  std::shared_ptr<const topology::Snapshot> snapshot;   // Of it.
  std::shared_ptr<const coord::KeyValue> spec;
  resize::ResizeStatus status;
  std::shared_ptr<const std::map<coord::Revision, PastTopology>> history;
  std::shared_ptr<const resize::LoggedResizes> logs;
  std::shared_ptr<const std::map<std::string, AuditEntry>> audit;  // By id: oldest first.
  std::shared_ptr<const std::vector<SeriesPoint>> points;
  std::shared_ptr<const std::vector<SeriesMark>> marks;
  bool connected = false;
  std::string connection_error;
};

}  // namespace ringshift::admin
