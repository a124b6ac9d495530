// The mark that keeps an instance out: an operator drained its member, or took it in again.
#pragma once
#include <string>
#include <vector>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "ringshift/error.h"

namespace ringshift::membership {

// Sets the marks of `ids`, or takes them away, in one transaction, before the resize is asked for. Returns
// what undoes it, for a request that is refused. Cost: a read for each, and a write.
[[nodiscard]] Result<std::vector<coord::Op>> mark_drained(coord::Coordinator& coordinator,
                                                          const coord::ClusterKeys& keys,
                                                          const std::vector<std::string>& ids, bool drained,
                                                          const std::string& who);

}  // namespace ringshift::membership
