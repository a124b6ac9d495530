// Tokens and audit: tables beside the keys. Made when a file is opened, so that one of an earlier release
// gets them, and an earlier release still opens the file.
#include "store/records.h"

#include <fmt/format.h>

#include <chrono>

#include "hashing/sha256.h"
#include "store/write.h"

namespace ringshift::store {
namespace {

constexpr std::size_t kDigestShown = 16;

constexpr char kRecordTables[] = R"(
  CREATE TABLE IF NOT EXISTS token(hash BLOB PRIMARY KEY, name BLOB NOT NULL, role BLOB NOT NULL,
    namespace BLOB NOT NULL, ids BLOB NOT NULL, addresses BLOB NOT NULL, created INTEGER NOT NULL,
    expires INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS lease_owner(id INTEGER PRIMARY KEY, owner BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS audit(id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,
    who BLOB NOT NULL, peer BLOB NOT NULL, verb BLOB NOT NULL, key BLOB NOT NULL, revision INTEGER NOT NULL,
    before BLOB NOT NULL, after BLOB NOT NULL, outcome BLOB NOT NULL);
)";

std::int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string summary(std::string_view value) {
  return fmt::format("{}:{}", value.size(), hashing::sha256_hex(value).substr(0, kDigestShown));
}

void insert_audit(Database& db, const AuditRow& row) {
  db.statement(
        "INSERT INTO audit(at,who,peer,verb,key,revision,before,after,outcome) "
        "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)")
      .bind(1, unix_now())
      .bind(2, row.who)
      .bind(3, row.peer)
      .bind(4, row.verb)
      .bind(5, row.key)
      .bind(6, row.revision)
      .bind(7, row.before)
      .bind(8, row.after)
      .bind(9, row.outcome)
      .run();
}

}  // namespace

void Store::create_records() {
  if (db_->integer("SELECT count(*) FROM sqlite_schema WHERE name IN ('token','lease_owner','audit')") != 3) {
    Transaction transaction(*db_);
    db_->exec(kRecordTables);
    transaction.commit();
  }
  Statement owner = db_->statement("SELECT id, owner FROM lease_owner");
  while (owner.step()) {
    const auto found = leases_.find(owner.integer(0));
    if (found != leases_.end()) found->second.owner = owner.blob(1);
  }
}

void Store::audit_in(Write& w) {
  if (w.actor == nullptr) return;
  for (const Event& event : w.events) {
    if (w.actor->wants != nullptr && !w.actor->wants(event.kv.key)) continue;
    AuditRow row;
    row.who = w.actor->who;
    row.peer = w.actor->peer;
    row.verb = w.actor->verb;
    row.key = event.kv.key;
    row.revision = w.next;
    row.outcome = "ok";
    if (!event.removed) row.after = summary(event.kv.value);
    {
      Statement old = db_->statement(
          "SELECT value, deleted FROM history WHERE key=?1 AND revision<?2 ORDER BY revision DESC LIMIT 1");
      old.bind(1, event.kv.key).bind(2, w.next);
      if (old.step() && old.integer(1) == 0) row.before = summary(old.blob(0));
    }
    insert_audit(*db_, row);
  }
}

Result<std::vector<TokenRow>> Store::tokens() {
  return guarded([&] {
    std::vector<TokenRow> rows;
    Statement query = db_->statement(
        "SELECT hash,name,role,namespace,ids,addresses,created,expires FROM token ORDER BY name");
    while (query.step()) {
      rows.push_back({query.blob(0), query.blob(1), query.blob(2), query.blob(3), query.blob(4),
                      query.blob(5), query.integer(6), query.integer(7)});
    }
    return rows;
  });
}

Status Store::change_tokens(const std::vector<TokenRow>& put, const std::vector<std::string>& removed,
                            const AuditRow& audit) {
  return guarded([&] {
    Transaction transaction(*db_);
    for (const std::string& hash : removed) {
      db_->statement("DELETE FROM token WHERE hash=?1").bind(1, hash).run();
    }
    for (const TokenRow& row : put) {
      db_->statement("INSERT OR REPLACE INTO token VALUES(?1,?2,?3,?4,?5,?6,?7,?8)")
          .bind(1, row.hash)
          .bind(2, row.name)
          .bind(3, row.role)
          .bind(4, row.name_space)
          .bind(5, row.ids)
          .bind(6, row.addresses)
          .bind(7, row.created)
          .bind(8, row.expires)
          .run();
    }
    insert_audit(*db_, audit);
    transaction.commit();
  });
}

Status Store::append_audit(const AuditRow& row) {
  return guarded([&] { insert_audit(*db_, row); });
}

Result<std::vector<AuditRow>> Store::audit(std::int64_t since, std::int64_t after, std::int64_t limit) {
  return guarded([&] {
    std::vector<AuditRow> rows;
    Statement query = db_->statement(
        "SELECT id,at,who,peer,verb,key,revision,before,after,outcome FROM audit WHERE id>?1 AND at>=?2 "
        "ORDER BY id LIMIT ?3");
    query.bind(1, after).bind(2, since).bind(3, limit);
    while (query.step()) {
      rows.push_back({query.integer(0), query.integer(1), query.blob(2), query.blob(3), query.blob(4),
                      query.blob(5), query.integer(6), query.blob(7), query.blob(8), query.blob(9)});
    }
    return rows;
  });
}

Status Store::trim_audit(std::int64_t rows, std::int64_t oldest) {
  return guarded([&] {
    Statement last = db_->statement("SELECT max(id) FROM audit");
    const std::int64_t newest = last.step() ? last.integer(0) : 0;
    // By id alone: ids rise with time, unless the clock was set back, and then rows stay a little longer.
    Statement first_kept = db_->statement("SELECT min(id) FROM audit WHERE at>=?1");
    first_kept.bind(1, oldest);
    const std::int64_t young = first_kept.step() ? first_kept.integer(0) : 0;
    const std::int64_t keep_from = std::max(newest - rows + 1, young == 0 ? newest + 1 : young);
    db_->statement("DELETE FROM audit WHERE id<?1").bind(1, keep_from).run();
  });
}

std::optional<std::string> Store::lease_owner(LeaseId id) {
  const std::lock_guard lock(mutex_);
  const auto found = leases_.find(id);
  if (found == leases_.end()) return std::nullopt;
  return found->second.owner;
}

}  // namespace ringshift::store
