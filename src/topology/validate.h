// Whether a spec or a topology can be obeyed, whoever made it: a file, the controller or a program.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/topology.h"

namespace ringshift::topology {

// Each database in use costs a router its own connections to every member.
inline constexpr std::uint32_t kMaxDatabases = 256;

inline constexpr std::size_t kMaxMembers = 16'384;
inline constexpr std::uint64_t kMaxPoints = 1U << 22;  // Of a whole ring: 64 MiB, and 64 of index.
inline constexpr std::uint32_t kMaxPointsPerWeight = 65'536;
inline constexpr double kMaxWeight = 10'000;
inline constexpr std::uint64_t kMaxResidues = 1U << 20;   // Modulo: the sum of the weights.
inline constexpr std::uint32_t kMaxTableSize = 1U << 24;  // Maglev: 64 MiB.
inline constexpr std::size_t kMaxNameBytes = 128;         // Ids, cluster, zone, host.
inline constexpr std::size_t kMaxAddressBytes = 256;
inline constexpr std::uint32_t kFullFactor = 1000;

// Our own placements, as the spec names them.
inline constexpr auto kOwnAlgorithms =
    std::to_array<std::string_view>({"ring", "modulo", "slots", "jump", "rendezvous", "maglev", "multi-probe",
                                     "memento", "partitions", "tokens", "bounded-ring"});

// The first thing that is wrong. `path` is its place, such as "members[2].weight".
struct Problem {
  std::string path;
  std::string message;
};

[[nodiscard]] std::optional<Problem> check_spec(const Spec& spec);
[[nodiscard]] std::optional<Problem> check_topology(const Topology& topology);

// What our own placements other than ring, modulo and slots ask of their options and members; `path` is the
// placement's.
[[nodiscard]] std::optional<Problem> check_own_options(const Placement& placement, const std::string& path);
[[nodiscard]] std::optional<Problem> check_own_members(const Placement& placement,
                                                       const std::vector<Member>& members,
                                                       const std::string& path);
// That `ranges` give each of 0..parts-1 to one of `members`. `part` is the word for one: slot, partition.
[[nodiscard]] std::optional<Problem> check_ranges(const std::vector<SlotRange>& ranges, std::size_t parts,
                                                  std::string_view part, const std::vector<Member>& members,
                                                  const std::string& path);

// "" when `name` can be an id or a cluster's name; else what is wrong with it. They go into registry keys,
// log lines and client names: no separators of those.
[[nodiscard]] std::string check_name(std::string_view name);

// "" when `address` is host:port, [v6]:port or unix:/path; else what is wrong with it.
[[nodiscard]] std::string check_address(const std::string& address);
// One spelling of it, for comparisons: small letters, an IPv6 address at its shortest, a port without leading
// zeros. Whether two names lead to one server nobody can tell from here. REQUIRES: check_address() is "".
[[nodiscard]] std::string canonical_address(std::string_view address);

}  // namespace ringshift::topology
