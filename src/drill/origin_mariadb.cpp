// A private MariaDB server as the origin, on a socket of its own that only its user can reach, without grant
// tables, nothing synchronised to disk. Without libmariadb at build time, an error that says so.
#include <fmt/format.h>

#include "drill/origin_server_parts.h"

#ifdef RINGSHIFT_WITH_MARIADB
#include <mysql.h>
#include <signal.h>
#include <sys/wait.h>

#include <thread>

namespace ringshift::drill {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kReadyWithin{90}, kEndWithin{15};
constexpr std::uint64_t kRowsPerInsert = 500;

struct CloseMariadb {
  void operator()(MYSQL* connection) const { mysql_close(connection); }
};
struct CloseStatement {
  void operator()(MYSQL_STMT* statement) const { mysql_stmt_close(statement); }
};
using Handle = std::unique_ptr<MYSQL, CloseMariadb>;
using Prepared = std::unique_ptr<MYSQL_STMT, CloseStatement>;

std::unexpected<Error> mariadb_error(MYSQL* connection, std::string_view what) {
  return fail(ErrorKind::internal, fmt::format("origin database: {}: {}", what, mysql_error(connection)));
}

Result<Handle> open_handle(const std::string& socket, const char* database) {
  Handle handle(mysql_init(nullptr));
  if (!handle) return fail(ErrorKind::internal, "origin database: out of memory");
  if (mysql_real_connect(handle.get(), nullptr, "root", "", database, 0, socket.c_str(), 0) == nullptr)
    return mariadb_error(handle.get(), "cannot connect");
  return handle;
}

Status query(MYSQL* connection, const std::string& sql) {
  if (mysql_real_query(connection, sql.data(), sql.size()) != 0)
    return mariadb_error(connection, sql.substr(0, 60));
  return {};
}

class MariadbConnection final : public Origin::Connection {
 public:
  explicit MariadbConnection(Handle handle) : handle_(std::move(handle)) {}

  Status prepare() {
    for (auto& [statement, sql] :
         {std::pair(&get_, std::string("SELECT version, body FROM objects WHERE id = ?")),
          // UPDATE has no RETURNING; this puts the new version where the client finds it.
          std::pair(&update_,
                    std::string("UPDATE objects SET version = LAST_INSERT_ID(version + 1) WHERE id = ?"))}) {
      statement->reset(mysql_stmt_init(handle_.get()));
      if (!*statement || mysql_stmt_prepare(statement->get(), sql.data(), sql.size()) != 0)
        return mariadb_error(handle_.get(), sql);
    }
    return {};
  }

  Result<Object> get(std::uint64_t id) override {
    if (Status asked = ask(get_.get(), id); !asked) return std::unexpected(asked.error());
    Object object;
    unsigned long length = 0;
    MYSQL_BIND columns[2] = {};
    columns[0].buffer_type = MYSQL_TYPE_LONG;
    columns[0].is_unsigned = 1;
    columns[0].buffer = &object.version;
    columns[1].buffer_type = MYSQL_TYPE_STRING;
    columns[1].length = &length;  // A buffer of no size: the length comes first.
    mysql_stmt_bind_result(get_.get(), columns);
    const int fetched = mysql_stmt_fetch(get_.get());
    Status read;
    if (fetched == MYSQL_NO_DATA) {
      read = fail(ErrorKind::not_found, fmt::format("origin database: no object {}", id));
    } else if (fetched != 0 && fetched != MYSQL_DATA_TRUNCATED) {
      read = mariadb_error(handle_.get(), fmt::format("reading object {}", id));
    } else if (length > 0) {
      object.body.resize(length);
      columns[1].buffer = object.body.data();
      columns[1].buffer_length = length;
      if (mysql_stmt_fetch_column(get_.get(), &columns[1], 1, 0) != 0)
        read = mariadb_error(handle_.get(), fmt::format("reading object {}", id));
    }
    mysql_stmt_free_result(get_.get());
    if (!read) return std::unexpected(read.error());
    return object;
  }

  Result<std::uint32_t> update(std::uint64_t id) override {
    if (Status asked = ask(update_.get(), id); !asked) return std::unexpected(asked.error());
    if (mysql_stmt_affected_rows(update_.get()) != 1)
      return fail(ErrorKind::not_found, fmt::format("origin database: no object {}", id));
    return static_cast<std::uint32_t>(mysql_stmt_insert_id(update_.get()));
  }

 private:
  Status ask(MYSQL_STMT* statement, std::uint64_t id) {
    MYSQL_BIND parameter{};
    parameter.buffer_type = MYSQL_TYPE_LONGLONG;
    parameter.is_unsigned = 1;
    parameter.buffer = &id;
    if (mysql_stmt_bind_param(statement, &parameter) != 0 || mysql_stmt_execute(statement) != 0)
      return fail(ErrorKind::internal,
                  fmt::format("origin database: object {}: {}", id, mysql_stmt_error(statement)));
    return {};
  }

  Handle handle_;
  Prepared get_, update_;
};

class MariadbOrigin final : public Origin {
 public:
  explicit MariadbOrigin(std::string socket) : socket_(std::move(socket)) {}

 private:
  Result<std::unique_ptr<Connection>> connect() override {
    Result<Handle> handle = open_handle(socket_, "drill");
    if (!handle) return std::unexpected(handle.error());
    auto connection = std::make_unique<MariadbConnection>(std::move(*handle));
    if (Status prepared = connection->prepare(); !prepared) return std::unexpected(prepared.error());
    return connection;
  }

  const std::string socket_;
};

class MariadbServer final : public OriginServer {
 public:
  MariadbServer(ServerHome home, pid_t pid) : home_(std::move(home)), pid_(pid) {}
  ~MariadbServer() override {
    ::kill(pid_, SIGTERM);
    end_process(pid_, steady_clock::now() + kEndWithin);
  }

  Status wait_ready() {
    const auto end = steady_clock::now() + kReadyWithin;
    Error last;
    for (; steady_clock::now() < end; std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
      const Result<Handle> handle = open_handle(socket(), nullptr);
      if (handle) {
        version_ = mysql_get_server_info(handle->get());
        version_ = version_.substr(0, version_.find('-'));
        return {};
      }
      last = handle.error();
    }
    return fail(ErrorKind::internal, fmt::format("MariaDB did not get ready: {}; its log ends with: {}",
                                                 last.message, last_line_of(home_.spawning.log)));
  }

  Result<std::unique_ptr<Origin>> fresh(std::uint64_t objects, const BodyBytes& bytes) override {
    Result<Handle> handle = open_handle(socket(), nullptr);
    if (!handle) return std::unexpected(handle.error());
    for (const char* sql :
         {"CREATE DATABASE IF NOT EXISTS drill", "USE drill", "DROP TABLE IF EXISTS objects",
          "CREATE TABLE objects(id BIGINT UNSIGNED PRIMARY KEY, version INT UNSIGNED NOT NULL, body "
          "MEDIUMTEXT "
          "CHARACTER SET ascii NOT NULL) ENGINE=InnoDB",
          "START TRANSACTION"}) {
      if (Status done = query(handle->get(), sql); !done) return std::unexpected(done.error());
    }
    std::string rows;
    for (std::uint64_t id = 0; id < objects; ++id) {
      rows += fmt::format("{}({},1,'{}')", rows.empty() ? "INSERT INTO objects VALUES" : ",", id,
                          bytes ? object_body(id, bytes(id)) : object_body(id));
      if ((id + 1) % kRowsPerInsert != 0 && id + 1 < objects && rows.size() < (1U << 20)) continue;
      if (Status done = query(handle->get(), rows); !done) return std::unexpected(done.error());
      rows.clear();
    }
    if (Status done = query(handle->get(), "COMMIT"); !done) return std::unexpected(done.error());
    return std::make_unique<MariadbOrigin>(socket());
  }

  std::string describe() const override { return "MariaDB " + version_; }
  std::vector<pid_t> processes() const override { return {pid_}; }

 private:
  [[nodiscard]] std::string socket() const { return home_.path + "/socket"; }

  const ServerHome home_;
  const pid_t pid_;
  std::string version_;
};

}  // namespace

Result<std::unique_ptr<OriginServer>> start_mariadb(const std::string& directory) {
  Result<ServerHome> home = make_server_home(directory, "mariadb", "mysql");
  if (!home) return std::unexpected(home.error());
  home->spawning.install_hint = "apt-get install mariadb-server-core";
  const std::string data = home->path + "/data";
  SpawnOptions making = home->spawning;
  making.install_hint = "it is part of every system";
  if (Status made = run_program({"mkdir", data}, making, kEndWithin); !made)
    return std::unexpected(made.error());
  const std::string program =
      find_program("mariadbd", {"/usr/sbin/mariadbd", "/usr/libexec/mariadbd", "/usr/sbin/mysqld"});
  // An empty directory: InnoDB makes its own files, and without grant tables no others are needed.
  const Result<pid_t> pid =
      spawn({program, "--no-defaults", "--datadir=" + data, "--socket=" + home->path + "/socket",
             "--pid-file=" + home->path + "/pid", "--skip-networking", "--skip-grant-tables",
             "--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--skip-log-bin",
             "--innodb-buffer-pool-size=128M", "--max-connections=300"},
            home->spawning);
  if (!pid) return std::unexpected(pid.error());
  auto server = std::make_unique<MariadbServer>(std::move(*home), *pid);
  if (Status ready = server->wait_ready(); !ready) return std::unexpected(ready.error());
  return server;
}

}  // namespace ringshift::drill
#else
namespace ringshift::drill {

Result<std::unique_ptr<OriginServer>> start_mariadb(const std::string&) {
  return fail(ErrorKind::invalid,
              "--origin mysql: this ringshift was built without MariaDB's client; apt-get install "
              "libmariadb-dev, and build "
              "it again");
}

}  // namespace ringshift::drill
#endif
