// Commands that wait at a member which has fallen silent: they end all the same, when they said for how long.
#include <gtest/gtest.h>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

using std::chrono::milliseconds;

TEST(SilentMembers, CommandsWithATimeoutEnd) {
  Options options;
  options.request_timeout = milliseconds(300);
  Cluster cluster(2, options);
  const std::string key = cluster.key_of(1);
  const auto ends = [&](std::initializer_list<std::string_view> command) {
    Client client = cluster.client();
    client.command(command);
    std::this_thread::sleep_for(milliseconds(100));  // It is at the member, and waits there.
    cluster.member(1).pause();
    const auto begin = std::chrono::steady_clock::now();
    const std::string error = client.reply(milliseconds(5000));
    const auto took = std::chrono::steady_clock::now() - begin;
    cluster.member(1).resume();
    EXPECT_TRUE(error.starts_with("-TIMEOUT member cache-2 ")) << *command.begin() << ": " << error;
    EXPECT_GE(took, milliseconds(300)) << *command.begin();
    EXPECT_LT(took, milliseconds(2500)) << *command.begin();
    EXPECT_EQ(client.ask({"PING"}), "+PONG\r\n") << "the connection is kept";
  };
  ends({"BLPOP", key, "0.4"});
  ends({"XREAD", "BLOCK", "400", "STREAMS", key, "$"});
  ends({"BLMPOP", "0.4", "1", key, "LEFT"});
  ends({"WAIT", "1", "400"});
  // What it said when it woke up was for nobody.
  Client other = cluster.client();
  EXPECT_TRUE(cluster.answers(key, "$-1\r\n"));
  EXPECT_EQ(other.ask({"RPUSH", key, "v"}), ":1\r\n");
  EXPECT_EQ(other.ask({"BLPOP", key, "1"}).substr(0, 4), "*2\r\n");
}

TEST(SilentMembers, AgesAreNotTooLong) {
  Cluster cluster(1);
  Client client = cluster.client();
  client.command({"BLPOP", "queue", "99999999999"});
  EXPECT_EQ(client.reply(milliseconds(500)), "(timeout)");
  EXPECT_EQ(cluster.client().ask({"RPUSH", "queue", "v"}), ":1\r\n");
  EXPECT_EQ(client.reply(), "*2\r\n$5\r\nqueue\r\n$1\r\nv\r\n");
}

}  // namespace
}  // namespace ringshift::proxy
