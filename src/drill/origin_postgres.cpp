// A private PostgreSQL server as the origin: initdb, then `postgres` on a socket of its own, nothing
// synchronised to disk. Without libpq at build time, an error that says so.
#include <fmt/format.h>

#include "drill/origin_server_parts.h"

#ifdef RINGSHIFT_WITH_POSTGRES
#include <libpq-fe.h>
#include <signal.h>

#include <array>
#include <thread>

#include "base/encoding.h"

namespace ringshift::drill {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kInitTimeout{120}, kReadyTimeout{60}, kEndTimeout{10};
constexpr std::size_t kCopyBytes = 64U << 10;

struct CloseConnection {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using PgSession = std::unique_ptr<PGconn, CloseConnection>;
using Rows = std::unique_ptr<PGresult, ClearResult>;

std::unexpected<Error> postgres_error(PGconn* connection, std::string_view what) {
  return fail(ErrorKind::internal, fmt::format("origin database: {}: {}", what, PQerrorMessage(connection)));
}

Result<PgSession> open_session(const std::string& socket_directory) {
  PgSession session(
      PQconnectdb(fmt::format("host='{}' port=5432 user=drill dbname=postgres", socket_directory).c_str()));
  if (PQstatus(session.get()) != CONNECTION_OK) return postgres_error(session.get(), "cannot connect");
  return session;
}

Status execute(PGconn* connection, const char* sql) {
  const Rows rows(PQexec(connection, sql));
  const ExecStatusType status = PQresultStatus(rows.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) return postgres_error(connection, sql);
  return {};
}

class PostgresConnection final : public Origin::Connection {
 public:
  explicit PostgresConnection(PgSession session) : session_(std::move(session)) {}

  Status prepare() {
    for (const auto& [name, sql] :
         {std::pair("get", "SELECT version, body FROM objects WHERE id = $1"),
          std::pair("update", "UPDATE objects SET version = version + 1 WHERE id = $1 RETURNING version")}) {
      const Rows made(PQprepare(session_.get(), name, sql, 1, nullptr));
      if (PQresultStatus(made.get()) != PGRES_COMMAND_OK) return postgres_error(session_.get(), sql);
    }
    return {};
  }

  Result<Object> get(std::uint64_t id) override {
    const Result<Rows> rows = ask("get", id);
    if (!rows) return std::unexpected(rows.error());
    Object object;
    object.version = version_of(rows->get());
    object.body.assign(PQgetvalue(rows->get(), 0, 1),
                       static_cast<std::size_t>(PQgetlength(rows->get(), 0, 1)));
    return object;
  }

  Result<std::uint32_t> update(std::uint64_t id) override {
    const Result<Rows> rows = ask("update", id);
    if (!rows) return std::unexpected(rows.error());
    return version_of(rows->get());
  }

 private:
  // One row.
  Result<Rows> ask(const char* statement, std::uint64_t id) {
    const std::string text = std::to_string(id);
    const char* const values[] = {text.c_str()};
    Rows rows(PQexecPrepared(session_.get(), statement, 1, values, nullptr, nullptr, 0));
    if (PQresultStatus(rows.get()) != PGRES_TUPLES_OK)
      return postgres_error(session_.get(), fmt::format("{} of object {}", statement, id));
    if (PQntuples(rows.get()) != 1)
      return fail(ErrorKind::not_found, fmt::format("origin database: no object {}", id));
    return rows;
  }
  static std::uint32_t version_of(const PGresult* rows) {
    return static_cast<std::uint32_t>(base::parse_u64(PQgetvalue(rows, 0, 0)).value_or(0));
  }

  PgSession session_;
};

class PostgresOrigin final : public Origin {
 public:
  explicit PostgresOrigin(std::string socket_directory) : socket_directory_(std::move(socket_directory)) {}

 private:
  Result<std::unique_ptr<Connection>> connect() override {
    Result<PgSession> session = open_session(socket_directory_);
    if (!session) return std::unexpected(session.error());
    auto connection = std::make_unique<PostgresConnection>(std::move(*session));
    if (Status prepared = connection->prepare(); !prepared) return std::unexpected(prepared.error());
    return connection;
  }

  const std::string socket_directory_;
};

class PostgresServer final : public OriginServer {
 public:
  PostgresServer(ServerHome home, pid_t pid) : home_(std::move(home)), pid_(pid) {}
  ~PostgresServer() override {
    ::kill(pid_, SIGINT);  // Its "fast" shutdown: sessions are cut.
    end_process(pid_, steady_clock::now() + kEndTimeout);
  }

  Status wait_ready() {
    const auto end = steady_clock::now() + kReadyTimeout;
    Error last;
    for (; steady_clock::now() < end; std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
      const Result<PgSession> session = open_session(home_.path);
      if (session) {
        version_ = PQparameterStatus(session->get(), "server_version");
        version_ = version_.substr(0, version_.find(' '));
        return {};
      }
      last = session.error();
    }
    return fail(ErrorKind::internal, fmt::format("PostgreSQL did not get ready: {}; its log ends with: {}",
                                                 last.message, last_line_of(home_.spawning.log)));
  }

  Result<std::unique_ptr<Origin>> fresh(std::uint64_t objects, const BodyBytes& bytes) override {
    Result<PgSession> session = open_session(home_.path);
    if (!session) return std::unexpected(session.error());
    PGconn* connection = session->get();
    for (const char* sql :
         {"SET client_min_messages = warning", "SET lock_timeout = '10s'", "DROP TABLE IF EXISTS objects",
          "CREATE UNLOGGED TABLE objects(id bigint PRIMARY KEY, version integer NOT NULL, body text NOT "
          "NULL)"}) {
      if (Status done = execute(connection, sql); !done) return std::unexpected(done.error());
    }
    if (Status copied = copy_in(connection, objects, bytes); !copied) return std::unexpected(copied.error());
    if (Status done = execute(connection, "ANALYZE objects"); !done) return std::unexpected(done.error());
    return std::make_unique<PostgresOrigin>(home_.path);
  }

  std::string describe() const override { return "PostgreSQL " + version_; }
  std::vector<pid_t> processes() const override { return {pid_}; }

 private:
  static Status copy_in(PGconn* connection, std::uint64_t objects, const BodyBytes& bytes) {
    const Rows begun(PQexec(connection, "COPY objects FROM STDIN"));
    if (PQresultStatus(begun.get()) != PGRES_COPY_IN) return postgres_error(connection, "COPY");
    std::string rows;
    for (std::uint64_t id = 0; id < objects; ++id) {
      // Bodies are letters: nothing to escape.
      rows += fmt::format("{}\t1\t{}\n", id, bytes ? object_body(id, bytes(id)) : object_body(id));
      if (rows.size() < kCopyBytes && id + 1 < objects) continue;
      if (PQputCopyData(connection, rows.data(), static_cast<int>(rows.size())) != 1)
        return postgres_error(connection, "COPY");
      rows.clear();
    }
    if (PQputCopyEnd(connection, nullptr) != 1) return postgres_error(connection, "COPY");
    for (;;) {
      const Rows rest(PQgetResult(connection));
      if (!rest) return {};
      if (PQresultStatus(rest.get()) != PGRES_COMMAND_OK) return postgres_error(connection, "COPY");
    }
  }

  const ServerHome home_;
  const pid_t pid_;
  std::string version_;
};

}  // namespace

Result<std::unique_ptr<OriginServer>> start_postgres(const std::string& directory) {
  Result<ServerHome> home = make_server_home(directory, "postgres", "postgres");
  if (!home) return std::unexpected(home.error());
  home->spawning.install_hint = "apt-get install postgresql-15 (or another version of it)";
  const auto program = [](const std::string& name) {
    return find_program(name, {"/usr/lib/postgresql/*/bin/" + name, "/usr/pgsql-*/bin/" + name});
  };
  const std::string data = home->path + "/data";
  if (Status made = run_program({program("initdb"), "-D", data, "-U", "drill", "-A", "trust", "-E", "UTF8",
                                 "--locale=C", "--no-sync"},
                                home->spawning, kInitTimeout);
      !made) {
    return std::unexpected(made.error());
  }
  const Result<pid_t> pid =
      spawn({program("postgres"), "-D", data, "-k", home->path, "-p", "5432", "-c", "listen_addresses=", "-c",
             "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c",
             "max_connections=300", "-c", "shared_buffers=64MB"},
            home->spawning);
  if (!pid) return std::unexpected(pid.error());
  auto server = std::make_unique<PostgresServer>(std::move(*home), *pid);
  if (Status ready = server->wait_ready(); !ready) return std::unexpected(ready.error());
  return server;
}

}  // namespace ringshift::drill
#else
namespace ringshift::drill {

Result<std::unique_ptr<OriginServer>> start_postgres(const std::string&) {
  return fail(ErrorKind::invalid,
              "--origin postgres: this ringshift was built without PostgreSQL's client; apt-get install "
              "libpq-dev, and "
              "build it again");
}

}  // namespace ringshift::drill
#endif
