#include "coord/zookeeper/servers.h"

#include <algorithm>
#include <random>
#include <thread>

#include "base/jitter.h"

namespace ringshift::coord::zookeeper {
namespace {
constexpr std::chrono::milliseconds kRoundPauseMax{200};  // Between rounds: full jitter.
}

Result<std::unique_ptr<Connection>> Servers::open(std::chrono::milliseconds timeout, const SessionId& session,
                                                  Deadline deadline) {
  const std::size_t count = ensemble_.endpoints.size();
  const auto patience =
      (deadline - Clock::now()) / static_cast<std::int64_t>(std::min<std::size_t>(count, 3));
  Error last{ErrorKind::retryable, "no time was left to ask a server of ZooKeeper"};
  do {
    const std::size_t first = preferred_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < count && Clock::now() < deadline; ++i) {
      const std::size_t index = (first + i) % count;
      auto connection =
          Connection::open({ensemble_.endpoints[index], timeout, session, credentials_, nullptr, &hurry_},
                           std::min(deadline, Clock::now() + patience));
      if (connection) {
        preferred_.store(index, std::memory_order_relaxed);
        return connection;
      }
      last = std::move(connection.error());
      if (last.kind != ErrorKind::retryable) return std::unexpected(std::move(last));
    }
    if (count == 1 || hurry_.begun()) break;
    thread_local std::minstd_rand random{std::random_device{}()};
    std::this_thread::sleep_for(base::full_jitter(kRoundPauseMax, random));
  } while (Clock::now() < deadline);
  return std::unexpected(std::move(last));
}

Result<std::unique_ptr<Connection>> Servers::open_next(std::chrono::milliseconds timeout, Deadline deadline,
                                                       const Canceller& canceller) {
  const std::size_t index = preferred_.load(std::memory_order_relaxed) % ensemble_.endpoints.size();
  auto connection = Connection::open(
      {ensemble_.endpoints[index], timeout, {}, credentials_, &canceller, nullptr}, deadline);
  if (!connection) preferred_.store(index + 1, std::memory_order_relaxed);
  return connection;
}

}  // namespace ringshift::coord::zookeeper
