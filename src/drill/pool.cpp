#include "drill/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace ringshift::drill {
namespace {

using std::chrono::steady_clock;

constexpr unsigned kMaxConnections = 256;

}  // namespace

Result<std::unique_ptr<OriginPool>> OriginPool::create(Origin& origin, PoolOptions options) {
  if (options.connections < 1 || options.connections > kMaxConnections) {
    return fail(ErrorKind::invalid, fmt::format("a pool of {} connections to the origin: choose 1 to {}",
                                                options.connections, kMaxConnections));
  }
  std::unique_ptr<OriginPool> pool(new OriginPool(options));
  for (std::size_t i = 0; i < options.connections; ++i) {
    Result<Origin::Session> session = origin.session();
    if (!session) return std::unexpected(session.error());
    pool->sessions_.push_back(std::move(*session));
    pool->free_.push_back(i);
  }
  return pool;
}

Result<OriginPool::Lease> OriginPool::take() {
  std::unique_lock lock(mutex_);
  if (waiting_.empty() && !free_.empty()) {
    const std::size_t index = free_.back();
    free_.pop_back();
    return Lease(*this, index);
  }
  Waiter waiter;
  waiting_.push_back(&waiter);
  waiter.given.wait_for(lock, options_.timeout, [&waiter] { return waiter.index.has_value(); });
  if (waiter.index) return Lease(*this, *waiter.index);
  waiting_.erase(std::ranges::find(waiting_, &waiter));
  return fail(ErrorKind::overloaded,
              fmt::format("no connection to the origin became free within {} ms", options_.timeout.count()));
}

void OriginPool::give_back(std::size_t index) {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) {
    free_.push_back(index);
    return;
  }
  Waiter& first = *waiting_.front();
  waiting_.pop_front();
  first.index = index;
  first.given.notify_one();  // Under the lock: the waiter is gone as soon as it has that.
}

Result<Object> OriginPool::Lease::get(std::uint64_t id) {
  const auto until = steady_clock::now() + pool_->options_.query;
  Result<Object> object = pool_->sessions_[index_].get(id);
  std::this_thread::sleep_until(until);
  return object;
}

Result<std::uint32_t> OriginPool::Lease::update(std::uint64_t id) {
  const auto until = steady_clock::now() + pool_->options_.query;
  Result<std::uint32_t> version = pool_->sessions_[index_].update(id);
  std::this_thread::sleep_until(until);
  return version;
}

}  // namespace ringshift::drill
