#include "plan/compare/key_set.h"

#include <fmt/format.h>

#include "hashing/xxh3.h"

namespace ringshift::plan::compare {

KeySet synthetic_keys(std::size_t count) {
  // Out of twenty: twelve profiles, four sessions, three orders, one page of a feed.
  constexpr std::size_t kProfiles = 12, kSessions = 16, kOrders = 19, kKinds = 20, kPages = 8;
  KeySet keys;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t kind = i % kKinds;
    bool added = false;
    if (kind < kProfiles) {
      added = keys.add(fmt::format("user:{}:profile", i));
    } else if (kind < kSessions) {
      added = keys.add(fmt::format("session:{:016x}", hashing::mix(i)));
    } else if (kind < kOrders) {
      added = keys.add(fmt::format("order:{}", i));
    } else {
      added = keys.add(fmt::format("feed:{}:page:{}", i / kKinds / kPages, i / kKinds % kPages));
    }
    if (!added) break;
  }
  return keys;
}

}  // namespace ringshift::plan::compare
