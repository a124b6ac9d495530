// What may follow what, and what an operator should know.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "placement/peers/catalog.h"
#include "placement/ring.h"
#include "ringshift/diff.h"
#include "topology/compile.h"
#include "topology/reader.h"
#include "topology/validate.h"

namespace ringshift::topology {

namespace {

// The keys fall onto the members by chance, so a small difference says nothing.
constexpr double kSkewWorthSaying = 1.5;

std::string measured_skew(const Spec& spec) {
  const Result<Shares> measured = shares(spec);
  if (!measured || measured->shares.empty()) return {};
  double total = 0;
  for (const Member& member : spec.members) total += member.weight;
  std::size_t worst = 0;
  double skew = 0;
  for (std::size_t i = 0; i < spec.members.size(); ++i) {
    const double due = spec.members[i].weight / total;
    if (measured->shares[i] / due <= skew) continue;
    skew = measured->shares[i] / due;
    worst = i;
  }
  return fmt::format("{} takes {:.1f} % of the keys, {:.2f} times its part ({})",
                     shown(spec.members[worst].id), measured->shares[worst] * 100, skew,
                     measured->exact ? "exact, by arcs" : "of 1,000,000 sampled keys");
}

// Members that the peer's rounding leaves without a key, and what is bad about the peer's own way.
void warn_of_peer(const Spec& spec, std::vector<std::string>& out) {
  const auto* peer = placement::peers::find_peer(spec.placement.algorithm);
  if (peer == nullptr || spec.members.empty()) return;
  placement::MemberIndex next = 0;
  const auto compiled =
      compile_placement(spec.placement, spec.members, [&](std::string_view) { return next++; });
  const auto& built = std::get<placement::PeerPlacement>(compiled.algorithm()).peer();
  const auto* ring = dynamic_cast<const placement::peers::RingPeer*>(&built);
  const std::string skew = measured_skew(spec);
  if (ring != nullptr && built.key_hash().bits() < 31 && spec.members.size() > 1) {
    out.push_back(
        fmt::format("placement.hash: {} gives {} bits, and the ring's points have 32: nearly all keys go to "
                    "one member; {}",
                    spec.placement.hash, built.key_hash().bits(), skew));
  }
  if (ring != nullptr) {
    std::vector<std::uint64_t> points(spec.members.size(), 0);
    for (const auto& point : ring->ring().points()) ++points[point.member];
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i] != 0) continue;
      out.push_back(
          fmt::format("members: the weight {} of {} rounds to no points, as {} rounds it: it gets no key",
                      spec.members[i].weight, shown(spec.members[i].id), peer->name));
    }
    const bool equal = std::ranges::all_of(
        spec.members, [&](const Member& member) { return member.weight == spec.members[0].weight; });
    if (equal && std::ranges::all_of(points, [](std::uint64_t each) { return each == 156; })) {
      out.push_back(
          fmt::format("members: {} equal members have 156 points each and not 160, by {}'s rounding of "
                      "fractions: with one "
                      "member more or less other keys move too",
                      spec.members.size(), peer->name));
    }
  }
  if (spec.placement.algorithm == "article-go" && spec.placement.hash == "fnv1a") {
    out.push_back("placement.hash: FNV-1a without a finaliser puts a member's points side by side: " + skew);
  } else if (built.key_hash().bits() >= 31) {
    const Result<Shares> measured = shares(spec);
    double total = 0;
    for (const Member& member : spec.members) total += member.weight;
    for (std::size_t i = 0; measured && i < spec.members.size(); ++i) {
      if (measured->shares[i] <= kSkewWorthSaying * spec.members[i].weight / total) continue;
      out.push_back("placement: the members' loads are uneven: " + skew);
      break;
    }
  }
}

}  // namespace

std::vector<std::string> warnings(const Spec& spec) {
  constexpr double kSkew = 20;              // A member this much heavier than another is rarely meant.
  constexpr std::uint64_t kFewPoints = 64;  // Below it a member's share strays by more than an eighth.
  constexpr std::size_t kManyMembers = 100;
  std::vector<std::string> out;
  const auto [low, high] = std::ranges::minmax_element(spec.members, {}, &Member::weight);
  if (!spec.members.empty() && high->weight > kSkew * low->weight) {
    out.push_back(
        fmt::format("members: {} has weight {} and {} has {}: the first takes {:.0f} times as many keys",
                    shown(high->id), high->weight, shown(low->id), low->weight, high->weight / low->weight));
  }
  if (spec.placement.algorithm == "maglev") {
    constexpr std::uint64_t kEntriesPerMember = 100;  // The paper's advice for 1 %.
    if (spec.placement.table_size < kEntriesPerMember * spec.members.size()) {
      out.push_back(
          fmt::format("placement.table_size: {} is less than 100 for each of {} members, so shares stray by "
                      "more than 1 %: "
                      "take a larger prime, such as 655373",
                      spec.placement.table_size, spec.members.size()));
    }
  }
  if (spec.placement.algorithm == "jump") {
    out.push_back(
        "placement.algorithm: jump counts members by their place in the list: add and remove only at its "
        "end");
  }
  if (spec.placement.algorithm == "rendezvous" && spec.members.size() > kManyMembers) {
    out.push_back(fmt::format(
        "placement.algorithm: rendezvous asks each of {} members for each key: ring is faster beyond {}",
        spec.members.size(), kManyMembers));
  }
  if (spec.placement.algorithm == "ring" && !spec.members.empty()) {
    const auto points = placement::Ring::point_count(low->weight, spec.placement.points);
    if (points < kFewPoints) {
      out.push_back(
          fmt::format("placement.points: {} has only {} points, so its share of keys is uneven: raise points "
                      "(256 keeps members within some 10 %)",
                      shown(low->id), points));
    }
  }
  if (!check_spec(spec)) warn_of_peer(spec, out);
  if (spec.placement.algorithm == "modulo") {
    out.push_back(
        "placement.algorithm: with modulo nearly every key moves when the members change: ring moves the "
        "least");
  }
  if (spec.placement.algorithm == "slots" && spec.placement.hash_tag != "{}") {
    out.push_back(
        "placement.hash_tag: Redis Cluster's clients use \"{}\" with slots: keys with tags will differ from "
        "theirs");
  }
  return out;
}

std::vector<std::string> change_warnings(const Spec& current, const Spec& next) {
  std::vector<std::string> out;
  const Placement& a = current.placement;
  const Placement& b = next.placement;
  if (a.algorithm != b.algorithm) return out;
  const auto ids = [](const Spec& spec) {
    std::vector<std::string> list;
    for (const Member& member : spec.members) list.push_back(member.id);
    return list;
  };
  const auto prefix = [](const std::vector<std::string>& x, const std::vector<std::string>& y) {
    return std::equal(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(std::min(x.size(), y.size())),
                      y.begin());
  };
  const std::vector<std::string> before = ids(current), after = ids(next);
  if (a.algorithm == "jump" && !prefix(before, after)) {
    out.push_back(
        "members: jump counts members by their place in the list, and members before its end came, went or "
        "changed places: nearly every key behind them moves; change only the end of the list, or use "
        "memento");
  }
  if (a.algorithm == "memento" && a.buckets.empty() && b.buckets.empty() && !prefix(before, after)) {
    out.push_back(
        "placement.buckets: without it the members' order makes the buckets, and it changed before its end: "
        "nearly every key moves; carry the buckets over and name the members that left in removed");
  }
  if (a.algorithm == "partitions" && before != after && b.table.empty()) {
    out.push_back(
        "placement.table: without it the partitions are dealt anew for the changed members, and nearly every "
        "key moves; carry the table over");
  }
  if (a.algorithm == "slots" && before != after && b.slots.empty()) {
    out.push_back(
        "placement.slots: without it the ranges are cut anew for the changed members, and far more keys move "
        "than must; carry the table over");
  }
  return out;
}

Status check_succession(const Spec& current, const Spec& next, bool force) {
  if (next.cluster != current.cluster) {
    return fail(ErrorKind::invalid,
                fmt::format("cluster: {} cannot become {}: give the new cluster a spec of its own",
                            shown(current.cluster), shown(next.cluster)));
  }
  if (next.protocol != current.protocol) {
    return fail(ErrorKind::invalid, "protocol: a cluster's protocol cannot change: make a new cluster");
  }
  const std::unordered_set<std::string_view> retired(current.retired.begin(), current.retired.end());
  std::unordered_set<std::string_view> ids;
  for (std::size_t i = 0; i < next.members.size(); ++i) {
    ids.insert(next.members[i].id);
    if (retired.contains(next.members[i].id)) {
      return fail(
          ErrorKind::invalid,
          fmt::format("members[{}].id: {} is retired, and a retired id never comes back: choose a new id", i,
                      shown(next.members[i].id)));
    }
  }
  // Data does not follow an address: members that exchange theirs would each miss all of their keys.
  for (std::size_t i = 0; !force && i < next.members.size(); ++i) {
    const Member& member = next.members[i];
    const auto owner = std::ranges::find(current.members, member.address, &Member::address);
    if (owner == current.members.end() || owner->id == member.id) continue;
    return fail(
        ErrorKind::invalid,
        fmt::format("members[{}].address: {} is the address of {} now, and its keys would be taken for those "
                    "of {}: a server keeps its id; --force if its data is gone",
                    i, shown(member.address), shown(owner->id), shown(member.id)));
  }
  const auto lost =
      std::ranges::count_if(current.members, [&](const Member& member) { return !ids.contains(member.id); });
  if (!force && static_cast<std::size_t>(lost) * 2 > current.members.size()) {
    return fail(ErrorKind::invalid, fmt::format("members: {} of {} members vanish at once, more than half: "
                                                "is it the right file? --force if it is",
                                                lost, current.members.size()));
  }
  return {};
}

}  // namespace ringshift::topology
