#include "drill/ledger.h"

#include <gtest/gtest.h>

namespace ringshift::drill {
namespace {

TEST(KeyLedger, EveryAnswerIsDetermined) {
  KeyLedger ledger(1);
  EXPECT_EQ(ledger.miss(0), Verdict::good) << "nothing was written yet";
  ledger.set_acknowledged(0);
  EXPECT_EQ(ledger.hit(0, 1), Verdict::good);
  EXPECT_EQ(ledger.hit(0, 2), Verdict::stale) << "a version that the origin never had";

  ledger.updated(0, 2);
  EXPECT_EQ(ledger.hit(0, 1), Verdict::good) << "the DEL is not acknowledged yet";
  ledger.deleted_acknowledged(0);
  EXPECT_EQ(ledger.miss(0), Verdict::good);
  EXPECT_EQ(ledger.hit(0, 1), Verdict::stale) << "a deleted value came back";
  EXPECT_EQ(ledger.hit(0, 2), Verdict::stale) << "nobody wrote version 2";

  ledger.set_acknowledged(0);
  EXPECT_EQ(ledger.hit(0, 2), Verdict::good);
  EXPECT_EQ(ledger.hit(0, 1), Verdict::stale);
  EXPECT_EQ(ledger.miss(0), Verdict::lost);
  EXPECT_EQ(ledger.miss(0), Verdict::good) << "one loss is one loss";
}

TEST(KeyLedger, UnknownOutcomesAreNotJudged) {
  KeyLedger ledger(2);
  ledger.set_acknowledged(0);
  ledger.outcome_unknown(0);
  EXPECT_EQ(ledger.miss(0), Verdict::good);
  EXPECT_EQ(ledger.hit(0, 9), Verdict::good);
  EXPECT_TRUE(ledger.clouded(0));
  EXPECT_FALSE(ledger.clouded(1));
}

TEST(Register, FloorAndCeiling) {
  Register probe;
  EXPECT_EQ(probe.read(0, false, 0), Verdict::good);
  probe.acknowledged(probe.next());
  const std::uint64_t floor = probe.floor();
  EXPECT_EQ(floor, 1U);
  EXPECT_EQ(probe.read(floor, true, 1), Verdict::good);
  EXPECT_EQ(probe.read(floor, true, 0), Verdict::stale);
  EXPECT_EQ(probe.read(floor, true, 2), Verdict::stale) << "never sent";
  EXPECT_EQ(probe.read(floor, false, 0), Verdict::lost);
  EXPECT_EQ(probe.next(), 2U);
  EXPECT_EQ(probe.read(floor, true, 2), Verdict::good) << "sent, not acknowledged";
  probe.outcome_unknown();
  EXPECT_EQ(probe.read(floor, true, 0), Verdict::good);
}

TEST(Counter, LossesAndExcess) {
  Counter counter;
  for (std::uint64_t i = 0; i < 5; ++i) counter.incremented(counter.floor(), i + 1);
  EXPECT_EQ(counter.lost(5), 0U);
  EXPECT_EQ(counter.lost(3), 2U);
  EXPECT_EQ(counter.excess(6), 1U);
  counter.outcome_unknown();
  EXPECT_EQ(counter.excess(6), 0U);
  EXPECT_EQ(counter.lost(6), 0U);
  counter.incremented(counter.floor(), 2);  // The counter fell back: 4 of 5 are gone, whatever comes later.
  EXPECT_EQ(counter.lost(100), 4U);
}

}  // namespace
}  // namespace ringshift::drill
