// One thread of the proxy: its loop, listener, clients, and an Upstream for each cluster.
//
// Order at the end of a wakeup: members' output first, then the clients', one gathered write each.
// Everything here belongs to the worker's thread but the constructor, post() and what run() says.
#pragma once
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "net/listener.h"
#include "net/loop.h"
#include "proxy/acl_log.h"
#include "proxy/database_set.h"
#include "proxy/open_files.h"
#include "proxy/proxy.h"
#include "proxy/pubsub_counts.h"
#include "proxy/reach.h"
#include "proxy/rules.h"
#include "proxy/scan_state.h"
#include "proxy/script_cache.h"
#include "proxy/settings.h"
#include "proxy/split.h"
#include "proxy/upstream.h"
#include "proxy/worker_admin.h"
#include "telemetry/counters.h"

namespace ringshift::proxy {

class Session;
class Worker;

// What the workers of one proxy share.
struct Shared {
  explicit Shared(Options o) : options(std::move(o)), settings(options) {}
  // The answers of all clients that they have not read have reached their bound.
  [[nodiscard]] bool output_is_full() const noexcept {
    return unread_output.load(std::memory_order_relaxed) >= settings.total_output.get();
  }
  [[nodiscard]] std::uint64_t next_slow_id() const noexcept { return slow_ids.fetch_add(1); }

  Options options;
  mutable Settings settings;            // Atomics: any session may change them.
  std::optional<OpenFiles> open_files;  // Set before the workers start.
  std::vector<Worker*> workers;
  std::vector<ServedCluster> clusters;
  std::shared_ptr<const RulesInForce> rules;  // As the workers start; later ones are posted to them.
  mutable AclLog acl_log;
  std::vector<Options::Listen> listening;  // With the ports that were taken.
  std::string address;                     // Of the first.
  std::chrono::steady_clock::time_point started_at = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> last_client_id{0};
  std::atomic<std::size_t> clients{0};
  std::atomic<std::size_t> draining{0};  // Workers that accept no more.
  ScanTable scans;
  ScriptCache scripts;
  PubsubCounts pubsub;
  std::atomic<std::int64_t> unread_output{0};  // Bytes, as of each session's last wakeup.
  mutable std::atomic<std::uint64_t> slow_ids{0};
  // What was counted since CONFIG RESETSTAT. Any thread.
  [[nodiscard]] telemetry::Totals recent_stats() const {
    telemetry::Totals totals = stats();
    const std::lock_guard lock(stats_mutex);
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i] -= std::min(totals[i], stats_base[i]);
    return totals;
  }
  void reset_stats() const {
    const std::lock_guard lock(stats_mutex);
    stats_base = stats();
  }
  mutable std::mutex stats_mutex;
  mutable telemetry::Totals stats_base{};  // What CONFIG RESETSTAT takes away. Guarded by stats_mutex.
  std::function<telemetry::Totals()> stats;
  // A worker has applied this version of a cluster's topology.
  std::function<void(std::size_t worker, std::size_t cluster, topology::Version)> applied;
};

class Worker final {
 public:
  Worker(std::size_t number, Shared& shared);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Before run(), once for each listener: opens the port, or accepts with `first` (unix sockets).
  [[nodiscard]] Status listen(const Options::Listen& at, const Worker* first);
  // Before run(): accepts from a socket that listens already.
  [[nodiscard]] Status listen_on(const Options::Listen& at, net::Descriptor socket);
  [[nodiscard]] std::span<const std::unique_ptr<net::Listener>> listeners() const noexcept {
    return listeners_;
  }
  // By the order of listen().
  [[nodiscard]] const net::Listener& listener(std::size_t index) const { return *listeners_[index]; }

  void run();  // The thread's body, until stop_soon() has ended.
  void post(std::function<void()> task) { loop_.post(std::move(task)); }  // Thread-safe.

  void adopt(std::shared_ptr<const RulesInForce> rules);
  // Thread-safe: `letter` runs on this thread, when false is not answered.
  [[nodiscard]] bool write_to(std::function<void()> letter);

  void adopt_newest();  // Does nothing when the holders have nothing newer.
  // Lets clients finish; run() returns when they have, or at the grace's end.
  void stop_soon(std::chrono::milliseconds grace);
  // worker_drain.cpp: Proxy::drain(), and Proxy::predecessor_left().
  void drain(base::TimePoint until, const std::vector<std::string>& passed_on);
  void own_socket_files();

  // For sessions.
  [[nodiscard]] std::span<const std::unique_ptr<Upstream>> upstreams() const noexcept { return upstreams_; }
  // A session asks its own reach() for the cluster of a key: not every user reaches every cluster.
  [[nodiscard]] const RulesInForce& rules() const noexcept { return *rules_; }
  [[nodiscard]] const Reach& reach_of(std::string_view user) const noexcept {
    const auto own = user_reach_.find(user);
    return own == user_reach_.end() ? *reach_ : *own->second;
  }
  // worker_databases.cpp: the same in another database; `database` 0 gives the above.
  [[nodiscard]] const Reach& reach_in(std::string_view user, unsigned database);
  [[nodiscard]] std::span<const std::unique_ptr<Upstream>> upstreams_in(unsigned database);
  [[nodiscard]] net::Loop& loop() noexcept { return loop_; }
  [[nodiscard]] const Shared& shared() const noexcept { return shared_; }
  [[nodiscard]] ScanTable& scans() noexcept { return shared_.scans; }
  [[nodiscard]] ScriptCache& scripts() noexcept { return shared_.scripts; }
  [[nodiscard]] const PubsubCounts& pubsub_counts() const noexcept { return shared_.pubsub; }
  [[nodiscard]] const Options& options() const noexcept { return shared_.options; }
  [[nodiscard]] telemetry::Counters& counters() noexcept { return counters_; }
  [[nodiscard]] const telemetry::Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] SplitScratch& split_scratch() noexcept { return split_scratch_; }
  // For find_keys(): good until the next command.
  [[nodiscard]] std::span<const std::unique_ptr<Session>> sessions() const noexcept { return sessions_; }
  [[nodiscard]] WorkerAdmin& admin() noexcept { return admin_; }
  [[nodiscard]] const WorkerAdmin& admin() const noexcept { return admin_; }
  void add_unread_output(std::int64_t bytes) noexcept {
    shared_.unread_output.fetch_add(bytes, std::memory_order_relaxed);
  }
  // worker_admin.cpp
  void pause_clients(PauseMode mode, base::TimePoint until);
  void unpause_clients();
  void look_at_settings();  // They have changed.
  // Members of a cluster that an attempt to connect to failed, and why.
  [[nodiscard]] std::map<std::string, std::string> members_down(std::size_t cluster) const;
  void at_end_of_wakeup(Session& session) { dirty_.push_back(&session); }
  void linger();  // Calls every session's linger_over() within kLinger.
  [[nodiscard]] bool stopping() const noexcept { return stopping_; }
  [[nodiscard]] bool draining() const noexcept { return draining_ != nullptr; }
  void remove(Session& session);  // Destroys it.

  static constexpr std::chrono::milliseconds kLinger{1000};

 private:
  void accept(int fd, bool tls);
  [[nodiscard]] bool refused_for_protection(int fd);
  void topology_changed();
  void keep_order();  // Of all sessions' answers: see Session::keep_order.
  void applied(std::size_t cluster, topology::Version version);
  void end_of_wakeup();
  void every_second();
  struct Draining;
  void drain_step();

  const std::size_t number_;
  Shared& shared_;
  telemetry::Counters counters_;
  net::Loop loop_;
  std::vector<std::unique_ptr<net::Listener>> listeners_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<Session*> dirty_, dirty_now_;
  SplitScratch split_scratch_;
  WorkerAdmin admin_;
  std::vector<std::unique_ptr<Upstream>> upstreams_;  // By cluster.
  std::map<unsigned, DatabaseSet> databases_;         // Without 0; nearly always empty.
  std::shared_ptr<const RulesInForce> rules_;
  std::unique_ptr<const Reach> reach_;
  std::map<std::string, std::unique_ptr<const Reach>, std::less<>> user_reach_;
  std::unique_ptr<net::Timer> linger_timer_, grace_timer_;
  std::unique_ptr<Draining> draining_;
  bool lingering_ = false;
  bool stopping_ = false;
};

}  // namespace ringshift::proxy
