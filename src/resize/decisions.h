// The log of a resize: what was asked and decided, when and by whom. An entry is a key of its own in the
// registry, log/<resize id>/<number>, written on the condition that the lock is held; it stays after the end.
//
// Bounds: kDecisionsKept of a resize (the newest), kResizesLogged resizes. Pure values here; the leader
// writes them (leader_controls.cpp), `ringshift resize log` reads them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "resize/controls.h"

namespace ringshift::resize {

inline constexpr std::uint64_t kDecisionsKept = 500;
inline constexpr std::size_t kResizesLogged = 20;
inline constexpr std::size_t kDecisionTextMax = 1000;  // Bytes; a member's error may be long.

struct Decision {
  UnixMs at = 0;
  std::string event;  // accepted|refused|phase|fence|pause|resume|rate|abort|rollback|replace|lost|big-keys|
                      // end|error
  std::string text;
  std::string by;  // "ann@host"; "" for the controller itself.
  bool operator==(const Decision&) const = default;
};
[[nodiscard]] std::string to_json(const Decision& decision);
[[nodiscard]] Result<Decision> parse_decision(std::string_view json);

[[nodiscard]] std::string decision_key(const coord::ClusterKeys& keys, std::string_view resize_id,
                                       std::uint64_t number);
// The resize's id and the entry's number in such a key; "" when it is none.
struct DecisionPlace {
  std::string resize_id;
  std::uint64_t number = 0;
};
[[nodiscard]] DecisionPlace place_of_decision(const coord::ClusterKeys& keys, std::string_view key);

// "3-17" before "12-90": ids begin with the epoch, which grows.
struct OldestResizeFirst {
  bool operator()(const std::string& a, const std::string& b) const;
};
using LoggedResizes = std::map<std::string, std::vector<Decision>, OldestResizeFirst>;
[[nodiscard]] LoggedResizes read_decisions(const coord::ClusterKeys& keys,
                                           const std::vector<coord::KeyValue>& kvs);

}  // namespace ringshift::resize
