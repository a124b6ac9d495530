// Clients that behave badly, or a lot of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

using std::chrono::milliseconds;

// The same bytes to a real server and to the proxy; then our end of writing is shut. Everything that came
// back until each closed must be equal.
struct Garbage {
  std::string_view name;
  std::string bytes;
};

const std::vector<Garbage> kGarbage = {
    {"negative count", "*-5\r\n*1\r\n$4\r\nPING\r\n"},
    {"600 MB bulk", "*2\r\n$3\r\nGET\r\n$629145600\r\nabc"},
    {"negative bulk", "*2\r\n$3\r\nGET\r\n$-3\r\n"},
    {"no dollar", "*1\r\n:4\r\nPING\r\n"},
    {"not a number", "*abc\r\n"},
    {"plus", "*+1\r\n$4\r\nPING\r\n"},
    {"leading zero", "*1\r\n$04\r\nPING\r\n"},
    {"huge count", "*99999999999\r\n"},
    {"good, then bad", "PING\r\nPING hello\r\n*1\r\n$x\r\nPING\r\n"},
    {"unbalanced quotes", "PING \"abc\r\nPING\r\n"},
    {"quotes", "ECHO \"a\\x41\\n\"\r\nECHO 'it\\'s'\r\n"},
    {"text behind a quote", "ECHO \"a\"b\r\n"},
    {"noise", "\x01\x02\xff\xfe garbage \x80\r\nPING\r\n"},
    {"long line", std::string(100000, 'a')},
    {"long count", "*" + std::string(100000, '1')},
    {"HTTP", "POST / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n"},
    {"HTTP GET", "Host: x\r\n\r\nPING\r\n"},
    {"blank lines", "\r\n\r\n\nPING\r\n"},
    {"incomplete", "*2\r\n$3\r\nGET\r\n$5\r\nab"},
    {"nothing", ""},
};

TEST(ProxyClients, GarbageIsTreatedAsARealServerTreatsIt) {
  RedisProcess server;
  Cluster cluster(2);
  for (const Garbage& garbage : kGarbage) {
    std::string answers[2];
    for (const bool proxied : {false, true}) {
      Client client(proxied ? cluster.port() : server.port());
      client.send(garbage.bytes);
      // A real server drops what it has not executed when our end closes, so it gets time first.
      std::this_thread::sleep_for(milliseconds(20));
      client.half_close();
      answers[proxied ? 1 : 0] = client.rest();
    }
    EXPECT_EQ(answers[1], answers[0]) << garbage.name;
  }
  EXPECT_EQ(cluster.client().ask({"PING"}), "+PONG\r\n");
}

TEST(ProxyClients, HalfClosedSocketsGetTheirAnswers) {
  Cluster cluster(2);
  Client client = cluster.client();
  std::string bytes;
  std::string expected;
  for (int i = 0; i < 10000; ++i) {
    protocol::resp::append_command(bytes, {"SET", fmt::format("k{}", i), "v"});
    expected += "+OK\r\n";
  }
  ASSERT_TRUE(client.send(bytes));
  client.half_close();
  EXPECT_EQ(client.rest(), expected);
}

TEST(ProxyClients, DeepPipelinesAreAnsweredInOrder) {
  Options options;
  options.threads = 2;
  Cluster cluster(4, options);
  Client client = cluster.client();
  std::string bytes;
  std::string expected;
  for (int i = 0; i < 10000; ++i) {
    const std::string key = fmt::format("k{}", i % 1000);
    const std::string value = fmt::format("{:05}", i);
    protocol::resp::append_command(bytes, {"SET", key, value});
    protocol::resp::append_command(bytes, {"GET", key});
    expected += fmt::format("+OK\r\n$5\r\n{}\r\n", value);
    if (i % 100 == 0) {
      bytes += "PING\r\n";
      expected += "+PONG\r\n";
    }
  }
  std::thread writer([&] { EXPECT_TRUE(client.send(bytes)); });
  const std::string got = client.exactly(expected.size());
  writer.join();
  EXPECT_TRUE(got == expected) << "got " << got.size() << " bytes of " << expected.size();
}

TEST(ProxyClients, BigValues) {
  Cluster cluster(2);
  Client client = cluster.client();
  const std::string value(20 << 20, 'v');
  std::string set;
  protocol::resp::append_command(set, {"SET", "big", value});
  ASSERT_TRUE(client.send(set));
  ASSERT_EQ(client.reply(), "+OK\r\n");
  const std::string expected = fmt::format("${}\r\n{}\r\n+PONG\r\n", value.size(), value);
  client.command({"GET", "big"});
  client.command({"PING"});
  EXPECT_TRUE(client.exactly(expected.size()) == expected);
}

TEST(ProxyClients, AClientThatDoesNotReadIsNotReadFrom) {
  Options options;
  options.max_output_bytes = 1 << 20;
  options.max_total_output_bytes = 1 << 20;
  options.request_timeout = std::chrono::seconds(60);  // 100 MB in flight take their time under a sanitizer.
  Cluster cluster(1, options);
  Client slow(cluster.port(), 4096);
  const std::string value(100000, 'v');
  ASSERT_EQ(slow.ask({"SET", "k", value}), "+OK\r\n");
  std::string gets;
  for (int i = 0; i < 2000; ++i) protocol::resp::append_command(gets, {"GET", "k"});  // 200 MB of answers.
  std::thread writer([&] { EXPECT_TRUE(slow.send(gets)); });
  std::this_thread::sleep_for(milliseconds(500));
  const auto totals = cluster.proxy().stats();
  // Room for what is in flight, the kernel's buffers and the bound itself.
  EXPECT_LT(telemetry::get(totals, telemetry::Counter::requests), 1200U);
  EXPECT_EQ(cluster.client().ask({"PING"}), "+PONG\r\n") << "others are served";
  const std::string one = fmt::format("$100000\r\n{}\r\n", value);
  int good = 0;
  while (good < 2000 && slow.exactly(one.size()) == one) ++good;
  if (good < 2000) slow.close();  // Frees the writer.
  writer.join();
  EXPECT_EQ(good, 2000);
}

TEST(ProxyClients, AClientOverTheHardBoundIsCut) {
  Options options;
  options.max_output_bytes = 1 << 20;
  options.cut_output_bytes = 8 << 20;
  Cluster cluster(1, options);
  Client slow(cluster.port(), 4096);
  ASSERT_EQ(slow.ask({"SET", "k", std::string(1 << 20, 'v')}), "+OK\r\n");
  for (int i = 0; i < 64; ++i) slow.command({"GET", "k"});
  for (int i = 0; i < 100 && telemetry::get(cluster.proxy().stats(), telemetry::Counter::clients_cut) == 0;
       ++i) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(telemetry::get(cluster.proxy().stats(), telemetry::Counter::clients_cut), 1U);
  EXPECT_EQ(cluster.client().ask({"PING"}), "+PONG\r\n");
}

TEST(ProxyClients, AThousandIdleClients) {
  Options options;
  options.threads = 2;
  Cluster cluster(2, options);
  std::vector<Client> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(cluster.client());
    ASSERT_EQ(clients.back().ask({"SET", fmt::format("k{}", i), "v"}), "+OK\r\n");
  }
  EXPECT_TRUE(clients[0].ask({"INFO", "clients"}).contains("connected_clients:1000\r\n"));
  for (Client& client : clients) ASSERT_EQ(client.ask({"GET", "k7"}), "$1\r\nv\r\n");
  clients.clear();
  Client last = cluster.client();
  for (int i = 0; i < 100 && !last.ask({"INFO", "clients"}).contains("connected_clients:1\r\n"); ++i) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_TRUE(last.ask({"INFO", "clients"}).contains("connected_clients:1\r\n"));
}

TEST(ProxyClients, MaxClients) {
  Options options;
  options.max_clients = 2;
  Cluster cluster(1, options);
  Client a = cluster.client();
  Client b = cluster.client();
  EXPECT_EQ(a.ask({"PING"}), "+PONG\r\n");
  EXPECT_EQ(b.ask({"PING"}), "+PONG\r\n");
  EXPECT_EQ(cluster.client().rest(), "-ERR max number of clients reached\r\n");
  a.close();
  std::string pong;
  for (int i = 0; i < 100 && pong != "+PONG\r\n"; ++i) {
    Client c = cluster.client();
    c.send("PING\r\n");
    pong = c.reply();
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(pong, "+PONG\r\n");
}

TEST(ProxyClients, ClientsThatGoAwayWithAnswersOutstanding) {
  Options options;
  options.request_timeout = milliseconds(300);
  Cluster cluster(2, options);
  const std::string a = cluster.key_of(0);
  const std::string b = cluster.key_of(1);
  ::kill(cluster.member(1).pid(), SIGSTOP);
  for (int i = 0; i < 50; ++i) {
    Client client = cluster.client();
    for (int j = 0; j < 20; ++j) {
      client.command({"GET", b});
      client.command({"MGET", a, b});
      client.command({"GET", a});
    }
    if (i % 2 == 0) client.half_close();
  }
  ::kill(cluster.member(1).pid(), SIGCONT);
  Client last = cluster.client();
  for (int i = 0; i < 200 && !last.ask({"INFO", "clients"}).contains("connected_clients:1\r\n"); ++i) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_TRUE(last.ask({"INFO", "clients"}).contains("connected_clients:1\r\n"));
  EXPECT_EQ(last.ask({"GET", a}), "$-1\r\n");
}

TEST(ProxyClients, StopAnswersWhatIsInFlight) {
  Cluster cluster(2);
  Client client = cluster.client();
  Client idle = cluster.client();
  ASSERT_EQ(idle.ask({"PING"}), "+PONG\r\n");
  ::kill(cluster.member(0).pid(), SIGSTOP);
  client.command({"SET", cluster.key_of(0), "v"});
  std::this_thread::sleep_for(milliseconds(100));
  std::thread stopper([&] { cluster.proxy().stop(); });
  std::this_thread::sleep_for(milliseconds(100));
  ::kill(cluster.member(0).pid(), SIGCONT);
  EXPECT_EQ(client.rest(), "+OK\r\n");
  EXPECT_EQ(idle.rest(), "");
  stopper.join();
}

TEST(ProxyClients, UnixSocket) {
  Options options;
  options.threads = 2;
  options.listen = fmt::format("unix:/tmp/ringshift-test-{}.sock", ::getpid());
  Cluster cluster(1, options);
  EXPECT_EQ(cluster.proxy().address(), options.listen);
  const std::string line = fmt::format("redis-cli -3 -s {} set k v", options.listen.substr(5));
  EXPECT_EQ(std::system((line + " >/dev/null").c_str()), 0);
  EXPECT_EQ(std::system(fmt::format("redis-cli -s {} get k | grep -qx v", options.listen.substr(5)).c_str()),
            0);
}

}  // namespace
}  // namespace ringshift::proxy
