// A router's tie to the registry: follows the topology, tells which one the router has applied, and answers
// "is my snapshot the newest?" for connections that must know before they serve (RESIZE.md, I4).
//
// An outage of the registry changes nothing for the router: it serves on with its last snapshot, and this
// comes back by itself, for ever, with full jitter. What it loses meanwhile is change.
//
// With a cache on disk (topology_cache.h) it also begins during an outage, with the topology that it or a
// predecessor left there. Until the registry has answered it claims to have applied nothing: what it began
// with may be old, and a controller must then wait for it or fence it, as anybody who says nothing.
//
// Order matters at the start: the record is in the registry before the topology is read, so that a controller
// that publishes after our read finds us in its list.
//
// Threads: its own (one for work, one inside the Watch). All public functions are thread-safe.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "coord/router_record.h"
#include "coord/topology_cache.h"
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
    std::string cache_file{};  // "": no topology is kept on disk.
  };
  // How long a registry may be silent at the start before the cache is asked: one that starts beside us, on a
  // machine that boots, shall have its chance.
  static constexpr std::chrono::milliseconds kCacheAfter{2000};
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
  // When the router serves from holder(): on_published is called for all that came before, too. When it ends,
  // set_hooks({}): once that has returned no hook runs, nor will one. No hook may call this.
  void set_hooks(Hooks hooks);

  // Where what we serve by comes from. Any thread.
  struct Standing {
    bool from_disk = false;           // The registry has not answered in this life.
    double registry_age_seconds = 0;  // Since it last answered, to us or to who wrote the file.
    bool refused = false;  // What it said last is not obeyed: it is another one, older than what we
                           // know, was set back, or has two contents for one version.
  };
  [[nodiscard]] Standing standing() const noexcept;
  // The members' processes that the file names, when we began by a file of before the first resize; they may
  // be believed without a stamp.
  [[nodiscard]] const Processes& processes() const noexcept { return cached_processes_; }
  // Asked after we had connected to these processes, the registry said that no resize was yet: for the file.
  void vouch(const Processes& processes);

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

  // `cluster_id`: of the range that it is from; nullopt: an event.
  Status accept(const KeyValue& topology, std::optional<std::uint64_t> cluster_id);
  Status check_registry(std::optional<std::uint64_t> cluster_id);
  Status check_same(const KeyValue& kv, const topology::Snapshot& ours);
  Status check_set_back(const KeyValue* kv, const topology::Snapshot& known);
  Status distrust(std::string_view what, const std::string& told);
  [[nodiscard]] std::string way_out() const;
  Status judge(const KeyValue& topology, std::optional<std::uint64_t> cluster_id, const SnapshotPtr& last);
  Status begin_from_disk();
  void call_published();
  void registry_answered();
  void keep_on_disk(std::unique_lock<std::mutex>& lock);
  Result<bool> read_topology();  // Whether there is one.
  void work();
  void answer_confirmations(std::unique_lock<std::mutex>& lock);
  void look(std::unique_lock<std::mutex>& lock);
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
  std::uint64_t cluster_id_ = 0;  // Of the registry that we follow; another one is not obeyed.
  bool heard_ = false;            // The registry that we follow has answered, and no other one since.
  bool keep_due_ = false;         // The file shall say what is in force.
  bool distrusted_ = false;       // The registry has less than we know, or something else instead.
  bool look_due_ = false;         // It was away: whether it was set back meanwhile only a look tells.
  Processes vouched_;

  std::shared_mutex hooks_mutex_;  // Held shared around a call. Never taken with mutex_ held.
  Hooks hooks_;                    // Guarded by it.

  std::pair<Revision, std::string> seen_;  // The last topology that we judged, as it came.

  std::atomic<bool> from_disk_{false}, refused_{false};
  std::atomic<std::int64_t> answered_at_{0};  // Of the steady clock, in its ticks.
  Processes cached_processes_;                // Fixed once started.
  std::unique_ptr<TopologyCache> cache_;      // Null: none. Of start(), then of the worker thread.

  LeaseId lease_ = 0;  // Of the worker thread, as are the next two.
  bool told_ = true;   // The last report arrived.
  std::chrono::steady_clock::time_point lease_renewed_;
  std::thread worker_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace ringshift::coord
