/* tests/model/mail.pml - hosts send each other mail, and take leave (src/hosts/mail.h).
 *
 * The program of each host gives its postman letters for the other hosts at any time, and then closes its
 * post. A letter is a frame and its bytes, which are two messages. One host may end without taking leave at
 * any time. The others are told of it, at any time later, by the life line. What it has sent before still
 * arrives up to some message, which may break in the middle. With RENDEZVOUS a send ends when the other host
 * has taken the message. With three hosts there are leaves alone, because letters make too many states.
 *
 * Claims   Each host closes its post. It has then got all letters that a host which is not lost has sent it,
 *          in whole. The wire uses no memory of the post any more. Nothing of a lost host is delivered after
 *          its loss was told. When all posts are closed, no message is left between hosts that have not
 *          ended.
 * Mutants  EARLY_LEAVE     A leave may overtake letters.
 *          NO_LEAVE_WAIT   A post is closed without the leaves of the others.
 *          NO_SEND_WAIT    A post is closed before its own letters and leaves have been sent.
 *          LATE_RECEIVE    A receive is begun from a host that has taken leave.
 *          NO_LOSS         Mail is not told of losses.
 *          LOST_WAIT       A post waits for the leave of a lost host.
 *          NO_WITHDRAW     The receive from a lost host is not withdrawn.
 *          FREE_RECEIVE    A post is closed while the wire is in the middle of a message of a lost host.
 *          LATE_DELIVERY   A message that was on its way when the loss was told is delivered. */
#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef LETTERS
#define LETTERS 2
#endif
#define PAIR(a, b) ((a) * HOSTS + (b))

mtype = { FRAME, BYTES, LEAVE };
mtype = { NONE, WAITS, ARRIVES }; /* a receive: has not begun, has no message yet, takes one */

/* From host a to host b. The receive, the loss and so on are those that host a has of host b. */
chan wire[HOSTS * HOSTS] = [2 * LETTERS + 1] of { mtype };
byte sent[HOSTS * HOSTS], delivered[HOSTS * HOSTS];
mtype receive[HOSTS * HOSTS];
bool wants_bytes[HOSTS * HOSTS], has_left[HOSTS * HOSTS], is_lost[HOSTS * HOSTS], leave_sent[HOSTS * HOSTS];
byte waiting[HOSTS * HOSTS]; /* letters that the postman has not sent yet */
bool ended[HOSTS], closed[HOSTS], closing[HOSTS];
bool may_end; /* one host may end without taking leave */

inline deliver(pair, kind) {
    if
    :: is_lost[pair] ->
#ifdef LATE_DELIVERY
        assert(false)
#else
        skip
#endif
    :: !is_lost[pair] ->
        if
        :: kind == LEAVE -> assert(!wants_bytes[pair]); has_left[pair] = true
        :: kind == FRAME -> assert(!wants_bytes[pair] && !has_left[pair]); wants_bytes[pair] = true
        :: kind == BYTES -> assert(wants_bytes[pair]); wants_bytes[pair] = false; delivered[pair]++
        fi
    fi
}

/* True if host `me` may close its post, as far as host p is concerned. */
#ifdef NO_SEND_WAIT
#define IS_SENT(me, p) true
#elif defined(RENDEZVOUS)
#define IS_SENT(me, p) (is_lost[PAIR(me, p)] || \
                        (waiting[PAIR(me, p)] == 0 && leave_sent[PAIR(me, p)] && empty(wire[PAIR(me, p)])))
#else
#define IS_SENT(me, p) (is_lost[PAIR(me, p)] || (waiting[PAIR(me, p)] == 0 && leave_sent[PAIR(me, p)]))
#endif
#ifdef NO_LEAVE_WAIT
#define HAS_LEFT(me, p) true
#elif defined(LOST_WAIT)
#define HAS_LEFT(me, p) has_left[PAIR(me, p)]
#else
#define HAS_LEFT(me, p) (has_left[PAIR(me, p)] || is_lost[PAIR(me, p)])
#endif
#ifdef FREE_RECEIVE
#define IS_FREE(me, p) true
#elif defined(NO_LEAVE_WAIT)
#define IS_FREE(me, p) (receive[PAIR(me, p)] != ARRIVES)
#else
#define IS_FREE(me, p) (receive[PAIR(me, p)] == NONE)
#endif
#define MAY_CLOSE(me, p) ((p) == (me) || (IS_SENT(me, p) && HAS_LEFT(me, p) && IS_FREE(me, p)))
#if HOSTS == 2
#define MAY_CLOSE_ALL(me) (MAY_CLOSE(me, 0) && MAY_CLOSE(me, 1))
#else
#define MAY_CLOSE_ALL(me) (MAY_CLOSE(me, 0) && MAY_CLOSE(me, 1) && MAY_CLOSE(me, 2))
#endif

/* Of what host `me` does with host p, its peer. */
#define OWN    PAIR(me, p)
#define THEIRS PAIR(p, me)
#define WORKS  (!closed[me] && !ended[me])
#ifdef EARLY_LEAVE
#define MAY_LEAVE (closing[me] && !leave_sent[OWN] && !is_lost[OWN])
#else
#define MAY_LEAVE (closing[me] && !leave_sent[OWN] && !is_lost[OWN] && waiting[OWN] == 0)
#endif
#ifdef LATE_RECEIVE
#define MAY_RECEIVE (receive[OWN] == NONE && !is_lost[OWN])
#else
#define MAY_RECEIVE (receive[OWN] == NONE && !is_lost[OWN] && !has_left[OWN])
#endif
#ifdef NO_LOSS
#define MAY_LOSE false
#else
#define MAY_LOSE (ended[p] && !is_lost[OWN])
#endif

inline tell_of_loss() {
    is_lost[OWN] = true;
#ifndef NO_WITHDRAW
    if
    :: receive[OWN] == WAITS -> receive[OWN] = NONE
    :: else /* the wire is in the middle of a message */
    fi
#endif
}

inline begin_receive() {
    if
    :: MAY_RECEIVE -> receive[OWN] = WAITS
    :: else
    fi
}

/* The part of a host's program, postman and wire that concerns one peer. */
proctype correspondence(byte me; byte p) {
    mtype kind;
    do
    /* the program gives the postman a letter */
    :: atomic { WORKS && !closing[me] && sent[OWN] < LETTERS -> waiting[OWN]++; sent[OWN]++ }
    /* the postman */
    :: atomic { WORKS && waiting[OWN] > 0 && !is_lost[OWN] ->
           waiting[OWN]--; wire[OWN] ! FRAME; wire[OWN] ! BYTES }
    :: atomic { WORKS && MAY_LEAVE -> leave_sent[OWN] = true; wire[OWN] ! LEAVE }
    :: atomic { WORKS && MAY_LOSE -> tell_of_loss() }
    /* the wire */
    :: atomic { WORKS && receive[OWN] == WAITS && nempty(wire[THEIRS]) -> receive[OWN] = ARRIVES }
    :: atomic { WORKS && receive[OWN] == ARRIVES ->
           receive[OWN] = NONE; wire[THEIRS] ? kind; deliver(OWN, kind); begin_receive() }
    :: atomic { WORKS && receive[OWN] == ARRIVES && ended[p] -> /* the message breaks */
           receive[OWN] = NONE; wire[THEIRS] ? kind; is_lost[OWN] = true }
    :: !WORKS -> break
    od
}

/* Its post is freed. */
inline close() {
    closed[me] = true;
    p = 0;
    do
    :: p == HOSTS -> break
    :: else ->
        if
        :: p != me ->
#ifdef NO_LEAVE_WAIT
            receive[OWN] = NONE; /* it is withdrawn */
#endif
            assert(receive[OWN] == NONE);
            assert(is_lost[OWN] || delivered[OWN] == sent[THEIRS])
        :: else
        fi;
        p++
    od
}

proctype host(byte me) {
    byte p;
    do
    :: atomic { WORKS && !closing[me] -> closing[me] = true }
    :: atomic { WORKS && closing[me] && MAY_CLOSE_ALL(me) -> close() }
    :: atomic { may_end && !ended[me] -> may_end = false; ended[me] = true }
    :: closed[me] || ended[me] -> break
    od
}

init {
    byte a, b;
    atomic {
        if
        :: may_end = true
        :: may_end = false
        fi;
        do
        :: a == HOSTS -> break
        :: else ->
            run host(a);
            b = 0;
            do
            :: b == HOSTS -> break
            :: else ->
                if
                :: a != b -> receive[PAIR(a, b)] = WAITS; run correspondence(a, b)
                :: else -> receive[PAIR(a, b)] = NONE
                fi;
                b++
            od;
            a++
        od
    }
    _nr_pr == 1;
    /* What is left concerns a host that has ended. */
    atomic {
        a = 0;
        do
        :: a == HOSTS -> break
        :: else ->
            b = 0;
            do
            :: b == HOSTS -> break
            :: else -> assert(ended[a] || ended[b] || empty(wire[PAIR(a, b)])); b++
            od;
            a++
        od
    }
}
