// A revisioned key-value store in one SQLite file: what etcd keeps, for one machine.
//
// Every write transaction gets the next revision (the first is 2, as in etcd, where an empty store is at 1).
// The old versions of a key stay readable, and watchable, until compaction.
//
// Invariants: a write that returned is on the disk (WAL, synchronous=FULL), so kill -9 loses none; the
// revision grows by one a write transaction and never falls; a failed write changed nothing. Leases run on
// the monotonic clock and survive a restart, which gives each its whole TTL again.
// Threads: any; one mutex, so a write's fsync holds up readers. The listener runs inside the writing call.
// Cost: a write is one fsync; a read is one or two B-tree walks a key.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "ringshift/error.h"
#include "store/records.h"
#include "store/types.h"
#include "telemetry/times.h"

namespace ringshift::telemetry {
class Exposition;
}

namespace ringshift::store {

class Database;

struct Options {
  std::string path;
  // Revisions kept for watches; older ones are compacted away as new ones come. 0: kept until compact().
  std::int64_t retain_revisions = 20'000;
  const base::Clock* clock = nullptr;  // Null: the steady clock. Must outlive the store.
  bool backup = false;                 // The file may be a backup; begin_new_epoch() makes it a registry's.
};

inline constexpr std::size_t kMaxTxnOps = 128;
inline constexpr std::int64_t kMinLeaseSeconds = 2;              // etcd's floor with its default timers.
inline constexpr std::int64_t kMaxLeaseSeconds = 9'000'000'000;  // etcd's ceiling.

class Store {
 public:
  // Events of one committed revision, in order. Called inside the write, under the store's mutex: it must not
  // call the store.
  using Listener = std::function<void(const std::vector<Event>& events, Revision revision)>;

  [[nodiscard]] static Result<std::unique_ptr<Store>> open(Options options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  [[nodiscard]] Result<RangeResult> range(const RangeRequest& request);
  // With an `actor` a write is in the audit.
  [[nodiscard]] Result<PutResult> put(const PutRequest& request, const Actor* actor = nullptr);
  [[nodiscard]] Result<DeleteResult> remove(const DeleteRequest& request, const Actor* actor = nullptr);
  [[nodiscard]] Result<TxnResult> txn(const TxnRequest& request, const Actor* actor = nullptr);
  // Forgets what was superseded at or before `revision`. The revision of the store after it.
  [[nodiscard]] Result<Revision> compact(Revision revision);

  // `id` 0: the store picks one. `owner`: whose it is, for the registry to ask.
  [[nodiscard]] Result<LeaseInfo> grant(std::int64_t ttl_seconds, LeaseId id, std::string_view owner = {});
  [[nodiscard]] std::optional<std::string> lease_owner(LeaseId id);  // nullopt when it is gone.
  [[nodiscard]] Result<LeaseInfo> keep_alive(LeaseId id);            // not_found when it is gone.
  [[nodiscard]] Result<Revision> revoke(LeaseId id, const Actor* actor = nullptr);
  [[nodiscard]] Result<LeaseInfo> time_to_live(LeaseId id, bool with_keys);
  [[nodiscard]] std::vector<LeaseId> leases();
  [[nodiscard]] std::size_t leases_of(std::string_view owner);  // Looks at each.
  // Revokes the leases whose time has come. Somebody must call this a few times a second.
  [[nodiscard]] Status expire();

  // Events of the range from `from` on, whole revisions, about `limit` of them, oldest first. `next` is where
  // to go on; above revision() when that was all. stale: `from` was compacted.
  struct History {
    std::vector<Event> events;
    Revision next = 0;
  };
  [[nodiscard]] Result<History> history(const std::string& key, const std::string& range_end, Revision from,
                                        std::size_t limit);
  // The key as it was just before `revision`; nullopt when it was not there or was compacted.
  [[nodiscard]] Result<std::optional<KeyValue>> before(const std::string& key, Revision revision);

  // Writes from now on share one fsync. They are done, may be answered, and reach the listener, when
  // end_group() returned well; if it did not, none of them happened, whatever each had returned. A write that
  // fails by itself leaves the others of its group alone. What a
  // range() inside sees is as little done: nobody is told of it before. REQUIRES: groups do not overlap;
  // history(), backup() and compact() are not called inside.
  [[nodiscard]] Status begin_group();
  [[nodiscard]] Status end_group();

  void set_listener(Listener listener);

  [[nodiscard]] Result<std::vector<TokenRow>> tokens();
  // In one transaction, with its line in the audit.
  [[nodiscard]] Status change_tokens(const std::vector<TokenRow>& put,
                                     const std::vector<std::string>& removed, const AuditRow& audit);
  [[nodiscard]] Status append_audit(const AuditRow& row);  // The store says when.
  // Rows with an id above `after`, not older than `since` (Unix seconds), oldest first.
  [[nodiscard]] Result<std::vector<AuditRow>> audit(std::int64_t since, std::int64_t after,
                                                    std::int64_t limit);
  // Keeps the youngest `rows`, and of them those since `oldest`.
  [[nodiscard]] Status trim_audit(std::int64_t rows, std::int64_t oldest);

  // A whole, compact copy as of now, for its owner alone; `file` is replaced. Holds up everybody meanwhile.
  // The copy says in its header that it is one: a registry does not start from it, but from what restore()
  // (store/backup.h) makes of it.
  [[nodiscard]] Status backup(const std::string& file);
  // Ends all leases and takes a new cluster id, which is returned: for a restored file (store/backup.h).
  [[nodiscard]] Result<std::uint64_t> begin_new_epoch();

  [[nodiscard]] std::uint64_t cluster_id() const noexcept {
    return cluster_id_;
  }  // Random, made with the file.
  [[nodiscard]] Revision revision();
  [[nodiscard]] Revision compacted();
  [[nodiscard]] Result<std::int64_t> bytes();
  // Revisions, leases, the file's size, and how long commits took.
  void collect(telemetry::Exposition& page);
  // Caps the file as a full disk does; for tests.
  [[nodiscard]] Status limit_pages_for_test(std::int64_t pages);

 private:
  struct Lease {
    std::int64_t ttl_seconds = 0;
    base::TimePoint expires;
    std::string owner{};
  };
  struct Write;  // One write transaction under way.

  Store(Options options, std::unique_ptr<Database> db);
  void create_or_load();
  void load();
  void note_failure(const Error& error);
  void count_commit(std::chrono::steady_clock::time_point began);
  void create_records();
  void audit_in(Write& write);
  static std::uint64_t random_cluster_id();
  template <class Body>
  auto guarded(Body body) -> Result<decltype(body())>;
  template <class Body>
  auto write(Body body, const Actor* actor = nullptr) -> Result<decltype(body(std::declval<Write&>()))>;

  RangeResult range_at(const RangeRequest& request, Revision now);
  std::vector<KeyValue> current(const std::string& key, const std::string& range_end);
  std::vector<KeyValue> past(const std::string& key, const std::string& range_end, Revision revision);
  PutResult put_in(Write& write, const PutRequest& request);
  DeleteResult remove_in(Write& write, const DeleteRequest& request);
  bool holds(const Compare& compare);
  void revoke_in(Write& write, LeaseId id);
  void compact_to(Revision revision);
  LeaseInfo info(LeaseId id, const Lease& lease) const;

  Options options_;
  bool grouped_ = false;
  std::optional<Error> group_failed_;
  std::vector<std::pair<std::vector<Event>, Revision>> group_;
  base::SteadyClock steady_;
  const base::Clock& clock_;
  std::uint64_t cluster_id_ = 0;
  std::mutex mutex_;  // Guards all below.
  std::unique_ptr<Database> db_;
  Revision revision_ = 1;
  Revision compacted_ = 0;
  std::map<LeaseId, Lease> leases_;
  Listener listener_;
  telemetry::Times commits_;  // Each with its fsync.
  double commit_seconds_ = 0;
};

}  // namespace ringshift::store
