// Takes the cluster's lock and, while it holds it, writes the topology: the first one from the spec, changes
// that move no key, and resizes. Several controllers may run; one leads.
//
// A leader that lost its lock can change nothing: every write of the topology is a transaction that compares
// the lock's revision, and every stamp it writes on a member yields to a later one. What it knows is in the
// registry (topology, checkpoint), so that another goes on where it died.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "resize/cluster_view.h"
#include "resize/figures.h"

namespace ringshift::backend {
class MemberAccess;
}

namespace ringshift::resize {

struct ControllerOptions {
  std::string id;  // Unique to this process.
  std::chrono::seconds lease_ttl{5};
  std::chrono::milliseconds fence_timeout{2000};  // How long HOLD waits before it fences a silent router.
  std::shared_ptr<const backend::MemberAccess> member_access{};  // Null: plain, without a password.
  std::chrono::milliseconds origin_window{
      2500};  // Misses are averaged over it; above a router's report interval.
  std::shared_ptr<ControllerFigures> figures{};  // The controller's own: it makes them.
};

class Controller {
 public:
  // `coordinator` must outlive this. Never fails: without a registry it tries for ever.
  Controller(coord::Coordinator& coordinator, coord::ClusterKeys keys, ControllerOptions options);
  ~Controller();  // Stops at the next safe point and gives the lock back.

  // Any thread.
  void collect(telemetry::Exposition& page, const std::string& cluster) const;
  [[nodiscard]] Status ready() const;  // Whether the registry answers.

 private:
  void run();
  bool campaign();  // Whether the lock is ours now.
  void keep_lease();
  void resign();

  coord::Coordinator& coordinator_;
  const coord::ClusterKeys keys_;
  const ControllerOptions options_;
  std::unique_ptr<ClusterView> view_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> leading_{false};
  std::atomic<coord::LeaseId> lease_{0};
  coord::Revision lock_revision_ = 0;
  bool told_unreachable_ = false;  // Of the thread in run().
  std::thread thread_;
  std::thread keeper_;
};

}  // namespace ringshift::resize
