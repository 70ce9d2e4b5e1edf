/* tests/model/refuse.pml - the meeting before a pause fails for some replicas (src/replicas/jobs/pause.h).
 *
 * Replica 0 begins the pause if its meeting succeeded. The others serve. If the run is stopped, they refuse
 * the pause and leave, unless replica 0 has begun it. A replica whose meeting fails by its own timeout stops
 * the run. There may be two pauses, one after the other.
 *
 * Claims   All processes end. During a pause no replica has left. Replica 0 begins no pause if a replica has
 *          left before.
 * Mutants  LATE_BEGUN    Replica 0 looks for a refusal before it announces the pause.
 *          LATE_REFUSAL  A replica that refuses looks at the state before it announces the refusal. A missing
 *                        fence would allow this.
 *          NO_DECLINED   Replica 0 does not announce that it declines the pause.
 *          NO_GO_LOOK    A replica that leaves does not look whether a pause has ended meanwhile.
 *          NO_END_WAKE   The end of a pause wakes when it is posted, and not when the state is open again.
 *
 * A replica that serves sleeps while it has nothing to do. That its last check and its falling asleep are one
 * step is shown by wait.pml. */
#define OPEN 0
#define BEGUN 1
#define DECLINED 2
#define PAUSES 2

byte go, state, seen[3];
bool refused, stopped, left[3], met[3], asleep[3];
byte arrived;

inline wake() { d_step { asleep[1] = false; asleep[2] = false } }

/* All replicas come. Then each finds out for itself whether the meeting succeeded. */
inline meet(me, k, ok) {
    arrived++;
    if
    :: arrived >= 3 * (k + 1) && !stopped -> ok = true
    :: stopped = true; wake(); ok = false /* its own timeout has passed */
    :: stopped -> ok = false
    fi
}

inline begin(ok) {
#ifdef LATE_BEGUN
    ok = !refused; /* V1 */
    state = BEGUN;
#else
    state = BEGUN; /* U0 */
    ok = !refused; /* V1 */
#endif
    if
    :: !ok ->
#ifndef NO_DECLINED
        state = DECLINED;
        wake()
#endif
    :: ok -> assert(!left[1] && !left[2])
    fi
}

proctype zero() {
    byte k = 0;
    bool ok;
    do
    :: k == PAUSES -> break
    :: else ->
        meet(0, k, ok);
        if
        :: !ok -> break
        :: else
        fi;
        begin(ok);
        if
        :: !ok -> break
        :: else
        fi;
        assert(!left[1] && !left[2]); /* the others serve */
        go++;
        wake();
        state = OPEN; /* E0 */
#ifndef NO_END_WAKE
        wake();
#endif
        if
        :: stopped -> break
        :: true
        fi;
        k++
    od
}

inline look(me, ended) {
#ifdef LATE_REFUSAL
    ended = (state != BEGUN);
    refused = true;
#else
    refused = true; /* V0 */
    ended = (state != BEGUN); /* U1, E1 */
#endif
#ifndef NO_GO_LOOK
    if
    :: go != seen[me] -> ended = false
    :: else
    fi
#endif
}

/* Serves until the end of the pause, or a refusal. */
inline serve(me, ended) {
    ended = false;
    do
    :: atomic { go != seen[me] -> seen[me] = go }; break
    :: go == seen[me] && stopped && state != BEGUN ->
        look(me, ended);
        if
        :: ended -> assert(go == seen[me]); left[me] = true; break
        :: else
        fi
    :: atomic { go == seen[me] && !(stopped && state != BEGUN) -> asleep[me] = true };
        !asleep[me]
    od
}

proctype other(byte me) {
    byte k = 0;
    bool ok, ended;
    do
    :: k == PAUSES -> break
    :: else ->
        meet(me, k, ok);
        serve(me, ended);
        if
        :: !ok || ended || stopped -> break
        :: else
        fi;
        k++
    od;
    left[me] = true
}

init { atomic { run zero(); run other(1); run other(2) } }
