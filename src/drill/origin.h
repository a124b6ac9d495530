// The database behind the cache: versioned objects in one table, and a count of its queries.
//
// An Origin is shared; each thread works through a Session of its own (a connection with prepared
// statements). Three databases: SQLite in this process (create), and private servers of PostgreSQL and
// MariaDB (origin_server.h). The data need not survive a crash: it lives as long as the run, and nothing is
// synchronised to disk.
//
// SQLite: writers take turns on a mutex, since it has one writer and its own waiting sleeps for
// milliseconds. Cost: a read about 10 us, an update about 30 us.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "ringshift/error.h"

namespace ringshift::drill {

struct Object {
  std::uint32_t version = 0;  // Starts at 1; every update adds 1.
  std::string body;           // 100 to 200 bytes, fixed by the id.
};

// What the application keeps in the cache: "id:version:body".
[[nodiscard]] std::string cache_value(std::uint64_t id, const Object& object);
[[nodiscard]] std::string object_body(std::uint64_t id);
[[nodiscard]] std::string object_body(std::uint64_t id, std::size_t bytes);

// How many bytes an object's body has; none: as object_body(id) has it.
using BodyBytes = std::function<std::size_t(std::uint64_t id)>;

class Origin {
 public:
  // Makes a SQLite file at `path` with objects 0 .. objects-1, each at version 1.
  [[nodiscard]] static Result<std::unique_ptr<Origin>> create(const std::string& path, std::uint64_t objects,
                                                              const BodyBytes& bytes = {});
  virtual ~Origin() = default;
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;

  // What a database does for a session.
  class Connection {
   public:
    virtual ~Connection() = default;
    [[nodiscard]] virtual Result<Object> get(std::uint64_t id) = 0;
    [[nodiscard]] virtual Result<std::uint32_t> update(std::uint64_t id) = 0;
  };

  class Session {
   public:
    Session(Origin& origin, std::unique_ptr<Connection> connection)
        : origin_(&origin), connection_(std::move(connection)) {}
    [[nodiscard]] Result<Object> get(std::uint64_t id);
    [[nodiscard]] Result<std::uint32_t> update(std::uint64_t id);  // Gives the new version.

   private:
    Origin* origin_;
    std::unique_ptr<Connection> connection_;
  };
  // REQUIRES: the Origin outlives its sessions.
  [[nodiscard]] Result<Session> session();

  [[nodiscard]] std::uint64_t reads() const noexcept { return reads_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t updates() const noexcept { return updates_.load(std::memory_order_relaxed); }

 protected:
  Origin() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<Connection>> connect() = 0;

 private:
  std::atomic<std::uint64_t> reads_{0}, updates_{0};
};

}  // namespace ringshift::drill
