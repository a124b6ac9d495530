#include "topology/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "hashing/hash64.h"
#include "placement/peers/catalog.h"
#include "placement/ring.h"
#include "placement/slots.h"
#include "topology/compile.h"
#include "topology/reader.h"

namespace ringshift::topology {
namespace {

using Found = std::optional<Problem>;

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

bool name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == ':';
}

Found check_text(const std::string& path, std::string_view text) {
  if (text.size() > kMaxNameBytes) {
    return Problem{path, fmt::format("{} is longer than {} bytes: shorten it", shown(text), kMaxNameBytes)};
  }
  if (!printable(text))
    return Problem{path, fmt::format("{} has characters that are not printable ASCII", shown(text))};
  return {};
}

bool has_points(const Placement& placement) {
  const std::string& algorithm = placement.algorithm;
  return algorithm == "ring" || algorithm == "bounded-ring" || algorithm == "multi-probe";
}

Found check_weight(const Placement& placement, const Member& member, const std::string& path) {
  const double weight = member.weight;
  // Other programs' fleets come with weights such as 100000; what they sum up to is bounded with the peer.
  const bool peer = placement::peers::find_peer(placement.algorithm) != nullptr;
  const double most = peer ? double{placement::peers::kMaxPeerPoints} : kMaxWeight;
  if (!(weight > 0) || weight > most) {
    return Problem{path, fmt::format("{} (member {}) is not a weight: give a number above 0 and at most {}",
                                     weight, shown(member.id), most)};
  }
  if (placement.algorithm == "modulo" && weight != std::floor(weight)) {
    return Problem{path,
                   fmt::format("{} (member {}) is not whole: modulo repeats a member weight times, so scale "
                               "the weights to whole numbers",
                               weight, shown(member.id))};
  }
  if (has_points(placement) && placement::Ring::point_count(weight, placement.points) == 0) {
    return Problem{path,
                   fmt::format("{} of {} points rounds to none, so member {} would own nothing: raise its "
                               "weight or placement.points",
                               weight, placement.points, shown(member.id))};
  }
  return {};
}

Found check_members(const std::vector<Member>& members, const Placement& placement, const std::string& path) {
  if (members.empty()) return Problem{path, "the list is empty: a cluster needs at least one member"};
  if (members.size() > kMaxMembers) {
    return Problem{path, fmt::format("{} members are more than the {} that one cluster may have",
                                     members.size(), kMaxMembers)};
  }
  std::unordered_map<std::string_view, std::size_t> ids;
  std::unordered_map<std::string, std::size_t> addresses;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    const std::string here = at(path, i);
    if (const std::string wrong = check_name(member.id); !wrong.empty()) return Problem{here + ".id", wrong};
    if (const auto [first, fresh] = ids.emplace(member.id, i); !fresh) {
      return Problem{here + ".id", fmt::format("{} is the id of {} already: ids are unique and never reused",
                                               shown(member.id), at(path, first->second))};
    }
    if (const std::string wrong = check_address(member.address); !wrong.empty()) {
      return Problem{here + ".address", fmt::format("{} {}: write host:port, [v6]:port or unix:/path",
                                                    shown(member.address), wrong)};
    }
    if (const auto [first, fresh] = addresses.emplace(canonical_address(member.address), i); !fresh) {
      return Problem{
          here + ".address",
          fmt::format("{} is the address of {} ({}) already: two members on one server would share its keys",
                      shown(member.address), shown(members[first->second].id), at(path, first->second))};
    }
    if (Found found = check_weight(placement, member, here + ".weight")) return found;
    if (Found found = check_text(here + ".zone", member.zone)) return found;
    if (Found found = check_text(here + ".host", member.host)) return found;
    if (Found found = check_text(here + ".label", member.label)) return found;
  }
  return {};
}

Found check_hash_tag(const std::string& tag, const std::string& path) {
  if (tag.empty() || (tag.size() == 2 && printable(tag))) return {};
  return Problem{
      path,
      fmt::format("{} is not a hash tag: write an open and a close character, such as \"{{}}\"", shown(tag))};
}

std::string peer_names() {
  std::string names;
  for (const auto& peer : placement::peers::catalog())
    names += (names.empty() ? "" : ", ") + std::string(peer.name);
  return names;
}

// Another program's: its own options, and nothing of ours.
Found check_peer(const placement::peers::Entry& peer, const Placement& placement, const std::string& path) {
  if (const auto* hash = peer.find("hash"); hash != nullptr && placement.hash.empty()) {
    return Problem{join(path, "hash"),
                   fmt::format("is empty: {}'s own default is {}", peer.name, hash->fallback)};
  }
  if (const auto wrong = placement::peers::check(peer, peer_options(placement))) {
    return Problem{join(path, wrong->option), wrong->message};
  }
  if (!placement.hash_tag.empty() && !peer.hash_tag) {
    return Problem{join(path, "hash_tag"), fmt::format("{} has no hash tags: remove it", peer.name)};
  }
  if (!placement.slots.empty()) {
    return Problem{join(path, "slots"), fmt::format("{} has no slot table: remove it", peer.name)};
  }
  Placement plain;
  plain.algorithm = placement.algorithm;
  plain.hash = placement.hash;
  plain.hash_tag = placement.hash_tag;
  plain.options = placement.options;
  if (plain != placement) {
    return Problem{path,
                   fmt::format("{} takes none of the options of our own placements: remove them", peer.name)};
  }
  return check_hash_tag(placement.hash_tag, join(path, "hash_tag"));
}

Found check_peer_members(const Placement& placement, const std::vector<Member>& members,
                         const std::string& path) {
  const auto* peer = placement::peers::find_peer(placement.algorithm);
  if (peer == nullptr) return {};
  const auto servers = peer_servers(members, [](std::string_view) { return placement::MemberIndex{0}; });
  const auto wrong = placement::peers::check(*peer, std::span(servers));
  if (!wrong) return {};
  return Problem{at(path, wrong->position) + (wrong->label ? ".label" : ".weight"),
                 fmt::format("(member {}) {}", shown(members[wrong->position].id), wrong->message)};
}

Found check_placement(const Placement& placement, const std::string& path) {
  const std::string& algorithm = placement.algorithm;
  if (const auto* peer = placement::peers::find_peer(algorithm)) return check_peer(*peer, placement, path);
  if (!placement.options.empty()) {
    return Problem{join(path, placement.options.begin()->first),
                   fmt::format("{} has no such option", algorithm)};
  }
  if (std::ranges::find(kOwnAlgorithms, algorithm) == kOwnAlgorithms.end()) {
    return Problem{join(path, "algorithm"),
                   fmt::format("{} is not one of {}, and no other program's that is known: {}",
                               shown(algorithm), fmt::join(kOwnAlgorithms, ", "), peer_names())};
  }
  if (algorithm == "slots" ? placement.hash != "crc16" : !hashing::hash64_named(placement.hash)) {
    return Problem{join(path, "hash"),
                   algorithm == "slots"
                       ? fmt::format("{} does not go with slots: its hash is crc16", shown(placement.hash))
                       : fmt::format("{} does not go with {}: its hash is one of {}", shown(placement.hash),
                                     algorithm, fmt::join(hashing::kHash64Names, ", "))};
  }
  if (Found found = check_hash_tag(placement.hash_tag, join(path, "hash_tag"))) return found;
  if (placement.points == 0 || placement.points > kMaxPointsPerWeight) {
    return Problem{join(path, "points"), fmt::format("{} is not from 1 to {}: 256 suits most clusters",
                                                     placement.points, kMaxPointsPerWeight)};
  }
  if (algorithm != "slots" && !placement.slots.empty()) {
    return Problem{
        join(path, "slots"),
        fmt::format("a slot table does not go with {}: set the algorithm to slots or remove it", algorithm)};
  }
  return check_own_options(placement, path);
}

// After the weights were found sound one by one.
Found check_totals(const Placement& placement, const std::vector<Member>& members, const std::string& path) {
  std::uint64_t points = 0;
  double weights = 0;
  for (const Member& member : members) {
    points += placement::Ring::point_count(member.weight, placement.points);
    weights += member.weight;
  }
  if (has_points(placement) && points > kMaxPoints) {
    return Problem{
        join(path, "points"),
        fmt::format("{} a unit of weight make {} points in all, more than {}: lower points or the weights",
                    placement.points, points, kMaxPoints)};
  }
  if (placement.algorithm == "modulo" && weights > static_cast<double>(kMaxResidues)) {
    return Problem{path, fmt::format("the weights sum up to {}, more than the {} that modulo takes: divide "
                                     "them all by a common number",
                                     weights, kMaxResidues)};
  }
  return {};
}

// The order matters for people: what is wrong with a member is said before what follows from it.
Found check_side(const Placement& placement, const std::vector<Member>& members, const std::string& base) {
  const std::string path = join(base, "placement");
  if (Found found = check_placement(placement, path)) return found;
  if (Found found = check_members(members, placement, join(base, "members"))) return found;
  if (Found found = check_peer_members(placement, members, join(base, "members"))) return found;
  if (placement.algorithm == "slots" && !placement.slots.empty()) {
    if (Found found =
            check_ranges(placement.slots, placement::kSlotCount, "slot", members, join(path, "slots")))
      return found;
  }
  if (Found found = check_own_members(placement, members, path)) return found;
  return check_totals(placement, members, path);
}

Found check_retired(const std::vector<std::string>& retired, const std::vector<Member>& members,
                    const std::string& members_path, const std::string& retired_path) {
  std::unordered_set<std::string_view> gone;
  for (std::size_t i = 0; i < retired.size(); ++i) {
    if (const std::string wrong = check_name(retired[i]); !wrong.empty())
      return Problem{at(retired_path, i), wrong};
    if (!gone.insert(retired[i]).second) {
      return Problem{at(retired_path, i), fmt::format("{} is listed twice", shown(retired[i]))};
    }
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!gone.contains(members[i].id)) continue;
    return Problem{at(members_path, i) + ".id",
                   fmt::format("{} is retired, and a retired id never comes back: choose a new id",
                               shown(members[i].id))};
  }
  return {};
}

Found check_spec_at(const Spec& spec, const std::string& base) {
  if (const std::string wrong = check_name(spec.cluster); !wrong.empty())
    return Problem{join(base, "cluster"), wrong};
  if (spec.protocol == Protocol::memcached && spec.consistency == Consistency::strict) {
    return Problem{join(base, "consistency"),
                   "strict needs protocol redis: memcached can keep cache or none"};
  }
  if (spec.databases == 0 || spec.databases > kMaxDatabases) {
    return Problem{join(base, "databases"),
                   fmt::format("{} is not between 1 and {}", spec.databases, kMaxDatabases)};
  }
  if (spec.protocol == Protocol::memcached && spec.databases != 1) {
    return Problem{join(base, "databases"), "memcached has no databases: leave the field out"};
  }
  if (Found found = check_side(spec.placement, spec.members, base)) return found;
  if (spec.placement.algorithm == "bounded-ring" && spec.consistency != Consistency::none) {
    return Problem{
        join(base, "consistency"),
        "bounded-ring needs consistency none: its owners follow the load, so no router knows where "
        "another one wrote a key"};
  }
  if (Found found = check_retired(spec.retired, spec.members, join(base, "members"), join(base, "retired")))
    return found;
  const Limits& limits = spec.limits;
  const std::array<std::pair<const char*, std::uint64_t>, 7> each{
      {{"move_keys_per_second", limits.move_keys_per_second},
       {"move_bytes_per_second", limits.move_bytes_per_second},
       {"move_batch_keys", limits.move_batch_keys},
       {"move_batches_in_flight", limits.move_batches_in_flight},
       {"move_batches_in_all", limits.move_batches_in_all},
       {"move_memory_bytes", limits.move_memory_bytes},
       {"big_key_bytes", limits.big_key_bytes}}};
  for (const auto& [name, value] : each) {
    if (value == 0) {
      return Problem{join(join(base, "limits"), name),
                     "0 would never finish: give at least 1, and pause a resize by `ringshift resize pause`"};
    }
  }
  constexpr std::uint32_t kMaxBatch = 1000;
  if (limits.move_batch_keys > kMaxBatch) {
    return Problem{join(join(base, "limits"), "move_batch_keys"),
                   fmt::format("{} is more than {}: a batch blocks its servers while it moves",
                               limits.move_batch_keys, kMaxBatch)};
  }
  constexpr std::uint32_t kMaxInFlight = 16;
  if (limits.move_batches_in_flight > kMaxInFlight) {
    return Problem{join(join(base, "limits"), "move_batches_in_flight"),
                   fmt::format("{} is more than {}: one thread of a server gains nothing from so many",
                               limits.move_batches_in_flight, kMaxInFlight)};
  }
  return {};
}

Found check_slices(const SliceSet& set, const std::string& path) {
  std::uint32_t previous_end = 0;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const auto [begin, end] = set[i];
    if (begin >= end || end > kSliceCount) {
      return Problem{at(path, i),
                     fmt::format("[{}, {}] is not a range within 0..{}", begin, end, kSliceCount)};
    }
    if (i != 0 && begin <= previous_end) {
      return Problem{at(path, i),
                     fmt::format("[{}, {}] is not beyond its predecessor: ranges are sorted and do not touch",
                                 begin, end)};
    }
    previous_end = end;
  }
  return {};
}

// Sorted, so that equal topologies have equal digests.
Found check_lost(const Topology& topology) {
  const std::vector<std::string>& lost = topology.resize->lost;
  for (std::size_t i = 0; i < lost.size(); ++i) {
    const std::string path = at("resize.lost", i);
    const auto is_it = [&](const Member& member) { return member.id == lost[i]; };
    if (std::ranges::none_of(topology.spec.members, is_it) &&
        std::ranges::none_of(topology.resize->members, is_it))
      return Problem{path, fmt::format("{} is a member neither before nor after the resize", shown(lost[i]))};
    if (i != 0 && lost[i] <= lost[i - 1])
      return Problem{path, fmt::format("{} does not come after {}: the ids are sorted, each once",
                                       shown(lost[i]), shown(lost[i - 1]))};
  }
  return {};
}

Found check_resize(const Topology& topology) {
  const Resize& resize = *topology.resize;
  if (const std::string wrong = check_name(resize.id); !wrong.empty()) return Problem{"resize.id", wrong};
  if (Found found = check_side(resize.placement, resize.members, "resize")) return found;
  if (resize.placement.algorithm == "bounded-ring" && topology.spec.consistency != Consistency::none) {
    return Problem{"resize.placement.algorithm", "bounded-ring needs consistency none"};
  }
  if (Found found = check_retired(topology.spec.retired, resize.members, "resize.members", "spec.retired"))
    return found;
  std::unordered_map<std::string_view, const Member*> by_id;
  std::unordered_map<std::string, const Member*> by_address;
  for (const Member& member : topology.spec.members) {
    by_id[member.id] = &member;
    by_address[canonical_address(member.address)] = &member;
  }
  for (std::size_t i = 0; i < resize.members.size(); ++i) {
    const Member& member = resize.members[i];
    const std::string path = at("resize.members", i) + ".address";
    const auto same = by_id.find(member.id);
    if (same != by_id.end() && same->second->address != member.address) {
      return Problem{
          path, fmt::format("{} is {} before the resize and {} after it: a member keeps its address while a "
                            "resize runs; give the new server a new id",
                            shown(member.id), shown(same->second->address), shown(member.address))};
    }
    const auto other = by_address.find(canonical_address(member.address));
    if (other != by_address.end() && other->second->id != member.id) {
      return Problem{path, fmt::format("{} is the address of {} before the resize: a server keeps its id",
                                       shown(member.address), shown(other->second->id))};
    }
  }
  if (Found found = check_slices(resize.done, "resize.done")) return found;
  if (Found found = check_slices(resize.active, "resize.active")) return found;
  if (count(unite(resize.done, resize.active)) != count(resize.done) + count(resize.active)) {
    return Problem{"resize.active", "a slice is in done too: it is either under way or over"};
  }
  return check_lost(topology);
}

Found check_factors(const Topology& topology) {
  if (topology.factors.empty()) return {};
  if (topology.spec.consistency == Consistency::strict) {
    return Problem{"factors", "consistency strict takes no factors: an owner changes only through a resize"};
  }
  std::unordered_set<std::string_view> ids;
  for (const Member& member : topology.spec.members) ids.insert(member.id);
  if (topology.resize) {
    for (const Member& member : topology.resize->members) ids.insert(member.id);
  }
  for (const auto& [id, factor] : topology.factors) {
    if (!ids.contains(id)) return Problem{join("factors", id), "not a member: remove the factor"};
    if (factor >= kFullFactor) {
      return Problem{join("factors", id), fmt::format("{} is not from 0 to {}; a full member is left out",
                                                      factor, kFullFactor - 1)};
    }
  }
  return {};
}

}  // namespace

std::string check_name(std::string_view name) {
  if (name.empty()) return "is empty: give it a name";
  if (name.size() > kMaxNameBytes) {
    return fmt::format("{} is longer than {} bytes: shorten it", shown(name), kMaxNameBytes);
  }
  if (!std::ranges::all_of(name, name_character)) {
    return fmt::format("{} has characters other than letters, digits and - _ . : : rename it", shown(name));
  }
  return {};
}

std::optional<Problem> check_spec(const Spec& spec) { return check_spec_at(spec, ""); }

std::optional<Problem> check_topology(const Topology& topology) {
  if (Found found = check_spec_at(topology.spec, "spec")) return found;
  if (Found found = check_factors(topology)) return found;
  for (const auto& [id, run_id] : topology.fence.run_ids) {
    if (const std::string wrong = check_name(id); !wrong.empty()) return Problem{"fence.run_ids", wrong};
    if (Found found = check_text(join("fence.run_ids", id), run_id)) return found;
  }
  return topology.resize ? check_resize(topology) : Found{};
}

}  // namespace ringshift::topology
