// Who is admitted and who leaves: a table of cases, and a property over random days.
#include "membership/policy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace ringshift::membership {
namespace {

using discovery::Instance;
using discovery::InstanceState;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using topology::DiscoverySpec;
using topology::Member;
using topology::Spec;

// A cluster whose policy is asked once a second, and whose resizes are over at once.
struct Day {
  DiscoverySpec discovery;
  Spec spec;
  std::vector<Instance> instances;
  std::set<std::string> drained;
  bool resizing = false, source_well = true;
  Memory memory;
  base::TimePoint at{};
  std::vector<std::string> changes;  // "+id" and "-id".

  explicit Day(int members) {
    spec.cluster = "cache";
    discovery.admit_auto = true;
    discovery.cooldown = minutes(1);
    discovery.remove = {.after = minutes(10), .at_most = 1, .floor = 2};
    for (int i = 1; i <= members; ++i) {
      spec.members.push_back(member(i));
      instances.push_back(instance(i));
    }
  }
  static Member member(int i) {
    Member out;
    out.id = "cache-" + std::to_string(i);
    out.address = "10.0.0." + std::to_string(i) + ":6379";
    return out;
  }
  static Instance instance(int i, InstanceState state = InstanceState::ready) {
    return {member(i).id, member(i).address, "redis", state, {}};
  }
  void set(int i, std::optional<InstanceState> state) {
    std::erase_if(instances, [&](const Instance& one) { return one.id == member(i).id; });
    if (!state) return;
    instances.push_back(instance(i, *state));
    std::ranges::sort(instances, {}, &Instance::id);
  }
  Decision look() { return decide({discovery, spec, resizing, source_well, instances, drained}, at, memory); }
  Decision pass(base::Duration time, base::Duration step = seconds(1)) {
    Decision last;
    for (const base::TimePoint end = at + time; at < end;) {
      at += step;
      last = look();
      if (last.admit) {
        spec.members.push_back(*last.admit);
        changes.push_back("+" + last.admit->id);
      } else if (last.remove) {
        std::erase_if(spec.members, [&](const Member& one) { return one.id == *last.remove; });
        changes.push_back("-" + *last.remove);
      } else {
        continue;
      }
      changed(memory, last.admit ? last.admit->id : *last.remove, true);
    }
    return last;
  }
};

using Changes = std::vector<std::string>;

TEST(Policy, AdmitsOneAtATimeWithACoolDownBetween) {
  Day day(3);
  for (int i : {4, 5}) day.set(i, InstanceState::ready);
  day.pass(seconds(59));
  EXPECT_EQ(day.changes, Changes{}) << "a new leader rests first";
  day.pass(seconds(30));
  EXPECT_EQ(day.changes, Changes{"+cache-4"});
  day.pass(minutes(2));
  EXPECT_EQ(day.changes, (Changes{"+cache-4", "+cache-5"}));
}

TEST(Policy, WhoIsRefusedDoesNotStandInTheWay) {
  Day day(3);
  day.discovery.cooldown = seconds(1);
  day.discovery.remove = {.after = seconds(5), .at_most = 2, .floor = 1};
  for (int i : {4, 5, 6}) day.set(i, InstanceState::ready);
  std::string asked;
  const auto ask = [&](bool all_the_time) {  // Everybody is refused.
    for (int second = 0; second < 120; ++second) {
      day.at += seconds(1);
      if (all_the_time) day.set(4, second % 20 == 0 ? std::nullopt : std::optional(InstanceState::ready));
      const Decision now = day.look();
      if (!now.admit && !now.remove) continue;
      const std::string id = now.admit ? now.admit->id : *now.remove;
      asked += id.back();
      changed(day.memory, id, false);
    }
  };
  ask(false);
  EXPECT_TRUE(asked.starts_with("456456")) << asked;
  EXPECT_EQ(day.look().candidates.size(), 3U);
  asked.clear();
  ask(true);  // One that comes back every now and then is no newcomer.
  EXPECT_FALSE(asked.contains("44")) << asked;
  EXPECT_GE(std::ranges::count(asked, '6'), std::ranges::count(asked, '4')) << asked;
  for (int i : {4, 5, 6, 1, 2}) day.set(i, std::nullopt);
  asked.clear();
  ask(false);
  EXPECT_TRUE(asked.starts_with("1212")) << asked;
}

TEST(Policy, ManualShowsAndAdmitsNobody) {
  Day day(3);
  day.discovery.admit_auto = false;
  day.set(4, InstanceState::ready);
  const Decision last = day.pass(hours(1));
  EXPECT_EQ(day.changes, Changes{});
  ASSERT_EQ(last.candidates.size(), 1U);
  EXPECT_EQ(last.candidates[0].why_not, "");
  EXPECT_TRUE(last.candidates[0].waits_for.contains("member admit"));
}

TEST(Policy, WhoDoesNotFitIsShownWithTheReason) {
  Day day(2);
  day.discovery.match = {.ids = {"cache-*"}, .addresses = {"10.0.0.0/24"}, .name_space = ""};
  day.spec.retired = {"cache-9"};
  Instance foreign = Day::instance(3), far = Day::instance(4), memcached = Day::instance(5),
           retired = Day::instance(9), same = Day::instance(6), odd = Day::instance(7),
           spelt = Day::instance(8);
  foreign.id = "intruder";
  far.address = "10.0.1.4:6379";
  memcached.protocol = "memcached";
  same.address = Day::member(1).address;
  odd.id = "cache-7/../spec";
  spelt.address = "10.0.0.1:06379";
  struct Case {
    Instance instance;
    std::string why, code;
  };
  for (const auto& [instance, why, code] : {Case{foreign, "match.ids", "id_no_match"},
                                            {far, "match.addresses", "address_no_match"},
                                            {memcached, "speaks memcached", "protocol"},
                                            {retired, "retired", "retired"},
                                            {same, "has its address", "address_taken"},
                                            {spelt, "has its address", "address_taken"},
                                            {odd, "no name", "id_invalid"}}) {
    Day one = day;
    one.instances.push_back(instance);
    const Decision last = one.pass(minutes(5));
    EXPECT_EQ(one.changes, Changes{}) << instance.id;
    ASSERT_EQ(last.candidates.size(), 1U);
    EXPECT_TRUE(last.candidates[0].why_not.contains(why)) << last.candidates[0].why_not;
    EXPECT_EQ(last.candidates[0].code, code);
  }
}

TEST(Policy, WeightAndZoneAreTheOperatorsAlone) {
  Day day(2);
  day.discovery.assign = {{.ids = "cache-3", .weight = 2.0, .zone = "a", .host = "", .label = "", .as = ""},
                          {.ids = "*", .weight = 5.0, .zone = "", .host = "", .label = "rack", .as = "zone"}};
  Instance three = Day::instance(3), four = Day::instance(4);
  three.labels = four.labels = {{"zone", "evil"}, {"weight", "100"}, {"rack", "r7"}};
  const Member third = as_member(day.discovery, three), fourth = as_member(day.discovery, four);
  EXPECT_EQ(third.weight, 2.0);
  EXPECT_EQ(third.zone, "a");
  EXPECT_EQ(fourth.weight, 5.0);
  EXPECT_EQ(fourth.zone, "r7");
  EXPECT_EQ(as_member({}, three).zone, "");
  EXPECT_EQ(as_member({}, three).weight, 1.0);
}

TEST(Policy, AVanishedOneLeavesAfterItsTimeAndNotBefore) {
  Day day(4);
  day.pass(minutes(5));
  day.set(2, std::nullopt);
  day.pass(minutes(10));
  EXPECT_EQ(day.changes, Changes{});
  day.pass(seconds(5));
  EXPECT_EQ(day.changes, Changes{"-cache-2"});
}

TEST(Policy, UnhealthyCountsAsGoneAndComingBackBeginsAnew) {
  Day day(4);
  day.pass(minutes(5));
  day.set(2, InstanceState::unhealthy);
  day.pass(minutes(9));
  day.set(2, InstanceState::ready);
  day.pass(seconds(1));
  day.set(2, std::nullopt);
  day.pass(minutes(9));
  EXPECT_EQ(day.changes, Changes{});
}

// What operators are told of one that is gone: the reason's word, and when it leaves.
TEST(Policy, SaysWhenAMemberThatIsGoneLeaves) {
  Day day(4);
  day.pass(minutes(5));
  day.set(2, std::nullopt);
  Gone gone = day.pass(minutes(4)).gone.at(0);  // Seen gone after the first of its seconds.
  EXPECT_EQ(gone.code, "counting");
  ASSERT_TRUE(gone.leaves_in);
  EXPECT_EQ(*gone.leaves_in, minutes(6) + seconds(1));
  day.discovery.cooldown = hours(1);  // 9 minutes of it are over.
  gone = day.pass(seconds(1)).gone.at(0);
  EXPECT_EQ(*gone.leaves_in, minutes(51));
  EXPECT_EQ(day.pass(minutes(7)).gone.at(0).code, "cooldown");
  day.resizing = true;
  gone = day.pass(seconds(1)).gone.at(0);
  EXPECT_EQ(gone.code, "resize");
  EXPECT_FALSE(gone.leaves_in) << "nobody knows how long a resize takes";
  day.resizing = false;
  day.discovery.remove.floor = 4;
  gone = day.pass(seconds(1)).gone.at(0);
  EXPECT_EQ(gone.code, "floor");
  EXPECT_FALSE(gone.leaves_in);
  day.discovery.remove.after = seconds(0);
  EXPECT_EQ(day.pass(seconds(1)).gone.at(0).code, "never");
}

TEST(Policy, TellsWhatCandidatesWaitForInAWord) {
  Day day(3);
  for (int i : {4, 5}) day.set(i, InstanceState::ready);
  Decision last = day.pass(seconds(30));
  EXPECT_EQ(last.candidates.at(0).code, "cooldown");
  EXPECT_EQ(last.cooldown_left, seconds(31));  // The first look counts nothing.
  day.set(5, InstanceState::unhealthy);
  day.drained = {"cache-4"};
  last = day.pass(seconds(1));
  EXPECT_EQ(last.candidates.at(0).code, "drained");
  EXPECT_EQ(last.candidates.at(1).code, "not_ready");
  day.discovery.admit_auto = false;
  EXPECT_EQ(day.pass(seconds(1)).candidates.at(0).code, "operator");
}

TEST(Policy, AnInstanceAtAnotherAddressIsToldAndChangesNothing) {
  Day day(3);
  day.instances.at(1).address = "10.9.9.9:6379";
  const Decision last = day.pass(hours(1));
  EXPECT_EQ(day.changes, Changes{});
  EXPECT_EQ(last.elsewhere, (std::vector<Elsewhere>{{"cache-2", "10.0.0.2:6379", "10.9.9.9:6379"}}));
  EXPECT_TRUE(last.gone.empty());
}

TEST(Policy, MoreGoneThanAtMostHoldsThemAll) {
  Day day(5);
  day.pass(minutes(5));
  for (int i : {2, 3}) day.set(i, std::nullopt);
  const Decision last = day.pass(hours(10));
  EXPECT_EQ(day.changes, Changes{});
  ASSERT_EQ(last.gone.size(), 2U);
  EXPECT_TRUE(last.gone[0].waits_for.contains("at_most"));
  EXPECT_EQ(last.gone[0].code, "too_many");
  EXPECT_FALSE(last.gone[0].leaves_in);
  day.instances.clear();  // An empty list.
  day.pass(hours(10));
  EXPECT_EQ(day.changes, Changes{});
}

TEST(Policy, TheFloorHolds) {
  Day day(2);
  day.pass(minutes(5));
  day.set(2, std::nullopt);
  day.pass(hours(10));
  EXPECT_EQ(day.changes, Changes{});
}

TEST(Policy, WhoNeverRegisteredIsNotGone) {
  Day day(4);
  day.set(3, std::nullopt);
  day.pass(hours(10));
  EXPECT_EQ(day.changes, Changes{});
}

TEST(Policy, ASourceInTroubleStopsEverythingAndItsTimeDoesNotCount) {
  Day day(4);
  day.pass(minutes(5));
  day.set(2, std::nullopt);
  day.set(6, InstanceState::ready);
  day.pass(minutes(9));
  day.source_well = false;
  day.pass(hours(5));
  day.source_well = true;
  day.pass(minutes(9));
  EXPECT_EQ(day.changes, Changes{});
}

TEST(Policy, NobodyJoinsWhileAMemberIsGone) {
  Day day(4);
  day.pass(minutes(5));
  day.set(2, std::nullopt);
  day.pass(seconds(2));
  day.set(6, InstanceState::ready);
  day.pass(minutes(5));
  EXPECT_EQ(day.changes, Changes{});
}

TEST(Policy, ADrainedOneStaysOutUntilTheMarkIsGone) {
  Day day(3);
  day.drained = {"cache-4"};
  day.set(4, InstanceState::ready);
  day.pass(hours(1));
  EXPECT_EQ(day.changes, Changes{});
  day.drained.clear();
  day.pass(minutes(2));
  EXPECT_EQ(day.changes, Changes{"+cache-4"});
}

TEST(Policy, NothingWhileAResizeRunsAndACoolDownAfterIt) {
  Day day(3);
  day.set(4, InstanceState::ready);
  day.resizing = true;
  day.pass(hours(1));
  day.resizing = false;
  day.pass(seconds(59));
  EXPECT_EQ(day.changes, Changes{});
  day.pass(seconds(5));
  EXPECT_EQ(day.changes, Changes{"+cache-4"});
}

TEST(Policy, JumpsOfTheClockChangeNothing) {
  Day day(4);
  day.pass(minutes(5));
  day.set(2, std::nullopt);
  day.set(6, InstanceState::ready);
  for (int i = 0; i < 5; ++i) {
    day.at += hours(24);  // Also a controller that was stopped for a day.
    day.pass(seconds(1));
    day.at -= hours(12);
    day.pass(seconds(1));
  }
  EXPECT_EQ(day.changes, Changes{});
}

TEST(Policy, FlappingChangesNothing) {
  Day day(4);
  day.pass(minutes(5));
  for (int i = 0; i < 3600; ++i) {
    const auto state = i % 3 == 0 ? std::optional(InstanceState::ready) : std::nullopt;
    day.set(2, state);
    day.set(6, state);
    day.pass(std::chrono::milliseconds(200), std::chrono::milliseconds(200));
  }
  EXPECT_EQ(day.changes, Changes{});
}

using Ids = std::set<std::string>;

TEST(Ejection, AtOnceAndBackWhenSteady) {
  Day day(4);
  day.spec.consistency = topology::Consistency::none;
  day.pass(seconds(5));
  day.set(3, InstanceState::unhealthy);
  EXPECT_EQ(day.pass(seconds(1)).ejected, Ids{"cache-3"});
  day.set(3, InstanceState::ready);
  EXPECT_EQ(day.pass(seconds(9)).ejected, Ids{"cache-3"}) << "not steady yet";
  EXPECT_EQ(day.pass(seconds(3)).ejected, Ids{});
  for (int i = 0; i < 100; ++i) {  // Five times a second.
    day.set(3, i % 2 == 0 ? std::optional<InstanceState>() : std::optional(InstanceState::ready));
    EXPECT_EQ(day.pass(std::chrono::milliseconds(200), std::chrono::milliseconds(200)).ejected,
              Ids{"cache-3"});
  }
}

TEST(Ejection, OnlyWhereItMayAndWasAskedFor) {
  using topology::Consistency;
  for (const auto consistency : {Consistency::strict, Consistency::cache, Consistency::none}) {
    for (const std::optional<bool> said :
         {std::optional<bool>(), std::optional(false), std::optional(true)}) {
      Day day(4);
      day.spec.consistency = consistency;
      day.discovery.eject = said;
      day.pass(seconds(1));
      day.set(3, std::nullopt);
      const bool out = consistency != Consistency::strict && said.value_or(consistency == Consistency::none);
      EXPECT_EQ(day.pass(seconds(2)).ejected, out ? Ids{"cache-3"} : Ids{});
    }
  }
}

TEST(Ejection, HasABoundAndAFloor) {
  Day day(4);
  day.spec.consistency = topology::Consistency::none;
  day.pass(seconds(5));
  day.set(1, std::nullopt);
  EXPECT_EQ(day.pass(seconds(1)).ejected, Ids{"cache-1"});
  day.set(2, std::nullopt);
  EXPECT_EQ(day.pass(seconds(1)).ejected, Ids{"cache-1"}) << "two at once are more than at_most";
  day.discovery.remove.at_most = 4;
  day.set(3, std::nullopt);
  EXPECT_EQ(day.pass(seconds(1)).ejected, (Ids{"cache-1", "cache-2"})) << "the floor is 2";
}

TEST(Ejection, StaysAsItIsWhileTheSourceIsInTrouble) {
  Day day(4);
  day.spec.consistency = topology::Consistency::none;
  day.pass(seconds(5));
  day.set(3, std::nullopt);
  day.pass(seconds(1));
  day.source_well = false;
  day.set(4, std::nullopt);
  day.set(3, InstanceState::ready);
  EXPECT_EQ(day.pass(minutes(5)).ejected, Ids{"cache-3"});
  Memory next;  // The next leader's.
  next.ejected = day.memory.ejected, next.seen = day.memory.seen;
  day.memory = next;
  EXPECT_EQ(day.pass(minutes(5)).ejected, Ids{"cache-3"});
  day.discovery.eject = false;
  EXPECT_EQ(day.look().ejected, Ids{});
}

// Whatever happens on a day: one change at a time and a cool-down between; only who was gone for all of
// `after` leaves, alone, and above the floor; only who matches and is ready joins.
RC_GTEST_PROP(PolicyProperty, KeepsItsPromisesOnAnyDay, ()) {
  Day day(*rc::gen::inRange(2, 7));
  day.discovery.match.ids = {"cache-?"};
  day.discovery.match.addresses = {"10.0.0.0/28"};
  day.discovery.cooldown = seconds(*rc::gen::inRange(1, 120));
  day.discovery.remove.after = seconds(*rc::gen::inRange(1, 300));
  day.discovery.remove.at_most = *rc::gen::inRange(1U, 3U);
  day.discovery.remove.floor = *rc::gen::inRange(1U, 5U);
  day.spec.consistency = *rc::gen::element(topology::Consistency::strict, topology::Consistency::none);
  Ids ejected;
  std::map<int, base::Duration> not_ready;  // Watched time, of a tick each.
  base::Duration since_change{0};
  const int ticks = *rc::gen::inRange(50, 800);
  for (int i = 0; i < ticks; ++i) {
    if (*rc::gen::inRange(0, 12) == 0) {
      const int who = *rc::gen::inRange(1, 20);
      const int what = *rc::gen::inRange(0, 4);
      day.set(who, what == 0   ? std::optional<InstanceState>()
                   : what == 1 ? std::optional(InstanceState::unhealthy)
                               : std::optional(InstanceState::ready));
    }
    if (*rc::gen::inRange(0, 60) == 0) day.source_well = !day.source_well;
    if (*rc::gen::inRange(0, 60) == 0) day.resizing = !day.resizing;
    const base::Duration step = seconds(*rc::gen::element(1, 1, 2, 5, 86'400));
    const base::Duration counts = std::min<base::Duration>(step, kLongestLook);
    day.at += step;
    since_change += counts;
    if (day.resizing) since_change = base::Duration{0};
    std::size_t gone = 0;
    for (int who = 1; who < 20; ++who) {
      const auto found = std::ranges::find(day.instances, Day::member(who).id, &Instance::id);
      const bool ready = found != day.instances.end() && found->state == InstanceState::ready;
      not_ready[who] = ready || !day.source_well ? base::Duration{0} : not_ready[who] + counts;
      const bool is_member =
          std::ranges::find(day.spec.members, Day::member(who).id, &Member::id) != day.spec.members.end();
      gone += is_member && !ready && day.memory.seen.contains(Day::member(who).id) ? 1 : 0;
    }
    const Decision decision = day.look();
    const auto known = [](const std::string& code, const std::string& text) {
      return code.empty() == text.empty() &&
             (code.empty() || std::ranges::find(kReasonCodes, code) != std::end(kReasonCodes));
    };
    for (const Candidate& one : decision.candidates) RC_ASSERT(known(one.code, one.waits_for));
    for (const Gone& one : decision.gone) RC_ASSERT(known(one.code, one.waits_for));
    for (const std::string& id : decision.ejected) {
      RC_ASSERT(day.spec.consistency == topology::Consistency::none);
      RC_ASSERT(day.memory.seen.contains(id));
      if (ejected.contains(id)) continue;
      RC_ASSERT(day.source_well && gone <= day.discovery.remove.at_most &&
                not_ready[std::stoi(id.substr(6))] >= counts);
      RC_ASSERT(decision.ejected.size() + day.discovery.remove.floor <= day.spec.members.size());
    }
    ejected = decision.ejected;
    RC_ASSERT(!(decision.admit && decision.remove));
    if (!decision.admit && !decision.remove) continue;
    RC_ASSERT(day.source_well);
    RC_ASSERT(!day.resizing);
    RC_ASSERT(since_change >= day.discovery.cooldown);
    if (decision.remove) {
      const int who = std::stoi(decision.remove->substr(6));
      RC_ASSERT(not_ready[who] >= day.discovery.remove.after);
      RC_ASSERT(gone <= day.discovery.remove.at_most);
      RC_ASSERT(day.spec.members.size() > day.discovery.remove.floor);
      std::erase_if(day.spec.members, [&](const Member& one) { return one.id == *decision.remove; });
    } else {
      const int who = std::stoi(decision.admit->id.substr(6));
      RC_ASSERT(who < 10);  // "cache-?", and 10.0.0.0/28 besides.
      RC_ASSERT(not_ready[who] == base::Duration{0});
      day.spec.members.push_back(*decision.admit);
    }
    changed(day.memory, decision.remove ? *decision.remove : decision.admit->id, true);
    since_change = base::Duration{0};
  }
}

}  // namespace
}  // namespace ringshift::membership
