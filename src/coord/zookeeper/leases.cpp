#include "coord/zookeeper/leases.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringshift::coord::zookeeper {
namespace {

std::unexpected<Error> lease_is_over(LeaseId id) {
  return fail(ErrorKind::not_found,
              fmt::format("lease {:x} is gone: grant a new one and put its keys again", id));
}

}  // namespace

Result<LeaseId> Leases::grant(std::chrono::seconds ttl, Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (leases_.size() >= kLeasesMax) {
      return fail(ErrorKind::overloaded, fmt::format("more than {} leases in one process", kLeasesMax));
    }
  }
  Result<std::unique_ptr<Connection>> connection = open_(ttl, {}, deadline);
  if (!connection) return std::unexpected(std::move(connection.error()));
  if ((*connection)->timeout() < ttl) {
    const auto granted = (*connection)->timeout();
    (*connection)->close_session();
    return fail(
        ErrorKind::invalid,
        fmt::format("a lease of {} s: this ZooKeeper allows {} ms at most; raise its maxSessionTimeout",
                    ttl.count(), granted.count()));
  }
  auto lease = std::make_shared<Lease>();
  lease->session = (*connection)->session();
  lease->ttl = (*connection)->timeout();
  lease->connection = *std::move(connection);
  const LeaseId id = lease->session.id;
  const std::lock_guard lock(mutex_);
  leases_[id] = std::move(lease);
  return id;
}

Result<std::chrono::seconds> Leases::keep_alive(LeaseId id, Deadline deadline) {
  const std::shared_ptr<Lease> lease = find(id);
  if (lease == nullptr) return lease_is_over(id);
  const std::lock_guard lock(lease->mutex);
  // Twice: a connection that is lost without our knowing shows only now.
  for (int tries = 0; tries < 2; ++tries) {
    if (Status connected = connect(id, *lease, deadline); !connected)
      return std::unexpected(connected.error());
    const Deadline soon = std::min(deadline, Clock::now() + lease->ttl / 3);
    if (lease->connection->ping(soon)) return std::chrono::duration_cast<std::chrono::seconds>(lease->ttl);
  }
  return fail(ErrorKind::retryable, fmt::format("lease {:x}: no server of the ensemble answers", id));
}

Status Leases::revoke(LeaseId id, Deadline deadline) {
  const std::shared_ptr<Lease> lease = find(id);
  if (lease == nullptr) return lease_is_over(id);
  const std::lock_guard lock(lease->mutex);
  if (Status connected = connect(id, *lease, deadline); !connected) return connected;
  // Its answer comes when the ephemerals are gone.
  const auto reply = lease->connection->call(close_request(), deadline);
  if (!reply) return std::unexpected(reply.error());
  lease->over = true;
  lease->connection.reset();
  forget(id);
  return {};
}

Status Leases::with(LeaseId id, Deadline deadline, const std::function<Status(Connection&)>& use) {
  const std::shared_ptr<Lease> lease = find(id);
  if (lease == nullptr) return lease_is_over(id);
  const std::lock_guard lock(lease->mutex);
  if (Status connected = connect(id, *lease, deadline); !connected) return connected;
  return use(*lease->connection);
}

Status Leases::connect(LeaseId id, Lease& lease, Deadline deadline) {
  if (lease.over) return lease_is_over(id);
  if (lease.connection != nullptr && !lease.connection->hung_up()) return {};
  lease.connection.reset();
  Result<std::unique_ptr<Connection>> connection = open_(lease.ttl, lease.session, deadline);
  if (connection) {
    lease.connection = *std::move(connection);
    return {};
  }
  if (connection.error().kind != ErrorKind::not_found) return std::unexpected(std::move(connection.error()));
  lease.over = true;
  forget(id);
  return lease_is_over(id);
}

std::shared_ptr<Leases::Lease> Leases::find(LeaseId id) {
  const std::lock_guard lock(mutex_);
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : found->second;
}

void Leases::forget(LeaseId id) {
  const std::lock_guard lock(mutex_);
  leases_.erase(id);
}

}  // namespace ringshift::coord::zookeeper
