/* tests/model/wait.pml - sleep and wake of src/base/waiting/wait.h: two signallers and two sleepers; one awaits first the one, then
 * the other, its neighbour both, as one that awaits everyone.
 * A signaller's store of its condition may wait in its store buffer (as on x86) until memory takes it, or until a sleeper's
 * heavy fence (membarrier) empties all buffers. The futex is in two parts, as in the kernel: who sleeps is queued if the
 * word is still SLEEPING, and a wake-up, which comes some time after the exchange of the word, takes it out of the queue.
 * Claim: everybody ends; a lost wake-up is an invalid end state.
 * Mutants: NO_HEAVY (no fence between S0 and S1), NO_S1 (sleeps without a last look), NO_W1 (nobody is woken), LATE_AWAITS
 * (says whom it awaits after its last look). */
#define EVERYONE 2
bool condition[2], buffered[2]; /* in memory; still in the store buffer */
byte parked;
bool sleeping[2];               /* the waiter's state, the futex word */
bool queued[2];                 /* in the kernel */
byte awaits[2];

#define HOLDS() (condition[0] && condition[1] || awaited != EVERYONE && condition[awaited])

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
    byte waiter = 0;
    buffered[i] = true; /* W0; then the light fence: the compiler's order alone */
#ifndef NO_W1
    if
    :: parked > 0 -> /* W1 */
#else
    if
    :: false ->
#endif
        do
        :: waiter == 2 -> break
        :: else ->
            if
            :: sleeping[waiter] ->
                if
                :: awaits[waiter] == i || awaits[waiter] == EVERYONE ->
                    if
                    :: atomic { sleeping[waiter] -> sleeping[waiter] = false }; /* W2: exchange */
                        queued[waiter] = false                                /* and futex wake */
                    :: atomic { !sleeping[waiter] -> skip }
                    fi
                :: else
                fi
            :: else
            fi;
            waiter++
        od
    :: else
    fi
}

inline sleep_until_it_holds() {
#ifndef LATE_AWAITS
    awaits[me] = awaited;
#endif
    parked++;
    do
    ::  sleeping[me] = true; /* S0 */
        heavy_fence();
#ifndef NO_S1
        if
        :: HOLDS() -> break /* S1 */
        :: else
        fi;
#endif
#ifdef LATE_AWAITS
        awaits[me] = awaited;
#endif
        if
        :: atomic { sleeping[me] -> queued[me] = true }; !queued[me] /* futex: sleeps if the word is SLEEPING */
        :: atomic { !sleeping[me] -> skip }
        fi;
        if
        :: HOLDS() -> break
        :: else
        fi
    od;
    sleeping[me] = false;
    parked--
}

proctype sleeper(byte me) {
    byte awaited = (me == 0 -> 0 : EVERYONE);
    do
    :: awaited > EVERYONE -> break
    :: else ->
        if
        :: HOLDS() -> skip
        :: else -> sleep_until_it_holds()
        fi;
        awaited = (awaited == 0 -> 1 : EVERYONE + 1)
    od
}

init { atomic { run signaller(0); run signaller(1); run sleeper(0); run sleeper(1) } }
