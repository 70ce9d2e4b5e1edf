/* tests/model/steps.pml - headers that go in steps (src/cluster/header_steps.c, header.c).
 *
 * Four hosts are a ring, or the corners of a square (CUBE). In an exchange a host has the headers of `have`
 * hosts. It sends them to the host that is `have` below, and waits for those of the host that is `have`
 * above. Before an exchange, or in the middle of it, a host may fail by itself, which includes that it gives
 * up waiting. It then sends its last header to all, which says what exchange it has finished, and so does
 * every host that hears of it. In an exchange, a host hears only those that send it steps. The others must be
 * able to finish an exchange that a failed host has finished. When a host has all last headers, the next
 * epoch begins. Questions, which only say who is late, are not in the model.
 *
 * Claims   All hosts end. A host takes headers of the present epoch and exchange only, in the order of the
 *          ring, and has all of them when it finishes. A host does not finish an exchange only if a host has
 *          failed by itself that had not finished it. All hosts that end an epoch have the same error.
 * Mutants  NO_FINISHED  Every last header ends the exchange in which it is seen.
 *          NO_ORDER     Messages of later steps are taken at once.
 *          NO_EPOCH     The messages of a stopped exchange are not taken at the end of the epoch.
 *          NO_LAST      A host that has heard of an error sends no last header. */
#ifndef HOSTS
#define HOSTS 4
#endif
#define N HOSTS
#ifndef EXCHANGES
#define EXCHANGES 1
#endif
#ifndef EPOCHS
#define EPOCHS 1
#endif
/* So many hosts fail by themselves, at most. If it is one, it is host 0, because all hosts are alike. */
#ifndef FAILURES
#define FAILURES 1
#endif
#define may_fail (failures < FAILURES && (FAILURES > 1 || me == 0))
#define NONE      N

mtype = { STEP, LAST };
/* From host a to host b: kind, epoch, the number of the exchange or of the one that was finished, and the
 * number of headers, or the host that has failed by itself. */
#define WIRE(a, b) ((a) * N + (b))
chan wire[N * N] = [2] of { mtype, byte, byte, byte };

/* The last exchange that every host which has failed by itself in an epoch had finished. */
byte least_finished[EPOCHS];
byte verdict[EPOCHS];
byte failures;
bool gone[N];

#ifdef CUBE
#define above(place) ((me) ^ (place))
#define below(place) ((me) ^ (place))
#else
#define above(place) ((me + (place)) % N)
#define below(place) ((me + N - (place)) % N)
#endif
#define moved(have)     ((have) * 2 <= N -> (have) : N - (have))

proctype host(byte me) {
    byte epoch = 0, number, have, finished, origin, found, h, count, n, e;
    bool ended[N];
    mtype kind;

next_epoch:
    if
    :: epoch == EPOCHS -> goto done
    :: else
    fi;
    d_step {
        number = 0; finished = 0; origin = NONE; found = NONE; h = 0;
        do
        :: h == N -> break
        :: else -> ended[h] = false; h++
        od;
        h = 0
    }

exchange: skip;
    d_step { h = 0; count = 0; n = 0; e = 0; kind = 0 }
    if
    :: may_fail -> failures++; goto fails
    :: number == EXCHANGES -> goto done
    :: number < EXCHANGES
    fi;
    atomic {
        number++;
        have = 1;
        wire[WIRE(me, below(1))] ! STEP, epoch, number, 1
    }
wait: skip;
    do
    :: have == N -> break
    :: atomic { have < N && !ended[above(have)] && wire[WIRE(above(have), me)] ? [STEP, e, n, count] ->
            wire[WIRE(above(have), me)] ? STEP, e, n, count;
            assert(e == epoch && n == number && count == moved(have));
            have = have + count;
            if
            :: have < N -> wire[WIRE(me, below(have))] ! STEP, epoch, number, moved(have)
            :: else
            fi;
            e = 0; n = 0; count = 0 }
#ifdef NO_ORDER
    :: have == 1 && !ended[above(2)] && wire[WIRE(above(2), me)] ? [STEP, e, n, count] ->
        d_step {
            wire[WIRE(above(2), me)] ? STEP, e, n, count;
            assert(e == epoch && n == number && count == moved(have));
            have = have + count
        }
#endif
    :: have < N && !ended[above(1)] && wire[WIRE(above(1), me)] ? [LAST, e, n, count] ->
        h = above(1); goto look
    :: have < N && !ended[above(2)] && wire[WIRE(above(2), me)] ? [LAST, e, n, count] ->
        h = above(2); goto look
    :: have < N && may_fail -> failures++; goto fails /* gives up */
    od;
    finished = number;
    if
    :: origin != NONE -> goto fail /* the next exchange ends at once */
    :: else -> goto exchange
    fi;

look: skip;
    d_step {
        wire[WIRE(h, me)] ? LAST, e, n, count;
        assert(e == epoch);
        ended[h] = true;
        origin = (origin == NONE -> count : origin);
        found = (count < found -> count : found)
    }
    /* If that host has finished this exchange, so can this one. */
    if
#ifndef NO_FINISHED
    :: n >= number -> goto wait
#endif
    :: else
    fi;
    assert(least_finished[epoch] < number);
    h = 0; count = 0; n = 0; e = 0;
    goto fail;

fails: skip;
    /* By itself, unless it has heard of another failure before. */
    d_step {
        origin = (origin == NONE -> me : origin);
        found = (origin == me && me < found -> me : found);
        least_finished[epoch] = (finished < least_finished[epoch] -> finished : least_finished[epoch])
    }
fail:
#ifdef NO_LAST
    if
    :: origin != me -> goto take
    :: else
    fi;
#endif
    atomic {
        h = 0;
        do
        :: h == N -> break
        :: h == me -> h++
        :: h < N && h != me -> wire[WIRE(me, h)] ! LAST, epoch, finished, origin; h++
        od
    }
take:
    h = 0;
    do
    :: h == N -> break
    :: h < N && (h == me || ended[h]) -> h++
    :: h < N && h != me && !ended[h] ->
        if
        :: atomic { wire[WIRE(h, me)] ? kind, e, n, count ->
            assert(e == epoch);
            if
            :: kind == LAST ->
                ended[h] = true;
                if
                :: count < found -> found = count
                :: else
                fi
#ifdef NO_EPOCH
            :: kind == STEP -> ended[h] = true
#else
            :: else
#endif
            fi }
        :: empty(wire[WIRE(h, me)]) && gone[h] -> goto done /* poisoned */
        fi
    od;
    skip;
    d_step {
        assert(verdict[epoch] == NONE || verdict[epoch] == found);
        verdict[epoch] = found
    }
    epoch++;
    goto next_epoch;

done:
    gone[me] = true
}

init {
    byte i = 0;
    atomic {
        do
        :: i == EPOCHS -> break
        :: else -> verdict[i] = NONE; least_finished[i] = EXCHANGES; i++
        od;
        i = 0;
        do
        :: i == N -> break
        :: else -> run host(i); i++
        od
    }
}
