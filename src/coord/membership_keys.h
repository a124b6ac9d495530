// The keys of who may be a member, beside those of ClusterKeys.
#pragma once
#include <string>
#include <string_view>

#include "coord/keys.h"

namespace ringshift::coord {

// Leased, written by the agent beside the instance.
[[nodiscard]] inline std::string instance_key(const ClusterKeys& keys, std::string_view id) {
  return keys.instances() + std::string(id);
}
// An operator's word, not leased: whoever bears this mark is not admitted by policy, for as long as it is
// there.
[[nodiscard]] inline std::string drained_prefix(const ClusterKeys& keys) { return keys.prefix + "drained/"; }
[[nodiscard]] inline std::string drained_key(const ClusterKeys& keys, std::string_view id) {
  return drained_prefix(keys) + std::string(id);
}
// An operator's word that the list which the guard holds is right; the leading controller takes it away.
[[nodiscard]] inline std::string confirm_key(const ClusterKeys& keys) { return keys.prefix + "confirm"; }
// The spec's `discovery`, as JSON.
[[nodiscard]] inline std::string discovery_key(const ClusterKeys& keys) { return keys.prefix + "discovery"; }
// What the leading controller sees and makes of it: membership/report.h.
[[nodiscard]] inline std::string membership_key(const ClusterKeys& keys) {
  return keys.prefix + "membership";
}

}  // namespace ringshift::coord
