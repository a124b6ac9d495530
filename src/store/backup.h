// A registry's file put back from a backup (Store::backup), while no registry runs on it.
//
// The restored registry is another one: it has a new cluster id, a new epoch to whoever follows it, and no
// leases, whose holders announce themselves again. So nobody takes an old state for what comes next. The file
// that was there is moved aside, not removed; the new one appears whole or not at all.
#pragma once
#include <cstdint>
#include <string>

#include "ringshift/error.h"
#include "store/types.h"

namespace ringshift::store {

struct Restored {
  std::uint64_t cluster_id = 0;
  Revision revision = 0;
  std::string moved_aside;  // Where the former file is; "" when there was none.
};
// `force`: although `to` exists. Blocks for as long as reading and writing the whole file takes.
[[nodiscard]] Result<Restored> restore(const std::string& from, const std::string& to, bool force);

// Opens the file, a registry's or a backup, and checks it from end to end.
[[nodiscard]] Status check_file(const std::string& path);

}  // namespace ringshift::store
