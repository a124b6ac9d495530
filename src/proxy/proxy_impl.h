// The inside of a Proxy: its workers, and what is known of all of them together.
//
// Thread rule: as proxy.h says; each map and vector below names the mutex that guards it, and no mutex is
// taken while another is held.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proxy/proxy.h"
#include "proxy/worker.h"

namespace ringshift::proxy {

// What the workers said last of members that they are not connected to.
struct Down {
  struct OfWorker {
    bool asked = false;  // And has not answered yet.
    std::map<std::string, std::string> said;
  };
  std::mutex mutex;
  std::map<std::pair<std::size_t, std::size_t>, OfWorker> of;  // (worker, cluster). Guarded by mutex.
};

// How far the workers are with a cluster's topology.
struct AppliedTopology {
  std::vector<topology::Version> by_worker;
  topology::Version reported;
  std::function<void(topology::Version)> callback;
  // For metrics. `push`: from the topology's being received to its being applied.
  base::TimePoint at{};
  std::uint64_t changes = 0;
  base::Duration swap{};
  telemetry::TimesTotals push{};
  double push_seconds = 0;
  std::map<std::string, std::uint64_t> leaving_since;  // Member id -> its requests when it was to leave.
};

struct Proxy::Impl {
  explicit Impl(Options options) : shared(std::move(options)) {}
  Shared shared;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::thread> threads;

  std::mutex applied_mutex;
  std::vector<AppliedTopology> applied;  // Of each cluster. Guarded by applied_mutex.

  const std::shared_ptr<Down> down = std::make_shared<Down>();  // Letters to workers hold it, too.

  // Held while the workers' listeners are looked at from elsewhere; `closing`: they may go at any time.
  mutable std::mutex listeners_mutex;
  bool closing = false;

  void close_listeners() {
    const std::lock_guard lock(listeners_mutex);
    closing = true;
  }

  [[nodiscard]] std::vector<net::Descriptor> inherited(const std::string& listen) const;
  Status listen();
  void worker_applied(std::size_t worker, std::size_t cluster, topology::Version version);

  // metrics.cpp
  [[nodiscard]] static std::vector<std::string> leaving(const topology::Topology& topology);
  void note_applied(std::size_t cluster, topology::Version version);
  struct Shares {
    std::string digest;  // Of the topology that they are of.
    std::vector<std::pair<std::string, double>> now, target;
  };
  std::mutex shares_mutex;
  std::map<std::size_t, Shares> shares;  // By cluster. Guarded by shares_mutex.
};

}  // namespace ringshift::proxy
