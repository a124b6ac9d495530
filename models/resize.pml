/* Live resize of one key: claim, copy, confirm, seal (docs/protocol.md). README.md says how to read and run this.
 *
 * Two members, OLD and NEW; ROUTERS processes that serve clients; a controller that leads the key through
 * HOLD, DUAL and NEW, and back; the world, that takes away what may go at any moment. Routers serve any number of
 * commands, keys and claims expire or are evicted any number of times, connections break any number of times: what is
 * counted is only what makes the topology's steps grow (bounds below). Each atomic block is one command at one member,
 * or one decision of one process; everything else interleaves freely.
 *
 * The mover is a router whose command is MOVE: the same steps, with nothing for a client after them.
 */

/* ---- bounds ---- */
#ifndef ROUTERS
#define ROUTERS 2
#endif
#ifndef ROLLBACK
#define ROLLBACK 1          /* 1: the resize may be rolled back, from DUAL and from NEW */
#endif
#ifndef REHOLDS
#define REHOLDS 0           /* how often DUAL goes back through HOLD (a leader died, a member restarted) */
#endif
#ifndef RESTARTS
#define RESTARTS 0          /* how often a member restarts */
#endif
#ifndef LAPSES
#define LAPSES 1            /* 1: a copy may expire or be evicted */
#endif
#ifndef ORPHANS
#define ORPHANS 1           /* 1: a connection may break with a command in flight, one at a time */
#endif
#ifndef LATE_OPEN
#define LATE_OPEN 0         /* 1: an "open" of a controller may arrive late */
#endif
#ifndef STAMP_LOSS
#define STAMP_LOSS 0        /* 1: a member may evict its stamp */
#endif
#ifndef LOST
#define LOST 0              /* 1: OLD may go away for good, be given up, and come back all the same; needs ROLLBACK 0 */
#endif
#ifndef OTHER_READS
#define OTHER_READS 0       /* 1: reads that are not GET: the command, then EXISTS */
#endif

#include "state.pml"
#include "member.pml"
#include "router.pml"
#include "controller.pml"
#include "world.pml"

init {
  atomic {
    /* The key may be there or not; NEW may hold a leftover of an earlier resize. */
    if :: val[OLD] = CURRENT :: absent = true fi;
    if :: val[NEW] = STALE :: skip fi;
    topology = version(1, FORWARD, PREP);
    set_stamp(OLD, 1, CLOSED);
    set_stamp(NEW, 1, CLOSED);
    byte r = 0;
    do
    :: r < ROUTERS ->
       snapshot[r] = topology;
       connected[link(r, OLD)] = true;
       connected[link(r, NEW)] = true;
       run Router(r);
       r++
    :: else -> break
    od;
    r = 0;
    run Controller();
    run World()
  }
}
