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

enum class KeyState : std::uint8_t {
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
  [[nodiscard]] static Result<std::shared_ptr<const Snapshot>> compile(Topology topology, Version version);
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

  // The walk behind owner_before, for people: "hash ..., point ..., owner ...", one line a step.
  [[nodiscard]] std::vector<std::string> explain(std::string_view key) const;

 private:
  struct Impl;
  Snapshot(Version v, std::string d, std::unique_ptr<Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace ringshift::topology
