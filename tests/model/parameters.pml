/* tests/model/parameters.pml - a parameter whose shards several workers pull, and update by steps that gather
 * gradients (src/vars/parameters/parameter.h, src/vars/optimizer/parameter_step.c).
 *
 * Each worker pulls the shards, takes the number of a step under the lock of the iterations, and adds its
 * gradient, which is 1 in every element, to those that are gathered in each shard, under the lock of the
 * shard. The call that completes a shard's gradients updates its two elements, and counts the version. With
 * FREE a reader copies the elements of a shard without its lock, as with DITTO_CONCURRENCY_FREE_READS.
 *
 * With COUNTS the shards have no locks (DITTO_CONCURRENCY_HOGWILD), and each worker has a row of its own. It
 * counts its updates by itself. Another thread restores the version meanwhile, and a reader adds it up.
 *
 * Claims   Each step has the calls that it should. No gradient is lost, and none is applied twice. The
 *          version of a shard is the number of its updates. A pull sees one version. At the end, the
 *          gradients that no step has used are those that are gathered. A free reader sees at least the
 *          updates of the version. With COUNTS a reader sees the updates of each worker that it has counted,
 *          and no version below the restored one after a restore that it has seen.
 * Mutants  NO_LOCK        A shard is updated without its lock.
 *          NO_PULL_LOCK   A shard is pulled without its lock.
 *          NO_NUMBER_LOCK A step takes its number without the lock.
 *          SPLIT_LOCK     A shard's lock is released between gathering and updating.
 *          ONE_COUNT      The call that completes a step updates all shards: they do not count by themselves.
 *          NO_CLEAR       The gathered gradients are not cleared after an update.
 *          LATE_COUNT     The version is counted after the lock was released.
 *          EARLY_COUNT    The version is counted before the elements are written (with FREE).
 *          LATE_VERSION   A free reader reads the version after the elements.
 *          EARLY_UPDATE   A worker counts an update before it writes the element (with COUNTS).
 *          LATE_RESTORED  A reader reads the restored number after the counts (with COUNTS).
 *          PLAIN_RESTORED A restore does not subtract what was counted before (with COUNTS). */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef PUSHES
#define PUSHES 3
#endif
#ifndef ACCUMULATE
#define ACCUMULATE 2
#endif
#ifndef SHARDS
#define SHARDS 2
#endif
#define ALL (WORKERS * PUSHES)

/* Of each shard. The elements of shard s are 2 * s and 2 * s + 1. */
bool lock[SHARDS];
byte element[2 * SHARDS], gathered[SHARDS], gathered_in[SHARDS], version[SHARDS];

/* Of the optimizer. calls_of[n] is the number of calls that took the number n. */
bool iterations_lock;
byte steps, calls, calls_of[ALL + 2], ended;

inline acquire(l) {
    atomic { !l -> l = true }
}

inline pull(s) {
#ifndef NO_PULL_LOCK
    acquire(lock[s]);
#endif
    seen = version[s];
    first = element[2 * s];
    second = element[2 * s + 1];
#ifndef NO_PULL_LOCK
    lock[s] = false;
#endif
    assert(first == seen * ACCUMULATE && second == first)
}

/* A call is complete if it is the last one of its step. */
inline take_number() {
#ifndef NO_NUMBER_LOCK
    acquire(iterations_lock);
#endif
    number = steps + 1;
    sum = calls + 1;
    is_complete = sum >= ACCUMULATE;
    if
    :: is_complete -> calls = 0; steps = number
    :: else -> calls = sum
    fi;
#ifndef NO_NUMBER_LOCK
    iterations_lock = false;
#endif
    calls_of[number]++
}

/* Gathers a gradient. It is split into a read and a write, because another thread may come between them. */
inline gather(s) {
    sum = gathered[s];
    gathered[s] = sum + 1;
    sum = gathered_in[s];
    gathered_in[s] = sum + 1;
#ifndef ONE_COUNT
    is_complete = gathered_in[s] >= ACCUMULATE
#endif
}

inline count_version(s) {
    sum = version[s];
    version[s] = sum + 1 /* V0 */
}

inline update(s) {
    gathered_in[s] = 0;
#ifdef EARLY_COUNT
    count_version(s);
#endif
    sum = element[2 * s];
    element[2 * s] = sum + gathered[s];
    sum = element[2 * s + 1];
    element[2 * s + 1] = sum + gathered[s];
#ifndef NO_CLEAR
    gathered[s] = 0;
#endif
#if !defined(EARLY_COUNT) && !defined(LATE_COUNT)
    count_version(s)
#else
    skip
#endif
}

inline push(s) {
#ifndef NO_LOCK
    acquire(lock[s]);
#endif
    gather(s);
#ifdef SPLIT_LOCK
    lock[s] = false;
    acquire(lock[s]);
#endif
    if
    :: is_complete -> update(s)
    :: else
    fi;
#ifndef NO_LOCK
    lock[s] = false;
#endif
#ifdef LATE_COUNT
    if
    :: is_complete -> count_version(s)
    :: else
    fi
#else
    skip
#endif
}

#ifdef COUNTS
#define RESTORED 20

byte row[WORKERS], counted[WORKERS], given;

/* How many updates a worker had counted when the restore subtracted them. */
byte subtracted;
bool is_restored;

active [WORKERS] proctype counting_worker() {
    byte k;
    do
    :: k == PUSHES -> break
    :: else ->
#ifdef EARLY_UPDATE
        counted[_pid]++;
        row[_pid]++;
#else
        row[_pid]++;
        counted[_pid]++; /* V0 */
#endif
        k++
    od
}

active proctype restore() {
    byte w, sum;
    do
    :: w == WORKERS -> break
    :: else -> sum = sum + counted[w]; w++
    od;
    subtracted = sum;
    atomic {
#ifdef PLAIN_RESTORED
        given = RESTORED;
#else
        given = RESTORED - sum; /* V0 */
#endif
        is_restored = true
    }
}

active proctype version_reader() {
    byte w, base, sum, seen[WORKERS];
    bool knows;
#ifndef LATE_RESTORED
    atomic { base = given; knows = is_restored } /* V1 */
#endif
    do
    :: w == WORKERS -> break
    :: else -> seen[w] = counted[w]; sum = sum + seen[w]; w++ /* V1 */
    od;
#ifdef LATE_RESTORED
    atomic { base = given; knows = is_restored }
#endif
    w = 0;
    do
    :: w == WORKERS -> break
    :: else -> assert(row[w] >= seen[w]); w++
    od;
    assert(!knows || base + sum >= RESTORED);
    assert(!knows || base + sum <= RESTORED + ALL - subtracted)
}
#else
active [WORKERS] proctype worker() {
    byte k, s, seen, first, second, number, sum;
    bool is_complete;
    do
    :: k == PUSHES -> break
    :: else ->
        s = 0;
        do
        :: s == SHARDS -> break
        :: else -> pull(s); s++
        od;
        take_number();
        s = 0;
        do
        :: s == SHARDS -> break
        :: else -> push(s); s++
        od;
        k++
    od;
    ended++
}

#ifdef FREE
active proctype reader() {
    byte seen, first, second;
#ifdef LATE_VERSION
    first = element[0];
    second = element[1];
    seen = version[0];
#else
    seen = version[0]; /* V1 */
    first = element[0];
    second = element[1];
#endif
    assert(first >= seen * ACCUMULATE && second >= seen * ACCUMULATE)
}
#endif

active proctype join() {
    byte n = 1;
    ended == WORKERS;
    assert(steps == ALL / ACCUMULATE && calls == ALL % ACCUMULATE);
    do
    :: n > steps -> break
    :: else -> assert(calls_of[n] == ACCUMULATE); n++
    od;
    assert(calls_of[n] == calls);
    n = 0;
    do
    :: n == SHARDS -> break
    :: else ->
        assert(version[n] == steps && gathered[n] == calls && gathered_in[n] == calls);
        assert(element[2 * n] == steps * ACCUMULATE && element[2 * n + 1] == element[2 * n]);
        n++
    od
}
#endif
