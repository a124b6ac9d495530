// Watching a prefix for ever by persistent watches: whatever is told to have changed is read again, and what
// is read becomes events. After each reconnect everything is listed again, and the difference becomes events;
// a resync tells that the ensemble is another one (Identity). A key's older state never follows a newer one.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "coord/coordinator.h"
#include "coord/zookeeper/nodes.h"
#include "coord/zookeeper/servers.h"

namespace ringshift::coord::zookeeper {

[[nodiscard]] std::unique_ptr<Watch> start_watch(std::shared_ptr<Servers> servers,
                                                 std::shared_ptr<Identity> identity,
                                                 std::chrono::milliseconds request_timeout,
                                                 std::string prefix, Watcher& watcher);

}  // namespace ringshift::coord::zookeeper
