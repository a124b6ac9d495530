// Publish and subscribe through the proxy, beside a plain redis-server.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "cluster.h"

namespace ringshift::proxy {
namespace {

using std::chrono::milliseconds;

std::string line_of(std::vector<std::string_view> words) {
  std::string bytes;
  protocol::resp::append_command(bytes, words);
  return bytes;
}

Options workers(unsigned threads) {
  Options options;
  options.threads = threads;
  return options;
}

struct Turn {
  char who;                             // 'a' or 'b'.
  std::vector<std::string_view> words;  // Empty: only listens.
  int replies = 1;
};

// Both servers are asked the same, and answer the same bytes, in both protocols.
class BesideRedis : public testing::TestWithParam<const char*> {
 protected:
  void compare(const std::vector<Turn>& turns) {
    Cluster cluster(3, workers(2));
    RedisProcess plain;
    std::map<char, Client> of_proxy, of_plain;
    for (const char who : {'a', 'b', 'c'}) {
      of_proxy.emplace(who, cluster.client());
      of_plain.emplace(who, Client(plain.port()));
      of_proxy.at(who).ask({"HELLO", GetParam()});
      of_plain.at(who).ask({"HELLO", GetParam()});
    }
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const Turn& turn = turns[i];
      if (!turn.words.empty()) {
        ASSERT_TRUE(of_proxy.at(turn.who).send(line_of(turn.words)));
        ASSERT_TRUE(of_plain.at(turn.who).send(line_of(turn.words)));
      }
      for (int n = 0; n < turn.replies; ++n) {
        const std::string expected = of_plain.at(turn.who).reply(milliseconds(3000));
        EXPECT_EQ(of_proxy.at(turn.who).reply(milliseconds(3000)), expected) << "turn " << i;
        EXPECT_NE(expected, "(timeout)") << "turn " << i;
      }
    }
    for (const char who : {'a', 'b', 'c'}) {
      EXPECT_EQ(of_proxy.at(who).reply(milliseconds(50)), of_plain.at(who).reply(milliseconds(50))) << who;
    }
  }
};

TEST_P(BesideRedis, ChannelsAndCounts) {
  compare({{'a', {"SUBSCRIBE", "one", "two", "one"}, 3},
           {'b', {"PUBLISH", "one", "hello"}},
           {'a', {}},
           {'b', {"PUBLISH", "none", "x"}},
           {'c', {"SUBSCRIBE", "two"}},
           {'b', {"PUBLISH", "two", ""}},
           {'a', {}},
           {'c', {}},
           {'b', {"PUBSUB", "NUMSUB", "one", "two", "none"}},
           {'b', {"PUBSUB", "NUMSUB"}},
           {'b', {"PUBSUB", "CHANNELS", "o*"}},
           {'b', {"PUBSUB", "CHANNELS", "a", "b"}},
           {'b', {"PUBSUB", "NUMPAT"}},
           {'a', {"UNSUBSCRIBE", "two", "never"}, 2},
           {'b', {"PUBLISH", "two", "x"}},
           {'c', {}},
           {'a', {"UNSUBSCRIBE"}},
           {'b', {"PUBLISH", "one", "x"}},
           {'b', {"PUBSUB", "CHANNELS", "o*"}},
           {'a', {"UNSUBSCRIBE"}},
           {'a', {"GET", "k"}}});
}

TEST_P(BesideRedis, PatternsAndChannelsOfOneMessage) {
  compare({{'a', {"PSUBSCRIBE", "n*", "?ews"}, 2},
           {'a', {"SUBSCRIBE", "other"}},
           {'c', {"PSUBSCRIBE", "[m-n]ew?"}},
           {'b', {"PUBSUB", "NUMPAT"}},
           {'b', {"PUBLISH", "nothing", "1"}},
           {'a', {}},
           {'b', {"PUBLISH", "other", "2"}},
           {'a', {}},
           {'c', {"PUNSUBSCRIBE"}},
           {'b', {"PUBLISH", "other", "3"}},
           {'a', {}},
           {'b', {"PUBSUB", "NUMPAT"}},
           {'a', {"PUNSUBSCRIBE", "?ews"}},
           {'b', {"PUBLISH", "news", "4"}},
           {'a', {}},
           {'a', {"PUNSUBSCRIBE", "n*"}},
           {'a', {"UNSUBSCRIBE"}},
           {'a', {"PUNSUBSCRIBE"}},
           {'b', {"PUBLISH", "news", "5"}}});
}

TEST_P(BesideRedis, ShardChannelsAreCountedApart) {
  compare({{'a', {"SSUBSCRIBE", "s1", "s2"}, 2},
           {'a', {"SUBSCRIBE", "s1"}},
           {'b', {"SPUBLISH", "s1", "x"}},
           {'a', {}},
           {'b', {"PUBLISH", "s1", "y"}},
           {'a', {}},
           {'b', {"PUBSUB", "SHARDNUMSUB", "s1", "s3"}},
           {'b', {"PUBSUB", "SHARDCHANNELS", "*1"}},
           {'a', {"SUNSUBSCRIBE", "s1"}},
           {'a', {"SUNSUBSCRIBE"}},
           {'b', {"SPUBLISH", "s1", "x"}},
           {'a', {"SUNSUBSCRIBE"}},
           {'a', {"UNSUBSCRIBE"}}});
}

TEST_P(BesideRedis, WhatASubscriberMayAsk) {
  compare({{'a', {"UNSUBSCRIBE"}},
           {'a', {"PING"}},
           {'a', {"SUBSCRIBE", "c"}},
           {'a', {"PING"}},
           {'a', {"PING", "text"}},
           {'a', {"PING", "a", "b"}},
           {'a', {"GET", "k"}},
           {'a', {"GET"}},
           {'a', {"CLIENT", "ID", "x"}},
           {'a', {"SUBSCRIBE"}},
           {'a', {"RESET"}},
           {'b', {"PUBLISH", "c", "x"}},
           {'a', {"GET", "k"}},
           {'a', {"SUBSCRIBE", "d"}},
           {'a', {"QUIT"}},
           {'b', {"PUBLISH", "d", "x"}},
           {'b', {"MULTI"}},
           {'b', {"PUBLISH", "d", "y"}},
           {'b', {"EXEC"}},
           {'b', {"PUBLISH", "d"}},
           {'b', {"PUBSUB", "NUMPAT", "x"}}});
}

INSTANTIATE_TEST_SUITE_P(Protocols, BesideRedis, testing::Values("2", "3"));

std::string message(const std::string& channel, const std::string& text) {
  return fmt::format("*3\r\n$7\r\nmessage\r\n${}\r\n{}\r\n${}\r\n{}\r\n", channel.size(), channel,
                     text.size(), text);
}

TEST(PubSub, AnswersAndConfirmationsKeepTheOrderOfTheCommands) {
  Cluster cluster(3);
  Client client = cluster.client();
  std::string bytes = "SET k 1\r\nGET k\r\n";
  for (int i = 0; i < 50; ++i) bytes += fmt::format("SUBSCRIBE c{}\r\nUNSUBSCRIBE c{}\r\nGET k\r\n", i, i);
  client.send(bytes);
  EXPECT_EQ(client.reply(), "+OK\r\n");
  EXPECT_EQ(client.reply(), "$1\r\n1\r\n");
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(client.reply().starts_with("*3\r\n$9\r\nsubscribe")) << i;
    EXPECT_TRUE(client.reply().starts_with("*3\r\n$11\r\nunsubscribe")) << i;
    EXPECT_EQ(client.reply(), "$1\r\n1\r\n") << i;
  }
}

TEST(PubSub, EveryClientOfEveryWorkerIsCountedAndHearsEachMessageOnce) {
  Cluster cluster(3, workers(3));
  std::vector<Client> clients;
  for (int i = 0; i < 9; ++i) {
    clients.push_back(cluster.client());
    clients.back().ask({"SUBSCRIBE", "news"});
  }
  Client pattern = cluster.client();
  pattern.ask({"PSUBSCRIBE", "new*"});
  Client publisher = cluster.client();
  for (int n = 0; n < 50; ++n) {
    ASSERT_EQ(publisher.ask({"PUBLISH", "news", std::to_string(n)}), ":10\r\n");
  }
  for (Client& client : clients) {
    for (int n = 0; n < 50; ++n) ASSERT_EQ(client.reply(), message("news", std::to_string(n)));
    EXPECT_EQ(client.reply(milliseconds(20)), "(timeout)");
  }
  for (int n = 0; n < 50; ++n) EXPECT_TRUE(pattern.reply().contains(fmt::format("\r\n{}\r\n", n)));
  EXPECT_EQ(pattern.reply(milliseconds(20)), "(timeout)");
  EXPECT_EQ(publisher.ask({"PUBSUB", "NUMSUB", "news"}), "*2\r\n$4\r\nnews\r\n:9\r\n");
  // Those that leave are counted no more, nor are they at the member.
  clients.clear();
  pattern.close();
  bool gone = false;
  for (int i = 0; i < 100 && !gone; ++i) {
    gone =
        publisher.ask({"PUBSUB", "CHANNELS"}) == "*0\r\n" && publisher.ask({"PUBSUB", "NUMPAT"}) == ":0\r\n";
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(gone);
  EXPECT_EQ(publisher.ask({"PUBLISH", "news", "x"}), ":0\r\n");
}

TEST(PubSub, AMemberThatBreaksEndsItsSubscribersAndNoOthers) {
  Cluster cluster(3);
  const std::string lost = cluster.key_of(0), kept = cluster.key_of(1);
  Client one = cluster.client(), other = cluster.client(), pattern = cluster.client();
  one.ask({"SUBSCRIBE", lost});
  other.ask({"SUBSCRIBE", kept});
  pattern.ask({"PSUBSCRIBE", "*"});
  cluster.kill_member(0);
  EXPECT_EQ(one.rest(milliseconds(3000)), "");
  EXPECT_EQ(pattern.rest(milliseconds(3000)), "");
  EXPECT_EQ(telemetry::get(cluster.proxy().stats(), telemetry::Counter::subscribers_cut), 2U);
  Client publisher = cluster.client();
  EXPECT_EQ(publisher.ask({"PUBLISH", kept, "x"}), ":1\r\n");
  EXPECT_EQ(other.reply(), message(kept, "x"));
  // What the dead member would have to confirm is an error, the rest is subscribed.
  Client late = cluster.client();
  late.command({"SUBSCRIBE", lost, kept});
  EXPECT_TRUE(late.reply().starts_with("-TRYAGAIN member cache-1 "));
  EXPECT_EQ(late.reply(), fmt::format("*3\r\n$9\r\nsubscribe\r\n${}\r\n{}\r\n:1\r\n", kept.size(), kept));
  EXPECT_TRUE(late.ask({"PSUBSCRIBE", "*"}).starts_with("-TRYAGAIN member cache-1 "));
  cluster.restart_member(0);
  std::string answer;
  for (int i = 0; i < 60; ++i) {
    answer = late.ask({"SUBSCRIBE", lost});
    if (!answer.starts_with('-')) break;
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_TRUE(answer.ends_with(":2\r\n")) << answer;
  EXPECT_TRUE(cluster.answers("some-key", "$-1\r\n"));
  for (int i = 0; i < 60 && !publisher.ask({"PUBLISH", lost, "y"}).starts_with(':'); ++i) {
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(late.reply(), message(lost, "y"));
}

TEST(PubSub, AMemberThatStandsStillMakesAnErrorInTime) {
  Options options;
  options.connect_timeout = options.request_timeout = milliseconds(300);
  Cluster cluster(2, options);
  const std::string stalled = cluster.key_of(0), free = cluster.key_of(1);
  Client client = cluster.client();
  client.ask({"SUBSCRIBE", stalled});
  ::kill(cluster.member(0).pid(), SIGSTOP);
  EXPECT_TRUE(client.ask({"SUBSCRIBE", stalled + "x", free}).starts_with("*3") ||
              cluster.holder()->load()->route(stalled + "x").member == 0);
  Client late = cluster.client();
  late.command({"PSUBSCRIBE", "*"});
  EXPECT_TRUE(late.reply(milliseconds(3000)).starts_with("-TRYAGAIN member cache-1 "));
  EXPECT_EQ(late.ask({"GET", free}), "$-1\r\n");
  // One that leaves does not wait for it.
  EXPECT_EQ(late.ask({"PUNSUBSCRIBE"}), "*3\r\n$12\r\npunsubscribe\r\n$-1\r\n:0\r\n");
  ::kill(cluster.member(0).pid(), SIGCONT);
}

TEST(PubSub, ASubscriberThatDoesNotReadIsCut) {
  Cluster cluster(1);
  Client publisher = cluster.client();
  EXPECT_EQ(publisher.ask({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0"}), "+OK\r\n");
  Client slow(cluster.port(), 4096);
  slow.ask({"SUBSCRIBE", "flood"});
  Client reader = cluster.client();
  reader.ask({"SUBSCRIBE", "flood"});
  const std::string block(64 << 10, 'x');
  bool alone = false;
  for (int i = 0; i < 400 && !alone; ++i) {
    const std::string answer = publisher.ask({"PUBLISH", "flood", block});
    ASSERT_TRUE(reader.reply().ends_with(block + "\r\n"));
    alone = answer == ":1\r\n";
  }
  EXPECT_TRUE(alone) << "the slow client was not cut";
  EXPECT_EQ(telemetry::get(cluster.proxy().stats(), telemetry::Counter::clients_cut), 1U);
  EXPECT_TRUE(slow.rest().ends_with("x"));
}

TEST(PubSub, KeyspaceEventsOfAllMembers) {
  Cluster cluster(3);
  for (std::size_t i = 0; i < 3; ++i) {
    Client(cluster.member(i).port()).ask({"CONFIG", "SET", "notify-keyspace-events", "KEA"});
  }
  Client pattern = cluster.client(), plain = cluster.client(), writer = cluster.client();
  pattern.ask({"PSUBSCRIBE", "__keyspace@0__:key-*"});
  plain.ask({"SUBSCRIBE", "__keyevent@0__:set"});
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string key = cluster.key_of(i);
    writer.ask({"SET", key, "v"});
    EXPECT_TRUE(pattern.reply(milliseconds(3000)).contains("__keyspace@0__:" + key));
    EXPECT_EQ(plain.reply(milliseconds(3000)), message("__keyevent@0__:set", key));
  }
}

TEST(PubSub, TransactionsPublishOnTheirMember) {
  Cluster cluster(3);
  const std::string here = cluster.key_of(0), there = cluster.key_of(1);
  Client subscriber = cluster.client(), client = cluster.client();
  subscriber.ask({"SUBSCRIBE", here});
  client.ask({"MULTI"});
  EXPECT_EQ(client.ask({"SET", here, "v"}), "+QUEUED\r\n");
  EXPECT_EQ(client.ask({"PUBLISH", here, "in it"}), "+QUEUED\r\n");
  EXPECT_EQ(subscriber.reply(milliseconds(50)), "(timeout)");
  EXPECT_EQ(client.ask({"EXEC"}), "*2\r\n+OK\r\n:1\r\n");
  EXPECT_EQ(subscriber.reply(), message(here, "in it"));
  client.ask({"MULTI"});
  EXPECT_EQ(client.ask({"SET", here, "v"}), "+QUEUED\r\n");
  EXPECT_TRUE(client.ask({"PUBLISH", there, "x"}).starts_with("-CROSSSLOT"));
  EXPECT_TRUE(client.ask({"EXEC"}).starts_with("-EXECABORT"));
}

TEST(PubSub, IsShownInTheListOfClients) {
  Cluster cluster(2, workers(2));
  Client client = cluster.client(), admin = cluster.client();
  client.command({"SUBSCRIBE", "a", "b"});
  for (int i = 0; i < 2; ++i) client.reply();
  client.ask({"PSUBSCRIBE", "p*"});
  const std::string list = admin.ask({"CLIENT", "LIST", "TYPE", "pubsub"});
  EXPECT_TRUE(list.contains(" flags=P db=0 sub=2 psub=1 ssub=0 ")) << list;
}

// --- a resize, as two proxies see it: one with the subscribers, one that publishes
// ---------------------------

class TwoProxies {
 public:
  TwoProxies() {
    for (int i = 0; i < 4; ++i) redis_.push_back(std::make_unique<RedisProcess>());
    topology_.spec.cluster = "test";
    topology_.spec.members = members(3);
    for (Side& side : sides_) {
      side.holder = std::make_shared<Proxy::Holder>(compile());
      Options options;
      options.listen = "127.0.0.1:0";
      options.threads = 2;
      side.proxy = std::move(*Proxy::start(options, side.holder, nullptr));
      const std::string& address = side.proxy->address();
      side.port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
      side.proxy->set_on_applied([&side](topology::Version version) { side.applied = version.revision; });
    }
  }
  ~TwoProxies() {
    for (Side& side : sides_) side.proxy->set_on_applied({});
  }
  [[nodiscard]] Client client(int side) const { return Client(sides_[side].port); }
  topology::Topology& topology() { return topology_; }
  [[nodiscard]] std::vector<topology::Member> members(int count) const {
    std::vector<topology::Member> out;
    for (int i = 0; i < count; ++i) {
      topology::Member member;
      member.id = fmt::format("m{}", i);
      member.address = redis_[static_cast<std::size_t>(i)]->address();
      out.push_back(member);
    }
    return out;
  }
  void next() {
    ++revision_;
    next_ = compile();
  }
  // The side adopts what next() made, and has applied it.
  void adopt(int number) {
    Side& side = sides_[number];
    ASSERT_TRUE(side.holder->publish(next_));
    side.proxy->notify();
    for (int i = 0; i < 500 && side.applied < revision_; ++i) std::this_thread::sleep_for(milliseconds(10));
    ASSERT_EQ(side.applied, revision_);
  }

 private:
  struct Side {
    std::shared_ptr<Proxy::Holder> holder;
    std::unique_ptr<Proxy> proxy;
    std::uint16_t port = 0;
    std::atomic<std::uint64_t> applied{0};
  };
  [[nodiscard]] std::shared_ptr<const topology::Snapshot> compile() const {
    auto compiled = topology::Snapshot::compile(topology_, {1, revision_});
    if (!compiled) throw std::runtime_error(compiled.error().message);
    return *compiled;
  }
  std::vector<std::unique_ptr<RedisProcess>> redis_;
  topology::Topology topology_;
  std::uint64_t revision_ = 1;
  std::shared_ptr<const topology::Snapshot> next_;
  Side sides_[2];
};

class ResizeOfChannels : public testing::TestWithParam<bool> {
 protected:
  static constexpr int kChannels = 40;
  void SetUp() override {
    subscriber_.emplace(world_.client(0));
    pattern_.emplace(world_.client(0));
    std::string bytes = "SUBSCRIBE";
    for (int i = 0; i < kChannels; ++i) bytes += fmt::format(" ch{}", i);
    subscriber_->send(bytes + "\r\n");
    for (int i = 0; i < kChannels; ++i) subscriber_->reply();
    pattern_->ask({"PSUBSCRIBE", "ch*"});
    publisher_.emplace(world_.client(1));
  }
  // One message to each channel: each comes once, and nothing else does.
  void publish() {
    std::set<std::string> expected, got, got_by_pattern;
    for (int i = 0; i < kChannels; ++i) {
      const std::string channel = fmt::format("ch{}", i), text = fmt::format("text-{}", ++number_);
      expected.insert(text);
      EXPECT_EQ(publisher_->ask({"PUBLISH", channel, text}).substr(0, 1), ":");
    }
    const auto text_of = [](const std::string& raw) {
      return (*protocol::resp::decode(raw))->value.items.back().text;
    };
    for (int i = 0; i < kChannels; ++i) {
      const std::string raw = subscriber_->reply(milliseconds(2000));
      ASSERT_TRUE(raw.starts_with('*')) << raw << " at " << stage_ << ", message " << i;
      got.insert(text_of(raw));
      const std::string by_pattern = pattern_->reply(milliseconds(2000));
      ASSERT_TRUE(by_pattern.starts_with('*')) << by_pattern << " at " << stage_;
      got_by_pattern.insert(text_of(by_pattern));
    }
    EXPECT_EQ(got, expected) << stage_;
    EXPECT_EQ(got_by_pattern, expected) << stage_;
    EXPECT_EQ(subscriber_->reply(milliseconds(5)), "(timeout)") << stage_;
  }
  // The publisher's proxy is one snapshot behind the subscribers', or ahead of it.
  void step(const std::string& stage) {
    stage_ = stage;
    world_.next();
    const int first = GetParam() ? 1 : 0;
    world_.adopt(first);
    publish();
    world_.adopt(1 - first);
    publish();
  }
  void begin() {
    topology::Resize resize;
    resize.id = "r1";
    resize.members = world_.members(4);
    world_.topology().resize = resize;
    ++world_.topology().fence.epoch;
  }
  void phase(topology::Phase phase, std::uint16_t from, std::uint16_t to) {
    world_.topology().resize->phase = phase;
    world_.topology().resize->active = {{from, to}};
  }

  TwoProxies world_;
  std::optional<Client> subscriber_, pattern_, publisher_;
  std::string stage_;
  int number_ = 0;
};

TEST_P(ResizeOfChannels, AWholeOneLosesNoMessage) {
  publish();
  begin();
  step("prep");
  phase(topology::Phase::hold, 0, 512);
  step("hold of one half");
  phase(topology::Phase::dual, 0, 512);
  step("dual of one half");
  world_.topology().resize->done = {{0, 512}};
  phase(topology::Phase::hold, 512, topology::kSliceCount);
  step("hold of the other");
  phase(topology::Phase::dual, 512, topology::kSliceCount);
  step("dual of the other");
  world_.topology().spec.members = world_.topology().resize->members;
  world_.topology().resize.reset();
  step("over");
  // The publisher's member counts nobody twice any more.
  Client asks = world_.client(0);
  for (int i = 0; i < kChannels; ++i) {
    EXPECT_TRUE(asks.ask({"PUBSUB", "NUMSUB", fmt::format("ch{}", i)}).ends_with(":1\r\n")) << i;
  }
}

TEST_P(ResizeOfChannels, OneThatIsCalledOffOrRolledBackLosesNoMessage) {
  begin();
  step("prep");
  phase(topology::Phase::hold, 0, topology::kSliceCount);
  step("hold");
  world_.topology().resize->phase = topology::Phase::prep;
  world_.topology().resize->active = {};
  step("called off");
  phase(topology::Phase::hold, 0, topology::kSliceCount);
  step("hold again");
  phase(topology::Phase::dual, 0, topology::kSliceCount);
  step("dual");
  world_.topology().resize->rollback = true;
  ++world_.topology().fence.epoch;
  phase(topology::Phase::hold, 0, topology::kSliceCount);
  step("hold of the rollback");
  phase(topology::Phase::dual, 0, topology::kSliceCount);
  step("dual of the rollback");
  world_.topology().resize.reset();
  step("rolled back");
}

INSTANTIATE_TEST_SUITE_P(Order, ResizeOfChannels, testing::Bool());

}  // namespace
}  // namespace ringshift::proxy
