// What is judged of a member by what it says; what it says comes from a real server in examine_test.cpp.
#include "doctor/member_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringshift::doctor {
namespace {

using ::testing::HasSubstr;

MemberFacts well(const std::string& id = "a") {
  MemberFacts facts;
  facts.member.id = id;
  facts.member.address = "127.0.0.1:7001";
  facts.round_trip_ms = 0.2;
  facts.info =
      "# Server\r\nredis_version:7.0.15\r\nrun_id:" + id +
      "-run\r\n# Clients\r\nconnected_clients:3\r\nmaxclients:10000\r\n# Memory\r\nused_memory:1048576\r\n"
      "total_system_memory:8589934592\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\n"
      "aof_enabled:0\r\nrdb_last_bgsave_status:ok\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
      "# Keyspace\r\ndb0:keys=5,expires=0,avg_ttl=0\r\n";
  facts.clients.emplace();
  facts.clock_ahead_ms = 3;
  facts.stamp = "";
  facts.keys = facts.keys_sampled = 5;
  return facts;
}

MemberFacts with(const std::string& from, const std::string& to) {
  MemberFacts facts = well();
  const std::size_t at = facts.info.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  facts.info.replace(at, from.size(), to);
  return facts;
}

topology::Topology of(std::initializer_list<std::string> ids) {
  topology::Topology topology;
  topology.spec.cluster = "cache";
  for (const std::string& id : ids) {
    topology::Member member;
    member.id = id;
    topology.spec.members.push_back(member);
  }
  return topology;
}

template <class Check>
Finding one(Check check) {
  Findings out("members");
  check(out);
  EXPECT_EQ(out.all().size(), 1U);
  return out.all().empty() ? Finding{} : out.all().front();
}

TEST(MemberChecks, NothingToSayOfOneThatIsWell) {
  for (const Finding& finding : check_members({well("a"), well("b")}, of({"a", "b"}), true)) {
    EXPECT_EQ(finding.level, Level::ok) << finding.check << ": " << finding.message;
    EXPECT_EQ(finding.fix, "");
  }
}

TEST(MemberChecks, OneThatIsAwayIsJudgedOnce) {
  MemberFacts away;
  away.member.id = "a";
  away.unreachable = "cannot connect to 127.0.0.1:1: Connection refused";
  const auto found = check_members({away}, of({"a"}), true);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].level, Level::problem);
  EXPECT_THAT(found[0].fix, HasSubstr("start it"));
}

TEST(MemberChecks, TheFixFitsTheRefusal) {
  MemberFacts facts = well();
  const auto fix = [&](const char* error) {
    facts.unreachable = error;
    return one([&](Findings& out) { check_reached(facts, out); }).fix;
  };
  EXPECT_THAT(fix("NOAUTH Authentication required."), HasSubstr("--member-password-file"));
  EXPECT_THAT(fix("TLS handshake: certificate verify failed"), HasSubstr("docs/tls.md"));
  EXPECT_THAT(fix("it does not let us name the connection: NOPERM"), HasSubstr("CLIENT SETNAME"));
  EXPECT_THAT(fix("LOADING Redis is loading the dataset in memory"), HasSubstr("wait"));
  EXPECT_THAT(fix("ERR max number of clients reached"), HasSubstr("maxclients"));
}

TEST(MemberChecks, Memory) {
  const auto level = [](const MemberFacts& facts) {
    return one([&](Findings& out) { check_memory(facts, out); }).level;
  };
  EXPECT_EQ(level(with("maxmemory:0", "maxmemory:2097152")), Level::ok);
  EXPECT_EQ(level(with("maxmemory:0", "maxmemory:1100000")), Level::warning) << "95 % full";
  EXPECT_EQ(level(with("total_system_memory:8589934592", "total_system_memory:1200000")), Level::warning);
  MemberFacts evicts = with("maxmemory:0\r\nmaxmemory_policy:noeviction",
                            "maxmemory:99999999\r\nmaxmemory_policy:allkeys-lru");
  EXPECT_EQ(level(evicts), Level::warning);
  MemberFacts volatile_only = with("maxmemory:0\r\nmaxmemory_policy:noeviction",
                                   "maxmemory:1100000\r\nmaxmemory_policy:volatile-lru");
  EXPECT_EQ(level(volatile_only), Level::ok) << "the stamp has no time to live";
  MemberFacts full = with("maxmemory:0", "maxmemory:1000000");
  full.write_refused = "OOM command not allowed when used memory > 'maxmemory'.";
  EXPECT_EQ(level(full), Level::problem);
}

TEST(MemberChecks, Persistence) {
  MemberFacts facts = well();
  const auto finding = [&] { return one([&](Findings& out) { check_persistence(facts, out); }); };
  EXPECT_THAT(finding().message, HasSubstr("comes back empty"));
  facts.save = "3600 1";
  EXPECT_THAT(finding().message, HasSubstr("comes back"));
  facts = with("rdb_last_bgsave_status:ok", "rdb_last_bgsave_status:err");
  EXPECT_EQ(finding().level, Level::warning);
  facts.write_refused = "MISCONF Redis is configured to save RDB snapshots, but ...";
  EXPECT_EQ(finding().level, Level::problem);
}

TEST(MemberChecks, DatabasesBeyondTheSpecs) {
  const MemberFacts facts =
      with("db0:keys=5,expires=0,avg_ttl=0\r\n", "db0:keys=5\r\ndb3:keys=1\r\ndb11:keys=2\r\n");
  Finding finding = one([&](Findings& out) { check_databases(facts, 1, out); });
  EXPECT_EQ(finding.level, Level::problem);
  EXPECT_THAT(finding.message, HasSubstr("3, 11"));
  finding = one([&](Findings& out) { check_databases(facts, 4, out); });
  EXPECT_THAT(finding.message, HasSubstr(": 11"));
  EXPECT_EQ(one([&](Findings& out) { check_databases(facts, 16, out); }).level, Level::ok);
}

TEST(MemberChecks, ForeignClientsAreWhoMayWrite) {
  MemberFacts facts = well();
  facts.clients = {{"1", "rs:proxy-1", "10.0.0.1:5", "N", "get"},
                   {"2", "sentinel-1f2e3d4c-cmd", "10.0.0.2:5", "N", "ping"},
                   {"3", "sentinel-1f2e3d4c-pubsub", "10.0.0.2:6", "P", "subscribe"},
                   {"4", "", "10.0.0.3:5", "S", "replconf"}};
  EXPECT_EQ(one([&](Findings& out) { check_foreign_clients(facts, out); }).level, Level::ok);
  facts.clients->push_back({"5", "sentinel-not", "10.9.9.9:1", "N", "set"});
  const Finding finding = one([&](Findings& out) { check_foreign_clients(facts, out); });
  EXPECT_EQ(finding.level, Level::warning);
  EXPECT_THAT(finding.message, HasSubstr("10.9.9.9:1 (last command set)"));
}

TEST(MemberChecks, RoleClockKeysPermissions) {
  MemberFacts facts = with("role:master", "role:slave\r\nmaster_host:10.0.0.7\r\nmaster_port:6379");
  Finding finding = one([&](Findings& out) { check_role(facts, out); });
  EXPECT_EQ(finding.level, Level::problem);
  EXPECT_THAT(finding.fix, HasSubstr("10.0.0.7:6379"));
  facts = well();
  facts.clock_ahead_ms = -3500;
  finding = one([&](Findings& out) { check_clock(facts, out); });
  EXPECT_EQ(finding.level, Level::warning);
  EXPECT_THAT(finding.message, HasSubstr("3.5 s behind"));
  facts.keys_elsewhere = 2;
  facts.examples = {"k1", "k2"};
  finding = one([&](Findings& out) { check_placed_keys(facts, out); });
  EXPECT_EQ(finding.level, Level::warning);
  EXPECT_THAT(finding.message, HasSubstr("2 of 5 keys belong to other members: k1, k2"));
  facts.refused = {{"CLIENT KILL", "NOPERM this user has no permissions"}};
  finding = one([&](Findings& out) { check_permissions(facts, out); });
  EXPECT_EQ(finding.level, Level::problem);
  EXPECT_THAT(finding.message, HasSubstr("CLIENT KILL is refused: NOPERM"));
}

TEST(MemberChecks, StampsAgainstTheFence) {
  topology::Topology topology = of({"a"});
  MemberFacts facts = well();
  const auto level = [&](const char* stamp) {
    facts.stamp = stamp;
    return one([&](Findings& out) { check_stamp(facts, topology, out); }).level;
  };
  EXPECT_EQ(level(""), Level::ok) << "no resize ever ran";
  EXPECT_EQ(level("7.9.done.a-run"), Level::problem) << "of another registry";
  topology.fence = {2, 5, {{"a", "a-run"}}};
  EXPECT_EQ(level("2.5.done.a-run"), Level::ok);
  EXPECT_EQ(level("3.6.closed.a-run"), Level::warning) << "the next one's start is no lost registry";
  EXPECT_EQ(level("3.7.closed.a-run"), Level::problem);
  EXPECT_EQ(level(""), Level::warning);
  EXPECT_EQ(level("2.4.done.a-run"), Level::warning);
  topology.fence.run_ids["a"] = "an older life";
  EXPECT_EQ(level("2.5.done.an older life"), Level::warning);
  topology.fence.run_ids.clear();
  EXPECT_EQ(level(""), Level::ok) << "a member that took no part";
}

TEST(MemberChecks, VersionsAndServers) {
  MemberFacts old = with("redis_version:7.0.15", "redis_version:6.2.1");
  old.member.id = "b";
  Finding finding = one([&](Findings& out) { check_versions({well(), old}, of({"a", "b"}), out); });
  EXPECT_EQ(finding.level, Level::warning);
  EXPECT_THAT(finding.message, HasSubstr("6.2: b; 7.0: a"));
  finding = one([&](Findings& out) { check_versions({well(), old}, of({"b"}), out); });
  EXPECT_EQ(finding.level, Level::ok) << "the newer one only receives";
  finding = one([&](Findings& out) { check_one_server_each({well("a"), well("b")}, out); });
  EXPECT_EQ(finding.level, Level::ok);
  MemberFacts alias = well("a");
  alias.member.id = "c";
  finding = one([&](Findings& out) { check_one_server_each({well("a"), alias}, out); });
  EXPECT_EQ(finding.level, Level::problem);
  EXPECT_THAT(finding.message, HasSubstr("same server as a"));
}

}  // namespace
}  // namespace ringshift::doctor
