/* tests/model/stop.pml - ending a run (src/base/waiting/stop.h, src/replicas/team/stopping.c).
 *
 * Three replicas meet. Any of them may fail or return instead of arriving. A replica that waits looks at the
 * word of its peer, the stop word and the peer's done word.
 *
 * Claims   All replicas end, and a replica ends well only if all arrived. The first error is reported only
 *          after it was written.
 * Mutants  NO_RETURNED_LOOK  A replica waits for ever for a peer that has returned.
 *          EARLY_READ        The loser of the claim does not wait for the record. */
#define N 3
bool arrived[N], returned[N], ok[N], left[N];
bool claimed, stopped, record;

inline stop_run() {
    if
    :: atomic { !claimed -> claimed = true }; record = true; stopped = true /* X0 */
    :: atomic { claimed -> skip };
#ifndef EARLY_READ
        stopped;
#endif
    fi;
    assert(record) /* X1: a replica that reports the error finds it written */
}

proctype replica(byte me) {
    byte peer = 0;
    if
    :: left[me] = true; stop_run(); goto end /* fails */
    :: left[me] = true; goto end             /* returns early */
    :: arrived[me] = true
    fi;
    do
    :: peer == N -> ok[me] = true; break
    :: else ->
        if
        :: arrived[peer] -> peer++
        :: !arrived[peer] && stopped -> break
#ifndef NO_RETURNED_LOOK
        :: returned[peer] ->
            if
            :: arrived[peer] -> peer++ /* the second look finds that it arrived before it returned */
            :: else -> stop_run(); break
            fi
#endif
        fi
    od;
    assert(!ok[me] || !(left[0] || left[1] || left[2]));
end:
    returned[me] = true
}

init { atomic { run replica(0); run replica(1); run replica(2) } }
