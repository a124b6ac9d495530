// The coordinator against all registries: whatever holds with one must hold with the others.
#include "coord/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>

#include "http/client.h"
#include "tests/contract/registry_process.h"

namespace ringshift::test {
namespace {

using namespace std::chrono_literals;
using coord::Compare;
using coord::Op;

// Keeps the state that the events and resyncs add up to, as every user of a watch does.
class Recorder final : public coord::Watcher {
 public:
  void on_events(const std::vector<coord::Event>& events) override {
    const std::lock_guard lock(mutex_);
    for (const coord::Event& event : events) {
      in_order = in_order && event.kv.mod_revision >= last_;
      last_ = event.kv.mod_revision;
      coord::Revision& before = last_of_[event.kv.key];
      each_in_order = each_in_order && event.kv.mod_revision > before;
      before = event.kv.mod_revision;
      if (event.kind == coord::Event::Kind::put) {
        state_[event.kv.key] = event.kv.value;
      } else {
        state_.erase(event.kv.key);
      }
      log_.push_back((event.kind == coord::Event::Kind::put ? "put " : "remove ") + event.kv.key +
                     event.kv.value);
    }
    changed_.notify_all();
  }
  void on_resync(const coord::Range& range) override {
    const std::lock_guard lock(mutex_);
    state_.clear();
    for (const coord::KeyValue& kv : range.kvs) state_[kv.key] = kv.value;
    last_ = range.revision;
    last_of_.clear();
    for (const coord::KeyValue& kv : range.kvs) last_of_[kv.key] = kv.mod_revision;
    ++resyncs;
    changed_.notify_all();
  }
  void on_disconnected(const Error&) override {
    const std::lock_guard lock(mutex_);
    ++disconnects;
    changed_.notify_all();
  }

  template <class Condition>
  bool wait(Condition condition, std::chrono::milliseconds limit = 10s) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return condition(*this); });
  }
  bool wait_for_resync(int count = 1) {
    return wait([&](Recorder& r) { return r.resyncs >= count; });
  }
  bool wait_for(const std::map<std::string, std::string>& state) {
    return wait([&](Recorder& r) { return r.state_ == state; });
  }
  std::vector<std::string> log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  int resyncs = 0, disconnects = 0;  // Guarded by the mutex; read inside wait(), or after the watch.
  bool in_order = true, each_in_order = true;
  coord::Revision last_ = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> state_;
  std::map<std::string, coord::Revision> last_of_;
  std::vector<std::string> log_;
};

class CoordinatorTest : public testing::TestWithParam<Kind> {
 protected:
  CoordinatorTest() : server(GetParam()), coordinator(coord::connect({{server.url()}}).value()) {}

  // ZooKeeper's revisions count its own doings, too, and its watches tell the newest state, not each.
  [[nodiscard]] static bool counts_every_write() { return GetParam() != Kind::zookeeper; }

  // Whether the log is `expected` or, where states may be merged, some of it in the same order with the last.
  static void expect_log(const std::vector<std::string>& log, const std::vector<std::string>& expected) {
    if (counts_every_write()) {
      EXPECT_EQ(log, expected);
      return;
    }
    auto at = expected.begin();
    for (const std::string& one : log) {
      at = std::find(at, expected.end(), one);
      ASSERT_NE(at, expected.end()) << one << " is out of order";
      ++at;
    }
    EXPECT_FALSE(log.empty());
  }

  void compact() {
    const coord::Revision now = coordinator->list("/").value().revision;
    http::Client client;
    http::Call call;
    call.url = server.url() + "/v3/kv/compaction";
    call.body = "{\"revision\":\"" + std::to_string(now) + "\"}";
    ASSERT_EQ(client.send(call).value().status, 200);
  }

  RegistryProcess server;
  std::unique_ptr<coord::Coordinator> coordinator;
};

TEST_P(CoordinatorTest, PutGetListRemove) {
  EXPECT_FALSE(coordinator->get("/a/x").value().has_value());
  const std::string binary("\0\xff\n\"", 4);
  const coord::Revision first = coordinator->put("/a/x", binary).value();
  const coord::Revision second = coordinator->put("/a/x", binary).value();
  const coord::Revision third = coordinator->put("/b/x", "other").value();
  EXPECT_GT(second, first);
  EXPECT_GT(third, second);
  if (counts_every_write()) {
    EXPECT_EQ(second, first + 1);
    EXPECT_EQ(third, first + 2);
  }
  const auto kv = coordinator->get("/a/x").value();
  ASSERT_TRUE(kv.has_value());
  EXPECT_EQ(kv->value, binary);
  EXPECT_EQ(kv->create_revision, first);
  EXPECT_EQ(kv->mod_revision, second);
  EXPECT_EQ(kv->version, 2);
  const coord::Range range = coordinator->list("/a/").value();
  ASSERT_EQ(range.kvs.size(), 1U);
  EXPECT_GE(range.revision, third);
  if (counts_every_write()) {
    EXPECT_EQ(range.revision, third);
  }
  EXPECT_NE(range.cluster_id, 0U);
  EXPECT_EQ(coordinator->list("").value().kvs.size(), 2U);
  EXPECT_TRUE(coordinator->remove("/a/x").value());
  EXPECT_FALSE(coordinator->remove("/a/x").value());
}

TEST_P(CoordinatorTest, CreateIfAbsentAndCompareAndSet) {
  const Compare absent{"/k", Compare::Target::create_revision, 0};
  const std::vector<Op> put = {{Op::Kind::put, "/k", "1"}};
  const auto created = coordinator->transact({absent}, put).value();
  ASSERT_TRUE(created.has_value());
  EXPECT_FALSE(coordinator->transact({absent}, put).value().has_value());
  const Compare unchanged{"/k", Compare::Target::mod_revision, *created};
  EXPECT_TRUE(coordinator->transact({unchanged}, {{Op::Kind::put, "/k", "2"}}).value().has_value());
  EXPECT_FALSE(coordinator->transact({unchanged}, {{Op::Kind::put, "/k", "3"}}).value().has_value());
  EXPECT_EQ(coordinator->get("/k").value()->value, "2");
  EXPECT_FALSE(coordinator->transact({{"/none", Compare::Target::mod_revision, 1}}, put).value().has_value());
  ASSERT_TRUE(coordinator->transact({}, {{Op::Kind::remove, "/k", ""}, {Op::Kind::put, "/l", "x"}})
                  .value()
                  .has_value());
  EXPECT_FALSE(coordinator->get("/k").value().has_value());
  EXPECT_TRUE(coordinator->transact({{"/l", Compare::Target::lease, 0}}, {}).value().has_value());
}

TEST_P(CoordinatorTest, ALeaseTakesItsKeysWithIt) {
  Recorder recorder;
  const auto watch = coordinator->watch("/leased/", recorder);
  ASSERT_TRUE(recorder.wait_for_resync());
  const coord::LeaseId lease = coordinator->grant(2s).value();
  ASSERT_TRUE(coordinator->put("/leased/a", "1", lease).has_value());
  for (int i = 0; i < 5; ++i) {  // Kept alive past its time.
    std::this_thread::sleep_for(600ms);
    EXPECT_EQ(coordinator->keep_alive(lease).value(), 2s);
  }
  EXPECT_TRUE(coordinator->get("/leased/a").value().has_value());
  EXPECT_TRUE(recorder.wait_for({}));  // Then left alone.
  EXPECT_THAT(recorder.log(), testing::ElementsAre("put /leased/a1", "remove /leased/a"));
  EXPECT_EQ(coordinator->keep_alive(lease).error().kind, ErrorKind::not_found);
  EXPECT_EQ(coordinator->put("/leased/b", "1", lease).error().kind, ErrorKind::not_found);
  const coord::LeaseId other = coordinator->grant(60s).value();
  ASSERT_TRUE(coordinator->put("/leased/c", "1", other).has_value());
  ASSERT_TRUE(coordinator->revoke(other).has_value());
  EXPECT_FALSE(coordinator->get("/leased/c").value().has_value());
  EXPECT_EQ(coordinator->revoke(other).error().kind, ErrorKind::not_found);
}

TEST_P(CoordinatorTest, AWatchSeesEveryChangeInOrder) {
  ASSERT_TRUE(coordinator->put("/w/before", "0").has_value());
  Recorder recorder;
  const auto watch = coordinator->watch("/w/", recorder);
  ASSERT_TRUE(recorder.wait_for({{"/w/before", "0"}}));
  std::vector<std::string> expected;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(coordinator->put("/w/k", std::to_string(i)).has_value());
    ASSERT_TRUE(coordinator->put("/elsewhere", "x").has_value());
    expected.push_back("put /w/k" + std::to_string(i));
  }
  ASSERT_TRUE(coordinator->remove("/w/before").value());
  expected.push_back("remove /w/before");
  EXPECT_TRUE(recorder.wait_for({{"/w/k", "49"}}));
  expect_log(recorder.log(), expected);
  EXPECT_TRUE(recorder.each_in_order);
  EXPECT_EQ(recorder.resyncs, 1);
}

TEST_P(CoordinatorTest, ACutWatchResumesWithoutLossOrResync) {
  Relay relay(server.port());
  auto remote = coord::connect({{server.url_at(relay.port())}}).value();
  Recorder recorder;
  const auto watch = remote->watch("/w/", recorder);
  ASSERT_TRUE(recorder.wait_for_resync());
  std::vector<std::string> expected;
  for (int round = 0; round < 4; ++round) {
    relay.cut();
    for (int i = 0; i < 3; ++i) {
      const std::string value = std::to_string(round) + std::to_string(i);
      ASSERT_TRUE(coordinator->put("/w/k", value).has_value());
      expected.push_back("put /w/k" + value);
    }
    relay.restore();
    ASSERT_TRUE(recorder.wait_for({{"/w/k", std::to_string(round) + "2"}}));
  }
  expect_log(recorder.log(), expected);
  EXPECT_TRUE(recorder.each_in_order);
  EXPECT_EQ(recorder.resyncs, 1);
  EXPECT_TRUE(recorder.in_order || !counts_every_write());
}

TEST_P(CoordinatorTest, PrefixesEndWhereTheySay) {
  for (const char* key : {"/p/a", "/p/ab", "/p/abc/d", "/p/b", "/pa", "/p-", "/p0"}) {
    ASSERT_TRUE(coordinator->put(key, key).has_value());
  }
  const auto keys_of = [&](std::string_view prefix) {
    std::vector<std::string> keys;
    const coord::Range range = coordinator->list(prefix).value();
    for (const coord::KeyValue& kv : range.kvs) keys.push_back(kv.key);
    return keys;
  };
  using testing::ElementsAre;
  EXPECT_THAT(keys_of("/p/"), ElementsAre("/p/a", "/p/ab", "/p/abc/d", "/p/b"));
  EXPECT_THAT(keys_of("/p/a"), ElementsAre("/p/a", "/p/ab", "/p/abc/d"));
  EXPECT_THAT(keys_of("/p/ab"), ElementsAre("/p/ab", "/p/abc/d"));
  EXPECT_THAT(keys_of("/p/abc/"), ElementsAre("/p/abc/d"));
  EXPECT_THAT(keys_of("/p"), ElementsAre("/p-", "/p/a", "/p/ab", "/p/abc/d", "/p/b", "/p0", "/pa"));
  EXPECT_THAT(keys_of("/none/"), testing::IsEmpty());
  Recorder recorder;
  const auto watch = coordinator->watch("/p/ab", recorder);
  ASSERT_TRUE(recorder.wait_for({{"/p/ab", "/p/ab"}, {"/p/abc/d", "/p/abc/d"}}));
  ASSERT_TRUE(coordinator->put("/p/a", "no").has_value());
  ASSERT_TRUE(coordinator->put("/p/abz", "new").has_value());
  ASSERT_TRUE(coordinator->remove("/p/ab").value());
  EXPECT_TRUE(recorder.wait_for({{"/p/abc/d", "/p/abc/d"}, {"/p/abz", "new"}}));
  ASSERT_TRUE(coordinator->put("/p/abz", "newer").has_value());
  EXPECT_TRUE(recorder.wait_for({{"/p/abc/d", "/p/abc/d"}, {"/p/abz", "newer"}}));
}

TEST_P(CoordinatorTest, AwkwardNames) {
  const std::vector<std::string> keys = {"/n/a b",
                                         "/n/ä/ö",
                                         "/n/100%",
                                         "/n/%41",
                                         "/n/A",
                                         "/n/.",
                                         "/n/..",
                                         "/n//double",
                                         "/n/ends/",
                                         std::string("/n/\0zero", 8),
                                         "/n/\x01\x7f\xff",
                                         "/zookeeper/x",
                                         "/n/zookeeper"};
  Recorder recorder;
  const auto watch = coordinator->watch("/n/", recorder);
  ASSERT_TRUE(recorder.wait_for_resync());
  std::map<std::string, std::string> below;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string value = "v" + std::to_string(i);
    ASSERT_TRUE(coordinator->put(keys[i], value).has_value()) << i;
    if (keys[i].starts_with("/n/")) below[keys[i]] = value;
  }
  EXPECT_TRUE(recorder.wait_for(below));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto kv = coordinator->get(keys[i]).value();
    ASSERT_TRUE(kv.has_value()) << i;
    EXPECT_EQ(kv->key, keys[i]);
    EXPECT_EQ(kv->value, "v" + std::to_string(i));
  }
  const coord::Range range = coordinator->list("/n/").value();
  EXPECT_EQ(range.kvs.size(), below.size());
  EXPECT_TRUE(std::ranges::is_sorted(range.kvs, {}, &coord::KeyValue::key));
  for (const std::string& key : keys) EXPECT_TRUE(coordinator->remove(key).value());
  EXPECT_TRUE(recorder.wait_for({}));
}

TEST_P(CoordinatorTest, EmptyAndLargeValues) {
  ASSERT_TRUE(coordinator->put("/v/empty", "").has_value());
  ASSERT_TRUE(coordinator->get("/v/empty").value().has_value());
  EXPECT_EQ(coordinator->list("/v/").value().kvs.size(), 1U);
  const std::string large(1000UL * 1000UL, 'x');
  ASSERT_TRUE(coordinator->put("/v/large", large).has_value());
  EXPECT_EQ(coordinator->get("/v/large").value()->value, large);
  const auto refused = coordinator->put("/v/too-large", std::string(5U << 20, 'x'));
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().kind, ErrorKind::retryable) << refused.error().message;
  EXPECT_FALSE(coordinator->get("/v/too-large").value().has_value());
  EXPECT_EQ(coordinator->get("/v/large").value()->value.size(), large.size());
}

TEST_P(CoordinatorTest, AThousandKeys) {
  Recorder recorder;
  const auto watch = coordinator->watch("/many/", recorder);
  ASSERT_TRUE(recorder.wait_for_resync());
  std::map<std::string, std::string> all;
  for (int batch = 0; batch < 20; ++batch) {
    std::vector<Op> ops;
    for (int i = 0; i < 50; ++i) {
      const std::string key = "/many/d" + std::to_string(batch) + "/k" + std::to_string(i);
      ops.push_back({Op::Kind::put, key, std::to_string(i)});
      all[key] = std::to_string(i);
    }
    ASSERT_TRUE(coordinator->transact({}, ops).value().has_value());
  }
  EXPECT_EQ(coordinator->list("/many/").value().kvs.size(), 1000U);
  EXPECT_TRUE(recorder.wait_for(all));
  EXPECT_EQ(recorder.resyncs, 1);
}

TEST_P(CoordinatorTest, AllOfATransactionOrNothing) {
  const coord::Revision a = coordinator->put("/t/a", "1").value();
  ASSERT_TRUE(coordinator->put("/t/b", "1").has_value());
  const std::vector<Op> ops = {{Op::Kind::put, "/t/a", "2"},
                               {Op::Kind::put, "/t/new/c", "2"},
                               {Op::Kind::remove, "/t/b", ""},
                               {Op::Kind::remove, "/t/none", ""}};
  const Compare same{"/t/a", Compare::Target::mod_revision, a};
  const Compare absent{"/t/b", Compare::Target::create_revision, 0};
  EXPECT_FALSE(coordinator->transact({same, absent}, ops).value().has_value());
  EXPECT_EQ(coordinator->get("/t/a").value()->value, "1");
  EXPECT_FALSE(coordinator->get("/t/new/c").value().has_value());
  const auto done = coordinator->transact({same}, ops).value();
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(coordinator->get("/t/a").value()->mod_revision, *done);
  EXPECT_EQ(coordinator->get("/t/new/c").value()->create_revision, *done);
  EXPECT_FALSE(coordinator->get("/t/b").value().has_value());
  EXPECT_FALSE(
      coordinator->transact({}, {{Op::Kind::put, "/t/a", "x"}, {Op::Kind::put, "/t/a", "y"}}).has_value());
}

TEST_P(CoordinatorTest, ThreadsThatCompareAndSetLoseNothing) {
  ASSERT_TRUE(coordinator->put("/count", "0").has_value());
  constexpr int kThreads = 4, kEach = 15;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int done = 0; done < kEach;) {
        const auto kv = coordinator->get("/count").value();
        const auto written =
            coordinator->transact({{"/count", Compare::Target::mod_revision, kv->mod_revision}},
                                  {{Op::Kind::put, "/count", std::to_string(std::stoi(kv->value) + 1)}});
        if (written && *written) ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(coordinator->get("/count").value()->value, std::to_string(kThreads * kEach));
}

// A key that is removed and made again is another one, however fast, whatever it holds.
TEST_P(CoordinatorTest, AKeyMadeAgainIsNotTheOldOne) {
  std::vector<std::pair<coord::Revision, coord::Revision>> lives;  // Made, removed.
  std::atomic<bool> over = false;
  std::thread maker([&] {
    for (int i = 0; i < 150; ++i) {
      const auto made = coordinator->transact({}, {{Op::Kind::put, "/l/k", "same"}});
      const auto removed = coordinator->transact({}, {{Op::Kind::remove, "/l/k", ""}});
      EXPECT_TRUE(made && *made && removed && *removed);
      if (made && *made && removed && *removed) lives.emplace_back(**made, **removed);
    }
    over = true;
  });
  std::map<coord::Revision, coord::Revision> written;  // In the life that began then -> the last write's.
  while (!over) {
    const auto kv = coordinator->get("/l/k");
    if (!kv || !*kv) continue;
    const Compare same{"/l/k", Compare::Target::create_revision, (*kv)->create_revision};
    const auto done = coordinator->transact({same}, {{Op::Kind::put, "/l/seen", "x"}});
    if (done && *done) written[(*kv)->create_revision] = **done;
  }
  maker.join();
  for (const auto& [made, at] : written) {
    const auto life = std::ranges::find(lives, made, &std::pair<coord::Revision, coord::Revision>::first);
    ASSERT_NE(life, lives.end());
    EXPECT_LT(at, life->second);
  }
  std::printf("%zu of %zu lives were written in\n", written.size(), lives.size());
}

TEST_P(CoordinatorTest, AKeyGoesFromOneLeaseToAnother) {
  const coord::LeaseId first = coordinator->grant(60s).value(), second = coordinator->grant(60s).value();
  ASSERT_TRUE(coordinator->put("/leased/k", "1", first).has_value());
  EXPECT_EQ(coordinator->get("/leased/k").value()->lease, first);
  ASSERT_TRUE(coordinator->put("/leased/k", "2", second).has_value());
  EXPECT_EQ(coordinator->get("/leased/k").value()->lease, second);
  ASSERT_TRUE(coordinator->revoke(first).has_value());
  EXPECT_EQ(coordinator->get("/leased/k").value()->value, "2");
  ASSERT_TRUE(coordinator->put("/leased/k", "3").has_value());
  ASSERT_TRUE(coordinator->revoke(second).has_value());
  EXPECT_EQ(coordinator->get("/leased/k").value()->value, "3");
  EXPECT_EQ(coordinator->get("/leased/k").value()->lease, 0);
}

TEST_P(CoordinatorTest, ALeaseOutlivesItsConnection) {
  Relay relay(server.port());
  auto remote = coord::connect({{server.url_at(relay.port())}}).value();
  const coord::LeaseId lease = remote->grant(30s).value();
  ASSERT_TRUE(remote->put("/leased/k", "1", lease).has_value());
  for (int i = 0; i < 3; ++i) {
    relay.cut();
    EXPECT_EQ(remote->keep_alive(lease).error().kind, ErrorKind::retryable);
    relay.restore();
    EXPECT_TRUE(remote->keep_alive(lease).has_value());
    ASSERT_TRUE(remote->put("/leased/k", std::to_string(i), lease).has_value());
  }
  EXPECT_EQ(coordinator->get("/leased/k").value()->version, 4);
}

TEST_P(CoordinatorTest, CompactionDuringACutMeansResync) {
  if (!counts_every_write()) GTEST_SKIP() << "ZooKeeper has no history that could be compacted";
  Relay relay(server.port());
  auto remote = coord::connect({{server.url_at(relay.port())}}).value();
  Recorder recorder;
  const auto watch = remote->watch("/w/", recorder);
  ASSERT_TRUE(recorder.wait_for_resync());
  ASSERT_TRUE(coordinator->put("/w/gone", "1").has_value());
  ASSERT_TRUE(recorder.wait_for({{"/w/gone", "1"}}));
  relay.cut();
  ASSERT_TRUE(coordinator->remove("/w/gone").value());
  ASSERT_TRUE(coordinator->put("/w/kept", "2").has_value());
  ASSERT_TRUE(coordinator->put("/w/kept", "3").has_value());
  compact();
  relay.restore();
  EXPECT_TRUE(recorder.wait_for_resync(2));
  EXPECT_TRUE(recorder.wait_for({{"/w/kept", "3"}}));
  ASSERT_TRUE(coordinator->put("/w/after", "4").has_value());
  EXPECT_TRUE(recorder.wait_for({{"/w/after", "4"}, {"/w/kept", "3"}}));
}

TEST_P(CoordinatorTest, CompactionUnderALiveWatchChangesNothing) {
  if (!counts_every_write()) GTEST_SKIP() << "ZooKeeper has no history that could be compacted";
  Recorder recorder;
  const auto watch = coordinator->watch("/w/", recorder);
  ASSERT_TRUE(recorder.wait_for_resync());
  ASSERT_TRUE(coordinator->put("/w/a", "1").has_value());
  ASSERT_TRUE(recorder.wait_for({{"/w/a", "1"}}));
  compact();
  ASSERT_TRUE(coordinator->put("/w/b", "2").has_value());
  EXPECT_TRUE(recorder.wait_for({{"/w/a", "1"}, {"/w/b", "2"}}));
  EXPECT_EQ(recorder.resyncs, 1);
}

TEST_P(CoordinatorTest, KillingTheServerUnderAWatchLosesNothing) {
  Recorder recorder;
  const auto watch = coordinator->watch("/w/", recorder);
  ASSERT_TRUE(recorder.wait_for_resync());
  ASSERT_TRUE(coordinator->put("/w/a", "1").has_value());
  ASSERT_TRUE(recorder.wait_for({{"/w/a", "1"}}));
  const coord::LeaseId lease = coordinator->grant(60s).value();
  server.kill9();
  EXPECT_TRUE(recorder.wait([](Recorder& r) { return r.disconnects > 0; }));
  EXPECT_EQ(coordinator->get("/w/a").error().kind, ErrorKind::retryable);
  server.start();
  EXPECT_EQ(coordinator->get("/w/a").value()->value, "1");
  EXPECT_TRUE(coordinator->keep_alive(lease).has_value());
  ASSERT_TRUE(coordinator->put("/w/b", "2").has_value());
  EXPECT_TRUE(recorder.wait_for({{"/w/a", "1"}, {"/w/b", "2"}}));
}

TEST_P(CoordinatorTest, ARebuiltRegistryMeansResync) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(coordinator->put("/w/a", std::to_string(i)).has_value());
  Recorder recorder;
  const auto watch = coordinator->watch("/w/", recorder);
  ASSERT_TRUE(recorder.wait_for({{"/w/a", "4"}}));
  server.kill9();
  server.wipe();
  server.start();
  EXPECT_TRUE(recorder.wait_for_resync(2));
  EXPECT_TRUE(recorder.wait_for({}));
  ASSERT_TRUE(coordinator->put("/w/new", "1").has_value());
  EXPECT_TRUE(recorder.wait_for({{"/w/new", "1"}}));
}

TEST_P(CoordinatorTest, AWatchEndsAtOnceEvenWhenTheServerHangs) {
  const auto timed = [](std::unique_ptr<coord::Watch> watch) {
    const auto begin = std::chrono::steady_clock::now();
    watch.reset();
    return std::chrono::steady_clock::now() - begin;
  };
  Recorder idle, hanging, refused;
  auto live = coordinator->watch("/w/", idle);
  ASSERT_TRUE(idle.wait_for_resync());
  server.signal(SIGSTOP);
  auto blocked = coordinator->watch("/w/", hanging);  // Its first range gets no answer.
  auto nowhere = coord::connect({{server.url_at(free_port())}}).value()->watch("/w/", refused);
  EXPECT_TRUE(refused.wait([](Recorder& r) { return r.disconnects > 0; }));
  std::this_thread::sleep_for(100ms);
  EXPECT_LT(timed(std::move(live)), 200ms);
  EXPECT_LT(timed(std::move(blocked)), 200ms);
  EXPECT_LT(timed(std::move(nowhere)), 200ms);
  server.signal(SIGCONT);
}

TEST_P(CoordinatorTest, TheNextEndpointIsAskedWhenOneIsDown) {
  std::string dead = server.url_at(free_port());
  if (GetParam() == Kind::zookeeper) dead.erase(dead.rfind('/'));  // The path is said once, at the end.
  auto two = coord::connect({{dead, server.url()}}).value();
  EXPECT_TRUE(two->put("/a", "1").has_value());
  EXPECT_EQ(two->get("/a").value()->value, "1");
  Recorder recorder;
  const auto watch = two->watch("/a", recorder);
  EXPECT_TRUE(recorder.wait_for({{"/a", "1"}}));
}

TEST_P(CoordinatorTest, FiveHundredWatchers) {
  // A watch of ZooKeeper is a connection and a session.
  const std::size_t kWatchers = GetParam() == Kind::zookeeper ? 100 : 500;
  std::vector<Recorder> recorders(kWatchers);
  std::vector<std::unique_ptr<coord::Watch>> watches;
  for (Recorder& recorder : recorders) watches.push_back(coordinator->watch("/w/", recorder));
  for (Recorder& recorder : recorders) ASSERT_TRUE(recorder.wait_for_resync());
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(coordinator->put("/w/k", "news").has_value());
  for (Recorder& recorder : recorders) ASSERT_TRUE(recorder.wait_for({{"/w/k", "news"}}));
  const auto taken = std::chrono::steady_clock::now() - begin;
  RecordProperty("ms_to_all", static_cast<int>(taken / 1ms));
  std::printf("%zu watchers learned of a write within %lld ms\n", kWatchers,
              static_cast<long long>(taken / 1ms));
}

// One that is stopped keeps its connections, and says nothing more.
TEST_P(CoordinatorTest, AWatchLeavesAServerThatHangs) {
  if (GetParam() == Kind::zookeeper) GTEST_SKIP() << "a session has pings of its own";
  RegistryProcess other(GetParam());
  coord::Options options{{server.url(), other.url()}, 500ms};
  options.watch_silence = 500ms;
  auto both = coord::connect(options).value();
  auto there = coord::connect({{other.url()}, 20s}).value();
  ASSERT_TRUE(there->put("/w/k", "there").has_value());
  ASSERT_TRUE(coordinator->put("/w/k", "here").has_value());
  Recorder recorder;
  const auto watch = both->watch("/w/", recorder);
  ASSERT_TRUE(recorder.wait_for({{"/w/k", "here"}}));
  std::this_thread::sleep_for(1500ms);
  EXPECT_EQ(recorder.disconnects, 0) << "silent and well";
  server.signal(SIGSTOP);
  EXPECT_TRUE(recorder.wait_for({{"/w/k", "there"}}));
  server.signal(SIGCONT);
}

TEST(Connect, RefusesWhatIsNoUrl) {
  for (const std::vector<std::string>& endpoints :
       {std::vector<std::string>{}, {"127.0.0.1:7379"}, {"ftp://127.0.0.1"}, {"http://"}, {"https://"}}) {
    const auto refused = coord::connect({endpoints});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("http://127.0.0.1:7379"));
  }
}

INSTANTIATE_TEST_SUITE_P(Registries, CoordinatorTest,
                         testing::Values(Kind::ours, Kind::etcd, Kind::zookeeper), [](const auto& which) {
                           return which.param == Kind::ours   ? "Ringshift"
                                  : which.param == Kind::etcd ? "Etcd"
                                                              : "ZooKeeper";
                         });

}  // namespace
}  // namespace ringshift::test
