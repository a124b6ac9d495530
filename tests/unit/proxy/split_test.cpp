// MGET, MSET, DEL, UNLINK, EXISTS and TOUCH over several members.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

std::string command_of(std::string_view name, const std::vector<std::string>& arguments) {
  std::vector<std::string_view> views{name};
  views.insert(views.end(), arguments.begin(), arguments.end());
  std::string bytes;
  protocol::resp::append_command(bytes, views);
  return bytes;
}

TEST(ProxySplit, ManyKeysBothWays) {
  for (const std::string_view protocol : {"2", "3"}) {
    RedisProcess server;
    Cluster cluster(4);
    Client direct(server.port());
    Client proxied = cluster.client();
    direct.ask({"HELLO", protocol});
    proxied.ask({"HELLO", protocol});
    std::vector<std::string> pairs;
    std::vector<std::string> keys;
    for (int i = 0; i < 1000; ++i) {
      keys.push_back(fmt::format("key:{}", i * 7 % 500));  // Each of 500 keys twice.
      if (i % 3 != 0) {
        pairs.push_back(keys.back());
        pairs.push_back(fmt::format("value {}", i));
      }
    }
    for (const std::string& bytes :
         {command_of("MSET", pairs), command_of("mget", keys), command_of("EXISTS", keys),
          command_of("TOUCH", keys), command_of("DEL", {keys.begin(), keys.begin() + 100}),
          command_of("MGET", keys), command_of("UNLINK", keys), command_of("MGET", keys)}) {
      ASSERT_TRUE(direct.send(bytes) && proxied.send(bytes));
      EXPECT_EQ(proxied.reply(), direct.reply()) << "RESP" << protocol;
    }
  }
}

TEST(ProxySplit, KeepsItsPlaceInAPipeline) {
  Cluster cluster(4);
  Client client = cluster.client();
  std::string bytes;
  std::string expected;
  for (int round = 0; round < 50; ++round) {
    const std::string a = fmt::format("a{}", round);
    const std::string b = fmt::format("b{}", round);
    protocol::resp::append_command(bytes, {"MSET", a, "1", b, "2"});
    protocol::resp::append_command(bytes, {"GET", b});
    protocol::resp::append_command(bytes, {"PING"});
    protocol::resp::append_command(bytes, {"MGET", b, "none", a, a});
    protocol::resp::append_command(bytes, {"DEL", a, b});
    protocol::resp::append_command(bytes, {"GET", a});
    expected += "+OK\r\n$1\r\n2\r\n+PONG\r\n*4\r\n$1\r\n2\r\n$-1\r\n$1\r\n1\r\n$1\r\n1\r\n:2\r\n$-1\r\n";
  }
  ASSERT_TRUE(client.send(bytes));
  EXPECT_EQ(client.exactly(expected.size()), expected);
}

TEST(ProxySplit, BinaryAndEmptyValues) {
  Cluster cluster(3);
  Client client = cluster.client();
  const std::string binary("\r\n$5\r\n\0*1\r\n", 11);
  EXPECT_EQ(client.ask({"MSET", "a", binary, "b", "", "c", "-ERR", "d", std::string(100000, 'x')}),
            "+OK\r\n");
  EXPECT_EQ(client.ask({"MGET", "d", "c", "b", "a"}),
            fmt::format("*4\r\n$100000\r\n{}\r\n$4\r\n-ERR\r\n$0\r\n\r\n$11\r\n{}\r\n",
                        std::string(100000, 'x'), binary));
}

TEST(ProxySplit, AFailedMemberMakesAnErrorNeverANil) {
  Options options;
  options.request_timeout = std::chrono::milliseconds(200);
  Cluster cluster(2, options);
  Client client = cluster.client();
  const std::string a = cluster.key_of(0);
  const std::string b = cluster.key_of(1);
  EXPECT_EQ(client.ask({"MSET", a, "1", b, "2"}), "+OK\r\n");
  ::kill(cluster.member(1).pid(), SIGSTOP);
  for (const std::string& reply : {client.ask({"MGET", a, b}), client.ask({"MSET", a, "3", b, "4"}),
                                   client.ask({"DEL", a, b}), client.ask({"EXISTS", a, b})}) {
    EXPECT_TRUE(reply.starts_with("-TIMEOUT member cache-2 ") ||
                reply.starts_with("-TRYAGAIN member cache-2 "))
        << reply;
  }
  ::kill(cluster.member(1).pid(), SIGCONT);
}

TEST(ProxySplit, AWriteOfWhichAPartWasExecutedIsNotCalledUnexecuted) {
  Options options;
  options.request_timeout = std::chrono::milliseconds(200);
  Cluster cluster(2, options);
  Client client = cluster.client();
  const std::string a = cluster.key_of(0);
  const std::string b = cluster.key_of(1);
  EXPECT_EQ(client.ask({"SET", b, "1"}), "+OK\r\n");
  cluster.kill_member(1);
  std::string reply = client.ask({"SET", b, "2"});
  for (int i = 0; i < 50 && !reply.starts_with("-TRYAGAIN"); ++i) reply = client.ask({"SET", b, "2"});
  ASSERT_TRUE(reply.starts_with("-TRYAGAIN member cache-2 ")) << reply;
  EXPECT_TRUE(client.ask({"MSET", a, "1", b, "2"}).contains("may have been executed"));
  EXPECT_EQ(client.ask({"GET", a}), "$1\r\n1\r\n");
  EXPECT_TRUE(client.ask({"MGET", a, b}).starts_with("-TRYAGAIN member cache-2 "));
}

TEST(ProxySplit, AMembersOwnErrorIsTheAnswer) {
  Cluster cluster(2);
  Client client = cluster.client();
  Client(cluster.member(1).port()).ask({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_TRUE(client.ask({"MSET", cluster.key_of(0), "1", cluster.key_of(1), "2"}).starts_with("-OOM "));
}

}  // namespace
}  // namespace ringshift::proxy
