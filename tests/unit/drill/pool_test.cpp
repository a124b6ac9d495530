#include "drill/pool.h"

#include <gtest/gtest.h>

#include <thread>

#include "drill/run_directory.h"

namespace ringshift::drill {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

class Pool : public testing::Test {
 protected:
  void SetUp() override {
    auto directory = RunDirectory::create_temporary();
    ASSERT_TRUE(directory);
    directory_.emplace(std::move(*directory));
    auto origin =
        Origin::create(directory_->path() + "/origin.db", 100, [](std::uint64_t id) { return 10 + id; });
    ASSERT_TRUE(origin) << origin.error().message;
    origin_ = std::move(*origin);
  }
  std::unique_ptr<OriginPool> pool(PoolOptions options) {
    auto made = OriginPool::create(*origin_, options);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  std::optional<RunDirectory> directory_;
  std::unique_ptr<Origin> origin_;
};

TEST_F(Pool, AQueryTakesItsTimeAndBodiesHaveTheirSizes) {
  const auto p = pool({.connections = 1, .query = 30ms, .timeout = 5s});
  auto lease = p->take();
  ASSERT_TRUE(lease);
  const auto begin = steady_clock::now();
  const auto object = lease->get(7);
  ASSERT_TRUE(object);
  EXPECT_EQ(object->body.size(), 17U);
  EXPECT_GE(steady_clock::now() - begin, 30ms);
  EXPECT_EQ(lease->update(7), 2U);
  EXPECT_DOUBLE_EQ(p->options().capacity(), 1000.0 / 30);
}

TEST_F(Pool, WhoWaitsTooLongIsTurnedAwayAndTheRestGoOn) {
  const auto p = pool({.connections = 1, .query = 0ms, .timeout = 50ms});
  {
    const auto held = p->take();
    ASSERT_TRUE(held);
    const auto begin = steady_clock::now();
    const auto none = p->take();
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind, ErrorKind::overloaded);
    EXPECT_GE(steady_clock::now() - begin, 50ms);
  }
  EXPECT_TRUE(p->take());
}

TEST_F(Pool, FirstComeFirstServed) {
  const auto p = pool({.connections = 1, .query = 0ms, .timeout = 30s});
  std::optional<OriginPool::Lease> held;
  held.emplace(std::move(*p->take()));
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto lease = p->take();
      const std::lock_guard lock(mutex);
      order.push_back(lease ? i : -1);
    });
    std::this_thread::sleep_for(100ms);  // So that they come in this order.
  }
  held.reset();
  threads.clear();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST_F(Pool, ManyThreadsShareFewConnections) {
  const auto p = pool({.connections = 2, .query = 1ms, .timeout = 30s});
  std::atomic<int> inside{0}, most{0}, done{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 5; ++k) {
        auto lease = p->take();
        if (!lease) return;
        const int now = ++inside;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        if (lease->get(1)) ++done;
        --inside;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(done, 80);
  EXPECT_LE(most, 2);
}

TEST_F(Pool, ASizeOutOfRangeIsNamed) {
  const auto none = OriginPool::create(*origin_, {.connections = 0, .query = 0ms, .timeout = 1s});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("0 connections"), std::string::npos);
}

}  // namespace
}  // namespace ringshift::drill
