// Entries of the log come back as they were written, in the order of resizes, and nonsense is left out.
#include "resize/decisions.h"

#include <gtest/gtest.h>

namespace ringshift::resize {
namespace {

TEST(Decisions, ComeBackEqual) {
  for (const Decision& one : {Decision{1, "end", "all \"well\" \xc3\xa9", "ann@host"}, Decision{}}) {
    const Result<Decision> back = parse_decision(to_json(one));
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, one);
  }
  EXPECT_TRUE(parse_decision(to_json(Decision{1, "error", "-ERR \xff", ""}))) << "members' errors are bytes";
  for (const char* bad : {"", "[]", "{", R"({"at_ms":"now"})"}) EXPECT_FALSE(parse_decision(bad)) << bad;
}

TEST(Decisions, KeysAndTheirOrder) {
  const coord::ClusterKeys keys("default", "cache");
  EXPECT_EQ(decision_key(keys, "3-17", 4), "/ringshift/default/cache/log/3-17/000004");
  const DecisionPlace place = place_of_decision(keys, decision_key(keys, "3-17", 123));
  EXPECT_EQ(place.resize_id, "3-17");
  EXPECT_EQ(place.number, 123U);
  for (const char* other : {"/ringshift/default/cache/status", "/ringshift/default/cache/log/3-17",
                            "/ringshift/default/cache/log/3-17/x"})
    EXPECT_EQ(place_of_decision(keys, other).resize_id, "") << other;
  std::vector<coord::KeyValue> kvs;
  for (const char* id : {"12-1", "3-17"}) {
    for (int i = 0; i < 2; ++i) {
      kvs.push_back({decision_key(keys, id, static_cast<std::uint64_t>(i)),
                     to_json(Decision{i, "phase", id, ""}), 0, 0, 0, 0});
    }
  }
  kvs.push_back({decision_key(keys, "3-17", 9), "nonsense", 0, 0, 0, 0});
  const LoggedResizes logged = read_decisions(keys, kvs);
  ASSERT_EQ(logged.size(), 2U);
  EXPECT_EQ(logged.begin()->first, "3-17") << "by the epoch, not by letters";
  EXPECT_EQ(logged.begin()->second.size(), 2U);
}

}  // namespace
}  // namespace ringshift::resize
