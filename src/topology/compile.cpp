#include "topology/compile.h"

#include "placement/peers/catalog.h"

namespace ringshift::topology {

placement::peers::Options peer_options(const Placement& placement) {
  placement::peers::Options options = placement.options;
  if (!placement.hash.empty()) options["hash"] = placement.hash;
  return options;
}

std::vector<placement::peers::Server> peer_servers(
    const std::vector<Member>& members,
    const std::function<placement::MemberIndex(std::string_view)>& index_of) {
  std::vector<placement::peers::Server> servers;
  servers.reserve(members.size());
  for (const Member& member : members) {
    placement::peers::Server server = placement::peers::server_of(member.address);
    server.label = member.label;
    server.weight = member.weight;
    server.index = index_of(member.id);
    servers.push_back(std::move(server));
  }
  return servers;
}

placement::Placement compile_placement(
    const Placement& placement, const std::vector<Member>& members,
    const std::function<placement::MemberIndex(std::string_view)>& index_of) {
  const hashing::HashTag tag(placement.hash_tag);
  if (const auto* peer = placement::peers::find_peer(placement.algorithm)) {
    const auto servers = peer_servers(members, index_of);
    return {tag, placement::PeerPlacement(peer->build(peer_options(placement), servers))};
  }
  std::vector<placement::Member> inputs;
  inputs.reserve(members.size());
  for (const Member& member : members) inputs.push_back({member.id, member.weight, index_of(member.id)});
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
