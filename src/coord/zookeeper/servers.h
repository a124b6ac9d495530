// The servers of an ensemble: opens connections at one that answers, beginning with the one that did last.
// Thread-safe.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "coord/zookeeper/connection.h"
#include "coord/zookeeper/nodes.h"

namespace ringshift::coord::zookeeper {

class Servers {
 public:
  Servers(Ensemble ensemble, std::string credentials)
      : ensemble_(std::move(ensemble)), credentials_(std::move(credentials)) {}

  // Each server once or, where there are several (one of them may lead again in a moment), again and again
  // until the deadline. not_found when `session` is over.
  [[nodiscard]] Result<std::unique_ptr<Connection>> open(std::chrono::milliseconds timeout,
                                                         const SessionId& session, Deadline deadline);
  // One server, another one at the next call.
  [[nodiscard]] Result<std::unique_ptr<Connection>> open_next(std::chrono::milliseconds timeout,
                                                              Deadline deadline, const Canceller& canceller);

  // As Coordinator::hurry(): of the connections that open() made and makes.
  void hurry(std::chrono::milliseconds most) noexcept { hurry_.begin(most); }

  [[nodiscard]] Layout layout() const {
    return {ensemble_.chroot, credentials_.empty() ? Access::world : Access::creator};
  }
  [[nodiscard]] std::size_t count() const { return ensemble_.endpoints.size(); }

 private:
  const Ensemble ensemble_;
  const std::string credentials_;
  std::atomic<std::size_t> preferred_{0};
  Hurry hurry_;
};

}  // namespace ringshift::coord::zookeeper
