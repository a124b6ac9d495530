// The questions, on real servers: that they change nothing, and notice what is refused.
#include "doctor/examine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/redis_process.h"

namespace ringshift::doctor {
namespace {

using test::RedisProcess;
using ::testing::HasSubstr;

topology::Member member_at(const RedisProcess& redis) {
  topology::Member member;
  member.id = "a";
  member.address = redis.address();
  return member;
}

std::shared_ptr<const topology::Snapshot> two_members(const RedisProcess& redis) {
  topology::Topology topology;
  topology.spec.cluster = "cache";
  topology.spec.members = {member_at(redis), member_at(redis)};
  topology.spec.members[1].id = "b";
  topology.spec.members[1].address = "127.0.0.1:1";
  const auto snapshot = topology::Snapshot::compile(std::move(topology), {1, 1});
  if (!snapshot) throw std::runtime_error(snapshot.error().message);
  return *snapshot;
}

TEST(Examine, AsksForEverythingAndChangesNothing) {
  RedisProcess redis;
  for (int i = 0; i < 200; ++i) (void)redis.command("SET k" + std::to_string(i) + " v");
  (void)redis.command("SET rs:stamp 1.2.done.x");
  const std::string changes = redis.command("INFO persistence");
  const auto snapshot = two_members(redis);
  const MemberFacts facts = examine(member_at(redis), snapshot.get(), nullptr);
  EXPECT_EQ(facts.unreachable, "");
  EXPECT_TRUE(facts.refused.empty()) << facts.refused[0].command << ": " << facts.refused[0].error;
  EXPECT_EQ(facts.write_refused, "");
  EXPECT_EQ(facts.stamp, "1.2.done.x");
  EXPECT_EQ(facts.keys, 201U);
  EXPECT_EQ(facts.keys_sampled, 200U);
  EXPECT_GT(facts.keys_elsewhere, 50U);
  EXPECT_LT(facts.keys_elsewhere, 150U);
  EXPECT_EQ(facts.examples.size(), kExamplesKept);
  ASSERT_TRUE(facts.clock_ahead_ms.has_value());
  EXPECT_LT(std::abs(*facts.clock_ahead_ms), 5000);
  ASSERT_TRUE(facts.clients.has_value());
  for (const auto& client : *facts.clients) {
    // Only the test's own.
    EXPECT_TRUE(client.name.starts_with("rs:") || client.name.empty()) << client.name;
  }
  const auto field = [](const std::string& info) {
    return resize::info_field(info, "rdb_changes_since_last_save");
  };
  EXPECT_EQ(field(redis.command("INFO persistence")), field(changes)) << "something was written";
}

TEST(Examine, NoticesWhatAUserMayNotDo) {
  RedisProcess redis;
  (void)redis.command("ACL SETUSER default +@all -client|kill -restore ~*");
  MemberFacts facts = examine(member_at(redis), nullptr, nullptr);
  std::string refused;
  for (const Refused& one : facts.refused) refused += one.command + ";";
  EXPECT_EQ(refused, "RESTORE;CLIENT KILL;");
  (void)redis.command("ACL SETUSER default +@all resetkeys ~app:* ~rs:*");
  facts = examine(member_at(redis), nullptr, nullptr);
  ASSERT_EQ(facts.refused.size(), 1U);
  EXPECT_EQ(facts.refused[0].command, "every key (~*)");
}

TEST(Examine, TellsAFullServerFromOneThatForbids) {
  RedisProcess redis;
  (void)redis.command("CONFIG SET maxmemory 1");
  const MemberFacts facts = examine(member_at(redis), nullptr, nullptr);
  EXPECT_TRUE(facts.refused.empty()) << facts.refused[0].command << ": " << facts.refused[0].error;
  EXPECT_THAT(facts.write_refused, HasSubstr("OOM"));
}

TEST(Examine, SaysWhyItCannotGetIn) {
  RedisProcess redis({"--requirepass", "secret"});
  EXPECT_THAT(examine(member_at(redis), nullptr, nullptr).unreachable, HasSubstr("NOAUTH"));
  topology::Member nobody;
  nobody.id = "a";
  nobody.address = "127.0.0.1:" + std::to_string(test::free_port());
  EXPECT_THAT(examine(nobody, nullptr, nullptr).unreachable, HasSubstr("refused"));
}

TEST(Examine, ManyAtOnceKeepTheirOrder) {
  RedisProcess one, two;
  std::vector<topology::Member> members;
  for (int i = 0; i < 40; ++i) {
    members.push_back(member_at(i % 3 == 0 ? one : two));
    members.back().id = "m" + std::to_string(i);
  }
  const auto facts = examine_all(members, nullptr, nullptr);
  ASSERT_EQ(facts.size(), members.size());
  const std::string id_of_one = resize::info_field(facts[0].info, "run_id");
  for (std::size_t i = 0; i < facts.size(); ++i) {
    EXPECT_EQ(facts[i].member.id, members[i].id);
    EXPECT_EQ(resize::info_field(facts[i].info, "run_id") == id_of_one, i % 3 == 0);
  }
}

}  // namespace
}  // namespace ringshift::doctor
