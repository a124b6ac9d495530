// From a key's steps that nothing explains to few of them that nothing explains, for people to read.
//
// Invariant (sound): if the few cannot be explained, neither can all. So a step is left out, or no longer
// asked what it saw, only where that can but help:
//   - reads, and what a write saw of the state before it, may always go: fewer constraints;
//   - cells that the culprit did not see may go, for the same reason;
//   - a write may go where no step that is left can have come between it and the next write (may_remove).
// The last two are repeated while what is left is still inexplicable. The write of what the culprit saw
// stays. Cost: at most kMaxSearches searches, and kMaxShrinkWork configurations in all. Where that ends it
// early, more steps are left.
#pragma once
#include <cstddef>
#include <vector>

#include "check/linearizable.h"

namespace ringshift::check {

inline constexpr std::size_t kMaxSearches = 600;
inline constexpr std::uint64_t kMaxShrinkWork = 200'000;

// Indices of the steps left, ascending; `culprit` is among them.
// REQUIRES: the search ends as `broken` at `culprit`.
[[nodiscard]] std::vector<std::size_t> shrink(const std::vector<Step>& steps, std::size_t culprit);

// Whether `steps` without the write `index` can be explained wherever they can be with it.
// REQUIRES: every step concerns one cell and adds nothing.
[[nodiscard]] bool may_remove(const std::vector<Step>& steps, std::size_t index);
// The steps without `index`; the order within a client is kept.
[[nodiscard]] std::vector<Step> without(const std::vector<Step>& steps, std::size_t index);

}  // namespace ringshift::check
