/* tests/model/exchange.pml - one exchange range of a large reduction between groups
 * (src/sync/algorithms/exchange.h).
 *
 * The range has three owners and four blocks, and four more blocks in a second collective. Partials and
 * results have two copies each. The reduction is in place, so step C of a block overwrites its sources, which
 * step B of the block reads on all owners. One owner, or none, fails before a step A or B. An owner that
 * leaves a stopped run waits until no owner is accessing buffers, and then its own buffers are freed. The
 * fence of that wait is modelled in access.pml.
 *
 * Claims   Step B reads the partials and sources of its own block on all owners. Step C reads the results of
 *          its own block on all owners. No owner reads a buffer that is freed. All owners end. Data that was
 *          overwritten stays so, so one check at the last moment finds every early write.
 * Mutants  ONE_PARTIAL    All blocks use copy 0 of the partials.
 *          ONE_RESULT     All blocks use copy 0 of the results.
 *          EARLY_C        Step C does not wait for results.
 *          NO_B_WAIT      Step B does not wait for partials.
 *          A_TOO_EARLY    Step A of b + 2 comes before step C of b.
 *          EARLY_WORD     Partials are announced before they are written.
 *          NO_LEAVE_WAIT  An owner that leaves does not wait. */
#define N 3
#define BLOCKS 4
#define COLLECTIVES 2
#define ID(b) (seq * BLOCKS + (b) + 1) /* of a block. Earlier blocks have lower numbers */
#ifdef ONE_PARTIAL
#define PARTIAL(r, b) ((r) * 2)
#else
#define PARTIAL(r, b) ((r) * 2 + (b) % 2)
#endif
#ifdef ONE_RESULT
#define RESULT(r, b) ((r) * 2)
#else
#define RESULT(r, b) ((r) * 2 + (b) % 2)
#endif
byte partials[N * 2], results[N * 2]; /* the block whose data is in each buffer */
byte partial[N], result[N];           /* the words */
byte written[N];                      /* the last block that was written to the destinations */
byte finished[N];                     /* collectives */
bool stopped, accessing[N], freed[N];
byte fails = N;                       /* the owner that fails, or N */

#define ALL_AT(what, where, b) \
    (what[where(0, b)] == ID(b) && what[where(1, b)] == ID(b) && what[where(2, b)] == ID(b))
#define NONE_WRITTEN(b) (written[0] < ID(b) && written[1] < ID(b) && written[2] < ID(b))
#define NONE_FREED (!freed[0] && !freed[1] && !freed[2])

inline may_fail() {
    if
    :: fails == me -> atomic { fails = N; stopped = true; goto out }
    :: skip
    fi
}

#define AWAIT_ONE(word, peer, b)                      \
    if                                                \
    :: word[peer] >= ID(b)                            \
    :: word[peer] < ID(b) && stopped -> goto out      \
    fi
#define AWAIT(word, b) AWAIT_ONE(word, (me + 1) % N, b); AWAIT_ONE(word, (me + 2) % N, b)

inline step_a(b) {
    may_fail();
    assert(written[me] < ID(b));
#ifdef EARLY_WORD
    partial[me] = ID(b);
    partials[PARTIAL(me, b)] = ID(b)
#else
    partials[PARTIAL(me, b)] = ID(b);
    partial[me] = ID(b) /* Q0 */
#endif
}

inline step_b(b) {
    may_fail();
#ifndef NO_B_WAIT
    AWAIT(partial, b); /* Q1 */
#endif
    results[RESULT(me, b)] = ID(b);
    atomic {
        assert(ALL_AT(partials, PARTIAL, b) && NONE_WRITTEN(b) && NONE_FREED);
        result[me] = ID(b) /* R0 */
    }
}

inline step_c(b) {
#ifndef EARLY_C
    AWAIT(result, b); /* R1 */
#endif
    written[me] = ID(b);
    assert(ALL_AT(results, RESULT, b) && NONE_FREED)
}

proctype owner(byte me) {
    byte seq = 0, b;
    do
    :: seq == COLLECTIVES -> break
    :: else ->
        accessing[me] = true;
        if :: stopped -> goto out :: else fi;
        b = 0;
        step_a(0);
#ifdef A_TOO_EARLY
        step_a(1);
#endif
        do
        :: b == BLOCKS -> break
        :: else ->
            step_b(b);
#ifdef A_TOO_EARLY
            if :: b + 2 < BLOCKS -> step_a(b + 2) :: else fi;
#else
            if :: b + 1 < BLOCKS -> step_a(b + 1) :: else fi;
#endif
            step_c(b);
            b++
        od;
        atomic { b = 0; accessing[me] = false };
        finished[me]++; /* the last meeting */
        seq++;
        if
        :: finished[0] >= seq && finished[1] >= seq && finished[2] >= seq
        :: stopped -> goto out
        fi
    od;
    goto end;
out:
    accessing[me] = false;
#ifndef NO_LEAVE_WAIT
    !accessing[0]; !accessing[1]; !accessing[2];
#endif
    freed[me] = true;
end:
    skip
}

init {
    atomic {
        select(fails : 0 .. N);
        run owner(0); run owner(1); run owner(2)
    }
}
