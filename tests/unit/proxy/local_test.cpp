// What the proxy answers itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cluster.h"
#include "proxy/replies.h"

namespace ringshift::proxy {
namespace {

TEST(ProxyLocal, SmallOnes) {
  Cluster cluster(1);
  Client client = cluster.client();
  EXPECT_EQ(client.ask({"PING"}), "+PONG\r\n");
  EXPECT_EQ(client.ask({"ping", "hi"}), "$2\r\nhi\r\n");
  EXPECT_EQ(client.ask({"ECHO", "hi"}), "$2\r\nhi\r\n");
  EXPECT_EQ(client.ask({"SELECT", "0"}), "+OK\r\n");
  EXPECT_EQ(client.ask({"SELECT", "1"}), "-ERR DB index is out of range\r\n");
  EXPECT_TRUE(client.ask({"AUTH", "x"}).starts_with("-ERR AUTH <password> called without any password"));
}

TEST(ProxyLocal, ClientCommands) {
  Cluster cluster(1);
  Client client = cluster.client();
  EXPECT_EQ(client.ask({"CLIENT", "GETNAME"}), "$-1\r\n");
  EXPECT_EQ(client.ask({"CLIENT", "SETNAME", "me"}), "+OK\r\n");
  EXPECT_EQ(client.ask({"client", "getname"}), "$2\r\nme\r\n");
  EXPECT_EQ(client.ask({"CLIENT", "SETINFO", "LIB-NAME", "redis-py"}), "+OK\r\n");
  EXPECT_TRUE(client.ask({"CLIENT", "ID"}).starts_with(":"));
  EXPECT_NE(client.ask({"CLIENT", "ID"}), cluster.client().ask({"CLIENT", "ID"}));
  EXPECT_TRUE(client.ask({"CLIENT", "INFO"}).contains(" name=me "));
}

TEST(ProxyLocal, HelloChoosesTheProtocolOfTheConnection) {
  Cluster cluster(2);
  Client three = cluster.client();
  Client two = cluster.client();
  EXPECT_TRUE(three.ask({"HELLO", "3", "SETNAME", "x"}).starts_with("%7\r\n"));
  EXPECT_TRUE(two.ask({"HELLO"}).starts_with("*14\r\n"));
  EXPECT_EQ(three.ask({"CLIENT", "GETNAME"}), "$1\r\nx\r\n");
  EXPECT_EQ(three.ask({"GET", "none"}), "_\r\n");
  EXPECT_EQ(two.ask({"GET", "none"}), "$-1\r\n");
  EXPECT_TRUE(three.ask({"HELLO", "3", "AUTH", "u", "p"}).starts_with("-WRONGPASS "));
  for (const std::string_view version : {"4", "-1", "0"}) {
    EXPECT_EQ(three.ask({"HELLO", version}), "-NOPROTO unsupported protocol version\r\n");
  }
  for (const std::string_view version : {"01", "x", "", "+2"}) {
    EXPECT_EQ(three.ask({"HELLO", version}), "-ERR Protocol version is not an integer or out of range\r\n");
  }
  EXPECT_EQ(three.ask({"HELLO", "2", std::string_view("set\0x", 5)}),
            "-ERR Syntax error in HELLO option 'set'\r\n");
  EXPECT_EQ(three.ask({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(three.ask({"GET", "none"}), "$-1\r\n");
  EXPECT_EQ(three.ask({"CLIENT", "GETNAME"}), "$-1\r\n");
}

// The two protocols have connections of their own to a member; a later command must not overtake.
TEST(ProxyLocal, HelloInAPipelineKeepsTheOrder) {
  Cluster cluster(1);
  Client client = cluster.client();
  std::string bytes;
  for (int i = 0; i < 200; ++i) {
    protocol::resp::append_command(bytes, {"HELLO", i % 2 == 0 ? "3" : "2"});
    protocol::resp::append_command(bytes, {"SET", "k", std::to_string(i)});
    protocol::resp::append_command(bytes, {"HELLO", i % 2 == 0 ? "2" : "3"});
    protocol::resp::append_command(bytes, {"GET", "k"});
  }
  ASSERT_TRUE(client.send(bytes));
  for (int i = 0; i < 200; ++i) {
    client.reply();
    ASSERT_EQ(client.reply(), "+OK\r\n");
    client.reply();
    const std::string value = std::to_string(i);
    ASSERT_EQ(client.reply(), fmt::format("${}\r\n{}\r\n", value.size(), value));
  }
}

TEST(ProxyLocal, InfoTellsWhatHappened) {
  Cluster cluster(2);
  Client client = cluster.client();
  client.ask({"SET", "a", "1"});
  client.ask({"GET", "a"});
  client.ask({"GET", "none"});
  client.ask({"INCR", "a", "b"});
  const std::string info = client.ask({"INFO"});
  for (const std::string_view line :
       {"# Server\r\n", "connected_clients:1\r\n", "keyspace_hits:1\r\n", "keyspace_misses:1\r\n",
        "total_commands_processed:5\r\n", "errors_refused:1\r\n", "topology_version:0.1\r\n",
        "cluster:test\r\n", "members:2\r\n"}) {
    EXPECT_TRUE(info.contains(line)) << line << " in " << info;
  }
  const std::string section = client.ask({"INFO", "Topology"});
  EXPECT_TRUE(section.contains("topology_digest:") && !section.contains("# Server"));
  EXPECT_EQ(client.ask({"INFO", "nosuch"}), "$0\r\n\r\n");
}

TEST(ProxyLocal, CommandListsWhatIsServed) {
  Cluster cluster(1);
  Client client = cluster.client();
  const auto all = protocol::resp::decode(client.ask({"COMMAND"}));
  ASSERT_TRUE(all && *all);
  EXPECT_EQ(client.ask({"COMMAND", "COUNT"}), fmt::format(":{}\r\n", (*all)->value.items.size()));
  const auto info = protocol::resp::decode(client.ask({"COMMAND", "INFO", "get", "monitor", "object"}));
  ASSERT_TRUE(info && *info && (*info)->value.items.size() == 3);
  EXPECT_EQ((*info)->value.items[0].items[1].integer, 2);
  EXPECT_TRUE((*info)->value.items[1].is_null()) << "MONITOR is not served";
  EXPECT_EQ((*info)->value.items[2].items[0].text, "object");
  EXPECT_EQ(client.ask({"COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2"}), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
}

TEST(ProxyLocal, QuitAnswersEverythingBefore) {
  Cluster cluster(2);
  Client client = cluster.client();
  std::string bytes;
  protocol::resp::append_command(bytes, {"SET", "a", "1"});
  protocol::resp::append_command(bytes, {"GET", "a"});
  protocol::resp::append_command(bytes, {"QUIT"});
  protocol::resp::append_command(bytes, {"SET", "a", "2"});
  ASSERT_TRUE(client.send(bytes));
  EXPECT_EQ(client.rest(), "+OK\r\n$1\r\n1\r\n+OK\r\n");
  EXPECT_EQ(cluster.client().ask({"GET", "a"}), "$1\r\n1\r\n");
}

TEST(ProxyLocal, ErrorsRepeatAWordUpToANul) {
  Cluster cluster(1);
  Client client = cluster.client();
  const std::string_view word("a\0b", 3);
  EXPECT_EQ(client.ask({word, word}), "-ERR unknown command 'a', with args beginning with: 'a' \r\n");
  EXPECT_EQ(client.ask({"CLIENT", word}), "-ERR unknown subcommand 'a'. Try CLIENT HELP.\r\n");
}

TEST(ProxyLocal, ABrowsersFormIsClosedAtOnce) {
  Cluster cluster(1);
  Client client = cluster.client();
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\n\r\nSET by-a-web-page x\r\n"));
  EXPECT_EQ(client.rest(std::chrono::seconds(5)), "");
  EXPECT_EQ(cluster.client().ask({"EXISTS", "by-a-web-page"}), ":0\r\n");
}

TEST(ProxyReplies, AnErrorIsOneLine) {
  const backend::Failure failure{backend::Failure::Kind::unsent, "cache-1", "bad\r\n+OK"};
  EXPECT_EQ(failure_reply(failure), "-TRYAGAIN member cache-1 bad  +OK: the command was not executed\r\n");
}

}  // namespace
}  // namespace ringshift::proxy
