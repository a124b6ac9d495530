// The policy's part of the metrics page.
#include "membership/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "telemetry/exposition.h"

namespace ringshift::membership {
namespace {

using testing::HasSubstr;

std::string page_of(const PolicyFigures& figures) {
  telemetry::Exposition page;
  figures.collect(page, "cache");
  return page.text();
}

TEST(PolicyFigures, ShowsTheLastLookAndCountsChanges) {
  PolicyFigures figures;
  figures.count(Outcome::refused);
  figures.looked({"consul", true, true, 12.5, {4, 1, 0}, 2, 1, 1, 3});
  figures.count(Outcome::refused);
  const std::string page = page_of(figures);
  for (const char* line :
       {"ringshift_membership_source_healthy{cluster=\"cache\",source=\"consul\"} 1\n",
        "ringshift_membership_source_age_seconds{cluster=\"cache\",source=\"consul\"} 12.5\n",
        "ringshift_membership_guard_holding{cluster=\"cache\"} 1\n",
        "ringshift_membership_instances{cluster=\"cache\",state=\"ready\"} 4\n",
        "ringshift_membership_instances{cluster=\"cache\",state=\"unhealthy\"} 1\n",
        "ringshift_membership_instances{cluster=\"cache\",state=\"draining\"} 0\n",
        "ringshift_membership_candidates{cluster=\"cache\",fit=\"yes\"} 2\n",
        "ringshift_membership_candidates{cluster=\"cache\",fit=\"no\"} 1\n",
        "ringshift_membership_members_gone{cluster=\"cache\"} 1\n",
        "ringshift_membership_members_elsewhere{cluster=\"cache\"} 3\n",
        "ringshift_membership_changes_total{cluster=\"cache\",outcome=\"admitted\"} 0\n",
        "ringshift_membership_changes_total{cluster=\"cache\",outcome=\"refused\"} 2\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST(PolicyFigures, ShowsNothingWithoutAPolicy) {
  PolicyFigures figures;
  EXPECT_THAT(page_of(figures), Not(HasSubstr("ringshift_membership")));
  figures.looked({});
  figures.rests();
  EXPECT_THAT(page_of(figures), Not(HasSubstr("ringshift_membership")));
}

}  // namespace
}  // namespace ringshift::membership
