// Where keys and members are on the circle, for drawing and explaining. Pure; up to tens of milliseconds with
// a thousand members: for a worker thread, not for the server's.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "admin/state.h"
#include "ringshift/snapshot.h"

namespace ringshift::admin {

inline constexpr std::size_t kArcsMin = 16, kArcsMax = 8192, kArcsUsual = 2048;
inline constexpr std::size_t kRouteKeysMax = 100, kRouteKeyBytesMax = 4096;
inline constexpr std::size_t kReplicasMax = 16;

// Ring (docs/openapi.yaml), of the placement in force or of the one that a resize leads to; not_found when
// there is none.
[[nodiscard]] Result<std::string> ring_text(const topology::Snapshot& snapshot, bool target,
                                            std::size_t arcs_most);
// RingMember.
[[nodiscard]] Result<std::string> ring_member_text(const topology::Snapshot& snapshot, const std::string& id);

struct RouteQuestion {
  std::vector<std::string> keys;
  bool hex = false;
  std::size_t replicas = 3;
};
// RouteAnswer.
[[nodiscard]] Result<std::string> route_text(const topology::Snapshot& snapshot,
                                             const RouteQuestion& question);

}  // namespace ringshift::admin
