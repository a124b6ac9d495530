// Compare and write by ZooKeeper's multi.
//
// A multi can check a node's data version and nothing else, and a node that was removed and made again begins
// at version 0: a version alone cannot tell the two. So whoever makes a key writes its directory (with no
// data) in the same multi, which raises the directory's version; whoever compares a key reads its directory's
// version first and the key then, and checks both in the multi. Where a directory itself may be removed when
// it is empty (kPrunedDepth), the one above is checked, too. What is found changed is read again, a bounded
// number of times. Keys made by other programs, which do not write the directory, are outside of this.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "coord/coordinator.h"
#include "coord/zookeeper/nodes.h"

namespace ringshift::coord::zookeeper {

struct Outcome {
  bool held = false;  // Whether every compare did; if not, nothing was done.
  Revision revision = 0;
  std::size_t removed = 0;
};

struct Attempt {
  Connection& connection;
  const Layout& layout;
  Deadline deadline;
  bool wrote = false;  // A write was sent whose answer did not come: it may have happened.
};

[[nodiscard]] Result<Outcome> transact(Attempt& attempt, const std::vector<Compare>& compares,
                                       const std::vector<Op>& ops);

// The same for one key that is there already, as a rule, in one round trip.
[[nodiscard]] Result<Outcome> put_existing_first(Attempt& attempt, const Op& op);

}  // namespace ringshift::coord::zookeeper
