// WAIT over all members, of which each may have a replica.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <thread>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Makes `replica` one of `master`, and waits until it has what the master has.
void follow(RedisProcess& replica, RedisProcess& master) {
  Client to(master.port());
  to.ask({"CONFIG", "SET", "repl-diskless-sync-delay", "0"});
  Client(replica.port()).ask({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
  for (int i = 0; i < 400; ++i) {
    if (to.ask({"INFO", "replication"}).contains("state=online")) break;
    std::this_thread::sleep_for(milliseconds(25));
  }
  ASSERT_EQ(to.ask({"SET", "probe", "1"}), "+OK\r\n");
  ASSERT_EQ(to.ask({"WAIT", "1", "5000"}), ":1\r\n");
}

TEST(Wait, WithoutReplicasAnswersNoneInTime) {
  Cluster cluster(2);
  Client client = cluster.client();
  EXPECT_EQ(client.ask({"WAIT", "0", "0"}), ":0\r\n");
  const auto before = Clock::now();
  EXPECT_EQ(client.ask({"WAIT", "1", "300"}), ":0\r\n");
  EXPECT_GE(Clock::now() - before, milliseconds(290));
  Client plain(cluster.member(0).port());
  for (const auto& words : std::vector<std::vector<std::string_view>>{
           {"WAIT", "x", "1"}, {"WAIT", "1", "x"}, {"WAIT", "1", "-1"}, {"WAIT", "-1", "0"}, {"WAIT", "1"}}) {
    std::string bytes;
    protocol::resp::append_command(bytes, words);
    client.send(bytes);
    plain.send(bytes);
    EXPECT_EQ(client.reply(), plain.reply()) << words[1];
  }
  EXPECT_EQ(client.ask({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(client.ask({"WAIT", "1", "0"}), "+QUEUED\r\n");
  EXPECT_EQ(client.ask({"EXEC"}), "*1\r\n:0\r\n");
}

TEST(Wait, CoversWritesOverOtherConnections) {
  Cluster cluster(2);
  RedisProcess first, second;
  follow(first, cluster.member(0));
  follow(second, cluster.member(1));
  Client client = cluster.client();
  for (int i = 0; i < 20; ++i) client.ask({"SET", fmt::format("key:{}", i), "v"});
  EXPECT_EQ(client.ask({"WAIT", "1", "0"}), ":1\r\n");
  const auto before = Clock::now();
  EXPECT_EQ(client.ask({"WAIT", "2", "300"}), ":1\r\n");
  EXPECT_GE(Clock::now() - before, milliseconds(290));
  // A replica that stands still has not got what was written since then over the proxy's shared connection.
  ::kill(second.pid(), SIGSTOP);
  std::string bytes;
  protocol::resp::append_command(bytes, {"SET", cluster.key_of(1), "new"});
  protocol::resp::append_command(bytes, {"WAIT", "1", "300"});
  client.send(bytes);
  EXPECT_EQ(client.reply(), "+OK\r\n");
  EXPECT_EQ(client.reply(), ":0\r\n");
  // And it comes when the replica does; what is behind it waits.
  bytes.clear();
  protocol::resp::append_command(bytes, {"WAIT", "1", "0"});
  protocol::resp::append_command(bytes, {"PING"});
  client.send(bytes);
  EXPECT_EQ(client.reply(milliseconds(300)), "(timeout)");
  ::kill(second.pid(), SIGCONT);
  EXPECT_EQ(client.reply(), ":1\r\n");
  EXPECT_EQ(client.reply(), "+PONG\r\n");
}

TEST(Wait, AClientThatLeavesEndsIt) {
  Cluster cluster(2);
  {
    Client client = cluster.client();
    client.command({"WAIT", "1", "0"});
    std::this_thread::sleep_for(milliseconds(200));
    EXPECT_TRUE(Client(cluster.member(0).port()).ask({"INFO", "clients"}).contains("blocked_clients:1"));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    Client member(cluster.member(i).port());
    bool ended = false;
    for (int n = 0; n < 100 && !ended; ++n) {
      ended = member.ask({"INFO", "clients"}).contains("blocked_clients:0");
      std::this_thread::sleep_for(milliseconds(20));
    }
    EXPECT_TRUE(ended);
  }
}

TEST(Wait, DoesNotHoldUpASnapshotAndForgetsAMemberThatLeaves) {
  Cluster cluster(2);
  RedisProcess replica;
  follow(replica, cluster.member(0));
  std::atomic<std::uint64_t> applied{0};
  cluster.proxy().set_on_applied([&](topology::Version version) { applied = version.revision; });
  Client client = cluster.client();
  client.command({"WAIT", "1", "0"});  // The second has no replica.
  EXPECT_EQ(client.reply(milliseconds(200)), "(timeout)");
  cluster.publish(2, 2);
  for (int i = 0; i < 200 && applied != 2; ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(applied, 2U);
  cluster.publish(1, 3);
  EXPECT_EQ(client.reply(), ":1\r\n");
  cluster.proxy().set_on_applied({});
}

TEST(Wait, AMemberThatFailsMakesItAnError) {
  Cluster cluster(2);
  Client client = cluster.client();
  client.command({"WAIT", "1", "0"});
  EXPECT_EQ(client.reply(milliseconds(200)), "(timeout)");
  cluster.kill_member(1);
  EXPECT_TRUE(client.reply().starts_with("-"));
  EXPECT_EQ(client.ask({"PING"}), "+PONG\r\n");
}

}  // namespace
}  // namespace ringshift::proxy
