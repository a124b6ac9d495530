// The keys that a resize would move and that are still on their old members: counted with their times to
// live, or dropped. What `--mode expire` needs in place of the mover.
//
// Dropping is to clients what an eviction on OLD is: a transfer under way either has its copy already, and
// the key is on NEW as if nothing had happened, or finds nothing. Each UNLINK looks at the member's stamp
// first, in one script, so that one that comes late (a deposed controller's, say) does nothing once the
// step is over.
//
// Blocking, on the thread of whoever calls, over the given Members; `go_on` is asked between pages. Cost: one
// SCAN over each source, and a PTTL or UNLINK for each key that moves.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "resize/members.h"
#include "resize/throttle.h"
#include "ringshift/snapshot.h"

namespace ringshift::resize {

struct LeftoverCount {
  static constexpr std::size_t kExamples = 10;
  std::uint64_t keys = 0, without_ttl = 0, dropped = 0;
  std::uint64_t longest_ttl_ms = 0;
  std::vector<std::string> examples;  // Of keys without a time to live, as people can read them.
  bool stopped = false;               // go_on() said no: the counts are not complete.
  bool gated = false;                 // A member's stamp is another: the step is over, or it restarted.
};

class Leftovers {
 public:
  static constexpr double kKeysPerSecond = 50'000;  // Keys looked at, over all members.

  // `slices`: those looked at. Sources are A's members but for the lost ones.
  Leftovers(Members& members, std::shared_ptr<const topology::Snapshot> snapshot, topology::SliceSet slices,
            std::function<bool()> go_on);

  [[nodiscard]] Result<LeftoverCount> measure();
  // Pass after pass until one finds nothing on a server that was the same all the time, which proves that
  // nothing is left (slices only shrink on OLD after HOLD). REQUIRES: the slices are in DUAL. `rate` is the
  // mover's.
  [[nodiscard]] Result<LeftoverCount> drop(TokenBucket& rate);

 private:
  using Keys = std::vector<std::string>;
  [[nodiscard]] Status scan(const topology::Member& source, LeftoverCount& count,
                            const std::function<Status(const Keys&)>& each);
  [[nodiscard]] Status look(const topology::Member& source, const Keys& keys, LeftoverCount& count);
  [[nodiscard]] Status unlink(const topology::Member& source, const Keys& keys, LeftoverCount& count);
  [[nodiscard]] bool wait_for(TokenBucket& rate, std::size_t keys);

  Members& members_;
  const std::shared_ptr<const topology::Snapshot> snapshot_;
  const topology::SliceSet slices_;
  const std::function<bool()> go_on_;
  TokenBucket looks_;
};

}  // namespace ringshift::resize
