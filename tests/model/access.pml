/* tests/model/access.pml - "nobody touches a buffer after its owner has left" (src/sync/meeting/access.h): three replicas, each of
 * which goes to the others' buffers up to twice, and gives its own up when it has seen the stop; somebody stops the run at
 * any time. A store of accessing may wait in its replica's store buffer; a leaver's heavy fence empties those of all.
 * Claim: nobody is at a buffer that has been given up, and all end.
 * Mutants: NO_HEAVY (no I2: the announcement is still in a store buffer when the leaver looks), NO_I1 (no second look at
 * stop: it goes in when the leaver has looked already), NO_I3 (the leaver does not look). */
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
        buffered[me] = true; /* I0: accessing = 1, still in the store buffer */
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
    stopped; /* seen in a meeting, sooner or later */
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

proctype memory(byte w) { /* the store buffer of replica w may drain at any time */
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
