// A cluster of several databases, beside a plain redis-server.
#include <gtest/gtest.h>

#include <map>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kDatabases = 16;  // As the plain server has.

Options flushing(unsigned threads = 1) {
  Options options;
  options.allow_flush = true;
  options.threads = threads;
  return options;
}

class Databases : public testing::TestWithParam<const char*> {
 protected:
  struct Turn {
    char who;
    std::vector<std::string_view> words;
  };
  // Both are asked the same, each line at once and behind the one before, and answer the same bytes.
  void compare(const std::vector<Turn>& turns) {
    Cluster cluster(3, flushing(2), kDatabases);
    RedisProcess plain;
    std::map<char, std::pair<Client, Client>> clients;
    std::map<char, std::size_t> asked;
    for (const char who : {'a', 'b'}) {
      clients.emplace(who, std::pair(cluster.client(), Client(plain.port())));
      clients.at(who).first.ask({"HELLO", GetParam()});
      clients.at(who).second.ask({"HELLO", GetParam()});
    }
    for (const Turn& turn : turns) {
      std::string bytes;
      protocol::resp::append_command(bytes, turn.words);
      auto& [proxy, server] = clients.at(turn.who);
      ASSERT_TRUE(proxy.send(bytes));
      ASSERT_TRUE(server.send(bytes));
      const std::string expected = server.reply(milliseconds(3000));
      EXPECT_NE(expected, "(timeout)");
      EXPECT_EQ(proxy.reply(milliseconds(3000)), expected) << testing::PrintToString(turn.words);
    }
  }
};

TEST_P(Databases, EachHasKeysOfItsOwn) {
  compare({{'a', {"SET", "k", "zero"}},
           {'a', {"SELECT", "3"}},
           {'a', {"GET", "k"}},
           {'a', {"MSET", "k", "three", "l", "three", "m", "three", "n", "three"}},
           {'a', {"DBSIZE"}},
           {'a', {"MGET", "k", "l", "m", "n", "o"}},
           {'b', {"GET", "k"}},
           {'b', {"DBSIZE"}},
           {'b', {"SELECT", "15"}},
           {'b', {"DBSIZE"}},
           {'b', {"RANDOMKEY"}},
           {'b', {"KEYS", "*"}},
           {'b', {"SET", "only", "1"}},
           {'b', {"KEYS", "*"}},
           {'b', {"RANDOMKEY"}},
           {'b', {"SELECT", "0"}},
           {'b', {"KEYS", "*"}},
           {'a', {"DEL", "k", "l"}},
           {'a', {"EXISTS", "k", "m", "n"}},
           {'a', {"FLUSHDB"}},
           {'a', {"DBSIZE"}},
           {'b', {"GET", "k"}},
           {'a', {"FLUSHALL"}},
           {'b', {"DBSIZE"}},
           {'b', {"SELECT", "15"}},
           {'b', {"DBSIZE"}}});
}

TEST_P(Databases, WhatIsNoDatabaseIsRefused) {
  compare({{'a', {"SELECT", "16"}},
           {'a', {"SELECT", "-1"}},
           {'a', {"SELECT", "x"}},
           {'a', {"SELECT", ""}},
           {'a', {"SELECT", "01"}},
           {'a', {"SELECT", "4294967296"}},
           {'a', {"SELECT", "99999999999999999999"}},
           {'a', {"SELECT"}},
           {'a', {"SELECT", "1", "2"}},
           {'a', {"SET", "k", "v"}},
           {'a', {"MOVE", "k", "16"}},
           {'a', {"MOVE", "k", "x"}},
           {'a', {"MOVE", "k", "0"}},
           {'a', {"MOVE", "k", "99999999999"}},
           {'a', {"COPY", "k", "k", "DB", "16"}},
           {'a', {"COPY", "k", "k", "DB", "-1"}},
           {'a', {"COPY", "k", "k", "DB", "x"}},
           {'a', {"COPY", "k", "k", "DB"}},
           {'a', {"COPY", "k", "k", "DB", "1", "NONSENSE"}},
           {'a', {"COPY", "k", "k"}},
           {'a', {"GET", "k"}}});
}

TEST_P(Databases, TheirNumberIsASetting) {
  Cluster cluster(1, flushing(), kDatabases);
  Client client = cluster.client();
  client.ask({"HELLO", GetParam()});
  EXPECT_TRUE(client.ask({"CONFIG", "GET", "databases"}).ends_with("$9\r\ndatabases\r\n$2\r\n16\r\n"));
  EXPECT_TRUE(client.ask({"CONFIG", "GET", "data*"}).contains("databases\r\n$2\r\n16\r\n"));
  EXPECT_TRUE(client.ask({"CONFIG", "SET", "databases", "3"}).contains("can't set immutable config"));
}

TEST_P(Databases, KeysGoFromOneToAnother) {
  compare({{'a', {"SET", "k", "v"}},
           {'a', {"MOVE", "k", "2"}},
           {'a', {"SELECT", "2"}},
           {'a', {"GET", "k"}},
           {'a', {"MOVE", "k", "0"}},
           {'b', {"GET", "k"}},
           {'b', {"COPY", "k", "k", "DB", "5", "REPLACE"}},
           {'b', {"COPY", "k", "k", "REPLACE", "DB", "5"}},
           {'b', {"COPY", "k", "k", "DB", "5"}},
           {'b', {"MULTI"}},
           {'b', {"MOVE", "k", "5"}},
           {'b', {"COPY", "k", "k", "DB", "7"}},
           {'b', {"EXEC"}},
           {'b', {"SELECT", "7"}},
           {'b', {"GET", "k"}}});
}

TEST_P(Databases, TransactionsWaitsAndScriptsFollow) {
  compare({{'a', {"SELECT", "4"}},
           {'a', {"MULTI"}},
           {'a', {"SET", "k", "1"}},
           {'a', {"GET", "k"}},
           {'a', {"EXEC"}},
           {'b', {"GET", "k"}},
           {'b', {"SET", "k", "other"}},
           {'a', {"WATCH", "k"}},
           {'b', {"SET", "k", "another"}},  // In another database: no reason to abort.
           {'a', {"MULTI"}},
           {'a', {"INCR", "k"}},
           {'a', {"EXEC"}},
           {'a', {"WATCH", "k"}},
           {'b', {"SELECT", "4"}},
           {'b', {"SET", "k", "10"}},
           {'a', {"MULTI"}},
           {'a', {"INCR", "k"}},
           {'a', {"EXEC"}},
           {'b', {"RPUSH", "q", "x"}},
           {'a', {"BLPOP", "q", "1"}},
           {'b', {"SELECT", "0"}},
           {'b', {"RPUSH", "q", "x"}},
           {'a', {"BLPOP", "q", "0.05"}},
           {'a', {"EVAL", "return redis.call('get', KEYS[1])", "1", "k"}},
           {'b', {"EVAL", "return redis.call('get', KEYS[1])", "1", "k"}},
           {'a', {"RESET"}},
           {'a', {"GET", "k"}}});
}

INSTANTIATE_TEST_SUITE_P(Protocols, Databases, testing::Values("2", "3"));

TEST(DatabasesOfACluster, OneUnlessTheSpecSaysMore) {
  Cluster cluster(2);
  EXPECT_EQ(Client(cluster.port()).ask({"SELECT", "0"}), "+OK\r\n");
  EXPECT_EQ(Client(cluster.port()).ask({"SELECT", "1"}), "-ERR DB index is out of range\r\n");
  Client other = cluster.client();
  other.ask({"SET", "k", "v"});
  EXPECT_EQ(other.ask({"MOVE", "k", "1"}), "-ERR DB index is out of range\r\n");
  EXPECT_EQ(other.ask({"COPY", "k", "k", "DB", "1"}), "-ERR DB index is out of range\r\n");
  for (const std::size_t member : {0U, 1U}) {
    EXPECT_EQ(cluster.member(member).command("INFO keyspace").find("db1:"), std::string::npos);
  }
}

// A command and the ones behind it in one write, in several databases: nothing overtakes.
TEST(DatabasesOfACluster, APipelineKeepsItsOrder) {
  Cluster cluster(3, flushing(), kDatabases);
  Client client = cluster.client();
  std::string bytes, expected;
  for (int i = 0; i < 50; ++i) {
    const std::string key = "k" + std::to_string(i);
    const std::string to = std::to_string(1 + i % 15);
    for (const std::vector<std::string_view>& words : {std::vector<std::string_view>{"SELECT", "0"},
                                                       {"SET", key, "v"},
                                                       {"MOVE", key, to},
                                                       {"SELECT", to},
                                                       {"GET", key}}) {
      protocol::resp::append_command(bytes, words);
    }
    expected += "+OK\r\n+OK\r\n:1\r\n+OK\r\n$1\r\nv\r\n";
  }
  ASSERT_TRUE(client.send(bytes));
  std::string got;
  for (int i = 0; i < 250; ++i) got += client.reply(milliseconds(3000));
  EXPECT_EQ(got, expected);
}

TEST(DatabasesOfACluster, ScanSeesOneDatabase) {
  Cluster cluster(3, flushing(), kDatabases);
  Client client = cluster.client();
  for (const char* database : {"0", "6"}) {
    client.ask({"SELECT", database});
    for (int i = 0; i < 40; ++i) client.ask({"SET", std::string(database) + ":" + std::to_string(i), "v"});
  }
  std::size_t found = 0;
  std::string cursor = "0";
  do {
    client.command({"SCAN", cursor, "COUNT", "7"});
    const std::string raw = client.reply(milliseconds(3000));
    const auto decoded = protocol::resp::decode(raw);
    ASSERT_TRUE(decoded && *decoded && (*decoded)->value.items.size() == 2) << raw;
    cursor = (*decoded)->value.items[0].text;
    for (const auto& key : (*decoded)->value.items[1].items) {
      EXPECT_TRUE(key.text.starts_with("6:")) << key.text;
      ++found;
    }
  } while (cursor != "0");
  EXPECT_EQ(found, 40U);
}

TEST(DatabasesOfACluster, ChannelsBelongToNone) {
  Cluster cluster(3, flushing(2), kDatabases);
  Client listener = cluster.client(), talker = cluster.client();
  listener.ask({"SELECT", "2"});
  talker.ask({"SELECT", "9"});
  EXPECT_EQ(listener.ask({"SUBSCRIBE", "news"}), "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
  EXPECT_EQ(talker.ask({"PUBLISH", "news", "hello"}), ":1\r\n");
  EXPECT_EQ(listener.reply(milliseconds(3000)), "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n");
  EXPECT_EQ(talker.ask({"PUBSUB", "CHANNELS"}), "*1\r\n$4\r\nnews\r\n");
  EXPECT_EQ(talker.ask({"PUBSUB", "NUMSUB", "news"}), "*2\r\n$4\r\nnews\r\n:1\r\n");
}

TEST(DatabasesOfACluster, TheListOfClientsNamesThem) {
  Cluster cluster(2, flushing(), kDatabases);
  Client client = cluster.client();
  EXPECT_NE(client.ask({"CLIENT", "INFO"}).find(" db=0 "), std::string::npos);
  client.ask({"SELECT", "11"});
  EXPECT_NE(client.ask({"CLIENT", "INFO"}).find(" db=11 "), std::string::npos);
  client.ask({"RESET"});
  EXPECT_NE(client.ask({"CLIENT", "INFO"}).find(" db=0 "), std::string::npos);
}

TEST(DatabasesOfACluster, NoSelectWhileKeysAreWatched) {
  Cluster cluster(2, flushing(), kDatabases);
  Client client = cluster.client();
  client.ask({"WATCH", "k"});
  EXPECT_TRUE(client.ask({"SELECT", "1"}).starts_with("-ERR SELECT between WATCH and EXEC"));
  EXPECT_EQ(client.ask({"UNWATCH"}), "+OK\r\n");
  EXPECT_EQ(client.ask({"SELECT", "1"}), "+OK\r\n");
}

// Rather nothing than another database.
TEST(DatabasesOfACluster, ADatabaseThatIsGoneEndsItsClients) {
  Cluster cluster(2, flushing(), kDatabases);
  Client stays = cluster.client(), goes = cluster.client();
  stays.ask({"SELECT", "1"});
  goes.ask({"SELECT", "8"});
  EXPECT_EQ(goes.ask({"SET", "k", "v"}), "+OK\r\n");
  cluster.set_databases(2);
  cluster.publish(2, 2);
  EXPECT_EQ(goes.reply(milliseconds(5000)), "(closed)");
  EXPECT_EQ(stays.ask({"SET", "k", "v"}), "+OK\r\n");
  EXPECT_EQ(stays.ask({"SELECT", "2"}), "-ERR DB index is out of range\r\n");
}

}  // namespace
}  // namespace ringshift::proxy
