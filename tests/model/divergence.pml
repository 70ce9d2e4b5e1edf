/* tests/model/divergence.pml - replicas that make different calls (src/sync/meeting/meeting.h, pending.h).
 *
 * There are three replicas, which share PUs. Each comes to a meeting by counter, or to a meeting in rounds
 * (which the call asks for), or waits for an operation that it has started, or returns. A replica that has to
 * wait sleeps at once (src/base/waiting/wait.h). The model has no store buffers.
 *
 * Claims   All replicas end without a timeout. A replica that does not return at once ends well only if all
 *          did the same.
 * Mutants  NO_ARRIVAL_SIGNAL  A replica that comes to a meeting by counter does not wake replicas that watch
 *                             its first mailbox.
 *          NO_RETURN_SIGNAL   A replica that returns wakes no other. */
#define N 3
#define EVERYONE N
#define MEETING (N + 1)
mtype = { NOTHING, COUNTS, ROUNDS };

/* The words of the first mailboxes. Calls of different kinds have different digests. */
mtype word[N] = NOTHING;

bool started[N], returned[N], well[N];
byte arrived;
bool release, stopped;
byte parked, awaits[N], chosen[N];
bool sleeping[N];

inline wake(from) {
    if
    :: parked > 0 -> /* W1 */
        atomic {
            waiter = 0;
            do
            :: waiter == N -> break
            :: else ->
                if
                :: awaits[waiter] == from || awaits[waiter] == EVERYONE || from == EVERYONE ->
                    sleeping[waiter] = false /* W2 */
                :: else
                fi;
                waiter++
            od;
            waiter = 0
        }
    :: else
    fi
}

#define SLEEP(whom, condition)                          \
    if                                                  \
    :: condition                                        \
    :: else ->                                          \
        atomic { awaits[me] = whom; parked++ };         \
        do                                              \
        ::  sleeping[me] = true; /* S0 */               \
            if :: condition -> break /* S1 */ :: else fi; \
            !sleeping[me];                              \
            if :: condition -> break :: else fi         \
        od;                                             \
        atomic { sleeping[me] = false; parked-- }       \
    fi

#define OTHER(k) ((me + (k)) % N)
#define CANNOT_START(r) (!started[r] && (returned[r] || word[r] != NOTHING))
#define ENDS \
    (started[OTHER(1)] && started[OTHER(2)] || CANNOT_START(OTHER(1)) || CANNOT_START(OTHER(2)) || stopped)

inline stop_run() {
    stopped = true;
    wake(EVERYONE)
}

inline count() {
    word[me] = COUNTS; /* M0 */
#ifndef NO_ARRIVAL_SIGNAL
    wake(me);
#endif
    atomic { arrived++; last = arrived == N }; /* C0, C1 */
    if
    :: last -> release = true; wake(MEETING) /* C2 */
    :: else -> SLEEP(MEETING, (release || stopped || returned[OTHER(1)] || returned[OTHER(2)]))
    fi;
    if
    :: release -> well[me] = true /* C3 */
    :: else -> if :: stopped :: else -> stop_run() fi
    fi
}

inline check_peer(peer) {
    SLEEP(peer, (word[peer] != NOTHING || stopped || returned[peer]));
    if
    :: word[peer] == ROUNDS /* M1 */
    :: word[peer] == COUNTS -> stop_run(); goto out
    :: else -> if :: stopped :: else -> stop_run() fi; goto out
    fi
}

inline meet_in_rounds() {
    word[me] = ROUNDS; /* M0 */
    wake(me);
    check_peer(OTHER(1));
    check_peer(OTHER(2));
    well[me] = true
}

inline wait_for_operation() {
    started[me] = true; /* P0 */
    wake(me);
    SLEEP(EVERYONE, ENDS); /* P1 */
    if
    :: started[OTHER(1)] && started[OTHER(2)] -> well[me] = true
    :: else -> if :: stopped :: else -> stop_run() fi
    fi
}

proctype replica(byte me) {
    byte waiter;
    bool last;
    if
    :: chosen[me] = 1; count()
    :: chosen[me] = 2; meet_in_rounds()
    :: chosen[me] = 3; wait_for_operation()
    :: chosen[me] = 4; well[me] = true
    fi;
out:
    assert(!well[me] || chosen[me] == 4 || chosen[0] == chosen[1] && chosen[1] == chosen[2]);
    returned[me] = true;
#ifndef NO_RETURN_SIGNAL
    wake(me);
    wake(MEETING)
#endif
}

init { atomic { run replica(0); run replica(1); run replica(2) } }
