// The report that the leader writes: all of it comes back, and what another version wrote is read as far as
// it goes.
#include "membership/report.h"

#include <gtest/gtest.h>

namespace ringshift::membership {
namespace {

Report full() {
  Report report;
  report.source = "file /etc/cache.yaml";
  report.trouble = "it is not there";
  report.trouble_since_ms = 1'700'000'000'000;
  report.held = true;
  report.last_error = "member cache-2 leaves by policy: refused: too full";
  report.admit_auto = true;
  report.last_change = {"cache-2", false, 1'700'000'000'123};
  report.cooldown_until_ms = 1'700'000'060'000;
  report.seen = {"cache-1", "cache-2"};
  Candidate candidate;
  candidate.member.id = "cache-9";
  candidate.member.address = "10.0.0.9:6379";
  candidate.member.weight = 1.5;
  candidate.member.zone = "a";
  candidate.state = discovery::InstanceState::draining;
  candidate.why_not = candidate.waits_for = "its id is retired";
  candidate.code = "retired";
  report.candidates = {candidate};
  report.candidates_more = 3;
  report.gone = {{"cache-2", "60 s more", "counting", 1'700'000'000'000, 1'700'000'600'000}};
  report.elsewhere = {{"cache-1", "10.0.0.1:6379", "10.0.0.7:6379"}};
  return report;
}

TEST(MembershipReport, ComesBackWhole) {
  const Report before = full();
  const Result<Report> after = parse_report(to_json(before));
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(to_json(*after), to_json(before));
  EXPECT_EQ(after->gone, before.gone);
  EXPECT_EQ(after->candidates, before.candidates);
  EXPECT_EQ(after->elsewhere, before.elsewhere);
  EXPECT_EQ(after->last_change, before.last_change);
  EXPECT_EQ(after->trouble_since_ms, before.trouble_since_ms);
  EXPECT_EQ(after->cooldown_until_ms, before.cooldown_until_ms);
  EXPECT_TRUE(after->held);
}

TEST(MembershipReport, OneWithoutTheNewerFieldsIsRead) {
  const Result<Report> report = parse_report(
      R"({"source":"registry","trouble":"","last_error":"","admit":"auto","seen":["cache-1"],"candidates":[
          {"id":"cache-5","address":"10.0.0.5:6379","state":"ready","weight":1.0,"zone":"","host":"","why_not":"",
           "waits_for":"one at a time"}],"candidates_more":0,"gone":[{"id":"cache-1","waits_for":"9 s more"}]})");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->gone.at(0).since_ms, 0);
  EXPECT_EQ(report->candidates.at(0).code, "");
  EXPECT_EQ(report->last_change.member, "");
}

TEST(MembershipReport, WhatIsNoneIsRefused) {
  for (const char* text : {"", "[]", "{}", R"({"source":1})"}) EXPECT_FALSE(parse_report(text)) << text;
  std::string wrong = to_json(full());
  wrong.replace(wrong.find("\"held\":true"), 11, "\"held\":\"no\"");
  EXPECT_FALSE(parse_report(wrong)) << wrong;
}

TEST(MembershipReport, TheEssenceLeavesOutWhatCountsDown) {
  Report later = full();
  later.gone[0].waits_for = "59 s more";
  later.gone[0].leaves_at_ms += 5000;
  later.cooldown_until_ms = 0;
  EXPECT_EQ(essence(later), essence(full()));
  later.gone[0].code = "cooldown";
  EXPECT_NE(essence(later), essence(full()));
  later = full();
  later.candidates[0].state = discovery::InstanceState::ready;
  EXPECT_NE(essence(later), essence(full()));
}

TEST(MembershipReport, AMomentStaysWhileItTrembles) {
  EXPECT_EQ(same_moment(10'000, 10'000 + kSameMomentMs - 1), 10'000);
  EXPECT_EQ(same_moment(10'000, 10'000 - kSameMomentMs + 1), 10'000);
  EXPECT_EQ(same_moment(10'000, 10'000 + kSameMomentMs), 10'000 + kSameMomentMs);
  EXPECT_EQ(same_moment(0, 10'000), 10'000);
  EXPECT_EQ(same_moment(10'000, 0), 0);
}

}  // namespace
}  // namespace ringshift::membership
