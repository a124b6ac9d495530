// Leases as ZooKeeper sessions: each has a session of its own, which the ensemble ends when nothing was heard
// on it for its time, and the keys put with it are that session's ephemeral nodes.
//
// A lease is of the Coordinator that granted it. Nothing pings for it: keep_alive() does, and so does every
// write with the lease. A connection that was lost is opened again, at the next server, by the next call, and
// takes the session up. Thread-safe; calls for one lease wait for one another.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "coord/coordinator.h"
#include "coord/zookeeper/connection.h"

namespace ringshift::coord::zookeeper {

class Leases {
 public:
  static constexpr std::size_t kLeasesMax = 10'000;

  // Opens a connection at whatever server answers.
  using Open = std::function<Result<std::unique_ptr<Connection>>(
      std::chrono::milliseconds timeout, const SessionId& session, Deadline deadline)>;
  explicit Leases(Open open) : open_(std::move(open)) {}

  [[nodiscard]] Result<LeaseId> grant(std::chrono::seconds ttl, Deadline deadline);
  [[nodiscard]] Result<std::chrono::seconds> keep_alive(LeaseId id, Deadline deadline);
  [[nodiscard]] Status revoke(LeaseId id, Deadline deadline);
  // Runs `use` with the lease's connection; not_found when the lease is over.
  [[nodiscard]] Status with(LeaseId id, Deadline deadline, const std::function<Status(Connection&)>& use);

 private:
  struct Lease {
    std::mutex mutex;
    SessionId session;
    std::chrono::milliseconds ttl{};
    std::unique_ptr<Connection> connection;
    bool over = false;
  };
  [[nodiscard]] std::shared_ptr<Lease> find(LeaseId id);
  void forget(LeaseId id);
  // REQUIRES: lease.mutex is held. A connection that answered within the lease's time.
  Status connect(LeaseId id, Lease& lease, Deadline deadline);

  const Open open_;
  std::mutex mutex_;
  std::map<LeaseId, std::shared_ptr<Lease>> leases_;  // Guarded by mutex_.
};

}  // namespace ringshift::coord::zookeeper
