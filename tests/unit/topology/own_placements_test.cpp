// Specs of the placements with options and state: what is accepted, what is refused and how.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ringshift/carry_over.h"
#include "ringshift/snapshot.h"

namespace ringshift::topology {
namespace {

using testing::HasSubstr;

std::string text(const std::string& placement, const std::string& consistency = "none") {
  return "cluster: c\nplacement: {" + placement + "}\nconsistency: " + consistency +
         "\nmembers:\n  - {id: a, address: 10.0.0.1:1}\n  - {id: b, address: 10.0.0.1:2}\n";
}

std::string problem(const std::string& placement, const std::string& consistency = "none") {
  const auto spec = parse_spec(text(placement, consistency), "s");
  return spec ? "accepted" : spec.error().message;
}

TEST(OwnPlacements, GoodOnesAreAcceptedAndComeBackFromJson) {
  for (const char* placement :
       {"algorithm: jump", "algorithm: rendezvous, hash: murmur3", "algorithm: maglev, table_size: 251",
        "algorithm: multi-probe, probes: 9", "algorithm: memento, buckets: [a, x, b], removed: [x]",
        "algorithm: partitions, partitions: 4, table: [{first: 0, last: 2, member: a}, {first: 3, last: 3, "
        "member: b}]",
        "algorithm: tokens, tokens: {a: [0, 9223372036854775808], b: [18446744073709551615]}",
        "algorithm: bounded-ring, epsilon: 0.5", "algorithm: ring, hash: fnv1a-64"}) {
    const auto spec = parse_spec(text(placement), "s");
    ASSERT_TRUE(spec) << spec.error().message;
    const auto again = parse_spec(to_json(*spec), "json");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, *spec) << placement;
  }
}

TEST(OwnPlacements, ErrorsNameThePlaceAndTheFix) {
  EXPECT_THAT(problem("algorithm: maglev, table_size: 1000"),
              HasSubstr("s:2: placement.table_size: 1000 is not a prime"));
  EXPECT_THAT(problem("algorithm: ring, probes: 3"), HasSubstr("placement.probes: does not go with ring"));
  EXPECT_THAT(problem("algorithm: multi-probe, probes: 65"), HasSubstr("65 is not from 1 to 64"));
  EXPECT_THAT(problem("algorithm: bounded-ring", "cache"), HasSubstr("bounded-ring needs consistency none"));
  EXPECT_THAT(problem("algorithm: bounded-ring, epsilon: 0"), HasSubstr("placement.epsilon: 0 is not from"));
  EXPECT_THAT(problem("algorithm: tokens, tokens: {a: [1]}"), HasSubstr("member 'b' has none"));
  EXPECT_THAT(problem("algorithm: tokens, tokens: {a: [1], b: [1]}"),
              HasSubstr("1 is a token of 'a' already"));
  EXPECT_THAT(problem("algorithm: tokens, tokens: {a: [-1], b: [1]}"),
              HasSubstr("'-1' is not a whole number"));
  EXPECT_THAT(problem("algorithm: memento, buckets: [a]"), HasSubstr("member 'b' has no bucket"));
  EXPECT_THAT(problem("algorithm: memento, buckets: [a, b, x]"),
              HasSubstr("'x' is neither a member nor in removed"));
  EXPECT_THAT(problem("algorithm: partitions, partitions: 1"), HasSubstr("1 are too few"));
  EXPECT_THAT(problem("algorithm: partitions, partitions: 4, table: [{first: 0, last: 2, member: a}]"),
              HasSubstr("partitions 3-3 belong to nobody"));
}

TEST(OwnPlacements, AChangeThatRenumbersIsWarnedOf) {
  const Spec jump = *parse_spec(text("algorithm: jump"), "s");
  Spec shorter = jump;
  shorter.members.erase(shorter.members.begin());
  EXPECT_THAT(change_warnings(jump, shorter), testing::ElementsAre(HasSubstr("nearly every key")));
  Spec longer = jump;
  longer.members.push_back({"d", "10.0.0.1:4", 1.0, "", "", ""});
  EXPECT_THAT(change_warnings(jump, longer), testing::IsEmpty());
  Spec dealt = *parse_spec(text("algorithm: partitions"), "s"), changed = dealt;
  changed.members = longer.members;
  EXPECT_THAT(change_warnings(dealt, changed), testing::ElementsAre(HasSubstr("carry the table over")));
  EXPECT_THAT(change_warnings(dealt, *carry_over(dealt, changed)), testing::IsEmpty());
}

TEST(OwnPlacements, OwnerByLoadPassesFullMembers) {
  Topology topology;
  topology.spec = *parse_spec(text("algorithm: bounded-ring"), "s");
  const auto snapshot = *Snapshot::compile(topology, {});
  const MemberIndex owner = snapshot->owner_before("k");
  std::vector<std::uint64_t> loads(2);
  EXPECT_EQ(snapshot->owner_by_load("k", loads), owner);
  loads[owner] = 10;
  EXPECT_EQ(snapshot->owner_by_load("k", loads), 1 - owner);
}

}  // namespace
}  // namespace ringshift::topology
