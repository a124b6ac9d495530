// What a controller shows of a resize, from the statuses that the leader tells.
#include "resize/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "telemetry/exposition.h"

namespace ringshift::resize {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class FiguresTest : public testing::Test {
 protected:
  void SetUp() override {
    figures_.leads(true);
    status_.state = "running";
    status_.phase = "dual";
    status_.id = "1-2";
    status_.keys_moved = 100;
    status_.keys_to_move = 300;
    status_.keys_per_second = 50;
    status_.eta_seconds = 4;
    status_.pairs = {{"a", "b", 60, 6000, 40}, {"a", "c", 40, 4000, 60}};
  }
  [[nodiscard]] std::string page() const {
    telemetry::Exposition page;
    figures_.collect(page, "cache", now_);
    return page.text();
  }

  ControllerFigures figures_;
  ResizeStatus status_;
  ControllerFigures::TimePoint now_ = std::chrono::steady_clock::now();
};

TEST_F(FiguresTest, AResizeUnderWay) {
  figures_.told(status_, now_);
  EXPECT_THAT(page(), AllOf(HasSubstr("ringshift_resize_state{cluster=\"cache\",state=\"running\"} 1\n"),
                            HasSubstr("ringshift_resize_state{cluster=\"cache\",state=\"paused\"} 0\n"),
                            HasSubstr("ringshift_resize_phase{cluster=\"cache\",phase=\"dual\"} 1\n"),
                            HasSubstr("ringshift_resize_keys_left{cluster=\"cache\"} 200\n"),
                            HasSubstr("ringshift_resize_eta_seconds{cluster=\"cache\"} 4\n"),
                            HasSubstr("pair_bytes_moved_total{cluster=\"cache\",from=\"a\",to=\"b\"} 6000\n"),
                            HasSubstr("pair_keys_left{cluster=\"cache\",from=\"a\",to=\"c\"} 60\n")));
}

TEST_F(FiguresTest, WhenItIsOverNothingIsLeft) {
  status_.state = "finished";
  figures_.told(status_, now_);
  now_ += 1h;
  EXPECT_THAT(page(), AllOf(HasSubstr("ringshift_resize_keys_left{cluster=\"cache\"} 0\n"),
                            HasSubstr("ringshift_resize_unchanged_seconds{cluster=\"cache\"} 0\n"),
                            HasSubstr("ringshift_resize_keys_moved_total{cluster=\"cache\"} 100\n"),
                            HasSubstr("pair_keys_left{cluster=\"cache\",from=\"a\",to=\"c\"} 0\n"),
                            Not(HasSubstr("eta_seconds"))));
}

TEST_F(FiguresTest, TheTimeWithoutProgressBeginsAnewWithEach) {
  figures_.told(status_, now_);
  now_ += 30s;
  status_.keys_per_second = 0;  // Another figure is no progress.
  figures_.told(status_, now_);
  EXPECT_THAT(page(), HasSubstr("unchanged_seconds{cluster=\"cache\"} 30\n"));
  status_.keys_moved = 101;
  figures_.told(status_, now_);
  now_ += 2s;
  EXPECT_THAT(page(), HasSubstr("unchanged_seconds{cluster=\"cache\"} 2\n"));
}

TEST_F(FiguresTest, WhoDoesNotLeadShowsNoResizeButItsHolds) {
  figures_.told(status_, now_);
  figures_.held(1500);
  figures_.held(3);
  figures_.leads(false);
  figures_.registry_answered(now_);
  now_ += 5s;
  EXPECT_THAT(page(),
              AllOf(HasSubstr("ringshift_controller_leading{cluster=\"cache\"} 0\n"),
                    HasSubstr("ringshift_controller_registry_age_seconds{cluster=\"cache\"} 5\n"),
                    HasSubstr("ringshift_resize_hold_seconds_bucket{cluster=\"cache\",le=\"1.048576\"} 1\n"),
                    HasSubstr("ringshift_resize_hold_seconds_count{cluster=\"cache\"} 2\n"),
                    HasSubstr("ringshift_resize_hold_seconds_sum{cluster=\"cache\"} 1.503\n"),
                    Not(HasSubstr("ringshift_resize_state"))));
}

TEST_F(FiguresTest, ThePairsHaveABound) {
  status_.pairs.clear();
  for (std::uint64_t i = 0; i < ControllerFigures::kPairsShown + 5; ++i) {
    status_.pairs.push_back({"m" + std::to_string(i), "x", i + 1, 0, 0});
  }
  figures_.told(status_, now_);
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("from=\"m1004\""));
  EXPECT_THAT(text, Not(HasSubstr("from=\"m4\"")));
}

}  // namespace
}  // namespace ringshift::resize
