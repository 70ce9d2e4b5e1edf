/* tests/model/helper_work.pml - idle helpers join their leader's part (src/sync/algorithms/helper_work.h).
 *
 * A leader has three parts, of two, three and two pieces. Each of two helpers runs what it is offered at any
 * later time, or not at all if the run is stopped meanwhile. A thread that has claimed a piece copies the
 * description. While the leader rewrites the description, it is torn (0).
 *
 * A helper may hold the claim of an earlier part. It then claims a piece of the present part or no piece, and
 * copies the description afterwards. The claim therefore needs no number of the part.
 *
 * Claims   A description that is copied is whole, and belongs to the part of the claimed piece. Every piece
 *          is worked on once. The leader continues only when all pieces are done. All processes end.
 * Mutants  NO_TAG        The claim is the next piece only, and the number of pieces is in the description.
 *          NO_DONE_WAIT  The leader continues when all pieces are claimed.
 *          EARLY_COPY    A helper copies before it claims.
 *          NO_SWAP       A helper claims by a load and a store. */
#define PARTS 3
#define PIECES(part) ((part) == 2 -> 3 : 2)
#define H 2
byte number, pieces, next;   /* the three parts of one word, the claim */
byte description;            /* the part that is described, or 0 if torn */
byte described;              /* its number of pieces, for NO_TAG */
byte counted;                /* pieces that are done */
byte started[H], finished[H];
byte times[(PARTS + 1) * 3]; /* how often each piece was worked on */
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
        assert(times[part * 3] == 1 && times[part * 3 + 1] == 1 &&
               (PIECES(part) == 2 || times[part * 3 + 2] == 1));
        part++
    od;
    over = true
}

proctype stopper() { stopped = true }

init { atomic { run leader(); run helper(0); run helper(1); run stopper() } }
