#include "drill/origin.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <mutex>
#include <optional>

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

Status insert_all(sqlite3* database, std::uint64_t objects, const BodyBytes& bytes) {
  Result<Statement> insert = prepare(database, "INSERT INTO objects(id, version, body) VALUES(?1, 1, ?2)");
  if (!insert) return std::unexpected(insert.error());
  sqlite3_stmt* row = insert->get();
  for (std::uint64_t id = 0; id < objects; ++id) {
    const std::string body = bytes ? object_body(id, bytes(id)) : object_body(id);
    sqlite3_bind_int64(row, 1, static_cast<sqlite3_int64>(id));
    sqlite3_bind_text(row, 2, body.data(), static_cast<int>(body.size()), SQLITE_STATIC);
    if (sqlite3_step(row) != SQLITE_DONE) return database_error(database, fmt::format("object {}", id));
    sqlite3_reset(row);
  }
  return {};
}

class SqliteOrigin final : public Origin {
 public:
  explicit SqliteOrigin(std::string path) : path_(std::move(path)) {}

 private:
  Result<std::unique_ptr<Connection>> connect() override;

  const std::string path_;
  std::mutex write_mutex_;
};

class SqliteConnection final : public Origin::Connection {
 public:
  SqliteConnection(Database database, Statement get, Statement update, std::mutex& write_mutex)
      : database_(std::move(database)),
        get_(std::move(get)),
        update_(std::move(update)),
        write_mutex_(write_mutex) {}

  Result<Object> get(std::uint64_t id) override;
  Result<std::uint32_t> update(std::uint64_t id) override;

 private:
  Database database_;
  Statement get_, update_;
  std::mutex& write_mutex_;
};

Result<std::unique_ptr<Origin::Connection>> SqliteOrigin::connect() {
  Result<Database> database = open(path_);
  if (!database) return std::unexpected(database.error());
  if (Status set = execute(database->get(), "PRAGMA synchronous=OFF"); !set)
    return std::unexpected(set.error());
  Result<Statement> get = prepare(database->get(), "SELECT version, body FROM objects WHERE id = ?1");
  if (!get) return std::unexpected(get.error());
  Result<Statement> update =
      prepare(database->get(), "UPDATE objects SET version = version + 1 WHERE id = ?1 RETURNING version");
  if (!update) return std::unexpected(update.error());
  return std::make_unique<SqliteConnection>(std::move(*database), std::move(*get), std::move(*update),
                                            write_mutex_);
}

Result<Object> SqliteConnection::get(std::uint64_t id) {
  sqlite3_stmt* row = get_.get();
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
  if (step != SQLITE_ROW) return database_error(database_.get(), fmt::format("reading object {}", id));
  return object;
}

Result<std::uint32_t> SqliteConnection::update(std::uint64_t id) {
  const std::lock_guard lock(write_mutex_);
  sqlite3_stmt* row = update_.get();
  sqlite3_bind_int64(row, 1, static_cast<sqlite3_int64>(id));
  const int first = sqlite3_step(row);
  const auto version = first == SQLITE_ROW ? static_cast<std::uint32_t>(sqlite3_column_int64(row, 0)) : 0U;
  const int last = first == SQLITE_ROW ? sqlite3_step(row) : first;  // The change is committed with DONE.
  sqlite3_reset(row);
  if (last != SQLITE_DONE) return database_error(database_.get(), fmt::format("updating object {}", id));
  if (version == 0) return fail(ErrorKind::not_found, fmt::format("origin database: no object {}", id));
  return version;
}

std::string body_of(std::uint64_t id, std::optional<std::size_t> bytes) {
  // splitmix64, for letters that differ from object to object.
  std::uint64_t state = id + 0x9e3779b97f4a7c15ULL;
  const auto mix = [&state] {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  };
  const std::size_t usual = kBodyMin + mix() % kBodySpread;
  std::string body(bytes.value_or(usual), ' ');
  for (char& c : body) c = static_cast<char>('a' + mix() % 26);
  return body;
}

}  // namespace

std::string object_body(std::uint64_t id) { return body_of(id, std::nullopt); }
std::string object_body(std::uint64_t id, std::size_t bytes) { return body_of(id, bytes); }

std::string cache_value(std::uint64_t id, const Object& object) {
  return fmt::format("{}:{}:{}", id, object.version, object.body);
}

Result<Origin::Session> Origin::session() {
  auto connection = connect();
  if (!connection) return std::unexpected(connection.error());
  return Session(*this, std::move(*connection));
}

Result<Object> Origin::Session::get(std::uint64_t id) {
  origin_->reads_.fetch_add(1, std::memory_order_relaxed);
  return connection_->get(id);
}

Result<std::uint32_t> Origin::Session::update(std::uint64_t id) {
  origin_->updates_.fetch_add(1, std::memory_order_relaxed);
  return connection_->update(id);
}

Result<std::unique_ptr<Origin>> Origin::create(const std::string& path, std::uint64_t objects,
                                               const BodyBytes& bytes) {
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
  if (Status filled = insert_all(raw, objects, bytes); !filled) return std::unexpected(filled.error());
  if (Status done = execute(raw, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE);"); !done)
    return std::unexpected(done.error());
  return std::make_unique<SqliteOrigin>(path);
}

}  // namespace ringshift::drill
