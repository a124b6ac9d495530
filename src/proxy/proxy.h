// The data plane: accepts Redis clients and routes their commands to the members of a cluster.
//
// Worker threads, each with an event loop, a listener (SO_REUSEPORT), connections to the members and its
// clients; they share nothing but the snapshot holder and counters. A client stays with its worker.
// Thread rule: start() and stop() from one thread; notify(), stats() from any. Failure: a member that does
// not answer costs its own keys an error; nothing a client sends ends the process.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/member_counters.h"
#include "base/clock.h"
#include "net/handover.h"
#include "proxy/routes.h"
#include "proxy/rules.h"
#include "ringshift/error.h"
#include "ringshift/snapshot.h"
#include "ringshift/snapshot_holder.h"
#include "telemetry/counters.h"
#include "telemetry/times.h"

namespace ringshift::net {
class TlsContext;
}
namespace ringshift::backend {
class MemberAccess;
}
namespace ringshift::telemetry {
class Exposition;
}

namespace ringshift::proxy {

struct Options {
  std::string listen = "127.0.0.1:6380";  // "host:port" (0: any free port), "[v6]:port" or "unix:/path".
  bool listen_tls = false;
  struct Listen {
    std::string address;
    bool tls = false;
  };
  std::vector<Listen> also_listen;
  std::shared_ptr<const net::TlsContext> tls;  // A server's; needed when any listener is to have TLS.
  unsigned unix_permissions = 0;               // Of unix sockets; 0: as the umask says.
  std::shared_ptr<const backend::MemberAccess> member_access;  // Null: plain, without a password.
  unsigned threads = 0;                                        // 0: one for each core.
  std::string router_id = "proxy";  // Names our connections at the members: "rs:<router id>".
  std::chrono::milliseconds connect_timeout{1000};
  std::chrono::milliseconds request_timeout{1000};
  std::chrono::milliseconds hold_timeout{10000};  // Longest wait of a command in a resize's HOLD.
  std::chrono::milliseconds shutdown_grace{5000};
  std::chrono::milliseconds drain_timeout{30000};  // Instead of it when a successor has our listeners.
  // Of a predecessor, which still accepts from them; start() takes those whose addresses we listen on. Null:
  // there is none.
  std::shared_ptr<net::ListeningSockets> inherited;
  std::size_t max_clients = 10000;
  // Refuse clients that come by another address than loopback, or a unix socket, while nobody needs a
  // password.
  bool protected_mode = true;
  bool allow_flush = false;                 // FLUSHALL and FLUSHDB empty every member; else they are refused.
  std::chrono::seconds idle_timeout{0};     // Clients idle for so long are closed; 0: never.
  std::chrono::seconds tcp_keepalive{300};  // 0: off.
  std::int64_t slowlog_slower_than = -1;    // Microseconds; negative: nothing is measured.
  std::int64_t slowlog_max_len = 128;
  std::chrono::milliseconds slow_log{0};  // Requests that took as long are logged; 0: none.
  // Bounds. A client with so many commands without an answer is not read from until it has caught up.
  std::size_t max_in_flight = 1024;
  // Answers that a client has not read. It may write a long pipeline before it reads, so it is read from, and
  // disconnected beyond cut_output_bytes. When all clients together hold max_total_output_bytes, those with
  // more than max_output_bytes are not read from until they have read, and disconnected when they read
  // nothing for slow_client_timeout.
  std::size_t max_output_bytes = 256U << 10;
  std::size_t cut_output_bytes = 1U << 30;
  std::size_t max_total_output_bytes = 2ULL << 30;
  std::chrono::seconds slow_client_timeout{30};
  std::size_t max_member_queue_bytes = 64U << 20;  // Unsent commands of one connection to a member.
};

// Says what the newest topology is, when a fresh connection to a member cannot tell (RESIZE.md, I4).
class Authority {
 public:
  virtual ~Authority() = default;
  // Reads the registry (linearizable), publishes to the holder if that is newer, then calls `done` from any
  // thread: true when the read worked. Thread-safe; never calls `done` from inside confirm().
  virtual void confirm(std::function<void(bool)> done) = 0;
};

class HotKeyBoard;  // proxy/hot_keys.h

// One cluster behind the listener.
struct ServedCluster {
  using Holder = topology::SnapshotHolder<topology::Snapshot>;
  std::string name;
  std::shared_ptr<Holder> holder;
  // Null: a static cluster, whose members bear no stamp. Must outlive the proxy.
  Authority* authority = nullptr;
  // Ours: start() makes them.
  std::shared_ptr<HotKeyBoard> hot_keys{}, moving_keys{};
  std::shared_ptr<backend::MemberBoard> members{};
};

class Proxy {
 public:
  using Holder = ServedCluster::Holder;

  // Serves when it returns. REQUIRES: at least one cluster, and every rule names one of them.
  [[nodiscard]] static Result<std::unique_ptr<Proxy>> start(Options options,
                                                            std::vector<ServedCluster> clusters,
                                                            RouteTable routes = {});
  // REQUIRES: as above, of every route of the rules.
  [[nodiscard]] static Result<std::unique_ptr<Proxy>> start(Options options,
                                                            std::vector<ServedCluster> clusters, Rules rules);
  // One cluster for all keys.
  [[nodiscard]] static Result<std::unique_ptr<Proxy>> start(Options options, std::shared_ptr<Holder> holder,
                                                            Authority* authority);
  ~Proxy();  // stop(), unless that was done.
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // "127.0.0.1:6380", with the port that was taken.
  [[nodiscard]] const std::string& address() const noexcept;
  // Of all listeners: Options::listen first, then also_listen in order.
  [[nodiscard]] const std::vector<Options::Listen>& listening() const noexcept;

  // New rules for the clients that are connected and for those to come; nothing in flight is lost. Somebody
  // whose user is gone is disconnected once he is answered; limits begin anew. Each worker adopts them soon.
  void set_rules(Rules rules);
  // A holder has a new snapshot: every worker adopts it soon.
  void notify();

  // `callback` gets each version of that cluster's topology that all workers have applied: they route by it,
  // and every command sent under an older snapshot was answered, or its connection killed on the member.
  // Called at once with the version applied so far, later from a worker's thread; never with a lower version,
  // never twice at a time. It must not block, nor call into the proxy.
  void set_on_applied(std::function<void(topology::Version)> callback, std::size_t cluster = 0);

  [[nodiscard]] telemetry::Totals stats() const;
  // Members of a cluster that some worker is not connected to, with the reason of its last attempt. Asks the
  // workers anew and gives what they said after the call before this one. Any thread; never waits.
  [[nodiscard]] std::map<std::string, std::string> members_down(std::size_t cluster = 0);
  [[nodiscard]] std::size_t max_clients() const noexcept;
  // How long clients' commands took, of a sample of them. Any thread.
  struct Sampled {
    telemetry::TimesTotals times{};
    std::uint64_t micros = 0;  // Of all of them.
  };
  [[nodiscard]] Sampled sampled_times() const;
  // What went to each member of a cluster and what came of it. Any thread.
  [[nodiscard]] std::map<std::string, backend::MemberSums, std::less<>> member_sums(
      std::size_t cluster = 0) const;
  // The keys that clients ask for most, and about how often in the last HotKeySampler::kWindow; at most
  // `most`. Any thread.
  using HotKeys = std::vector<std::pair<std::string, std::uint64_t>>;
  [[nodiscard]] HotKeys hot_keys(std::size_t cluster, std::size_t most) const;
  // While a resize of that cluster runs: the same of the keys it moves; here the numbers only tell the order.
  [[nodiscard]] HotKeys moving_keys(std::size_t cluster, std::size_t most) const;
  // proxy/metrics.cpp: all of the above and more, for Prometheus. Any thread.
  void collect(telemetry::Exposition& out);

  // The sockets that we accept from, as other descriptors; none once drain() or stop() was called. Any
  // thread.
  [[nodiscard]] net::ListeningSockets sockets() const;
  // Of Options::inherited: their first owner accepts no more. From now on the files of unix sockets are ours.
  void predecessor_left();

  // Lets go of the clients without losing an answer: accepts no more, serves on, and closes each connection
  // where nothing is owed on it and nothing begun. Those that wait or are subscribed are ended shortly before
  // `until`. `passed_on`: the addresses that a successor accepts from; at all others the connections that
  // wait are still accepted. Topologies are adopted and acknowledged as ever. May be called again with an
  // earlier end. Then: wait for drained() or `until`, and stop().
  void drain(base::TimePoint until, std::vector<std::string> passed_on = {});
  [[nodiscard]] bool drained() const noexcept;  // No client is left. Any thread.
  [[nodiscard]] std::size_t clients() const noexcept;

  // Accepts no more, answers what is in flight (for `grace` at most; unless said, shutdown_grace), closes,
  // joins the threads.
  void stop();
  void stop(std::chrono::milliseconds grace);

 private:
  struct Impl;  // proxy/proxy_impl.h
  void collect_shares(telemetry::Exposition& out, const std::string& cluster, std::size_t index,
                      const topology::Snapshot& snapshot);
  explicit Proxy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::proxy
