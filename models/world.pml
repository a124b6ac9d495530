/* What happens by itself: copies, claims and stamps vanish, members restart, late commands arrive. */

inline lapse(member) {
  if :: val[member] == CURRENT -> lapsed = true :: else fi;
  val[member] = NONE
}

#if RESTARTS
/* Claims are gone, connections cut. The stamp is gone, or an old dump brought one back. The value is still there: what
 * Redis loses is not the protocol's to keep. */
inline restart(member) {
  restarts--;
  run_id[member]++;
  if :: member != source_of(topology) -> claim = 0 :: else fi;
  if
  :: stamp_step[member] = NO_STAMP; stamp_gate[member] = CLOSED
  :: skip
  :: stamp_step[member] != NO_STAMP && stamp_step[member] > 1 ->
     stamp_step[member] = stamp_step[member] - 1;
     stamp_gate[member] = CLOSED
  fi;
  i = 0;
  do :: i < ROUTERS -> connected[link(i, member)] = false; i++ :: else -> break od;
  i = 0;
  if :: orphan != 0 && orphan_member == member -> forget_orphan() :: else fi
}
#endif

#if LOST
/* With its copy, which it may bring back. To clients it lapsed. What was on its way there is gone. */
inline go_away() {
  away = true;
  if :: val[OLD] == CURRENT -> lapsed = true :: else fi;
  i = 0;
  do :: i < ROUTERS -> connected[link(i, OLD)] = false; i++ :: else -> break od;
  i = 0;
  if :: orphan != 0 && orphan_member == OLD -> forget_orphan() :: else fi
}
#endif

proctype World() {
#if LOST
  byte i;
#endif
#if RESTARTS
  byte i, restarts = RESTARTS;
#endif
#if ORPHANS
  byte at, reply;
#endif
end_world:
  do
  :: atomic { claim != 0 -> claim = 0 }                  /* its two seconds are over, or it was evicted */
#if LAPSES
  :: atomic { val[OLD] != NONE -> lapse(OLD) }
  :: atomic { val[NEW] != NONE -> lapse(NEW) }
#endif
#if ORPHANS
  :: atomic { orphan != 0 ->
       at = orphan_member;
       if
       :: orphan == WRITE -> do_write(at, orphan_version)
       :: orphan == UNLINK -> do_unlink(at, orphan_version)
       :: orphan == RESTORE -> do_restore(at, orphan_version, orphan_token, orphan_copy, reply)
       fi;
       at = 0; reply = 0; forget_orphan() }
#endif
#if LATE_OPEN
  :: atomic { late_open == 0 && phase_of(topology) == DUAL -> late_open = topology }
  :: atomic { late_open != 0 ->
       set_stamp(destination_of(late_open), step_of(late_open), OPEN); late_open = 0 }
#endif
#if STAMP_LOSS
  :: atomic { stamp_step[NEW] != NO_STAMP -> stamp_step[NEW] = NO_STAMP; stamp_gate[NEW] = CLOSED }
  :: atomic { stamp_step[OLD] != NO_STAMP -> stamp_step[OLD] = NO_STAMP; stamp_gate[OLD] = CLOSED }
#endif
#if LOST
  :: atomic { !away && !back && lost_step == 255 -> go_away() }
  :: atomic { away && lost_step != 255 -> away = false; back = true }
#endif
#if RESTARTS
  :: atomic { restarts > 0 -> restart(OLD) }
  :: atomic { restarts > 0 -> restart(NEW) }
#endif
  od
}
