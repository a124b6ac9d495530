// What holds for every placement, ours and other programs', whatever its members and options.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "generate.h"
#include "hashing/hash64.h"
#include "ringshift/carry_over.h"
#include "ringshift/diff.h"
#include "ringshift/snapshot.h"

namespace ringshift::property {
namespace {

using topology::MemberIndex;
using topology::Snapshot;

std::shared_ptr<const Snapshot> compiled(const Spec& spec) {
  Topology topology;
  topology.spec = spec;
  auto snapshot = Snapshot::compile(topology, {});
  if (!snapshot) RC_FAIL(snapshot.error().message);
  return *snapshot;
}

// 16 letters, spread evenly by hashes that scatter similar keys badly, too.
std::string key_of(std::uint64_t number) {
  std::string key;
  for (std::uint64_t bits = hashing::mix(number + 1), i = 0; i < 16; ++i, bits >>= 4)
    key.push_back(static_cast<char>('a' + (bits & 15)));
  return key;
}

// `spec` with one member more, or less, and the state that a resize would carry over.
Spec changed(const Spec& spec, bool grow) {
  Spec next = spec;
  if (grow || spec.members.size() < 2) {
    next.members.push_back({"new", "10.0.0.2:1", 1.0, "", "", ""});
  } else {
    next.members.pop_back();
  }
  auto carried = topology::carry_over(spec, next);
  if (!carried) RC_FAIL(carried.error().message);
  return *carried;
}

RC_GTEST_PROP(AnyPlacement, TextsRoundTrip, ()) {
  const Spec spec = any_placement();
  const std::string json = to_json(spec);
  const auto again = topology::parse_spec(json, "json");
  if (!again) RC_FAIL(again.error().message);
  RC_ASSERT(*again == spec);
  RC_ASSERT(to_json(*again) == json);
  RC_TAG(spec.placement.algorithm);
}

RC_GTEST_PROP(AnyPlacement, DiffEqualsACount, ()) {
  const Spec from = any_placement();
  const Spec to = changed(from, *rc::gen::arbitrary<bool>());
  const auto diff = topology::diff(from, to);
  if (!diff) RC_FAIL(diff.error().message);
  const auto a = compiled(from), b = compiled(to);
  std::map<std::pair<std::string, std::string>, double> counted;
  constexpr int kKeys = 10'000;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = key_of(static_cast<std::uint64_t>(i));
    const std::string& x = a->members()[a->owner_before(key)].id;
    const std::string& y = b->members()[b->owner_before(key)].id;
    if (x != y) counted[{x, y}] += 1.0 / kKeys;
  }
  const auto within = [](double share, double count) {
    return std::abs(share - count) < 7 * std::sqrt(share / kKeys) + 5.0 / kKeys;
  };
  for (const auto& pair : diff->pairs) {
    if (!within(pair.share, counted[{pair.from, pair.to}]))
      RC_FAIL(to_json(from) + " " + pair.from + " -> " + pair.to);
    counted.erase({pair.from, pair.to});
  }
  for (const auto& [pair, share] : counted) RC_ASSERT(within(0, share));
}

// Ours that promise it, for members of equal weight (of tables: as many parts move as one member's share
// has).
RC_GTEST_PROP(AnyPlacement, CarriedOverChangesAreMinimalWherePromised, ()) {
  Spec from = any_placement(2);
  const std::string& name = from.placement.algorithm;
  const std::set<std::string> minimal = {"ring",    "bounded-ring", "rendezvous", "multi-probe", "jump",
                                         "memento", "partitions",   "slots",      "tokens"};
  RC_PRE(minimal.contains(name));
  for (Member& member : from.members) member.weight = 1;
  const bool grow = *rc::gen::arbitrary<bool>();
  const Spec to = changed(from, grow);
  const std::string moved = grow ? to.members.back().id : from.members.back().id;
  const auto diff = topology::diff(from, to);
  if (!diff) RC_FAIL(diff.error().message);
  for (const auto& pair : diff->pairs) {
    if ((grow ? pair.to : pair.from) != moved) RC_FAIL(to_json(from) + " " + pair.from + " -> " + pair.to);
  }
}

RC_GTEST_PROP(AnyPlacement, PreferenceListsKeepMembersAndHostsApart, (const std::string& salt)) {
  const Spec spec = any_placement();
  const auto snapshot = compiled(spec);
  std::set<std::string> zones, hosts;
  std::size_t alone = 0;
  for (const Member& member : spec.members) {
    zones.insert(member.zone);
    if (member.host.empty()) {
      ++alone;
    } else {
      hosts.insert(member.host);
    }
  }
  for (int i = 0; i < 20; ++i) {
    const std::string key = salt + std::to_string(i);
    const auto all = snapshot->preference_list(key, spec.members.size());
    RC_ASSERT(all.front() == snapshot->owner_before(key));
    RC_ASSERT(all.size() <= spec.members.size());
    std::set<MemberIndex> met(all.begin(), all.end());
    RC_ASSERT(met.size() == all.size());
    std::multiset<std::string> used;
    for (const MemberIndex index : all) used.insert(snapshot->members()[index].host);
    for (const std::string& host : hosts) RC_ASSERT(used.count(host) <= 1U);
    const auto spread = snapshot->preference_list(key, 2, /*spread_zones=*/true);
    RC_ASSERT(spread.front() == all.front());
    RC_ASSERT(spread.size() == std::min<std::size_t>(2, all.size()));
  }
}

}  // namespace
}  // namespace ringshift::property
