// The membership policy, judged by what the leading controller told.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/cluster_checks.h"
#include "membership/report.h"
#include "topology/discovery.h"

namespace ringshift::doctor {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Policy {
  RegistryLook look;
  topology::Topology topology;
  membership::Report report;

  Policy() {
    topology::DiscoverySpec rules;
    rules.source.kind = "registry";
    look.discovery = coord::KeyValue{"/discovery", topology::to_json(rules)};
    look.controller = coord::KeyValue{"/controller", "controller-1"};
    report.source = "registry";
  }
  std::vector<Finding> findings() {
    look.membership = coord::KeyValue{"/membership", membership::to_json(report)};
    return judge();
  }
  std::vector<Finding> judge() {
    Findings out("membership");
    check_membership(look, topology, out);
    for (const Finding& one : out.all())
      EXPECT_EQ(one.fix.empty(), one.level == Level::ok) << one.check << ": " << one.message;
    return std::move(out).take();
  }
  // The only one that is not ok.
  Finding only() {
    std::vector<Finding> all = findings();
    std::erase_if(all, [](const Finding& one) { return one.level == Level::ok; });
    EXPECT_THAT(all, SizeIs(1));
    return all.empty() ? Finding{} : all[0];
  }
  void candidate(const std::string& id, const std::string& code, const std::string& why) {
    membership::Candidate one;
    one.member.id = id;
    one.code = code;
    one.why_not = one.waits_for = why;
    report.candidates.push_back(one);
  }
};

TEST(MembershipChecks, SilentWithoutAPolicyAndWellWhenAllIs) {
  Policy policy;
  EXPECT_THAT(policy.findings(), Each(Field(&Finding::level, Level::ok)));
  EXPECT_THAT(policy.findings(), SizeIs(4));
  policy.report.trouble = "refused";
  policy.look.controller.reset();
  EXPECT_THAT(policy.findings(), IsEmpty()) << "what the last leader told is old";
  policy.look.discovery.reset();
  EXPECT_THAT(policy.findings(), IsEmpty());
}

TEST(MembershipChecks, RulesOrAReportThatCannotBeRead) {
  Policy policy;
  EXPECT_EQ(policy.judge().at(0).check, "source") << "nobody has told yet";
  EXPECT_EQ(policy.judge().at(0).level, Level::warning);
  policy.look.membership = coord::KeyValue{"/membership", "{"};
  EXPECT_THAT(policy.judge().at(0).message, HasSubstr("broken"));
  policy.look.discovery->value = "{\"source\": 7}";
  EXPECT_EQ(policy.only().check, "rules");
  EXPECT_EQ(policy.only().level, Level::problem);
}

TEST(MembershipChecks, ASourceThatIsDownOrNotBelieved) {
  Policy policy;
  policy.report.trouble = "connection refused";
  policy.report.trouble_since_ms = 1'700'000'000'000;
  EXPECT_EQ(policy.only().level, Level::problem);
  EXPECT_THAT(policy.only().message, HasSubstr("since 2023-11-1"));
  EXPECT_THAT(policy.only().message, HasSubstr("connection refused"));
  policy.report.held = true;
  EXPECT_EQ(policy.only().level, Level::warning);
  EXPECT_THAT(policy.only().message, HasSubstr("not believed"));
}

TEST(MembershipChecks, CandidatesThatCanNeverBeMembers) {
  for (const char* code : {"id_invalid", "address_invalid", "protocol", "retired", "address_taken"}) {
    Policy policy;
    policy.candidate("cache-9", code, "for a reason");
    EXPECT_EQ(policy.only().subject, "cache-9") << code;
    EXPECT_THAT(policy.only().message, HasSubstr("for a reason"));
  }
  Policy policy;  // Others are what the operator meant, or what is about to be.
  for (const char* code : {"id_no_match", "address_no_match", "namespace_no_match"})
    policy.candidate(code, code, "it does not match");
  policy.candidate("cache-5", "", "");
  EXPECT_THAT(policy.findings(), Each(Field(&Finding::level, Level::ok)));
  for (int i = 0; i < 100; ++i) policy.candidate(fmt::format("x{}", i), "retired", "its id is retired");
  const auto many = policy.findings();
  EXPECT_THAT(many, SizeIs(20 + 1 + 3));
}

TEST(MembershipChecks, MembersThatAreGoneOrElsewhere) {
  Policy policy;
  policy.report.gone = {{"cache-2", "60 s more", "counting", 1'700'000'000'000, 1'700'000'060'000}};
  EXPECT_EQ(policy.only().level, Level::warning);
  EXPECT_EQ(policy.only().subject, "cache-2");
  EXPECT_THAT(policy.only().message, HasSubstr("gone since 2023"));
  EXPECT_THAT(policy.only().message, HasSubstr("leaves at 2023"));
  policy.topology.resize.emplace();
  EXPECT_THAT(policy.findings(), Each(Field(&Finding::level, Level::ok))) << "it may drain";
  policy.topology.resize.reset();
  policy.report.gone[0].code = "too_many";
  EXPECT_EQ(policy.only().level, Level::problem);
  policy.report.gone = {};
  policy.report.elsewhere = {{"cache-1", "10.0.0.1:1", "10.0.0.7:1"}};
  EXPECT_EQ(policy.only().check, "address");
  EXPECT_THAT(policy.only().message, HasSubstr("10.0.0.7:1, and routers ask 10.0.0.1:1"));
}

TEST(MembershipChecks, AChangeThatWasRefused) {
  Policy policy;
  policy.report.last_error = "member cache-2 leaves by policy: refused: too full";
  policy.report.last_change = {"cache-2", false, 1};
  EXPECT_EQ(policy.only().check, "change");
  EXPECT_EQ(policy.only().subject, "cache-2");
}

}  // namespace
}  // namespace ringshift::doctor
