/* tests/model/wait.pml - sleeping and waking (src/base/waiting/wait.h).
 *
 * There are two signallers and two sleepers. The first sleeper awaits one signaller and then the other. The
 * second sleeper awaits both. A signaller's store of its condition may wait in its store buffer (as on x86)
 * until memory takes it, or until the heavy fence (membarrier) of a sleeper drains all buffers. The futex has
 * two parts, as in the kernel. A sleeper is queued if the word is still SLEEPING. A wake-up comes some time
 * after the exchange of the word, and takes the sleeper out of the queue.
 *
 * Claims   All processes end. A lost wake-up would be an invalid end state.
 * Variants OFTEN        A wait queue of threads that sleep often (DTI_SLEEPS_OFTEN): a signaller's own fence
 *                       drains its store buffer, and a sleeper's fence drains only that of the sleeper. The
 *                       stores of a sleeper are not buffered here, because a fence follows S0 at once.
 * Mutants  NO_HEAVY     There is no fence between S0 and S1.
 *          OFTEN+NO_LIGHT  There is no fence between W0 and W1.
 *          OFTEN+NO_OWN    There is no fence between S0 and S1.
 *          NO_S1        A sleeper sleeps without a last look at the condition.
 *          NO_W1        A signaller wakes no sleeper.
 *          LATE_AWAITS  A sleeper writes which signaller it awaits after its last look. */
#define EVERYONE 2
bool condition[2];
bool buffered[2];               /* the store of the condition is in the store buffer */
byte parked;
bool sleeping[2];               /* the waiter's state, the futex word */
bool queued[2];                 /* in the kernel */
byte awaits[2];

#define HOLDS() (condition[0] && condition[1] || awaited != EVERYONE && condition[awaited])

inline drain(i) { if :: buffered[i] -> condition[i] = true; buffered[i] = false :: else fi }
inline heavy_fence() {
#if defined(NO_HEAVY) || defined(OFTEN)
    skip
#else
    atomic { drain(0); drain(1) }
#endif
}
inline light_fence(i) {
#if defined(OFTEN) && !defined(NO_LIGHT)
    atomic { drain(i) }
#else
    skip /* it orders the compiler only */
#endif
}

/* Each signaller has a store buffer, which may drain at any time. */
active [2] proctype memory() {
    atomic { buffered[_pid] -> drain(_pid) }
    unless (condition[_pid])
}

proctype signaller(byte i) {
    byte waiter = 0;
    buffered[i] = true; /* W0 */
    light_fence(i);
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
#ifdef NO_OWN
    ::  seen = HOLDS(); /* S1, before memory has taken S0 */
        sleeping[me] = true;
        if
        :: seen -> break
        :: else
        fi;
#else
    ::  sleeping[me] = true; /* S0 */
        heavy_fence();
#endif
#if !defined(NO_S1) && !defined(NO_OWN)
        if
        :: HOLDS() -> break /* S1 */
        :: else
        fi;
#endif
#ifdef LATE_AWAITS
        awaits[me] = awaited;
#endif
        if
        :: atomic { sleeping[me] -> queued[me] = true }; !queued[me] /* futex wait */
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
    bool seen;
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
