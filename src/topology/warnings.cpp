// What an operator should know although a spec is valid: where its placement is bad, with the skew that it
// makes, measured on the very members of the spec.
#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
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

// The member whose load is the most above what its weight says.
struct Skew {
  double times = 0;  // Its load by its due.
  std::string text;
};

Skew measured_skew(const Spec& spec) {
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
  return {skew,
          fmt::format("{} takes {:.1f} % of the keys, {:.2f} times its part ({})",
                      shown(spec.members[worst].id), measured->shares[worst] * 100, skew,
                      measured->exact ? "exact, of evenly spread hashes" : "of 1,000,000 sampled keys")};
}

// Points made by FNV-1a of labels that differ in their last digits alone lie side by side. Weighted rings
// make theirs by MD5, whatever hashes the keys.
bool has_fnv_points(const Spec& spec) {
  const std::string& algorithm = spec.placement.algorithm;
  const std::string hash = base::ascii_lower(spec.placement.hash);
  if (hash.find("fnv") == std::string::npos) return false;
  if (algorithm == "article-go") return true;
  const auto option = [&](std::string_view name) {
    const auto found = spec.placement.options.find(name);
    return found == spec.placement.options.end() ? std::string() : found->second;
  };
  const bool equal =
      std::ranges::all_of(spec.members, [&](const Member& m) { return m.weight == spec.members[0].weight; });
  const bool heavy = std::ranges::any_of(spec.members, [](const Member& m) { return m.weight > 1; });
  if (algorithm == "libmemcached") {
    const std::string distribution = option("distribution");
    const bool ring = distribution == "ketama" || distribution == "consistent" || distribution == "spy";
    return ring && !heavy && option("weighted") != "true";
  }
  if (algorithm != "spymemcached" || option("locator") != "KETAMA") return false;
  const std::string weighted = option("weighted");
  return weighted.empty() ? equal : weighted == "false";
}

// What the peer's rounding of weights did, by the points that each member got.
void warn_of_points(const Spec& spec, std::string_view peer, const std::vector<std::uint64_t>& points,
                    const std::string& skew, std::vector<std::string>& out) {
  constexpr std::size_t kNamed = 3;
  std::string names;
  std::size_t without = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i] != 0 || ++without > kNamed) continue;
    names += fmt::format("{}{} of {}", names.empty() ? "" : ", ", spec.members[i].weight,
                         shown(spec.members[i].id));
  }
  if (without > kNamed) names += fmt::format(" and {} more", without - kNamed);
  if (without != 0) {
    out.push_back(
        fmt::format("members: the weight {} rounds to no points, as {} rounds it: it gets no key; {}", names,
                    peer, skew));
  }
  const bool equal = std::ranges::all_of(
      spec.members, [&](const Member& member) { return member.weight == spec.members[0].weight; });
  if (equal && std::ranges::all_of(points, [](std::uint64_t each) { return each == 156; })) {
    out.push_back(
        fmt::format("members: {} equal members have 156 points each and not 160, by {}'s rounding of "
                    "fractions: with one member more or less other keys move too; {}",
                    spec.members.size(), peer, skew));
  }
}

// What is bad about the peer's own way, with the skew that it makes here.
void warn_of_peer(const Spec& spec, std::vector<std::string>& out) {
  const auto* peer = placement::peers::find_peer(spec.placement.algorithm);
  if (peer == nullptr || spec.members.size() < 2) return;
  placement::MemberIndex next = 0;
  const auto compiled =
      compile_placement(spec.placement, spec.members, [&](std::string_view) { return next++; });
  const auto& built = std::get<placement::PeerPlacement>(compiled.algorithm()).peer();
  const auto* ring = dynamic_cast<const placement::peers::RingPeer*>(&built);
  if (ring == nullptr) return;
  const Skew skew = measured_skew(spec);
  constexpr int kLeastBits = 31;
  if (built.key_hash().bits() < kLeastBits) {
    const int bits = built.key_hash().bits();
    const auto all = ring->ring().points();
    const bool beyond = !all.empty() && all.back().hash >> bits != 0;
    out.push_back(fmt::format("placement.hash: {} gives {} bits, and {}; {}", spec.placement.hash, bits,
                              beyond ? "the ring's points have 32: nearly all keys go to one member"
                                     : "so do the ring's points: they lie close and collide",
                              skew.text));
  }
  std::vector<std::uint64_t> points(spec.members.size(), 0);
  for (const auto& point : ring->ring().points()) ++points[point.member];
  warn_of_points(spec, peer->name, points, skew.text, out);
  if (has_fnv_points(spec)) {
    out.push_back("placement.hash: FNV-1a without a finaliser puts a member's points side by side: " +
                  skew.text);
  } else if (built.key_hash().bits() >= kLeastBits && skew.times > kSkewWorthSaying) {
    out.push_back("placement: the members' loads are uneven: " + skew.text);
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

}  // namespace ringshift::topology
