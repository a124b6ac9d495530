// A topology compiled for lookups: immutable, shared by any number of threads, replaced as a whole.
//
// route() is the one question on the hot path: which member takes this key now, and is the key settled,
// held, or between two members.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/topology.h"

namespace ringshift::topology {

using MemberIndex = std::uint32_t;  // Into Snapshot::members().
inline constexpr MemberIndex kNoMember = ~MemberIndex{0};

// The slice of a key: XXH3-64 with seed 1, the top ten bits. Independent of any placement.
[[nodiscard]] std::uint32_t slice_of(std::string_view tagged_key) noexcept;

// A whole word, so that a Route has no padding and is returned in registers.
enum class KeyState : std::uint32_t {
  settled,  // Send to `member`.
  hold,     // The key changes owner and its slice is in HOLD: queue.
  dual,     // The key changes owner and its slice is in DUAL: `source` may still hold it, `member` will.
};

struct Route {
  MemberIndex member = kNoMember;  // settled: the owner. hold, dual: the destination.
  MemberIndex source = kNoMember;  // hold, dual: where the key comes from. settled: same as `member`.
  KeyState state = KeyState::settled;
};

class Snapshot {
 public:
  // Fails when the topology cannot be compiled (unknown algorithm, no members).
  //
  // With the snapshot that went before, the answers are the same and come sooner: placements that stay (the
  // steps of a resize) are shared, and a ring of which some members left, joined or have a new weight is
  // merged out of the old one.
  [[nodiscard]] static Result<std::shared_ptr<const Snapshot>> compile(Topology topology, Version version,
                                                                       const Snapshot* previous = nullptr);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  const Version version;
  const std::string digest;

  [[nodiscard]] const Topology& topology() const noexcept;
  // The members of A, then those of B that A lacks. An id has one index; an index is good for this snapshot.
  [[nodiscard]] std::span<const Member> members() const noexcept;
  [[nodiscard]] MemberIndex index_of(std::string_view id) const noexcept;  // kNoMember when unknown.

  // O(1) expected, no allocation, noexcept. REQUIRES: the snapshot has members (compile ensures it).
  [[nodiscard]] Route route(std::string_view key) const noexcept;

  // The owner by the topology's own placement (A), and by the resize's target (B; A's when there is none),
  // whatever the phase.
  [[nodiscard]] MemberIndex owner_before(std::string_view key) const noexcept;
  [[nodiscard]] MemberIndex owner_after(std::string_view key) const noexcept;
  [[nodiscard]] std::uint32_t slice(std::string_view key) const noexcept;

  // The members that replicas of the key belong on, the owner (as owner_before says) first: up to `r`
  // distinct ones in the order in which they would inherit the key, never two on one host (a member without a
  // host has one of its own). With `spread_zones` each next one is the first in that order from the zones
  // used least so far (members without a zone share one). Members that take no key at all (factor 0) are left
  // out unless nobody else is there. With fewer hosts than `r` the list is SHORTER than r: two replicas on
  // one host are no two replicas. O(points) at worst; allocates.
  //
  // For ring, tokens, partitions, multi-probe, rendezvous and maglev the order is the algorithm's own;
  // modulo, slots, jump and memento have none, and go on through their list.
  [[nodiscard]] std::vector<MemberIndex> preference_list(std::string_view key, std::size_t r,
                                                         bool spread_zones = false) const;

  // bounded-ring: the first member clockwise whose load is below its bound; `loads[i]` is that of
  // members()[i], as the caller counts it (requests under way, sessions). Other placements:
  // owner_before(key). REQUIRES: loads.size() == members().size().
  [[nodiscard]] MemberIndex owner_by_load(std::string_view key,
                                          std::span<const std::uint64_t> loads) const noexcept;

  // route() of many keys at once: the look-ups of a batch overlap their cache misses.
  // REQUIRES: out.size() == keys.size().
  void route_many(std::span<const std::string_view> keys, std::span<Route> out) const noexcept;

  // The walk behind owner_before, for people: "hash ..., point ..., owner ...", one line a step.
  [[nodiscard]] std::vector<std::string> explain(std::string_view key) const;

 private:
  struct Impl;
  Snapshot(Version v, std::string d, std::unique_ptr<Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace ringshift::topology
