/* tests/model/wait.pml - sleep and wake of src/base/wait.h: two signallers, one sleeper that awaits first one, then the other.
 * A signaller's store of its condition may wait in its store buffer (as on x86) until memory takes it, or until the sleeper's
 * heavy fence (membarrier) empties all buffers. Labels are those of wait.h and wait.c.
 * Claim: everybody ends; a lost wake-up is an invalid end state. Mutants: NO_HEAVY, NO_S1, NO_W1. */
bool condition[2], buffered[2]; /* in memory; still in the store buffer */
byte parked;
bool sleeping;                  /* the seat's state, the futex word */

inline drain(i) { if :: buffered[i] -> condition[i] = true; buffered[i] = false :: else fi }
inline heavy_fence() {
#ifndef NO_HEAVY
    atomic { drain(0); drain(1) }
#else
    skip
#endif
}

active [2] proctype memory() { /* one store buffer each: it drains whenever it likes */
    atomic { buffered[_pid] -> drain(_pid) }
    unless (condition[_pid])
}

proctype signaller(byte i) {
    buffered[i] = true; /* W0; then the light fence: the compiler's order alone */
#ifndef NO_W1
    if
    :: parked > 0 -> /* W1 */
#else
    if
    :: false ->
#endif
        atomic { if :: sleeping -> sleeping = false /* W2: exchange and futex wake */ :: else fi }
    :: else
    fi
}

proctype sleeper() {
    byte i = 0;
    do
    :: i == 2 -> break
    :: else ->
        if
        :: condition[i] -> i++
        :: else ->
            parked++;
again:      sleeping = true; /* S0 */
            heavy_fence();
#ifndef NO_S1
            if
            :: condition[i] -> goto awake /* S1 */
            :: else
            fi;
#endif
            !sleeping; /* futex: returns when the word is not SLEEPING */
            if
            :: condition[i] -> goto awake
            :: else -> goto again
            fi;
awake:      sleeping = false;
            parked--;
            i++
        fi
    od
}

init { atomic { run signaller(0); run signaller(1); run sleeper() } }
