/* What the members, the registry and the routers hold, and what only the proof knows (ghosts). */

#define OLD 0
#define NEW 1
#define other(member) (1 - (member))

/* ---- a copy of the key's value ----
 * Only one thing matters of a value: whether it is the one that the last write left. Each write makes every other
 * copy, also those on their way, STALE; so values need no numbers, and commands no count. */
#define NONE    0
#define CURRENT 1
#define STALE   2

/* ---- the topology, as the registry publishes it ---- */
#define PREP 0              /* settled: the key is on the member it came from */
#define HOLD 1
#define DUAL 2
#define DONE 3              /* phase NEW of the document: settled on the member it moved to */
#define FORWARD  0          /* from OLD to NEW */
#define BACKWARD 1
#define version(step, direction, phase) ((step) * 8 + (direction) * 4 + (phase))
#define step_of(v)      ((v) >> 3)
#define direction_of(v) (((v) >> 2) & 1)
#define phase_of(v)     ((v) & 3)
#define source_of(v)      direction_of(v)        /* FORWARD: OLD, BACKWARD: NEW */
#define destination_of(v) other(direction_of(v))
#define owner_of(v) (phase_of(v) == PREP -> OLD : destination_of(v))   /* not for HOLD and DUAL */

/* ---- a member's stamp ---- */
#define CLOSED 0
#define OPEN   1
#define FINAL  2            /* "done": closed for good; no "open" of the same step replaces it */
#define NO_STAMP 255

/* ---- answers of the scripts ---- */
#define OK    1
#define BUSY  2
#define WAIT  3
#define GONE  4             /* "STALE": the claim is not ours any more */
#define GATE  5

/* ---- members ---- */
byte val[2];                /* the key */
byte claim;                 /* rs:claim:{k} on the destination, 0 for none; nobody looks at one on the source */
byte stamp_step[2] = NO_STAMP;
byte stamp_gate[2];
#if RESTARTS
byte run_id[2];             /* grows with each restart */
byte stamp_run[2];
byte bound_run[16];         /* in the document of each step: the run ids it is bound to; index step * 2 + member */
#endif

/* ---- the registry ---- */
byte topology;
#if LOST
/* OLD is away; or it came back, as another process with the data it had, which no fence names. From the step
 * lost_step on the topology says that it is lost: a key whose source is lost is settled at its destination in DUAL. */
bool away, back;
byte lost_step = 255;
#define is_lost(version) (direction_of(version) == FORWARD && step_of(version) >= lost_step)
#else
#define away false
#define is_lost(version) false
#endif

/* ---- routers ---- */
#define link(router, member) ((router) * 2 + (member))
byte snapshot[ROUTERS];     /* the version that a router obeys and has acknowledged */
bool connected[ROUTERS * 2];/* a connection that serves */
bool known[ROUTERS];        /* the key was pulled in the snapshot's step */
byte token[ROUTERS];        /* of the CLAIM of its transfer, 0 for none */
byte copy[ROUTERS];         /* what its DUMP read */

/* ---- a command in flight on a connection that broke: the member executes it at any later moment, or never ---- */
#define WRITE   1           /* of a client */
#define UNLINK  2
#define RESTORE 3
#define DEAD 255            /* its router died as well */
byte orphan;                /* 0 for none */
byte orphan_token, orphan_copy, orphan_version, orphan_router;
#define orphan_member (orphan == UNLINK -> source_of(orphan_version) : \
                       (phase_of(orphan_version) == PREP -> OLD : destination_of(orphan_version)))

#if LATE_OPEN
byte late_open;             /* the version whose gate it opens, 0 for none */
#endif

/* ---- ghosts ---- */
bool absent;                /* the truth is that there is no value */
bool lapsed;                /* a copy lapsed since the last write: to find nothing is right as well */
byte fenced_step = 1;       /* the newest step whose HOLD is complete */
#define NEITHER 2
byte source = NEITHER;      /* since that HOLD is complete: the member that is only read and unlinked */
bool pulled;                /* a pull of the newest step was completed by somebody */

/* The invariants of docs/protocol.md, by number; `run` gives the name of the one that fails. With CLIENT_VIEW only what
 * clients can see is asserted, which shows that a broken rule does harm and is not only a rule. */
#define named_assert(number, holds) assert((holds) || 100 + number == 0)
#define linearizable(holds) named_assert(0, holds)
#ifdef CLIENT_VIEW
#define invariant(number, holds) skip
#else
#define invariant(number, holds) named_assert(number, holds)
#endif

#define outdate_one(x) x = (x == CURRENT -> STALE : x)
inline outdate() {
  outdate_one(val[OLD]); outdate_one(val[NEW]); outdate_one(orphan_copy); outdate_one(copy[0]);
#if ROUTERS > 1
  outdate_one(copy[1]);
#endif
#if ROUTERS > 2
  outdate_one(copy[2]);
#endif
  lapsed = false
}

/* A client is told this value. That there is none is right if it is so, or if a copy lapsed; from now on it is so. */
inline told(value) {
  if
  :: value != NONE -> linearizable(value == CURRENT)     /* nothing stale, nothing came back */
  :: value == NONE && absent
  :: value == NONE && !absent ->
     linearizable(lapsed);                               /* nothing was lost */
     absent = true;
     outdate()
  fi
}

inline forget_orphan() { orphan = 0; orphan_token = 0; orphan_copy = NONE; orphan_version = 0; orphan_router = 0 }
