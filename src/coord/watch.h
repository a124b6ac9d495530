// Watching a prefix for ever: range, then the events after it, reconnecting with full jitter, and ranging
// again whenever history was lost.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "coord/coordinator.h"
#include "coord/etcd_access.h"

namespace ringshift::coord {

// A watch whose stream broke waits a random time below the first, doubled with each failure up to the most:
// before the first attempt, too, so that a thousand routers do not return to a restarted registry in one
// moment, which would be slow for all of them.
inline constexpr std::chrono::milliseconds kWatchRetryFirst{1000};
inline constexpr std::chrono::milliseconds kWatchRetryMax{5000};

// Without it a member of an etcd cluster that lost its leader keeps a watch open in silence.
inline constexpr std::string_view kHasLeader = "Grpc-Metadata-hasleader: true";

[[nodiscard]] std::unique_ptr<Watch> start_watch(const Options& options, std::shared_ptr<EtcdAccess> access,
                                                 std::string prefix, Watcher& watcher);

}  // namespace ringshift::coord
