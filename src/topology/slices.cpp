// Sets of slices, and which slice a key is in.
#include <algorithm>

#include "hashing/xxh3.h"
#include "ringshift/snapshot.h"
#include "ringshift/topology.h"

namespace ringshift::topology {

static_assert(kSliceCount == 1U << (64 - hashing::kSliceShift));

std::uint32_t slice_of(std::string_view tagged_key) noexcept { return hashing::slice_of(tagged_key); }

bool contains(const SliceSet& set, std::uint32_t slice) noexcept {
  const auto after = std::ranges::upper_bound(
      set, slice, {}, [](const SliceRange& range) -> std::uint32_t { return range.begin; });
  return after != set.begin() && slice < std::prev(after)->end;
}

SliceSet unite(const SliceSet& a, const SliceSet& b) {
  SliceSet all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::erase_if(all, [](const SliceRange& range) { return range.begin >= range.end; });
  std::ranges::sort(all, {}, &SliceRange::begin);
  SliceSet out;
  for (const SliceRange& range : all) {
    if (!out.empty() && range.begin <= out.back().end) {
      out.back().end = std::max(out.back().end, range.end);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

std::uint32_t count(const SliceSet& set) noexcept {
  std::uint32_t total = 0;
  for (const SliceRange& range : set) total += static_cast<std::uint32_t>(range.end - range.begin);
  return total;
}

}  // namespace ringshift::topology
