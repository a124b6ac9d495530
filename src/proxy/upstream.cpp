#include "proxy/upstream.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "proxy/keeper.h"
#include "transfer/steps.h"

namespace ringshift::proxy {

// Answers of the authority come from other threads, maybe after the worker is gone.
struct Upstream::Gate {
  std::mutex mutex;
  Upstream* upstream = nullptr;  // Guarded by mutex; null once it is gone.
};

Upstream::Upstream(net::Loop& loop, const Options& options, const ServedCluster& cluster,
                   telemetry::Counters& counters, PubsubCounts& pubsub_counts, Listeners listeners,
                   unsigned database)
    : loop_(loop),
      cluster_(cluster),
      listeners_(std::move(listeners)),
      hot_keys_(cluster_.hot_keys),
      gate_(std::make_shared<Gate>()) {
  gate_->upstream = this;
  backend::Options pool_options;
  pool_options.name = "rs:" + options.router_id;
  pool_options.database = database;
  pool_options.access = options.member_access;
  pool_options.connect_timeout = options.connect_timeout;
  pool_options.request_timeout = options.request_timeout;
  pool_options.max_queued_bytes = options.max_member_queue_bytes;
  pool_options.board = cluster_.members;
  pool_options.on_hand_over = listeners_.handed_over;
  pool_ = backend::make_pool(loop, pool_options, cluster_.authority != nullptr ? this : nullptr);
  DualRouter::Options dual_options;
  dual_options.request_timeout = options.request_timeout;
  dual_options.hold_timeout = options.hold_timeout;
  dual_options.counters = &counters;
  dual_options.hot_keys = cluster_.moving_keys;
  dual_ = std::make_unique<DualRouter>(loop, *pool_, dual_options);
  if (database == 0) hub_ = std::make_unique<PubsubHub>(loop, *this, counters, pubsub_counts);
  if (const Keeper* keeper = keeper_of(cluster_.authority)) known_runs_ = keeper->believed();
  adopt(cluster_.holder->load());
}

Upstream::~Upstream() {
  close();
  const std::lock_guard lock(gate_->mutex);
  gate_->upstream = nullptr;
}

void Upstream::close() {
  if (hub_) hub_->close();
  pool_.reset();
}

void Upstream::adopt_newest() {
  auto newest = cluster_.holder->load();
  if (newest->version > snapshot_->version) adopt(std::move(newest));
}

void Upstream::adopt(std::shared_ptr<const topology::Snapshot> snapshot) {
  snapshot_ = std::move(snapshot);
  pool_->adopt(snapshot_);
  dual_->adopt(snapshot_);
  if (hub_) hub_->topology_changed();
  listeners_.adopted();  // Sessions end what must not outlast the step, so that the drain can.
  // Whatever was sent so far went by older snapshots. A drain may wait long, and a later one end first.
  // It is applied when what it wants subscribed is, too, so that nobody publishes where we do not yet listen.
  pool_->drain([this, version = snapshot_->version] {
    if (!hub_) return listeners_.applied(version);
    hub_->when_settled([this, version] { listeners_.applied(version); });
  });
}

// --- backend::Look ---------------------------------------------------------------------------------------

bool Upstream::stamp_matches(std::string_view member_id, const std::optional<std::string>& stamp,
                             std::string_view run_id) {
  const topology::Fence& fence = snapshot_->topology().fence;
  if (fence.epoch == 0) {
    if (stamp) {  // A resize has begun that we do not know of; and the stamp may be evicted some day.
      if (const auto known = known_runs_.find(member_id); known != known_runs_.end())
        known_runs_.erase(known);
      return false;
    }
    const auto known = known_runs_.find(member_id);
    if (known != known_runs_.end() && known->second == run_id) return true;
    asked_runs_.insert_or_assign(std::string(member_id), std::string(run_id));
    return false;
  }
  if (!stamp) return false;
  const auto parsed = transfer::step_of_stamp(*stamp);
  const auto bound = fence.run_ids.find(std::string(member_id));
  return parsed && bound != fence.run_ids.end() && parsed->epoch == fence.epoch &&
         parsed->step == fence.step && bound->second == run_id &&
         stamp->ends_with(fmt::format(".{}", run_id));
}

void Upstream::confirm(std::function<void(bool)> done) {
  // What is asked about later is not answered by this.
  cluster_.authority->confirm([gate = gate_, asked = asked_runs_, done = std::move(done)](bool read) {
    const std::lock_guard lock(gate->mutex);
    if (gate->upstream == nullptr) return;
    // A task that the loop has not run when it stops is dropped with it, and so is this one.
    gate->upstream->loop_.post([upstream = gate->upstream, read, asked, done] {
      if (!upstream->pool_) return;  // The worker has stopped.
      if (read) upstream->adopt_newest();
      if (read && upstream->snapshot_->topology().fence.epoch == 0) {
        for (const auto& [member, run_id] : asked) upstream->known_runs_.insert_or_assign(member, run_id);
        if (Keeper* keeper = keeper_of(upstream->cluster_.authority)) keeper->vouch(upstream->known_runs_);
      }
      done(read);
    });
  });
}

}  // namespace ringshift::proxy
