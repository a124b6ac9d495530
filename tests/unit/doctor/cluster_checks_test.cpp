// Registry, topology, resize and routers, judged by two looks.
#include "doctor/cluster_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coord/router_record.h"
#include "resize/phases.h"
#include "resize/status.h"

namespace ringshift::doctor {
namespace {

using ::testing::HasSubstr;

topology::Spec spec_of(int members) {
  topology::Spec spec;
  spec.cluster = "cache";
  for (int i = 1; i <= members; ++i) {
    topology::Member member;
    member.id = "cache-" + std::to_string(i);
    member.address = "127.0.0.1:" + std::to_string(7000 + i);
    spec.members.push_back(member);
  }
  return spec;
}

struct World {
  topology::Topology topology;
  coord::RouterRecord router;
  resize::ResizeStatus before, now;
  Looks looks;

  World() {
    topology.spec = spec_of(4);
    router.revision = 10;
    looks.between = std::chrono::milliseconds(2500);
    for (RegistryLook* look : {&looks.first, &looks.second}) {
      look->cluster_id = 1;
      look->routers_prefix = "/r/";
      look->controller = coord::KeyValue{"/controller", "controller-1"};
      look->spec = coord::KeyValue{"/spec", topology::to_json(topology.spec)};
    }
    write();
  }
  void write() {
    if (router.digest.empty()) router.digest = topology::digest(topology);
    coord::Revision report = 20;
    for (RegistryLook* look : {&looks.first, &looks.second}) {
      look->topology = coord::KeyValue{"/topology", topology::to_json(topology), 1, 10};
      look->routers = {{"/r/proxy-1", coord::to_json(router), 1, report++}};
    }
    looks.first.status = coord::KeyValue{"/status", resize::to_json(before)};
    looks.second.status = coord::KeyValue{"/status", resize::to_json(now)};
  }
  void begin_resize() {
    topology = resize::begin(topology, spec_of(5), "1-10", {});
    router.digest.clear();
    before.state = now.state = "running";
    before.keys_moved = 5;
    now.keys_moved = 9;
    write();
  }
};

// The worst of one check's findings.
Finding worst(const Findings& found, const std::string& check) {
  Finding worst;
  for (const Finding& one : found.all()) {
    if (one.check == check && (worst.check.empty() || one.level > worst.level)) worst = one;
  }
  EXPECT_EQ(worst.check, check);
  return worst;
}

Finding of_registry(const World& world, const std::string& check) {
  Findings out("registry");
  check_registry(world.looks, out);
  return worst(out, check);
}
Finding of_topology(const World& world, const std::string& check) {
  Findings out("topology");
  (void)check_topology(world.looks.second, out);
  return worst(out, check);
}
Finding of_resize(const World& world, const std::string& check = "resize") {
  Findings out("resize");
  check_resize(world.looks, world.topology, out);
  return worst(out, check);
}
Finding of_routers(const World& world, const std::string& check) {
  Findings out("routers");
  check_routers(world.looks, world.topology, out);
  return worst(out, check);
}

TEST(ClusterChecks, AllIsWell) {
  World world;
  for (const char* check : {"one registry", "controller"})
    EXPECT_EQ(of_registry(world, check).level, Level::ok);
  for (const char* check : {"topology", "spec"}) EXPECT_EQ(of_topology(world, check).level, Level::ok);
  EXPECT_EQ(of_resize(world).level, Level::ok);
  for (const char* check : {"reports", "topology", "reaches members"}) {
    EXPECT_EQ(of_routers(world, check).level, Level::ok) << of_routers(world, check).message;
  }
}

TEST(ClusterChecks, NobodyLeadsOrTwoRegistries) {
  World world;
  world.looks.second.controller.reset();
  EXPECT_EQ(of_registry(world, "controller").level, Level::problem);
  world.looks.second.cluster_id = 2;
  EXPECT_EQ(of_registry(world, "one registry").level, Level::problem);
}

TEST(ClusterChecks, ASpecThatIsNotInForce) {
  World world;
  world.looks.second.spec->value = topology::to_json(spec_of(5));
  EXPECT_EQ(of_topology(world, "spec").level, Level::warning);
  EXPECT_THAT(of_topology(world, "spec").message, HasSubstr("would move"));
  world.looks.second.spec->value = "{\"cluster\": 7";
  EXPECT_EQ(of_topology(world, "spec").level, Level::problem);
  topology::Spec other = spec_of(4);
  other.cluster = "other";
  world.looks.second.spec->value = topology::to_json(other);
  EXPECT_EQ(of_topology(world, "spec").level, Level::problem);
  world.looks.second.topology.reset();
  EXPECT_EQ(of_topology(world, "topology").level, Level::problem);
}

TEST(ClusterChecks, AResizesOwnLimitsAreNoOtherSpec) {
  World world;
  world.begin_resize();
  world.topology.spec.limits.move_keys_per_second = 7;
  world.write();
  EXPECT_EQ(of_topology(world, "spec").level, Level::ok);
  world.looks.second.spec->value = topology::to_json(spec_of(3));
  EXPECT_EQ(of_topology(world, "spec").level, Level::warning);
}

TEST(ClusterChecks, AResizeThatWorksAndOneThatStandsStill) {
  World world;
  world.begin_resize();
  EXPECT_EQ(of_resize(world).level, Level::ok);
  world.now.keys_moved = world.before.keys_moved;
  world.write();
  EXPECT_EQ(of_resize(world).level, Level::warning);
  EXPECT_THAT(of_resize(world).message, HasSubstr("nothing moved"));
  world.now.waiting = "soak";
  world.write();
  EXPECT_EQ(of_resize(world).level, Level::ok) << "it was told to wait";
  world.now.waiting.clear();
  world.now.big_keys_waiting = 2;
  world.write();
  EXPECT_THAT(of_resize(world).fix, HasSubstr("big-keys"));
  world.now.big_keys_waiting = 0;
  world.now.last_error = "member cache-5 (...): no answer";
  world.write();
  EXPECT_EQ(of_resize(world).level, Level::problem);
  EXPECT_THAT(of_resize(world).message, HasSubstr("no answer"));
  world.now.state = "paused";
  world.write();
  EXPECT_EQ(of_resize(world).level, Level::warning);
  EXPECT_THAT(of_resize(world).fix, HasSubstr("resume"));
  world.now.state = "running";
  world.write();
  world.looks.second.controller.reset();
  EXPECT_THAT(of_resize(world).message, HasSubstr("no controller leads"));
}

TEST(ClusterChecks, AHoldThatLasts) {
  World world;
  world.begin_resize();
  world.topology = resize::hold(world.topology, {{0, 10}}, {});
  world.write();
  EXPECT_EQ(of_resize(world).level, Level::problem);
  EXPECT_THAT(of_resize(world).message, HasSubstr("in HOLD for more than 2.5 s"));
  world.looks.first.topology->mod_revision = 9;
  EXPECT_EQ(of_resize(world).level, Level::ok) << "it began between the looks";
}

TEST(ClusterChecks, ARequestThatNobodyTakes) {
  World world;
  world.looks.first.request = world.looks.second.request = coord::KeyValue{"/request", "{}", 3, 3};
  EXPECT_EQ(of_resize(world, "request").level, Level::problem);
}

TEST(ClusterChecks, Routers) {
  World world;
  world.router.unreachable = {{"cache-2", "no answer within 1000 ms"}};
  world.router.open_file_limit = 1024;
  world.router.max_clients = 10000;
  world.write();
  EXPECT_EQ(of_routers(world, "reaches members").level, Level::problem);
  EXPECT_THAT(of_routers(world, "reaches members").message, HasSubstr("not cache-2: no answer"));
  EXPECT_EQ(of_routers(world, "open files").level, Level::warning);
  EXPECT_THAT(of_routers(world, "open files").fix, HasSubstr("10064"));
  world.router.revision = 9;
  world.write();
  EXPECT_EQ(of_routers(world, "topology").level, Level::problem);
  EXPECT_THAT(of_routers(world, "topology").message, HasSubstr("not acknowledged"));
  world.looks.first.topology->mod_revision = 8;
  EXPECT_EQ(of_routers(world, "topology").level, Level::ok) << "published between the looks";
  world.router.revision = 10;
  world.router.digest = "something else";
  world.write();
  EXPECT_THAT(of_routers(world, "topology").message, HasSubstr("another digest"));
  world.looks.second.routers = world.looks.first.routers;
  EXPECT_EQ(of_routers(world, "reports").level, Level::problem);
  world.looks.second.routers.clear();
  EXPECT_EQ(of_routers(world, "registered").level, Level::warning);
  EXPECT_THAT(of_routers(world, "registered").message, HasSubstr("is not any more"));
  world.looks.first.routers.clear();
  EXPECT_THAT(of_routers(world, "registered").message, HasSubstr("no proxy follows"));
}

TEST(ClusterChecks, ProxiesThatWereAsked) {
  World world;
  const std::string digest = topology::digest(world.topology);
  const auto of = [&](const std::string& info, const std::string& check) {
    Findings out("routers");
    check_proxies({{"127.0.0.1:6380", "", info}}, world.topology, "", out);
    return worst(out, check);
  };
  const std::string server = "# Server\r\nringshift_version:1\r\n",
                    topo = "topology_digest:" + digest + "\r\n";
  EXPECT_EQ(of(server + topo, "topology").level, Level::ok);
  EXPECT_EQ(of(server + "topology_digest:abc\r\n", "topology").level, Level::problem);
  EXPECT_EQ(of("# Server\r\nredis_version:7\r\n", "reachable").level, Level::problem);
  const Finding down =
      of(server + topo + "cache-3_state:down\r\ncache-3_down_reason:refused\r\n", "reaches members");
  EXPECT_EQ(down.level, Level::problem);
  EXPECT_THAT(down.message, HasSubstr("not cache-3: refused"));
}

}  // namespace
}  // namespace ringshift::doctor
