/* The controller leads the key through its phases. A leader that dies is followed by one that goes on where the
 * registry says; a HOLD that may be incomplete is begun again in a new step (REHOLDS). */

#define acknowledged(router) (snapshot[router] == topology)
#if ROUTERS == 1
#define all_acknowledged acknowledged(0)
#elif ROUTERS == 2
#define all_acknowledged (acknowledged(0) && acknowledged(1))
#else
#define all_acknowledged (acknowledged(0) && acknowledged(1) && acknowledged(2))
#endif

inline publish(phase) { topology = version(step, direction, phase) }

inline bind_run_ids() {
#if RESTARTS
  bound_run[step * 2 + OLD] = run_id[OLD];
  bound_run[step * 2 + NEW] = run_id[NEW]
#else
  skip
#endif
}

/* CLIENT KILL on one member: who has not acknowledged, and what dead routers left. Routers that have acknowledged
 * killed their own broken connections before (router.pml, adopt). */
inline fence(member) {
  atomic {
    r = 0;
    do
    :: r < ROUTERS ->
#ifndef NO_FENCE
       if :: !allowed[r] -> connected[link(r, member)] = false :: else fi;
#endif
       r++
    :: else -> break
    od;
    r = 0;
    if
    :: orphan != 0 && orphan_member == member ->
       if
#ifndef ORPHANS_OF_THE_DEAD_LIVE
       :: orphan_router == DEAD -> forget_orphan()
#endif
#ifndef NO_FENCE
       :: orphan_router != DEAD && !allowed[orphan_router] -> forget_orphan()
#endif
       :: else
       fi
    :: else
    fi
  }
}

/* HOLD in a new step, then DUAL. */
inline hold_then_dual() {
  atomic { step++; bind_run_ids();
#if LOST
    if
    :: step >= lost_step                                 /* only the living get stamps */
    :: step < lost_step && away -> goto lose             /* it does not answer */
    :: else -> set_stamp(OLD, step, CLOSED)
    fi
  };
  atomic { set_stamp(NEW, step, CLOSED)
#elif !defined(STAMP_AFTER_FENCING)
    set_stamp(OLD, step, CLOSED)
  };
  atomic { set_stamp(NEW, step, CLOSED)
#endif
  };
#ifndef NO_HOLD
  atomic { publish(HOLD) };
  if                                                     /* all have acknowledged, or the time is up */
  :: atomic { all_acknowledged -> r = 0; do :: r < ROUTERS -> allowed[r] = true; r++ :: else -> break od; r = 0 }
  :: atomic { !all_acknowledged ->
       r = 0; do :: r < ROUTERS -> allowed[r] = acknowledged(r); r++ :: else -> break od; r = 0 }
  fi;
#if LOST
  if
  :: atomic { away && step < lost_step -> goto lose }
  :: atomic { away && step >= lost_step }                /* nothing there to cut */
  :: atomic { !away }; fence(OLD)
  fi;
#else
  fence(OLD);
#endif
  fence(NEW);
#endif
#ifdef STAMP_AFTER_FENCING
  atomic { set_stamp(OLD, step, CLOSED) };
  atomic { set_stamp(NEW, step, CLOSED) };
#endif
  atomic {                                               /* the barrier is complete: all that is older is over */
    r = 0; do :: r < ROUTERS -> allowed[r] = false; r++ :: else -> break od; r = 0;
    fenced_step = step; source = (is_lost(topology) -> NEITHER : direction); pulled = false;
    if :: !again -> claim = 0 :: else fi;                /* the destination is another one */
#if LOST
    if :: is_lost(topology) && val[OLD] == CURRENT -> lapsed = true :: else fi;   /* given up, should it be there */
#endif
    set_stamp(other(direction), step, OPEN) };
  atomic { publish(DUAL);
    invariant(11, direction == BACKWARD || again || val[NEW] == NONE) }   /* I0 CleanTarget */
}

proctype Controller() {
  byte step = 1, direction = FORWARD, r = 0;
  bool allowed[ROUTERS], again;
  byte reholds = REHOLDS;

#ifndef NO_PURGE
  atomic { val[NEW] = NONE };                            /* PREP: leftovers go; a rollback never does this */
#endif
  hold_then_dual();

dual:
  if
  :: atomic { val[direction] == NONE && !away || is_lost(topology) -> /* a pass of the mover found nothing at the source */
#ifdef NO_GATE
       goto settle
#endif
     };
     atomic { set_stamp(other(direction), step, FINAL) };
settle:
     atomic { publish(DONE) }
  :: atomic { reholds > 0 -> reholds--; again = true };
     hold_then_dual();
     goto dual
#if LOST
  :: atomic { away && lost_step == 255 -> goto lose }
#endif
#if ROLLBACK
  :: atomic { direction == FORWARD -> direction = BACKWARD; again = false };
     hold_then_dual();
     goto dual
#endif
  fi;

#if ROLLBACK
  if
  :: atomic { direction == FORWARD -> direction = BACKWARD; again = false };
     hold_then_dual();
     goto dual
  :: atomic { direction == BACKWARD || direction == FORWARD }
  fi;
#endif
  goto end_finished;
#if LOST
lose:                                                    /* an operator says so: through HOLD, without it */
  atomic { lost_step = step + 1; again = true };
  hold_then_dual();
  goto dual;
#endif
end_finished: false
}
