// Durations, windows and conditions: what operators may write, what it means, and what is refused.
#include "resize/controls.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace ringshift::resize {
namespace {

using std::chrono::milliseconds;

TEST(Duration, Table) {
  const struct {
    const char* text;
    std::int64_t ms;  // -1: refused
  } kCases[] = {{"0", 0},
                {"500ms", 500},
                {"60s", 60'000},
                {"5m", 300'000},
                {"1h", 3'600'000},
                {"1h30m", 5'400'000},
                {"1m1s1ms", 61'001},
                {"0s", 0},
                {"744h", 2'678'400'000},
                {"", -1},
                {"60", -1},
                {"s", -1},
                {"1d", -1},
                {"-1s", -1},
                {"1.5h", -1},
                {"1 s", -1},
                {"60s ", -1},
                {"745h", -1},
                {"99999999999999999999s", -1},
                {"1000000000000h", -1},
                {"1h5", -1}};
  for (const auto& one : kCases) {
    const Result<milliseconds> parsed = parse_duration(one.text);
    EXPECT_EQ(parsed ? parsed->count() : -1, one.ms) << one.text;
    if (!parsed) {
      EXPECT_NE(parsed.error().message.find('\''), std::string::npos) << "names the value";
    }
  }
  EXPECT_EQ(duration_text(milliseconds(250)), "250 ms");
  EXPECT_EQ(duration_text(milliseconds(60'000)), "1 min 0 s");
  EXPECT_EQ(duration_text(milliseconds(1500)), "1.5 s");
  EXPECT_EQ(duration_text(milliseconds(5'400'000)), "1 h 30 min");
}

// Central Europe: winter UTC+1; summer time begins on 2026-03-29 at 02:00 and ends on 2026-10-25 at 03:00.
class WindowTest : public testing::Test {
 protected:
  WindowTest() {
    if (const char* zone = std::getenv("TZ")) before_ = zone;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
  }
  ~WindowTest() override {
    before_ ? setenv("TZ", before_->c_str(), 1) : unsetenv("TZ");
    tzset();
  }
  static UnixMs at(const char* moment) {
    const Result<Window> window = make_window(moment, "", 0);
    return window ? window->not_before : -1;
  }
  std::optional<std::string> before_;
};

TEST_F(WindowTest, Moments) {
  EXPECT_EQ(at("1970-01-01T00:00:01Z"), 1000);
  EXPECT_EQ(at("1970-01-01T01:00:01.5+01:00"), 1000);
  EXPECT_EQ(at("2026-12-01T02:00:00Z"), 1'796'090'400'000);
  EXPECT_EQ(local_time(at("2026-12-01T02:00:00Z")), "2026-12-01T03:00:00+01:00");
  EXPECT_EQ(local_time(0), "");
  for (const char* bad :
       {"2026-12-01", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-12-01T25:00:00Z",
        "2026-12-01T02:00:00", "2026-12-01T02:00:00+1:00", "2026-12-01T02:00:00.Z", "2026-12-01T02:00:00Zz",
        "24:00", "2:00", "02:60", "noon"}) {
    const Result<Window> window = make_window(bad, "", 0);
    ASSERT_FALSE(window) << bad;
    EXPECT_TRUE(window.error().message.contains(bad)) << window.error().message;
    EXPECT_FALSE(make_window("", bad, 0)) << bad;
  }
}

TEST_F(WindowTest, DailyIsOpenEveryDayBetweenTheTwo) {
  const Result<Window> night = make_window("22:00", "06:00", 0);
  ASSERT_TRUE(night);
  const struct {
    const char* now;
    bool open;
    const char* next;  // opens, or closes, at
  } kCases[] = {{"2026-12-01T12:00:00+01:00", false, "2026-12-01T22:00:00+01:00"},
                {"2026-12-01T22:00:00+01:00", true, "2026-12-02T06:00:00+01:00"},
                {"2026-12-01T23:59:59+01:00", true, "2026-12-02T06:00:00+01:00"},
                {"2026-12-02T05:59:59+01:00", true, "2026-12-02T06:00:00+01:00"},
                {"2026-12-02T06:00:00+01:00", false, "2026-12-02T22:00:00+01:00"},
                // The night in which the clock goes back, and the one in which it goes forward.
                {"2026-10-24T23:00:00+02:00", true, "2026-10-25T06:00:00+01:00"},
                {"2026-03-28T23:00:00+01:00", true, "2026-03-29T06:00:00+02:00"}};
  for (const auto& one : kCases) {
    const UnixMs now = at(one.now);
    EXPECT_EQ(is_open(*night, now), one.open) << one.now;
    EXPECT_EQ(local_time(one.open ? closes_at(*night, now) : opens_at(*night, now)), one.next) << one.now;
  }
  EXPECT_EQ(to_text(*night), "22:00 to 06:00 every day");
  const Result<Window> day = make_window("09:30", "17:00", 0);
  EXPECT_TRUE(is_open(*day, at("2026-12-01T09:30:00+01:00")));
  EXPECT_FALSE(is_open(*day, at("2026-12-01T17:00:00+01:00")));
  EXPECT_FALSE(make_window("02:00", "02:00", 0)) << "no time at all, or all of it?";
}

TEST_F(WindowTest, OneBoundAlone) {
  const UnixMs noon = at("2026-12-01T12:00:00+01:00");
  const Result<Window> from = make_window("02:00", "", noon);
  ASSERT_TRUE(from);
  EXPECT_FALSE(is_open(*from, noon));
  EXPECT_EQ(local_time(opens_at(*from, noon)), "2026-12-02T02:00:00+01:00");
  EXPECT_TRUE(is_open(*from, at("2027-05-01T12:00:00+01:00"))) << "once, not every day";
  const Result<Window> until = make_window("", "06:00", noon);
  EXPECT_TRUE(is_open(*until, noon));
  EXPECT_FALSE(is_open(*until, at("2026-12-02T06:00:00+01:00")));
  EXPECT_EQ(opens_at(*until, at("2026-12-02T06:00:00+01:00")), 0) << "never again";
  const Result<Window> both = make_window("2026-12-24T23:00:00+01:00", "06:00", noon);
  EXPECT_EQ(local_time(both->not_after), "2026-12-25T06:00:00+01:00");
  EXPECT_FALSE(make_window("", "2026-12-01T11:00:00+01:00", noon)) << "over already";
  EXPECT_FALSE(make_window("2026-12-03T00:00:00Z", "2026-12-02T00:00:00Z", noon));
  EXPECT_TRUE(make_window("", "", noon)->always());
  EXPECT_TRUE(is_open(Window{}, noon));
  EXPECT_EQ(to_text(Window{}), "");
}

TEST(Conditions, Table) {
  const Result<std::vector<Condition>> three = parse_conditions("hit_rate<0.9, p99_ms>20,origin_qps>8000");
  ASSERT_TRUE(three) << three.error().message;
  EXPECT_EQ(to_text(*three), "hit_rate<0.9,p99_ms>20,origin_qps>8000");
  EXPECT_EQ(*parse_conditions(to_text(*three)), *three);
  EXPECT_TRUE((*three)[0].holds(0.89) && !(*three)[0].holds(0.9));
  EXPECT_TRUE((*three)[1].holds(20.5) && !(*three)[1].holds(20));
  EXPECT_TRUE(parse_conditions("")->empty());
  const struct {
    const char* text;
    const char* says;
  } kBad[] = {{"hit_rate", "neither"},     {"hits<1", "'hits'"},         {"hit_rate<x", "'x'"},
              {"hit_rate<", "no number"},  {"hit_rate<90", "0.9 meant"}, {"p99_ms>-1", "no number"},
              {"p99_ms>nan", "no number"}, {"p99_ms>1;", "no number"},   {",p99_ms>1", "neither"},
              {"p99_ms=1", "neither"}};
  for (const auto& one : kBad) {
    const auto parsed = parse_conditions(one.text);
    ASSERT_FALSE(parsed) << one.text;
    EXPECT_TRUE(parsed.error().message.contains(one.says)) << parsed.error().message;
  }
  std::string many;
  for (int i = 0; i < 17; ++i) many += "p99_ms>1,";
  EXPECT_FALSE(parse_conditions(many));
}

}  // namespace
}  // namespace ringshift::resize
