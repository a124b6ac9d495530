// The spec after a verb, and the state that goes with it.
#include "plan/edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ringshift/diff.h"

namespace ringshift::plan {
namespace {

using testing::HasSubstr;
using topology::Member;
using topology::Spec;

Spec of(const std::string& algorithm, std::size_t count) {
  Spec spec;
  spec.cluster = "cache";
  spec.placement.algorithm = algorithm;
  if (algorithm == "slots") spec.placement.hash = "crc16", spec.placement.hash_tag = "{}";
  for (std::size_t i = 1; i <= count; ++i) {
    spec.members.push_back(
        {"cache-" + std::to_string(i), "127.0.0.1:" + std::to_string(7000 + i), 1, "", "", ""});
    if (algorithm == "tokens") spec.placement.tokens[spec.members.back().id] = {(i - 1) << 62};
  }
  return spec;
}

const Member kFifth{"cache-5", "127.0.0.1:7005", 1, "b", "", ""};

double moved(const Spec& from, const Spec& to) {
  const auto diff = topology::diff(from, to);
  EXPECT_TRUE(diff) << (diff ? "" : diff.error().message);
  return diff ? diff->moved_share : -1;
}

TEST(Edit, AddRemoveAndWeight) {
  const Spec four = of("ring", 4);
  const auto next = edit(four, {{kFifth}, {"cache-2"}, {{"cache-1", 3}}});
  ASSERT_TRUE(next) << next.error().message;
  ASSERT_EQ(next->members.size(), 4U);
  EXPECT_EQ(next->members[0].weight, 3);
  EXPECT_EQ(next->members[1].id, "cache-3");
  EXPECT_EQ(next->members[3], kFifth);
  EXPECT_EQ(four.members.size(), 4U);
}

TEST(Edit, SaysWhatThereIs) {
  const Spec four = of("ring", 4);
  const auto unknown = edit(four, {{}, {"cache-9"}, {}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::not_found);
  EXPECT_THAT(unknown.error().message,
              HasSubstr("no member 'cache-9': its members are cache-1, cache-2, cache-3, cache-4"));
  const auto weight = edit(four, {{}, {}, {{"cache-0", 2}}});
  ASSERT_FALSE(weight);
  EXPECT_THAT(weight.error().message, HasSubstr("'cache-0'"));
  Member again = kFifth;
  again.id = "cache-3";
  const auto exists = edit(four, {{again}, {}, {}});
  ASSERT_FALSE(exists);
  EXPECT_THAT(exists.error().message, HasSubstr("'cache-3' exists already (127.0.0.1:7003"));
  const auto twice = edit(four, {{}, {"cache-1", "cache-1"}, {}});
  EXPECT_FALSE(twice);
}

TEST(Edit, WhatComesOutIsValid) {
  const Spec two = of("ring", 2);
  EXPECT_FALSE(edit(two, {{}, {"cache-1", "cache-2"}, {}})) << "none is left";
  const auto weightless = edit(two, {{}, {}, {{"cache-1", 0}}});
  ASSERT_FALSE(weightless);
  EXPECT_THAT(weightless.error().message, HasSubstr("members[0].weight"));
  Member same_place = kFifth;
  same_place.address = "127.0.0.1:7001";
  EXPECT_FALSE(edit(two, {{same_place}, {}, {}})) << "two members of one address";
  Member nowhere = kFifth;
  nowhere.address = "nowhere";
  EXPECT_FALSE(edit(two, {{nowhere}, {}, {}}));
}

TEST(Edit, ManyMembersAreNotAllNamed) {
  const auto unknown = edit(of("ring", 100), {{}, {"x"}, {}});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("and 88 more"));
}

class Stateful : public testing::TestWithParam<const char*> {};

TEST_P(Stateful, AMemberMoreMovesNoMoreThanItsPart) {
  const Spec four = of(GetParam(), 4);
  const auto five = edit(four, {{kFifth}, {}, {}});
  ASSERT_TRUE(five) << five.error().message;
  // A new token takes half of the widest gap, here a quarter of the circle.
  EXPECT_NEAR(moved(four, *five), GetParam() == std::string("tokens") ? 0.125 : 0.2, 0.005);
  const auto back = edit(*five, {{}, {"cache-5"}, {}});
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_NEAR(moved(*five, *back), topology::shares(*five)->shares.back(), 0.005);
}

INSTANTIATE_TEST_SUITE_P(All, Stateful, testing::Values("partitions", "slots", "memento", "tokens"));

TEST(Successor, AFileWithoutAStateGetsTheOneInForce) {
  for (const char* algorithm : {"partitions", "slots"}) {
    const Spec four = of(algorithm, 4), plain = of(algorithm, 5);
    EXPECT_GT(moved(four, plain), 0.4) << algorithm << ": cut anew, far more moves";
    const auto next = successor(four, plain);
    ASSERT_TRUE(next) << next.error().message;
    EXPECT_NEAR(moved(four, *next), 0.2, 0.005) << algorithm;
    // The same file once more, and the next one: from the table in force, not from the members' order.
    const auto again = successor(*next, plain);
    ASSERT_TRUE(again);
    EXPECT_EQ(moved(*next, *again), 0) << algorithm;
  }
}

TEST(Successor, AStateThatTheFileBringsStays) {
  const Spec four = of("partitions", 4);
  Spec next = of("partitions", 5);
  next.placement.table = {{0, 1019, "cache-1"},
                          {1020, 1020, "cache-2"},
                          {1021, 1021, "cache-3"},
                          {1022, 1022, "cache-4"},
                          {1023, 1023, "cache-5"}};
  const auto same = successor(four, next);
  ASSERT_TRUE(same);
  EXPECT_EQ(*same, next);
}

TEST(Successor, NothingToCarryLeavesTheSpecAsItIs) {
  for (const char* algorithm : {"ring", "jump", "modulo", "partitions", "slots", "memento"}) {
    Spec four = of(algorithm, 4), zoned = four;
    zoned.members[0].zone = "b";
    EXPECT_EQ(*successor(four, zoned), zoned) << algorithm;
  }
  EXPECT_EQ(*successor(of("ring", 4), of("partitions", 5)), of("partitions", 5));
  Spec finer = of("partitions", 5);
  finer.placement.partitions = 2048;
  EXPECT_EQ(*successor(of("partitions", 4), finer), finer) << "another number of partitions was asked for";
}

}  // namespace
}  // namespace ringshift::plan
