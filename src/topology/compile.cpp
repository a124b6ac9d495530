#include "topology/compile.h"

namespace ringshift::topology {

placement::Placement compile_placement(
    const Placement& placement, const std::vector<Member>& members,
    const std::function<placement::MemberIndex(std::string_view)>& index_of) {
  std::vector<placement::Member> inputs;
  inputs.reserve(members.size());
  for (const Member& member : members) inputs.push_back({member.id, member.weight, index_of(member.id)});
  const hashing::HashTag tag(placement.hash_tag);
  if (placement.algorithm == "ring") return {tag, placement::Ring(inputs, placement.points)};
  if (placement.algorithm == "modulo") return {tag, placement::Modulo(inputs)};
  if (placement.slots.empty()) return {tag, placement::Slots(inputs)};
  std::vector<placement::MemberIndex> table(placement::kSlotCount, placement::kNoMember);
  for (const SlotRange& range : placement.slots) {
    const placement::MemberIndex owner = index_of(range.member);
    for (std::size_t slot = range.first; slot <= range.last; ++slot) table[slot] = owner;
  }
  return {tag, placement::Slots(std::move(table))};
}

}  // namespace ringshift::topology
