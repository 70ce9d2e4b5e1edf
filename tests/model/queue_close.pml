/* tests/model/queue_close.pml - closing, failing and the two limits of the queue (src/input/queue/queue.h).
 *
 * There are two producers, one consumer and one closer. The queue has two slots and a limit of two bytes.
 * Each producer puts an item of no bytes and one of two bytes, and the second producer puts them in this
 * order. The last item of each producer may fail, and the first producer may give up waiting for a slot for
 * its last item. The closer closes the queue at any time, or when all items are put. In the variant ALONE
 * there is one producer, whose store to tail may wait in its store buffer (as on x86) until memory takes it,
 * its next slot is filled, or the closer's heavy fence (membarrier) drains it.
 *
 * The consumer's looks at its slot, at the closed bit and at tail are three steps, between which all other
 * processes may go on. Going to sleep is one step with the last look at the condition. wait.pml shows that
 * this is correct. A signal wakes all sleepers of its wait queue.
 *
 * Claims   All processes end, even those that sleep. The bytes in use never exceed the limit. A slot is not
 *          written while the consumer reads it. The consumer receives the items whose put returned OK, in the
 *          order of tickets. It receives all of them unless there is a failure, and none after a failure. The
 *          recorded failure is the one that the consumer reaches. After the consumer has seen the end, only
 *          withdrawn tickets follow.
 * Mutants  NO_T1               A producer does not look at CLOSING after it has taken a ticket.
 *          NO_WITHDRAW         A producer does not withdraw its ticket.
 *          NO_CLOSE_SIGNAL     Closing wakes no thread.
 *          NO_FAIL_SIGNAL      A failure wakes no producer.
 *          NO_SPACE_SIGNAL     The consumer wakes no producer.
 *          NO_RETURN_SIGNAL    Returning reserved bytes wakes no producer.
 *          NO_FILL_SIGNAL      Filling a slot does not wake the consumer.
 *          TICKET_FIRST        Bytes are reserved after the ticket is taken.
 *          STALE_HEAD          A slot is taken one round early.
 *          EARLY_FILL          A slot is marked as filled before it is written.
 *          NO_MINIMUM          The last failure is recorded, and not the one with the lowest ticket.
 *          SECOND_LOOK         The consumer that has seen the end looks at its slot again, and takes its
 *                              content for an item.
 *          ALONE+NO_T1         As NO_T1, with one producer.
 *          ALONE+NO_HEAVY      There is no fence between E0 and C0.
 *          ALONE+EARLY_CLOSED  The consumer takes CLOSING for the end. */
#define SLOTS 2
#define CAP 2
#ifdef ALONE
#define PRODUCERS 1
#else
#define PRODUCERS 2
#endif
#define ITEMS 2
#define MOST 5          /* the number of tickets, and one more */
#define NONE 9
mtype = { ITEM, FAILED, WITHDRAWN };
byte filled[SLOTS], item[SLOTS], cost[SLOTS];
mtype kind[SLOTS];
byte tail;
byte seen_tail;         /* the tail that others see, while a store is in the store buffer */
byte head, next, reserved, returned;
bool closing, closed, failed;
byte failure = NONE;    /* the ticket that was recorded as failed */
bool said[MOST];        /* put returned OK with this ticket */
bool got[MOST];
bool in_hand[SLOTS];    /* the consumer reads the slot */
bool asleep[PRODUCERS], consumer_asleep, over;
byte ended, ended_producers;

#define SIGNAL_PRODUCERS d_step { asleep[0] = false; asleep[PRODUCERS - 1] = false }
#define SIGNAL_CONSUMER consumer_asleep = false
#ifdef ALONE
#define SEE_TAIL skip
#define DRAIN seen_tail = tail
#else
#define SEE_TAIL seen_tail = tail
#define DRAIN skip
#endif
#ifdef STALE_HEAD
#define HAS_SLOT (tail - head < SLOTS + 1)
#else
#define HAS_SLOT (tail - head < SLOTS) /* F1 */
#endif
#define HAS_BYTES (reserved + bytes - returned <= CAP) /* B1 */
#define IS_REFUSED (closing || failed)
#define IS_FILLED (filled[next % SLOTS] == next + 1) /* P1 */
#ifdef EARLY_CLOSED
#define MAY_HAVE_ENDED closing
#else
#define MAY_HAVE_ENDED closed
#endif
#define HAS_ENDED (MAY_HAVE_ENDED && seen_tail == next)

#ifdef ALONE
active proctype memory() {
    do
    :: atomic { seen_tail != tail -> DRAIN }
    :: over -> break
    od
}
#endif

inline fill(what) {
    atomic {
        assert(!in_hand[ticket % SLOTS]);
        kind[ticket % SLOTS] = what;
        cost[ticket % SLOTS] = bytes
#ifdef EARLY_FILL
        ; DRAIN; filled[ticket % SLOTS] = ticket + 1
#endif
    };
#ifdef EARLY_FILL
    item[ticket % SLOTS] = ticket;
#else
    atomic {
        item[ticket % SLOTS] = ticket;
        DRAIN; /* stores reach memory in their order */
        filled[ticket % SLOTS] = ticket + 1 /* P0 */
    };
#endif
#ifndef NO_FILL_SIGNAL
    SIGNAL_CONSUMER
#endif
}

/* take_bytes and take_ticket sleep until they can take what they need, or the put is refused. `taken` says
 * whether they have taken it. */
inline take_bytes() {
    taken = false;
    do
    :: atomic { IS_REFUSED -> break }
    :: atomic { !IS_REFUSED && HAS_BYTES -> reserved = reserved + bytes; taken = true; has_bytes = true;
        assert(reserved - returned <= CAP); break }
    :: atomic { !IS_REFUSED && !HAS_BYTES -> asleep[me] = true }; !asleep[me]
    od
}
inline take_ticket() {
    taken = false;
    do
    :: IS_REFUSED -> break
    :: atomic { !IS_REFUSED && !HAS_SLOT -> asleep[me] = true }; !asleep[me]
    :: atomic { !IS_REFUSED && !HAS_SLOT && me == 0 && items == ITEMS -> break } /* it gives up waiting */
    :: !IS_REFUSED && HAS_SLOT;
        if
        :: atomic { HAS_SLOT -> ticket = tail; tail++; SEE_TAIL; taken = true; break } /* T0 */
        :: atomic { !HAS_SLOT -> skip }
        fi
    od
}

proctype producer(byte me) {
    byte ticket, bytes, items;
    bool taken, has_bytes;
    do
    :: items == ITEMS -> break
    :: else ->
        atomic {
            has_bytes = false; ticket = 0;
            if
            :: items == 0 -> if :: bytes = 0 :: me == 0 -> bytes = CAP fi
            :: else -> bytes = CAP - bytes
            fi;
            items++
        };
#ifdef TICKET_FIRST
        take_ticket();
        if :: taken -> take_bytes() :: else fi;
#else
        take_bytes();
        if :: taken -> take_ticket() :: else fi;
#endif
        if
        :: !taken -> /* the put is refused */
            if
            :: has_bytes ->
                reserved = reserved - bytes;
#ifndef NO_RETURN_SIGNAL
                SIGNAL_PRODUCERS
#endif
            :: else
            fi;
            break
        :: else
        fi;
#ifndef NO_T1
        if
        :: closing -> /* T1 */
#ifndef NO_WITHDRAW
            fill(WITHDRAWN); /* W0 */
#endif
            break
        :: else
        fi;
#endif
        if
        :: items == ITEMS ->
            atomic {
                if
#ifdef NO_MINIMUM
                :: failure = ticket
#else
                :: failure > ticket -> failure = ticket
                :: else
#endif
                fi;
                failed = true
            };
            fill(FAILED);
#ifndef NO_FAIL_SIGNAL
            SIGNAL_PRODUCERS
#endif
        :: atomic { said[ticket] = true }; fill(ITEM)
        fi
    od;
    atomic { ended++; ended_producers++ }
}

proctype closer() {
    bool early;
    if :: early = true :: skip fi;
    early || ended_producers == PRODUCERS;
    closing = true; /* E0 */
#ifndef NO_HEAVY
    DRAIN;
#endif
    closed = true; /* C0 */
#ifndef NO_CLOSE_SIGNAL
    SIGNAL_PRODUCERS;
    SIGNAL_CONSUMER;
#endif
    ended++
}

proctype consumer() {
    byte t;
    bool failed_here;
    do
    :: atomic { IS_FILLED && kind[next % SLOTS] == FAILED ->
        assert(failure == next); failed_here = true; break }
    :: atomic { IS_FILLED && kind[next % SLOTS] != FAILED -> in_hand[next % SLOTS] = true };
        atomic {
            if
            :: kind[next % SLOTS] == ITEM ->
                assert(item[next % SLOTS] == next && said[next]);
                got[next] = true
            :: else
            fi;
            in_hand[next % SLOTS] = false;
            t = cost[next % SLOTS]
        };
        atomic { next++; head++ }; /* F0 */
        returned = returned + t;   /* B0 */
#ifndef NO_SPACE_SIGNAL
        SIGNAL_PRODUCERS
#endif
    :: !IS_FILLED;             /* the first step looks at the slot */
        if
        :: MAY_HAVE_ENDED;     /* C1: the second step looks at the state */
            if
            :: seen_tail == next -> /* E1: the third step looks at tail, and this is the end */
#ifdef SECOND_LOOK
                if
                :: IS_FILLED -> assert(kind[next % SLOTS] != WITHDRAWN)
                :: else
                fi;
#endif
                break
            :: else
            fi
        :: else
        fi
    :: atomic { !IS_FILLED && !HAS_ENDED -> consumer_asleep = true }; !consumer_asleep
    od;
    /* The next call skips all slots that were filled after the end was seen, and finds the end again. */
    do
    :: failed_here || ended_producers == PRODUCERS -> break
    :: atomic { !failed_here && IS_FILLED -> assert(kind[next % SLOTS] == WITHDRAWN); next++; head++ }
    od;
    assert(failed_here || !IS_FILLED || kind[next % SLOTS] == WITHDRAWN);
    atomic { over = true; ended++ }
}

/* Checks at the end that the consumer has received every item whose put returned OK before a failure, and no
 * item after it. */
proctype judge() {
    byte t;
    ended == PRODUCERS + 2;
    d_step {
        do
        :: t == MOST -> break
        :: else ->
            assert(!said[t] || got[t] || failure < t);
            assert(!got[t] || failure > t);
            t++
        od
    }
}

init {
    atomic {
        run producer(0);
#ifndef ALONE
        run producer(1);
#endif
        run consumer(); run closer(); run judge()
    }
}
