/* A router. It has one operation on the key at a time: its queue keeps other commands behind it.
 *
 * What the client asked for is chosen late, when it matters: a transfer is the same for whatever follows it. The mover
 * is a router with nothing to follow. To drop an operation and begin with any other stands for all of these: an error
 * for the client, a pause before another attempt, a command that goes back to the queue since the step is over. */

#define v snapshot[me]
#define s source_of(snapshot[me])
#define d destination_of(snapshot[me])
#define up(member) connected[link(me, member)]
#define settled(version) (phase_of(version) == PREP || phase_of(version) == DONE)
#define owner (phase_of(v) == PREP -> OLD : d)           /* of a key that is settled or known */

/* The newest topology is obeyed, and acknowledged once nothing that was sent before is on its way: a command whose
 * connection broke is killed on the member first. What the router had begun is dropped: also commands that waited for
 * a connection. */
inline adopt() {
#ifndef ACKNOWLEDGE_WITHOUT_KILL
  if :: orphan != 0 && orphan_router == me -> forget_orphan() :: else fi;
#endif
#ifndef KNOWN_KEPT
  if :: step_of(v) != step_of(topology) -> known[me] = false :: else fi;
#endif
  v = topology
}

/* I4 ConnectThenRead: connected and named; then the look at the member's stamp, and if that is another one, at the
 * registry: with a newer topology there, it is adopted first. */
#if RESTARTS
#ifdef STAMP_WITHOUT_RUN_ID
#define stamp_agrees(member) (stamp_step[member] == step_of(v))
#else
#define stamp_agrees(member) (stamp_step[member] == step_of(v) && stamp_run[member] == run_id[member] && \
                              bound_run[step_of(v) * 2 + member] == run_id[member])
#endif
#else
#define stamp_agrees(member) (stamp_step[member] == step_of(v))
#endif
#if LOST && !defined(LOST_STAMP_IS_ENOUGH)
/* What came back is a process that no fence names: the registry is asked. */
#define may_serve(member) !up(member) && (member != OLD || !away) && \
                          (v == topology || ((member != OLD || !back) && stamp_agrees(member)))
#elif LOST
#define may_serve(member) !up(member) && (member != OLD || !away) && (stamp_agrees(member) || v == topology)
#elif defined(LOOK_BEFORE_CONNECT)
#define may_serve(member) !up(member)
#else
#define may_serve(member) !up(member) && (stamp_agrees(member) || v == topology)
#endif
inline serve(member) {
  invariant(4, step_of(v) >= fenced_step);               /* I4 */
  up(member) = true
}

/* What may happen to a router at any point of an operation. */
#define meanwhile(here)                                            \
  :: atomic { v != topology -> adopt(); goto over }                \
  :: atomic { may_serve(OLD) -> serve(OLD); goto here }            \
  :: atomic { may_serve(NEW) -> serve(NEW); goto here }

/* A token that is nowhere any more, of this router's own. */
inline fresh_token() {
  token[me] = 4 * (me + 1);
#ifndef TOKEN_USED_TWICE
  do
  :: token[me] == claim || token[me] == orphan_token -> token[me]++
  :: else -> break
  od
#endif
}

/* The connection breaks with `command` in flight. Its router may die with it. */
#define may_break(member) (ORPHANS && up(member) && orphan == 0)
inline break_connection(command, member) {
  orphan = command; orphan_version = v;
  if :: command == RESTORE -> orphan_token = token[me]; orphan_copy = copy[me] :: else fi;
  if
  :: orphan_router = me; up(member) = false
  :: orphan_router = DEAD; up(OLD) = false; up(NEW) = false; known[me] = false
  fi
}

inline pull_counts() {
  invariant(8, val[s] == NONE);                          /* I8: only once the source has let go */
  known[me] = true;
  pulled = true
}

#define asks_both (phase_of(v) == DUAL && !known[me] && !is_lost(v))
#define asks_one  (settled(v) || (phase_of(v) == DUAL && (known[me] || is_lost(v))))

proctype Router(byte me) {
  byte reply;
#ifdef NO_SEAL_AFTER_BUSY
  bool found_busy;
#endif
#ifdef KEEP_QUEUE
  byte queued_for;
#endif

end_idle:
  if
  /* A key with one member, or pulled already: the command goes there, or waits until the member is connected. */
  :: atomic { asks_one && up(owner) ->
#ifdef WITNESS_REACHES_NEW
       if :: phase_of(v) == DONE && val[NEW] == CURRENT -> named_assert(99, false) :: else fi;
#endif
#ifdef WITNESS_ROLLS_BACK_FROM_NEW
       if :: phase_of(v) == DONE && direction_of(v) == BACKWARD && val[OLD] == CURRENT -> named_assert(99, false)
          :: else fi;
#endif
#ifdef WITNESS_SERVES_AFTER_A_LOSS
       if :: phase_of(v) == DONE && is_lost(v) && back && val[OLD] != NONE && val[NEW] == CURRENT -> named_assert(99, false)
          :: else fi;
#endif
       invariant(6, !known[me] || phase_of(v) != DUAL || val[s] == NONE);   /* I6 PulledIsStable */
       if :: do_read(owner, v) :: do_write(owner, v) fi; goto over }
  :: atomic { asks_one && may_break(owner) -> break_connection(WRITE, owner); goto over }
  :: atomic { asks_one && !up(owner) ->
#ifdef KEEP_QUEUE
       queued_for = owner;
#endif
       goto queued }
  /* In DUAL. GET: what OLD has is the answer, or what NEW has. That NEW has nothing says nothing. */
  :: atomic { asks_both && up(s) && val[s] != NONE -> do_read(s, v); goto over }
  :: atomic { asks_both && up(d) && val[d] != NONE -> do_read(d, v); goto over }
#ifdef NEW_FIRST_ONLY
  :: atomic { asks_both && up(d) && val[d] == NONE -> do_read(d, v); goto over }
#endif
  /* A nil from OLD, or EXISTS, which goes with each CLAIM: OLD has let go. */
  :: atomic { asks_both && up(s) && val[s] == NONE ->
#ifdef READ_MISS_WITHOUT_SEAL
       if :: goto ask_new :: skip fi;
#endif
       goto seal }
#if OTHER_READS
#ifdef EXISTS_BEFORE_READ
  :: atomic { asks_both && up(s) && val[s] != NONE -> goto read_exists }
#else
  :: atomic { asks_both && up(s) -> reply = val[s]; goto read_exists }
#endif
#endif
  /* 1: CLAIM */
#if !defined(SEAL_BEFORE_EXISTS) && !defined(DUMP_BEFORE_CLAIM)
  :: atomic { asks_both && up(d) -> goto do_the_claim }
#endif
#ifdef SEAL_BEFORE_EXISTS
  :: atomic { asks_both && up(d) -> do_seal(v, 0); goto late_exists }
#endif
#ifdef DUMP_BEFORE_CLAIM
  :: atomic { asks_both && up(s) && val[s] != NONE -> copy[me] = val[s]; goto do_the_claim }
#endif
#ifdef WRITE_WITHOUT_PULL
  :: atomic { asks_both && up(d) -> do_write(d, v); goto over }
#endif
  meanwhile(end_idle)
  fi;

do_the_claim:
  atomic {
    if
    :: up(d) && asks_both ->
       fresh_token();
       do_claim(d, v, token[me], reply);
       if
       :: reply == GATE || reply == WAIT -> goto over    /* a pause, then from the start */
       :: reply == BUSY ->
          token[me] = 0; copy[me] = NONE; reply = 0;
#ifdef NO_SEAL_AFTER_BUSY
          found_busy = true;
#endif
#ifdef EXISTS_ON_NEW_IS_ENOUGH
          goto ask_new;
#endif
          goto unlink
       :: reply == OK -> reply = 0
       fi
    :: else -> goto over
    fi
  };
#ifdef DUMP_BEFORE_CLAIM
  goto restore;
#endif

dump:
  if
  :: atomic { up(s) ->                                   /* 2: DUMP */
       copy[me] = val[s];
       if :: copy[me] == NONE -> goto seal :: else -> goto restore fi }
  :: atomic { !up(s) -> goto over }
  meanwhile(dump)
  fi;

restore:
  if
  :: atomic { up(d) ->                                   /* 3: RESTORE */
#ifdef WITNESS_RESTORES_AGAIN
       if :: orphan == RESTORE && orphan_token == token[me] && claim == token[me] && lets_in(d, v) ->
             named_assert(99, false) :: else fi;
#endif
       do_restore(d, v, token[me], copy[me], reply);
       copy[me] = NONE;
       if
       :: reply == GATE || reply == GONE -> goto over
       :: reply == BUSY ->
#ifdef NO_SEAL_AFTER_BUSY
          found_busy = true;
#endif
          skip
       :: reply == OK
       fi;
       reply = 0;
#ifdef SEAL_BEFORE_UNLINK
       goto early_seal;
#endif
       goto unlink }
  :: atomic { may_break(d) -> break_connection(RESTORE, d);
       if :: orphan_router == me -> goto restore         /* what became of it is unknown: again, with its token */
          :: goto over fi }
  meanwhile(restore)
  fi;

#ifdef SEAL_BEFORE_UNLINK
early_seal:
  if
  :: atomic { up(d) -> do_seal(v, token[me]) }
  :: atomic { !up(d) -> goto over }
  meanwhile(early_seal)
  fi;
#endif

unlink:
  if
  :: atomic { up(s) ->                                   /* 4: UNLINK */
       do_unlink(s, v);
#ifdef SEAL_BEFORE_UNLINK
       goto ask_new;
#endif
#ifdef NO_SEAL_AFTER_BUSY
       if :: found_busy -> goto ask_new :: else fi;
#endif
       goto seal }
  :: atomic { may_break(s) -> break_connection(UNLINK, s); goto over }
  meanwhile(unlink)
  fi;

seal:
  if
  :: atomic { up(d) ->                                   /* 5: the seal, and pipelined behind it a command or none */
       do_seal(v, token[me]);
       token[me] = 0; copy[me] = NONE;
       pull_counts();
       if :: goto behind_seal :: goto over fi }
  meanwhile(seal)
  fi;

behind_seal:                                             /* on its way: no topology is acknowledged before its reply */
  if
  :: atomic { up(d) -> if :: do_read(d, v) :: do_write(d, v) fi; goto over }
  :: atomic { may_break(d) -> break_connection(WRITE, d); goto over }
  :: atomic { !up(d) -> goto over }
  fi;

queued:                                                  /* for a member that is not connected */
  if
#ifdef KEEP_QUEUE
  :: atomic { up(queued_for) -> do_write(queued_for, v); goto over }
  :: atomic { v != topology -> adopt(); goto queued }
  :: atomic { may_serve(queued_for) -> serve(queued_for); goto queued }
#else
  :: atomic { up(owner) -> if :: do_read(owner, v) :: do_write(owner, v) fi; goto over }
  meanwhile(queued)                                      /* another topology: dropped, TRYAGAIN */
#endif
  fi;

#if OTHER_READS
/* A read that is not GET, and EXISTS behind it. What the read said stands, for then, if EXISTS finds the key later. */
read_exists:
  if
#ifdef EXISTS_BEFORE_READ
  :: atomic { up(s) -> do_read(s, v); goto over }
#else
  :: atomic { up(s) && val[s] != NONE -> linearizable(reply == CURRENT); goto over }
  :: atomic { up(s) && val[s] == NONE -> reply = 0; goto seal }
#endif
  :: atomic { !up(s) -> goto over }
  fi;
#endif

#if defined(READ_MISS_WITHOUT_SEAL) || defined(EXISTS_ON_NEW_IS_ENOUGH) || defined(SEAL_BEFORE_UNLINK) ||     defined(NO_SEAL_AFTER_BUSY) || defined(SEAL_BEFORE_EXISTS)
ask_new:                                                 /* a pull that counts without the seal at its end */
  if
  :: atomic { up(d) -> token[me] = 0; copy[me] = NONE; known[me] = true;
       if :: do_read(d, v) :: do_write(d, v) fi; goto over }
  meanwhile(ask_new)
  fi;
#endif
#ifdef SEAL_BEFORE_EXISTS
late_exists:
  if
  :: atomic { up(s) && val[s] == NONE -> goto ask_new }
  :: atomic { up(s) && val[s] != NONE -> goto do_the_claim }
  meanwhile(late_exists)
  fi;
#endif

over:
  atomic {
    token[me] = 0; copy[me] = NONE; reply = 0;
#ifdef NO_SEAL_AFTER_BUSY
    found_busy = false;
#endif
#ifdef KEEP_QUEUE
    queued_for = 0;
#endif
  };
  goto end_idle
}
