#include "membership/drained.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "coord/membership_keys.h"

namespace ringshift::membership {

using coord::Op;

Result<std::vector<Op>> mark_drained(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                                     const std::vector<std::string>& ids, bool drained,
                                     const std::string& who) {
  const std::string mark = nlohmann::json({{"by", who}}).dump();
  std::vector<Op> ops, undo;
  for (const std::string& id : ids) {
    const std::string key = coord::drained_key(keys, id);
    const auto there = coordinator.get(key);
    if (!there) return std::unexpected(there.error());
    if (there->has_value() == drained) continue;
    const Op set{Op::Kind::put, key, drained ? mark : (*there)->value, 0}, away{Op::Kind::remove, key, "", 0};
    ops.push_back(drained ? set : away);
    undo.push_back(drained ? away : set);
  }
  if (ops.empty()) return undo;
  const auto done = coordinator.transact({}, ops);
  if (!done) return std::unexpected(done.error());
  return undo;
}

}  // namespace ringshift::membership
