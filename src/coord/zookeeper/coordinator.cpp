#include "coord/zookeeper/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

#include "coord/zookeeper/leases.h"
#include "coord/zookeeper/nodes.h"
#include "coord/zookeeper/servers.h"
#include "coord/zookeeper/transact.h"
#include "coord/zookeeper/watch.h"

namespace ringshift::coord::zookeeper {
namespace {

// Of connections for calls: nothing depends on these sessions.
constexpr std::chrono::seconds kCallSession{30};
constexpr std::size_t kIdleMax = 4;  // Connections kept.

std::string digest_of(const Credentials& credentials) {
  return credentials.kind == Credentials::Kind::none ? "" : credentials.name + ":" + credentials.secret;
}

class ZooKeeperCoordinator final : public Coordinator {
 public:
  ZooKeeperCoordinator(Ensemble ensemble, const Options& options)
      : servers_(std::make_shared<Servers>(std::move(ensemble), digest_of(options.credentials))),
        layout_(servers_->layout()),
        timeout_(options.request_timeout),
        identity_(std::make_shared<Identity>()),
        leases_([servers = servers_](std::chrono::milliseconds ttl, const SessionId& session,
                                     Deadline deadline) { return servers->open(ttl, session, deadline); }) {}
  ~ZooKeeperCoordinator() override {
    for (const auto& connection : idle_) connection->close_session();
  }
  ZooKeeperCoordinator(const ZooKeeperCoordinator&) = delete;
  ZooKeeperCoordinator& operator=(const ZooKeeperCoordinator&) = delete;

  Result<std::optional<KeyValue>> get(std::string_view key) override {
    const auto path = path_of(layout_.chroot, key);
    if (!path) return std::unexpected(path.error());
    std::optional<KeyValue> found;
    const Status done = run([&](Attempt& attempt) -> Status {
      auto replies =
          attempt.connection.call({sync_request(*path), get_data_request(*path)}, attempt.deadline);
      if (!replies) return std::unexpected(std::move(replies.error()));
      const Reply& reply = replies->back();
      if (reply.header.code == Code::no_node) return {};
      if (reply.header.code != Code::ok) return std::unexpected(to_error(reply.header.code, key));
      Result<Node> node = read_node(reply.body);
      if (!node) return std::unexpected(std::move(node.error()));
      if (node->data) found = to_key_value(std::string(key), *std::move(node));
      return {};
    });
    if (!done) return std::unexpected(done.error());
    return found;
  }

  Result<Range> list(std::string_view prefix) override {
    Range range;
    const Status done = run([&](Attempt& attempt) -> Status {
      auto listing = list_keys(attempt.connection, layout_, *identity_, prefix, attempt.deadline);
      if (!listing) return std::unexpected(std::move(listing.error()));
      range = std::move(listing->range);
      return {};
    });
    if (!done) return std::unexpected(done.error());
    return range;
  }

  Result<Revision> put(std::string_view key, std::string_view value, LeaseId lease) override {
    const Op op{Op::Kind::put, std::string(key), std::string(value), lease};
    const auto outcome = write(lease, [&](Attempt& attempt) { return put_existing_first(attempt, op); });
    if (!outcome) return std::unexpected(outcome.error());
    return outcome->revision;
  }

  Result<bool> remove(std::string_view key) override {
    const Op op{Op::Kind::remove, std::string(key), "", 0};
    const auto outcome = write(0, [&](Attempt& attempt) { return zookeeper::transact(attempt, {}, {op}); });
    if (!outcome) return std::unexpected(outcome.error());
    return outcome->removed > 0;
  }

  Result<std::optional<Revision>> transact(const std::vector<Compare>& compares,
                                           const std::vector<Op>& ops) override {
    LeaseId lease = 0;
    for (const Op& op : ops) {
      if (op.kind != Op::Kind::put || op.lease == 0) continue;
      if (lease != 0 && lease != op.lease) {
        return fail(ErrorKind::invalid, "ZooKeeper writes keys of one lease at a time");
      }
      lease = op.lease;
    }
    const auto outcome =
        write(lease, [&](Attempt& attempt) { return zookeeper::transact(attempt, compares, ops); });
    if (!outcome) return std::unexpected(outcome.error());
    if (!outcome->held) return std::nullopt;
    return outcome->revision;
  }

  Result<LeaseId> grant(std::chrono::seconds ttl) override { return leases_.grant(ttl, deadline()); }
  Result<std::chrono::seconds> keep_alive(LeaseId lease) override {
    return leases_.keep_alive(lease, deadline());
  }
  Status revoke(LeaseId lease) override { return leases_.revoke(lease, deadline()); }

  void hurry(std::chrono::milliseconds most) override { servers_->hurry(most); }

  std::unique_ptr<Watch> watch(std::string prefix, Watcher& watcher) override {
    return start_watch(servers_, identity_, timeout_, std::move(prefix), watcher);
  }

 private:
  [[nodiscard]] Deadline deadline() const { return Clock::now() + timeout_; }

  Result<Outcome> write(LeaseId lease, const std::function<Result<Outcome>(Attempt&)>& body) {
    Outcome outcome;
    const auto use = [&](Attempt& attempt) -> Status {
      Result<Outcome> done = body(attempt);
      if (!done) return std::unexpected(std::move(done.error()));
      outcome = *done;
      return {};
    };
    Status done;
    if (lease == 0) {
      done = run(use);
    } else {
      const Deadline until = deadline();
      done = leases_.with(lease, until, [&](Connection& connection) {
        Attempt attempt{connection, layout_, until};
        return use(attempt);
      });
    }
    if (!done) return std::unexpected(std::move(done.error()));
    return outcome;
  }

  // Runs `body` with a connection; again, with another, when the connection broke before a write was sent.
  Status run(const std::function<Status(Attempt&)>& body) {
    const Deadline until = deadline();
    const std::size_t tries = servers_->count() + 1;
    for (std::size_t i = 0;; ++i) {
      auto connection = take(until);
      if (!connection) return std::unexpected(std::move(connection.error()));
      Attempt attempt{**connection, layout_, until};
      Status done = body(attempt);
      const bool broken = (*connection)->broken();
      if (!broken) give_back(*std::move(connection));
      if (done || !broken || attempt.wrote || i + 1 >= tries || Clock::now() >= until) return done;
    }
  }

  // One that is kept and still lives, or a new one.
  Result<std::unique_ptr<Connection>> take(Deadline until) {
    while (true) {
      std::unique_ptr<Connection> connection;
      {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) break;
        connection = std::move(idle_.back());
        idle_.pop_back();
      }
      if (connection->hung_up()) continue;
      if (Clock::now() - connection->heard_at() < connection->timeout() / 4) return connection;
      // Long unheard: the session may be over, or the way to the server cut. A write must not find that out.
      if (connection->ping(std::min(until, Clock::now() + timeout_ / 4))) return connection;
    }
    return servers_->open(kCallSession, {}, until);
  }

  void give_back(std::unique_ptr<Connection> connection) {
    {
      const std::lock_guard lock(mutex_);
      if (idle_.size() < kIdleMax) {
        idle_.push_back(std::move(connection));
        return;
      }
    }
    connection->close_session();
  }

  const std::shared_ptr<Servers> servers_;  // Shared with the watches.
  const Layout layout_;
  const std::chrono::milliseconds timeout_;
  const std::shared_ptr<Identity> identity_;
  Leases leases_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;  // Guarded by mutex_.
};

}  // namespace

Result<std::unique_ptr<Coordinator>> connect(const std::string& url, const Options& options) {
  if (options.credentials.kind != Credentials::Kind::none &&
      options.credentials.kind != Credentials::Kind::digest) {
    return fail(
        ErrorKind::invalid,
        "ZooKeeper knows us by digest:USER:PASSWORD, and the file given by --registry-auth-file holds "
        "another kind of credentials");
  }
  Result<Ensemble> ensemble = parse_ensemble(url);
  if (!ensemble) return std::unexpected(std::move(ensemble.error()));
  return std::make_unique<ZooKeeperCoordinator>(*std::move(ensemble), options);
}

}  // namespace ringshift::coord::zookeeper
