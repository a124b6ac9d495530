// What the guard lets through, and when: the rules by a clock of ours, the thread by a real one.
#include "discovery/guard.h"

#include <gtest/gtest.h>

#include "tests/unit/discovery/collect.h"

namespace ringshift::discovery {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct GuardRulesTest : testing::Test {
  base::TimePoint now{seconds(1000)};
  GuardRules rules{seconds(30)};
  std::vector<Instance> four = list_of({"a", "b", "c", "d"});

  void pass(milliseconds time) { now += time; }
  // What came through by now, looking as often as anybody could.
  std::vector<std::vector<Instance>> run(milliseconds time) {
    std::vector<std::vector<Instance>> passed;
    for (milliseconds done{0}; done < time; done += milliseconds(10)) {
      pass(milliseconds(10));
      if (auto list = rules.take(now)) passed.push_back(*std::move(list));
    }
    return passed;
  }
  void stand(const std::vector<Instance>& all) {
    rules.saw(all, now);
    ASSERT_EQ(run(seconds(2)).size(), 1U);
  }
};

TEST_F(GuardRulesTest, AFirstListPassesAfterTheQuiet) {
  rules.saw(four, now);
  EXPECT_FALSE(rules.take(now));
  EXPECT_EQ(rules.due(), now + GuardRules::kQuiet);
  pass(GuardRules::kQuiet);
  EXPECT_EQ(rules.take(now), four);
  EXPECT_FALSE(rules.due());
  EXPECT_EQ(rules.age(now), base::Duration{0});
}

TEST_F(GuardRulesTest, EqualListsAreDropped) {
  stand(four);
  rules.saw(four, now);
  EXPECT_TRUE(run(seconds(5)).empty());
  EXPECT_EQ(rules.equal, 1U);
}

TEST_F(GuardRulesTest, ABurstIsOneUpdateAndALongOneWaitsNoLongerThanTheWindow) {
  stand(four);
  pass(seconds(5));
  auto all = four;
  std::size_t passed = 0;
  base::TimePoint first = now, last = now;
  for (int i = 0; i < 30; ++i) {  // Every 50 ms, for 1.5 s: never quiet.
    all[0].labels["n"] = std::to_string(i);
    rules.saw(all, now);
    for (int step = 0; step < 5; ++step) {
      pass(milliseconds(10));
      if (rules.take(now)) {
        ++passed;
        last = now;
      }
    }
  }
  EXPECT_EQ(passed, 1U);
  EXPECT_LE(last - first, GuardRules::kWindow + milliseconds(10));
  EXPECT_EQ(run(seconds(2)).size(), 1U);
}

TEST_F(GuardRulesTest, FlappingAtFiveHertzGivesAtMostOneUpdateAWindow) {
  stand(four);
  const auto three = list_of({"a", "b", "c"});
  std::size_t passed = 0;
  const int flaps = 50;  // Ten seconds.
  for (int i = 0; i < flaps; ++i) {
    rules.saw(i % 2 == 0 ? three : four, now);
    passed += run(milliseconds(200)).size();
  }
  EXPECT_LE(passed, 11U);
  EXPECT_GE(passed, 1U);
}

TEST_F(GuardRulesTest, WhatIsBackWithinTheWindowCausesNothing) {
  stand(four);
  rules.saw(list_of({"a", "b", "c"}), now);
  EXPECT_TRUE(run(milliseconds(50)).empty());
  rules.saw(four, now);
  EXPECT_TRUE(run(seconds(5)).empty());
}

TEST_F(GuardRulesTest, AnEmptyListIsHeldUntilItStayedSo) {
  stand(four);
  rules.saw({}, now);
  ASSERT_TRUE(rules.held());
  EXPECT_EQ(rules.held()->missing.size(), 4U);
  EXPECT_TRUE(run(seconds(29)).empty());
  EXPECT_EQ(rules.size(), 4U);
  EXPECT_GE(rules.age(now), base::Duration(seconds(29)));
  rules.saw({}, now);  // Seen again, unchanged.
  const auto passed = run(seconds(2));
  ASSERT_EQ(passed.size(), 1U);
  EXPECT_TRUE(passed[0].empty());
}

TEST_F(GuardRulesTest, AnEmptyListIsHeldAtTheStartToo) {
  rules.saw({}, now);
  EXPECT_TRUE(rules.held());
  EXPECT_TRUE(run(seconds(29)).empty());
  EXPECT_EQ(run(seconds(2)).size(), 1U);
}

TEST_F(GuardRulesTest, MoreThanHalfGoneIsHeldAndHalfIsNot) {
  stand(four);
  rules.saw(list_of({"a"}), now);
  EXPECT_TRUE(rules.held());
  rules.saw(list_of({"a", "b"}), now);
  EXPECT_FALSE(rules.held());
  EXPECT_EQ(run(seconds(2)).size(), 1U);
}

TEST_F(GuardRulesTest, OthersInTheirPlaceAreMoreThanHalfGone) {
  stand(four);
  rules.saw(list_of({"e", "f", "g", "h"}), now);
  EXPECT_TRUE(rules.held());
}

TEST_F(GuardRulesTest, AHeldListThatChangesBeginsAgain) {
  stand(four);
  rules.saw({}, now);
  EXPECT_TRUE(run(seconds(20)).empty());
  rules.saw(list_of({"a"}), now);
  EXPECT_TRUE(run(seconds(20)).empty());
  const auto passed = run(seconds(11));
  ASSERT_EQ(passed.size(), 1U);
  EXPECT_EQ(passed[0].size(), 1U);
}

TEST_F(GuardRulesTest, ASourceInTroubleConfirmsNothing) {
  stand(four);
  rules.saw({}, now);
  EXPECT_TRUE(run(seconds(20)).empty());
  rules.troubled(now);
  EXPECT_TRUE(run(seconds(3600)).empty());
  rules.saw({}, now);  // The trouble is over: from here on it counts.
  EXPECT_TRUE(run(seconds(29)).empty());
  EXPECT_EQ(run(seconds(2)).size(), 1U);
}

TEST_F(GuardRulesTest, APlausibleListEndsTheHold) {
  stand(four);
  rules.saw({}, now);
  EXPECT_TRUE(run(seconds(10)).empty());
  rules.saw(four, now);
  EXPECT_FALSE(rules.held());
  EXPECT_TRUE(run(seconds(60)).empty());
  EXPECT_EQ(rules.age(now), base::Duration{0});
}

TEST_F(GuardRulesTest, AnOperatorsWordLetsItPass) {
  stand(four);
  EXPECT_FALSE(rules.confirm(now));
  rules.saw({}, now);
  EXPECT_TRUE(run(seconds(5)).empty());
  EXPECT_TRUE(rules.confirm(now));
  EXPECT_EQ(run(seconds(1)).size(), 1U);
}

TEST_F(GuardRulesTest, AFirstListIsHeldToWhatIsExpected) {
  GuardRules half(seconds(30), {"a", "b", "c", "d", "e"});
  half.saw(list_of({"a", "z"}), now);
  ASSERT_TRUE(half.held());
  EXPECT_EQ(half.held()->text(), "shows 2 instances, without 4 of the 5 before (b, c, d, e)");
  EXPECT_FALSE(half.take(now + seconds(29)));
  EXPECT_TRUE(half.take(now + seconds(30))) << "it stayed so";
  half.saw(list_of({"a"}), now + seconds(40));
  EXPECT_FALSE(half.held()) << "what is expected counts before the first list alone";

  GuardRules most(seconds(30), {"a", "b", "c", "d"});
  most.saw(list_of({"a", "b"}), now);
  EXPECT_TRUE(most.take(now + seconds(1)));
}

TEST_F(GuardRulesTest, WhatIsHeldNamesWhoIsMissing) {
  std::vector<std::string> ids;
  for (char c = 'a'; c <= 'z'; ++c) ids.emplace_back(1, c);
  GuardRules many(seconds(30), ids);
  many.saw(list_of({"a"}), now);
  EXPECT_EQ(many.held()->text(),
            "shows 1 instance, without 25 of the 26 before (b, c, d, e, f, g, h, i, ...)");
  GuardRules none(seconds(30));
  none.saw({}, now);
  EXPECT_EQ(none.held()->text(), "shows 0 instances");
}

TEST_F(GuardRulesTest, TheAgeIsThatOfTheTrouble) {
  EXPECT_FALSE(rules.age(now));
  stand(four);
  pass(seconds(100));
  EXPECT_EQ(rules.age(now), base::Duration{0});
  rules.troubled(now);
  pass(seconds(100));
  rules.troubled(now);
  EXPECT_EQ(rules.age(now), base::Duration(seconds(100)));
  rules.saw(four, now);
  EXPECT_EQ(rules.age(now), base::Duration{0});
}

TEST(Guard, PassesListsAndTroubleOnFromAThreadOfItsOwn) {
  Collect sink;
  Guard guard(sink, seconds(3600));
  const auto four = list_of({"a", "b", "c", "d"});
  guard.instances(four);
  ASSERT_TRUE(sink.wait([&] { return sink.lists().size() == 1; }));
  EXPECT_EQ(sink.lists()[0], four);
  guard.trouble({ErrorKind::retryable, "away"});
  ASSERT_TRUE(sink.wait([&] { return sink.troubles().size() == 1; }));
  EXPECT_EQ(guard.state().trouble, "away");
  guard.instances({});
  ASSERT_TRUE(sink.wait([&] { return sink.troubles().size() == 2; }));  // That it is held.
  EXPECT_NE(sink.troubles()[1].message.find("0 instances, without 4 of the 4 before (a, b, c, d)"),
            std::string::npos)
      << sink.troubles()[1].message;
  EXPECT_TRUE(guard.state().held);
  EXPECT_TRUE(guard.confirm());
  ASSERT_TRUE(sink.wait([&] { return sink.lists().size() == 2; }));
  EXPECT_TRUE(sink.lists()[1].empty());
  EXPECT_FALSE(guard.state().held);
  EXPECT_EQ(guard.state().passed, 2U);
}

}  // namespace
}  // namespace ringshift::discovery
