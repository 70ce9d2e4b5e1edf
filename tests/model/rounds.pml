/* tests/model/rounds.pml - meetings in rounds (src/sync/meeting/meeting.h, rounds.h): four meetings of four replicas, two by two in
 * two rounds; UNEQUAL: of three, in blocks of two and one; FLAT: of three in one round. Each brings a value, and passes on
 * in round 1 what it heard in round 0. After a meeting everyone may read all first slots, as long as it has not come to the
 * next.
 * One replica sleeps where it waits: it takes its seat (src/base/waiting/wait.h; in memory without store buffers: those are
 * wait.pml's) and is woken by a signal of the peer that it awaits, or of whoever stops the run. One replica, or none, gives
 * up at a time of its own, before a meeting or in the middle of one.
 * Claim: who ends a meeting has everyone's value of that meeting, and finds it in all first slots; everybody ends.
 * Mutants: ONE_PARITY (the slots of a meeting are used again by the next), SKIP_ROUND (goes on after round 0), NO_WAIT (does
 * not wait in the last round), LATE_READ (first slots are read after the next meeting has been come to), EARLY_SIGNAL (looks
 * for sleepers before the word is written), STOP_UNHEARD (a stop wakes those alone who await its author). */
#define MEETINGS 4
#define EVERYONE 7
#define NOBODY 6
#ifdef FLAT
#define N 3
#define ROUNDS 1
#define FIRST(r) (((r) + 1) % N)  /* whom r looks at in round 0 */
#define SECOND(r) (((r) + 2) % N) /* and then */
#define REPRESENTATIVE(r) NOBODY         /* and in round 1 */
#else
#define ROUNDS 2
#ifdef UNEQUAL
#define N 3
#define FIRST(r) ((r) == 2 -> NOBODY : 1 - (r))
#define REPRESENTATIVE(r) ((r) == 2 -> 0 : 2)
#else
#define N 4
#define FIRST(r) ((r) ^ 1)
#define REPRESENTATIVE(r) ((r) ^ 2)
#endif
#define SECOND(r) NOBODY
#endif
#ifdef UNEQUAL
#define SELECT_SLEEPER select(sleeper : 0 .. N - 1)
#else
#define SELECT_SLEEPER sleeper = 0 /* all replicas are alike */
#endif
#define VALUE(r, e) ((e) << 3 * (r))
#define ALL(e) ((e) * ((1 << 3 * N) - 1) / 7)
#ifdef ONE_PARITY
#define MAILBOX(r, e, round) ((r) * 4 + (round))
#else
#define MAILBOX(r, e, round) ((r) * 4 + (e) % 2 * 2 + (round))
#endif

byte word[N * 4];
short payload[N * 4];
bool stopped, parked, sleeping; /* the sleeper's seat */
byte awaits;
byte sleeper, gives_up = N; /* who does; N: nobody */

inline wake(from) {
    atomic {
        if
        :: parked && (awaits == from || from == EVERYONE) -> sleeping = false /* W1, W2 */
        :: else
        fi
    }
}

inline give_up() {
    gives_up = N;
    stopped = true;
#ifdef STOP_UNHEARD
    wake(me);
#else
    wake(EVERYONE);
#endif
    goto out
}

#define CAME(mailbox) (word[mailbox] == e)

inline sleep(peer, mailbox) {
    atomic { awaits = peer; parked = true };
    do
    ::  sleeping = true; /* S0 */
        if
        :: CAME(mailbox) || stopped -> break /* S1 */
        :: else
        fi;
        if
        :: !sleeping
        :: gives_up == me -> break
        fi;
        if
        :: CAME(mailbox) || stopped -> break
        :: else
        fi
    od;
    atomic { sleeping = false; parked = false; awaits = NOBODY }
}

inline await(peer, round) {
    if
    :: peer == NOBODY || CAME(MAILBOX(peer, e, round)) /* M1 */
#ifdef NO_WAIT
    :: round == ROUNDS - 1
#endif
    :: else ->
        if
        :: sleeper == me -> sleep(peer, MAILBOX(peer, e, round))
        :: sleeper != me && (CAME(MAILBOX(peer, e, round)) || stopped || gives_up == me)
        fi;
        if
        :: CAME(MAILBOX(peer, e, round)) /* M1 */
        :: !CAME(MAILBOX(peer, e, round)) && stopped -> goto out
        :: !CAME(MAILBOX(peer, e, round)) && gives_up == me -> give_up()
        fi
    fi
}

/* What is read after a wait is read at the last moment before what follows it: what is written over stays so. */
#define HEARD(peer, round) (peer == NOBODY -> 0 : payload[MAILBOX(peer, e, round)])
#define KNOWN_0 (VALUE(me, e) | HEARD(FIRST(me), 0) | HEARD(SECOND(me), 0))
#define KNOWN   (KNOWN_0 | HEARD(REPRESENTATIVE(me), 1))
#define IS_FIRST(r, seq) (payload[MAILBOX(r, seq, 0)] == VALUE(r, seq))
#define ARE_FIRST(seq) (IS_FIRST(0, seq) && IS_FIRST(1, seq) && IS_FIRST(2, seq) && IS_FIRST(N - 1, seq))

inline say(round, value) {
#ifdef EARLY_SIGNAL
    wake(me);
#endif
    atomic { payload[MAILBOX(me, e, round)] = value; word[MAILBOX(me, e, round)] = e }; /* M0 */
#ifndef EARLY_SIGNAL
    wake(me)
#endif
}

proctype replica(byte me) {
    byte e = 1;
    do
    :: e > MEETINGS -> break
    :: e <= MEETINGS && stopped -> break
    :: e <= MEETINGS && gives_up == me -> give_up()
    :: e <= MEETINGS && !stopped ->
        say(0, VALUE(me, e));
        await(FIRST(me), 0);
        await(SECOND(me), 0);
#ifndef SKIP_ROUND
        if
        :: ROUNDS == 2 -> say(1, KNOWN_0); await(REPRESENTATIVE(me), 1)
        :: else
        fi;
#endif
#ifdef LATE_READ
        assert(e == 1 || ARE_FIRST(e - 1));
#endif
        atomic { assert(KNOWN == ALL(e) && ARE_FIRST(e)); e++ }
    od;
out:
    skip
}

init {
    byte r = 0;
    atomic {
        SELECT_SLEEPER;
        select(gives_up : 0 .. N);
        do
        :: r == N -> break
        :: else -> run replica(r); r++
        od
    }
}
