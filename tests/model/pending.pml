/* tests/model/pending.pml - started operations (src/sync/pending/pending.h).
 *
 * Three replicas have rings of two operations, and start four operations. Each operation has a share of two
 * pieces for every replica. A replica starts operations as soon as its ring has space, or helps before that.
 * One replica, or none, starts as many operations as it may, and then computes until the others have consumed
 * them. In the variant STOP a replica fails at any time, and a share has one piece. A replica that leaves
 * waits until no replica is accessing buffers, and then its own buffers are freed. The fence of that wait is
 * modelled in access.pml.
 *
 * The variant NO_NUMBER, in which a claim has no number, holds as well. No replica can come late to a claim,
 * because a replica that works on operation k has not consumed it, and so the announcements of k stay.
 *
 * Claims   Every piece is worked on once, from announcements of its own operation. All pieces of a consumed
 *          operation are done. No replica waits for one that computes, within the length of a ring. No
 *          replica uses buffers that are freed. All replicas end.
 * Mutants  NO_RING_SPACE       A replica starts an operation before the others have consumed the one that is
 *                              a ring's length before it.
 *          EARLY_CONSUME       An operation is consumed when all pieces are claimed.
 *          NO_SWAP             Pieces are claimed by a load and a store.
 *          EARLY_ANNOUNCEMENT  The word is written before what it announces.
 *          OWN_SHARES          No replica works on the shares of others.
 *          STOP+NO_I1          A replica does not look at the stop when it begins to access buffers.
 *          STOP+NO_I3          A replica leaves while another one is accessing buffers. */
#define N 3
#define RING 2
#define OPS 4
#ifdef STOP
#define PIECES 1
#else
#define PIECES 2
#endif
#define OPERATION(r, k) ((r) * RING + (k) % RING)
byte call[N * RING], word[N * RING];   /* both are the operation's number */
byte number[N * RING], next[N * RING]; /* the two parts of one word, the claim */
byte counted[N * RING];                /* pieces that are done */
byte consumed[N];
byte begun[OPS + 1], worked[OPS + 1];  /* a bit for each piece of all shares */
byte lazy = N, fails = N;              /* a replica, or N for none */
bool stopped, accessing[N], freed[N];

#define BIT(share, piece) (1 << (share) * PIECES + (piece))
#define ALL_BITS ((1 << N * PIECES) - 1)
#define ALL(is) (is(0) && is(1) && is(2))
#define HAS_STARTED(r) (word[OPERATION(r, k)] == k)
#define IS_CALL(r) (call[OPERATION(r, k)] == k)
#define IS_OPEN(r) (IS_CALL(r) && consumed[r] < k && !freed[r]) /* its buffers still exist */
#ifdef OWN_SHARES
#define SHARES 1
#define IS_CLAIMED(r) ((r) != me || next[OPERATION(r, k)] == PIECES)
#else
#define SHARES N
#define IS_CLAIMED(r) (next[OPERATION(r, k)] == PIECES)
#endif
#ifdef EARLY_CONSUME
#define IS_DONE(r) IS_CLAIMED(r)
#else
#define IS_DONE(r) (counted[OPERATION(r, k)] == PIECES)
#endif
#ifdef NO_RING_SPACE
#define HAS_RING_SPACE(r) ((r) != me || consumed[r] + RING > started)
#else
#define HAS_RING_SPACE(r) (consumed[r] + RING > started)
#endif
#ifdef NO_NUMBER
#define SEEN (next[operation] == seen)
#define MINE true
#else
#define SEEN (next[operation] == seen && number[operation] == seen_number)
#define MINE (seen_number == k)
#endif

inline start() {
    atomic {
        started++;
        operation = OPERATION(me, started);
#ifdef EARLY_ANNOUNCEMENT
        word[operation] = started
    };
#endif
        call[operation] = started;
        number[operation] = started;
        next[operation] = 0;
        counted[operation] = 0
#ifndef EARLY_ANNOUNCEMENT
    };
    atomic { word[operation] = started; operation = 0 } /* P0 */
#endif
}

inline look() {
    atomic { seen = next[operation]; seen_number = number[operation] }
}

inline work_on_share(share) {
    atomic { operation = OPERATION(share, k); look() };
    do
    :: MINE && seen < PIECES ->
        if
#ifdef NO_SWAP
        :: next[operation] = seen + 1;
#else
        :: atomic { SEEN -> next[operation] = seen + 1 };
#endif
            atomic { assert(!(begun[k] & BIT(share, seen))); begun[k] = begun[k] | BIT(share, seen) };
            atomic { assert(ALL(IS_OPEN)); worked[k] = worked[k] | BIT(share, seen) };
            atomic { counted[operation]++; look() } /* W0 */
#ifndef NO_SWAP
        :: atomic { !SEEN -> look() }
#endif
        fi
    :: else -> break
    od
}

inline advance() {
    atomic { accessing[me] = true; step = 0 }; /* I0 */
#ifndef NO_I1
    if :: stopped -> goto out :: else fi; /* I1 */
#endif
    do
    :: step == SHARES -> break
    :: else -> work_on_share((me + step) % N); step++
    od;
    atomic { accessing[me] = false; step = 0; operation = 0; seen = 0; seen_number = 0 }; /* O0 */
    if
    :: ALL(IS_DONE) -> /* W1 */
        atomic { assert(worked[k] == ALL_BITS && ALL(IS_CALL)); consumed[me] = k; k++ } /* U0 */
    :: else
    fi
}

proctype replica(byte me) {
    byte started, k = 1, step, operation, seen, seen_number;
    do
    :: consumed[me] == OPS -> goto end
    :: stopped -> break
    :: fails == me -> atomic { fails = N; stopped = true; break }
    :: started < OPS && ALL(HAS_RING_SPACE) -> start() /* U1 */
    :: lazy != me && k <= started && ALL(HAS_STARTED) && (!ALL(IS_CLAIMED) || ALL(IS_DONE)) -> /* P1 */
        advance()
    :: lazy == me && started == RING && consumed[(me + 1) % N] == RING && consumed[(me + 2) % N] == RING ->
        lazy = N
    od;
out:
    accessing[me] = false; /* O0 */
#ifndef NO_I3
    !accessing[0]; !accessing[1]; !accessing[2]; /* I3, O1 */
#endif
    freed[me] = true;
end:
    skip
}

init {
    atomic {
#ifdef STOP
        select(fails : 0 .. N - 1);
#endif
        if :: lazy = 0 :: skip fi;
        run replica(0); run replica(1); run replica(2)
    }
}
