// Commands that wait: BLPOP and its kin, XREAD with BLOCK.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Waits until the member has `count` clients that wait.
bool has_blocked(RedisProcess& member, int count) {
  Client client(member.port());
  const std::string wanted = fmt::format("blocked_clients:{}\r\n", count);
  for (int i = 0; i < 200; ++i) {
    if (client.ask({"INFO", "clients"}).find(wanted) != std::string::npos) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

TEST(Blocked, WaitsAndDelaysNobodyElse) {
  Cluster cluster(2);
  const std::string queue = cluster.key_of(0);
  Client waiting = cluster.client();
  Client other = cluster.client();
  waiting.command({"BLPOP", queue, "0"});
  ASSERT_TRUE(has_blocked(cluster.member(0), 1));
  EXPECT_EQ(other.ask({"SET", cluster.key_of(0) + "x", "1"}), "+OK\r\n");
  EXPECT_EQ(other.ask({"LPUSH", queue, "v"}), ":1\r\n");
  EXPECT_EQ(waiting.reply(), fmt::format("*2\r\n${}\r\n{}\r\n$1\r\nv\r\n", queue.size(), queue));
}

TEST(Blocked, TimesOutAsRedisDoes) {
  Cluster cluster(2);
  Client client = cluster.client();
  const auto begin = steady_clock::now();
  EXPECT_EQ(client.ask({"BLPOP", "q", "0.2"}), "*-1\r\n");
  EXPECT_GE(steady_clock::now() - begin, milliseconds(190));
  EXPECT_EQ(client.ask({"BLMOVE", "q", "q", "LEFT", "LEFT", "0.05"}), "*-1\r\n");
  EXPECT_EQ(client.ask({"XREAD", "BLOCK", "50", "STREAMS", "s", "$"}), "*-1\r\n");
  EXPECT_EQ(client.ask({"BZPOPMIN", "z", "0.05"}), "*-1\r\n");
  EXPECT_EQ(client.ask({"BLMPOP", "0.05", "1", "q", "LEFT"}), "*-1\r\n");
}

TEST(Blocked, SaysWhatIsWrongAsRedisDoes) {
  Cluster cluster(2);
  RedisProcess alone;
  Client ours = cluster.client();
  Client theirs(alone.port());
  for (const auto& words : {std::initializer_list<std::string_view>{"BLPOP", "q", "x"},
                            {"BLPOP", "q", "-1"},
                            {"BLPOP", "q"},
                            {"BLMPOP", "0", "0", "q", "LEFT"},
                            {"XREAD", "BLOCK", "x", "STREAMS", "s", "$"},
                            {"XREAD", "BLOCK", "10", "STREAMS", "s"},
                            {"BLMOVE", "q", "q", "UP", "LEFT", "1"}}) {
    EXPECT_EQ(ours.ask(words), theirs.ask(words));
  }
  ours.ask({"SET", "q", "string"});
  theirs.ask({"SET", "q", "string"});
  EXPECT_EQ(ours.ask({"BLPOP", "q", "1"}), theirs.ask({"BLPOP", "q", "1"}));
}

TEST(Blocked, KeepsTheOrderOfItsClient) {
  Cluster cluster(2);
  Client client = cluster.client();
  Client other = cluster.client();
  std::string bytes;
  for (const auto& words : {std::initializer_list<std::string_view>{"SET", "a", "1"},
                            {"BLPOP", "q", "0"},
                            {"INCR", "a"},
                            {"GET", "a"}}) {
    protocol::resp::append_command(bytes, words);
  }
  ASSERT_TRUE(client.send(bytes));
  EXPECT_EQ(client.reply(), "+OK\r\n");
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(other.ask({"GET", "a"}), "$1\r\n1\r\n") << "what is behind BLPOP waits for it";
  EXPECT_EQ(other.ask({"RPUSH", "q", "v"}), ":1\r\n");
  EXPECT_EQ(client.reply(), "*2\r\n$1\r\nq\r\n$1\r\nv\r\n");
  EXPECT_EQ(client.reply(), ":2\r\n");
  EXPECT_EQ(client.reply(), "$1\r\n2\r\n");
}

TEST(Blocked, AClientThatLeavesTakesNothing) {
  Cluster cluster(2);
  const std::string queue = cluster.key_of(0);
  {
    Client leaving = cluster.client();
    leaving.command({"BLPOP", queue, "0"});
    ASSERT_TRUE(has_blocked(cluster.member(0), 1));
  }
  ASSERT_TRUE(has_blocked(cluster.member(0), 0));
  Client client = cluster.client();
  EXPECT_EQ(client.ask({"RPUSH", queue, "v"}), ":1\r\n");
  EXPECT_EQ(client.ask({"LPOP", queue}), "$1\r\nv\r\n");
}

TEST(Blocked, GoesWithItsKeyToAnotherMember) {
  Cluster cluster(3);
  const std::string queue = cluster.key_of(2);
  cluster.publish(2, 2);
  const std::size_t before = cluster.holder()->load()->route(queue).member;
  Client waiting = cluster.client();
  waiting.command({"BLPOP", queue, "5"});
  ASSERT_TRUE(has_blocked(cluster.member(before), 1));
  cluster.publish(3, 3);
  ASSERT_TRUE(has_blocked(cluster.member(2), 1));
  EXPECT_TRUE(has_blocked(cluster.member(before), 0));
  EXPECT_EQ(cluster.client().ask({"RPUSH", queue, "v"}), ":1\r\n");
  EXPECT_EQ(waiting.reply(), fmt::format("*2\r\n${}\r\n{}\r\n$1\r\nv\r\n", queue.size(), queue));
}

TEST(Blocked, AWaitOnKeysThatStayHoldsUpNoChange) {
  Cluster cluster(3);
  cluster.publish(2, 2);
  std::string staying;
  for (int i = 0;; ++i) {
    staying = fmt::format("q{}", i);
    const auto two = cluster.holder()->load()->route(staying).member;
    cluster.publish(3, static_cast<std::uint64_t>(3 + 2 * i));
    const auto three = cluster.holder()->load()->route(staying).member;
    cluster.publish(2, static_cast<std::uint64_t>(4 + 2 * i));
    if (two == three) break;
  }
  Client waiting = cluster.client();
  waiting.command({"BLPOP", staying, "0"});
  ASSERT_TRUE(has_blocked(cluster.member(cluster.holder()->load()->route(staying).member), 1));
  std::atomic<bool> applied = false;
  cluster.proxy().set_on_applied(
      [&](topology::Version version) { applied = applied || version.revision == 1000; });
  cluster.publish(3, 1000);
  for (int i = 0; i < 200 && !applied; ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_TRUE(applied);
  cluster.proxy().set_on_applied({});
}

TEST(Blocked, TheMembersDeathIsAnError) {
  Cluster cluster(2);
  Client waiting = cluster.client();
  waiting.command({"BLPOP", cluster.key_of(0), "0"});
  ASSERT_TRUE(has_blocked(cluster.member(0), 1));
  cluster.kill_member(0);
  EXPECT_TRUE(waiting.reply().starts_with("-TIMEOUT member cache-1"));
  EXPECT_EQ(waiting.ask({"PING"}), "+PONG\r\n");
}

}  // namespace
}  // namespace ringshift::proxy
