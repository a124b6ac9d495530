#include "store/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace ringshift::store {
namespace {

constexpr int kApplicationId =
    0x52534846;                        // "RSHF", in the file's header: a registry, not some other database.
constexpr int kBackupId = 0x52534842;  // "RSHB": the same, as a backup.
constexpr int kSchemaVersion = 1;
constexpr int kBusyTimeoutMs = 1000;  // A predecessor that is just ending gets this long.

// What went wrong and what to do, by SQLite's code.
Error describe(sqlite3* db, int code, const std::string& path) {
  std::string detail = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const int system = db != nullptr && (code & 0xff) == SQLITE_CANTOPEN ? sqlite3_system_errno(db) : 0;
  if (system != 0) detail += std::string(": ") + std::strerror(system);
  switch (code & 0xff) {
    case SQLITE_FULL:
      return {ErrorKind::overloaded,
              fmt::format(
                  "registry database {}: no space left ({}); nothing was written, reads go on: free space on "
                  "its file system, or compact the history",
                  path, detail)};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorKind::retryable,
              fmt::format(
                  "registry database {} is in use by another process ({}): stop the other registry, or name "
                  "another file with --data",
                  path, detail)};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {ErrorKind::denied,
              fmt::format(
                  "registry database {} cannot be written ({}): give this user write permission on the file "
                  "and on its directory",
                  path, detail)};
    case SQLITE_CANTOPEN:
      return {
          ErrorKind::denied,
          fmt::format(
              "registry database {} cannot be opened ({}): the directory must exist, and this user must be "
              "able to write it and the file; mend that, or name another file with --data",
              path, detail)};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {ErrorKind::internal,
              fmt::format(
                  "registry database {} is corrupt ({}): move it away and restore a backup; started without "
                  "it, the registry is a new one with a new cluster id",
                  path, detail)};
    case SQLITE_IOERR:
      return {
          ErrorKind::internal,
          fmt::format(
              "registry database {}: {} (SQLite code {}); nothing was written: look at the disk, and at the "
              "largest file that this process may write (ulimit -f)",
              path, detail, code)};
    default:
      return {ErrorKind::internal,
              fmt::format("registry database {}: {} (SQLite code {})", path, detail, code)};
  }
}

}  // namespace

Statement::~Statement() {
  sqlite3_reset(stmt_);
  sqlite3_clear_bindings(stmt_);
}

Statement& Statement::bind(int index, std::int64_t value) {
  sqlite3_bind_int64(stmt_, index, value);
  return *this;
}

Statement& Statement::bind(int index, std::string_view blob) {
  // A null pointer would bind NULL, and an empty view may hold one.
  sqlite3_bind_blob64(stmt_, index, blob.empty() ? "" : blob.data(), blob.size(), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_text(int index, std::string_view text) {
  sqlite3_bind_text64(stmt_, index, text.empty() ? "" : text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(stmt_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  throw Failure{describe(db_, code, path_)};
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(stmt_, column); }

std::string Statement::blob(int column) const {
  const void* data = sqlite3_column_blob(stmt_, column);
  const int size = sqlite3_column_bytes(stmt_, column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

Database::Database(std::string path, FileUse use) : path_(std::move(path)) {
  try {
    open_file();
    check_file(use);
  } catch (...) {  // The destructor does not run for a half-made object.
    for (const auto& [sql, stmt] : statements_) sqlite3_finalize(stmt);
    sqlite3_close_v2(db_);
    throw;
  }
}

Database::~Database() {
  for (const auto& [sql, stmt] : statements_) sqlite3_finalize(stmt);
  sqlite3_close_v2(db_);
}

void Database::open_file() {
  std::error_code error;
  if (std::filesystem::is_directory(path_, error)) {
    throw Failure{{ErrorKind::invalid,
                   fmt::format("registry database {} is a directory: name a file in it, for example "
                               "{}/registry.db",
                               path_, path_)}};
  }
  // SQLite would let others read it, and what it writes beside it has the same mode.
  if (const int made = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); made >= 0)
    ::close(made);
  const int code = sqlite3_open_v2(path_.c_str(), &db_,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) throw Failure{describe(db_, code, path_)};
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_timeout(db_, kBusyTimeoutMs);
  if (sqlite3_db_readonly(db_, "main") == 1) throw Failure{describe(nullptr, SQLITE_READONLY, path_)};
  // Exclusive before the first access: one registry a file, and no shared-memory file beside it.
  exec("PRAGMA locking_mode=EXCLUSIVE");
  exec("PRAGMA journal_mode=WAL");
  exec("PRAGMA synchronous=FULL");  // An acknowledged write is on the disk.
  exec("BEGIN IMMEDIATE; COMMIT");  // Takes the lock now, and shows that the file can be written.
}

void Database::mark(FileUse use) {
  const int id = use == FileUse::backup ? kBackupId : kApplicationId;
  exec(fmt::format("PRAGMA application_id={}", id).c_str());
}

void Database::check_file(FileUse use) {
  const std::int64_t application = integer("PRAGMA application_id");
  const std::int64_t tables = integer("SELECT count(*) FROM sqlite_schema");
  if (tables == 0 && use == FileUse::backup) {
    throw Failure{
        {ErrorKind::invalid, fmt::format("{} holds nothing: it is no backup of a registry", path_)}};
  }
  if (tables == 0) {
    mark(use);
    exec(fmt::format("PRAGMA user_version={}", kSchemaVersion).c_str());
    return;
  }
  if (application == kBackupId && use == FileUse::registry) {
    throw Failure{{ErrorKind::invalid,
                   fmt::format("{} is a backup, and the registry has gone on since: put it in place by "
                               "'ringshift registry restore BACKUP --data FILE', which makes it another "
                               "registry; or move it away",
                               path_)}};
  }
  if (application != kApplicationId && application != kBackupId) {
    throw Failure{
        {ErrorKind::invalid, fmt::format("{} is an SQLite database of another program (application id {}): "
                                         "name another file with --data",
                                         path_, application)}};
  }
  if (const std::int64_t version = integer("PRAGMA user_version"); version != kSchemaVersion) {
    throw Failure{
        {ErrorKind::invalid, fmt::format("registry database {} has format {}, this program knows {}: use the "
                                         "ringshift release that wrote it",
                                         path_, version, kSchemaVersion)}};
  }
  Statement check = statement("PRAGMA integrity_check(1)");
  if (!check.step() || check.blob(0) != "ok") {
    throw Failure{
        {ErrorKind::internal, describe(nullptr, SQLITE_CORRUPT, path_).message + ": " + check.blob(0)}};
  }
}

bool says_backup(const std::string& path) {
  // "Database File Format": the first 16 bytes name it, and 68 to 71 are the application's.
  std::array<char, 72> header{};
  std::ifstream in(path, std::ios::binary);
  if (!in.read(header.data(), header.size())) return false;
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  std::uint32_t id = 0;
  for (std::size_t i = 68; i < header.size(); ++i) id = id << 8 | static_cast<unsigned char>(header[i]);
  return std::string_view(header.data(), kMagic.size()) == kMagic && id == std::uint32_t{kBackupId};
}

void Database::exec(const char* sql) {
  const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw Failure{describe(db_, code, path_)};
}

Statement Database::statement(const char* sql) {
  sqlite3_stmt*& stmt = statements_[sql];
  if (stmt == nullptr) {
    const int code = sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, nullptr);
    if (code != SQLITE_OK) throw Failure{describe(db_, code, path_)};
  }
  return Statement(db_, path_, stmt);
}

std::int64_t Database::integer(const char* sql) {
  Statement query = statement(sql);
  return query.step() ? query.integer(0) : 0;
}

std::int64_t Database::bytes() { return integer("PRAGMA page_count") * integer("PRAGMA page_size"); }

bool Database::in_transaction() const noexcept { return sqlite3_get_autocommit(db_) == 0; }

Transaction::~Transaction() {
  if (!open_) return;
  try {
    db_.exec(inner_ ? "ROLLBACK TO part; RELEASE part" : "ROLLBACK");
  } catch (const Failure&) {  // SQLite has rolled back by itself, as it does on a full disk.
  }
}

}  // namespace ringshift::store
