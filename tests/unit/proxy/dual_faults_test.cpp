// The switches of transfer/faults.h at the DualRouter: what is safe with the protocol loses data without it.
#include "dual_world.h"

#if defined(RINGSHIFT_PROTOCOL_FAULTS)
namespace ringshift::proxy {
namespace {

// A write in DUAL that does not pull: the value on OLD is not counted, and a read there finds the past.
TEST(BrokenOnPurpose, WriteWithoutPullLosesWrites) {
  DualWorld world;
  world.ask("a", {"SET", world.key, "5"});
  world.hold_drain_dual();
  transfer::set_broken(transfer::Fault::write_without_pull, true);
  const std::string incremented = world.run({"INCR", world.key});
  const std::string read = world.run({"GET", world.key});
  transfer::set_broken(transfer::Fault::write_without_pull, false);
  EXPECT_EQ(incremented, ":1\r\n") << "the loss: it should be 6";
  EXPECT_EQ(read, "$1\r\n5\r\n") << "and a read after the write that does not see it";
}

TEST(BrokenOnPurpose, TheSameOrderWithPullsIsSafe) {
  DualWorld world;
  world.ask("a", {"SET", world.key, "5"});
  world.hold_drain_dual();
  EXPECT_EQ(world.run({"INCR", world.key}), ":6\r\n");
  EXPECT_EQ(world.run({"GET", world.key}), "$1\r\n6\r\n");
}

// The router's own pull that found the key on NEW, without the seal: the claim of a dead mover stays, and its
// RESTORE, sent again, undoes a DEL.
TEST(BrokenOnPurpose, NoSealAfterBusyUndoesADelete) {
  for (const bool on : {false, true}) {
    DualWorld world;
    world.ask("a", {"SET", world.key, "v"});
    world.hold_drain_dual();
    const std::string stamp = transfer::open_stamp(world.topology.fence, "b"), token = world.tokens.next();
    std::string claim, dump, restore;
    transfer::append_claim(claim, world.key, stamp, token);
    ASSERT_EQ(transfer::read_claim(world.raw("b", claim)), transfer::Claim::claimed);
    transfer::append_dump(dump, world.key);
    const transfer::Dump copy = transfer::read_dump(world.raw("a", dump));
    transfer::append_restore(restore, world.key, stamp, token, copy.ttl_ms, copy.payload);
    ASSERT_EQ(transfer::read_restore(world.raw("b", restore)), transfer::Restore::ok);
    transfer::set_broken(transfer::Fault::no_seal_after_busy, on);
    EXPECT_EQ(world.run({"DEL", world.key}), ":1\r\n");
    transfer::set_broken(transfer::Fault::no_seal_after_busy, false);
    const auto again = transfer::read_restore(world.raw("b", restore));
    EXPECT_EQ(again, on ? transfer::Restore::ok : transfer::Restore::stale);
    EXPECT_EQ(world.get("b", world.key), on ? "v" : "(nil)");
  }
}
}  // namespace
}  // namespace ringshift::proxy
#endif
