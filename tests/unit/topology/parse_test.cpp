// Specs and topologies from text: what is accepted, and what a person is told when it is not.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ringshift/topology.h"
#include "topology/validate.h"

namespace ringshift::topology {
namespace {

using testing::HasSubstr;

constexpr std::string_view kFour = R"(cluster: cache
protocol: redis                # redis | memcached
placement: {algorithm: ring, hash: xxh3, points: 256, hash_tag: "{}"}
consistency: strict
members:
  - {id: cache-1, address: 10.0.0.1:6379, weight: 1.0, zone: a, host: rack7-3}
  - {id: cache-2, address: 10.0.0.2:6379, weight: 2.0, zone: b, label: "srv2"}
  - {id: cache-3, address: "[fe80::1]:6379"}
  - {id: cache-4, address: "unix:/run/redis.sock"}
retired: [cache-0]
limits: {move_keys_per_second: 5000, move_bytes_per_second: 50MiB, move_batch_keys: 10}
)";

TEST(Limits, TheMoversNewOnesAreReadAndLeftOutWhereTheyAreAsByDefault) {
  constexpr std::string_view kSpec = R"(
cluster: c
members: [{id: a, address: "h:1"}]
limits: {move_batches_in_flight: 5, move_batches_in_all: 9, move_memory_bytes: 64MiB, move_latency_ms: 0,
         origin_misses_per_second: 800, big_key_bytes: 2MiB}
)";
  const auto spec = parse_spec(kSpec, "test");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->limits.move_batches_in_flight, 5U);
  EXPECT_EQ(spec->limits.move_batches_in_all, 9U);
  EXPECT_EQ(spec->limits.move_memory_bytes, 64U << 20);
  EXPECT_EQ(spec->limits.move_latency_ms, 0U);
  EXPECT_EQ(spec->limits.origin_misses_per_second, 800U);
  EXPECT_EQ(spec->limits.big_key_bytes, 2U << 20);
  const auto again = parse_spec(to_json(*spec), "test");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->limits, spec->limits);
  Spec plain = *spec;
  plain.limits = {};
  for (const char* name : {"in_flight", "in_all", "memory", "latency", "origin", "big_key"})
    EXPECT_FALSE(to_json(plain).contains(name)) << "older programs would refuse it";
  const auto refused = [&](std::string_view limit, std::string_view why) {
    const auto bad = parse_spec(
        fmt::format("cluster: c\nmembers: [{{id: a, address: 'h:1'}}]\nlimits: {{{}}}", limit), "t");
    ASSERT_FALSE(bad);
    EXPECT_TRUE(bad.error().message.contains(why)) << bad.error().message;
  };
  refused("move_batches_in_flight: 17", "17 is more than 16");
  refused("move_batches_in_all: 0", "0 would never finish");
  refused("big_key_bytes: 0", "0 would never finish");
}

TEST(ParseSpec, TheExampleOfTheDesign) {
  const auto spec = parse_spec(kFour, "four.yaml");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->cluster, "cache");
  EXPECT_EQ(spec->placement.hash_tag, "{}");
  ASSERT_EQ(spec->members.size(), 4U);
  EXPECT_EQ(spec->members[0], (Member{"cache-1", "10.0.0.1:6379", 1.0, "a", "rack7-3", ""}));
  EXPECT_EQ(spec->members[1].label, "srv2");
  EXPECT_EQ(spec->retired, std::vector<std::string>{"cache-0"});
  EXPECT_EQ(spec->limits.move_bytes_per_second, 52'428'800U);
}

TEST(ParseSpec, DefaultsFollowTheProtocolAndTheAlgorithm) {
  const auto spec = parse_spec(
      "{cluster: c, protocol: memcached, placement: {algorithm: slots}, members: [{id: a, address: 'h:1'}]}",
      "x");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->consistency, Consistency::cache);
  EXPECT_EQ(spec->placement.hash, "crc16");
  EXPECT_EQ(spec->placement.hash_tag, "{}");
}

TEST(ParseSpec, CanonicalJsonIsASpecToo) {
  const auto spec = parse_spec(kFour, "four.yaml");
  const auto again = parse_spec(to_json(*spec), "json");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *spec);
  EXPECT_EQ(to_json(*again), to_json(*spec));
}

TEST(Address, HasOneSpelling) {
  const struct {
    std::string_view address, canonical;
  } cases[] = {{"10.0.0.1:6379", "10.0.0.1:6379"},
               {"10.0.0.1:06379", "10.0.0.1:6379"},
               {"Cache-1.Example.COM.:6379", "cache-1.example.com:6379"},
               {"[0:0:0:0:0:0:0:1]:6379", "[::1]:6379"},
               {"[FD00::A]:1", "[fd00::a]:1"},
               {"unix:/run/Redis.sock", "unix:/run/Redis.sock"}};
  for (const auto& one : cases) EXPECT_EQ(canonical_address(one.address), one.canonical);
}

// The spec above with `from` replaced by `to`, and what the error must contain.
struct Wrong {
  std::string_view from, to, message;
};
constexpr Wrong kWrong[] = {
    {"id: cache-2", "id: cache-1", "s.yaml:7: members[1].id: 'cache-1' is the id of members[0] already"},
    {"10.0.0.2:6379", "10.0.0.1:6379",
     "s.yaml:7: members[1].address: '10.0.0.1:6379' is the address of 'cache-1'"},
    {"10.0.0.2:6379", "10.0.0.1:06379",
     "s.yaml:7: members[1].address: '10.0.0.1:06379' is the address of 'cache-1'"},
    {"10.0.0.2:6379", "'[::::]:6379'", "has no IPv6 address between [ and ]"},
    {"weight: 2.0", "weight: -2", "s.yaml:7: members[1].weight: -2 "},
    {"weight: 2.0", "weight: 0", "give a number above 0"},
    {"weight: 2.0", "weight: 1e9", "at most 10000"},
    {"weight: 2.0", "weight: .nan", "'.nan' is not a number"},
    {"weight: 2.0", "weight: nan", "weight: nan "},
    {"weight: 2.0", "weight: \"2\"", "remove the quotes"},
    {"weight: 2.0", "weight: 0.0001", "rounds to none"},
    {"weight: 2.0", "wieght: 2.0", "s.yaml:7: members[1]: unknown field 'wieght': did you mean 'weight'?"},
    {"algorithm: ring", "algorithm: rnig",
     "s.yaml:3: placement.algorithm: 'rnig' is not one of ring, modulo, slots, "},
    {"algorithm: ring", "algorithm: rnig", ": did you mean 'ring'?"},
    {"algorithm: ring", "algorithm: chord", "'chord' is not one of ring, modulo, slots"},
    {"hash: xxh3", "hash: sha3", "placement.hash: 'sha3' does not go with ring: its hash is one of xxh3"},
    {"points: 256", "points: 4000000000", "placement.points: 4000000000 is not from 1 to 65536"},
    {"points: 256", "points: 99999999999", "not a whole number from 0 to 4294967295"},
    {"points: 256", "points: 0", "placement.points: 0 is not from 1"},
    {"weight: 2.0", "weight: 9999", "members[1]"},  // Skewed, but legal: see below.
    {"\"{}\"", "\"{\"", "placement.hash_tag: '{' is not a hash tag"},
    {"[cache-0]", "[cache-2]", "members[1].id: 'cache-2' is retired"},
    {"50MiB", "50Mb", "limits.move_bytes_per_second: '50Mb' is not a size"},
    {"50MiB", "0", "limits.move_bytes_per_second: 0 would never finish"},
    {"10.0.0.2:6379", "10.0.0.2", "'10.0.0.2' has no port"},
    {"10.0.0.2:6379", "10.0.0.2:70000", "no port from 1 to 65535"},
    {"10.0.0.2:6379", "':6379'", "has no host"},
    {"10.0.0.2:6379", "'fe80::1:6379'", "without [ and ]"},
    {"10.0.0.2:6379", "'unix:run'", "no absolute path"},
    {"protocol: redis", "protocol: memcached", "consistency: strict needs protocol redis"},
    {"cluster: cache", "cluster: ca/che", "s.yaml:1: cluster: 'ca/che' has characters other than"},
    {"cluster: cache", "", "the field 'cluster' is missing"},
    {"cluster: cache", "cluster: &a cache", "s.yaml:1: anchors (&) and aliases (*) are not supported"},
    {"cluster: cache", "cluster: cache\ncluster: cache", "s.yaml:2: the field 'cluster' appears twice"},
    {"cluster: cache", "cluster: [", "s.yaml:"},
    {"cluster: cache", "cluster: [cache]", "s.yaml:1: cluster: a list where a single value belongs"},
};

std::string replaced(const Wrong& wrong) {
  std::string text(kFour);
  const auto at = text.find(wrong.from);
  EXPECT_NE(at, std::string::npos) << wrong.from;
  return text.replace(at, wrong.from.size(), wrong.to);
}

TEST(ParseSpec, ErrorsNameThePlaceTheValueAndTheFix) {
  for (const Wrong& wrong : kWrong) {
    const auto spec = parse_spec(replaced(wrong), "s.yaml");
    if (wrong.to == "weight: 9999") {
      ASSERT_TRUE(spec) << spec.error().message;
      EXPECT_THAT(warnings(*spec), testing::Contains(HasSubstr("'cache-2' has weight 9999")));
      continue;
    }
    ASSERT_FALSE(spec) << wrong.to;
    EXPECT_EQ(spec.error().kind, ErrorKind::invalid);
    EXPECT_THAT(spec.error().message, HasSubstr(std::string(wrong.message))) << wrong.to;
  }
}

std::string slots_spec(std::string_view slots) {
  return "cluster: c\nplacement: {algorithm: slots, slots: [" + std::string(slots) +
         "]}\nmembers: [{id: a, address: 'h:1'}, {id: b, address: 'h:2'}]\n";
}

TEST(ParseSpec, SlotTables) {
  EXPECT_TRUE(
      parse_spec(slots_spec("{first: 0, last: 99, member: b}, {first: 100, last: 16383, member: a}"), "x"));
  const std::pair<std::string_view, std::string_view> wrong[] = {
      {"{first: 0, last: 99, member: b}, {first: 200, last: 16383, member: a}",
       "slots 100-199 belong to nobody"},
      {"{first: 0, last: 99, member: b}, {first: 99, last: 16383, member: a}",
       "slot 99 is in placement.slots[0] already"},
      {"{first: 0, last: 16383, member: c}", "'c' is not a member"},
      {"{first: 9, last: 8, member: a}", "9-8 is not a range of slots"},
      {"{first: 0, last: 16384, member: a}", "0-16384 is not a range of slots"},
      {"{first: 0, last: 16383}", "the field 'member' is missing"},
  };
  for (const auto& [slots, message] : wrong) {
    const auto spec = parse_spec(slots_spec(slots), "x");
    ASSERT_FALSE(spec) << slots;
    EXPECT_THAT(spec.error().message, HasSubstr(std::string(message)));
  }
}

TEST(ParseSpec, HostileTextsAreBounded) {
  const std::string deep(100'000, '[');
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'j'; ++c) {
    bomb += std::string(1, c) + ": &" + c + " [" + "*" + static_cast<char>(c - 1) + ", *" +
            static_cast<char>(c - 1) + "]\n";
  }
  std::string many = "cluster: c\nmembers:\n";
  for (int i = 0; i < 20'000; ++i) many += "- {id: m" + std::to_string(i) + ", address: 'h:1'}\n";
  const std::pair<std::string, std::string_view> hostile[] = {
      {"a: " + deep + std::string(deep.size(), ']'), "nested more than 16 levels deep"},
      {"{\"a\": " + deep + std::string(deep.size(), ']') + "}", "nested more than 16 levels deep"},
      {deep, "x:1: "},
      {bomb, "anchors"},
      {std::string(100U << 20, 'x'), "more than the 8388608 allowed"},
      {many, "20000 members are more than the 16384"},
      {std::string("\0\xff\xfe\x01", 4), "x:"},
      {"", "the text is empty"},
      {"a: b\n---\nc: d\n", "a second document"},
  };
  for (const auto& [text, message] : hostile) {
    const auto spec = parse_spec(text, "x");
    ASSERT_FALSE(spec) << message;
    EXPECT_THAT(spec.error().message, HasSubstr(std::string(message)));
  }
}

TEST(Succession, RetiredIdsAndVanishingMembers) {
  const Spec current = *parse_spec(kFour, "four.yaml");
  Spec next = current;
  next.retired.clear();
  next.members[0].id = "cache-0";
  EXPECT_THAT(check_succession(current, next, true).error().message, HasSubstr("'cache-0' is retired"));
  next = current;
  next.members.resize(2);
  EXPECT_TRUE(check_succession(current, next, false)) << "half may go";
  next.members.resize(1);
  EXPECT_THAT(check_succession(current, next, false).error().message, HasSubstr("3 of 4 members vanish"));
  EXPECT_TRUE(check_succession(current, next, true));
  next = current;
  next.cluster = "other";
  EXPECT_FALSE(check_succession(current, next, true));
}

// Members that exchange their addresses own what they owned, and have the data of the other.
TEST(Succession, AServerKeepsItsId) {
  const Spec current = *parse_spec(kFour, "four.yaml");
  Spec next = current;
  std::swap(next.members[0].address, next.members[1].address);
  const Status refused = check_succession(current, next, false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("is the address of '" + current.members[1].id + "' now"));
  EXPECT_TRUE(check_succession(current, next, true));
  next = current;
  next.members[0].address = "127.0.0.1:65000";
  EXPECT_TRUE(check_succession(current, next, false)) << "a server may move";
}

Topology growing() {
  Topology topology;
  topology.spec = *parse_spec(kFour, "four.yaml");
  topology.fence = {3, 9, {{"cache-1", "0a1b"}}};
  Resize resize;
  resize.id = "r-1";
  resize.placement = topology.spec.placement;
  resize.members = topology.spec.members;
  resize.members.push_back({"cache-5", "10.0.0.5:6379", 1.5, "", "", ""});
  resize.phase = Phase::dual;
  resize.read_order = ReadOrder::new_first;
  resize.done = {{0, 10}, {20, 30}};
  resize.active = {{10, 20}};
  topology.resize = resize;
  return topology;
}

TEST(ParseTopology, RoundTripsExactly) {
  const Topology topology = growing();
  const auto again = parse_topology(to_json(topology), "registry");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, topology);
  EXPECT_EQ(to_json(*again), to_json(topology));
  EXPECT_EQ(digest(*again), digest(topology));
  EXPECT_EQ(to_json(topology).find("lost"), std::string::npos) << "routers of before the field still obey";
  Topology lost = topology;
  lost.resize->lost = {"cache-1", "cache-5"};
  EXPECT_EQ(*parse_topology(to_json(lost), "registry"), lost);
  EXPECT_NE(digest(lost), digest(topology));
  Topology other = topology;
  other.fence.step += 1;
  EXPECT_NE(digest(other), digest(topology));
  EXPECT_EQ(digest(topology).size(), 64U);
}

TEST(ParseTopology, RefusesWhatRoutersCannotObey) {
  using Change = void (*)(Topology&);
  const std::pair<Change, std::string_view> wrong[] = {
      {[](Topology& t) { t.resize->lost = {"cache-9"}; }, "resize.lost[0]"},
      {[](Topology& t) {
         t.resize->lost = {"cache-5", "cache-1"};
       },
       "resize.lost[1]"},
      {[](Topology& t) {
         t.resize->lost = {"cache-1", "cache-1"};
       },
       "resize.lost[1]"},
      {[](Topology& t) { t.resize->members[0].address = "h:1"; },
       "a member keeps its address while a resize runs"},
      {[](Topology& t) { t.resize->members[4].address = "10.0.0.1:6379"; },
       "is the address of 'cache-1' (resize.members[0]) already"},
      {[](Topology& t) {
         t.resize->members = {{"new", "10.0.0.1:6379", 1, "", "", ""}};
       },
       "before the resize: a server keeps its id"},
      {[](Topology& t) {
         t.resize->active = {{9, 20}};
       },
       "a slice is in done too"},
      {[](Topology& t) {
         t.resize->done = {{0, 10}, {10, 12}};
       },
       "do not touch"},
      {[](Topology& t) {
         t.resize->done = {{0, 1025}};
       },
       "whole number from 0 to 1024"},
      {[](Topology& t) { t.resize->members[4].id = "cache-0"; },
       "resize.members[4].id: 'cache-0' is retired"},
      {[](Topology& t) { t.resize->members.clear(); }, "resize.members: the list is empty"},
      {[](Topology& t) { t.factors["cache-1"] = 500; }, "consistency strict takes no factors"},
      {[](Topology& t) {
         t.spec.consistency = Consistency::cache;
         t.factors["gone"] = 5;
       },
       "factors.gone: not a member"},
      {[](Topology& t) {
         t.spec.consistency = Consistency::cache;
         t.factors["cache-1"] = 1000;
       },
       "from 0 to 999"},
  };
  for (const auto& [change, message] : wrong) {
    Topology topology = growing();
    change(topology);
    const auto parsed = parse_topology(to_json(topology), "registry");
    ASSERT_FALSE(parsed) << message;
    EXPECT_THAT(parsed.error().message, HasSubstr(std::string(message)));
  }
  EXPECT_THAT(parse_topology("{\"spec\":", "registry").error().message, HasSubstr("registry: not JSON"));
  EXPECT_THAT(parse_topology("{}", "registry").error().message, HasSubstr("'spec' is missing"));
}

TEST(Slices, Sets) {
  const SliceSet set = unite({{5, 7}, {0, 2}}, {{7, 9}, {1, 3}, {4, 4}});
  EXPECT_EQ(set, (SliceSet{{0, 3}, {5, 9}}));
  EXPECT_EQ(count(set), 7U);
  for (std::uint32_t slice = 0; slice < 12; ++slice)
    EXPECT_EQ(contains(set, slice), slice < 3 || (slice >= 5 && slice < 9)) << slice;
  EXPECT_FALSE(contains({}, 0));
}

}  // namespace
}  // namespace ringshift::topology
