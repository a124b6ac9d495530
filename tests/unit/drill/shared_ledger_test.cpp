#include "drill/shared_ledger.h"

#include <gtest/gtest.h>

namespace ringshift::drill {
namespace {

using namespace std::chrono_literals;

constexpr base::TimePoint kNow{1h};

TEST(SharedLedger, AnAcknowledgedCopyMustBeFoundUntilItRunsOut) {
  SharedLedger ledger(2);
  EXPECT_EQ(ledger.miss(0, ledger.before_read(0), kNow), Verdict::good);  // Never filled.
  ledger.filled(0, kNow + 10s);
  EXPECT_TRUE(ledger.present(0, kNow));
  const auto expected = ledger.before_read(0);
  EXPECT_EQ(ledger.miss(0, expected, kNow + 10s - SharedLedger::kTtlMargin), Verdict::good);
  EXPECT_EQ(ledger.miss(0, expected, kNow + 9s), Verdict::lost);
  // Once: also not by somebody who asked at the same time.
  EXPECT_EQ(ledger.miss(0, expected, kNow + 9s), Verdict::good);
  EXPECT_EQ(ledger.miss(0, ledger.before_read(0), kNow + 9s), Verdict::good);
  EXPECT_FALSE(ledger.present(0, kNow));
}

TEST(SharedLedger, ADeleteUnderWayExcusesAMiss) {
  SharedLedger ledger(1);
  ledger.filled(0, kNow + 10s);
  const auto expected = ledger.before_read(0);
  ledger.updated(0, 2);
  EXPECT_EQ(ledger.miss(0, expected, kNow), Verdict::good);
}

TEST(SharedLedger, AfterAnAcknowledgedDeleteNothingOlderMayBeRead) {
  SharedLedger ledger(1);
  ledger.filled(0, kNow + 10s);
  const auto before = ledger.before_read(0);
  ledger.updated(0, 2);
  EXPECT_EQ(ledger.hit(0, ledger.before_read(0), 1), Verdict::good);  // The DEL is under way.
  ledger.deleted(0);
  EXPECT_EQ(ledger.hit(0, before, 1), Verdict::good);  // Was asked before.
  EXPECT_EQ(ledger.hit(0, ledger.before_read(0), 1), Verdict::stale);
  EXPECT_EQ(ledger.hit(0, ledger.before_read(0), 2), Verdict::good);
  EXPECT_EQ(ledger.hit(0, ledger.before_read(0), 3), Verdict::stale);  // Nobody wrote that.
}

TEST(SharedLedger, AnOldFillIsNotLetThrough) {
  SharedLedger ledger(1);
  EXPECT_TRUE(ledger.may_fill(0, 1));
  ledger.updated(0, 2);
  EXPECT_FALSE(ledger.may_fill(0, 1));
  EXPECT_TRUE(ledger.may_fill(0, 2));
}

TEST(SharedLedger, AnUnknownOutcomeIsNotJudged) {
  SharedLedger ledger(1);
  ledger.filled(0, kNow + 10s);
  const auto before = ledger.before_read(0);
  ledger.outcome_unknown(0);
  EXPECT_EQ(ledger.miss(0, before, kNow), Verdict::good);
  EXPECT_EQ(ledger.hit(0, before, 77), Verdict::good);
  EXPECT_EQ(ledger.clouded(), 1U);
}

}  // namespace
}  // namespace ringshift::drill
