/* tests/model/circle.pml - replicas that wait for each other in different groups (src/sync/meeting/circle.h).
 *
 * There are three replicas and four groups. Group i has the replicas i and i + 1, so each replica has a row
 * (its own group), a column (that of the replica before it), and the team, which is group 3. Replica 0 makes
 * two calls, and the others make one, in groups that they choose. Then they return. The model has no store
 * buffers, so a fence is the order of two steps.
 *
 * Claims   All replicas end without a timeout. A replica stops the run only if a replica has returned that
 *          another one waits for, or if it is in a circle: then all waits of the circle last, and in each of
 *          them the next replica is missing.
 * Mutants  LOOK_FIRST     A replica looks at the others before it publishes its own wait.
 *          SHALLOW        It follows only the waits of the replicas for which it waits itself.
 *          MISSING_FIRST  It asks whether a replica is missing before it reads where that replica waits. */
#define N 3
#define CALLS_OF(r) ((r) == 0 -> 2 : 1)
#define TEAM N
#define IS_MEMBER(r, g) ((g) == TEAM || (r) == (g) || (r) == ((g) + 1) % N)
#define COUNT(r, g) count[(r) * (N + 1) + (g)]
#define IS_MISSING(r, g, k) (IS_MEMBER(r, g) && COUNT(r, g) < (k))
#define INCOMPLETE(g, k) (IS_MISSING(0, g, k) || IS_MISSING(1, g, k) || IS_MISSING(2, g, k))
#define LEFT(r, g, k) (IS_MISSING(r, g, k) && returned[r])

byte count[N * (N + 1)]; /* the arrivals of each replica in each group */
bool returned[N], stopped;

/* The standstills. */
byte version[N], in_group[N], number[N];

/* For the claims: where each replica really is. */
bool waits[N];
byte wait_group[N], wait_number[N];

#define NEEDS_A_LOOK \
    (other < N && other != cur && IS_MEMBER(other, cur_group) && (other == me || !(seen & (1 << other))))

/* Searches for a circle through `me`, nearest first. Steps that read nothing shared are one step with the one
 * before. */
inline search() {
    atomic { seen = 1 << me; queue[0] = me; queued = 1; head = 0; found = false; cur = me; other = 0;
             cur_group = g; cur_number = k };
    do
    :: atomic { NEEDS_A_LOOK ->
#ifdef MISSING_FIRST
        missing = IS_MISSING(other, cur_group, cur_number)
       };
       atomic {
#endif
        /* E1: the standstill is read with one version. */
        read_version[other] = version[other];
        read_group[other] = in_group[other];
        read_number[other] = number[other] };
       atomic {
#ifndef MISSING_FIRST
        missing = IS_MISSING(other, cur_group, cur_number);
#endif
        if
        :: other == me -> found = missing
        :: other != me && read_version[other] % 2 == 1 && missing ->
            seen = seen | (1 << other);
            before[other] = cur;
#ifdef SHALLOW
            if
            :: cur == me -> queue[queued] = other; queued++
            :: else
            fi
#else
            queue[queued] = other;
            queued++
#endif
        :: else
        fi;
        missing = false;
        other++;
        if :: found -> break :: else fi }
    :: atomic { other < N && !NEEDS_A_LOOK -> other++ }
    :: atomic { other == N ->
        head++;
        if
        :: head == queued -> break
        :: else -> cur = queue[head]; other = 0; cur_group = read_group[cur]; cur_number = read_number[cur]
        fi }
    od;
    atomic {
        if
        :: found && !stopped -> /* the first error counts */
            /* The claim: from the last replica of the circle back to this one, each wait lasts. */
            next = me;
            do
            ::  assert(waits[cur] && IS_MISSING(next, wait_group[cur], wait_number[cur]));
                if :: cur == me -> break :: else fi;
                next = cur;
                cur = before[cur]
            od;
            stopped = true
        :: else
        fi;
        /* Nothing of the search matters any more. */
        found = false; other = 0; cur = 0; cur_group = 0; cur_number = 0; next = 0; head = 0;
        queued = 0; seen = 0; queue[0] = 0; queue[1] = 0; queue[2] = 0; before[0] = 0; before[1] = 0;
        before[2] = 0; read_version[0] = 0; read_version[1] = 0; read_version[2] = 0; read_group[0] = 0;
        read_group[1] = 0; read_group[2] = 0; read_number[0] = 0; read_number[1] = 0; read_number[2] = 0
    }
}

inline publish() {
    in_group[me] = g;
    number[me] = k;
    version[me]++ /* E0 */
}

proctype replica(byte me) {
    byte calls, g, k, other, cur, cur_group, cur_number, last, next, head, queued, seen;
    byte queue[N], before[N], read_version[N], read_group[N], read_number[N];
    bool found, missing;
    do
    :: calls == CALLS_OF(me) || stopped -> break
    :: else ->
        if
        :: g = me
        :: g = (me + N - 1) % N
        :: g = TEAM
        fi;
        atomic {
            COUNT(me, g) = COUNT(me, g) + 1;
            k = COUNT(me, g);
            if
            :: INCOMPLETE(g, k) -> waits[me] = true; wait_group[me] = g; wait_number[me] = k
            :: else
            fi
        };
        if
        :: waits[me] -> /* it takes long, or it is over at once */
            if
            :: INCOMPLETE(g, k) ->
#ifdef LOOK_FIRST
                search(); /* F1 */
                publish();
#else
                publish(); /* F0 */
                search();  /* F1 */
#endif
                atomic {
                    !INCOMPLETE(g, k) || stopped || LEFT(0, g, k) || LEFT(1, g, k) || LEFT(2, g, k);
                    if :: INCOMPLETE(g, k) -> stopped = true :: else fi;
                    waits[me] = false; wait_group[me] = 0; wait_number[me] = 0
                };
                version[me]++
            :: atomic { !INCOMPLETE(g, k) -> waits[me] = false; wait_group[me] = 0; wait_number[me] = 0 }
            fi
        :: else
        fi;
        calls++
    od;
    returned[me] = true
}

init { atomic { run replica(0); run replica(1); run replica(2) } }
