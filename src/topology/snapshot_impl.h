// What a snapshot holds: shared by the files that implement Snapshot, and by nobody else.
#pragma once
#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ringshift/snapshot.h"
#include "topology/compile.h"
#include "topology/lifecycle.h"

namespace ringshift::topology {

struct Snapshot::Impl {
  enum class SliceState : std::uint8_t { before, active, after };

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view id) const noexcept { return std::hash<std::string_view>{}(id); }
  };

  explicit Impl(Topology t) : topology(std::move(t)) {}

  [[nodiscard]] MemberIndex owner(const placement::Placement& placement,
                                  std::string_view key) const noexcept {
    if (!lifecycle.active()) [[likely]]
      return placement.owner(key);
    return lifecycle.owner(placement, placement.hash(placement.tag().apply(key)));
  }
  [[nodiscard]] std::uint32_t slice(std::string_view key) const noexcept {
    return slice_of(slice_tag.apply(key));
  }
  // What the next snapshot may be made out of.
  [[nodiscard]] std::vector<Former> formers() const;

  // route() without the short cut.
  [[nodiscard]] Route route_any(std::string_view key) const noexcept;
  [[nodiscard]] Route route_in_resize(std::string_view key) const noexcept;

  Topology topology;
  std::vector<Member> members;
  std::unordered_map<std::string, MemberIndex, Hash, std::equal_to<>> indices;
  std::shared_ptr<const placement::Placement> before;  // Set by compile(), always.
  std::shared_ptr<const placement::Placement> after;   // While a resize runs.
  Lifecycle lifecycle;
  hashing::HashTag slice_tag;
  std::array<SliceState, kSliceCount> slices{};
  std::vector<std::uint8_t> lost;  // By member: whether it does not come back. Empty when none is.
  bool plain = false;              // No resize and no factors: one hash and one lookup.
  const placement::Ring* plain_ring = nullptr;  // Plain, and a ring of XXH3: `before`'s own.
  hashing::HashTag plain_tag;
  bool rollback = false;
  Phase phase = Phase::prep;
};

}  // namespace ringshift::topology
