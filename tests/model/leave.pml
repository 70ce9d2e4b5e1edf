/* tests/model/leave.pml - "nobody touches a buffer after its owner has left" (src/sync/all_reduce.c): two workers that are
 * about to touch each other's buffers and the leaver's, one leaver that gives its buffer up, and whoever stops the run.
 * Stores of inside and of stop may wait in store buffers; the leaver's heavy fence empties those of all threads.
 * Claim: no worker touches once the leaver has freed. Mutants: NO_HEAVY (I2), NO_I1 (no second look at stop), NO_I3. */
bool stopped, inside[2], inside_buffered[2], touching[2], freed;

proctype worker(byte w) {
    inside_buffered[w] = true; /* I0: inside = 1, still in the store buffer */
#ifndef NO_I1
    if
    :: stopped -> goto back /* I1 */
    :: else
    fi;
#endif
    touching[w] = true;
    assert(!freed);
    touching[w] = false;
back:
    atomic { inside_buffered[w] = false; inside[w] = false } /* O0: release, after the touch */
}

proctype memory(byte w) { /* the store buffer of worker w may drain at any time */
    do
    :: atomic { inside_buffered[w] -> inside[w] = true; inside_buffered[w] = false }
    :: freed -> break
    od
}

proctype stopper() { stopped = true }

proctype leaver() {
    byte w = 0;
    stopped; /* seen in the meeting */
#ifndef NO_HEAVY
    atomic { /* I2 */
        if :: inside_buffered[0] -> inside[0] = true; inside_buffered[0] = false :: else fi;
        if :: inside_buffered[1] -> inside[1] = true; inside_buffered[1] = false :: else fi
    }
#endif
#ifndef NO_I3
    !inside[0]; /* I3, O1 */
    !inside[1];
#endif
    freed = true;
    assert(!touching[0] && !touching[1])
}

init { atomic { run worker(0); run worker(1); run memory(0); run memory(1); run stopper(); run leaver() } }
