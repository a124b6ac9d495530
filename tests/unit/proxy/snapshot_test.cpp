// New topologies while clients are served.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

using std::chrono::milliseconds;

class Reports {
 public:
  void add(topology::Version version) {
    const std::lock_guard lock(mutex_);
    versions_.push_back(version.revision);
  }
  std::vector<std::uint64_t> get() {
    const std::lock_guard lock(mutex_);
    return versions_;
  }
  bool wait_for(std::uint64_t revision, milliseconds time = milliseconds(5000)) {
    const auto deadline = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < deadline) {
      const auto seen = get();
      if (!seen.empty() && seen.back() >= revision) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> versions_;
};

TEST(ProxySnapshot, WorkersAdoptAndReportNewVersions) {
  Options options;
  options.threads = 3;
  Cluster cluster(3, options);
  Reports reports;
  cluster.proxy().set_on_applied([&](topology::Version version) { reports.add(version); });
  ASSERT_TRUE(reports.wait_for(1));
  Client client = cluster.client();
  const std::string key = cluster.key_of(2);
  ASSERT_EQ(client.ask({"SET", key, "old"}), "+OK\r\n");
  cluster.publish(2, 2);  // Revision 2 has the first two members alone.
  ASSERT_TRUE(reports.wait_for(2));
  EXPECT_EQ(client.ask({"GET", key}), "$-1\r\n") << "another member has it now";
  EXPECT_TRUE(client.ask({"INFO", "topology"}).contains("topology_version:0.2\r\n"));
  cluster.publish(3, 3);
  ASSERT_TRUE(reports.wait_for(3));
  EXPECT_EQ(client.ask({"GET", key}), "$3\r\nold\r\n");
  const auto seen = reports.get();
  EXPECT_TRUE(std::ranges::is_sorted(seen) && std::ranges::adjacent_find(seen) == seen.end());
  cluster.proxy().set_on_applied({});
}

// The controller opens the gate for transfers when all routers have reported HOLD: so no report may come
// before the last command of the older snapshot is answered.
TEST(ProxySnapshot, NoReportBeforeOldCommandsAreAnswered) {
  Options options;
  options.threads = 1;
  options.request_timeout = milliseconds(5000);
  Cluster cluster(2, options);
  Reports reports;
  cluster.proxy().set_on_applied([&](topology::Version version) { reports.add(version); });
  ASSERT_TRUE(reports.wait_for(1));
  Client client = cluster.client();
  const std::string key = cluster.key_of(1);
  ASSERT_EQ(client.ask({"SET", key, "1"}), "+OK\r\n");
  ::kill(cluster.member(1).pid(), SIGSTOP);
  client.command({"INCR", key});
  std::this_thread::sleep_for(milliseconds(100));
  cluster.publish(2, 2);
  EXPECT_FALSE(reports.wait_for(2, milliseconds(300)));
  ::kill(cluster.member(1).pid(), SIGCONT);
  EXPECT_EQ(client.reply(), ":2\r\n");
  EXPECT_TRUE(reports.wait_for(2));
  cluster.proxy().set_on_applied({});
}

// A deadline is not an answer: the member may execute the command later, unless its connection is killed
// there.
TEST(ProxySnapshot, NoReportWhileATimedOutCommandMayStillRun) {
  Options options;
  options.threads = 1;
  options.request_timeout = milliseconds(200);
  options.connect_timeout = milliseconds(200);
  Cluster cluster(2, options);
  Reports reports;
  cluster.proxy().set_on_applied([&](topology::Version version) { reports.add(version); });
  Client client = cluster.client();
  const std::string key = cluster.key_of(1);
  ASSERT_EQ(client.ask({"SET", key, "1"}), "+OK\r\n");
  ::kill(cluster.member(1).pid(), SIGSTOP);
  EXPECT_TRUE(client.ask({"INCR", key}).starts_with("-TIMEOUT "));
  cluster.publish(2, 2);
  EXPECT_FALSE(reports.wait_for(2, milliseconds(500)));
  ::kill(cluster.member(1).pid(), SIGCONT);
  EXPECT_TRUE(reports.wait_for(2));
  cluster.proxy().set_on_applied({});
}

TEST(ProxySnapshot, PublishingUnderLoadLosesNothing) {
  Options options;
  options.threads = 2;
  Cluster cluster(2, options);
  std::atomic<bool> stop{false};
  std::atomic<int> answered{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&, i] {
      Client client = cluster.client();
      for (int n = 0; !stop; ++n) {
        const std::string key = fmt::format("c{}:{}", i, n % 100);
        if (client.ask({"SET", key, "v"}) != "+OK\r\n") ADD_FAILURE() << "SET failed";
        if (client.ask({"GET", key}) != "$1\r\nv\r\n") ADD_FAILURE() << "GET failed";
        ++answered;
      }
    });
  }
  for (std::uint64_t revision = 2; revision < 50; ++revision) {
    cluster.publish(2, revision);
    std::this_thread::sleep_for(milliseconds(5));
  }
  stop = true;
  for (std::thread& client : clients) client.join();
  EXPECT_GT(answered, 100);
}

}  // namespace
}  // namespace ringshift::proxy
