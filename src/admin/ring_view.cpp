#include "admin/ring_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "admin/json_text.h"
#include "base/encoding.h"
#include "plan/edit.h"
#include "ringshift/diff.h"
#include "topology/compile.h"

namespace ringshift::admin {
namespace {

constexpr std::size_t kNeighboursShown = 4, kHeirsShown = 1000;
constexpr double kCircle = 18446744073709551616.0;  // 2^64

const placement::Ring* circle_of(const placement::Placement& placement) {
  if (const auto* ring = std::get_if<placement::Ring>(&placement.algorithm())) return ring;
  if (const auto* tokens = std::get_if<placement::Tokens>(&placement.algorithm())) return &tokens->ring();
  const auto* bounded = std::get_if<placement::BoundedRing>(&placement.algorithm());
  return bounded == nullptr ? nullptr : &bounded->ring();
}

// A spec's placement with its members' positions in the list.
placement::Placement compiled(const topology::Spec& spec) {
  std::map<std::string, topology::MemberIndex, std::less<>> indices;
  for (std::size_t i = 0; i < spec.members.size(); ++i)
    indices[spec.members[i].id] = static_cast<topology::MemberIndex>(i);
  return topology::compile_placement(spec.placement, spec.members, [&](std::string_view id) {
    const auto found = indices.find(id);
    return found == indices.end() ? topology::kNoMember : found->second;
  });
}

// The spec of the placement in force, or of what a resize leads to.
Result<topology::Spec> side_of(const topology::Topology& topology, bool target) {
  topology::Spec spec = topology.spec;
  if (!target) return spec;
  if (!topology.resize)
    return fail(ErrorKind::not_found, "of: no resize is under way, so that there is no target");
  spec.placement = topology.resize->placement;
  spec.members = topology.resize->members;
  return spec;
}

struct Arcs {
  std::vector<double> starts;
  std::vector<std::size_t> owners;
  bool exact = true;
  std::optional<std::size_t> points;

  void add(double start, std::size_t owner) {
    if (!owners.empty() && owners.back() == owner) return;
    starts.push_back(start);
    owners.push_back(owner);
  }
};

// A key belongs to the first point at or after it: a point's arc begins where the one before it is.
Arcs arcs_of_ring(const placement::Ring& ring, std::size_t most) {
  Arcs arcs;
  const auto points = ring.points();
  arcs.points = points.size();
  if (points.empty()) return arcs;
  if (points.size() < most) {
    arcs.add(0, points.front().member);
    for (std::size_t i = 1; i < points.size(); ++i)
      arcs.add(static_cast<double>(points[i - 1].hash) / kCircle, points[i].member);
    arcs.add(static_cast<double>(points.back().hash) / kCircle, points.front().member);
    return arcs;
  }
  arcs.exact = false;
  for (std::size_t i = 0; i < most; ++i) {
    const double middle = (static_cast<double>(i) + 0.5) / static_cast<double>(most);
    arcs.add(static_cast<double>(i) / static_cast<double>(most),
             ring.owner(static_cast<std::uint64_t>(middle * kCircle)));
  }
  return arcs;
}

Arcs arcs_of_table(std::span<const placement::MemberIndex> table, std::size_t most) {
  Arcs arcs;
  arcs.points = table.size();
  for (std::size_t i = 0; i < table.size(); ++i)
    arcs.add(static_cast<double>(i) / static_cast<double>(table.size()), table[i]);
  if (arcs.starts.size() <= most) return arcs;
  Arcs coarse;
  coarse.exact = false;
  coarse.points = arcs.points;
  for (std::size_t i = 0; i < most; ++i)
    coarse.add(static_cast<double>(i) / static_cast<double>(most),
               table[(2 * i + 1) * table.size() / (2 * most)]);
  return coarse;
}

// No circle: one arc a member, by shares.
Arcs arcs_of_shares(const std::vector<double>& shares, std::size_t most) {
  Arcs arcs;
  arcs.exact = false;
  double start = 0;
  for (std::size_t i = 0; i < shares.size() && i < most; ++i) {
    if (shares[i] > 0) arcs.add(std::min(start, 1.0), i);
    start += shares[i];
  }
  return arcs;
}

Arcs arcs_of(const placement::Placement& placement, const std::vector<double>& shares, std::size_t most) {
  if (const placement::Ring* ring = circle_of(placement)) return arcs_of_ring(*ring, most);
  if (const auto* slots = std::get_if<placement::Slots>(&placement.algorithm()))
    return arcs_of_table(slots->table(), most);
  if (const auto* parts = std::get_if<placement::Partitions>(&placement.algorithm()))
    return arcs_of_table(parts->table(), most);
  return arcs_of_shares(shares, most);
}

// Whose arcs follow each member's most often.
std::vector<std::vector<std::size_t>> neighbours_of(const Arcs& arcs, std::size_t members) {
  std::vector<std::map<std::size_t, std::size_t>> follows(members);
  for (std::size_t i = 0; i < arcs.owners.size(); ++i) {
    const std::size_t next = arcs.owners[(i + 1) % arcs.owners.size()];
    if (arcs.owners[i] < members && next != arcs.owners[i]) ++follows[arcs.owners[i]][next];
  }
  std::vector<std::vector<std::size_t>> out(members);
  for (std::size_t i = 0; i < members; ++i) {
    std::vector<std::pair<std::size_t, std::size_t>> counts(follows[i].begin(), follows[i].end());
    std::ranges::stable_sort(counts, [](const auto& a, const auto& b) { return a.second > b.second; });
    for (std::size_t k = 0; k < counts.size() && k < kNeighboursShown; ++k) out[i].push_back(counts[k].first);
  }
  return out;
}

std::optional<double> position_of(const placement::Placement& placement, std::string_view key) {
  const std::string_view tagged = placement.tag().apply(key);
  if (circle_of(placement) != nullptr) return static_cast<double>(placement.hash(tagged)) / kCircle;
  if (std::holds_alternative<placement::Slots>(placement.algorithm()))
    return (static_cast<double>(placement.hash(tagged)) + 0.5) / placement::kSlotCount;
  if (std::holds_alternative<placement::Partitions>(placement.algorithm()))
    return static_cast<double>(placement.hash(tagged)) / kCircle;
  return std::nullopt;
}

const char* state_name(topology::KeyState state) {
  switch (state) {
    case topology::KeyState::settled:
      return "settled";
    case topology::KeyState::hold:
      return "hold";
    case topology::KeyState::dual:
      return "dual";
  }
  return "?";
}

std::string position_text(double position) { return fmt::format("{:.9g}", std::clamp(position, 0.0, 1.0)); }

}  // namespace

Result<std::string> ring_text(const topology::Snapshot& snapshot, bool target, std::size_t arcs_most) {
  const Result<topology::Spec> spec = side_of(snapshot.topology(), target);
  if (!spec) return std::unexpected(spec.error());
  const Result<topology::Shares> shares = topology::shares(*spec);
  if (!shares) return std::unexpected(shares.error());
  const Arcs arcs = arcs_of(compiled(*spec), shares->shares, arcs_most);
  const auto neighbours = neighbours_of(arcs, spec->members.size());
  std::vector<std::string> starts, owners, members;
  for (std::size_t i = 0; i < arcs.starts.size(); ++i) {
    starts.push_back(position_text(arcs.starts[i]));
    owners.push_back(whole(std::uint64_t{arcs.owners[i]}));
  }
  for (std::size_t i = 0; i < spec->members.size(); ++i) {
    std::vector<std::string> ids;
    for (const std::size_t one : neighbours[i]) ids.push_back(spec->members[one].id);
    members.push_back(Object()
                          .add("id", string_json(spec->members[i].id))
                          .add("weight", share(spec->members[i].weight))
                          .add("zone", string_json(spec->members[i].zone))
                          .add("share", share(shares->shares[i]))
                          .add("neighbours", string_list(ids))
                          .text());
  }
  return Object()
      .add("version", string_json(topology::to_string(snapshot.version)))
      .add("of", string_json(target ? "target" : "now"))
      .add("algorithm", string_json(spec->placement.algorithm))
      .add("hash", string_json(spec->placement.hash))
      .add("points_total", arcs.points ? whole(std::uint64_t{*arcs.points}) : std::string(kNull))
      .add("exact_arcs", truth(arcs.exact))
      .add("exact_shares", truth(shares->exact))
      .add("starts", list(starts))
      .add("owners", list(owners))
      .add("members", list(members))
      .text();
}

Result<std::string> ring_member_text(const topology::Snapshot& snapshot, const std::string& id) {
  const topology::Spec& spec = snapshot.topology().spec;
  const auto member = std::ranges::find(spec.members, id, &topology::Member::id);
  if (member == spec.members.end()) {
    return fail(ErrorKind::not_found, fmt::format("cluster '{}' has no member '{}' with keys", spec.cluster,
                                                  base::printable(id, 64)));
  }
  const Result<topology::Shares> shares = topology::shares(spec);
  if (!shares) return std::unexpected(shares.error());
  std::vector<std::string> heirs;
  bool exact = shares->exact;
  if (spec.members.size() > 1) {
    const Result<topology::Spec> without = plan::edit(spec, {{}, {id}, {}, false});
    if (!without) return std::unexpected(without.error());
    const Result<topology::Diff> diff = topology::diff(spec, *without);
    if (!diff) return std::unexpected(diff.error());
    exact = exact && diff->exact;
    for (const topology::PairShare& pair : diff->pairs) {
      if (pair.from != id || heirs.size() == kHeirsShown) continue;
      heirs.push_back(Object().add("id", string_json(pair.to)).add("share", share(pair.share)).text());
    }
  }
  return Object()
      .add("id", string_json(id))
      .add("share", share(shares->shares[static_cast<std::size_t>(member - spec.members.begin())]))
      .add("exact", truth(exact))
      .add("heirs", list(heirs))
      .text();
}

Result<std::string> route_text(const topology::Snapshot& snapshot, const RouteQuestion& question) {
  const placement::Placement placement = compiled(snapshot.topology().spec);
  const std::string version = topology::to_string(snapshot.version);
  std::vector<std::string> answers;
  for (const std::string& shown : question.keys) {
    std::string key = shown;
    if (question.hex) {
      const auto bytes = base::from_hex(shown);
      if (!bytes) {
        return fail(ErrorKind::invalid, fmt::format("keys: '{}' is not hex: an even number of hex digits",
                                                    base::printable(shown, 64)));
      }
      key = *bytes;
    }
    const topology::Route route = snapshot.route(key);
    std::vector<std::string> replicas;
    for (const topology::MemberIndex one : snapshot.preference_list(key, question.replicas))
      replicas.push_back(snapshot.members()[one].id);
    const auto position = position_of(placement, key);
    Object answer;
    answer.add("key", string_json(shown))
        .add("member", string_json(snapshot.members()[route.member].id))
        .add("slice", whole(std::uint64_t{snapshot.slice(key)}))
        .add("version", string_json(version))
        .add("state", string_json(state_name(route.state)));
    if (route.state != topology::KeyState::settled)
      answer.add("source", string_json(snapshot.members()[route.source].id));
    answer.add("walk", string_list(snapshot.explain(key)))
        .add("position", position ? position_text(*position) : std::string(kNull))
        .add("replicas", string_list(replicas));
    answers.push_back(answer.text());
  }
  return Object().add("version", string_json(version)).add("keys", list(answers)).text();
}

}  // namespace ringshift::admin
