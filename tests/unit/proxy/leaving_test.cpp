// Clients that leave while they are not read from.
#include <gtest/gtest.h>

#include <thread>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

using std::chrono::milliseconds;
using telemetry::Counter;

bool closes(Cluster& cluster, std::uint64_t count) {
  for (int n = 0; n < 200; ++n) {
    if (telemetry::get(cluster.proxy().stats(), Counter::clients_closed) >= count) return true;
    std::this_thread::sleep_for(milliseconds(20));
  }
  return false;
}

// So much behind the blocking command that reading stops, and the end of the stream is behind it.
TEST(ClientsThatLeave, ABlockedOneWithALongQueueBehindIt) {
  Cluster cluster(2);
  Client waiting = cluster.client();
  waiting.command({"BLPOP", "queue", "0"});
  // What the kernel does not take is not sent, and what is behind that is not seen before keepalive asks.
  const std::string value(140'000, 'x');
  EXPECT_TRUE(waiting.send("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$140000\r\n" + value + "\r\n"));
  std::this_thread::sleep_for(milliseconds(200));
  waiting.close();
  EXPECT_TRUE(closes(cluster, 1));
  Client other = cluster.client();
  EXPECT_EQ(other.ask({"RPUSH", "queue", "v"}), ":1\r\n");
  EXPECT_EQ(other.ask({"LLEN", "queue"}), ":1\r\n") << "nobody waits for it any more";
  EXPECT_EQ(other.ask({"EXISTS", "a"}), ":0\r\n");
}

TEST(ClientsThatLeave, OneThatIsHeldByClientPause) {
  Cluster cluster(1);
  Client other = cluster.client();
  Client held = cluster.client();
  EXPECT_EQ(other.ask({"CLIENT", "PAUSE", "30000", "WRITE"}), "+OK\r\n");
  held.command({"SET", "a", "b"});
  std::this_thread::sleep_for(milliseconds(100));
  held.close();
  EXPECT_TRUE(closes(cluster, 1));
  EXPECT_EQ(other.ask({"CLIENT", "UNPAUSE"}), "+OK\r\n");
  EXPECT_EQ(other.ask({"EXISTS", "a"}), ":0\r\n");
}

// A buffer that went back is had again.
TEST(ClientsThatLeave, OnesThatRestedGoOn) {
  Cluster cluster(2);
  Client client = cluster.client();
  const std::string half(9000, 'h');
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(client.ask({"MSET", "a", "1", "b", "2", "c", "3"}), "+OK\r\n");
    EXPECT_TRUE(client.send("*3\r\n$3\r\nSET\r\n$1\r\nh\r\n$9000\r\n" + half.substr(0, 8000)));
    std::this_thread::sleep_for(milliseconds(2300));  // It is idle, with half a command.
    EXPECT_TRUE(client.send(half.substr(8000) + "\r\nECHO inline\r\n"));
    EXPECT_EQ(client.reply(), "+OK\r\n");
    EXPECT_EQ(client.reply(), "$6\r\ninline\r\n");
    EXPECT_EQ(client.ask({"STRLEN", "h"}), ":9000\r\n");
    EXPECT_EQ(client.ask({"MULTI"}), "+OK\r\n");
    EXPECT_EQ(client.ask({"GET", "a"}), "+QUEUED\r\n");
    std::this_thread::sleep_for(milliseconds(2300));
    EXPECT_EQ(client.ask({"EXEC"}), "*1\r\n$1\r\n1\r\n");
  }
}

}  // namespace
}  // namespace ringshift::proxy
