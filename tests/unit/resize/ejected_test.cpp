// What the controller makes of members that the membership policy has ejected: factors, and only where and
// while they may be.
#include "coord/ejected.h"

#include "tests/unit/resize/controller_world.h"

namespace ringshift::resize {
namespace {

using Factors = std::map<std::string, std::uint32_t>;

class Ejected : public ControllerTest {
 protected:
  void start_with(topology::Consistency consistency) {
    topology::Spec both = spec({"a", "b"});
    both.consistency = consistency;
    put(keys_.spec(), topology::to_json(both));
    start_controller();
    ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  }
  void eject(const std::set<std::string>& ids) { put(coord::ejected_key(keys_), coord::ejected_json(ids)); }
  bool wait_factors(const Factors& wanted) {
    return wait([&] { return topology() && topology()->factors == wanted; }, milliseconds(5000));
  }
};

TEST_F(Ejected, TakesNoKeyUntilItIsBack) {
  start_with(topology::Consistency::none);
  eject({"b", "nobody"});
  ASSERT_TRUE(wait_factors({{"b", 0}}));
  const auto snapshot = *topology::Snapshot::compile(*topology(), {1, 1});
  for (int i = 0; i < kKeys; ++i)
    EXPECT_EQ(snapshot->members()[snapshot->route(fmt::format("k{}", i)).member].id, "a");
  eject({"a", "b"});  // Somebody must take them: nobody is out.
  ASSERT_TRUE(wait_factors({}));
  eject({"a"});
  ASSERT_TRUE(wait_factors({{"a", 0}}));
  put(coord::ejected_key(keys_), "not a list");
  ASSERT_TRUE(wait_factors({}));
  eject({"b"});
  ASSERT_TRUE(wait_factors({{"b", 0}}));
  ASSERT_TRUE(coordinator_->remove(coord::ejected_key(keys_)));
  EXPECT_TRUE(wait_factors({}));
}

TEST_F(Ejected, ASpecWithoutItsMemberTakesTheFactorAlong) {
  start_with(topology::Consistency::none);
  eject({"b"});
  ASSERT_TRUE(wait_factors({{"b", 0}}));
  topology::Spec one = spec({"a"});
  one.consistency = topology::Consistency::none;
  put(keys_.spec(), topology::to_json(one));
  ASSERT_TRUE(wait([&] { return topology() && topology()->spec.members.size() == 1; }));
  EXPECT_EQ(topology()->factors, Factors{});
}

TEST_F(Ejected, NeverWhereConsistencyIsStrict) {
  start_with(topology::Consistency::strict);
  eject({"b"});
  EXPECT_FALSE(wait([&] { return !topology()->factors.empty(); }, milliseconds(1000)));
}

TEST_F(Ejected, NotWhileAResizeRuns) {
  put(keys_.spec(), [&] {
    topology::Spec one = spec({"a"});
    one.consistency = topology::Consistency::cache;
    one.members.push_back(spec({"b"}).members.front());
    return topology::to_json(one);
  }());
  start_controller();
  start_router();
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  eject({"b"});
  ASSERT_TRUE(wait_factors({{"b", 0}}));
  topology::Spec heavier = topology()->spec;
  heavier.members.back().weight = 3;
  ASSERT_EQ(start(heavier), "");
  ASSERT_TRUE(wait([&] { return topology() && !topology()->resize && topology()->spec == heavier; }));
  for (const topology::Topology& one : history()) {
    if (one.resize) {
      EXPECT_EQ(one.factors, Factors{});
    }
  }
  EXPECT_TRUE(wait_factors({{"b", 0}}));
}

}  // namespace
}  // namespace ringshift::resize
