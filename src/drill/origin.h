// The database behind the cache: a real SQLite file with versioned objects, and a count of its queries.
//
// An Origin is shared; each thread works through a Session of its own (a connection with prepared
// statements). Writers take turns on a mutex, since SQLite has one writer and its own waiting sleeps for
// milliseconds. Cost: a read about 10 us, an update about 30 us. The file need not survive a crash
// (synchronous=OFF): it lives as long as the run.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "ringshift/error.h"

namespace ringshift::drill {

struct Object {
  std::uint32_t version = 0;  // Starts at 1; every update adds 1.
  std::string body;           // 100 to 200 bytes, fixed by the id.
};

// What the application keeps in the cache: "id:version:body".
[[nodiscard]] std::string cache_value(std::uint64_t id, const Object& object);
[[nodiscard]] std::string object_body(std::uint64_t id);

class Origin {
 public:
  // Makes the database file at `path` with objects 0 .. objects-1, each at version 1.
  [[nodiscard]] static Result<std::unique_ptr<Origin>> create(const std::string& path, std::uint64_t objects);

  class Session {
   public:
    Session(Session&&) noexcept;
    ~Session();
    [[nodiscard]] Result<Object> get(std::uint64_t id);
    [[nodiscard]] Result<std::uint32_t> update(std::uint64_t id);  // Gives the new version.

   private:
    friend class Origin;
    struct Impl;
    explicit Session(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
  };
  // REQUIRES: the Origin outlives its sessions.
  [[nodiscard]] Result<Session> session();

  [[nodiscard]] std::uint64_t reads() const noexcept { return reads_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t updates() const noexcept { return updates_.load(std::memory_order_relaxed); }

 private:
  explicit Origin(std::string path) : path_(std::move(path)) {}
  const std::string path_;
  std::mutex write_mutex_;
  std::atomic<std::uint64_t> reads_{0}, updates_{0};
};

}  // namespace ringshift::drill
