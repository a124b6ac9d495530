// What `ringshift top` shows, from what the registry says: the topology, the controller's status, and the
// records that routers write about once a second.
//
// Rates are of the last kWindow, between two records of a router as they came in here; a router that was seen
// once has none yet. Cost: as the records are long; a record is kept for kWindow. One thread.
#pragma once
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coord/keys.h"
#include "coord/router_record.h"
#include "membership/report.h"
#include "resize/cluster_view.h"
#include "resize/status.h"

namespace ringshift::cli {

struct TopFigures {
  double requests = 0, errors = 0;  // A second.
  std::optional<double> hit_rate, p99_ms;
};

struct TopMember {
  std::string id, address;
  std::string state;            // active|joining|leaving|lost
  std::optional<double> share;  // Of the keyspace; while a resize runs, about.
  TopFigures figures;
  double timeouts = 0;  // A second.
  std::uint64_t in_flight = 0;
  std::size_t away = 0;  // Routers that are not connected to it.
};

struct TopRouter {
  std::string id, listen, digest;
  coord::Revision revision = 0;
  TopFigures figures;
  std::uint64_t clients = 0;
  double age_seconds = 0;  // Since its last record came.
};

struct TopFrame {
  std::string cluster, controller, digest;
  coord::Revision revision = 0;  // Of the topology; 0: there is none.
  TopFigures all;
  double bytes_in = 0, bytes_out = 0;  // A second.
  std::uint64_t clients = 0;
  std::vector<TopMember> members;
  std::vector<TopRouter> routers;
  resize::ResizeStatus resize;
  std::optional<membership::Report> membership;  // With a policy, once the leader has told.
  bool rates_known = false;                      // Every router was seen twice.
};

class TopWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kWindow{3};

  // `view` must outlive this.
  TopWatch(const resize::ClusterView& view, coord::ClusterKeys keys, std::string cluster);
  // Takes in what has changed. Several times a second, or rates are rough.
  void look(TimePoint now);
  [[nodiscard]] TopFrame frame(TimePoint now) const;

 private:
  struct Sample {
    TimePoint at;
    coord::RouterRecord record;
  };
  struct Router {
    coord::Revision seen = 0;  // Of its key.
    std::deque<Sample> samples;
  };
  void read_topology();

  const resize::ClusterView& view_;
  const coord::ClusterKeys keys_;
  const std::string cluster_;
  std::map<std::string, Router> routers_;
  coord::Revision topology_seen_ = 0;
  TopFrame base_;  // Members with state and share; digest and revision.
};

}  // namespace ringshift::cli
