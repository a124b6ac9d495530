// What every placement, and the ring above all, must keep for any members and any hash.
#include "placement/placement.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "generate.h"
#include "topology/compile.h"

namespace ringshift::property {
namespace {

using placement::MemberIndex;
using placement::Ring;

std::vector<placement::Member> inputs(const std::vector<Member>& members) {
  std::vector<placement::Member> out;
  for (const Member& member : members)
    out.push_back({member.id, member.weight, static_cast<MemberIndex>(out.size())});
  return out;
}

// DESIGN's definition, with no index and no sorting: the smallest (hash, id) at or after `hash`, else the
// smallest.
std::string owner_by_definition(const std::vector<Member>& members, std::uint32_t points,
                                std::uint64_t hash) {
  std::pair<std::uint64_t, std::string> best, first;
  bool found = false, any = false;
  for (const Member& member : members) {
    for (std::uint32_t i = 0; i < Ring::point_count(member.weight, points); ++i) {
      const std::pair<std::uint64_t, std::string> point{Ring::point_hash(member.id, i), member.id};
      if (!any || point < first) first = point;
      any = true;
      if (point.first < hash || (found && best < point)) continue;
      best = point;
      found = true;
    }
  }
  return found ? best.second : any ? first.second : "";
}

RC_GTEST_PROP(RingProperty, OwnerEqualsTheDefinition, ()) {
  const auto all = members(*rc::gen::inRange(1, 6), false);
  const auto points = *rc::gen::inRange<std::uint32_t>(8, 40);
  const Ring ring(inputs(all), points);
  std::vector<std::uint64_t> hashes{0, 1, std::numeric_limits<std::uint64_t>::max()};
  for (const std::uint64_t seed :
       *rc::gen::container<std::vector<std::uint64_t>>(20, rc::gen::arbitrary<std::uint64_t>())) {
    hashes.push_back(hashing::mix(seed));
  }
  for (std::size_t i = 0; i < ring.size(); i += 7) {  // At points and beside them.
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
      hashes.push_back(ring.points()[i].hash + offset);
    }
  }
  for (const std::uint64_t hash : hashes)
    RC_ASSERT(all[ring.owner(hash)].id == owner_by_definition(all, points, hash));
}

RC_GTEST_PROP(RingProperty, OrderOfMembersDoesNotMatter, ()) {
  const auto all = members(*rc::gen::inRange(1, 10), false);
  auto reversed = all;
  std::reverse(reversed.begin(), reversed.end());
  const Ring a(inputs(all), 64), b(inputs(reversed), 64);
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::uint64_t hash = hashing::mix(i);
    RC_ASSERT(all[a.owner(hash)].id == reversed[b.owner(hash)].id);
  }
}

RC_GTEST_PROP(RingProperty, AChangeOfOneMemberMovesKeysOnlyToOrFromIt, ()) {
  const auto all = members(*rc::gen::inRange(2, 10), false);
  const auto changed = *rc::gen::inRange<std::size_t>(0, all.size());
  auto after = all;
  const bool removed = *rc::gen::arbitrary<bool>();
  const double weight = removed ? 0 : all[changed].weight + *rc::gen::element(0.5, 1.0, 3.0);
  after[changed].weight = weight;  // Weight 0 has no points: the same as removal.
  const Ring a(inputs(all), 64), b(inputs(after), 64);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t hash = hashing::mix(i);
    if (a.owner(hash) == b.owner(hash)) continue;
    RC_ASSERT((removed ? a : b).owner(hash) == changed);
  }
}

RC_GTEST_PROP(RingProperty, SharesFollowWeights, ()) {
  const auto all = members(*rc::gen::inRange(2, 8), false);
  const Ring ring(inputs(all), 2048);
  std::vector<double> counted(all.size());
  constexpr int kKeys = 50'000;
  for (std::uint64_t i = 0; i < kKeys; ++i) counted[ring.owner(hashing::mix(i))] += 1.0 / kKeys;
  double total = 0;
  for (const Member& member : all) total += member.weight;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double share = all[i].weight / total;
    // Six standard deviations of a share made of weight * 2048 random arcs, and of the sample.
    const double points = all[i].weight * 2048;
    RC_ASSERT(std::abs(counted[i] - share) < 6 * share / std::sqrt(points) + 6 * std::sqrt(share / kKeys));
  }
}

RC_GTEST_PROP(PlacementProperty, EveryHashHasAnOwnerAndAWalkMeetsEverybody, ()) {
  const Spec any = spec();
  const auto compiled = topology::compile_placement(any.placement, any.members, [&](std::string_view id) {
    return static_cast<MemberIndex>(std::ranges::find(any.members, id, &Member::id) - any.members.begin());
  });
  const std::string key = *rc::gen::arbitrary<std::string>();
  RC_ASSERT(compiled.owner(key) < any.members.size());
  std::set<MemberIndex> met;
  compiled.walk(compiled.hash(key), [&](MemberIndex member) {
    met.insert(member);
    return false;
  });
  RC_ASSERT(met.size() == any.members.size());
}

}  // namespace
}  // namespace ringshift::property
