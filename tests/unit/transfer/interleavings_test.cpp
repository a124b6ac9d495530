// The races of RESIZE.md, step by step. R1 and R2 are routers (or a router and the mover) at work on the same
// key. A test stops one of them between two steps, lets the other run, and then lets the first go on: what
// was deleted must stay deleted, and no write may be lost. Where a switch of faults.h breaks a step, a second
// test shows that the very same order loses data with it.
#include "pair.h"

namespace ringshift::transfer {
namespace {

// R1 claimed and copied, then hung; its claim ran out; R2 moved the key and its client deleted it.
Restore late_restore_after_another_moved_and_deleted(Pair& pair) {
  ask(*pair.s, {"SET", "k", "v"});
  const std::string t1 = pair.tokens.next();
  EXPECT_EQ(pair.claim("k", t1), Claim::claimed);
  const Dump copy = pair.dump("k");
  pair.expire_claim("k");
  pair.pull("k");              // R2
  ask(*pair.d, {"DEL", "k"});  // R2's client
  return pair.restore("k", t1, copy);
}

TEST(Interleaving, LateRestoreOfALostClaimIsStale) {
  Pair pair;
  EXPECT_EQ(late_restore_after_another_moved_and_deleted(pair), Restore::stale);
  EXPECT_EQ(pair.on_new("k"), "(nil)") << "a deleted value came back";
}

// R1 restored, and its RESTORE is on its way a second time (its reply was lost). R2 finds the key on NEW,
// lets OLD go, seals, and its client deletes the key.
Restore restore_sent_again_after_busy(Pair& pair) {
  ask(*pair.s, {"SET", "k", "v"});
  const std::string t1 = pair.tokens.next(), t2 = pair.others.next();
  EXPECT_EQ(pair.claim("k", t1), Claim::claimed);
  const Dump copy = pair.dump("k");
  EXPECT_EQ(pair.restore("k", t1, copy), Restore::ok);
  EXPECT_EQ(pair.claim("k", t2), Claim::busy);
  EXPECT_EQ(pair.unlink("k"), 1);
#if defined(RINGSHIFT_PROTOCOL_FAULTS)
  if (!broken(Fault::no_seal_after_busy)) pair.seal("k", t2);
#else
  pair.seal("k", t2);
#endif
  ask(*pair.d, {"DEL", "k"});
  return pair.restore("k", t1, copy);
}

TEST(Interleaving, I8SealAfterBusyStopsARestoreSentAgain) {
  Pair pair;
  EXPECT_EQ(restore_sent_again_after_busy(pair), Restore::stale);
  EXPECT_EQ(pair.on_new("k"), "(nil)") << "a deleted value came back";
}

// R1 restored, NEW evicted the key, R1's claim ran out. R2 claims and copies. R1 goes on: OLD lets go, seal,
// its client deletes. The seal must have removed R2's claim as well.
Restore restore_by_another_after_the_seal(Pair& pair) {
  ask(*pair.s, {"SET", "k", "v"});
  const std::string t1 = pair.tokens.next(), t2 = pair.others.next();
  EXPECT_EQ(pair.claim("k", t1), Claim::claimed);
  EXPECT_EQ(pair.restore("k", t1, pair.dump("k")), Restore::ok);
  ask(*pair.d, {"DEL", "k"});  // Eviction.
  pair.expire_claim("k");
  EXPECT_EQ(pair.claim("k", t2), Claim::claimed);
  const Dump copy = pair.dump("k");
  EXPECT_EQ(pair.unlink("k"), 1);
  pair.seal("k", t1);
  ask(*pair.d, {"DEL", "k"});
  return pair.restore("k", t2, copy);
}

TEST(Interleaving, I8SealRemovesWhateverClaimThereIs) {
  Pair pair;
  EXPECT_EQ(restore_by_another_after_the_seal(pair), Restore::stale);
  EXPECT_EQ(pair.on_new("k"), "(nil)") << "a deleted value came back";
}

// A read that misses on OLD seals before it believes NEW: the key expired on OLD while R2 held a copy.
Restore restore_after_a_read_miss(Pair& pair) {
  ask(*pair.s, {"SET", "k", "v"});
  const std::string t2 = pair.others.next();
  EXPECT_EQ(pair.claim("k", t2), Claim::claimed);
  const Dump copy = pair.dump("k");
  ask(*pair.s, {"DEL", "k"});  // Its TTL ran out.
  EXPECT_EQ(pair.on_old("k"), "(nil)");
  pair.seal("k", "");
  EXPECT_EQ(pair.on_new("k"), "(nil)") << "the answer that the reader gets";
  return pair.restore("k", t2, copy);
}

TEST(Interleaving, I8SealAfterAReadMiss) {
  Pair pair;
  EXPECT_EQ(restore_after_a_read_miss(pair), Restore::stale);
  EXPECT_EQ(pair.on_new("k"), "(nil)") << "absent, and then back";
}

#if defined(RINGSHIFT_PROTOCOL_FAULTS)
TEST(BrokenOnPurpose, RestoreWithoutTokenBringsADeletedValueBack) {
  Pair pair;
  const Broken fault(Fault::restore_without_token);
  EXPECT_EQ(late_restore_after_another_moved_and_deleted(pair), Restore::ok);
  EXPECT_EQ(pair.on_new("k"), "v");
}

TEST(BrokenOnPurpose, NoSealAfterBusyBringsADeletedValueBack) {
  Pair pair;
  const Broken fault(Fault::no_seal_after_busy);
  EXPECT_EQ(restore_sent_again_after_busy(pair), Restore::ok);
  EXPECT_EQ(pair.on_new("k"), "v");
}

TEST(BrokenOnPurpose, CompareAndDeleteSealBringsADeletedValueBack) {
  Pair pair;
  const Broken fault(Fault::compare_and_delete_seal);
  EXPECT_EQ(restore_by_another_after_the_seal(pair), Restore::ok);
  EXPECT_EQ(pair.on_new("k"), "v");
}

TEST(BrokenOnPurpose, CompareAndDeleteSealAfterAReadMissMakesAReadGoBackInTime) {
  Pair pair;
  const Broken fault(Fault::compare_and_delete_seal);
  EXPECT_EQ(restore_after_a_read_miss(pair), Restore::ok);
  EXPECT_EQ(pair.on_new("k"), "v");
}
#endif

// The same orders of steps that the protocol forbids, done by hand: each loses data, so each rule is needed.
TEST(WrongOrder, DumpBeforeClaimRestoresAnOldCopy) {
  Pair pair;
  ask(*pair.s, {"SET", "k", "v"});
  const Dump copy = pair.dump("k");  // Too early.
  pair.pull("k");
  ask(*pair.d, {"DEL", "k"});
  const std::string token = pair.tokens.next();
  EXPECT_EQ(pair.claim("k", token), Claim::claimed);
  EXPECT_EQ(pair.restore("k", token, copy), Restore::ok);
  EXPECT_EQ(pair.on_new("k"), "v") << "the loss that this order causes";
}

TEST(WrongOrder, SealBeforeUnlinkLetsALaterClaimThrough) {
  Pair pair;
  ask(*pair.s, {"SET", "k", "v"});
  const std::string t1 = pair.tokens.next(), t2 = pair.others.next();
  EXPECT_EQ(pair.claim("k", t1), Claim::claimed);
  EXPECT_EQ(pair.restore("k", t1, pair.dump("k")), Restore::ok);
  pair.seal("k", t1);          // Too early.
  ask(*pair.d, {"DEL", "k"});  // Eviction.
  EXPECT_EQ(pair.claim("k", t2), Claim::claimed);
  const Dump copy = pair.dump("k");
  pair.unlink("k");
  ask(*pair.d, {"DEL", "k"});  // R1's client.
  EXPECT_EQ(pair.restore("k", t2, copy), Restore::ok);
  EXPECT_EQ(pair.on_new("k"), "v") << "the loss that this order causes";
}

TEST(WrongOrder, I9ATokenUsedForTwoClaimsLetsAnOldCopyIn) {
  Pair pair;
  ask(*pair.s, {"SET", "k", "v"});
  EXPECT_EQ(pair.claim("k", "same"), Claim::claimed);
  const Dump copy = pair.dump("k");
  pair.expire_claim("k");
  pair.pull("k");
  ask(*pair.d, {"DEL", "k"});
  EXPECT_EQ(pair.claim("k", "same"), Claim::claimed);  // Sent again by a client library, say.
  EXPECT_EQ(pair.restore("k", "same", copy), Restore::ok);
  EXPECT_EQ(pair.on_new("k"), "v") << "the loss that this order causes";
}

// With a fresh token the second CLAIM does not help the first copy.
TEST(Interleaving, I9FreshTokenKeepsAnOldCopyOut) {
  Pair pair;
  ask(*pair.s, {"SET", "k", "v"});
  const std::string t1 = pair.tokens.next(), t2 = pair.others.next();
  EXPECT_EQ(pair.claim("k", t1), Claim::claimed);
  const Dump copy = pair.dump("k");
  pair.expire_claim("k");
  pair.pull("k");
  ask(*pair.d, {"DEL", "k"});
  EXPECT_EQ(pair.claim("k", t2), Claim::claimed);
  EXPECT_EQ(pair.restore("k", t1, copy), Restore::stale);
  EXPECT_EQ(pair.dump("k").kind, Dump::Kind::absent) << "a claim after the seal finds nothing to copy";
  EXPECT_EQ(pair.on_new("k"), "(nil)");
}

// The claim may vanish at any step of R1; R2 then moves the key and writes. R1 must see it, and the write
// stay.
TEST(Interleaving, I1SourceImpliesUnwrittenWhereverTheClaimIsLost) {
  for (int at = 0; at <= 4; ++at) {
    SCOPED_TRACE("R2 runs before R1's step " + std::to_string(at + 1));
    Pair pair;
    ask(*pair.s, {"SET", "n", "5"});
    const std::string t1 = pair.tokens.next();
    const auto r2 = [&](int step) {
      if (step != at) return;
      pair.expire_claim("n");
      pair.pull("n");
      EXPECT_EQ(pair.on_old("n"), "(nil)") << "written on NEW and still on OLD";
      EXPECT_EQ(ask(*pair.d, {"INCR", "n"}).integer, 6);
    };
    r2(0);
    const Claim claimed = pair.claim("n", t1);
    r2(1);
    Dump copy;
    if (claimed == Claim::claimed) copy = pair.dump("n");
    r2(2);
    if (copy.kind == Dump::Kind::payload) pair.restore("n", t1, copy);
    r2(3);
    pair.unlink("n");  // R1 found the key on NEW (BUSY), restored it, or begins again after STALE: see below.
    pair.seal("n", t1);
    r2(4);
    EXPECT_EQ(pair.on_new("n"), "6") << "a write was lost";
  }
}

TEST(Interleaving, I2NoSourceWritesATransferOnlyReadsAndUnlinks) {
  Pair pair;
  ask(*pair.s, {"SET", "k", "v"});
  ask(*pair.s, {"CONFIG", "RESETSTAT"});
  pair.pull("k");
  const std::string stats = ask(*pair.s, {"INFO", "commandstats"}).text;
  for (const std::string_view writer :
       {"cmdstat_set:", "cmdstat_del:", "cmdstat_restore:", "cmdstat_expire:"}) {
    EXPECT_FALSE(stats.contains(writer)) << stats;
  }
  EXPECT_TRUE(stats.contains("cmdstat_dump:") && stats.contains("cmdstat_unlink:")) << stats;
}

// A router of epoch 1 that slept through a HOLD: none of its steps is let in any more.
TEST(Interleaving, I3EpochFenceNoStepOfAnOlderEpochIsLetIn) {
  Pair pair;
  ask(*pair.s, {"SET", "k", "v"});
  const std::string t1 = pair.tokens.next();
  ASSERT_EQ(pair.claim("k", t1), Claim::claimed);
  const Dump copy = pair.dump("k");
  topology::Fence next = pair.fence;
  ++next.epoch;
  ++next.step;
  for (const std::string& stamp : {closed_stamp(next, "new"), open_stamp(next, "new")}) {
    std::string command;
    append_set_stamp(command, next, stamp);
    ASSERT_EQ(ask_raw(*pair.d, command).text, "OK");
  }
  EXPECT_EQ(pair.restore("k", t1, copy), Restore::gate);
  EXPECT_EQ(pair.claim("other", pair.tokens.next()), Claim::gate);
  EXPECT_EQ(pair.on_new("k"), "(nil)");
  EXPECT_EQ(pair.on_old("k"), "v") << "nothing is lost: the key is where it was";
  EXPECT_EQ(pair.set_stamp(open_stamp(pair.fence, "new")).text, "STALE") << "nor can it open the gate again";
}

// NEW restarts from a dump that holds the stamp. It carries the run id of the process that died: after the
// next HOLD (which binds the stamp to the new one) nobody who has not looked again gets in.
TEST(Interleaving, I4AStampFromAnOldDumpIsBoundToADeadProcess) {
  Pair pair;
  const auto run_id = [&] {
    const std::string info = ask(*pair.d, {"INFO", "server"}).text;
    return info.substr(info.find("run_id:") + 7, 40);
  };
  pair.fence.run_ids["new"] = run_id();
  ASSERT_EQ(pair.set_stamp(open_stamp(pair.fence, "new")).text, "OK");
  ASSERT_EQ(ask(*pair.d, {"SAVE"}).text, "OK");
  pair.new_redis.kill();
  pair.new_redis.start();
  pair.d = dial(pair.new_redis);
  EXPECT_EQ(ask(*pair.d, {"GET", kStampKey}).text, open_stamp(pair.fence, "new"))
      << "the dump brought it back";
  EXPECT_NE(run_id(), pair.fence.run_ids["new"]);
  pair.fence.run_ids["new"] = run_id();  // A router that looked.
  EXPECT_EQ(pair.claim("k", pair.tokens.next()), Claim::gate);
}

// "It exists on NEW" is no reason to skip a pull: R1 restored and died before UNLINK. A writer that skips the
// steps would leave a copy on OLD that a reader still believes.
TEST(Interleaving, I6PulledIsStableOnlyACompletedPullCounts) {
  Pair pair;
  ask(*pair.s, {"SET", "k", "v"});
  const std::string t1 = pair.tokens.next();
  ASSERT_EQ(pair.claim("k", t1), Claim::claimed);
  ASSERT_EQ(pair.restore("k", t1, pair.dump("k")), Restore::ok);
  EXPECT_EQ(pair.on_old("k"), "v") << "on both: whoever writes NEW now must complete the pull first";
  pair.pull("k");  // R2, by BUSY.
  ask(*pair.d, {"SET", "k", "v2"});
  EXPECT_EQ(pair.on_old("k"), "(nil)");
  EXPECT_EQ(pair.on_new("k"), "v2");
}

// The gate closes before NEW is published: from then on no command looks at OLD, and nobody seals any more.
TEST(Interleaving, I10GateBeforeNewKeepsAnOrphanRestoreOut) {
  Pair pair;
  ask(*pair.s, {"SET", "k", "v"});
  const std::string t1 = pair.tokens.next();
  ASSERT_EQ(pair.claim("k", t1), Claim::claimed);
  const Dump copy = pair.dump("k");
  ask(*pair.s, {"UNLINK", "k"});  // Expired there; the mover's pass finds nothing.
  ASSERT_EQ(pair.set_stamp(done_stamp(pair.fence, "new")).text, "OK");
  ask(*pair.d, {"SET", "k", "new"});
  ask(*pair.d, {"DEL", "k"});
  EXPECT_EQ(pair.set_stamp(open_stamp(pair.fence, "new")).text, "STALE") << "a controller's delayed write";
  EXPECT_EQ(pair.restore("k", t1, copy), Restore::gate);
  EXPECT_EQ(pair.on_new("k"), "(nil)") << "a deleted value came back";
}

// As above, and NEW evicts its stamp before the controller's delayed "open" arrives: nothing on the member
// says any more that the step is over.
TEST(Interleaving, I10GateBeforeNewAlsoWhereTheStampWasEvicted) {
  Pair pair;
  ask(*pair.s, {"SET", "k", "v"});
  const std::string t1 = pair.tokens.next();
  ASSERT_EQ(pair.claim("k", t1), Claim::claimed);
  const Dump copy = pair.dump("k");
  ask(*pair.s, {"UNLINK", "k"});
  ASSERT_EQ(pair.set_stamp(done_stamp(pair.fence, "new")).text, "OK");
  ask(*pair.d, {"DEL", kStampKey});  // Eviction.
  EXPECT_EQ(pair.set_stamp(open_stamp(pair.fence, "new")).text, "STALE");
  ask(*pair.d, {"SET", "k", "new"});
  ask(*pair.d, {"DEL", "k"});
  EXPECT_EQ(pair.restore("k", t1, copy), Restore::gate);
  EXPECT_EQ(pair.on_new("k"), "(nil)") << "a deleted value came back";
}

TEST(WrongOrder, I10WithoutTheGateAnOrphanRestoreUndoesADelete) {
  Pair pair;
  ask(*pair.s, {"SET", "k", "v"});
  const std::string t1 = pair.tokens.next();
  ASSERT_EQ(pair.claim("k", t1), Claim::claimed);
  const Dump copy = pair.dump("k");
  ask(*pair.s, {"UNLINK", "k"});
  ask(*pair.d, {"SET", "k", "new"});  // NEW is published, the gate forgotten.
  ask(*pair.d, {"DEL", "k"});
  EXPECT_EQ(pair.restore("k", t1, copy), Restore::ok);
  EXPECT_EQ(pair.on_new("k"), "v") << "the loss that this order causes";
}

}  // namespace
}  // namespace ringshift::transfer
