// Cluster state in ZooKeeper 3.6 or newer, as a Coordinator. What is particular about it:
//
// - A revision is a zxid: create_revision a node's czxid, mod_revision its mzxid.
// - get, list and transact read after a `sync`, so they see every write that ended before them.
// - list() and resyncs are no snapshot: nothing written by Range::revision is missing, some may be newer.
// - A watch tells each key's newest state, in the order of its revisions; states that followed one another
// fast
//   may be told as one, and the order between different keys is not promised.
// - A key holds a value or has keys below it, not both.
// - A lease is a session (leases.h), known to the Coordinator that granted it. One transaction puts keys of
// one
//   lease at most.
#pragma once
#include <memory>

#include "coord/coordinator.h"

namespace ringshift::coord::zookeeper {

// `url`: see parse_ensemble().
[[nodiscard]] Result<std::unique_ptr<Coordinator>> connect(const std::string& url, const Options& options);

}  // namespace ringshift::coord::zookeeper
