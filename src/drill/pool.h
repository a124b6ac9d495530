// The application's pool of database connections: few of them, first come, first served, with a longest wait.
//
// This is what a stampede breaks in life: not the database's disk, but the pool. Each query keeps its
// connection for at least `query` (as a database does that is across a network and has more to do than one
// row), so the origin answers at most connections / query a second, whatever machine this runs on. `query`
// of zero: only what the database itself takes.
//
// Any number of threads. A wait that takes longer than `timeout` fails with `overloaded`. The waiting ones
// are as many as threads ask, so that is their bound.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "drill/origin.h"

namespace ringshift::drill {

struct PoolOptions {
  unsigned connections = 8;
  std::chrono::milliseconds query{6};
  std::chrono::milliseconds timeout{500};
  // What the origin can answer a second; 0: as many as it can.
  [[nodiscard]] double capacity() const {
    return query.count() == 0 ? 0 : 1000.0 * connections / static_cast<double>(query.count());
  }
};

class OriginPool {
 public:
  // REQUIRES: the origin outlives the pool, and the pool its leases.
  [[nodiscard]] static Result<std::unique_ptr<OriginPool>> create(Origin& origin, PoolOptions options);

  class Lease {  // A connection; goes back when destroyed.
   public:
    Lease(OriginPool& pool, std::size_t index) : pool_(&pool), index_(index) {}
    ~Lease() {
      if (pool_ != nullptr) pool_->give_back(index_);
    }
    Lease(Lease&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_) {}
    Lease& operator=(Lease&&) = delete;
    [[nodiscard]] Result<Object> get(std::uint64_t id);
    [[nodiscard]] Result<std::uint32_t> update(std::uint64_t id);

   private:
    OriginPool* pool_;
    std::size_t index_;
  };
  [[nodiscard]] Result<Lease> take();

  [[nodiscard]] const PoolOptions& options() const noexcept { return options_; }

 private:
  struct Waiter {
    std::condition_variable given;
    std::optional<std::size_t> index;
  };

  explicit OriginPool(PoolOptions options) : options_(options) {}
  void give_back(std::size_t index);

  const PoolOptions options_;
  std::vector<Origin::Session> sessions_;
  std::mutex mutex_;
  std::vector<std::size_t> free_;  // Guarded by mutex_, as is what follows.
  std::deque<Waiter*> waiting_;
};

}  // namespace ringshift::drill
