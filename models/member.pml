/* What a member does: each of these is atomic there, for Redis runs one command, or one script, at a time. `sent` is
 * the version under which the command was sent. */

/* The stamp's script: not over a later step, nor "open" over this step's "done", or over nothing of this step. */
inline set_stamp(member, step, gate) {
  if
  :: stamp_step[member] != NO_STAMP && stamp_step[member] > step
#ifndef TWO_STATE_STAMP
  :: stamp_step[member] == step && stamp_gate[member] == FINAL && gate != FINAL
#endif
#ifndef OPEN_OVER_NO_STAMP
  :: stamp_step[member] != step && gate == OPEN
#endif
  :: else ->
     stamp_step[member] = step;
     stamp_gate[member] = gate;
#if RESTARTS
     stamp_run[member] = bound_run[(step) * 2 + member];
#endif
  fi
}

/* rs:stamp == "epoch.step.open.run_id", as the sender's snapshot has it. */
#if RESTARTS
#define lets_in(member, sent) (stamp_step[member] == step_of(sent) && stamp_gate[member] == OPEN && \
                            stamp_run[member] == bound_run[step_of(sent) * 2 + member])
#else
#define lets_in(member, sent) (stamp_step[member] == step_of(sent) && stamp_gate[member] == OPEN)
#endif

#define epoch_fence(sent) invariant(3, step_of(sent) >= fenced_step)              /* I3 EpochFence */

/* Tokens say whose they are: 4, 5, 6 are router 0's, 8, 9, 10 are router 1's, and so on. */
#define whose(t) ((t) / 4)

inline do_claim(member, sent, its_token, reply) {
  epoch_fence(sent);
  if
  :: !lets_in(member, sent) -> reply = GATE
  :: lets_in(member, sent) && val[member] != NONE -> reply = BUSY
  :: lets_in(member, sent) && val[member] == NONE && claim != 0 && whose(claim) != whose(its_token) -> reply = WAIT
  :: else -> claim = its_token; reply = OK               /* also in place of an own one that was given up */
  fi
}

inline do_restore(member, sent, its_token, its_copy, reply) {
  epoch_fence(sent);
  if
  :: !lets_in(member, sent) -> reply = GATE
#ifndef RESTORE_WITHOUT_TOKEN
  :: lets_in(member, sent) && claim != its_token -> reply = GONE
  :: lets_in(member, sent) && claim == its_token && val[member] != NONE -> reply = BUSY
#else
  :: lets_in(member, sent) && val[member] != NONE -> reply = BUSY
#endif
  :: else ->
     invariant(8, !pulled);                              /* I8 SealAfterSourceGone: no RESTORE after it */
     invariant(9, its_copy == CURRENT);                   /* I9 FreshToken: the copy is younger than the claim */
     invariant(10, phase_of(topology) != DONE);            /* I10 GateBeforeNew: none once NEW is published */
     val[member] = its_copy;
     reply = OK
  fi
}

inline do_unlink(member, sent) {
  epoch_fence(sent);
  val[member] = NONE
}

inline do_seal(sent, its_token) {
  epoch_fence(sent);
#ifdef COMPARE_AND_DELETE_SEAL
  if :: its_token == 0 || claim == its_token -> claim = 0 :: else fi
#else
  claim = 0
#endif
}

/* ---- commands of clients ---- */

inline do_read(member, sent) {
  epoch_fence(sent);
  told(val[member])
}

/* A read-modify-write, such as INCR, which says more than SET does; or DEL. */
inline do_write(member, sent) {
  epoch_fence(sent);
  invariant(2, member != source);                                           /* I2 NoSourceWrites */
  invariant(1, source == NEITHER || val[source] == NONE);                   /* I1 SourceImpliesUnwritten */
  if
  :: told(val[member]); outdate(); val[member] = CURRENT; absent = false
  :: outdate(); val[member] = NONE; absent = true
  fi
}
