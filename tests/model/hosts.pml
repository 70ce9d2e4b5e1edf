/* tests/model/hosts.pml - headers, data, errors and epochs between hosts (src/cluster/header.h, transfer.c).
 *
 * Three hosts make runs. In a run each host makes calls, and then ends it. Before each call and before the
 * end it sends a header to all others and takes theirs, and in a call it sends data to all and takes theirs.
 * Before any step a host may fail by itself, which includes that it gives up waiting. At once, or when its
 * program has gone on to the next call, it sends its last header, which says how many data messages it has
 * sent. It takes the headers of the others until it has their last ones, and drains the data. A host that has
 * ended its last run leaves. If another one gives up in that same exchange, it waits for the last header of a
 * host that has left, until its time limit, and the cluster is poisoned.
 *
 * Claims   All hosts end. All that end an epoch have the same error. A host takes data of the present epoch
 *          only, and exactly the headers of the present exchange. No host is poisoned unless another one has
 *          left.
 * Mutants  NO_DRAIN     Data of a stopped run stay on the wire.
 *          NO_LOOK      A host that waits for data does not look at headers.
 *          OWN_ERROR    Each host returns its own error, or the first that it has heard of.
 *          NO_LAST      A host that has heard of an error does not send a last header.
 *          NO_BREAK     The next exchange after a call that was given up takes place. */
#ifndef N
#define N 3
#endif
#ifndef CALLS
#define CALLS 1
#endif
#ifndef RUNS
#define RUNS 2
#endif
#define EPOCHS (RUNS + 1)
#define NONE   N
mtype = { CALL, END, LAST };

/* From host a to host b: kind, epoch, number, the host that has failed by itself, and the data that a has
 * sent b. */
#define WIRE(a, b) ((a) * N + (b))
#define IS_LAST(channel) channel?[LAST, tag, kind_number, from, count]
chan header[N * N] = [3] of { mtype, byte, byte, byte, byte };
chan data[N * N] = [2] of { byte };

byte verdict[N * EPOCHS];
bool decided[N * EPOCHS];
bool gone[N];

inline decide(epoch, me, error) {
    byte h = 0;
    d_step {
        verdict[me * EPOCHS + epoch] = error;
        decided[me * EPOCHS + epoch] = true;
        do
        :: h == N -> break
        :: else ->
            assert(!decided[h * EPOCHS + epoch] || verdict[h * EPOCHS + epoch] == error);
            h++
        od
    }
}

proctype host(byte me) {
    byte epoch = 0, runs = 0, number, calls, peer, origin, found, k;
    byte sent, taken[N], heard[N], told[N]; /* told: data that the peer has sent in this epoch */
    bool ended[N], broken = false;
    byte kind_number, from, count, tag;
    mtype kind;

next_epoch:
    if
    :: runs == RUNS || epoch == EPOCHS -> goto done
    :: else
    fi;
    d_step {
        number = 0; calls = 0; sent = 0; origin = NONE; broken = false;
        k = 0;
        do
        :: k == N -> break
        :: else -> taken[k] = 0; heard[k] = 0; ended[k] = false; told[k] = 0; k++
        od;
        k = 0
    }

exchange:
#ifndef NO_BREAK
    if
    :: broken -> goto fail
    :: else
    fi;
#endif
    if
    :: origin = me; goto fail /* fails by itself */
    :: skip
    fi;
    number++;
    peer = 0;
    do
    :: peer == N -> break
    :: peer == me -> peer++
    :: peer < N && peer != me ->
        if
        :: calls < CALLS -> header[WIRE(me, peer)]!CALL, epoch, number, 0, 0
        :: else -> header[WIRE(me, peer)]!END, epoch, number, 0, 0
        fi;
        peer++
    od;
    peer = 0;
    do
    :: peer == N -> break
    :: peer == me -> peer++
    :: peer < N && peer != me ->
        if
        :: header[WIRE(peer, me)]?kind, tag, kind_number, from, count ->
            assert(tag == epoch && kind_number == number);
            heard[peer] = number;
            if
            :: kind == LAST -> ended[peer] = true; told[peer] = count; origin = from; goto fail
            :: else -> peer++
            fi
        :: empty(header[WIRE(peer, me)]) -> origin = me; goto fail /* gives up */
        :: empty(header[WIRE(peer, me)]) -> origin = me; broken = true; goto exchange /* and goes on */
        fi
    od;
    if
    :: calls == CALLS -> goto well
    :: else -> calls++
    fi;

    peer = 0;
    do
    :: peer == N -> break
    :: peer == me -> peer++
    :: peer < N && peer != me -> data[WIRE(me, peer)]!epoch; peer++
    od;
    sent++;
    peer = 0;
    do
    :: peer == N -> break
    :: peer == me -> peer++
    :: peer < N && peer != me ->
        if
        :: data[WIRE(peer, me)]?tag -> assert(tag == epoch); taken[peer]++; peer++
#ifndef NO_LOOK
        /* Any host may have ended the epoch, not only the one whose data are missing. */
        :: empty(data[WIRE(peer, me)]) && IS_LAST(header[WIRE((me + 1) % N, me)]) ->
            k = (me + 1) % N; goto look
        :: empty(data[WIRE(peer, me)]) && IS_LAST(header[WIRE((me + 2) % N, me)]) ->
            k = (me + 2) % N; goto look
#endif
        fi
    od;
    goto exchange;

look:
    header[WIRE(k, me)]?kind, tag, kind_number, from, count;
    ended[k] = true; told[k] = count; origin = from; heard[k] = kind_number;

fail:
#ifdef NO_LAST
    if
    :: origin != me -> goto take_last
    :: else
    fi;
#endif
    number++;
    peer = 0;
    do
    :: peer == N -> break
    :: peer == me -> peer++
    :: peer < N && peer != me -> header[WIRE(me, peer)]!LAST, epoch, number, origin, sent; peer++
    od;
take_last:
    found = (origin == me -> me : NONE);
    peer = 0;
    do
    :: peer == N -> break
    :: peer == me -> peer++
    :: peer < N && peer != me && ended[peer] -> peer++
    :: peer < N && peer != me && !ended[peer] ->
        if
        :: header[WIRE(peer, me)]?kind, tag, kind_number, from, count
        :: empty(header[WIRE(peer, me)]) && gone[peer] -> goto done /* poisoned */
        fi;
        assert(tag == epoch && kind_number == heard[peer] + 1);
        heard[peer] = kind_number;
        if
        :: kind == LAST ->
            ended[peer] = true; told[peer] = count;
            if
            :: from == peer && peer < found -> found = peer
            :: else
            fi
        :: else
        fi
    od;
#ifdef OWN_ERROR
    found = origin;
#else
    /* An error that was heard of before counts too. The host that it is of has said so in its last header. */
    if
    :: origin != me && origin < found -> found = origin
    :: else
    fi;
#endif
    peer = 0;
    do
    :: peer == N -> break
    :: peer == me -> peer++
    :: peer < N && peer != me ->
#ifdef NO_DRAIN
        peer++
#else
        if
        :: taken[peer] == told[peer] -> peer++
        :: taken[peer] < told[peer] && nempty(data[WIRE(peer, me)]) ->
            data[WIRE(peer, me)]?tag; assert(tag == epoch); taken[peer]++
        fi
#endif
    od;
    decide(epoch, me, found);
    epoch++;
    runs++;
    goto next_epoch;

well:
    runs++;
    calls = 0;
    if
    :: runs == RUNS -> goto done
    :: else -> goto exchange
    fi;

done:
    gone[me] = true
}

init { atomic { byte h = 0; do :: h == N -> break :: else -> run host(h); h++ od } }
