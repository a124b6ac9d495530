// Rates, the series, JSON by fields, and alerts: the arithmetic of the admin API.
#include "admin/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "admin/alerts.h"
#include "admin/json_text.h"
#include "admin/series.h"

namespace ringshift::admin {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

RouterHistory::Record record(std::uint64_t requests, std::uint64_t hits, std::uint64_t misses) {
  auto out = std::make_shared<coord::RouterRecord>();
  out->requests = requests;
  out->hits = hits;
  out->misses = misses;
  out->members["a"] = {requests / 2, hits / 2, misses / 2, 0, 0, 3, 1.5};
  return out;
}

TEST(RouterHistory, RatesAreOverTheTimeBetweenReports) {
  RouterHistory history;
  const SteadyTime start{};
  history.add(record(100, 50, 10), start);
  EXPECT_EQ(history.rates(start, RouterHistory::kSmooth), std::nullopt) << "one report is no rate";
  history.add(record(300, 150, 20), start + 1s);
  // A report with a topology, just after: too short for a rate by itself.
  history.add(record(310, 155, 21), start + 1050ms);
  const auto now = history.rates(start + 1100ms, RouterHistory::kShortest);
  ASSERT_TRUE(now.has_value());
  EXPECT_NEAR(now->requests, 210 / 1.05, 1e-6);
  EXPECT_NEAR(now->misses, 11 / 1.05, 1e-6);
  history.add(record(710, 355, 41), start + 3s);
  EXPECT_NEAR(history.rates(start + 3s, RouterHistory::kSmooth)->requests, 610 / 3.0, 1e-6);
  std::map<std::string, MemberRates> members;
  history.add_members(start + 3s, members);
  history.add_members(start + 3s, members);
  EXPECT_NEAR(members["a"].requests, 2 * 305 / 3.0, 1e-6) << "two routers' parts add up";
  EXPECT_EQ(members["a"].in_flight, 6U);
  EXPECT_EQ(members["a"].p99_ms, 1.5);
}

TEST(RouterHistory, ACounterThatFellAndASilentRouterGiveNothingFalse) {
  RouterHistory history;
  const SteadyTime start{};
  history.add(record(1000, 0, 0), start);
  history.add(record(10, 0, 0), start + 1s);
  EXPECT_EQ(history.rates(start + 1s, RouterHistory::kShortest)->requests, 0);
  EXPECT_EQ(history.rates(start + 1s + RouterHistory::kStale + 1ms, RouterHistory::kShortest), std::nullopt);
  for (std::size_t i = 0; i < 100; ++i) history.add(record(10 + i, 0, 0), start + 2s + 10ms * i);
  EXPECT_TRUE(history.fresh(start + 3s));
}

resize::ResizeStatus status(std::string state, std::string id, std::uint64_t step = 0,
                            std::string phase = "") {
  resize::ResizeStatus out;
  out.state = std::move(state);
  out.id = std::move(id);
  out.step = step;
  out.steps = 2;
  out.phase = std::move(phase);
  return out;
}

TEST(Series, MarksTellTheStoryOfAResize) {
  Series series;
  const std::vector<resize::ResizeStatus> story = {status("idle", ""),
                                                   status("preparing", "1-9"),
                                                   status("running", "1-9", 1, "hold"),
                                                   status("running", "1-9", 1, "dual"),
                                                   status("paused", "1-9", 1, "dual"),
                                                   status("running", "1-9", 1, "dual"),
                                                   status("rolling_back", "1-9", 1, "hold"),
                                                   status("finished", "1-9"),
                                                   status("running", "2-11", 1, "hold"),
                                                   status("finished", "2-11"),
                                                   status("finished", "3-12"),  // Over between two looks.
                                                   status("failed", "4-13")};
  std::vector<std::string> events;
  for (std::size_t i = 1; i < story.size(); ++i) {
    const std::size_t added = series.follow(story[i - 1], story[i], static_cast<UnixMs>(i));
    ASSERT_LE(added, series.marks().size());
  }
  for (const SeriesMark& mark : series.marks()) events.push_back(mark.event);
  EXPECT_THAT(events,
              ElementsAre("begin", "phase", "phase", "pause", "resume", "rollback", "phase", "finished",
                          "begin", "phase", "finished", "begin", "finished", "begin", "failed"));
  EXPECT_EQ(series.follow(story.back(), story.back(), 99), 0U);
}

TEST(Series, HasABound) {
  Series series;
  for (std::size_t i = 0; i < 2 * Series::kPoints; ++i) {
    SeriesPoint point;
    point.at_ms = static_cast<UnixMs>(i);
    series.add(point);
    static_cast<void>(
        series.follow(status("running", "1-1", i, "hold"), status("running", "1-1", i + 1, "dual"), 0));
  }
  EXPECT_EQ(series.points().size(), Series::kPoints);
  EXPECT_EQ(series.points().front().at_ms, static_cast<UnixMs>(Series::kPoints));
  EXPECT_EQ(series.marks().size(), Series::kMarks);
}

TEST(JsonText, ChangesAreThoseFieldsThatChanged) {
  Objects objects;
  const auto one = [](const char* id, double qps, const char* state) {
    return Object().add("id", string_json(id)).add("qps", figure(qps)).add("state", string_json(state));
  };
  EXPECT_EQ(objects.update({{"a", one("a", 1, "x")}, {"b", one("b", 2, "x")}}),
            R"({"changed":[{"id":"a","qps":1,"state":"x"},{"id":"b","qps":2,"state":"x"}],"removed":[]})");
  EXPECT_EQ(objects.update({{"a", one("a", 1.00001, "x")}, {"b", one("b", 2, "x")}}), "") << "no news";
  EXPECT_EQ(objects.update({{"a", one("a", 7, "x")}}), R"({"changed":[{"id":"a","qps":7}],"removed":["b"]})");
}

TEST(JsonText, AnyBytesMakeValidText) {
  EXPECT_EQ(string_json("a\"\\\n\x01"), R"("a\"\\\n\u0001")");
  EXPECT_EQ(string_json("\xff"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(figure(1.0 / 0.0), "null");
  EXPECT_EQ(figure(123456.0), "1.235e+05");
  EXPECT_EQ(share(0.123456789012), "0.12345679");
}

std::vector<std::string> codes(const std::vector<Alert>& alerts) {
  std::vector<std::string> out;
  for (const Alert& alert : alerts) out.push_back(alert.code + " " + alert.subject);
  return out;
}

TEST(Alerts, NothingToSayOfAHealthyCluster) {
  AlertBook book;
  AlertFacts facts;
  coord::RouterRecord router;
  facts.now_ms = 100'000;
  facts.routers = {{"r1", &router, true, false}};
  EXPECT_THAT(book.judge(facts), testing::IsEmpty());
}

TEST(Alerts, EachFaultHasItsWordsAndItsTime) {
  AlertBook book;
  AlertFacts facts;
  coord::RouterRecord behind, other, full;
  full.max_clients = 100;
  full.clients = 95;
  full.unreachable["m2"] = "refused";
  behind.unreachable["m2"] = "refused";
  facts.now_ms = 100'000;
  facts.topology_since_ms = 90'000;
  facts.has_controller = false;
  facts.version = "1.7";
  facts.routers = {
      {"behind", &behind, false, false}, {"other", &other, false, true}, {"full", &full, true, false}};
  auto down = std::make_shared<MemberInfo>();
  down->error = "connection refused";
  auto near = std::make_shared<MemberInfo>();
  near->memory_used = 95;
  near->memory_max = 100;
  near->evicted_per_second = 4;
  facts.members = {{"m1", down}, {"m3", near}};
  facts.requests_per_second = 1000;
  facts.errors_per_second = 50;
  facts.hot_keys = {{"hot", 400, 0.4}, {"cool", 400, 0.1}};
  facts.resize = status("running", "1-3");
  facts.resize.waits_for = "the origin";
  facts.resize.held_back = {"latency of cache-1"};
  facts.resize.fences = 2;
  facts.resize.big_keys_waiting = 1;
  const auto first = book.judge(facts);
  EXPECT_THAT(codes(first),
              testing::UnorderedElementsAre(
                  "no_controller ", "router_behind behind", "router_other_digest other",
                  "clients_near_limit full", "router_cannot_reach_member m2", "member_unreachable m1",
                  "member_memory m3", "member_evicting m3", "errors ", "hot_key hot", "resize_waits 1-3",
                  "resize_held_back 1-3", "resize_fenced 1-3", "resize_big_keys 1-3"));
  EXPECT_EQ(first.front().severity, Alert::Severity::critical);
  EXPECT_EQ(first.back().severity, Alert::Severity::info);
  facts.now_ms += 5000;
  for (const Alert& alert : book.judge(facts)) EXPECT_EQ(alert.since_ms, 100'000) << alert.code;
  facts.resize = status("failed", "1-3");
  facts.errors_per_second = 0;
  EXPECT_THAT(codes(book.judge(facts)), testing::Contains("resize_failed 1-3"));
  facts.errors_per_second = 50;
  for (const Alert& alert : book.judge(facts)) {
    if (alert.code != "errors") continue;
    EXPECT_EQ(alert.since_ms, 105'000) << "it had gone";
  }
  facts.connected = false;
  facts.connection_error = "refused";
  EXPECT_THAT(codes(book.judge(facts)), testing::Contains("registry_unreachable "));
}

TEST(Alerts, OfThePolicyWhatTheLeaderTold) {
  AlertBook book;
  AlertFacts facts;
  coord::RouterRecord router;
  facts.now_ms = 100'000;
  facts.routers = {{"r1", &router, true, false}};
  membership::Report told;
  facts.membership = &told;
  EXPECT_THAT(book.judge(facts), testing::IsEmpty());
  told.source = "registry";
  told.trouble = "refused";
  told.trouble_since_ms = 90'000;
  EXPECT_THAT(book.judge(facts), testing::IsEmpty()) << "a moment is no matter";
  told.trouble_since_ms = 80'000;
  EXPECT_THAT(codes(book.judge(facts)), testing::ElementsAre("discovery_trouble "));
  told.held = true;
  told.trouble_since_ms = 99'000;
  EXPECT_THAT(codes(book.judge(facts)), testing::ElementsAre("discovery_held "));
  told.trouble.clear();
  told.held = false;
  told.gone = {{"m1", "60 s more", "counting", 1, 2}, {"m2", "", "", 1, 2}};
  told.elsewhere = {{"m3", "a:1", "b:1"}};
  told.last_error = "member m1 leaves by policy: refused: too full";
  told.last_change = {"m1", false, 1};
  const auto all = book.judge(facts);
  EXPECT_THAT(codes(all), testing::ElementsAre("member_gone m1", "member_gone m2", "member_elsewhere m3",
                                               "policy_refused m1"));
  EXPECT_THAT(all[0].text, testing::HasSubstr("60 s more"));
  EXPECT_THAT(all[1].text, testing::HasSubstr("leaves now"));
  facts.resize = status("running", "1-3");  // Which takes it out, perhaps.
  EXPECT_THAT(codes(book.judge(facts)), testing::ElementsAre("member_elsewhere m3", "policy_refused m1"));
  facts.has_controller = false;
  facts.controller_lost_ms = 99'999;
  EXPECT_THAT(book.judge(facts), testing::IsEmpty()) << "it is old";
}

}  // namespace
}  // namespace ringshift::admin
