// Documents survive the trip through text, snapshots partition the keyspace, and the exact diff tells the
// truth.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>

#include "generate.h"
#include "ringshift/diff.h"
#include "ringshift/snapshot.h"

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
