// What an agent says, and when it changes its mind.
#include "agent/record.h"

#include <gtest/gtest.h>

namespace ringshift::agent {
namespace {

TEST(Judge, TheFirstLookCountsAndThenItTakesSeveralInARow) {
  Judge judge(2, 3);
  EXPECT_FALSE(judge.add(false));
  EXPECT_FALSE(judge.add(true));
  EXPECT_TRUE(judge.add(true));
  EXPECT_TRUE(judge.add(false));
  EXPECT_TRUE(judge.add(false));
  EXPECT_TRUE(judge.add(true)) << "not in a row";
  EXPECT_TRUE(judge.add(false));
  EXPECT_TRUE(judge.add(false));
  EXPECT_FALSE(judge.add(false));
}

TEST(Quiet, WantsTwoLooksWithoutACommandOrARouter) {
  Health health;
  health.counted = true;
  health.router_connections = 3;
  Quiet busy;
  for (int i = 0; i < 10; ++i) {
    health.commands += 1;
    EXPECT_FALSE(busy.add(health));
  }
  EXPECT_FALSE(busy.add(health));
  EXPECT_TRUE(busy.add(health));
  Quiet left;
  health.router_connections = 0;
  EXPECT_FALSE(left.add(health));
  health.commands += 100;  // Somebody else's.
  EXPECT_FALSE(left.add(health));
  EXPECT_TRUE(left.add(health));
}

TEST(Quiet, AServerThatDoesNotAnswerMayBeInUse) {
  const Health silent;
  Quiet hung;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(hung.add(silent)) << "it hangs, or a script runs";
  Health idle;
  idle.counted = true;
  idle.commands = 7;
  idle.router_connections = 2;
  EXPECT_FALSE(hung.add(idle)) << "nobody knows what was before";
  EXPECT_FALSE(hung.add(idle));
  EXPECT_FALSE(hung.add(silent));
  EXPECT_FALSE(hung.add(idle));
  EXPECT_FALSE(hung.add(idle));
  EXPECT_TRUE(hung.add(idle));
  Health absent;
  absent.absent = true;
  Quiet gone;
  EXPECT_FALSE(gone.add(absent));
  EXPECT_TRUE(gone.add(absent)) << "it is not there";
}

TEST(Record, SaysNothingOfWeightOrZoneAndCutsLongReasons) {
  Record record;
  record.id = "cache-1";
  record.labels = {{"rack", "r7"}};
  record.reason = std::string(5000, 'x');
  const std::string json = to_json(record);
  EXPECT_TRUE(json.contains(R"("labels":{"rack":"r7"})"));
  EXPECT_FALSE(json.contains("weight"));
  EXPECT_FALSE(json.contains("zone"));
  EXPECT_LT(json.size(), 1000U);
}

}  // namespace
}  // namespace ringshift::agent
