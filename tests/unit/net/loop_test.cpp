// The event loop: order of tasks, timers, the hook after a wakeup.
#include "net/loop.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ringshift::net {
namespace {

using std::chrono::milliseconds;

TEST(Loop, RunsTasksInOrderOfPostingAlsoThoseFromBeforeRun) {
  Loop loop;
  std::vector<int> seen;
  for (int i = 0; i < 100; ++i) loop.post([&seen, i] { seen.push_back(i); });
  loop.stop();
  loop.run();
  ASSERT_EQ(seen.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(Loop, TakesTasksFromOtherThreads) {
  Loop loop;
  int count = 0;  // Loop thread only.
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        loop.post([&] {
          if (++count == 4000) loop.stop();
        });
      }
    });
  }
  loop.run();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4000);
}

TEST(Loop, CallsTheHookAfterEachWakeupAndOnceOnly) {
  Loop loop;
  std::vector<std::string> seen;
  loop.set_after_wakeup([&] { seen.emplace_back("hook"); });
  loop.post([&] {
    seen.emplace_back("a");
    loop.post([&] {
      seen.emplace_back("c");
      loop.stop();
    });
  });
  loop.post([&] { seen.emplace_back("b"); });
  loop.run();
  // stop() travels as a task, so a last wakeup follows "c".
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "hook", "c", "hook", "hook"}));
}

TEST(Loop, TimersFireOnceMoveAndCancel) {
  Loop loop;
  int fired = 0, moved = 0, cancelled = 0;
  const auto start = std::chrono::steady_clock::now();
  auto once = loop.timer([&] { ++fired; });
  auto later = loop.timer([&] { ++moved; });
  auto never = loop.timer([&] { ++cancelled; });
  auto end = loop.timer([&] { loop.stop(); });
  once->arm(milliseconds(5));
  later->arm(milliseconds(1));
  later->arm(milliseconds(500));
  never->arm(milliseconds(5));
  never->cancel();
  end->arm(milliseconds(60));
  loop.run();
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(moved, 0);
  EXPECT_EQ(cancelled, 0);
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(50));
}

TEST(Loop, ATimerMayDestroyItself) {
  Loop loop;
  std::unique_ptr<Timer> timer;
  std::string big(100, 'x');
  timer = loop.timer([&timer, &loop, big] {
    timer.reset();
    EXPECT_EQ(big.size(), 100U);  // The callback's own state is still there.
    loop.stop();
  });
  timer->arm(milliseconds(0));
  loop.run();
  EXPECT_EQ(timer, nullptr);
}

TEST(Loop, NowStandsStillWithinAWakeup) {
  Loop loop;
  loop.post([&] {
    const auto first = loop.now();
    std::this_thread::sleep_for(milliseconds(3));
    EXPECT_EQ(loop.now(), first);
    loop.post([&, first] {
      EXPECT_GE(loop.now() - first, milliseconds(3));
      loop.stop();
    });
  });
  loop.run();
}

}  // namespace
}  // namespace ringshift::net
