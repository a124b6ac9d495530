// Scripts that members lack, and scripts that do not end.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "cluster.h"
#include "proxy/script_cache.h"

namespace ringshift::proxy {
namespace {

const std::string kGetScript = "return redis.call('get', KEYS[1])";

std::string load(Client& client, const std::string& script) {
  const std::string answer = client.ask({"SCRIPT", "LOAD", script});
  EXPECT_TRUE(answer.starts_with("$40\r\n")) << answer;
  return answer.substr(5, 40);
}

TEST(Scripts, AMemberThatLacksOneIsGivenIt) {
  Cluster cluster(2);
  Client client = cluster.client();
  const std::string sha = load(client, kGetScript), key = cluster.key_of(1);
  client.ask({"SET", key, "here"});
  Client member(cluster.member(1).port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(member.ask({"SCRIPT", "FLUSH"}), "+OK\r\n");
    EXPECT_EQ(client.ask({"EVALSHA", sha, "1", key}), "$4\r\nhere\r\n");
  }
  ASSERT_EQ(member.ask({"SCRIPT", "FLUSH"}), "+OK\r\n");
  EXPECT_EQ(client.ask({"EVALSHA_RO", sha, "1", key}), "$4\r\nhere\r\n");
  // One that was never loaded, but evaluated on the other member.
  const std::string script = "return 7";
  EXPECT_EQ(client.ask({"EVAL", script, "1", cluster.key_of(0)}), ":7\r\n");
  Client other(cluster.member(0).port());
  const std::string answer = other.ask({"SCRIPT", "LOAD", script});
  const std::string sha7 = answer.substr(5, 40);
  EXPECT_EQ(member.ask({"SCRIPT", "EXISTS", sha7}), "*1\r\n:0\r\n");
  EXPECT_EQ(client.ask({"SCRIPT", "EXISTS", sha7}), "*1\r\n:1\r\n");
  EXPECT_EQ(client.ask({"EVALSHA", sha7, "1", key}), ":7\r\n");
  // In RESP3, and without keys, too.
  client.command({"HELLO", "3"});
  client.reply();
  ASSERT_EQ(other.ask({"SCRIPT", "FLUSH"}), "+OK\r\n");
  EXPECT_EQ(client.ask({"EVALSHA", sha7, "0"}), ":7\r\n");
}

TEST(Scripts, WhatTheProxyDoesNotKnowIsNoScript) {
  Cluster cluster(2);
  Client client = cluster.client();
  const std::string none(40, 'f'), key = cluster.key_of(1);
  EXPECT_EQ(client.ask({"EVALSHA", none, "1", key}), "-NOSCRIPT No matching script. Please use EVAL.\r\n");
  EXPECT_EQ(client.ask({"SCRIPT", "EXISTS", none}), "*1\r\n:0\r\n");
  const std::string sha = load(client, kGetScript);
  EXPECT_EQ(client.ask({"SCRIPT", "FLUSH"}), "+OK\r\n");
  EXPECT_EQ(client.ask({"EVALSHA", sha, "1", key}), "-NOSCRIPT No matching script. Please use EVAL.\r\n");
  EXPECT_EQ(client.ask({"SCRIPT", "EXISTS", sha}), "*1\r\n:0\r\n");
  // One that does not compile is remembered, but never said to exist.
  EXPECT_TRUE(client.ask({"EVAL", "nonsense(", "1", key}).starts_with("-ERR Error compiling script"));
  ScriptCache cache;
  cache.remember("nonsense(", false);
  EXPECT_EQ(client.ask({"PING"}), "+PONG\r\n");
  // A script's own error of the same kind is not taken for it.
  EXPECT_EQ(client.ask({"EVAL", "return redis.error_reply('NOSCRIPT mine')", "1", key}),
            "-NOSCRIPT mine\r\n");
}

// What a client has sent behind it must not overtake it: then the client gets the error, and the member the
// script.
TEST(Scripts, PipelinedOnesKeepTheirOrder) {
  Cluster cluster(1);
  Client client = cluster.client();
  const std::string sha = load(client, "return redis.call('append', KEYS[1], ARGV[1])");
  Client member(cluster.member(0).port());
  ASSERT_EQ(member.ask({"SCRIPT", "FLUSH"}), "+OK\r\n");
  std::string bytes;
  for (int i = 0; i < 4; ++i) {
    const std::string digit = std::to_string(i);
    if (i == 0) {
      protocol::resp::append_command(bytes, {"EVALSHA", sha, "1", "k", digit});
    } else {
      protocol::resp::append_command(bytes, {"APPEND", "k", digit});
    }
  }
  ASSERT_TRUE(client.send(bytes));
  const std::string first = client.reply();
  if (first.starts_with("-NOSCRIPT")) {
    for (int i = 1; i < 4; ++i) EXPECT_EQ(client.reply(), fmt::format(":{}\r\n", i));
    EXPECT_EQ(client.ask({"GET", "k"}), "$3\r\n123\r\n");
  } else {
    EXPECT_EQ(first, ":1\r\n");
    for (int i = 1; i < 4; ++i) EXPECT_EQ(client.reply(), fmt::format(":{}\r\n", i + 1));
    EXPECT_EQ(client.ask({"GET", "k"}), "$4\r\n0123\r\n");
  }
  EXPECT_TRUE(client.ask({"EVALSHA", sha, "1", "l", "x"}).starts_with(":1"));
  EXPECT_EQ(member.ask({"SCRIPT", "EXISTS", sha}), "*1\r\n:1\r\n");
}

TEST(Scripts, AMemberThatRestartsOrJoinsHasThem) {
  Cluster cluster(2);
  Client client = cluster.client();
  const std::string sha = load(client, kGetScript), key = cluster.key_of(1);
  cluster.kill_member(1);
  cluster.restart_member(1);
  ASSERT_TRUE(cluster.client().ask({"SET", cluster.key_of(0), "x"}) == "+OK\r\n");
  std::string answer;
  for (int i = 0; i < 100 && answer != "$1\r\nv\r\n"; ++i) {
    client.ask({"SET", key, "v"});
    answer = client.ask({"EVALSHA", sha, "1", key});
    EXPECT_FALSE(answer.starts_with("-NOSCRIPT"));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(answer, "$1\r\nv\r\n");
}

TEST(Scripts, KillEndsABusyOne) {
  Options options;
  options.request_timeout = std::chrono::milliseconds(3000);
  Cluster cluster(2, options);
  Client client = cluster.client();
  EXPECT_EQ(client.ask({"SCRIPT", "KILL"}), "-NOTBUSY No scripts in execution right now.\r\n");
  EXPECT_EQ(client.ask({"FUNCTION", "KILL"}), "-NOTBUSY No scripts in execution right now.\r\n");
  Client(cluster.member(1).port()).ask({"CONFIG", "SET", "busy-reply-threshold", "50"});
  Client stuck = cluster.client();
  stuck.command({"EVAL", "while true do end", "1", cluster.key_of(1)});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(client.ask({"SCRIPT", "KILL"}), "+OK\r\n");
  EXPECT_TRUE(stuck.reply().contains("Script killed by user")) << "the script's own answer";
  EXPECT_TRUE(cluster.answers(cluster.key_of(1), "$-1\r\n"));
  // A function, killed by another client while its sender waits.
  ASSERT_EQ(
      client.ask({"FUNCTION", "LOAD",
                  "#!lua name=busy\nredis.register_function('spin', function() while true do end end)"}),
      "$4\r\nbusy\r\n");
  stuck.command({"FCALL", "spin", "1", cluster.key_of(1)});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(client.ask({"FUNCTION", "KILL"}), "+OK\r\n");
  EXPECT_TRUE(stuck.reply().contains("Script killed by user"));
}

TEST(Scripts, AMemberThatIsAwayDoesNotHangAKill) {
  Options options;
  options.request_timeout = std::chrono::milliseconds(300);
  Cluster cluster(3, options);
  Client client = cluster.client();
  ::kill(cluster.member(1).pid(), SIGSTOP);
  ::kill(cluster.member(2).pid(), SIGSTOP);
  const std::string answer = client.ask({"SCRIPT", "KILL"});
  EXPECT_TRUE(answer.starts_with("-")) << answer;
  {
    Client leaves = cluster.client();
    leaves.command({"SCRIPT", "KILL"});
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ::kill(cluster.member(1).pid(), SIGCONT);
  ::kill(cluster.member(2).pid(), SIGCONT);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_EQ(client.ask({"SCRIPT", "KILL"}), "-NOTBUSY No scripts in execution right now.\r\n");
}

TEST(Scripts, APartialFunctionLoadSaysWhere) {
  Cluster cluster(3);
  Client client = cluster.client();
  const std::string library = "#!lua name=mine\nredis.register_function('f', function() return 1 end)";
  ASSERT_EQ(Client(cluster.member(1).port()).ask({"FUNCTION", "LOAD", library}), "$4\r\nmine\r\n");
  EXPECT_EQ(client.ask({"FUNCTION", "LOAD", library}),
            "-ERR Library 'mine' already exists (on 1 of 3 members: cache-2; the others have done it)\r\n");
  EXPECT_EQ(client.ask({"FUNCTION", "LOAD", library}), "-ERR Library 'mine' already exists\r\n");
  EXPECT_EQ(client.ask({"FUNCTION", "LOAD", "REPLACE", library}), "$4\r\nmine\r\n");
}

TEST(ScriptCache, IsBoundedAndFindsByAnyCase) {
  ScriptCache cache;
  EXPECT_FALSE(cache.find("x"));
  cache.remember("return 1", false);
  const auto found = cache.find("E0E1F9FABFC9D4800C877A703B823AC0578FF8DB");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->script, "return 1");
  EXPECT_FALSE(found->loaded);
  cache.remember("return 1", true);
  EXPECT_TRUE(cache.find("e0e1f9fabfc9d4800c877a703b823ac0578ff8db")->loaded);
  for (std::size_t i = 0; i < ScriptCache::kMaxScripts + 50; ++i)
    cache.remember(fmt::format("--{}", i), true);
  EXPECT_EQ(cache.size(), ScriptCache::kMaxScripts);
  EXPECT_FALSE(cache.find("e0e1f9fabfc9d4800c877a703b823ac0578ff8db")) << "the oldest goes";
  for (int i = 0; i < 30; ++i) cache.remember(std::string(1U << 20, static_cast<char>('a' + i)), true);
  EXPECT_LE(cache.size(), 8U);
  cache.remember(std::string(ScriptCache::kMaxBytes, 'x'), true);
  EXPECT_LE(cache.size(), 8U) << "too large to be worth it";
  cache.clear();
  EXPECT_EQ(cache.size(), 0U);
}

TEST(RandomKey, IsOfEveryMemberInProportionAndNeverOurs) {
  Cluster cluster(2);
  Client client = cluster.client();
  EXPECT_EQ(client.ask({"RANDOMKEY"}), "$-1\r\n");
  Client one(cluster.member(0).port()), two(cluster.member(1).port());
  two.ask({"SET", "rs:stamp", "s"});
  EXPECT_EQ(client.ask({"RANDOMKEY"}), "$-1\r\n");
  two.ask({"SET", "few", "v"});
  EXPECT_EQ(client.ask({"RANDOMKEY"}), "$3\r\nfew\r\n");
  for (int i = 0; i < 9; ++i) one.ask({"SET", fmt::format("many{}", i), "v"});
  int few = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string key = client.ask({"RANDOMKEY"});
    ASSERT_TRUE(key == "$3\r\nfew\r\n" || key.starts_with("$5\r\nmany")) << key;
    few += key.starts_with("$3");
  }
  EXPECT_GT(few, 50);
  EXPECT_LT(few, 160);
  one.ask({"FLUSHALL"});
  two.ask({"DEL", "few"});
  client.command({"HELLO", "3"});
  client.reply();
  EXPECT_EQ(client.ask({"RANDOMKEY"}), "_\r\n");
}

}  // namespace
}  // namespace ringshift::proxy
