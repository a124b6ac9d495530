#include "store/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "store/errors.h"
#include "store/write.h"

namespace ringshift::store {
namespace {

constexpr std::int64_t kCompactEvery =
    1'000;  // Automatic compaction works in portions of this many revisions.

// history: every version of every key; a removal is a row with deleted = 1. current: the row of each live
// key. meta: one row.
constexpr char kSchema[] = R"(
  CREATE TABLE meta(cluster_id INTEGER NOT NULL, revision INTEGER NOT NULL, compacted INTEGER NOT NULL);
  CREATE TABLE history(id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, key BLOB NOT NULL,
    create_revision INTEGER NOT NULL, version INTEGER NOT NULL, lease INTEGER NOT NULL,
    deleted INTEGER NOT NULL, value BLOB NOT NULL);
  CREATE UNIQUE INDEX history_by_key ON history(key, revision);
  CREATE INDEX history_by_revision ON history(revision);
  CREATE TABLE current(key BLOB PRIMARY KEY, id INTEGER NOT NULL, lease INTEGER NOT NULL) WITHOUT ROWID;
  CREATE INDEX current_by_lease ON current(lease) WHERE lease <> 0;
  CREATE TABLE lease(id INTEGER PRIMARY KEY, ttl INTEGER NOT NULL);
)";

}  // namespace

// etcd prints the id as unsigned; 63 bits keep SQLite's signed integers and everybody else content.
std::uint64_t Store::random_cluster_id() {
  std::random_device device;
  return std::max<std::uint64_t>((std::uint64_t{device()} << 32 | device()) >> 1, 1);
}

Store::Store(Options options, std::unique_ptr<Database> db)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : static_cast<const base::Clock&>(steady_)),
      db_(std::move(db)) {}

Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(Options options) {
  if (options.path.empty()) {
    return fail(ErrorKind::invalid, "the registry needs a database file: name one with --data FILE.db");
  }
  try {
    auto db = std::make_unique<Database>(options.path, options.backup ? FileUse::backup : FileUse::registry);
    std::unique_ptr<Store> store(new Store(std::move(options), std::move(db)));
    store->create_or_load();
    return store;
  } catch (Failure& failure) {
    return std::unexpected(std::move(failure.error));
  }
}

void Store::create_or_load() {
  if (db_->integer("SELECT count(*) FROM sqlite_schema") == 0) {
    Transaction transaction(*db_);
    db_->exec(kSchema);
    const auto id = static_cast<std::int64_t>(random_cluster_id());
    db_->statement("INSERT INTO meta VALUES(?1, 1, 0)").bind(1, id).run();
    transaction.commit();
  }
  load();
}

void Store::load() {
  leases_.clear();
  Statement meta = db_->statement("SELECT cluster_id, revision, compacted FROM meta");
  if (!meta.step()) {
    throw Failure{{ErrorKind::internal,
                   fmt::format("registry database {} has no meta row: restore a backup", db_->path())}};
  }
  cluster_id_ = static_cast<std::uint64_t>(meta.integer(0));
  revision_ = meta.integer(1);
  compacted_ = meta.integer(2);
  // Nobody knows how long we were away: every lease gets its whole time again.
  Statement lease = db_->statement("SELECT id, ttl FROM lease");
  while (lease.step()) {
    const std::int64_t ttl = lease.integer(1);
    leases_[lease.integer(0)] = {ttl, clock_.now() + std::chrono::seconds(ttl)};
  }
  create_records();
}

Result<PutResult> Store::put(const PutRequest& request, const Actor* actor) {
  return write([&](Write& w) { return put_in(w, request); }, actor);
}

Result<DeleteResult> Store::remove(const DeleteRequest& request, const Actor* actor) {
  return write([&](Write& w) { return remove_in(w, request); }, actor);
}

PutResult Store::put_in(Write& w, const PutRequest& request) {
  if (request.key.empty()) throw Failure{{ErrorKind::invalid, errors::kEmptyKey}};
  if (request.ignore_value && !request.value.empty())
    throw Failure{{ErrorKind::invalid, errors::kValueProvided}};
  if (request.ignore_lease && request.lease != 0) throw Failure{{ErrorKind::invalid, errors::kLeaseProvided}};
  const std::vector<KeyValue> old = current(request.key, "");
  if (old.empty() && (request.ignore_value || request.ignore_lease)) {
    throw Failure{{ErrorKind::invalid, errors::kKeyNotFound}};
  }
  KeyValue kv{request.key, request.value, w.next, w.next, 1, request.lease};
  if (!old.empty()) {
    kv.create_revision = old[0].create_revision;
    kv.version = old[0].version + 1;
    if (request.ignore_value) kv.value = old[0].value;
    if (request.ignore_lease) kv.lease = old[0].lease;
  }
  if (kv.lease != 0 && !leases_.contains(kv.lease))
    throw Failure{{ErrorKind::not_found, errors::kLeaseNotFound}};

  db_->statement(
         "INSERT INTO history(revision,key,create_revision,version,lease,deleted,value) "
         "VALUES(?1,?2,?3,?4,?5,0,?6)")
      .bind(1, w.next)
      .bind(2, kv.key)
      .bind(3, kv.create_revision)
      .bind(4, kv.version)
      .bind(5, kv.lease)
      .bind(6, kv.value)
      .run();
  db_->statement(
         "INSERT INTO current VALUES(?1, last_insert_rowid(), ?2) "
         "ON CONFLICT(key) DO UPDATE SET id=excluded.id, lease=excluded.lease")
      .bind(1, kv.key)
      .bind(2, kv.lease)
      .run();
  w.events.push_back({false, std::move(kv)});
  PutResult result{w.next, {}};
  if (request.previous && !old.empty()) result.previous = old[0];
  return result;
}

DeleteResult Store::remove_in(Write& w, const DeleteRequest& request) {
  if (request.key.empty()) throw Failure{{ErrorKind::invalid, errors::kEmptyKey}};
  DeleteResult result;
  for (KeyValue& kv : current(request.key, request.range_end)) {
    db_->statement(
           "INSERT INTO history(revision,key,create_revision,version,lease,deleted,value) "
           "VALUES(?1,?2,0,0,0,1,x'')")
        .bind(1, w.next)
        .bind(2, kv.key)
        .run();
    db_->statement("DELETE FROM current WHERE key=?1").bind(1, kv.key).run();
    KeyValue gone;
    gone.key = kv.key;
    gone.mod_revision = w.next;
    w.events.push_back({true, std::move(gone)});
    ++result.deleted;
    if (request.previous) result.previous.push_back(std::move(kv));
  }
  result.revision = w.so_far();
  return result;
}

Result<Revision> Store::compact(Revision revision) {
  return guarded([&] {
    if (revision <= compacted_) throw Failure{{ErrorKind::stale, errors::kCompacted}};
    if (revision > revision_) throw Failure{{ErrorKind::invalid, errors::kFutureRevision}};
    compact_to(revision);
    return revision_;
  });
}

void Store::compact_to(Revision revision) {
  Transaction transaction(*db_);
  db_->statement(
         "DELETE FROM history WHERE revision<=?1 AND (deleted OR EXISTS (SELECT 1 FROM history AS newer "
         "WHERE newer.key=history.key AND newer.revision>history.revision AND newer.revision<=?1))")
      .bind(1, revision)
      .run();
  db_->statement("UPDATE meta SET compacted=?1").bind(1, revision).run();
  transaction.commit();
  compacted_ = revision;
}

void Store::set_listener(Listener listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

Status Store::begin_group() {
  return guarded([&] {
    db_->exec("BEGIN IMMEDIATE");
    grouped_ = true;
  });
}

Status Store::end_group() {
  std::vector<std::pair<std::vector<Event>, Revision>> done;
  Status ended = guarded([&] {
    std::optional<Error> failed = std::exchange(group_failed_, std::nullopt);
    grouped_ = false;
    done.swap(group_);
    try {
      const auto began = std::chrono::steady_clock::now();
      if (!failed) db_->exec("COMMIT");
      if (!failed) count_commit(began);
    } catch (Failure& failure) {
      failed = std::move(failure.error);
    }
    if (!failed) {
      for (const auto& [events, revision] : done) {
        if (listener_) listener_(events, revision);
      }
      return;
    }
    if (db_->in_transaction()) db_->exec("ROLLBACK");
    load();
    throw Failure{*std::move(failed)};
  });
  return ended;
}

// A full disk ends the whole transaction of a group: then nothing of it can be kept.
void Store::note_failure(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (grouped_ && !group_failed_ && !db_->in_transaction()) group_failed_ = error;
}

void Store::count_commit(std::chrono::steady_clock::time_point began) {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  commits_.add(static_cast<std::int64_t>(took.count() * 1e6));
  commit_seconds_ += took.count();
}

Revision Store::revision() {
  const std::lock_guard lock(mutex_);
  return revision_;
}

Revision Store::compacted() {
  const std::lock_guard lock(mutex_);
  return compacted_;
}

Result<std::int64_t> Store::bytes() {
  return guarded([&] { return db_->bytes(); });
}

Status Store::limit_pages_for_test(std::int64_t pages) {
  return guarded([&] { db_->exec(fmt::format("PRAGMA max_page_count={}", pages).c_str()); });
}

Status Store::expire() {
  std::vector<LeaseId> due;
  bool compact_now = false;
  {
    const std::lock_guard lock(mutex_);
    const base::TimePoint now = clock_.now();
    for (const auto& [id, lease] : leases_) {
      if (lease.expires <= now) due.push_back(id);
    }
    compact_now =
        options_.retain_revisions > 0 && revision_ - compacted_ >= options_.retain_revisions + kCompactEvery;
  }
  for (const LeaseId id : due) {
    const Result<Revision> done = write([&](Write& w) {
      // A keep-alive may have come since.
      const auto found = leases_.find(id);
      if (found != leases_.end() && found->second.expires <= clock_.now()) revoke_in(w, id);
      return w.so_far();
    });
    if (!done) return std::unexpected(done.error());
  }
  if (!compact_now) return {};
  return guarded([&] { compact_to(revision_ - options_.retain_revisions); });
}

}  // namespace ringshift::store
