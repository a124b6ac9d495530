// Commands that name several keys, wherever those stand among the arguments: on one member they answer as a
// server asked directly; on several they are refused and nothing is executed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

using Arguments = std::vector<std::string>;

std::string ask(Client& client, const Arguments& arguments) {
  const std::vector<std::string_view> views(arguments.begin(), arguments.end());
  std::string bytes;
  protocol::resp::append_command(bytes, views);
  EXPECT_TRUE(client.send(bytes));
  return client.reply();
}

// The keys of one member.
std::vector<std::string> keys_of(const Cluster& cluster, std::size_t member, std::size_t count) {
  std::vector<std::string> keys;
  for (int n = 0; keys.size() < count; ++n) {
    std::string key = fmt::format("key-{}", n);
    if (cluster.holder()->load()->route(key).member == member) keys.push_back(std::move(key));
  }
  return keys;
}

// "$0", "$1", ... stand for keys.
Arguments with_keys(Arguments arguments, const std::vector<std::string>& keys) {
  for (std::string& argument : arguments)
    if (argument.size() == 2 && argument[0] == '$' && argument[1] >= '0' && argument[1] <= '9')
      argument = keys[static_cast<std::size_t>(argument[1] - '0')];
  return arguments;
}

const std::vector<Arguments> kOnOneMember = {
    {"MSETNX", "$0", "hello", "$1", "world"},
    {"MSETNX", "$1", "x", "$2", "y"},
    {"MSETNX", "$2", "x", "$3"},
    {"LCS", "$0", "$1"},
    {"RENAME", "$0", "$2"},
    {"RENAMENX", "$2", "$0"},
    {"COPY", "$0", "$2", "REPLACE"},
    {"BITOP", "OR", "$3", "$0", "$1"},
    {"SORT", "$0"},
    {"DEL", "$0", "$1", "$2", "$3"},
    {"RPUSH", "$0", "3", "1", "2"},
    {"SORT", "$0", "STORE", "$1"},
    {"SORT", "$0", "BY", "nosort", "GET", "#", "DESC"},
    {"SORT", "$0", "LIMIT", "0"},
    {"LMOVE", "$0", "$1", "LEFT", "RIGHT"},
    {"RPOPLPUSH", "$1", "$0"},
    {"LMPOP", "2", "$2", "$1", "LEFT", "COUNT", "2"},
    {"LMPOP", "2", "$2", "LEFT"},
    {"DEL", "$0", "$1", "$2", "$3"},
    {"SADD", "$0", "a", "b"},
    {"SADD", "$1", "b", "c"},
    {"SINTER", "$0", "$1"},
    {"SDIFFSTORE", "$2", "$0", "$1"},
    {"SINTERCARD", "2", "$0", "$1", "LIMIT", "1"},
    {"SINTERCARD", "0", "$0"},
    {"SMOVE", "$0", "$1", "a"},
    {"DEL", "$0", "$1", "$2", "$3"},
    {"ZADD", "$0", "1", "a", "2", "b"},
    {"ZADD", "$1", "3", "b"},
    {"ZUNIONSTORE", "$2", "2", "$0", "$1", "WEIGHTS", "1", "10"},
    {"ZUNIONSTORE", "$2", "3", "$0", "$1"},
    {"ZINTER", "2", "$0", "$1", "WITHSCORES"},
    {"ZDIFF", "2", "$0", "$1"},
    {"ZRANGESTORE", "$3", "$0", "0", "-1"},
    {"ZMPOP", "2", "$9", "$0", "MIN"},
    {"PFADD", "$4", "a"},
    {"PFMERGE", "$5", "$4"},
    {"PFMERGE", "$6"},
    {"PFCOUNT", "$4", "$5"},
    {"GEOADD", "$7", "13.4", "52.5", "berlin"},
    {"GEORADIUS", "$7", "13", "52", "500", "km", "STORE", "$8"},
    {"GEORADIUSBYMEMBER", "$7", "berlin", "1", "km", "STOREDIST", "$8"},
    {"GEOSEARCHSTORE", "$8", "$7", "FROMLONLAT", "13", "52", "BYRADIUS", "500", "km"},
    {"DEL", "$0", "$1", "$2", "$3"},
    {"XADD", "$0", "1-1", "f", "v"},
    {"XADD", "$1", "2-1", "f", "v"},
    {"XREAD", "COUNT", "1", "STREAMS", "$0", "$1", "0", "0"},
    {"XREAD", "STREAMS", "$0", "$1", "0"},
    {"XREAD", "NOSUCH"},
    {"XREAD", "COUNT", "1", "$0", "0"},
    {"XGROUP", "CREATE", "$0", "g", "0"},
    {"XREADGROUP", "GROUP", "g", "c", "STREAMS", "$0", ">"},
    {"SET", "$2", "x"},
    {"EVAL", "return {KEYS[1], redis.call('GET', KEYS[2]), ARGV[1]}", "2", "$2", "$2", "argument"},
    {"EVAL", "return {KEYS[1], redis.call('GET', KEYS[2])}", "2", "$3", "$2"},
    {"EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "$2"},
    {"EVAL", "return 7", "0"},
    {"EVAL", "return 7", "3", "$2"},
    {"EVAL", "return 7", "-1", "$2"},
    {"EVALSHA", "0123456789012345678901234567890123456789", "1", "$2"},
    {"FCALL", "nosuch", "1", "$2"},
    {"OBJECT", "ENCODING", "$2"},
    {"TOUCH", "$0", "$2"},
};

TEST(ProxySeveralKeys, OnOneMemberTheyAnswerAsAServerDoes) {
  for (const std::string hello : {"2", "3"}) {
    RedisProcess server;
    Cluster cluster(3);
    Client direct(server.port());
    Client proxied = cluster.client();
    ask(direct, {"HELLO", hello});
    ask(proxied, {"HELLO", hello});
    const std::vector<std::string> keys = keys_of(cluster, 1, 10);
    for (const Arguments& sample : kOnOneMember) {
      const Arguments arguments = with_keys(sample, keys);
      EXPECT_EQ(ask(proxied, arguments), ask(direct, arguments)) << testing::PrintToString(arguments);
    }
  }
}

TEST(ProxySeveralKeys, OnSeveralMembersTheyAreRefused) {
  Cluster cluster(3);
  Client client = cluster.client();
  std::vector<std::string> keys = keys_of(cluster, 0, 5);
  for (std::size_t i = 1; i < 5; i += 2) keys[i] = keys_of(cluster, 1, 5)[i];
  int refused = 0;
  for (const Arguments& sample :
       std::vector<Arguments>{{"RENAME", "$0", "$1"},
                              {"MSETNX", "$0", "x", "$1", "y"},
                              {"SORT", "$0", "STORE", "$1"},
                              {"EVAL", "return 1", "2", "$0", "$1"},
                              {"ZUNIONSTORE", "$0", "2", "$2", "$1"},
                              {"ZUNION", "2", "$0", "$1"},
                              {"GEORADIUS", "$0", "1", "2", "3", "m", "STORE", "$1"},
                              {"XREAD", "STREAMS", "$0", "$1", "0", "0"},
                              {"PFCOUNT", "$0", "$1"},
                              {"LMPOP", "2", "$0", "$1", "LEFT"},
                              {"SINTER", "$0", "$2", "$3"}}) {
    const Arguments arguments = with_keys(sample, keys);
    EXPECT_EQ(ask(client, arguments), "-CROSSSLOT Keys in request don't hash to the same slot\r\n")
        << testing::PrintToString(arguments);
    ++refused;
  }
  EXPECT_TRUE(client.ask({"INFO"}).contains(fmt::format("errors_refused:{}\r\n", refused)));
  for (const std::string& key : keys) EXPECT_EQ(ask(client, {"EXISTS", key}), ":0\r\n");
}

TEST(ProxySeveralKeys, WhatTouchesKeysThatItDoesNotNameIsRefused) {
  Cluster cluster(2);
  Client client = cluster.client();
  EXPECT_EQ(client.ask({"SORT", "k", "BY", "w_*"}), "-ERR BY option of SORT denied in cluster mode.\r\n");
  EXPECT_EQ(client.ask({"SORT_RO", "k", "GET", "o_*"}),
            "-ERR GET option of SORT denied in cluster mode.\r\n");
  const std::string reserved = "-ERR keys beginning with 'rs:' are reserved by ringshift\r\n";
  EXPECT_EQ(client.ask({"EVAL", "return 1", "1", "rs:x"}), reserved);
  EXPECT_EQ(client.ask({"RENAME", "k", "rs:x"}), reserved);
  EXPECT_EQ(client.ask({"SORT", "k", "STORE", "rs:x"}), reserved);
  EXPECT_EQ(client.ask({"PING"}), "+PONG\r\n");
}

TEST(ProxySeveralKeys, TheirOrderWithOtherCommandsIsKept) {
  Cluster cluster(3);
  Client client = cluster.client();
  const std::vector<std::string> keys = keys_of(cluster, 2, 2);
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    protocol::resp::append_command(bytes, {"SET", keys[0], std::to_string(i)});
    protocol::resp::append_command(bytes, {"RENAME", keys[0], keys[1]});
    protocol::resp::append_command(bytes,
                                   {"EVAL", "return redis.call('GET', KEYS[2])", "2", keys[0], keys[1]});
    protocol::resp::append_command(bytes, {"EXISTS", keys[0]});
  }
  ASSERT_TRUE(client.send(bytes));
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(client.reply(), "+OK\r\n");
    ASSERT_EQ(client.reply(), "+OK\r\n");
    ASSERT_EQ(client.reply(), fmt::format("${}\r\n{}\r\n", std::to_string(i).size(), i));
    ASSERT_EQ(client.reply(), ":0\r\n");
  }
}

TEST(ProxySeveralKeys, KeysThatMoveTogetherWaitForTheStepAndOthersAreApart) {
  Cluster cluster(3);
  const auto snapshot = all_held(cluster, 2);
  std::vector<std::string> moving;
  std::vector<std::string> staying;
  for (int n = 0; moving.size() < 2 || staying.size() < 2; ++n) {
    std::string key = fmt::format("key-{}", n);
    const topology::Route route = snapshot->route(key);
    const bool settled = route.state == topology::KeyState::settled;
    if (settled ? route.member == 0 : true) (settled ? staying : moving).push_back(std::move(key));
  }
  ASSERT_TRUE(cluster.holder()->publish(snapshot));
  cluster.proxy().notify();
  Client client = cluster.client();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!client.ask({"INFO", "topology"}).contains("topology_version:0.2\r\n")) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    std::this_thread::yield();
  }
  const std::string apart = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
  EXPECT_EQ(client.ask({"MSETNX", staying[0], "x", staying[1], "y"}), ":1\r\n");
  EXPECT_EQ(client.ask({"RENAME", staying[0], moving[0]}), apart);
  EXPECT_EQ(client.ask({"EVAL", "return 1", "2", moving[0], staying[0]}), apart);
  EXPECT_EQ(client.ask({"RENAME", staying[0], staying[1]}), "+OK\r\n");
  EXPECT_EQ(client.ask({"GET", staying[1]}), "$1\r\nx\r\n");
  client.command({"MSETNX", moving[0], "a", moving[1], "b"});
  EXPECT_EQ(client.reply(std::chrono::milliseconds(50)), "(timeout)") << "it waits for the step";
  cluster.publish(3, 3);
  EXPECT_EQ(client.reply(), ":1\r\n");
  EXPECT_EQ(Client(cluster.member(2).port()).ask({"GET", moving[1]}), "$1\r\nb\r\n");
}

}  // namespace
}  // namespace ringshift::proxy
