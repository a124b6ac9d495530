// One cluster as one worker sees it: the snapshot it routes by, its connections to the members, and the
// router of keys that are between two members.
//
// A worker has one for each cluster behind its listener, and for each database that a client has selected one
// more of each, with connections of its own (database_set.h). Everything here belongs to the worker's thread.
// Invariant: pool and router have adopted the snapshot that snapshot() gives.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "net/loop.h"
#include "proxy/dual_router.h"
#include "proxy/hot_keys.h"
#include "proxy/proxy.h"
#include "proxy/pubsub_hub.h"
#include "telemetry/counters.h"

namespace ringshift::proxy {

class Upstream final : private backend::Look {
 public:
  struct Listeners {                                 // Called on this thread.
    std::function<void()> adopted;                   // A snapshot, before its drain begins.
    std::function<void(topology::Version)> applied;  // Proxy::set_on_applied, for this worker.
    std::function<void()> handed_over;               // backend::Options::on_hand_over.
  };
  Upstream(net::Loop& loop, const Options& options, const ServedCluster& cluster,
           telemetry::Counters& counters, PubsubCounts& pubsub_counts, Listeners listeners,
           unsigned database = 0);
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  // Does nothing when the holder has nothing newer.
  void adopt_newest();
  // At the end of a wakeup: what is to be written to members.
  void flush() {
    if (hub_) hub_->flush();
    pool_->flush();
  }
  // The connections go; they may call sessions and the router until then. The router goes with *this, once
  // the sessions are gone.
  void close();

  [[nodiscard]] const std::string& name() const noexcept { return cluster_.name; }
  [[nodiscard]] const topology::Snapshot& snapshot() const noexcept { return *snapshot_; }
  [[nodiscard]] const std::shared_ptr<const topology::Snapshot>& shared_snapshot() const noexcept {
    return snapshot_;
  }
  [[nodiscard]] backend::Pool& pool() noexcept { return *pool_; }
  [[nodiscard]] PubsubHub& hub() noexcept { return *hub_; }  // REQUIRES: of database 0.
  [[nodiscard]] DualRouter& dual() noexcept { return *dual_; }
  [[nodiscard]] HotKeySampler& hot_keys() noexcept { return hot_keys_; }

 private:
  void adopt(std::shared_ptr<const topology::Snapshot> snapshot);
  bool stamp_matches(std::string_view member_id, const std::optional<std::string>& stamp,
                     std::string_view run_id) override;
  void confirm(std::function<void(bool)> done) override;

  net::Loop& loop_;
  const ServedCluster cluster_;
  const Listeners listeners_;
  HotKeySampler hot_keys_;
  std::shared_ptr<const topology::Snapshot> snapshot_;
  std::unique_ptr<DualRouter> dual_;
  std::unique_ptr<backend::Pool> pool_;
  std::unique_ptr<PubsubHub> hub_;  // Null but in database 0: channels belong to no database.
  // Before the first resize members have no stamp, and neither has one that restarted since, or that is given
  // up for lost. So what counts then is the process: member id -> its run id, of those that we asked the
  // registry about, and of those of which it said, after we had connected, that there was no resize yet.
  std::map<std::string, std::string, std::less<>> asked_runs_, known_runs_;
  struct Gate;  // Lets answers of the authority reach the loop while this lives.
  std::shared_ptr<Gate> gate_;
};

}  // namespace ringshift::proxy
