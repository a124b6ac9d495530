#include "resize/members.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/redis_process.h"
#include "transfer/steps.h"

namespace ringshift::resize {
namespace {

using backend::SyncClient;
using test::RedisProcess;

topology::Member member_of(const RedisProcess& redis, const std::string& id) {
  topology::Member member;
  member.id = id;
  member.address = redis.address();
  return member;
}

std::unique_ptr<SyncClient> named(const RedisProcess& redis, const std::string& name) {
  backend::SyncOptions options;
  options.name = name;
  auto client = SyncClient::connect(redis.address(), options);
  if (!client) throw std::runtime_error(client.error().message);
  return std::move(*client);
}

bool alive(SyncClient& client) { return client.call({"PING"}).has_value(); }

TEST(ClientList, FieldsAndOddLines) {
  const auto entries = parse_client_list(
      "id=3 addr=127.0.0.1:5 laddr=x fd=8 name=rs:a b=c flags=N cmd=client|list\n"
      "\n"
      "no id here name=x\n"
      "id=4 name= addr=[::1]:9 flags=S cmd=psync user=default\r\n"
      "id=5");
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].id, "3");
  EXPECT_EQ(entries[0].name, "rs:a");
  EXPECT_EQ(entries[0].address, "127.0.0.1:5");
  EXPECT_EQ(entries[0].command, "client|list");
  EXPECT_EQ(entries[1].id, "4");
  EXPECT_EQ(entries[1].name, "");
  EXPECT_EQ(entries[1].flags, "S");
  EXPECT_EQ(entries[2].id, "5");
  EXPECT_TRUE(parse_client_list("").empty());
}

TEST(InfoField, WholeNamesAtLineStartsOnly) {
  const char* info = "# Server\r\nrun_id:abc\r\nxrun_id:no\r\nrun_id_too:no\r\nempty:\r\nlast:z";
  EXPECT_EQ(info_field(info, "run_id"), "abc");
  EXPECT_EQ(info_field(info, "empty"), "");
  EXPECT_EQ(info_field(info, "last"), "z");
  EXPECT_EQ(info_field(info, "un_id"), "");
  EXPECT_EQ(info_field(info, "run"), "");
  EXPECT_EQ(info_field("", "x"), "");
}

// Fencing ends the connections of routers that did not acknowledge, and of nobody else.
TEST(Members, I3FenceKillsExactlyOurNamesThatAreNotAllowed) {
  RedisProcess redis;
  Members members("rs:controller-1");
  const auto member = member_of(redis, "a");
  const auto silent = named(redis, "rs:silent"), good = named(redis, "rs:good"),
             foreign = named(redis, "app"), nameless = named(redis, ""), similar = named(redis, "ars:x");
  const auto killed = members.fence({member}, {"rs:controller-1", "rs:good"});
  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_EQ(*killed, 1U);
  EXPECT_FALSE(alive(*silent));
  EXPECT_TRUE(alive(*good));
  EXPECT_TRUE(alive(*foreign));
  EXPECT_TRUE(alive(*nameless));
  EXPECT_TRUE(alive(*similar));
  EXPECT_TRUE(members.run_id(member)) << "and not itself";
}

// A mover that gave up on a stalled member leaves a connection there whose UNLINK may yet run: after a
// rollback it would delete the only copy. It has our own name.
TEST(Members, I3FenceEndsOurOwnDeadConnections) {
  RedisProcess redis;
  Members members("rs:controller-1");
  const auto member = member_of(redis, "a");
  ASSERT_TRUE(members.run_id(member));
  const auto orphan = named(redis, "rs:controller-1");
  const auto killed = members.fence({member}, {"rs:controller-1"});
  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_EQ(*killed, 0U) << "no router was fenced";
  EXPECT_FALSE(alive(*orphan));
  EXPECT_TRUE(members.run_id(member));
}

TEST(Members, CheckRefusesClientsThatAreNotOurs) {
  RedisProcess redis;
  Members members("rs:controller-1");
  const auto member = member_of(redis, "cache-1");
  EXPECT_TRUE(members.check(member, false));
  const auto router = named(redis, "rs:router");
  EXPECT_TRUE(members.check(member, false));
  const auto foreign = named(redis, "app");
  ASSERT_TRUE(alive(*foreign));
  const Status refused = members.check(member, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
  EXPECT_TRUE(refused.error().message.contains("cache-1")) << refused.error().message;
  EXPECT_TRUE(refused.error().message.contains("--allow-foreign")) << refused.error().message;
  EXPECT_TRUE(members.check(member, true));
}

TEST(Members, CheckRefusesAJoinerThatRoutersOfAnotherClusterUse) {
  RedisProcess redis;
  Members members("rs:controller-1");
  const auto member = member_of(redis, "cache-5");
  const std::set<std::string> routers = {"rs:router-1"};
  const auto ours = named(redis, "rs:router-1"), observer = named(redis, "rs:observer");
  ASSERT_TRUE(alive(*ours));
  EXPECT_TRUE(members.check(member, false, &routers));
  const auto theirs = named(redis, "rs:router-2");
  ASSERT_TRUE(alive(*theirs));
  const Status refused = members.check(member, false, &routers);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.contains("rs:router-2")) << refused.error().message;
  EXPECT_TRUE(members.check(member, false)) << "it is a member already";
  EXPECT_TRUE(members.check(member, true, &routers));
}

TEST(Members, CheckRefusesOtherDatabases) {
  RedisProcess redis;
  Members members("rs:controller-1");
  const auto writer = named(redis, "rs:test");
  ASSERT_TRUE(writer->call({"SELECT", "1"}));
  ASSERT_TRUE(writer->call({"SET", "k", "v"}));
  const Status refused = members.check(member_of(redis, "cache-1"), true);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.contains("database 1")) << refused.error().message;
}

// A server with more than the usual 16 databases may keep keys in any of them.
TEST(Members, CheckRefusesOtherDatabasesWhateverTheirNumber) {
  RedisProcess redis({"--databases", "100"});
  Members members("rs:controller-1");
  const auto writer = named(redis, "rs:test");
  ASSERT_TRUE(writer->call({"SELECT", "77"}));
  ASSERT_TRUE(writer->call({"SET", "k", "v"}));
  const Status refused = members.check(member_of(redis, "cache-1"), true);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.contains("database 77")) << refused.error().message;
}

TEST(Members, CheckRefusesAMemberWithoutScriptsOrClientList) {
  RedisProcess redis;
  const auto admin = named(redis, "rs:admin");
  ASSERT_TRUE(admin->call({"ACL", "SETUSER", "default", "-eval"}));
  Members members("rs:controller-1");
  const Status no_eval = members.check(member_of(redis, "cache-1"), true);
  ASSERT_FALSE(no_eval);
  EXPECT_EQ(no_eval.error().kind, ErrorKind::denied);
  ASSERT_TRUE(admin->call({"ACL", "SETUSER", "default", "+eval", "-client|list"}));
  const Status no_list = members.check(member_of(redis, "cache-1"), true);
  ASSERT_FALSE(no_list);
  EXPECT_EQ(no_list.error().kind, ErrorKind::denied);
}

TEST(Members, StampsAreBoundAndYieldToLaterOnes) {
  RedisProcess redis;
  Members members("rs:controller-1");
  const auto member = member_of(redis, "a");
  EXPECT_EQ(*members.stamp(member), "");
  const auto run_id = members.run_id(member);
  ASSERT_TRUE(run_id);
  EXPECT_EQ(run_id->size(), 40U);
  topology::Fence fence{2, 5, {{"a", *run_id}}};
  ASSERT_TRUE(members.set_stamps({member}, fence, Gate::closed));
  EXPECT_EQ(*members.stamp(member), "2.5.closed." + *run_id);
  ASSERT_TRUE(members.set_stamps({member}, fence, Gate::open));
  EXPECT_EQ(*members.stamp(member), "2.5.open." + *run_id);
  ASSERT_TRUE(members.set_stamps({member}, fence, Gate::done));
  EXPECT_FALSE(members.set_stamps({member}, fence, Gate::open)) << "closed for good (I10)";
  EXPECT_EQ(*members.stamp(member), "2.5.done." + *run_id);
  --fence.step;
  const Status late = members.set_stamps({member}, fence, Gate::open);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::stale);
}

TEST(Members, ARestartedMemberIsReachedAgainAndHasAnotherRunId) {
  RedisProcess redis;
  Members members("rs:controller-1");
  const auto member = member_of(redis, "a");
  const auto before = members.run_id(member);
  ASSERT_TRUE(before);
  redis.kill();
  const auto down = members.run_id(member);
  ASSERT_FALSE(down);
  EXPECT_TRUE(down.error().message.contains("member a (" + redis.address() + ")")) << down.error().message;
  redis.start();
  const auto after = members.run_id(member);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_NE(*before, *after);
}

// Exactly the leftovers: what B gives to the member and A does not.
TEST(Members, I0CleanTargetPurgeRemovesExactlyTheLeftovers) {
  RedisProcess a, b;
  topology::Topology now;
  now.spec.cluster = "test";
  now.spec.members = {member_of(a, "a"), member_of(b, "b")};
  topology::Spec target = now.spec;
  target.members[1].weight = 3;  // b gains some of a's keys.
  const auto snapshot = topology::Snapshot::compile(begin(now, target, "r", {}), {1, 1});
  ASSERT_TRUE(snapshot);
  const auto writer = named(b, "rs:test");
  std::set<std::string> expected;
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "k" + std::to_string(i);
    ASSERT_TRUE(writer->call({"SET", key, "v"}));
    const bool leftover = (*snapshot)->owner_after(key) == 1 && (*snapshot)->owner_before(key) != 1;
    if (!leftover) expected.insert(key);
  }
  ASSERT_TRUE(writer->call({"SET", transfer::kStampKey, "1.1.closed."}));
  expected.insert(std::string(transfer::kStampKey));
  Members members("rs:controller-1");
  const auto purged = members.purge((*snapshot)->members()[1], **snapshot);
  ASSERT_TRUE(purged);
  EXPECT_GT(*purged, 100U);
  EXPECT_EQ(*purged, 3001 - expected.size());
  const auto left = writer->call({"KEYS", "*"});
  ASSERT_TRUE(left);
  std::set<std::string> found;
  for (const auto& key : left->items) found.insert(key.text);
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace ringshift::resize
