// What a router's link to the registry promises to who is called by it.
#include <atomic>

#include "tests/unit/resize/controller_world.h"

namespace ringshift::resize {
namespace {

// Who takes its hooks away may destroy what they call as soon as set_hooks() has returned: the call of a
// moment ago has ended by then.
class RouterHooks : public ControllerTest {
 protected:
  void start_link(milliseconds report_interval) {
    start_controller();
    ASSERT_TRUE(wait([&] { return topology().has_value(); }));
    auto link = coord::RouterLink::start(
        *coordinator_, keys_, {.router_id = "slow", .report_interval = report_interval}, milliseconds(5000));
    ASSERT_TRUE(link);
    router_ = std::move(*link);
  }
  void stay() {
    inside_ = true;
    std::this_thread::sleep_for(milliseconds(300));
    inside_ = false;
    ++calls_;
  }
  void expect_none_after_detaching() {
    ASSERT_TRUE(wait([&] { return inside_.load(); }));
    router_->set_hooks({});
    EXPECT_FALSE(inside_);
    const int before = calls_;
    EXPECT_GE(before, 1);
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_EQ(calls_, before);
  }

  std::atomic<bool> inside_{false};
  std::atomic<int> calls_{0};
};

TEST_F(RouterHooks, ReportsFiguresNoMoreOnceDetached) {
  start_link(milliseconds(10));
  router_->set_hooks({{}, [this](coord::RouterRecord&) { stay(); }});
  expect_none_after_detaching();
}

TEST_F(RouterHooks, TellsOfNoTopologyOnceDetached) {
  start_link(milliseconds(1000));
  router_->set_hooks({[this, first = true]() mutable {
                        if (!std::exchange(first, false)) stay();  // The first is set_hooks()'s own.
                      },
                      {}});
  ASSERT_EQ(start(spec({"a", "b"})), "");
  expect_none_after_detaching();
}

}  // namespace
}  // namespace ringshift::resize
