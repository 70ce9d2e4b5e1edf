/* tests/model/helper_work.pml - idle helpers join their leader's part (src/sync/algorithms/helper_work.h): a leader with three parts, of two, three and
 * two pieces, and two helpers, each of which runs what it is offered at a time of its own, or, if the run is stopped
 * meanwhile, not at all. Who has claimed a piece copies the description; while the leader rewrites it, it is torn (0).
 * Claim: what is copied is whole and of the part of the piece, every piece is worked on once, the leader goes on only when
 * all are done, and all end.
 * Mutants: NO_TAG (claim is the next piece alone, the number of pieces stands in the description), NO_DONE_WAIT (the leader
 * goes on when there is nothing left to claim), EARLY_COPY (copies before it claims), NO_SWAP (claims by a load and a
 * store).
 * Who comes with the claim of an earlier part in hand claims a piece of this one, or none, and copies afterwards: so the claim
 * needs no number of the part. */
#define PARTS 3
#define PIECES(part) ((part) == 2 -> 3 : 2)
#define H 2
byte number, pieces, next;            /* one word: claim */
byte description, described;          /* of which part, 0: torn; its pieces, for NO_TAG */
byte counted;                         /* pieces that are done */
byte started[H], finished[H];
byte times[(PARTS + 1) * 3];          /* that a piece has been worked on */
bool over, stopped;

#ifdef NO_TAG
#define PRESENT (next == seen_next)
#define COUNT described
#else
#define PRESENT (pieces == seen_pieces && next == seen_next)
#define COUNT seen_pieces
#endif

inline look() {
    atomic { seen_number = number; seen_pieces = pieces; seen_next = next } /* A1 */
}

inline work() {
    look();
    do
    :: seen_next >= COUNT -> break
    :: else ->
#ifdef EARLY_COPY
        assert(description != 0);
        copy = description;
#endif
        if
#ifdef NO_SWAP
        :: true -> next = seen_next + 1;
#else
        :: atomic { PRESENT -> next++; seen_number = number };
#endif
#ifndef EARLY_COPY
            copy = description;
#endif
            assert(copy != 0 && copy == seen_number);
            times[copy * 3 + seen_next]++;
            assert(times[copy * 3 + seen_next] == 1);
            counted++ /* B0 */
#ifndef NO_SWAP
        :: atomic { !PRESENT -> skip }
#endif
        fi;
        atomic { copy = 0; look() }
    od;
    atomic { seen_number = 0; seen_pieces = 0; seen_next = 0 }
}

proctype helper(byte me) {
    byte seen_number, seen_pieces, seen_next, copy;
    do
    :: started[me] != finished[me] ->
        if
        :: stopped
        :: !stopped -> work()
        fi;
        finished[me]++
    :: over && started[me] == finished[me] -> break
    od
}

inline offer(h) {
    if
    :: started[h] == finished[h] -> started[h]++
    :: else
    fi
}

proctype leader() {
    byte seen_number, seen_pieces, seen_next, copy, part = 1;
    do
    :: part > PARTS -> break
    :: else ->
        description = 0;
        described = PIECES(part);
        description = part;
        counted = 0;
        atomic { number = part; pieces = PIECES(part); next = 0 }; /* A0 */
        offer(0);
        offer(1);
        work();
#ifndef NO_DONE_WAIT
        counted == PIECES(part); /* B1 */
#endif
        assert(times[part * 3] == 1 && times[part * 3 + 1] == 1 && (PIECES(part) == 2 || times[part * 3 + 2] == 1));
        part++
    od;
    over = true
}

proctype stopper() { stopped = true }

init { atomic { run leader(); run helper(0); run helper(1); run stopper() } }
