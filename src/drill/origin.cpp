#include "drill/origin.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace ringshift::drill {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

constexpr int kBusyTimeoutMs = 5000;
constexpr std::size_t kBodyMin = 100, kBodySpread = 101;

std::unexpected<Error> database_error(sqlite3* database, const std::string& what) {
  return fail(ErrorKind::internal, fmt::format("origin database: {}: {}", what, sqlite3_errmsg(database)));
}

Result<Database> open(const std::string& path) {
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(
      path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(raw);
  if (opened != SQLITE_OK) return database_error(raw, "cannot open " + path);
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  return database;
}

Status execute(sqlite3* database, const char* sql) {
  if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return database_error(database, sql);
  return {};
}

Result<Statement> prepare(sqlite3* database, const char* sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(database, sql, -1, &raw, nullptr) != SQLITE_OK) return database_error(database, sql);
  return Statement(raw);
}

Status insert_all(sqlite3* database, std::uint64_t objects) {
  Result<Statement> insert = prepare(database, "INSERT INTO objects(id, version, body) VALUES(?1, 1, ?2)");
  if (!insert) return std::unexpected(insert.error());
  sqlite3_stmt* row = insert->get();
  for (std::uint64_t id = 0; id < objects; ++id) {
    const std::string body = object_body(id);
    sqlite3_bind_int64(row, 1, static_cast<sqlite3_int64>(id));
    sqlite3_bind_text(row, 2, body.data(), static_cast<int>(body.size()), SQLITE_STATIC);
    if (sqlite3_step(row) != SQLITE_DONE) return database_error(database, fmt::format("object {}", id));
    sqlite3_reset(row);
  }
  return {};
}

}  // namespace

std::string object_body(std::uint64_t id) {
  // splitmix64, for letters that differ from object to object.
  std::uint64_t state = id + 0x9e3779b97f4a7c15ULL;
  const auto mix = [&state] {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  };
  std::string body(kBodyMin + mix() % kBodySpread, ' ');
  for (char& c : body) c = static_cast<char>('a' + mix() % 26);
  return body;
}

std::string cache_value(std::uint64_t id, const Object& object) {
  return fmt::format("{}:{}:{}", id, object.version, object.body);
}

struct Origin::Session::Impl {
  Origin& origin;
  Database database;
  Statement get, update;
};

Origin::Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Origin::Session::Session(Session&&) noexcept = default;
Origin::Session::~Session() = default;

Result<std::unique_ptr<Origin>> Origin::create(const std::string& path, std::uint64_t objects) {
  Result<Database> database = open(path);
  if (!database) return std::unexpected(database.error());
  sqlite3* raw = database->get();
  if (Status made = execute(
          raw,
          "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; BEGIN;"
          "CREATE TABLE objects(id INTEGER PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL);");
      !made) {
    return std::unexpected(made.error());
  }
  if (Status filled = insert_all(raw, objects); !filled) return std::unexpected(filled.error());
  if (Status done = execute(raw, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE);"); !done)
    return std::unexpected(done.error());
  return std::unique_ptr<Origin>(new Origin(path));
}

Result<Origin::Session> Origin::session() {
  Result<Database> database = open(path_);
  if (!database) return std::unexpected(database.error());
  if (Status set = execute(database->get(), "PRAGMA synchronous=OFF"); !set)
    return std::unexpected(set.error());
  Result<Statement> get = prepare(database->get(), "SELECT version, body FROM objects WHERE id = ?1");
  if (!get) return std::unexpected(get.error());
  Result<Statement> update =
      prepare(database->get(), "UPDATE objects SET version = version + 1 WHERE id = ?1 RETURNING version");
  if (!update) return std::unexpected(update.error());
  return Session(std::unique_ptr<Session::Impl>(
      new Session::Impl{*this, std::move(*database), std::move(*get), std::move(*update)}));
}

Result<Object> Origin::Session::get(std::uint64_t id) {
  impl_->origin.reads_.fetch_add(1, std::memory_order_relaxed);
  sqlite3_stmt* row = impl_->get.get();
  sqlite3_bind_int64(row, 1, static_cast<sqlite3_int64>(id));
  const int step = sqlite3_step(row);
  Object object;
  if (step == SQLITE_ROW) {
    object.version = static_cast<std::uint32_t>(sqlite3_column_int64(row, 0));
    object.body.assign(reinterpret_cast<const char*>(sqlite3_column_text(row, 1)),
                       static_cast<std::size_t>(sqlite3_column_bytes(row, 1)));
  }
  sqlite3_reset(row);
  if (step == SQLITE_DONE)
    return fail(ErrorKind::not_found, fmt::format("origin database: no object {}", id));
  if (step != SQLITE_ROW) return database_error(impl_->database.get(), fmt::format("reading object {}", id));
  return object;
}

Result<std::uint32_t> Origin::Session::update(std::uint64_t id) {
  impl_->origin.updates_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(impl_->origin.write_mutex_);
  sqlite3_stmt* row = impl_->update.get();
  sqlite3_bind_int64(row, 1, static_cast<sqlite3_int64>(id));
  const int first = sqlite3_step(row);
  const auto version = first == SQLITE_ROW ? static_cast<std::uint32_t>(sqlite3_column_int64(row, 0)) : 0U;
  const int last = first == SQLITE_ROW ? sqlite3_step(row) : first;  // The change is committed with DONE.
  sqlite3_reset(row);
  if (last != SQLITE_DONE)
    return database_error(impl_->database.get(), fmt::format("updating object {}", id));
  if (version == 0) return fail(ErrorKind::not_found, fmt::format("origin database: no object {}", id));
  return version;
}

}  // namespace ringshift::drill
