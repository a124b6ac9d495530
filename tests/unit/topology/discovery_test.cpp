// The spec's `discovery`: read, refused, written again; and its patterns.
#include "topology/discovery.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ringshift/topology.h"
#include "topology/discovery_match.h"

namespace ringshift::topology {
namespace {

std::string spec_with_discovery(std::string_view discovery) {
  return fmt::format("cluster: c\nmembers: [{{id: a, address: 'h:1'}}]\ndiscovery: {}\n", discovery);
}

TEST(Discovery, IsReadAndWrittenAgain) {
  const auto spec = discovery_of_spec(
      spec_with_discovery(
          "{source: {kind: consul, url: 'http://127.0.0.1:8500', service: cache}, admit: auto, "
          "match: {ids: ['cache-*'], addresses: ['10.0.0.0/8', '*.cache.internal'], namespace: prod}, "
          "assign: [{ids: 'cache-a*', weight: 2, zone: a}, {label: zone, as: zone}], "
          "cooldown: 90s, remove: {after: 10m, at_most: 2, floor: 3}, eject: false}"),
      "t");
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_TRUE(*spec);
  const DiscoverySpec& found = **spec;
  EXPECT_EQ(found.source.kind, "consul");
  EXPECT_EQ(found.source.text("service"), "cache");
  EXPECT_TRUE(found.admit_auto);
  EXPECT_EQ(found.match.name_space, "prod");
  EXPECT_EQ(found.assign.at(0).weight, 2.0);
  EXPECT_FALSE(found.assign.at(1).weight);
  EXPECT_EQ(found.assign.at(1).as, "zone");
  EXPECT_EQ(found.cooldown, std::chrono::seconds(90));
  EXPECT_EQ(found.remove, (DiscoveryRemove{std::chrono::minutes(10), 2, 3}));
  EXPECT_EQ(found.eject, false);
  const auto again = parse_discovery(to_json(found), "t");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, found);
}

TEST(Discovery, DefaultsAreCautiousAndASpecWithoutItSaysNothingOfIt) {
  const auto spec = discovery_of_spec(spec_with_discovery("{source: {kind: registry}}"), "t");
  ASSERT_TRUE(spec && *spec);
  EXPECT_FALSE((*spec)->admit_auto);
  EXPECT_EQ((*spec)->cooldown, std::chrono::minutes(10));
  EXPECT_EQ((*spec)->remove.after.count(), 0) << "nobody leaves by himself";
  EXPECT_FALSE((*spec)->eject);
  const auto none = discovery_of_spec("cluster: c\nmembers: [{id: a, address: 'h:1'}]", "t");
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST(Discovery, IsNotWhatRoutersCompile) {
  const auto with = parse_spec(spec_with_discovery("{source: {kind: registry}}"), "t");
  const auto without = parse_spec("cluster: c\nmembers: [{id: a, address: 'h:1'}]", "t");
  ASSERT_TRUE(with && without);
  EXPECT_EQ(to_json(*with), to_json(*without));
}

TEST(Discovery, WhatIsWrongIsNamedWithItsPlace) {
  const auto refused = [](std::string_view discovery, std::string_view why) {
    const auto bad = parse_spec(spec_with_discovery(discovery), "t");
    ASSERT_FALSE(bad) << discovery;
    EXPECT_TRUE(bad.error().message.contains(why)) << bad.error().message;
  };
  refused("{admit: auto}", "'source' is missing");
  refused("{source: {kind: zookeeper}}", "discovery.source.kind");
  refused("{source: {kind: consul, servce: x}}", "did you mean 'service'");
  refused("{source: {kind: registry}, admit: always}", "discovery.admit");
  refused("{source: {kind: registry}, cooldown: 10}", "discovery.cooldown: '10' is no duration");
  refused("{source: {kind: registry}, match: {addresses: ['10.0.0.0/33']}}", "discovery.match.addresses[0]");
  refused("{source: {kind: registry}, match: {addresses: ['10.*']}}", "neither a network");
  refused("{source: {kind: registry}, assign: [{label: weight, as: weight}]}", "neither zone nor host");
  refused("{source: {kind: registry}, assign: [{ids: 'a*'}]}", "assigns nothing");
  refused("{source: {kind: registry}, assign: [{weight: 0}]}", "not a weight");
  refused("{source: {kind: registry}, remove: {after: 1m, at_most: 0}}", "would never remove");
  refused("{source: {kind: registry}, remove: {floor: 0}}", "at least 1 member");
  refused("{source: {kind: registry}, eject: true}", "discovery.eject: consistency strict ejects nobody");
  refused("{source: {kind: registry}, eject: perhaps}", "discovery.eject");
}

TEST(Discovery, PatternsOfIds) {
  for (const auto& [pattern, text, fits] :
       std::initializer_list<std::tuple<std::string_view, std::string_view, bool>>{
           {"*", "", true},
           {"cache-*", "cache-1", true},
           {"cache-*", "cache", false},
           {"cache-?", "cache-10", false},
           {"*-1", "cache-1-1", true},
           {"a*b*c", "aXbYbZc", true},
           {"a*b*c", "aXbYbZ", false},
           {"", "a", false},
           {"cache-1", "cache-1", true},
           {"cache-1", "Cache-1", false}}) {
    EXPECT_EQ(fits_pattern(pattern, text), fits) << pattern << " " << text;
  }
}

TEST(Discovery, RangesOfAddresses) {
  for (const auto& [range, address, fits] :
       std::initializer_list<std::tuple<std::string_view, std::string_view, bool>>{
           {"10.0.0.0/8", "10.255.0.1:6379", true},
           {"10.0.0.0/8", "11.0.0.1:6379", false},
           {"10.0.0.0/8", "10.evil.example:6379", false},
           {"10.0.0.128/25", "10.0.0.127:1", false},
           {"10.0.0.128/25", "10.0.0.200:1", true},
           {"10.1.2.3", "10.1.2.3:6379", true},
           {"10.1.2.3", "10.1.2.30:6379", false},
           {"0.0.0.0/0", "1.2.3.4:5", true},
           {"0.0.0.0/0", "[::1]:5", false},
           {"fd00::/8", "[fd12::1]:6379", true},
           {"fd00::/8", "[fe80::1]:6379", false},
           {"*.cache.internal", "n1.cache.internal:6379", true},
           {"*.cache.internal", "cache.internal.evil:6379", false},
           {"*", "127.0.0.1:1", false},
           {"unix:/run/*", "unix:/run/redis.sock", true},
           {"10.0.0.0/8", "unix:/run/redis.sock", false}}) {
    EXPECT_EQ(fits_address(range, address), fits) << range << " " << address;
  }
}

}  // namespace
}  // namespace ringshift::topology
