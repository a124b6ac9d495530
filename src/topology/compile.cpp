#include "topology/compile.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "placement/peers/catalog.h"

namespace ringshift::topology {
namespace {

using placement::MemberIndex;
using IndexOf = std::function<MemberIndex(std::string_view)>;

std::vector<MemberIndex> expand(const std::vector<SlotRange>& ranges, std::size_t size,
                                const IndexOf& index_of) {
  std::vector<MemberIndex> table(size, placement::kNoMember);
  for (const SlotRange& range : ranges) {
    const MemberIndex owner = index_of(range.member);
    for (std::size_t part = range.first; part <= range.last; ++part) table[part] = owner;
  }
  return table;
}

placement::Memento memento(const Placement& placement, std::span<const placement::Member> inputs,
                           const IndexOf& index_of) {
  std::vector<MemberIndex> buckets;
  if (placement.buckets.empty()) {
    for (const placement::Member& member : inputs) buckets.push_back(member.index);
    return {buckets, {}};
  }
  std::unordered_map<std::string_view, std::uint32_t> positions;
  const std::unordered_set<std::string_view> gone(placement.removed.begin(), placement.removed.end());
  for (const std::string& id : placement.buckets) {
    positions[id] = static_cast<std::uint32_t>(buckets.size());
    buckets.push_back(gone.contains(id) ? placement::kNoMember : index_of(id));
  }
  std::vector<std::uint32_t> removed;
  for (const std::string& id : placement.removed) removed.push_back(positions.at(id));
  return {buckets, removed};
}

placement::Tokens tokens(const Placement& placement, const IndexOf& index_of) {
  std::vector<placement::Ring::Point> points;
  for (const auto& [id, list] : placement.tokens) {
    for (const std::uint64_t token : list) points.push_back({token, index_of(id)});
  }
  return placement::Tokens(std::move(points));
}

// Our own algorithms other than slots.
placement::Placement compile_own(hashing::HashTag tag, const Placement& spec,
                                 std::span<const placement::Member> inputs, const IndexOf& index_of) {
  const hashing::Hash64 hash = hashing::hash64_named(spec.hash).value_or(hashing::Hash64::xxh3);
  const std::string& name = spec.algorithm;
  if (name == "ring") return {tag, placement::Ring(inputs, spec.points, hash), hash};
  if (name == "modulo") return {tag, placement::Modulo(inputs), hash};
  if (name == "jump") return {tag, placement::Jump(inputs), hash};
  if (name == "rendezvous") return {tag, placement::Rendezvous(inputs), hash};
  if (name == "maglev") return {tag, placement::Maglev(inputs, spec.table_size), hash};
  if (name == "multi-probe")
    return {tag, placement::MultiProbe(inputs, spec.points, spec.probes, hash), hash};
  if (name == "memento") return {tag, memento(spec, inputs, index_of), hash};
  if (name == "tokens") return {tag, tokens(spec, index_of), hash};
  if (name == "bounded-ring")
    return {tag, placement::BoundedRing(inputs, spec.points, spec.epsilon, hash), hash};
  if (spec.table.empty()) return {tag, placement::Partitions(placement::deal(inputs, spec.partitions)), hash};
  return {tag, placement::Partitions(expand(spec.table, spec.partitions, index_of)), hash};
}

}  // namespace

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
  if (placement.algorithm != "slots") return compile_own(tag, placement, inputs, index_of);
  if (placement.slots.empty()) return {tag, placement::Slots(inputs)};
  return {tag, placement::Slots(expand(placement.slots, placement::kSlotCount, index_of))};
}

namespace {

bool same(const Former& former, const Placement& placement, const std::vector<Member>& members,
          const IndexOf& index_of) {
  return former.placement == placement && former.members == members &&
         std::ranges::all_of(members, [&](const Member& member) {
           return former.index_of(member.id) == index_of(member.id);
         });
}

// How a ring becomes another: what placement::Ring's merging constructor takes.
struct Merge {
  const placement::Ring* ring = nullptr;
  std::vector<MemberIndex> renumber;
  std::vector<placement::Member> added;
};

// nullopt when the former is no ring of such points.
std::optional<Merge> merge_of(const Former& former, const Placement& placement,
                              const std::vector<Member>& members, const IndexOf& index_of) {
  Merge merge;
  merge.ring = std::get_if<placement::Ring>(&former.compiled->algorithm());
  if (merge.ring == nullptr || placement.algorithm != "ring" || former.placement.points != placement.points ||
      former.placement.hash != placement.hash)
    return std::nullopt;
  const auto points = [&](const Member& member) {
    return placement::Ring::point_count(member.weight, placement.points);
  };
  std::vector<const Member*> known;  // By the former's index.
  for (const Member& member : former.members) {
    const MemberIndex index = former.index_of(member.id);
    if (index >= known.size()) known.resize(index + std::size_t{1});
    known[index] = &member;
  }
  merge.renumber.assign(known.size(), placement::kNoMember);
  for (const Member& member : members) {
    const MemberIndex was = former.index_of(member.id);
    if (was >= known.size() || known[was] == nullptr || points(*known[was]) != points(member)) {
      merge.added.push_back({member.id, member.weight, index_of(member.id)});
    } else {
      merge.renumber[was] = index_of(member.id);
    }
  }
  return merge;
}

placement::Placement merged(const Merge& merge, const Placement& placement,
                            const std::vector<Member>& members, const IndexOf& index_of) {
  std::vector<std::string_view> ids;  // By index, to break ties.
  for (const Member& member : members) {
    const MemberIndex index = index_of(member.id);
    if (index >= ids.size()) ids.resize(index + std::size_t{1});
    ids[index] = member.id;
  }
  const hashing::Hash64 hash = hashing::hash64_named(placement.hash).value_or(hashing::Hash64::xxh3);
  placement::Ring ring(*merge.ring, merge.renumber, merge.added, placement.points, hash,
                       [&](MemberIndex index) { return ids[index]; });
  return {hashing::HashTag(placement.hash_tag), std::move(ring), hash};
}

}  // namespace

std::shared_ptr<const placement::Placement> compile_from(std::span<const Former> formers,
                                                         const Placement& placement,
                                                         const std::vector<Member>& members,
                                                         const IndexOf& index_of) {
  std::optional<Merge> best;
  for (const Former& former : formers) {
    if (same(former, placement, members, index_of)) return former.compiled;
    auto merge = merge_of(former, placement, members, index_of);
    if (merge && (!best || merge->added.size() < best->added.size())) best = std::move(merge);
  }
  // Merging costs about a third of building; with more than half of the members new it saves nothing.
  if (best && best->added.size() <= members.size() / 2)
    return std::make_shared<const placement::Placement>(merged(*best, placement, members, index_of));
  return std::make_shared<const placement::Placement>(compile_placement(placement, members, index_of));
}

}  // namespace ringshift::topology
