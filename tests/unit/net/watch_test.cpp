// Readiness and calls in a moment: what is left out once somebody is gone, and what costs no wakeup.
#include "net/watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

namespace ringshift::net {
namespace {

using std::chrono::milliseconds;

struct Pair {
  int ours = -1, theirs = -1;
  Pair() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    ours = fds[0];
    theirs = fds[1];
  }
  ~Pair() {
    ::close(ours);
    hang_up();
  }
  void say(const std::string& text) const {
    EXPECT_EQ(::write(theirs, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::size_t listen() const {
    char bytes[64];
    const ssize_t size = ::read(ours, bytes, sizeof(bytes));
    return size < 0 ? 0 : static_cast<std::size_t>(size);
  }
  void hang_up() {
    if (theirs >= 0) ::close(theirs);
    theirs = -1;
  }
};

// A watch whose functions are a test's own.
struct Watcher {
  Pair pair;
  std::function<void()> readable = [] {}, writable = [] {};
  Watch watch;

  explicit Watcher(Loop& loop) : watch(loop) {
    watch.start(
        pair.ours, [](void* self) { static_cast<Watcher*>(self)->readable(); },
        [](void* self) { static_cast<Watcher*>(self)->writable(); }, this);
  }
  ~Watcher() { watch.stop(); }
};

class WatchTest : public testing::Test {
 protected:
  // Runs for so long; gives how many wakeups there were.
  int run(milliseconds time) {
    int wakeups = 0;
    loop.set_after_wakeup([&] { ++wakeups; });
    const auto end = loop.timer([this] { loop.stop(); });
    end->arm(time);
    loop.run();
    return wakeups;
  }
  Loop loop;
};

TEST_F(WatchTest, OneThatIsGoneIsNotCalledThoughTheKernelReportedIt) {
  auto a = std::make_unique<Watcher>(loop), b = std::make_unique<Watcher>(loop);
  int calls = 0;
  const auto end_both = [&] {
    ++calls;
    a.reset();
    b.reset();
  };
  // Whichever is first ends the other, and itself.
  a->readable = b->readable = [&] {
    const auto keep = end_both;
    keep();
  };
  a->writable = b->writable = [&] { ++calls; };
  for (Watcher* one : {a.get(), b.get()}) {
    ASSERT_TRUE(one->watch.want_read(true));
    ASSERT_TRUE(one->watch.want_write(true));
    one->pair.say("x");
  }
  // Not before both are ready.
  run(milliseconds(20));
  EXPECT_EQ(calls, 1);
}

TEST_F(WatchTest, AHangUpThatNobodyWantsToHearOfCostsNoWakeups) {
  Watcher a(loop);
  int reads = 0;
  a.readable = [&] {
    ++reads;
    a.pair.listen();
    EXPECT_TRUE(a.watch.want_read(false));
  };
  ASSERT_TRUE(a.watch.want_read(true));
  a.pair.say("x");
  loop.post([&] { a.pair.hang_up(); });
  EXPECT_LT(run(milliseconds(50)), 10);
  EXPECT_EQ(reads, 1);
  // And is reported when somebody does.
  ASSERT_TRUE(a.watch.want_read(true));
  run(milliseconds(20));
  EXPECT_EQ(reads, 2);
}

TEST_F(WatchTest, WhatWasNotWantedForAMomentComesLater) {
  Watcher a(loop);
  int reads = 0;
  a.readable = [&] {
    ++reads;
    a.pair.listen();
  };
  ASSERT_TRUE(a.watch.want_read(true));
  ASSERT_TRUE(a.watch.want_read(false));
  a.pair.say("x");
  run(milliseconds(20));
  EXPECT_EQ(reads, 0);
  ASSERT_TRUE(a.watch.want_read(true));
  run(milliseconds(20));
  EXPECT_EQ(reads, 1);
}

TEST_F(WatchTest, BothDirectionsAreReportedAndWritingOnlyWhileItIsWanted) {
  Watcher a(loop);
  std::string seen;
  a.readable = [&] {
    seen += 'r';
    a.pair.listen();
  };
  a.writable = [&] {
    seen += 'w';
    EXPECT_TRUE(a.watch.want_write(false));
  };
  ASSERT_TRUE(a.watch.want_read(true));
  ASSERT_TRUE(a.watch.want_write(true));
  a.pair.say("x");
  EXPECT_LT(run(milliseconds(20)), 10);
  EXPECT_EQ(seen, "rw");
}

TEST_F(WatchTest, SoonIsOnceAnAskAndNextWakeupFromASoon) {
  std::vector<std::string> seen;
  loop.set_after_wakeup([&] { seen.emplace_back("hook"); });
  struct Asker {
    std::function<void()> call;
    Soon soon;
    explicit Asker(Loop& loop) : soon(loop, [](void* self) { static_cast<Asker*>(self)->call(); }, this) {}
  };
  Asker a(loop), b(loop);
  auto gone = std::make_unique<Asker>(loop);
  gone->call = [&] { seen.emplace_back("gone"); };
  a.call = [&] {
    seen.emplace_back("a");
    gone.reset();  // It is asked for, behind this one.
    b.soon.ask();
  };
  b.call = [&] {
    seen.emplace_back("b");
    loop.stop();
  };
  loop.post([&] {
    seen.emplace_back("task");
    a.soon.ask();
    gone->soon.ask();
    a.soon.ask();
  });
  loop.run();
  EXPECT_EQ(seen, (std::vector<std::string>{"task", "a", "hook", "b", "hook", "hook"}));
}

TEST_F(WatchTest, TimersKeepTheirOrderWhenAnEarlierOneIsCancelledOrArmedAnew) {
  std::string seen;
  const auto a = loop.timer([&] { seen += 'a'; });
  const auto b = loop.timer([&] { seen += 'b'; });
  const auto c = loop.timer([&] { seen += 'c'; });
  a->arm(milliseconds(2));
  b->arm(milliseconds(30));
  c->arm(milliseconds(10));
  a->cancel();
  run(milliseconds(60));
  EXPECT_EQ(seen, "cb");
  // One that is always due leaves the others their turn.
  int again = 0;
  std::unique_ptr<Timer> busy;
  busy = loop.timer([&] {
    if (++again < 1000 || seen.size() < 3) {
      busy->arm(milliseconds(0));
    } else {
      loop.stop();
    }
  });
  busy->arm(milliseconds(0));
  a->arm(milliseconds(1));
  EXPECT_GT(run(std::chrono::seconds(60)), 999);
  EXPECT_GE(again, 1000);
  EXPECT_EQ(seen, "cba");
}

}  // namespace
}  // namespace ringshift::net
