// CLIENT: of the clients of all the proxy's threads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

using std::chrono::milliseconds;
using telemetry::Counter;

std::string id_of(Client& client) {
  const std::string reply = client.ask({"CLIENT", "ID"});
  return reply.substr(1, reply.size() - 3);
}

// Several threads, and clients on more than one of them with near certainty.
class ProxyClientCommands : public testing::Test {
 protected:
  static Options threads() {
    Options options;
    options.threads = 3;
    return options;
  }
  Cluster cluster_{1, threads()};
  Client admin_ = cluster_.client();
};

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n')) - 2;  // Those of the bulk.
}

TEST_F(ProxyClientCommands, ListShowsTheClientsOfAllThreads) {
  std::vector<Client> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(cluster_.client());
    ASSERT_EQ(clients.back().ask({"CLIENT", "SETNAME", fmt::format("c{}", i)}), "+OK\r\n");
  }
  const std::string list = admin_.ask({"CLIENT", "LIST"});
  EXPECT_EQ(lines(list), 21U) << list;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(list.contains(fmt::format(" name=c{} ", i)));
  // In the order of their ids, with the fields of Redis 7.0 in its order.
  EXPECT_LT(list.find(" name=c3 "), list.find(" name=c17 "));
  std::string fields;
  const std::string info = admin_.ask({"CLIENT", "INFO"});
  std::size_t from = info.find("id=");
  for (std::size_t at = from; at != std::string::npos && at < info.size();) {
    fields += info.substr(at, info.find('=', at) - at) + " ";
    const std::size_t space = info.find(' ', at);
    at = space == std::string::npos ? space : space + 1;
  }
  EXPECT_EQ(
      fields,
      "id addr laddr fd name age idle flags db sub psub ssub multi qbuf qbuf-free argv-mem multi-mem rbs "
      "rbp obl oll omem tot-mem events cmd user redir resp ");
  EXPECT_TRUE(info.contains(" cmd=client|info user=default redir=-1 resp=2\n")) << info;
  EXPECT_TRUE(info.contains(fmt::format(" laddr=127.0.0.1:{} ", cluster_.port()))) << info;

  EXPECT_EQ(lines(admin_.ask({"CLIENT", "LIST", "ID", id_of(clients[3]), id_of(clients[9]), "99999"})), 2U);
  EXPECT_EQ(lines(admin_.ask({"CLIENT", "LIST", "TYPE", "NORMAL"})), 21U);
  EXPECT_EQ(admin_.ask({"CLIENT", "LIST", "TYPE", "pubsub"}), "$0\r\n\r\n");
  EXPECT_EQ(admin_.ask({"CLIENT", "LIST", "TYPE", "x"}), "-ERR Unknown client type 'x'\r\n");
  EXPECT_EQ(admin_.ask({"CLIENT", "LIST", "ID", "x"}), "-ERR Invalid client ID\r\n");
  EXPECT_EQ(admin_.ask({"CLIENT", "LIST", "x"}), "-ERR syntax error\r\n");
}

TEST_F(ProxyClientCommands, ListSaysWhetherATransactionIsOpen) {
  Client other = cluster_.client();
  EXPECT_TRUE(admin_.ask({"CLIENT", "LIST", "ID", id_of(other)})
                  .contains(" flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 "));
  const std::string id = id_of(other);
  other.ask({"MULTI"});
  other.ask({"SET", "a", "b"});
  const std::string line = admin_.ask({"CLIENT", "LIST", "ID", id});
  EXPECT_TRUE(line.contains(" flags=x ") && line.contains(" multi=1 ") && line.contains(" cmd=set ")) << line;
}

TEST_F(ProxyClientCommands, Kill) {
  std::vector<Client> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(cluster_.client());
    clients.back().ask({"PING"});
  }
  EXPECT_EQ(admin_.ask({"CLIENT", "KILL", "ID", id_of(clients[0])}), ":1\r\n");
  EXPECT_EQ(clients[0].reply(), "(closed)");
  const std::string info = clients[1].ask({"CLIENT", "INFO"});
  const std::size_t at = info.find("addr=") + 5;
  const std::string address = info.substr(at, info.find(' ', at) - at);
  EXPECT_EQ(admin_.ask({"CLIENT", "KILL", address}), "+OK\r\n");
  EXPECT_EQ(clients[1].reply(), "(closed)");
  EXPECT_EQ(admin_.ask({"CLIENT", "KILL", address}), "-ERR No such client\r\n");
  EXPECT_EQ(admin_.ask({"CLIENT", "KILL", "ADDR", address}), ":0\r\n");
  EXPECT_EQ(admin_.ask({"CLIENT", "KILL", "TYPE", "pubsub"}), ":0\r\n");
  EXPECT_EQ(admin_.ask({"CLIENT", "KILL", "ID", "0"}), "-ERR client-id should be greater than 0\r\n");
  EXPECT_EQ(admin_.ask({"CLIENT", "KILL", "USER", "nobody"}), "-ERR No such user 'nobody'\r\n");
  EXPECT_EQ(admin_.ask({"CLIENT", "KILL", "SKIPME", "maybe"}), "-ERR syntax error\r\n");
  const std::string local = fmt::format("127.0.0.1:{}", cluster_.port());
  EXPECT_EQ(admin_.ask({"CLIENT", "KILL", "LADDR", local, "USER", "default"}), ":10\r\n") << "not itself";
  for (std::size_t i = 2; i < clients.size(); ++i) EXPECT_EQ(clients[i].reply(), "(closed)");
  EXPECT_EQ(admin_.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"}), ":1\r\n")
      << "it hears of it first";
  EXPECT_EQ(admin_.reply(), "(closed)");
}

TEST_F(ProxyClientCommands, KillEndsAClientThatWaits) {
  Client waiting = cluster_.client();
  const std::string id = id_of(waiting);
  waiting.command({"BLPOP", "nothing", "0"});
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_TRUE(admin_.ask({"CLIENT", "LIST", "ID", id}).contains(" flags=b "));
  EXPECT_EQ(admin_.ask({"CLIENT", "KILL", "ID", id}), ":1\r\n");
  EXPECT_EQ(waiting.reply(), "(closed)");
}

TEST_F(ProxyClientCommands, Unblock) {
  Client waiting = cluster_.client();
  const std::string id = id_of(waiting);
  EXPECT_EQ(admin_.ask({"CLIENT", "UNBLOCK", id}), ":0\r\n");
  for (const bool with_error : {false, true}) {
    waiting.command({"BLPOP", "nothing", "0"});
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_EQ(admin_.ask({"CLIENT", "UNBLOCK", id, with_error ? "ERROR" : "TIMEOUT"}), ":1\r\n");
    EXPECT_EQ(waiting.reply(), with_error ? "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n" : "*-1\r\n");
  }
  EXPECT_EQ(admin_.ask({"CLIENT", "UNBLOCK", "x"}), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(admin_.ask({"CLIENT", "UNBLOCK", id, "x"}),
            "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n");
}

TEST_F(ProxyClientCommands, PauseOfWritesHoldsThoseOfAllClients) {
  std::vector<Client> clients;
  for (int i = 0; i < 9; ++i) clients.push_back(cluster_.client());
  ASSERT_EQ(admin_.ask({"SET", "k", "1"}), "+OK\r\n");
  ASSERT_EQ(admin_.ask({"CLIENT", "PAUSE", "60000", "WRITE"}), "+OK\r\n");
  for (Client& client : clients) {
    EXPECT_EQ(client.ask({"GET", "k"}), "$1\r\n1\r\n");
    client.command({"GET", "k"});
    client.command({"INCR", "k"});
    client.command({"PING"});
    EXPECT_EQ(client.reply(), "$1\r\n1\r\n");
  }
  EXPECT_EQ(clients[4].reply(milliseconds(100)), "(timeout)");
  EXPECT_EQ(admin_.ask({"GET", "k"}), "$1\r\n1\r\n");
  ASSERT_EQ(admin_.ask({"CLIENT", "UNPAUSE"}), "+OK\r\n");
  for (Client& client : clients) {
    EXPECT_TRUE(client.reply().starts_with(":"));
    EXPECT_EQ(client.reply(), "+PONG\r\n");
  }
  EXPECT_EQ(admin_.ask({"GET", "k"}), "$2\r\n10\r\n");
}

TEST_F(ProxyClientCommands, PauseOfAllEndsByItself) {
  Client other = cluster_.client();
  other.ask({"PING"});
  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(admin_.ask({"CLIENT", "PAUSE", "300"}), "+OK\r\n");
  other.command({"GET", "k"});
  EXPECT_EQ(admin_.ask({"PING"}), "+PONG\r\n");
  EXPECT_EQ(other.reply(), "$-1\r\n");
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GT(took, milliseconds(280));
  EXPECT_EQ(admin_.ask({"CLIENT", "PAUSE", "x"}), "-ERR timeout is not an integer or out of range\r\n");
  EXPECT_EQ(admin_.ask({"CLIENT", "PAUSE", "-1"}), "-ERR timeout is negative\r\n");
  EXPECT_EQ(admin_.ask({"CLIENT", "PAUSE", "x", "y"}), "-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n");
}

TEST_F(ProxyClientCommands, PausedClientsDoNotHoldUpTheEnd) {
  Client other = cluster_.client();
  ASSERT_EQ(admin_.ask({"CLIENT", "PAUSE", "60000"}), "+OK\r\n");
  other.command({"GET", "k"});
  std::this_thread::sleep_for(milliseconds(50));
  const auto began = std::chrono::steady_clock::now();
  cluster_.proxy().stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(3));
}

TEST_F(ProxyClientCommands, Reply) {
  Client client = cluster_.client();
  client.command({"SET", "k", "1"});
  client.command({"CLIENT", "REPLY", "SKIP"});
  client.command({"GET", "k"});
  client.command({"GET", "k"});
  client.command({"CLIENT", "REPLY", "SKIP"});
  client.command({"PING"});
  client.command({"ECHO", "x"});
  EXPECT_EQ(client.reply(), "+OK\r\n");
  EXPECT_EQ(client.reply(), "$1\r\n1\r\n");
  EXPECT_EQ(client.reply(), "$1\r\nx\r\n");
  client.command({"CLIENT", "REPLY", "OFF"});
  client.command({"INCR", "k"});
  client.command({"PING"});
  client.command({"NONSENSE"});
  client.command({"CLIENT", "REPLY", "SKIP"});
  client.command({"CLIENT", "LIST"});
  client.command({"CLIENT", "REPLY", "ON"});
  client.command({"GET", "k"});
  EXPECT_EQ(client.reply(), "+OK\r\n");
  EXPECT_EQ(client.reply(), "$1\r\n2\r\n");
  EXPECT_EQ(client.ask({"CLIENT", "REPLY", "x"}), "-ERR syntax error\r\n");
  EXPECT_EQ(client.ask({"CLIENT", "REPLY"}), "-ERR wrong number of arguments for 'client|reply' command\r\n");
}

TEST_F(ProxyClientCommands, TrackingIsOff) {
  EXPECT_EQ(admin_.ask({"CLIENT", "GETREDIR"}), ":-1\r\n");
  EXPECT_EQ(admin_.ask({"CLIENT", "TRACKINGINFO"}),
            "*6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n*0\r\n");
  EXPECT_EQ(admin_.ask({"CLIENT", "TRACKING", "OFF"}), "+OK\r\n");
  EXPECT_TRUE(admin_.ask({"CLIENT", "TRACKING", "ON"})
                  .starts_with("-ERR command 'client tracking' is not supported"));
  EXPECT_TRUE(admin_.ask({"CLIENT", "CACHING", "YES"}).starts_with("-ERR CLIENT CACHING can be called only"));
  EXPECT_EQ(admin_.ask({"CLIENT", "NO-EVICT", "ON"}), "+OK\r\n");
  EXPECT_TRUE(admin_.ask({"CLIENT", "INFO"}).contains(" flags=e "));
}

TEST_F(ProxyClientCommands, AClientThatSendsNoMoreStillGetsItsAnswer) {
  for (const std::string_view command : {"CLIENT LIST\r\n", "INFO\r\n", "CLIENT UNPAUSE\r\n"}) {
    Client client = cluster_.client();
    ASSERT_TRUE(client.send(command));
    client.half_close();
    const std::string answer = client.rest(std::chrono::seconds(5));
    EXPECT_TRUE(answer.ends_with("\r\n") && answer.size() >= 5) << command << answer;
  }
}

TEST_F(ProxyClientCommands, ManyAtOnceFromAllThreads) {
  std::vector<Client> clients;
  for (int i = 0; i < 24; ++i) clients.push_back(cluster_.client());
  for (int turn = 0; turn < 20; ++turn) {
    for (Client& client : clients) {
      client.command({"CLIENT", "LIST"});
      client.command({"PING"});
    }
  }
  for (int turn = 0; turn < 20; ++turn) {
    for (Client& client : clients) {
      ASSERT_TRUE(client.reply().starts_with("$"));
      ASSERT_EQ(client.reply(), "+PONG\r\n");
    }
  }
  for (Client& client : clients) client.command({"CLIENT", "LIST"});
  clients.clear();  // They leave before they are answered.
  cluster_.proxy().stop();
}

// --- what clients do not read ----------------------------------------------------------------------------

std::size_t write_whole(Client& client, int turns) {
  const std::string value(1000, 'x');
  std::string bytes;
  for (int i = 0; i < turns; ++i) {
    const std::string key = fmt::format("k{}", i % 1000);
    protocol::resp::append_command(bytes, {"SET", key, value});
    protocol::resp::append_command(bytes, {"GET", key});
  }
  EXPECT_TRUE(client.send(bytes));
  return std::string_view("+OK\r\n$1000\r\n\r\n").size() + value.size();
}

TEST(ProxyUnreadAnswers, APipelineThatIsWrittenWholeBeforeItIsRead) {
  Cluster cluster(2);
  Client client = cluster.client();
  const std::size_t each = write_whole(client, 40000);
  const std::string answers = client.exactly(each * 40000);
  ASSERT_EQ(answers.size(), each * 40000);
  EXPECT_TRUE(answers.starts_with("+OK\r\n$1000\r\nxxx") && answers.ends_with("xxx\r\n"));
}

TEST(ProxyUnreadAnswers, OverTheTotalAClientThatReadsNothingIsCutAndOthersAreServed) {
  Options options;
  options.max_total_output_bytes = 4 << 20;
  options.slow_client_timeout = std::chrono::seconds(2);
  Cluster cluster(1, options);
  Client slow(cluster.port(), 4096);
  ASSERT_EQ(slow.ask({"SET", "k", std::string(100000, 'v')}), "+OK\r\n");
  std::string gets;
  for (int i = 0; i < 2000; ++i) protocol::resp::append_command(gets, {"GET", "k"});
  std::thread writer([&] { (void)slow.send(gets); });
  Client other = cluster.client();
  const auto cut = [&] { return telemetry::get(cluster.proxy().stats(), Counter::clients_cut); };
  const auto began = std::chrono::steady_clock::now();
  milliseconds longest(0);
  while (cut() == 0 && std::chrono::steady_clock::now() - began < std::chrono::seconds(15)) {
    const auto asked = std::chrono::steady_clock::now();
    ASSERT_EQ(other.ask({"PING"}), "+PONG\r\n");
    longest =
        std::max(longest, std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - asked));
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(cut(), 1U);
  EXPECT_LT(longest, milliseconds(1000));
  EXPECT_EQ(cluster.client().ask({"GET", "none"}), "$-1\r\n");
  slow.half_close();
  writer.join();
}

TEST(ProxyUnreadAnswers, OverTheTotalAClientThatReadsGetsAllOfIt) {
  Options options;
  options.max_total_output_bytes = 1 << 20;
  Cluster cluster(1, options);
  Client client = cluster.client();
  std::size_t each = 0;
  std::thread writer([&] { each = write_whole(client, 10000); });
  Client reader = cluster.client();
  std::this_thread::sleep_for(milliseconds(300));
  const std::string answers = client.exactly(1014UL * 10000);
  writer.join();
  EXPECT_EQ(each, 1014U);
  EXPECT_EQ(answers.size(), each * 10000);
}

TEST(ProxyIdleClients, AreClosedAfterTheTimeout) {
  Options options;
  options.idle_timeout = std::chrono::seconds(1);
  Cluster cluster(1, options);
  Client idle = cluster.client(), busy = cluster.client(), waiting = cluster.client();
  EXPECT_EQ(idle.ask({"PING"}), "+PONG\r\n");
  waiting.command({"BLPOP", "nothing", "0"});
  const auto began = std::chrono::steady_clock::now();
  while (idle.reply(milliseconds(50)) != "(closed)" &&
         std::chrono::steady_clock::now() - began < std::chrono::seconds(6)) {
    ASSERT_EQ(busy.ask({"PING"}), "+PONG\r\n");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(4));
  EXPECT_EQ(busy.ask({"RPUSH", "nothing", "x"}), ":1\r\n");
  EXPECT_EQ(waiting.reply(), "*2\r\n$7\r\nnothing\r\n$1\r\nx\r\n") << "one that waits is not idle";
}

}  // namespace
}  // namespace ringshift::proxy
