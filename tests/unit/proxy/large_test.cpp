// Commands and answers that are passed on in pieces, before real servers.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kMiB = 1U << 20;

// Differs everywhere, so that nothing lost, doubled or moved goes unnoticed.
std::string value_of(std::size_t size, std::uint64_t seed = 1) {
  std::string value(size + 8, '\0');
  for (std::size_t at = 0; at < size; at += 8) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(value.data() + at, &seed, 8);
  }
  value.resize(size);
  return value;
}

std::string bulk(const std::string& value) { return fmt::format("${}\r\n{}\r\n", value.size(), value); }

// As `client` gets it, without decoding it again and again.
bool gets(Client& client, const std::string& key, const std::string& value) {
  client.command({"GET", key});
  const std::string wanted = bulk(value);
  return client.exactly(wanted.size()) == wanted;
}

// GETs of `key` over a connection of their own until it dies; every one must be answered.
class Bystander {
 public:
  Bystander(Cluster& cluster, std::string key)
      : client_(cluster.client()), key_(std::move(key)), thread_([this] { run(); }) {}
  ~Bystander() { finish(); }
  int finish() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    EXPECT_TRUE(trouble_.empty()) << trouble_ << " after " << answered_;
    return answered_;
  }

 private:
  void run() {
    while (!stop_ && trouble_.empty()) {
      client_.command({"GET", key_});
      const std::string reply = client_.reply(milliseconds(2000));
      if (reply == "$5\r\nsmall\r\n") {
        ++answered_;
      } else {
        trouble_ = reply;
      }
    }
  }
  Client client_;
  const std::string key_;
  std::atomic<bool> stop_ = false;
  std::string trouble_;
  int answered_ = 0;
  std::thread thread_;
};

TEST(Large, ValuesOfAllSizesComeBackAsTheyWent) {
  Cluster cluster(2);
  Client client = cluster.client();
  for (const std::size_t size : {std::size_t{16306}, std::size_t{65314}, kMiB - 100, kMiB - 1, kMiB, kMiB + 1,
                                 4 * kMiB - 1, 4 * kMiB, 4 * kMiB + 1, 16 * kMiB}) {
    const std::string value = value_of(size, size);
    const std::string key = cluster.key_of(size % 2);
    EXPECT_EQ(client.ask({"SET", key, value}), "+OK\r\n") << size;
    EXPECT_EQ(Client(cluster.member(size % 2).port()).ask({"STRLEN", key}), fmt::format(":{}\r\n", size));
    EXPECT_TRUE(gets(client, key, value)) << size;
  }
}

TEST(Large, OptionsBehindTheValueAndOtherCommands) {
  Cluster cluster(2);
  Client client = cluster.client();
  const std::string value = value_of(3 * kMiB);
  EXPECT_EQ(client.ask({"SET", "k", value, "EX", "100"}), "+OK\r\n");
  EXPECT_EQ(client.ask({"TTL", "k"}), ":100\r\n");
  EXPECT_EQ(client.ask({"SET", "k", value, "NX"}), "$-1\r\n");
  EXPECT_EQ(client.ask({"SET", "k", value, "NOPE"}), "-ERR syntax error\r\n");
  EXPECT_EQ(client.ask({"APPEND", "k", value}), fmt::format(":{}\r\n", 6 * kMiB));
  EXPECT_EQ(client.ask({"SETRANGE", "k", "0", value}), fmt::format(":{}\r\n", 6 * kMiB));
  EXPECT_EQ(client.ask({"HSET", "h", "a", value, "b", value}), ":2\r\n");
  client.command({"HGET", "h", "b"});
  EXPECT_EQ(client.exactly(bulk(value).size()), bulk(value));
  EXPECT_EQ(client.ask({"SISMEMBER", "s", value}), ":0\r\n");
  EXPECT_EQ(client.ask({"SET", "h2"}), "-ERR wrong number of arguments for 'set' command\r\n");
  EXPECT_EQ(client.ask({"SET", "rs:own", value}),
            "-ERR keys beginning with 'rs:' are reserved by ringshift\r\n");
  EXPECT_EQ(client.ask({"LPUSH", "k", value}),
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
  EXPECT_EQ(client.ask({"STRLEN", "k"}), fmt::format(":{}\r\n", 6 * kMiB));
}

TEST(Large, OneClientsCommandsKeepTheirOrder) {
  Cluster cluster(1);
  const std::string value = value_of(6 * kMiB);
  Client client = cluster.client();
  std::string bytes;
  std::string wanted;
  const auto add = [&](std::initializer_list<std::string_view> words, const std::string& answer) {
    protocol::resp::append_command(bytes, words);
    wanted += answer;
  };
  int count = 0;
  for (int round = 0; round < 6; ++round) {
    add({"SET", "k", "short"}, "+OK\r\n");
    add({"GET", "k"}, "$5\r\nshort\r\n");
    add({"SET", "k", value}, "+OK\r\n");
    for (int i = 0; i < 50; ++i) {
      add({"GET", "k"}, i % 25 == 0 ? bulk(value) : "");
      if (i % 25 != 0) bytes.resize(bytes.size() - std::string("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n").size());
      add({"INCR", "n"}, fmt::format(":{}\r\n", ++count));
    }
    add({"STRLEN", "k"}, fmt::format(":{}\r\n", value.size()));
  }
  std::thread sender([&] { EXPECT_TRUE(client.send(bytes)); });
  EXPECT_TRUE(client.exactly(wanted.size()) == wanted);
  sender.join();
}

// The value and what is behind it come from two members, and the first answer of the client last.
TEST(Large, AnAnswerThatIsNotYetItsTurnWaits) {
  Options options;
  options.request_timeout = milliseconds(3000);
  Cluster cluster(2, options);
  const std::string value = value_of(24 * kMiB);
  Client client = cluster.client();
  const std::string slow = cluster.key_of(0);
  const std::string big = cluster.key_of(1);
  EXPECT_EQ(client.ask({"SET", big, value}), "+OK\r\n");
  EXPECT_EQ(client.ask({"SET", big + "small", "small"}), "+OK\r\n");
  cluster.member(0).pause();
  std::string bytes;
  for (const std::string& key : {slow, big, big}) protocol::resp::append_command(bytes, {"GET", key});
  client.send(bytes);
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(cluster.client().ask({"STRLEN", big}), fmt::format(":{}\r\n", value.size()));
  cluster.member(0).resume();
  const std::string wanted = "$-1\r\n" + bulk(value) + bulk(value);
  EXPECT_TRUE(client.exactly(wanted.size()) == wanted);
}

TEST(Large, AClientThatDoesNotReadDelaysNobody) {
  Cluster cluster(1);
  const std::string value = value_of(64 * kMiB);
  Client client = cluster.client();
  ASSERT_EQ(client.ask({"SET", "big", value}), "+OK\r\n");
  ASSERT_EQ(client.ask({"SET", "k", "small"}), "+OK\r\n");
  Bystander bystander(cluster, "k");
  Client slow(cluster.port(), 64 << 10);
  slow.command({"GET", "big"});
  std::this_thread::sleep_for(milliseconds(1500));
  EXPECT_GT(bystander.finish(), 100);
  const std::string wanted = bulk(value);
  EXPECT_TRUE(slow.exactly(wanted.size()) == wanted);
  EXPECT_EQ(slow.ask({"GET", "k"}), "$5\r\nsmall\r\n");
}

// Both directions: the value is read by a client that leaves in the middle.
TEST(Large, ClientsThatLeaveInTheMiddleLeaveNothingBehind) {
  Cluster cluster(1);
  const std::string value = value_of(64 * kMiB);
  Client client = cluster.client();
  ASSERT_EQ(client.ask({"SET", "big", value}), "+OK\r\n");
  for (int i = 0; i < 5; ++i) {
    Client reader(cluster.port(), 64 << 10);
    reader.command({"GET", "big"});
    reader.exactly(kMiB);
    Client writer = cluster.client();
    writer.send(fmt::format("*3\r\n$3\r\nSET\r\n$3\r\nnew\r\n${}\r\n", value.size()));
    writer.send(std::string_view(value).substr(0, 5 * kMiB));
  }
  EXPECT_EQ(client.ask({"EXISTS", "new"}), ":0\r\n");
  EXPECT_TRUE(gets(client, "big", value));
  // The worker's own connection, the one that answered just now, at most 8 idle private ones, and this.
  const std::string clients = cluster.member(0).command("INFO clients");
  const int connected = std::stoi(clients.substr(clients.find("connected_clients:") + 18));
  EXPECT_LE(connected, 11) << clients;
}

TEST(Large, ACommandThatStallsIsForgotten) {
  Options options;
  options.slow_client_timeout = std::chrono::seconds(1);
  Cluster cluster(1, options);
  const std::string value = value_of(4 * kMiB);
  Client client = cluster.client();
  client.send(fmt::format("*3\r\n$3\r\nSET\r\n$3\r\nnew\r\n${}\r\n", value.size()));
  client.send(std::string_view(value).substr(0, 2 * kMiB));
  std::this_thread::sleep_for(milliseconds(2300));
  client.send(std::string_view(value).substr(2 * kMiB));
  client.send("\r\n");
  EXPECT_EQ(client.reply(), "-ERR the rest of the command did not come within 1 s: nothing was written\r\n");
  EXPECT_EQ(client.ask({"EXISTS", "new"}), ":0\r\n");
}

TEST(Large, AMemberThatIsKilledBreaksOffTheAnswer) {
  Cluster cluster(1);
  Client client = cluster.client();
  ASSERT_EQ(client.ask({"SET", "big", value_of(64 * kMiB)}), "+OK\r\n");
  Client slow(cluster.port(), 64 << 10);
  slow.command({"GET", "big"});
  EXPECT_EQ(slow.exactly(kMiB).size(), kMiB);
  cluster.kill_member(0);
  const std::string rest = slow.rest();
  EXPECT_LT(rest.size(), 63 * kMiB);
  EXPECT_FALSE(rest.ends_with("(timeout)"));
  EXPECT_TRUE(cluster.client().ask({"GET", "k"}).starts_with("-")) << "others get an error";
  cluster.restart_member(0);
  EXPECT_TRUE(cluster.answers("k", "$-1\r\n"));
}

TEST(Large, AMemberThatTakesNothingFailsTheCommandAtTheDeadline) {
  Options options;
  options.request_timeout = milliseconds(300);
  Cluster cluster(2, options);
  Client client = cluster.client();
  const std::string key = cluster.key_of(0);
  const std::string other = cluster.key_of(1);
  const std::string value = value_of(64 * kMiB);
  ASSERT_EQ(client.ask({"SET", key, value_of(2 * kMiB)}), "+OK\r\n");
  cluster.member(0).pause();
  std::string bytes;
  protocol::resp::append_command(bytes, {"SET", key, value});
  std::thread sender([&] { EXPECT_TRUE(client.send(bytes)); });
  EXPECT_EQ(cluster.client().ask({"GET", other}), "$-1\r\n");
  const std::string answer = client.reply();
  sender.join();
  EXPECT_TRUE(answer.starts_with("-TRYAGAIN member cache-1")) << answer;
  EXPECT_EQ(client.ask({"GET", other}), "$-1\r\n") << "its connection goes on";
  cluster.member(0).resume();
  EXPECT_EQ(client.ask({"STRLEN", key}), fmt::format(":{}\r\n", 2 * kMiB));
}

TEST(Large, AMalformedRestEndsTheConnectionAndWritesNothing) {
  Cluster cluster(1);
  const std::string value = value_of(2 * kMiB);
  for (const auto& [rest, error] : {std::pair{"$x\r\n", "invalid bulk length"},
                                    {"$-1\r\n", "invalid bulk length"},
                                    {"$536870913\r\n", "invalid bulk length"},
                                    {":3\r\n", "expected '$', got ':'"}}) {
    Client client = cluster.client();
    client.send("*5\r\n$3\r\nSET\r\n$1\r\nk\r\n" + bulk(value) + rest);
    EXPECT_EQ(client.rest(), fmt::format("-ERR Protocol error: {}\r\n", error));
  }
  Client client = cluster.client();
  client.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870913\r\n");
  EXPECT_EQ(client.rest(), "-ERR Protocol error: invalid bulk length\r\n");
  EXPECT_EQ(cluster.client().ask({"EXISTS", "k"}), ":0\r\n");
}

TEST(Large, WhatCannotBePassedOnHasItsLimit) {
  Options options;
  options.max_member_queue_bytes = 8 * kMiB;
  Cluster cluster(2, options);
  Client client = cluster.client();
  const std::string value = value_of(9 * kMiB);
  const std::string answer = client.ask({"MSET", "a", value, "b", "x"});
  EXPECT_TRUE(answer.starts_with("-ERR a command of 94")) << answer;
  EXPECT_TRUE(answer.contains("8388608 bytes (member_queue_bytes")) << answer;
  EXPECT_EQ(client.ask({"GET", "b"}), "$-1\r\n");
  EXPECT_EQ(client.ask({"MULTI"}), "+OK\r\n");
  EXPECT_TRUE(client.ask({"SET", "a", value}).starts_with("-ERR a command of"));
  EXPECT_EQ(client.ask({"EXEC"}), "-EXECABORT Transaction discarded because of previous errors.\r\n");
  EXPECT_EQ(client.ask({"MSET", "a", value.substr(0, 3 * kMiB), "b", "x"}), "+OK\r\n");
  EXPECT_EQ(client.ask({"SET", "a", value}), "+OK\r\n");
  EXPECT_TRUE(gets(client, "a", value));
}

TEST(Large, RepliesAreSwitchedOffAndConnectionsEndInOrder) {
  Cluster cluster(1);
  const std::string value = value_of(6 * kMiB);
  Client client = cluster.client();
  std::string bytes;
  for (const auto& words : {std::initializer_list<std::string_view>{"CLIENT", "REPLY", "SKIP"},
                            {"SET", "k", value},
                            {"CLIENT", "REPLY", "SKIP"},
                            {"GET", "k"},
                            {"STRLEN", "k"},
                            {"GET", "k"},
                            {"QUIT"}}) {
    protocol::resp::append_command(bytes, words);
  }
  EXPECT_TRUE(client.send(bytes));
  EXPECT_TRUE(client.rest() == fmt::format(":{}\r\n{}+OK\r\n", value.size(), bulk(value)));
  Client half = cluster.client();
  half.command({"GET", "k"});
  half.half_close();
  EXPECT_TRUE(half.rest() == bulk(value));
}

TEST(Large, UsersMayDoWithLargeValuesWhatTheyMayWithSmallOnes) {
  RedisProcess redis;
  topology::Topology topology;
  topology.spec.cluster = "a";
  topology.spec.members.emplace_back().id = "a-1";
  topology.spec.members.back().address = redis.address();
  Rules rules;
  const std::vector<std::string> words = {"on", ">pw", "%W~k*", "+@all"};
  rules.users.add(*access::User::parse("writer", words));
  Options options;
  options.listen = "127.0.0.1:0";
  options.threads = 1;
  auto proxy = *Proxy::start(
      options,
      {{"a", std::make_shared<Proxy::Holder>(*topology::Snapshot::compile(topology, {0, 1})), nullptr}},
      std::move(rules));
  const std::string& address = proxy->address();
  Client client(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  const std::string value = value_of(2 * kMiB);
  const std::string refused =
      "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n";
  EXPECT_EQ(client.ask({"AUTH", "writer", "pw"}), "+OK\r\n");
  EXPECT_EQ(client.ask({"SET", "k", value}), "+OK\r\n");
  EXPECT_EQ(client.ask({"SET", "other", value}), refused);
  EXPECT_EQ(client.ask({"SET", "k", value, "EX", "100"}), "+OK\r\n");
  EXPECT_EQ(client.ask({"SET", "k", value, "GET"}), refused);
  EXPECT_EQ(client.ask({"GETSET", "k", value}), refused);
  EXPECT_EQ(client.ask({"APPEND", "k", "x"}), fmt::format(":{}\r\n", value.size() + 1));
}

// More than a million of them: only the bytes have a bound.
TEST(Large, ManyArguments) {
  constexpr std::size_t kCount = 1'200'000;
  Cluster cluster(2);
  RedisProcess alone;
  Client ours = cluster.client();
  Client theirs(alone.port());
  std::string rest;
  for (std::size_t i = 0; i < kCount; ++i) rest += "$1\r\nx\r\n";
  const std::string push = fmt::format("*{}\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n", kCount + 2) + rest;
  const std::string ping = fmt::format("*{}\r\n$4\r\nPING\r\n", kCount + 1) + rest;
  for (Client* client : {&ours, &theirs}) {
    EXPECT_TRUE(client->send(push));
    EXPECT_EQ(client->reply(std::chrono::seconds(30)), fmt::format(":{}\r\n", kCount));
    EXPECT_TRUE(client->send(ping));
    EXPECT_EQ(client->reply(std::chrono::seconds(30)),
              "-ERR wrong number of arguments for 'ping' command\r\n");
    EXPECT_TRUE(client->send("*2147483648\r\n"));
    EXPECT_EQ(client->rest(), "-ERR Protocol error: invalid multibulk length\r\n");
  }
}

std::string message_of(std::string_view text) {
  return fmt::format(">3\r\n$7\r\nmessage\r\n$4\r\nchan\r\n${}\r\n{}\r\n", text.size(), text);
}

TEST(Large, MessagesWaitForTheEndOfTheAnswer) {
  Cluster cluster(1);
  const std::string value = value_of(24 * kMiB);
  Client publisher = cluster.client();
  ASSERT_EQ(publisher.ask({"SET", "big", value}), "+OK\r\n");
  Client client(cluster.port(), 64 << 10);
  ASSERT_TRUE(client.ask({"HELLO", "3"}).starts_with("%"));
  ASSERT_EQ(client.ask({"SUBSCRIBE", "chan"}), ">3\r\n$9\r\nsubscribe\r\n$4\r\nchan\r\n:1\r\n");
  client.command({"GET", "big"});
  client.command({"PING"});
  const std::string wanted = bulk(value);
  std::string got = client.exactly(1000);  // It has begun, and most of it is still at the member.
  std::string messages;
  for (int i = 0; i < 20; ++i) {
    const std::string text = fmt::format("m{}", i);
    EXPECT_EQ(publisher.ask({"PUBLISH", "chan", text}), ":1\r\n");
    messages += message_of(text);
  }
  // Whether they came before the end or only behind it: the answer is in one piece.
  got += client.exactly(wanted.size() - got.size());
  EXPECT_TRUE(got == wanted);
  const std::string pong = "+PONG\r\n";
  std::string rest = client.exactly(messages.size() + pong.size());
  if (const std::size_t at = rest.find(pong); at != std::string::npos) rest.erase(at, pong.size());
  EXPECT_EQ(rest, messages);
  EXPECT_EQ(publisher.ask({"PUBLISH", "chan", "x"}), ":1\r\n");
  EXPECT_EQ(client.reply(), message_of("x"));
}

TEST(Large, MessagesThatWaitCountTowardsTheBound) {
  Cluster cluster(1);
  Client publisher = cluster.client();
  ASSERT_EQ(publisher.ask({"SET", "big", value_of(24 * kMiB)}), "+OK\r\n");
  ASSERT_EQ(publisher.ask({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 6mb 0 0"}), "+OK\r\n");
  Client client(cluster.port(), 64 << 10);
  ASSERT_TRUE(client.ask({"HELLO", "3"}).starts_with("%"));
  ASSERT_TRUE(client.ask({"SUBSCRIBE", "chan"}).starts_with(">3\r\n"));
  client.command({"GET", "big"});
  (void)client.exactly(1000);
  const std::string text = value_of(kMiB);
  for (int i = 0; i < 100 && telemetry::get(cluster.proxy().stats(), telemetry::Counter::clients_cut) == 0;
       ++i) {
    (void)publisher.ask({"PUBLISH", "chan", text});
  }
  EXPECT_EQ(telemetry::get(cluster.proxy().stats(), telemetry::Counter::clients_cut), 1U);
  EXPECT_LT(client.rest().size(), 24 * kMiB);
  EXPECT_EQ(publisher.ask({"PING"}), "+PONG\r\n");
}

// --- during a resize -------------------------------------------------------------------------------------

// The barrier does not wait for a client, and what it sends later is not written anywhere.
TEST(Large, AHoldCutsOffWhatIsOnlyHalfThere) {
  Cluster cluster(3);
  std::atomic<std::uint64_t> applied = 0;
  cluster.proxy().set_on_applied([&](topology::Version version) { applied = version.revision; });
  const auto wait_for = [&](std::uint64_t revision) {
    for (int i = 0; i < 300 && applied < revision; ++i) std::this_thread::sleep_for(milliseconds(10));
    return applied >= revision;
  };
  const auto hold = all_held(cluster, 3);
  std::string moving;
  std::string staying;
  for (int n = 0; moving.empty() || staying.empty(); ++n) {
    const std::string key = fmt::format("key-{}", n);
    (hold->route(key).state == topology::KeyState::settled ? staying : moving) = key;
  }
  const std::string value = value_of(8 * kMiB);
  const auto begin = [&](Client& client, const std::string& key) {
    client.send(fmt::format("*3\r\n$3\r\nSET\r\n${}\r\n{}\r\n${}\r\n", key.size(), key, value.size()));
    client.send(std::string_view(value).substr(0, 5 * kMiB));
  };
  Client moved = cluster.client();
  Client stayed = cluster.client();
  begin(moved, moving);
  begin(stayed, staying);
  std::this_thread::sleep_for(milliseconds(200));
  ASSERT_TRUE(cluster.holder()->publish(hold));
  cluster.proxy().notify();
  ASSERT_TRUE(wait_for(3)) << "the barrier waits for clients";
  for (Client* client : {&moved, &stayed}) {
    client->send(std::string_view(value).substr(5 * kMiB));
    client->send("\r\n");
  }
  EXPECT_TRUE(moved.reply().starts_with("-TRYAGAIN the key began to move"));
  EXPECT_EQ(stayed.reply(), "+OK\r\n");
  Client again = cluster.client();
  std::string bytes;
  protocol::resp::append_command(bytes, {"SET", moving, value});
  std::thread sender([&] { again.send(bytes); });
  EXPECT_EQ(again.reply(milliseconds(100)), "(timeout)") << "it waits for the step";
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(Client(cluster.member(i).port()).ask({"EXISTS", moving}), ":0\r\n");
  }
  cluster.publish(3, 4);
  EXPECT_EQ(again.reply(), "+OK\r\n");
  sender.join();
  EXPECT_EQ(Client(cluster.member(2).port()).ask({"STRLEN", moving}), fmt::format(":{}\r\n", value.size()));
}

}  // namespace
}  // namespace ringshift::proxy
