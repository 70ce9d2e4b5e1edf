/* tests/model/pending.pml - started operations (src/sync/pending/pending.h): three replicas, rings of two posts, four operations; a
 * share of each for every replica, of two pieces. A replica starts operations as soon as there is room, or helps before;
 * one, or none, starts as many as it may and then computes until the others have consumed them. STOP: one fails at a time of
 * its own, with operations open (a share is one piece then); who leaves waits until nobody is accessing (access.h; that fence
 * is access.pml's), then its buffers are gone.
 * Claim: every piece is worked on once, from posts of its own operation; a consumed operation has all pieces done; nobody
 * waits for one that computes within a ring's length; nobody is at buffers that are gone; all end.
 * Mutants: NO_RING_SPACE (posts before the others have consumed the operation one ring's length back), EARLY_CONSUME (when all
 * pieces are claimed), NO_SWAP (claims by a load and a store), EARLY_ANNOUNCEMENT (the word before what it announces), OWN_SHARES
 * (nobody works on the others' shares); with STOP: NO_I1 (no look at stop when accessing), NO_I3 (leaves while somebody is
 * accessing).
 * NO_NUMBER holds as well: nobody comes late to a claim, as who works on k has not consumed it, and that keeps its posts. */
#define N 3
#define RING 2
#define OPS 4
#ifdef STOP
#define PIECES 1
#else
#define PIECES 2
#endif
#define OPERATION(r, k) ((r) * RING + (k) % RING)
byte call[N * RING], word[N * RING];   /* both: the operation's number */
byte number[N * RING], next[N * RING]; /* one word: claim */
byte counted[N * RING];                /* pieces that are done */
byte consumed[N];
byte begun[OPS + 1], worked[OPS + 1];  /* a bit for each piece of all shares */
byte lazy = N, fails = N;              /* N: nobody */
bool stopped, accessing[N], gone[N];

#define BIT(share, piece) (1 << (share) * PIECES + (piece))
#define ALL_BITS ((1 << N * PIECES) - 1)
#define ALL(is) (is(0) && is(1) && is(2))
#define IS_POSTED(r) (word[OPERATION(r, k)] == k)
#define IS_CALL(r) (call[OPERATION(r, k)] == k)
#define IS_OPEN(r) (IS_CALL(r) && consumed[r] < k && !gone[r]) /* what it has lent is there */
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
    :: lazy != me && k <= started && ALL(IS_POSTED) && (!ALL(IS_CLAIMED) || ALL(IS_DONE)) -> advance() /* P1 */
    :: lazy == me && started == RING && consumed[(me + 1) % N] == RING && consumed[(me + 2) % N] == RING -> lazy = N
    od;
out:
    accessing[me] = false; /* O0 */
#ifndef NO_I3
    !accessing[0]; !accessing[1]; !accessing[2]; /* I3, O1 */
#endif
    gone[me] = true;
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
