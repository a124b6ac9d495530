// One SQLite connection, owned by one process at a time, and its prepared statements.
//
// Failures are thrown as `Failure` and caught where the store's public functions begin: no exception leaves
// this folder. Not thread-safe; the store's mutex guards it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "ringshift/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace ringshift::store {

struct Failure {
  Error error;
};

// A prepared statement in use; binds from 1, reads columns from 0. Reset when it goes out of scope, so one
// text may not be in use twice at a time.
class Statement {
 public:
  Statement(sqlite3* db, const std::string& path, sqlite3_stmt* stmt) : db_(db), path_(path), stmt_(stmt) {}
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, std::string_view blob);       // The bytes must stay until the statement ends.
  Statement& bind_text(int index, std::string_view text);  // For what wants a name rather than bytes.
  bool step();                                             // Whether there is a row.
  void run() {
    while (step()) {
    }
  }
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::string blob(int column) const;

 private:
  sqlite3* db_;
  const std::string& path_;
  sqlite3_stmt* stmt_;
};

// What a file is for, as its header says: a registry's own, or a backup that no registry may begin from as it
// is.
enum class FileUse { registry, backup };

// Whether the file says of itself that it is a backup. Nothing is locked.
[[nodiscard]] bool says_backup(const std::string& path);

class Database {
 public:
  // Opens or creates `path`, takes the file for this process alone, and checks it from end to end. A backup
  // is opened for FileUse::backup alone, a registry's file for both.
  explicit Database(std::string path, FileUse use = FileUse::registry);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void mark(FileUse use);  // In the file's header.
  void exec(const char* sql);
  // `sql` must be a literal: statements are kept by its address.
  [[nodiscard]] Statement statement(const char* sql);
  [[nodiscard]] std::int64_t integer(const char* sql);
  [[nodiscard]] std::int64_t bytes();
  // SQLite ends one by itself when the disk is full or broken.
  [[nodiscard]] bool in_transaction() const noexcept;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  void open_file();
  void check_file(FileUse use);

  std::string path_;
  sqlite3* db_ = nullptr;
  std::map<const char*, sqlite3_stmt*> statements_;
};

// BEGIN IMMEDIATE now; rolled back unless commit() succeeded. Inside another one it is a part of that: what
// it did can still be undone alone, and is on the disk when the outer one is.
class Transaction {
 public:
  explicit Transaction(Database& db) : db_(db), inner_(db.in_transaction()) {
    db_.exec(inner_ ? "SAVEPOINT part" : "BEGIN IMMEDIATE");
  }
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() {
    db_.exec(inner_ ? "RELEASE part" : "COMMIT");
    open_ = false;
  }

 private:
  Database& db_;
  const bool inner_;
  bool open_ = true;
};

}  // namespace ringshift::store
