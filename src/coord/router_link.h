// A router's tie to the registry: follows the topology, tells which one the router has applied, and answers
// "is my snapshot the newest?" for connections that must know before they serve (RESIZE.md, I4).
//
// An outage of the registry changes nothing for the router: it serves on with its last snapshot, and this
// comes back by itself, for ever, with full jitter. What it loses meanwhile is change.
//
// Order matters at the start: the record is in the registry before the topology is read, so that a controller
// that publishes after our read finds us in its list.
//
// Threads: its own (one for work, one inside the Watch). All public functions are thread-safe.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "coord/router_record.h"
#include "ringshift/snapshot.h"
#include "ringshift/snapshot_holder.h"

namespace ringshift::coord {

using SnapshotPtr = std::shared_ptr<const topology::Snapshot>;
using Holder = topology::SnapshotHolder<topology::Snapshot>;

// "topology V digest D" behind `who`, with both, the cluster and its number of members as fields.
void log_topology(const topology::Snapshot& snapshot, std::string_view who);

class RouterLink final : private Watcher {
 public:
  struct Options {
    std::string router_id;
    std::chrono::seconds lease_ttl{5};
    std::chrono::milliseconds report_interval{1000};
  };
  struct Hooks {
    std::function<void()> on_published;          // The holder has a newer snapshot.
    std::function<void(RouterRecord&)> figures;  // Fills in the counts; may be empty.
  };

  // Registers, then reads the first topology; waits for one up to `patience`. `coordinator` must outlive
  // this.
  [[nodiscard]] static Result<std::unique_ptr<RouterLink>> start(Coordinator& coordinator, ClusterKeys keys,
                                                                 Options options,
                                                                 std::chrono::milliseconds patience);
  ~RouterLink() override;  // Removes the record.

  [[nodiscard]] const std::shared_ptr<Holder>& holder() const noexcept { return holder_; }
  // Call once, when the router serves from holder(). on_published is called for all that came before, too.
  void set_hooks(Hooks hooks);

  // Every command that the router sent under topologies before `version` has ended.
  void applied(topology::Version version);
  // Reads the registry, publishes what it finds, then calls done(true); done(false) when it could not be
  // read.
  void confirm(std::function<void(bool)> done);

 private:
  RouterLink(Coordinator& coordinator, ClusterKeys keys, Options options);
  void on_events(const std::vector<Event>& events) override;
  void on_resync(const Range& state) override;
  void on_disconnected(const Error& why) override;

  Status accept(const KeyValue& topology, std::uint64_t cluster_id);
  Result<bool> read_topology();  // Whether there is one.
  void work();
  void answer_confirmations(std::unique_lock<std::mutex>& lock);
  bool report(std::unique_lock<std::mutex>& lock);
  Status ensure_lease();
  Status put_record(const RouterRecord& record);
  [[nodiscard]] RouterRecord record_of_now() const;  // Without figures. REQUIRES: mutex_ is held.

  Coordinator& coordinator_;
  const ClusterKeys keys_;
  const Options options_;
  const std::int64_t started_at_;  // Unix seconds.
  std::shared_ptr<Holder> holder_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  bool stopping_ = false;
  bool report_due_ = true;
  topology::Version applied_;
  std::string applied_digest_;
  std::int64_t applied_at_ = 0;  // Unix seconds.
  std::deque<std::function<void(bool)>> confirmations_;
  Hooks hooks_;
  std::uint64_t cluster_id_ = 0;  // Of the registry that we follow; another one is not obeyed.

  LeaseId lease_ = 0;  // Of the worker thread, as is the next.
  std::chrono::steady_clock::time_point lease_renewed_;
  std::thread worker_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace ringshift::coord
