// MULTI, EXEC, DISCARD, WATCH, UNWATCH through the proxy, beside what one redis-server answers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

using Words = std::vector<std::string>;

std::string encode(const std::vector<Words>& commands) {
  std::string bytes;
  for (const Words& words : commands) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    protocol::resp::append_command(bytes, views);
  }
  return bytes;
}

// Sends all in one write and gives all the answers.
std::string talk(Client& client, const std::vector<Words>& commands) {
  EXPECT_TRUE(client.send(encode(commands)));
  std::string answers;
  for (std::size_t i = 0; i < commands.size(); ++i) answers += client.reply();
  return answers;
}

struct Case {
  const char* what;
  std::vector<Words> commands;
};

// Each key is tagged {t}, so that all of them are on one member whatever the tag rule: one key a case.
const Case kAsRedis[] = {
    {"a plain block", {{"MULTI"}, {"SET", "k", "1"}, {"INCR", "k"}, {"GET", "k"}, {"EXEC"}}},
    {"nothing queued", {{"MULTI"}, {"EXEC"}}},
    {"exec alone", {{"EXEC"}}},
    {"discard alone", {{"DISCARD"}}},
    {"nested", {{"MULTI"}, {"MULTI"}, {"SET", "k", "2"}, {"EXEC"}}},
    {"discarded", {{"SET", "k", "a"}, {"MULTI"}, {"SET", "k", "b"}, {"DISCARD"}, {"GET", "k"}}},
    {"unknown command", {{"MULTI"}, {"NOSUCH", "k"}, {"SET", "k", "1"}, {"EXEC"}}},
    {"wrong arity", {{"MULTI"}, {"GET"}, {"EXEC"}, {"PING"}}},
    {"wrong arity of a local command", {{"MULTI"}, {"ECHO"}, {"EXEC"}}},
    {"runtime error inside", {{"MULTI"}, {"SET", "k", "x"}, {"LPUSH", "k", "y"}, {"GET", "k"}, {"EXEC"}}},
    {"watch inside", {{"MULTI"}, {"WATCH", "k"}, {"SET", "k", "1"}, {"EXEC"}}},
    {"unwatch inside", {{"MULTI"}, {"UNWATCH"}, {"EXEC"}}},
    {"blocking inside does not wait", {{"DEL", "k"}, {"MULTI"}, {"BLPOP", "k", "0"}, {"EXEC"}}},
    {"ping and echo", {{"MULTI"}, {"PING"}, {"ECHO", "hello"}, {"EXEC"}}},
    {"watch, unchanged", {{"SET", "k", "1"}, {"WATCH", "k"}, {"MULTI"}, {"INCR", "k"}, {"EXEC"}}},
    {"own write after watch", {{"WATCH", "k"}, {"SET", "k", "9"}, {"MULTI"}, {"GET", "k"}, {"EXEC"}}},
    {"own write, then unwatch",
     {{"WATCH", "k"}, {"SET", "k", "9"}, {"UNWATCH"}, {"MULTI"}, {"GET", "k"}, {"EXEC"}}},
    {"discard unwatches",
     {{"WATCH", "k"}, {"SET", "k", "9"}, {"MULTI"}, {"DISCARD"}, {"MULTI"}, {"GET", "k"}, {"EXEC"}}},
    {"exec unwatches",
     {{"WATCH", "k"},
      {"MULTI"},
      {"SET", "k", "8"},
      {"EXEC"},
      {"SET", "k", "7"},
      {"MULTI"},
      {"GET", "k"},
      {"EXEC"}}},
    {"empty exec under watch", {{"WATCH", "k"}, {"MULTI"}, {"EXEC"}, {"PING"}}},
    {"spoiled under watch", {{"WATCH", "k"}, {"MULTI"}, {"GET"}, {"EXEC"}, {"GET", "k"}}},
    {"reset inside", {{"MULTI"}, {"SET", "k", "1"}, {"RESET"}, {"GET", "k"}}},
    {"unwatch alone", {{"UNWATCH"}}},
    {"watch arity", {{"WATCH"}}},
};

TEST(Transaction, AnswersAsOneRedisServerDoes) {
  for (const bool resp3 : {false, true}) {
    Cluster cluster(3);
    RedisProcess alone;
    for (const Case& one : kAsRedis) {
      Client ours = cluster.client();
      Client theirs(alone.port());
      if (resp3) {
        ours.ask({"HELLO", "3"});
        theirs.ask({"HELLO", "3"});
      }
      EXPECT_EQ(talk(ours, one.commands), talk(theirs, one.commands)) << one.what << (resp3 ? ", RESP3" : "");
      ours.ask({"DEL", "k"});
      theirs.ask({"DEL", "k"});
    }
  }
}

TEST(Transaction, HelloBetweenWatchAndExecHolds) {
  Cluster cluster(3);
  RedisProcess alone;
  Client ours = cluster.client();
  Client theirs(alone.port());
  for (Client* client : {&ours, &theirs}) client->ask({"HSET", "h", "a", "1"});
  for (int round = 0; round < 3; ++round) {  // What is left behind does not disturb the next.
    for (const char* resp : {"3", "2"}) {
      const auto begin = [&](Client& client) {
        EXPECT_EQ(client.ask({"WATCH", "h"}), "+OK\r\n");
        (void)client.ask({"HELLO", resp});
        return talk(client, {{"MULTI"}, {"HGETALL", "h"}, {"HGET", "h", "none"}, {"EXEC"}, {"HGETALL", "h"}});
      };
      EXPECT_EQ(begin(ours), begin(theirs)) << resp;
    }
    const auto aborts = [](Client& client, std::uint16_t port) {
      EXPECT_EQ(client.ask({"WATCH", "h"}), "+OK\r\n");
      (void)client.ask({"HELLO", "3"});
      EXPECT_EQ(Client(port).ask({"HSET", "h", "a", "2"}), ":0\r\n");
      std::string answers = talk(client, {{"MULTI"}, {"HGETALL", "h"}, {"EXEC"}});
      (void)client.ask({"HELLO", "2"});
      return answers + talk(client, {{"WATCH", "h"}, {"MULTI"}, {"HGETALL", "h"}, {"EXEC"}});
    };
    EXPECT_EQ(aborts(ours, cluster.port()), aborts(theirs, alone.port()));
  }
}

TEST(Transaction, AChangeBySomebodyElseAborts) {
  Cluster cluster(3);
  Client one = cluster.client();
  Client other = cluster.client();
  EXPECT_EQ(talk(one, {{"SET", "k", "1"}, {"WATCH", "k"}}), "+OK\r\n+OK\r\n");
  EXPECT_EQ(other.ask({"SET", "k", "2"}), "+OK\r\n");
  EXPECT_EQ(talk(one, {{"MULTI"}, {"SET", "k", "3"}, {"EXEC"}}), "+OK\r\n+QUEUED\r\n*-1\r\n");
  EXPECT_EQ(one.ask({"GET", "k"}), "$1\r\n2\r\n");
  // And the next one is free again.
  EXPECT_EQ(talk(one, {{"MULTI"}, {"SET", "k", "3"}, {"EXEC"}}), "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
}

TEST(Transaction, KeysOfTwoMembersAreRefusedAtQueueingAndAbort) {
  Cluster cluster(3);
  Client client = cluster.client();
  const std::string a = cluster.key_of(0);
  const std::string b = cluster.key_of(1);
  EXPECT_EQ(talk(client, {{"MULTI"}, {"SET", a, "1"}, {"SET", b, "1"}, {"EXEC"}, {"EXISTS", a}}),
            "+OK\r\n+QUEUED\r\n-CROSSSLOT Keys in request don't hash to the same slot\r\n"
            "-EXECABORT Transaction discarded because of previous errors.\r\n:0\r\n");
  EXPECT_EQ(talk(client, {{"WATCH", a, b}, {"WATCH", a}, {"WATCH", b}, {"MULTI"}, {"SET", b, "1"}, {"EXEC"}}),
            "-CROSSSLOT Keys in request don't hash to the same slot\r\n+OK\r\n"
            "-CROSSSLOT Keys in request don't hash to the same slot\r\n+OK\r\n+QUEUED\r\n"
            "-CROSSSLOT Keys in request don't hash to the same slot\r\n");
  EXPECT_EQ(client.ask({"PING"}), "+PONG\r\n");
}

TEST(Transaction, WhatConcernsAllMembersIsRefusedInside) {
  Cluster cluster(2);
  Client client = cluster.client();
  const std::string answers = talk(client, {{"MULTI"}, {"DBSIZE"}, {"EXEC"}});
  EXPECT_TRUE(answers.starts_with("+OK\r\n-ERR command 'dbsize' is not supported by ringshift")) << answers;
  EXPECT_TRUE(answers.ends_with("-EXECABORT Transaction discarded because of previous errors.\r\n"))
      << answers;
}

TEST(Transaction, TheReasonOfARefusalIsTrue) {
  Cluster cluster(2);
  const std::vector<std::pair<Words, std::string>> refused = {
      {{"DBSIZE"}, "it concerns all members"},
      {{"SCAN", "0"}, "it concerns all members"},
      {{"HELLO", "3"}, "the proxy answers it"},
      {{"SELECT", "0"}, "the proxy answers it"},
      {{"CLIENT", "SETNAME", "x"}, "the proxy answers it"},
      {{"CLIENT", "ID"}, "the proxy answers it"},
      {{"INFO"}, "the proxy answers it"},
      {{"CONFIG", "GET", "port"}, "the proxy answers it"},
      {{"PUBSUB", "CHANNELS"}, "subscriptions are kept by the proxy"}};
  for (const auto& [words, reason] : refused) {
    Client client = cluster.client();
    const std::string answers = talk(client, {{"MULTI"}, words, {"EXEC"}, {"PING"}});
    EXPECT_NE(answers.find("not supported by ringshift: between MULTI and EXEC: " + reason),
              std::string::npos)
        << answers;
    EXPECT_TRUE(
        answers.ends_with("-EXECABORT Transaction discarded because of previous errors.\r\n+PONG\r\n"));
  }
}

TEST(Transaction, ReservedKeysAreRefused) {
  Cluster cluster(2);
  Client client = cluster.client();
  EXPECT_TRUE(client.ask({"WATCH", "rs:stamp"}).starts_with("-ERR keys beginning with 'rs:'"));
  const std::string answers = talk(client, {{"MULTI"}, {"GET", "rs:stamp"}, {"EXEC"}});
  EXPECT_NE(answers.find("-EXECABORT"), std::string::npos) << answers;
}

TEST(Transaction, AWatchWhoseKeysChangeMemberAborts) {
  Cluster cluster(3);
  cluster.publish(2, 2);
  Client client = cluster.client();
  std::string moving;  // On member 2 of three, elsewhere of two.
  {
    const auto two = cluster.holder()->load();
    cluster.publish(3, 3);
    moving = cluster.key_of(2);
    cluster.publish(2, 4);
  }
  EXPECT_EQ(talk(client, {{"WATCH", moving}}), "+OK\r\n");
  cluster.publish(3, 5);
  for (int i = 0; i < 200 && client.ask({"INFO", "topology"}).find("members:3") == std::string::npos; ++i) {
  }
  EXPECT_EQ(talk(client, {{"MULTI"}, {"PING"}, {"EXEC"}}), "+OK\r\n+QUEUED\r\n*-1\r\n");
  EXPECT_EQ(talk(client, {{"MULTI"}, {"PING"}, {"EXEC"}}), "+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n");
}

TEST(Transaction, AWatchWhoseMemberDiesAborts) {
  Cluster cluster(2);
  Client client = cluster.client();
  const std::string key = cluster.key_of(0);
  EXPECT_EQ(talk(client, {{"WATCH", key}}), "+OK\r\n");
  cluster.kill_member(0);
  cluster.restart_member(0);
  EXPECT_TRUE(cluster.answers(key, "$-1\r\n"));
  EXPECT_EQ(talk(client, {{"MULTI"}, {"SET", key, "1"}, {"EXEC"}}), "+OK\r\n+QUEUED\r\n*-1\r\n");
}

TEST(Transaction, ABlockOfADeadMemberFailsAndTheConnectionLives) {
  Options options;
  options.request_timeout = std::chrono::milliseconds(300);
  Cluster cluster(2, options);
  Client client = cluster.client();
  const std::string key = cluster.key_of(0);
  EXPECT_EQ(client.ask({"SET", key, "1"}), "+OK\r\n");
  cluster.kill_member(0);
  const std::string answers = talk(client, {{"MULTI"}, {"SET", key, "2"}, {"EXEC"}, {"PING"}});
  EXPECT_TRUE(answers.starts_with("+OK\r\n+QUEUED\r\n-T")) << answers;
  EXPECT_TRUE(answers.ends_with("+PONG\r\n")) << answers;
}

TEST(Transaction, ManyClientsEachAtomic) {
  Cluster cluster(3);
  std::vector<Client> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(cluster.client());
  for (int round = 0; round < 20; ++round) {
    for (Client& client : clients) {
      ASSERT_TRUE(client.send(encode({{"MULTI"}, {"INCR", "n"}, {"INCR", "n"}, {"EXEC"}})));
    }
    for (Client& client : clients) {
      for (int i = 0; i < 3; ++i) client.reply();
      const std::string raw = client.reply();
      const auto decoded = protocol::resp::decode(raw);
      ASSERT_TRUE(decoded && *decoded) << raw;
      const auto& items = (*decoded)->value.items;
      ASSERT_EQ(items.size(), 2U) << raw;
      EXPECT_EQ(items[0].integer + 1, items[1].integer);
    }
  }
  EXPECT_EQ(clients[0].ask({"GET", "n"}), "$3\r\n800\r\n");
}

}  // namespace
}  // namespace ringshift::proxy
