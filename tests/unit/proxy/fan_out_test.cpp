// Commands that every member is asked.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

std::vector<std::string> texts(const std::string& raw) {
  const auto decoded = protocol::resp::decode(raw);
  EXPECT_TRUE(decoded && *decoded) << raw;
  std::vector<std::string> out;
  if (decoded && *decoded) {
    for (const auto& item : (*decoded)->value.items) out.push_back(item.text);
  }
  std::ranges::sort(out);
  return out;
}

TEST(FanOut, CountsAndListsAllMembersKeysWithoutOurs) {
  Cluster cluster(3);
  Client client = cluster.client();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(client.ask({"SET", fmt::format("key:{}", i), "v"}), "+OK\r\n");
  Client(cluster.member(1).port()).ask({"SET", "rs:stamp", "1.1.open.x"});
  EXPECT_EQ(client.ask({"DBSIZE"}), ":50\r\n");
  EXPECT_EQ(texts(client.ask({"KEYS", "*"})).size(), 50U);
  EXPECT_EQ(texts(client.ask({"KEYS", "key:1?"})).size(), 10U);
  EXPECT_EQ(client.ask({"KEYS", "none*"}), "*0\r\n");
}

TEST(FanOut, ScriptsAreOnEveryMember) {
  Cluster cluster(3);
  Client client = cluster.client();
  const std::string loaded = client.ask({"SCRIPT", "LOAD", "return redis.call('get', KEYS[1])"});
  ASSERT_TRUE(loaded.starts_with("$40\r\n")) << loaded;
  const std::string sha = loaded.substr(5, 40);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(Client(cluster.member(i).port()).ask({"SCRIPT", "EXISTS", sha}), "*1\r\n:1\r\n");
    const std::string key = cluster.key_of(i);
    ASSERT_EQ(client.ask({"SET", key, "here"}), "+OK\r\n");
    EXPECT_EQ(client.ask({"EVALSHA", sha, "1", key}), "$4\r\nhere\r\n");
  }
  Client(cluster.member(2).port()).ask({"SCRIPT", "FLUSH"});
  // A member that has lost it gets it from the proxy.
  EXPECT_EQ(client.ask({"SCRIPT", "EXISTS", sha, std::string(40, '0')}), "*2\r\n:1\r\n:0\r\n");
  EXPECT_EQ(client.ask({"SCRIPT", "FLUSH"}), "+OK\r\n");
  EXPECT_TRUE(client.ask({"SCRIPT", "LOAD", "nonsense("}).starts_with("-ERR Error compiling script"));
}

TEST(FanOut, FunctionsAreOnEveryMember) {
  Cluster cluster(2);
  Client client = cluster.client();
  const std::string library =
      "#!lua name=mine\nredis.register_function('get1', function(k) return redis.call('get', k[1]) end)";
  EXPECT_EQ(client.ask({"FUNCTION", "LOAD", library}), "$4\r\nmine\r\n");
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string key = cluster.key_of(i);
    ASSERT_EQ(client.ask({"SET", key, "x"}), "+OK\r\n");
    EXPECT_EQ(client.ask({"FCALL", "get1", "1", key}), "$1\r\nx\r\n");
  }
  EXPECT_TRUE(client.ask({"FUNCTION", "LOAD", library}).starts_with("-ERR Library 'mine' already exists"));
  EXPECT_EQ(client.ask({"FUNCTION", "DELETE", "mine"}), "+OK\r\n");
}

TEST(FanOut, FlushIsRefusedUnlessAllowedAndSparesTheStamp) {
  Cluster cluster(2);
  EXPECT_TRUE(cluster.client().ask({"FLUSHALL"}).starts_with("-ERR FLUSHALL and FLUSHDB are disabled here"));

  Options options;
  options.allow_flush = true;
  Cluster allowing(2, options);
  Client client = allowing.client();
  Client member(allowing.member(0).port());
  member.ask({"SET", "rs:stamp", "s"});
  for (int i = 0; i < 20; ++i) client.ask({"SET", fmt::format("k{}", i), "v"});
  EXPECT_EQ(client.ask({"FLUSHALL", "SOMETIME"}), "-ERR syntax error\r\n");
  EXPECT_EQ(client.ask({"FLUSHALL", "ASYNC"}), "+OK\r\n");
  EXPECT_EQ(client.ask({"DBSIZE"}), ":0\r\n");
  EXPECT_EQ(member.ask({"GET", "rs:stamp"}), "$1\r\ns\r\n");
}

TEST(FanOut, AMemberThatIsAwayMakesItAnError) {
  Options options;
  options.request_timeout = std::chrono::milliseconds(300);
  Cluster cluster(2, options);
  Client client = cluster.client();
  ASSERT_EQ(client.ask({"DBSIZE"}), ":0\r\n");
  cluster.kill_member(1);
  EXPECT_TRUE(client.ask({"DBSIZE"}).starts_with("-T"));
  EXPECT_TRUE(client.ask({"KEYS", "*"}).starts_with("-T"));
  EXPECT_EQ(client.ask({"PING"}), "+PONG\r\n");
}

}  // namespace
}  // namespace ringshift::proxy
