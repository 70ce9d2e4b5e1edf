/* tests/model/stop.pml - ending a run (src/base/waiting/stop.h, team.c): three replicas meet; any of them may fail or return
 * instead of coming; waiters look at the word of the peer, the stop word and the peer's done word.
 * Claim: everybody ends, and nobody ends well unless all came; the first error is notified only when it is written.
 * Mutants: NO_RETURNED_LOOK (waits for ever), EARLY_READ (the loser of the claim does not wait for the record). */
#define N 3
bool came[N], returned[N], ok[N], gone[N];
bool claimed, stopped, record;

inline stop_run() {
    if
    :: atomic { !claimed -> claimed = true }; record = true; stopped = true /* X0 */
    :: atomic { claimed -> skip };
#ifndef EARLY_READ
        stopped;
#endif
    fi;
    assert(record) /* X1: whoever tells the error finds it written */
}

proctype replica(byte me) {
    byte peer = 0;
    if
    :: gone[me] = true; stop_run(); goto end /* fails */
    :: gone[me] = true; goto end             /* returns early */
    :: came[me] = true
    fi;
    do
    :: peer == N -> ok[me] = true; break
    :: else ->
        if
        :: came[peer] -> peer++
        :: !came[peer] && stopped -> break
#ifndef NO_RETURNED_LOOK
        :: returned[peer] ->
            if
            :: came[peer] -> peer++ /* it came and has returned: looked at again */
            :: else -> stop_run(); break
            fi
#endif
        fi
    od;
    assert(!ok[me] || !(gone[0] || gone[1] || gone[2]));
end:
    returned[me] = true
}

init { atomic { run replica(0); run replica(1); run replica(2) } }
