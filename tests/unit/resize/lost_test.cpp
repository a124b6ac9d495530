// Members that are gone for good: what a resize can do without, in which steps, and what it refuses.
#include "resize/lost.h"

#include "controller_world.h"
#include "resize/origin.h"
#include "resize/phases.h"

namespace ringshift::resize {
namespace {

using topology::SliceSet;

topology::Spec spec_of(std::initializer_list<const char*> ids) {
  topology::Spec out;
  out.cluster = "test";
  for (const char* id : ids) {
    topology::Member member;
    member.id = id;
    member.address = fmt::format("127.0.0.1:{}", 7000 + id[0]);
    out.members.push_back(member);
  }
  return out;
}

topology::Topology resizing(std::initializer_list<const char*> from, std::initializer_list<const char*> to) {
  topology::Topology topology;
  topology.spec = spec_of(from);
  return begin(topology, spec_of(to), "r", {});
}

TEST(Lost, WhatAMemberOnlyGivesCanBeDoneWithout) {
  const topology::Topology out = resizing({"a", "b", "c"}, {"a", "b"});
  EXPECT_TRUE(check_forward(out, {"c"}));
  EXPECT_FALSE(check_back(out, {"c"}, true)) << "its keys would have to go back to it";
  EXPECT_TRUE(check_back(out, {"c"}, false)) << "nothing has moved";
  EXPECT_FALSE(check_forward(out, {"a"})) << "keys of c are to come to it";
  EXPECT_TRUE(check_back(out, {"a"}, true));
  const topology::Topology in = resizing({"a", "b"}, {"a", "b", "c"});
  const Status joining = check_forward(in, {"c"});
  ASSERT_FALSE(joining);
  EXPECT_TRUE(joining.error().message.contains("without c")) << joining.error().message;
  EXPECT_TRUE(check_back(in, {"c"}, true));
  EXPECT_TRUE(check_forward(in, {"b"})) << "one that stays and only gives";
  EXPECT_FALSE(check_back(in, {"b"}, true));
  EXPECT_TRUE(check_forward(resizing({"a", "b"}, {"a", "c"}), {"b"})) << "replaced by another";
}

TEST(Lost, NothingIsAskedOfThem) {
  topology::Topology topology = resizing({"a", "b", "c"}, {"a", "c", "d"});
  EXPECT_EQ(living_members(topology).size(), 4U);
  topology.resize->lost = {"b", "d"};
  std::string ids;
  for (const auto& member : living_members(topology)) ids += member.id;
  EXPECT_EQ(ids, "ac");
  EXPECT_TRUE(is_lost(topology, "b"));
  EXPECT_FALSE(is_lost(topology, "a"));
  topology.resize.reset();
  EXPECT_FALSE(is_lost(topology, "b"));
  EXPECT_EQ(living_members(topology).size(), 3U);
}

TEST(Lost, StepsThatAreLeftBecomeSmall) {
  const std::vector<double> fresh = finer_steps({}, {});
  ASSERT_TRUE(check_steps(fresh));
  EXPECT_EQ(fresh.size(), 100U);
  const std::vector<double> rest = finer_steps({1, 10, 50, 100}, slices_of_step({50, 100}, 0));
  ASSERT_TRUE(check_steps(rest));
  ASSERT_EQ(rest.size(), 53U);
  EXPECT_EQ(rest[2], 50);
  EXPECT_EQ(rest[3], 51);
  EXPECT_EQ(next_step(rest, slices_of_step({50, 100}, 0)), 3U)
      << "those that had their turn stay as they were";
  for (const double first : {1.0, 33.0, 95.0, 99.0}) {  // Shares that are no whole number of slices.
    const auto some = finer_steps({first, 100}, slices_of_step({first, 100}, 0));
    ASSERT_TRUE(check_steps(some));
    EXPECT_EQ(some.size(), static_cast<std::size_t>(101 - first)) << first;
  }
  EXPECT_EQ(finer_steps({30, 100}, {{0, 1024}}), (std::vector<double>{30, 100}));
  // A hundred steps, and every slice has its turn in one of them.
  SliceSet all;
  for (std::size_t i = 0; i < fresh.size(); ++i) all = topology::unite(all, slices_of_step(fresh, i));
  EXPECT_EQ(topology::count(all), topology::kSliceCount);
}

TEST(OriginMeter, MissesASecondOverAWindow) {
  OriginMeter meter(milliseconds(2500));
  const OriginMeter::TimePoint start{};
  const auto at = [&](int ms) { return start + milliseconds(ms); };
  std::uint64_t misses = 1000000;  // From before: not ours.
  for (int ms = 0; ms <= 6000; ms += 100, misses += 50) {
    meter.add({{"r1", misses}, {"r2", 7}}, at(ms));
    if (ms < 2500) {
      EXPECT_FALSE(meter.rate(at(ms), start)) << ms;
    }
  }
  ASSERT_TRUE(meter.rate(at(6000), start));
  EXPECT_NEAR(*meter.rate(at(6000), start), 500, 25);
  EXPECT_FALSE(meter.rate(at(6000), at(4000))) << "a whole window since the last step";
  meter.add({{"r1", 3}}, at(6100));  // It started anew, and the other one left.
  for (int ms = 6200; ms <= 9000; ms += 100) meter.add({{"r1", 3}}, at(ms));
  EXPECT_EQ(*meter.rate(at(9000), start), 0);
}

// a and b hold the cluster; b is killed. c is there to take its place.
class LostMember : public ControllerTest {
 protected:
  topology::Spec of(std::initializer_list<const char*> ids, std::uint64_t keys_per_second = 1000000) {
    topology::Spec out = spec(ids, keys_per_second);
    for (topology::Member& member : out.members) {
      if (member.id == "c") member.address = c_.address();
    }
    return out;
  }
  RedisProcess& server(const std::string& id) { return id == "a" ? a_ : id == "b" ? b_ : c_; }

  // Every key where the topology of now has it.
  void begin_with(std::initializer_list<const char*> ids) {
    put(keys_.spec(), topology::to_json(of(ids)));
    start_quick_controller();
    ASSERT_TRUE(wait([&] { return topology().has_value(); }));
    const auto snapshot = *topology::Snapshot::compile(*topology(), {1, 1});
    std::map<std::string, std::unique_ptr<backend::SyncClient>> clients;
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = fmt::format("k{}", i);
      const std::string id = snapshot->members()[snapshot->route(key).member].id;
      owner_[key] = id;
      auto& client = clients[id];
      if (client == nullptr) client = connection(server(id), "rs:test");
      ASSERT_TRUE(client->call({"SET", key, "v" + key}));
    }
  }
  // A router whose clients miss as often as `misses_per_report_` says, ten times a second.
  void start_missing_router() {
    auto link = coord::RouterLink::start(*coordinator_, keys_,
                                         {.router_id = "good", .report_interval = milliseconds(100)},
                                         milliseconds(5000));
    ASSERT_TRUE(link);
    coord::RouterLink* raw = link->get();
    (*link)->set_hooks(
        {[raw] { raw->applied(raw->holder()->load()->version); },
         [this](coord::RouterRecord& record) { record.misses = total_misses_ += misses_per_report_; }});
    router_ = std::move(*link);
  }
  std::string start_without(std::vector<std::string> lost, const topology::Spec& target,
                            std::vector<double> steps, std::uint64_t budget = 0) {
    Request request;
    request.spec = target;
    request.steps = std::move(steps);
    request.allow_foreign = request.force = true;
    request.lost = std::move(lost);
    request.origin_budget = budget;
    return ask(request);
  }
  void start_quick_controller() {
    ControllerOptions options;
    options.id = fmt::format("controller-{}", ++controllers_);
    options.fence_timeout = milliseconds(300);
    options.origin_window = milliseconds(500);
    controller_ = std::make_unique<Controller>(*coordinator_, keys_, options);
  }
  std::string lose(const char* id) {
    Request request;
    request.action = Request::Action::lost;
    request.lost = {id};
    return ask(request);
  }
  // Keys that were at one of `survivors` are where the topology has them; all others are nowhere.
  void expect_keys_of(const std::set<std::string>& survivors) {
    const auto now = topology();
    ASSERT_TRUE(now && !now->resize);
    const auto snapshot = *topology::Snapshot::compile(*now, {1, 1});
    for (const auto& [key, owner] : owner_) {
      const std::string& id = snapshot->members()[snapshot->route(key).member].id;
      const auto found = connection(server(id), "rs:test")->call({"GET", key});
      ASSERT_TRUE(found);
      EXPECT_EQ(found->text, survivors.contains(owner) ? "v" + key : "") << key << " of " << owner;
    }
  }

  RedisProcess c_;
  std::map<std::string, std::string> owner_;
  std::atomic<std::uint64_t> misses_per_report_{0}, total_misses_{0};
};

TEST_F(LostMember, IsGivenUpInStepsAndReplacedByAnother) {
  begin_with({"a", "b"});
  start_router();
  EXPECT_TRUE(start_without({"b"}, of({"a", "b", "c"}), {100}).contains("still has it"));
  EXPECT_TRUE(start_without({"x"}, of({"a", "c"}), {100}).contains("no such member"));
  b_.kill();
  const std::string without_saying_so = start(of({"a", "c"}));
  EXPECT_TRUE(without_saying_so.contains("member b")) << without_saying_so;
  ASSERT_EQ(start_without({"b"}, of({"a", "c"}), {30, 100}), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_EQ(status().lost, std::vector<std::string>{"b"});
  expect_keys_of({"a"});
  std::uint64_t holds = 0, duals = 0;
  for (const topology::Topology& one : history()) {
    if (!one.resize) continue;
    EXPECT_EQ(one.resize->lost, std::vector<std::string>{"b"});
    EXPECT_FALSE(one.fence.run_ids.contains("b"));
    holds += one.resize->phase == Phase::hold;
    if (one.resize->phase != Phase::dual) continue;
    ++duals;
    const auto snapshot = *topology::Snapshot::compile(one, {1, 1});
    for (const auto& [key, owner] : owner_) {
      const auto route = snapshot->route(key);
      if (owner != "b" || !topology::contains(one.resize->active, snapshot->slice(key))) continue;
      EXPECT_EQ(route.state, topology::KeyState::settled) << key;
      EXPECT_NE(snapshot->members()[route.member].id, "b") << key;
    }
  }
  EXPECT_EQ(holds, 2U) << "every step passes HOLD";
  EXPECT_EQ(duals, 2U);
}

TEST_F(LostMember, AMemberThatAnswersIsNotLost) {
  begin_with({"a", "b"});
  start_router();
  Request request;
  request.spec = of({"a", "c"});
  request.allow_foreign = true;
  request.lost = {"b"};
  const std::string answer = ask(request);
  EXPECT_TRUE(answer.contains("member b") && answer.contains("answers")) << answer;
  EXPECT_FALSE(topology()->resize);
}

// A step begins only when the routers' misses are within the budget. Meanwhile the lost member comes back
// with old data: a rollback to it is refused, and nobody finds that data when the resize is over.
TEST_F(LostMember, StepsWaitForTheOriginAndNobodyGoesBack) {
  begin_with({"a", "b"});
  misses_per_report_ = 1000;
  start_missing_router();
  b_.kill();
  ASSERT_EQ(start_without({"b"}, of({"a", "c"}), {50, 100}, 100), "");
  const auto waits_at = [&](std::uint32_t done) {
    return wait([&] {
      const auto now = topology();
      return now && now->resize && topology::count(now->resize->done) == done &&
             status().waits_for.contains("the origin");
    });
  };
  ASSERT_TRUE(waits_at(0)) << to_json(status());
  EXPECT_GT(status().misses_per_second, 100);
  misses_per_report_ = 0;
  ASSERT_TRUE(wait([&] { return topology()->resize && topology::count(topology()->resize->done) == 512; }));
  misses_per_report_ = 1000;
  ASSERT_TRUE(waits_at(512)) << to_json(status());
  EXPECT_TRUE(ask(Request::Action::rollback).contains("would have to go back to it"));
  b_.start();
  const auto back = connection(b_, "rs:test");
  for (const auto& [key, owner] : owner_) static_cast<void>(back->call({"SET", key, "stale"}));
  controller_.reset();  // The next one knows it all from the registry.
  start_quick_controller();
  ASSERT_TRUE(waits_at(512)) << to_json(status());
  misses_per_report_ = 0;
  ASSERT_TRUE(wait_for("finished"));
  expect_keys_of({"a"});
}

// One that stays and only gives dies in the midst: the resize goes on, in small steps, and back it cannot go.
TEST_F(LostMember, OneThatStaysDiesInTheMidst) {
  begin_with({"a", "b"});
  start_router();
  ASSERT_EQ(start(of({"a", "b", "c"}, 40)), "");
  ASSERT_TRUE(wait([&] { return status().keys_moved > 5; }));
  EXPECT_TRUE(lose("b").contains("answers"));
  EXPECT_TRUE(lose("x").contains("no such member"));
  b_.kill();
  ASSERT_EQ(lose("b"), "");
  EXPECT_TRUE(ask(Request::Action::rollback).contains("not possible"));
  Request rate;
  rate.action = Request::Action::set_rate;
  rate.keys_per_second = 1000000;
  ASSERT_EQ(ask(rate), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_FALSE(status().rolled_back);
  const auto now = topology();
  EXPECT_EQ(now->spec.members.size(), 3U)
      << "b is still a member: its turn to leave comes with the next resize";
  const auto snapshot = *topology::Snapshot::compile(*now, {1, 1});
  for (const auto& [key, owner] : owner_) {
    const std::string& id = snapshot->members()[snapshot->route(key).member].id;
    if (owner != "a") continue;
    EXPECT_EQ(connection(server(id), "rs:test")->call({"GET", key})->text, "v" + key);
  }
  ASSERT_EQ(start_without({"b"}, of({"a", "c"}), {100}), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_EQ(topology()->spec.members.size(), 2U);
}

// One that joins dies: its keys have no home there, so all goes back, and what was only there is lost.
TEST_F(LostMember, OneThatJoinsDiesAndAllGoesBack) {
  begin_with({"a", "b"});
  start_router();
  ASSERT_EQ(start(of({"a", "b", "c"}, 40)), "");
  ASSERT_TRUE(wait([&] { return status().keys_moved > 5; }));
  ASSERT_EQ(ask(Request::Action::pause), "");
  ASSERT_TRUE(wait_for("paused"));
  std::set<std::string> gone;
  for (const auto& [key, owner] : owner_) {
    if (connection(c_, "rs:test")->call({"EXISTS", key})->integer == 1) gone.insert(key);
  }
  ASSERT_GT(gone.size(), 5U);
  c_.kill();
  ASSERT_EQ(lose("c"), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_TRUE(status().rolled_back);
  EXPECT_EQ(topology()->spec.members.size(), 2U);
  for (const auto& [key, owner] : owner_) {
    EXPECT_EQ(connection(server(owner), "rs:test")->call({"GET", key})->text,
              gone.contains(key) ? "" : "v" + key);
  }
  // The id may come back only as an empty member: what the server still has is removed before anybody reads
  // it.
  c_.start();
  for (const std::string& key : gone)
    static_cast<void>(connection(c_, "rs:test")->call({"SET", key, "stale"}));
  ASSERT_EQ(start(of({"a", "b", "c"})), "");
  ASSERT_TRUE(wait_for("finished"));
  for (const std::string& key : gone)
    EXPECT_EQ(connection(c_, "rs:test")->call({"EXISTS", key})->integer, 0) << key;
}

}  // namespace
}  // namespace ringshift::resize
