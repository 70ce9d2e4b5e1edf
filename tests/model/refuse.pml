/* tests/model/refuse.pml - a meeting that fails for some and not for others, before a pause (src/replicas/team/pause.h): replica 0 begins it if
 * its meeting went well; the others serve if theirs did, or leave. Who fails stops the run first. Two pauses, one after the other.
 * Claim: everybody ends; while there is a pause nobody has left; replica 0 begins none when somebody has left before.
 * Mutants: LATE_BEGUN (replica 0 looks for a refusal before it says that it begins), LATE_REFUSAL (the other side the same: what a
 * missing fence would do), NO_DECLINED, NO_GO_LOOK (who leaves does not look whether a pause has ended meanwhile). */
#define OPEN 0
#define BEGUN 1
#define DECLINED 2
#define PAUSES 2

byte go, state, seen[3];
bool refused, stopped, left[3], met[3];
byte arrived;

/* All come; then each finds out for itself that it went well, or not. */
inline meet(me, k, ok) {
    arrived++;
    if
    :: arrived >= 3 * (k + 1) && !stopped -> ok = true
    :: stopped = true; ok = false /* too late, by its own clock */
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
        state = DECLINED
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
        assert(!left[1] && !left[2]); /* they serve */
        go++;
        state = OPEN; /* E0 */
        if
        :: stopped -> break
        :: true
        fi;
        k++
    od
}

inline look(me, gone) {
#ifdef LATE_REFUSAL
    gone = (state != BEGUN);
    refused = true;
#else
    refused = true; /* V0 */
    gone = (state != BEGUN); /* U1, E1 */
#endif
#ifndef NO_GO_LOOK
    if
    :: go != seen[me] -> gone = false
    :: else
    fi
#endif
}

/* Until the end of the pause, or a refusal. */
inline serve(me, gone) {
    gone = false;
    do
    :: atomic { go != seen[me] -> seen[me] = go }; break
    :: go == seen[me] && stopped && state != BEGUN ->
        look(me, gone);
        if
        :: gone -> assert(go == seen[me]); left[me] = true; break
        :: else
        fi
    od
}

proctype other(byte me) {
    byte k = 0;
    bool ok, gone;
    do
    :: k == PAUSES -> break
    :: else ->
        meet(me, k, ok);
        serve(me, gone);
        if
        :: !ok || gone || stopped -> break
        :: else
        fi;
        k++
    od;
    left[me] = true
}

init { atomic { run zero(); run other(1); run other(2) } }
