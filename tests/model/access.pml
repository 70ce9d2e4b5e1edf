/* tests/model/access.pml - no replica uses a buffer after its owner has left (src/sync/meeting/access.h).
 *
 * Each of three replicas uses the buffers of the others up to twice, and gives up its own buffer when it has
 * seen the stop. Another process stops the run at any time. A store of `accessing` may wait in its replica's
 * store buffer. The heavy fence of a replica that leaves drains the store buffers of all replicas.
 *
 * Claims   No replica uses a buffer that was given up. All processes end.
 * Mutants  NO_HEAVY  There is no fence I2, so the store of another replica may still be in a store buffer
 *                    when the leaving replica looks.
 *          NO_I1     A replica does not look at the stop after its store, so it may begin after the leaving
 *                    replica has looked.
 *          NO_I3     The leaving replica does not look at `accessing`. */
#define N 3
#define TURNS 2
bool stopped, accessing[N], buffered[N], touching[N], freed[N];

#define OTHERS(what) (what[(me + 1) % N] || what[(me + 2) % N])
#define DRAIN(w) if :: buffered[w] -> accessing[w] = true; buffered[w] = false :: else fi

proctype replica(byte me) {
    byte turn = 0;
    do
    :: turn == TURNS -> break
    :: else ->
        buffered[me] = true; /* I0: accessing = 1, which is still in the store buffer */
#ifndef NO_I1
        if
        :: stopped -> atomic { buffered[me] = false; accessing[me] = false }; break /* I1 */
        :: else
        fi;
#endif
        touching[me] = true;
        assert(!OTHERS(freed));
        touching[me] = false;
        atomic { buffered[me] = false; accessing[me] = false }; /* O0: release, after the touch */
        turn++
    od;
    stopped; /* every replica sees it in a meeting at some time */
#ifndef NO_HEAVY
    atomic { DRAIN(0); DRAIN(1); DRAIN(2) } /* I2 */
#endif
#ifndef NO_I3
    !accessing[0]; /* I3, O1 */
    !accessing[1];
    !accessing[2];
#endif
    freed[me] = true;
    assert(!OTHERS(touching))
}

/* The store buffer of replica w may drain at any time. */
proctype memory(byte w) {
    do
    :: atomic { buffered[w] -> accessing[w] = true; buffered[w] = false }
    :: freed[w] -> break
    od
}

proctype stopper() { stopped = true }

init {
    atomic {
        run replica(0); run replica(1); run replica(2);
        run memory(0); run memory(1); run memory(2);
        run stopper()
    }
}
