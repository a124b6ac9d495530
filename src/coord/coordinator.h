// Where cluster state lives, in the embedded registry, etcd v3 or ZooKeeper: get, put, compare-and-set,
// leases, watches. What is particular to ZooKeeper: zookeeper/coordinator.h.
//
// Calls block, bounded by the request timeout, and may come from any thread; they never run on an event
// loop. A call that fails with `retryable` may have happened (the reply was lost): writers compare
// revisions and read again. Cost: one HTTP request a call, or one or two round trips to ZooKeeper.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coord/credentials.h"
#include "http/client.h"
#include "ringshift/error.h"

namespace ringshift::coord {

using Revision = std::int64_t;
using LeaseId = std::int64_t;

struct KeyValue {
  std::string key, value;
  Revision create_revision = 0, mod_revision = 0;
  std::int64_t version = 0;  // Writes since creation.
  LeaseId lease = 0;
};

struct Range {
  std::vector<KeyValue> kvs;     // Sorted by key.
  Revision revision = 0;         // The store's revision of this answer: resume a watch at revision + 1.
  std::uint64_t cluster_id = 0;  // Changes when the registry was rebuilt or restored: a new epoch.
};

struct Compare {
  enum class Target { mod_revision, create_revision, lease };
  std::string key;
  Target target = Target::mod_revision;
  std::int64_t value = 0;  // mod_revision or create_revision 0: the key must not exist.
};

struct Op {
  enum class Kind { put, remove };
  Kind kind = Kind::put;
  std::string key, value;
  LeaseId lease = 0;  // put: the key dies with this lease; 0 for none.
};

struct Event {
  enum class Kind { put, remove };
  Kind kind = Kind::put;
  KeyValue kv;  // remove: only key and mod_revision.
};

// Gets events, each key's in revision order, from the watch's own thread. `resync` means that history was
// lost (compaction, a new epoch, too slow): read the range again, then go on; events follow that.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void on_events(const std::vector<Event>& events) = 0;
  virtual void on_resync(const Range& state) = 0;      // Also called once at the start.
  virtual void on_disconnected(const Error& why) = 0;  // Each failed attempt; it reconnects by itself.
};

// Watching ends, and the thread is gone, when this is destroyed.
class Watch {
 public:
  virtual ~Watch() = default;
};

struct Options {
  std::vector<std::string>
      endpoints;  // http(s)://host:port, tried in turn; or a zk:// URL, cut at its commas.
  std::chrono::milliseconds request_timeout{3000};
  Credentials credentials{};
  // Where they are from: read again when the registry refuses them. "": they stay. Not for ZooKeeper.
  std::string credentials_file{};
  http::ClientTls tls{};  // Of https://.
  // A watch that has heard nothing for so long asks its server whether it is well (GET /health, which etcd
  // answers well only with a leader), and goes to another one when it is not. A session of ZooKeeper has
  // pings of its own.
  std::chrono::milliseconds watch_silence{10'000};
};

class Coordinator {
 public:
  virtual ~Coordinator() = default;

  [[nodiscard]] virtual Result<std::optional<KeyValue>> get(std::string_view key) = 0;  // Linearizable.
  [[nodiscard]] virtual Result<Range> list(std::string_view prefix) = 0;
  // The revision of the write.
  [[nodiscard]] virtual Result<Revision> put(std::string_view key, std::string_view value,
                                             LeaseId lease = 0) = 0;
  [[nodiscard]] virtual Result<bool> remove(std::string_view key) = 0;  // Whether it was there.
  // All of `ops` if every compare holds; nullopt, and nothing done, if one does not.
  [[nodiscard]] virtual Result<std::optional<Revision>> transact(const std::vector<Compare>& compares,
                                                                 const std::vector<Op>& ops) = 0;

  [[nodiscard]] virtual Result<LeaseId> grant(std::chrono::seconds ttl) = 0;
  // The seconds that remain; not_found when the lease is gone.
  [[nodiscard]] virtual Result<std::chrono::seconds> keep_alive(LeaseId lease) = 0;
  [[nodiscard]] virtual Status revoke(LeaseId lease) = 0;

  // The process ends: nobody should wait any more for a registry that does not answer. From now on a call
  // takes `most` at most, and after one that got no answer in that time the others fail at once, as
  // `retryable`. With ZooKeeper that holds for calls under way, too. Cannot be taken back.
  virtual void hurry(std::chrono::milliseconds most) = 0;

  // Every key under `prefix`. Begins with on_resync. `watcher` must outlive the Watch.
  [[nodiscard]] virtual std::unique_ptr<Watch> watch(std::string prefix, Watcher& watcher) = 0;
};

[[nodiscard]] Result<std::unique_ptr<Coordinator>> connect(Options options);

inline constexpr std::chrono::milliseconds kHurry{1000};  // For hurry(), of a program that was told to end.

}  // namespace ringshift::coord
