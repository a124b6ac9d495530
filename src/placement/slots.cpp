#include "placement/slots.h"

#include <cmath>

namespace ringshift::placement {

Slots::Slots(std::span<const Member> members) : table_(kSlotCount, kNoMember) {
  double total = 0;
  for (const Member& member : members) total += member.weight;
  double sum = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    sum += members[i].weight;
    const bool last = i + 1 == members.size();  // Whatever rounding left over.
    const auto end = last ? kSlotCount : static_cast<std::size_t>(std::lround(sum / total * kSlotCount));
    for (; begin < end && begin < kSlotCount; ++begin) table_[begin] = members[i].index;
  }
}

}  // namespace ringshift::placement
