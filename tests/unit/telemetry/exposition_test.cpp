// The page of metrics, as text.
#include "telemetry/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringshift::telemetry {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Exposition, AFamilyHasOneHeadAndItsSamples) {
  Exposition page;
  page.counter("ringshift_x_total", "What x is", 3, {{"member", "a"}});
  page.gauge("ringshift_y", "Why", 0.5);
  page.counter("ringshift_x_total", "What x is", 1e15, {{"member", "b"}});
  EXPECT_THAT(page.text(), HasSubstr("# HELP ringshift_x_total What x is\n"
                                     "# TYPE ringshift_x_total counter\n"
                                     "ringshift_x_total{member=\"a\"} 3\n"
                                     "ringshift_x_total{member=\"b\"} 1000000000000000\n"
                                     "# HELP ringshift_y Why\n"
                                     "# TYPE ringshift_y gauge\n"
                                     "ringshift_y 0.5\n"));
}

TEST(Exposition, LabelsAreEscaped) {
  Exposition page;
  page.gauge("g", "h", 1, {{"l", "a\"b\\c\nd"}});
  EXPECT_THAT(page.text(), HasSubstr("g{l=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

TEST(Exposition, TimesBecomeCumulativeBucketsOfSeconds) {
  Times times;
  times.add(0);
  times.add(63);              // Below 64 us.
  times.add(64);              // Not.
  times.add(1'000);           // A millisecond: below 2^10 us.
  times.add(60'000'000'000);  // Above the last bucket.
  TimesTotals totals{};
  times.add_to(totals);
  Exposition page;
  page.histogram("h_seconds", "h", totals, 2.5, {{"m", "x"}});
  const std::string text = page.text();
  EXPECT_THAT(text, HasSubstr("# TYPE h_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("h_seconds_count{m=\"x\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("h_seconds_sum{m=\"x\"} 2.5\n"));
  EXPECT_THAT(text, HasSubstr("h_seconds_bucket{m=\"x\",le=\"6.4e-05\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("h_seconds_bucket{m=\"x\",le=\"0.000128\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("h_seconds_bucket{m=\"x\",le=\"0.000512\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("h_seconds_bucket{m=\"x\",le=\"0.001024\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("h_seconds_bucket{m=\"x\",le=\"16.777216\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("h_seconds_bucket{m=\"x\",le=\"+Inf\"} 5\n"));
}

// The bounds are where Times has bounds, or a bucket would hold a part of what it says.
TEST(Exposition, EveryBoundIsOneOfTimes) {
  for (unsigned doubling = 6; doubling <= 24; ++doubling) {
    const std::uint64_t end = std::uint64_t{1} << doubling;
    EXPECT_NE(Times::bucket(static_cast<std::int64_t>(end) - 1),
              Times::bucket(static_cast<std::int64_t>(end)));
  }
}

TEST(Exposition, AFullFamilySaysWhatItLeftOut) {
  Exposition page;
  for (std::size_t i = 0; i < Exposition::kSamplesMax + 7; ++i) {
    page.gauge("g", "h", 1, {{"i", std::to_string(i)}});
  }
  page.gauge("other", "h", 1);
  const std::string text = page.text();
  EXPECT_THAT(text, HasSubstr("ringshift_metrics_dropped_samples 7\n"));
  EXPECT_THAT(text, HasSubstr("\nother 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("g{i=\"20000\"}")));
}

}  // namespace
}  // namespace ringshift::telemetry
