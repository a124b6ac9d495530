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
// `from`: a backup, or the file of a registry that does not run any more, with the -wal that one which was
// killed left beside it. `force`: although `to` exists. Blocks for as long as reading and writing the whole
// file takes.
[[nodiscard]] Result<Restored> restore(const std::string& from, const std::string& to, bool force);

// Whether a backup may take this place: nothing is there, or an earlier backup, which it replaces. Never the
// file of a registry, which would go on writing to one that has no name any more.
[[nodiscard]] Status check_place(const std::string& path);
[[nodiscard]] Status sync_name(const std::string& path);  // That it is there is on the disk.

// Opens the file, a registry's or a backup, and checks it from end to end.
[[nodiscard]] Status check_file(const std::string& path);

}  // namespace ringshift::store
