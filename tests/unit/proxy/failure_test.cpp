// Members that hang, die and come back.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

using std::chrono::milliseconds;

Options quick() {
  Options options;
  options.request_timeout = milliseconds(300);
  options.connect_timeout = milliseconds(300);
  return options;
}

TEST(ProxyFailure, AStoppedMemberCostsOnlyItsOwnKeys) {
  Cluster cluster(3, quick());
  Client client = cluster.client();
  const std::string good = cluster.key_of(0);
  const std::string bad = cluster.key_of(1);
  ASSERT_EQ(client.ask({"SET", good, "1"}), "+OK\r\n");
  ASSERT_EQ(client.ask({"SET", bad, "1"}), "+OK\r\n");
  ::kill(cluster.member(1).pid(), SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  client.command({"GET", good});
  client.command({"GET", bad});
  client.command({"GET", good});
  EXPECT_EQ(client.reply(), "$1\r\n1\r\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(150)) << "nobody waits who need not";
  Client other = cluster.client();
  EXPECT_EQ(other.ask({"GET", good}), "$1\r\n1\r\n");
  const std::string error = client.reply();
  EXPECT_TRUE(error.starts_with("-TIMEOUT member cache-2 ") && error.contains("may have been executed"))
      << error;
  EXPECT_EQ(client.reply(), "$1\r\n1\r\n") << "in its place behind the error";
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, milliseconds(250));
  EXPECT_LT(took, milliseconds(1500));
  ::kill(cluster.member(1).pid(), SIGCONT);
  EXPECT_TRUE(cluster.answers(bad, "$1\r\n1\r\n"));
}

TEST(ProxyFailure, AKilledMemberComesBack) {
  Cluster cluster(2, quick());
  Client client = cluster.client();
  const std::string good = cluster.key_of(0);
  const std::string bad = cluster.key_of(1);
  ASSERT_EQ(client.ask({"SET", bad, "1"}), "+OK\r\n");
  cluster.kill_member(1);
  const std::string error = client.ask({"GET", bad});
  EXPECT_TRUE(error.starts_with("-TRYAGAIN member cache-2 ") || error.starts_with("-TIMEOUT member cache-2 "))
      << error;
  EXPECT_EQ(client.ask({"GET", good}), "$-1\r\n");
  cluster.restart_member(1);
  EXPECT_TRUE(cluster.answers(bad, "$-1\r\n"));
  EXPECT_EQ(client.ask({"SET", bad, "2"}), "+OK\r\n") << "the same client, too";
}

TEST(ProxyFailure, WhatWasNotSentSaysThatItWasNotExecuted) {
  Cluster cluster(2, quick());
  Client client = cluster.client();
  const std::string bad = cluster.key_of(1);
  cluster.kill_member(1);
  std::string error;
  for (int i = 0; i < 20 && !error.starts_with("-TRYAGAIN"); ++i) error = client.ask({"SET", bad, "1"});
  EXPECT_TRUE(error.starts_with("-TRYAGAIN member cache-2 ") &&
              error.ends_with(": the command was not executed\r\n"))
      << error;
  const auto totals = cluster.proxy().stats();
  EXPECT_GE(telemetry::get(totals, telemetry::Counter::errors_unsent), 1U);
}

TEST(ProxyFailure, PortInUseIsAClearError) {
  Cluster cluster(1);
  RedisProcess taken;
  Options options;
  options.listen = fmt::format("127.0.0.1:{}", taken.port());
  auto second = Proxy::start(options, cluster.holder(), nullptr);
  ASSERT_FALSE(second);
  EXPECT_TRUE(second.error().message.contains(options.listen)) << second.error().message;
  options.listen = cluster.proxy().address();  // Sharing a port is for the workers of one proxy.
  EXPECT_FALSE(Proxy::start(options, cluster.holder(), nullptr));
}

}  // namespace
}  // namespace ringshift::proxy
