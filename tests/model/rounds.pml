/* tests/model/rounds.pml - meetings in rounds (src/sync/meeting/meeting.h, rounds.h).
 *
 * There are four meetings of four replicas, which meet two by two in two rounds. In the variant UNEQUAL there
 * are three replicas, in blocks of two and one. In the variant FLAT three replicas meet in one round. Each
 * replica contributes a value, and in round 1 passes on what it knows after round 0. After a meeting a
 * replica may read the first mailboxes of all, until it comes to the next meeting.
 *
 * One replica sleeps when it waits. It is a waiter (src/base/waiting/wait.h, without store buffers, which are
 * modelled in wait.pml), and is woken by a signal of the peer that it awaits, or of a replica that stops the
 * run. One replica, or none, gives up at any time, before a meeting or during one.
 *
 * Claims   A replica that ends a meeting has the values of all replicas of that meeting, and finds them in
 *          all first mailboxes. All replicas end.
 * Mutants  ONE_PARITY         The next meeting uses the same mailboxes again.
 *          SKIP_ROUND         A replica continues after round 0.
 *          NO_WAIT            A replica does not wait in the last round.
 *          LATE_READ          First mailboxes are read after the replica has come to the next meeting.
 *          FLAT+EARLY_SIGNAL  A replica looks for sleepers before it writes its word.
 *          FLAT+STOP_UNHEARD  A stop wakes only waiters that await the replica that stops the run. */
#define MEETINGS 4
#define EVERYONE 7
#define NOBODY 6
#ifdef FLAT
#define N 3
#define ROUNDS 1
#define FIRST(r) (((r) + 1) % N)  /* the peer that r reads first in round 0 */
#define SECOND(r) (((r) + 2) % N) /* the peer that r reads second in round 0 */
#define REPRESENTATIVE(r) NOBODY  /* the peer that r reads in round 1 */
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
bool stopped;
bool parked, sleeping; /* the state of the one waiter */
byte awaits;
byte sleeper, gives_up = N; /* gives_up: the replica that gives up, or N */

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

#define ARRIVED(mailbox) (word[mailbox] == e)

inline sleep(peer, mailbox) {
    atomic { awaits = peer; parked = true };
    do
    ::  sleeping = true; /* S0 */
        if
        :: ARRIVED(mailbox) || stopped -> break /* S1 */
        :: else
        fi;
        if
        :: !sleeping
        :: gives_up == me -> break
        fi;
        if
        :: ARRIVED(mailbox) || stopped -> break
        :: else
        fi
    od;
    atomic { sleeping = false; parked = false; awaits = NOBODY }
}

inline await(peer, round) {
    if
    :: peer == NOBODY || ARRIVED(MAILBOX(peer, e, round)) /* M1 */
#ifdef NO_WAIT
    :: round == ROUNDS - 1
#endif
    :: else ->
        if
        :: sleeper == me -> sleep(peer, MAILBOX(peer, e, round))
        :: sleeper != me && (ARRIVED(MAILBOX(peer, e, round)) || stopped || gives_up == me)
        fi;
        if
        :: ARRIVED(MAILBOX(peer, e, round)) /* M1 */
        :: !ARRIVED(MAILBOX(peer, e, round)) && stopped -> goto out
        :: !ARRIVED(MAILBOX(peer, e, round)) && gives_up == me -> give_up()
        fi
    fi
}

/* Values are read at the last moment before the next step. Data that was overwritten stays so, so a read at
 * this moment finds every early write. */
#define RECEIVED(peer, round) (peer == NOBODY -> 0 : payload[MAILBOX(peer, e, round)])
#define KNOWN_0 (VALUE(me, e) | RECEIVED(FIRST(me), 0) | RECEIVED(SECOND(me), 0))
#define KNOWN   (KNOWN_0 | RECEIVED(REPRESENTATIVE(me), 1))
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
