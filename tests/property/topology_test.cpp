// Documents survive the trip through text, snapshots partition the keyspace, and the exact diff tells the
// truth.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "generate.h"
#include "hashing/xxh3.h"
#include "ringshift/diff.h"
#include "ringshift/snapshot.h"
#include "topology/compile.h"

namespace ringshift::property {
namespace {

using topology::KeyState;
using topology::MemberIndex;
using topology::Snapshot;

RC_GTEST_PROP(TopologyProperty, JsonRoundTripsExactly, ()) {
  const Topology document = topology_document();
  const std::string json = to_json(document);
  const auto again = topology::parse_topology(json, "json");
  if (!again) RC_FAIL(again.error().message);
  RC_ASSERT(*again == document);
  RC_ASSERT(to_json(*again) == json);
  RC_ASSERT(digest(*again) == digest(document));
  const auto spec_again = topology::parse_spec(to_json(document.spec), "json");
  if (!spec_again) RC_FAIL(spec_again.error().message);
  RC_ASSERT(*spec_again == document.spec);
}

// The short cuts for short keys, untagged keys and batches answer as the placements do.
RC_GTEST_PROP(TopologyProperty, RouteAndRouteManyAgreeForKeysOfEveryLength, ()) {
  const auto snapshot = *Snapshot::compile(topology_document(), {1, 1});
  std::vector<std::string> texts;
  for (std::size_t length = 0; length < 300; ++length) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i)
      text += static_cast<char>(hashing::mix(length * 1000 + i) % 20 == 0 ? "{}[]$"[i % 5] : 'a' + i % 26);
    texts.push_back(std::move(text));
  }
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  std::vector<topology::Route> routes(keys.size());
  snapshot->route_many(keys, routes);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const topology::Route route = snapshot->route(keys[i]);
    RC_ASSERT(route.member == routes[i].member && route.source == routes[i].source);
    RC_ASSERT(route.state == routes[i].state);
    if (!snapshot->topology().resize) RC_ASSERT(route.member == snapshot->owner_before(keys[i]));
  }
}

// A topology that may follow `document`: members left, joined, came back in another order or with another
// weight; a resize began, went on or ended (its members are then A's).
Topology successor(const Topology& document) {
  Topology next = document;
  next.factors.clear();
  if (next.resize && *rc::gen::arbitrary<bool>()) {
    next.spec.placement = next.resize->placement;
    next.spec.members = next.resize->members;
    next.resize.reset();
  }
  std::vector<Member>& members = next.resize ? next.resize->members : next.spec.members;
  if (members.size() > 1 && *rc::gen::arbitrary<bool>())
    members.erase(members.begin() + *rc::gen::inRange(0, static_cast<int>(members.size())));
  if (*rc::gen::arbitrary<bool>())
    members.insert(members.begin() + *rc::gen::inRange(0, static_cast<int>(members.size()) + 1),
                   {"joined", "10.0.0.3:1", 2.0, "", "", ""});
  if (*rc::gen::arbitrary<bool>()) members.front().weight += 1;
  if (*rc::gen::arbitrary<bool>()) std::reverse(members.begin(), members.end());
  if (*rc::gen::inRange(0, 6) == 0) next.spec.placement.points += 8;
  if (*rc::gen::inRange(0, 6) == 0) next.spec.placement.hash_tag = "<>";
  return next;
}

const placement::Ring* ring_of(const placement::Placement& placement) {
  return std::get_if<placement::Ring>(&placement.algorithm());
}

RC_GTEST_PROP(TopologyProperty, WhatIsCompiledFromThePreviousIsWhatIsCompiledAnew,
              (const std::string& salt)) {
  const Topology document = topology_document();
  const auto previous = *Snapshot::compile(document, {1, 1});
  const Topology next = successor(document);
  const auto anew = Snapshot::compile(next, {1, 2});
  const auto merged = Snapshot::compile(next, {1, 2}, previous.get());
  RC_ASSERT(anew.has_value() == merged.has_value());
  if (!anew) RC_DISCARD("not a valid topology");
  RC_ASSERT((*anew)->digest == (*merged)->digest);
  RC_ASSERT(std::ranges::equal((*anew)->members(), (*merged)->members()));
  for (int i = 0; i < 500; ++i) {
    const std::string key = salt + std::to_string(i);
    RC_ASSERT((*anew)->owner_before(key) == (*merged)->owner_before(key));
    RC_ASSERT((*anew)->owner_after(key) == (*merged)->owner_after(key));
    const topology::Route a = (*anew)->route(key), b = (*merged)->route(key);
    RC_ASSERT(a.member == b.member && a.source == b.source && a.state == b.state);
  }
}

// The rings themselves, point for point, and how they came about.
RC_GTEST_PROP(TopologyProperty, AMergedRingIsTheRingBuiltAnewPointForPoint, ()) {
  Topology document;
  document.spec = spec();
  document.spec.placement.algorithm = "ring";
  document.spec.placement.hash = "xxh3";
  Topology next = successor(document);
  const std::vector<Member>&was = document.spec.members, &is = next.spec.members;
  const auto index_in = [](const std::vector<Member>& members) {
    return [&members](std::string_view id) {
      const auto found = std::ranges::find(members, id, &Member::id);
      return found == members.end() ? topology::kNoMember : static_cast<MemberIndex>(found - members.begin());
    };
  };
  const topology::Former former{std::make_shared<const placement::Placement>(
                                    topology::compile_placement(document.spec.placement, was, index_in(was))),
                                document.spec.placement, was, index_in(was)};
  const auto anew = topology::compile_placement(next.spec.placement, is, index_in(is));
  const auto from = topology::compile_from({&former, 1}, next.spec.placement, is, index_in(is));
  RC_ASSERT((from == former.compiled) == (next.spec.placement == document.spec.placement && is == was));
  RC_ASSERT(from->tag() == anew.tag());
  const auto points = ring_of(anew)->points(), merged = ring_of(*from)->points();
  RC_ASSERT(points.size() == merged.size());
  for (std::size_t i = 0; i < points.size(); ++i)
    RC_ASSERT(points[i].hash == merged[i].hash && points[i].member == merged[i].member);
}

RC_GTEST_PROP(TopologyProperty, AnyBytesAreParsedOrRefused, (const std::string& bytes)) {
  const auto spec = topology::parse_spec(bytes, "x");
  const auto document = topology::parse_topology(bytes, "x");
  RC_ASSERT(spec || spec.error().message.starts_with("x:"));
  RC_ASSERT(document || document.error().message.starts_with("x:"));
}

RC_GTEST_PROP(TopologyProperty, RoutesFollowTheStateOfTheSlice, (const std::string& salt)) {
  const Topology document = topology_document();
  const auto snapshot = *Snapshot::compile(document, {1, 1});
  for (int i = 0; i < 300; ++i) {
    const std::string key = salt + std::to_string(i);
    const topology::Route route = snapshot->route(key);
    const MemberIndex a = snapshot->owner_before(key), b = snapshot->owner_after(key);
    RC_ASSERT(route.member < snapshot->members().size());
    if (!document.resize) {
      RC_ASSERT(route.member == a && route.source == a && route.state == KeyState::settled);
      continue;
    }
    const std::uint32_t slice = snapshot->slice(key);
    RC_ASSERT(slice < topology::kSliceCount);
    const bool done = contains(document.resize->done, slice),
               active = contains(document.resize->active, slice);
    RC_ASSERT(!(done && active));
    if (route.state != KeyState::settled) {
      RC_ASSERT(active && a != b && route.member == (document.resize->rollback ? a : b));
      RC_ASSERT(route.source == (document.resize->rollback ? b : a));
    } else if (!active) {
      RC_ASSERT(route.member == (done ? b : a));
    }
  }
}

RC_GTEST_PROP(DiffProperty, ExactSharesEqualACount, ()) {
  const Spec from = spec();
  Spec to = from;
  if (*rc::gen::arbitrary<bool>()) {
    to.members.push_back({"new", "10.0.0.2:1", 2.0, "", "", ""});
  } else {
    to.members.front().weight += 1;
  }
  if (to.members.size() > 1 && *rc::gen::arbitrary<bool>()) to.members.erase(to.members.begin());
  const auto diff = *topology::diff(from, to);
  RC_ASSERT(diff.exact);
  Topology before, after;
  before.spec = from;
  after.spec = to;
  const auto a = *Snapshot::compile(before, {}), b = *Snapshot::compile(after, {});
  std::map<std::pair<std::string, std::string>, double> counted;
  constexpr int kKeys = 20'000;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = std::to_string(i);
    const std::string& x = a->members()[a->route(key).member].id;
    const std::string& y = b->members()[b->route(key).member].id;
    if (x != y) counted[{x, y}] += 1.0 / kKeys;
  }
  double moved = 0;
  for (const auto& pair : diff.pairs) {
    moved += pair.share;
    const double difference = std::abs(pair.share - counted[{pair.from, pair.to}]);
    RC_ASSERT(difference < 6 * std::sqrt(pair.share / kKeys) + 2.0 / kKeys);
    counted.erase({pair.from, pair.to});
  }
  for (const auto& [pair, share] : counted)
    RC_ASSERT(share < 3.0 / kKeys);  // Nothing that the diff did not name.
  RC_ASSERT(std::abs(moved - diff.moved_share) < 1e-9);
}

RC_GTEST_PROP(SliceProperty, UniteIsTheUnionAndCanonical, ()) {
  const SliceSet a = slices(), b = slices(), both = topology::unite(a, b);
  std::uint32_t members_of_either = 0;
  for (std::uint32_t slice = 0; slice < topology::kSliceCount; ++slice) {
    const bool either = contains(a, slice) || contains(b, slice);
    RC_ASSERT(contains(both, slice) == either);
    members_of_either += either ? 1 : 0;
  }
  RC_ASSERT(count(both) == members_of_either);
  for (std::size_t i = 1; i < both.size(); ++i) RC_ASSERT(both[i].begin > both[i - 1].end);
}

}  // namespace
}  // namespace ringshift::property
