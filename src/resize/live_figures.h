// What a running cluster says of itself: keys, memory, the size of a key, traffic and hit rate.
//
// Reads only, from one thread; a member is asked for two INFOs, its count of keys and a bounded sample of
// keys. Takes about kWindow. Fails when any member does not answer, and names all that do not: a plan of half
// a cluster would be wrong.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "plan/forecast/forecast.h"

namespace ringshift::backend {
class MemberAccess;
}

namespace ringshift::resize {

inline constexpr std::size_t kSampledKeys = 1000;          // Of all members together.
inline constexpr std::chrono::milliseconds kWindow{2500};  // In which lookups are counted.
inline constexpr std::uint64_t kLookupsThatTell = 100;     // Fewer than these make no hit rate.

struct LiveFigures {
  std::vector<plan::MemberFigures> members;
  double keys = 0;                           // Without our own.
  std::optional<double> value_bytes;         // nullopt: there was no key to ask for.
  std::size_t sampled_keys = 0;              // 0 with value_bytes: memory of data by number of keys.
  std::optional<double> lookups_per_second;  // nullopt: not watched.
  std::optional<double> hit_rate;            // nullopt: too few lookups, ever.
  std::string traffic_source;                // "routers" or "members"
};

// Of the members of both specs; `from`'s have the keys. With a coordinator the cluster's routers are asked,
// too: they know what clients got, but count GET alone, so that members win where they saw more.
[[nodiscard]] Result<LiveFigures> measure(const topology::Spec& from, const topology::Spec& to,
                                          coord::Coordinator* coordinator, const coord::ClusterKeys& keys,
                                          std::shared_ptr<const backend::MemberAccess> access);

// The same at one glance, without traffic: some milliseconds. Gives up at the first member that does not
// answer.
[[nodiscard]] Result<LiveFigures> glance(const topology::Spec& from, const topology::Spec& to,
                                         std::shared_ptr<const backend::MemberAccess> access);

}  // namespace ringshift::resize
