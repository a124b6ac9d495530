// The coordinator against both registries: whatever holds with one must hold with the other.
#include "coord/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  bool in_order = true;
  coord::Revision last_ = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> state_;
  std::vector<std::string> log_;
};

class CoordinatorTest : public testing::TestWithParam<Kind> {
 protected:
  CoordinatorTest() : server(GetParam()), coordinator(coord::connect({{server.url()}}).value()) {}

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
  EXPECT_EQ(coordinator->put("/a/x", binary).value(), first + 1);
  EXPECT_EQ(coordinator->put("/b/x", "other").value(), first + 2);
  const auto kv = coordinator->get("/a/x").value();
  ASSERT_TRUE(kv.has_value());
  EXPECT_EQ(kv->value, binary);
  EXPECT_EQ(kv->create_revision, first);
  EXPECT_EQ(kv->mod_revision, first + 1);
  EXPECT_EQ(kv->version, 2);
  const coord::Range range = coordinator->list("/a/").value();
  ASSERT_EQ(range.kvs.size(), 1U);
  EXPECT_EQ(range.revision, first + 2);
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
  EXPECT_EQ(recorder.log(), expected);
  EXPECT_EQ(recorder.resyncs, 1);
}

TEST_P(CoordinatorTest, ACutWatchResumesWithoutLossOrResync) {
  Relay relay(server.port());
  auto remote = coord::connect({{relay.url()}}).value();
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
  EXPECT_EQ(recorder.log(), expected);
  EXPECT_EQ(recorder.resyncs, 1);
  EXPECT_TRUE(recorder.in_order);
}

TEST_P(CoordinatorTest, CompactionDuringACutMeansResync) {
  Relay relay(server.port());
  auto remote = coord::connect({{relay.url()}}).value();
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
  auto nowhere =
      coord::connect({{"http://127.0.0.1:" + std::to_string(free_port())}}).value()->watch("/w/", refused);
  EXPECT_TRUE(refused.wait([](Recorder& r) { return r.disconnects > 0; }));
  std::this_thread::sleep_for(100ms);
  EXPECT_LT(timed(std::move(live)), 200ms);
  EXPECT_LT(timed(std::move(blocked)), 200ms);
  EXPECT_LT(timed(std::move(nowhere)), 200ms);
  server.signal(SIGCONT);
}

TEST_P(CoordinatorTest, TheNextEndpointIsAskedWhenOneIsDown) {
  const std::string dead = "http://127.0.0.1:" + std::to_string(free_port());
  auto two = coord::connect({{dead, server.url()}}).value();
  EXPECT_TRUE(two->put("/a", "1").has_value());
  EXPECT_EQ(two->get("/a").value()->value, "1");
  Recorder recorder;
  const auto watch = two->watch("/a", recorder);
  EXPECT_TRUE(recorder.wait_for({{"/a", "1"}}));
}

TEST_P(CoordinatorTest, FiveHundredWatchers) {
  constexpr std::size_t kWatchers = 500;
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
  EXPECT_LT(taken, 2s);
}

TEST(Connect, RefusesWhatIsNoUrl) {
  for (const std::vector<std::string>& endpoints :
       {std::vector<std::string>{}, {"127.0.0.1:7379"}, {"https://127.0.0.1"}, {"http://"}}) {
    const auto refused = coord::connect({endpoints});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("http://127.0.0.1:7379"));
  }
}

INSTANTIATE_TEST_SUITE_P(Registries, CoordinatorTest, testing::Values(Kind::ours, Kind::etcd),
                         [](const auto& which) { return which.param == Kind::ours ? "Ringshift" : "Etcd"; });

}  // namespace
}  // namespace ringshift::test
