// CONFIG, SLOWLOG, LATENCY and INFO: the proxy's own settings and figures, of all its threads.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "cluster.h"
#include "proxy/arguments.h"

namespace ringshift::proxy {
namespace {

using std::chrono::milliseconds;

Options three_threads() {
  Options options;
  options.threads = 3;
  return options;
}

class ProxyConfig : public testing::Test {
 protected:
  Cluster cluster_{2, three_threads()};
  Client client_ = cluster_.client();
};

TEST_F(ProxyConfig, Get) {
  EXPECT_EQ(client_.ask({"CONFIG", "GET", "maxclients"}), "*2\r\n$10\r\nmaxclients\r\n$5\r\n10000\r\n");
  EXPECT_EQ(client_.ask({"CONFIG", "GET", "nosuch"}), "*0\r\n");
  // What redis-benchmark asks for.
  EXPECT_EQ(client_.ask({"CONFIG", "GET", "save"}), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
  EXPECT_EQ(client_.ask({"CONFIG", "GET", "appendonly"}), "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n");
  EXPECT_EQ(client_.ask({"config", "get", "TIME*", "slowlog-m?x-len", "time*"}),
            "*4\r\n$15\r\nslowlog-max-len\r\n$3\r\n128\r\n$7\r\ntimeout\r\n$1\r\n0\r\n");
  EXPECT_EQ(client_.ask({"CONFIG", "GET", "port"}),
            fmt::format("*2\r\n$4\r\nport\r\n${}\r\n{}\r\n", std::to_string(cluster_.port()).size(),
                        cluster_.port()));
  EXPECT_EQ(client_.ask({"CONFIG", "GET"}), "-ERR wrong number of arguments for 'config|get' command\r\n");
  client_.ask({"HELLO", "3"});
  EXPECT_EQ(client_.ask({"CONFIG", "GET", "timeout"}), "%1\r\n$7\r\ntimeout\r\n$1\r\n0\r\n");
}

TEST_F(ProxyConfig, SetSaysWhatIsWrongAsRedisDoes) {
  const auto failed = [](std::string_view name, std::string_view why) {
    return fmt::format("-ERR CONFIG SET failed (possibly related to argument '{}') - {}\r\n", name, why);
  };
  EXPECT_EQ(client_.ask({"CONFIG", "SET", "nosuch", "1"}),
            "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'\r\n");
  EXPECT_EQ(client_.ask({"CONFIG", "SET", "maxclients", "x"}),
            failed("maxclients", "argument couldn't be parsed into an integer"));
  EXPECT_EQ(client_.ask({"CONFIG", "SET", "maxclients", "0"}),
            failed("maxclients", "argument must be between 1 and 4294967295 inclusive"));
  EXPECT_EQ(client_.ask({"CONFIG", "SET", "timeout", "1", "timeout", "2"}),
            failed("timeout", "duplicate parameter"));
  EXPECT_EQ(client_.ask({"CONFIG", "SET", "databases", "3"}),
            failed("databases", "can't set immutable config"));
  EXPECT_EQ(client_.ask({"CONFIG", "SET", "timeout", "1", "maxclients"}), "-ERR syntax error\r\n");
  EXPECT_EQ(client_.ask({"CONFIG", "SET", "timeout", "7", "nosuch", "2"}).substr(0, 4), "-ERR");
  EXPECT_EQ(client_.ask({"CONFIG", "GET", "timeout"}), "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n")
      << "all or nothing";
  EXPECT_TRUE(
      client_.ask({"CONFIG", "REWRITE"}).starts_with("-ERR command 'config rewrite' is not supported"));
}

// As Redis: what the limit of open files does not leave room for is refused.
TEST_F(ProxyConfig, MoreClientsThanFilesAreRefused) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max > 4294967295) GTEST_SKIP() << "there is no limit of open files here";
  const std::string begins =
      "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able "
      "to handle the specified number of clients, try with ";
  const std::string answer =
      client_.ask({"CONFIG", "SET", "timeout", "9", "maxclients", std::to_string(limit.rlim_max)});
  ASSERT_TRUE(answer.starts_with(begins)) << answer;
  EXPECT_EQ(client_.ask({"CONFIG", "GET", "timeout"}), "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n");
  EXPECT_TRUE(client_.ask({"INFO", "clients"}).contains("maxclients:10000\r\n"));
  const std::string most = std::to_string(std::stoull(answer.substr(begins.size())));
  EXPECT_EQ(client_.ask({"CONFIG", "SET", "maxclients", most}), "+OK\r\n");
  EXPECT_TRUE(client_.ask({"INFO", "clients"}).contains("maxclients:" + most + "\r\n"));
}

TEST_F(ProxyConfig, SetTakesEffectOnAllThreads) {
  ASSERT_EQ(client_.ask({"CONFIG", "SET", "maxclients", "3", "tcp-keepalive", "60"}), "+OK\r\n");
  std::vector<Client> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(cluster_.client());
    EXPECT_EQ(clients.back().ask({"PING"}), "+PONG\r\n");
  }
  for (int i = 0; i < 6; ++i) EXPECT_EQ(cluster_.client().reply(), "-ERR max number of clients reached\r\n");
  EXPECT_TRUE(client_.ask({"INFO", "clients"}).contains("maxclients:3\r\n"));
  ASSERT_EQ(client_.ask({"CONFIG", "SET", "client-output-buffer-limit", "normal 2mb 0 0 pubsub 1mb 0 0"}),
            "+OK\r\n");
  EXPECT_TRUE(
      client_.ask({"CONFIG", "GET", "client-output*"}).contains("normal 2097152 0 0 slave 0 0 0 pubsub "));
}

TEST_F(ProxyConfig, ResetStat) {
  client_.ask({"GET", "none"});
  client_.ask({"NONSENSE"});
  EXPECT_TRUE(client_.ask({"INFO", "stats"}).contains("keyspace_misses:1\r\n"));
  EXPECT_TRUE(client_.ask({"INFO", "errorstats"}).contains("errorstat_ERR:count=1\r\n"));
  EXPECT_EQ(client_.ask({"CONFIG", "RESETSTAT"}), "+OK\r\n");
  EXPECT_TRUE(client_.ask({"INFO", "stats"}).contains("keyspace_misses:0\r\n"));
  EXPECT_FALSE(client_.ask({"INFO", "errorstats"}).contains("errorstat_ERR"));
  EXPECT_EQ(telemetry::get(cluster_.proxy().stats(), telemetry::Counter::get_misses), 1U) << "metrics go on";
}

// --- slow commands ---------------------------------------------------------------------------------------

class ProxySlowLog : public ProxyConfig {};

TEST_F(ProxySlowLog, NamesWhatTookLong) {
  EXPECT_EQ(client_.ask({"SLOWLOG", "GET"}), "*0\r\n");
  client_.ask({"EVAL", "local n = 0 for i = 1, 3000000 do n = n + i end return n", "1", "a"});
  EXPECT_EQ(client_.ask({"SLOWLOG", "LEN"}), ":0\r\n") << "off at first";
  ASSERT_EQ(client_.ask({"CONFIG", "SET", "slowlog-log-slower-than", "8000"}), "+OK\r\n");
  std::vector<Client> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(cluster_.client());
    clients.back().ask({"CLIENT", "SETNAME", fmt::format("slow{}", i)});
    clients.back().ask({"SET", "a", "1"});
    EXPECT_TRUE(clients.back()
                    .ask({"EVAL", "local n = 0 for i = 1, 6000000 do n = n + i end return n", "1", "a",
                          std::string(300, 'x')})
                    .starts_with(":"));
  }
  EXPECT_EQ(client_.ask({"SLOWLOG", "LEN"}), ":6\r\n");
  const std::string log = client_.ask({"SLOWLOG", "GET", "2"});
  EXPECT_TRUE(log.starts_with("*2\r\n*6\r\n:")) << log;
  EXPECT_TRUE(log.contains("$5\r\nslow5\r\n") && log.contains("$5\r\nslow4\r\n") && !log.contains("slow3"));
  EXPECT_LT(log.find("slow5"), log.find("slow4")) << "the newest first";
  EXPECT_TRUE(log.contains("*5\r\n$4\r\nEVAL\r\n") && log.contains("... (172 more bytes)\r\n")) << log;
  EXPECT_EQ(client_.ask({"SLOWLOG", "GET", "-2"}), "-ERR count should be greater than or equal to -1\r\n");
  EXPECT_EQ(client_.ask({"SLOWLOG", "RESET"}), "+OK\r\n");
  EXPECT_EQ(client_.ask({"SLOWLOG", "GET", "-1"}), "*0\r\n");
}

TEST_F(ProxySlowLog, IsBoundedAndKeepsTheNewest) {
  ASSERT_EQ(client_.ask({"CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "5"}),
            "+OK\r\n");
  for (int i = 0; i < 40; ++i) client_.ask({"SET", fmt::format("key{}", i), "x"});
  client_.ask({"PING"});
  EXPECT_EQ(client_.ask({"SLOWLOG", "LEN"}), ":5\r\n");
  EXPECT_TRUE(client_.ask({"SLOWLOG", "GET", "-1"}).contains("key39"));
  EXPECT_FALSE(client_.ask({"SLOWLOG", "GET", "-1"}).contains("key20\r\n"));
  ASSERT_EQ(client_.ask({"CONFIG", "SET", "slowlog-max-len", "2"}), "+OK\r\n");
  EXPECT_EQ(client_.ask({"SLOWLOG", "LEN"}), ":2\r\n");
  ASSERT_EQ(client_.ask({"CONFIG", "SET", "slowlog-log-slower-than", "-1"}), "+OK\r\n");
  client_.ask({"SLOWLOG", "RESET"});
  client_.ask({"GET", "a"});
  EXPECT_EQ(client_.ask({"SLOWLOG", "LEN"}), ":0\r\n");
}

// The answers keep their order, whatever is measured, and whoever answers them.
TEST_F(ProxySlowLog, MeasuringDoesNotChangeAnswers) {
  ASSERT_EQ(client_.ask({"CONFIG", "SET", "slowlog-log-slower-than", "0", "latency-tracking", "yes"}),
            "+OK\r\n");
  std::string bytes, expected;
  for (int i = 0; i < 300; ++i) {
    const std::string text = std::to_string(i);
    protocol::resp::append_command(bytes, {"ECHO", text});
    protocol::resp::append_command(bytes, {"SET", text, text});
    protocol::resp::append_command(bytes, {"GET", text});
    protocol::resp::append_command(bytes, {"CLIENT", "REPLY", i % 7 == 0 ? "SKIP" : "ON"});
    protocol::resp::append_command(bytes, {"PING"});
    const std::string bulk = fmt::format("${}\r\n{}\r\n", text.size(), text);
    expected += bulk + "+OK\r\n" + bulk + (i % 7 == 0 ? "" : "+OK\r\n+PONG\r\n");
  }
  ASSERT_TRUE(client_.send(bytes));
  EXPECT_TRUE(client_.exactly(expected.size()) == expected);
  const std::string histogram = client_.ask({"LATENCY", "HISTOGRAM", "set", "nosuch"});
  EXPECT_TRUE(
      histogram.starts_with("*2\r\n$3\r\nset\r\n*4\r\n$5\r\ncalls\r\n:300\r\n$14\r\nhistogram_usec\r\n*"))
      << histogram;
  EXPECT_TRUE(histogram.ends_with(":300\r\n")) << histogram;
  EXPECT_TRUE(client_.ask({"INFO", "commandstats"}).contains("cmdstat_get:calls=300,usec="));
}

TEST_F(ProxySlowLog, LatencyOfCommands) {
  EXPECT_EQ(client_.ask({"LATENCY", "LATEST"}), "*0\r\n");
  EXPECT_EQ(client_.ask({"LATENCY", "HISTORY", "command"}), "*0\r\n");
  EXPECT_EQ(client_.ask({"LATENCY", "GRAPH", "fork"}), "-ERR No samples available for event 'fork'\r\n");
  EXPECT_TRUE(client_.ask({"LATENCY", "DOCTOR"}).contains("Latency monitoring is disabled"));
  ASSERT_EQ(client_.ask({"CONFIG", "SET", "latency-monitor-threshold", "5"}), "+OK\r\n");
  client_.ask({"EVAL", "local n = 0 for i = 1, 6000000 do n = n + i end return n", "1", "a"});
  EXPECT_TRUE(client_.ask({"LATENCY", "LATEST"}).starts_with("*1\r\n*4\r\n$7\r\ncommand\r\n:"));
  EXPECT_TRUE(client_.ask({"LATENCY", "HISTORY", "command"}).starts_with("*1\r\n*2\r\n:"));
  EXPECT_TRUE(client_.ask({"LATENCY", "GRAPH", "command"}).contains("#"));
  EXPECT_TRUE(client_.ask({"LATENCY", "DOCTOR"}).contains("1 of the latest commands"));
  EXPECT_EQ(client_.ask({"LATENCY", "RESET"}), ":1\r\n");
  EXPECT_EQ(client_.ask({"LATENCY", "LATEST"}), "*0\r\n");
}

// --- INFO ------------------------------------------------------------------------------------------------

TEST_F(ProxyConfig, InfoShowsTheMembers) {
  client_.ask({"SET", cluster_.key_of(0), "x"});
  std::string info;
  for (int i = 0;
       i < 100 && !(info.contains("cache-1_state:connected") && info.contains("cache-2_state:connected"));
       ++i) {
    std::this_thread::sleep_for(milliseconds(20));  // Not every thread has connected yet.
    info = client_.ask({"INFO"});
  }
  for (const std::string_view line :
       {"# Memory\r\n", "used_memory:", "# CPU\r\n", "used_cpu_sys:", "# Replication\r\n", "role:master\r\n",
        "instantaneous_ops_per_sec:", "\r\n\r\n# Member cache-1\r\n", "\r\n\r\n# Member cache-2\r\n",
        "cache-1_state:connected\r\n", "blocked_clients:0\r\n"}) {
    EXPECT_TRUE(info.contains(line)) << line << " in " << info;
  }
  EXPECT_FALSE(info.contains("# Commandstats"));
  EXPECT_TRUE(client_.ask({"INFO", "everything"}).contains("# Commandstats"));
  const std::string two = client_.ask({"INFO", "CPU", "memory"});
  EXPECT_TRUE(two.contains("# CPU") && two.contains("# Memory") && !two.contains("# Server"));
  cluster_.kill_member(1);
  for (int i = 0; i < 100 && !info.contains("cache-2_state:down\r\n"); ++i) {
    (void)client_.ask({"GET", cluster_.key_of(1)});
    std::this_thread::sleep_for(milliseconds(30));
    info = client_.ask({"INFO", "members"});
  }
  EXPECT_TRUE(info.contains("cache-2_state:down\r\n")) << info;
  EXPECT_TRUE(info.contains("cache-1_state:connected\r\n")) << info;
  EXPECT_FALSE(info.contains("cache-2_down_reason:\r\n")) << info;
  EXPECT_FALSE(info.contains("cache-2_errors:0\r\n")) << info;
}

// --- arguments -------------------------------------------------------------------------------------------

TEST(ProxyArguments, Integers) {
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("-12"), -12);
  for (const std::string_view bad : {"", "01", "+1", " 1", "1 ", "-", "-0", "-01", "9223372036854775808"}) {
    EXPECT_FALSE(parse_integer(bad)) << bad;
  }
  EXPECT_EQ(parse_memory("2mb"), 2 << 20);
  EXPECT_EQ(parse_memory("2K"), 2000);
  EXPECT_FALSE(parse_memory("2x"));
  EXPECT_FALSE(parse_memory("9999999999gb"));
}

TEST(ProxyArguments, Patterns) {
  for (const auto& [pattern, text] :
       std::vector<std::pair<std::string_view, std::string_view>>{{"*", ""},
                                                                  {"a*c", "ABBC"},
                                                                  {"a?c", "abc"},
                                                                  {"[a-c]x", "bx"},
                                                                  {"[^a]x", "bx"},
                                                                  {"a\\*", "a*"},
                                                                  {"*a*b*", "xxaxxbxx"},
                                                                  {"timeout", "timeout"},
                                                                  {"[z-a]", "c"}}) {
    EXPECT_TRUE(matches_ignoring_case(pattern, text)) << pattern << " " << text;
  }
  for (const auto& [pattern, text] :
       std::vector<std::pair<std::string_view, std::string_view>>{{"", "a"},
                                                                  {"a", ""},
                                                                  {"a*c", "abbd"},
                                                                  {"a?c", "ac"},
                                                                  {"[^a]x", "ax"},
                                                                  {"a\\*", "ab"},
                                                                  {"[", "a"}}) {
    EXPECT_FALSE(matches_ignoring_case(pattern, text)) << pattern << " " << text;
  }
}

}  // namespace
}  // namespace ringshift::proxy
