/* bench/bound.c - how fast it can be: loops written for the case at hand, without ditto, without errors, without stop.
 *
 * One pool of pinned threads; several forms of barrier and of all-reduce. The fastest form of a row is its bound. Every
 * form that is worth a thought belongs here: a ditto row that beats them all means that one is missing. */
#include "harness.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE() __asm__ volatile("" ::: "memory")
#endif
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1024 };

/* -- barriers -- */

struct line {
    alignas(128) _Atomic uint32_t word;
};
static struct rider {
    alignas(128) _Atomic uint32_t word;
    float payload[12];
} rider[2][2];
static struct line arrival[MOST][2];
static struct line counter, sense;
static struct {
    alignas(128) uint32_t count; /* plain, each thread its own line */
} episode[MOST];
static struct {
    alignas(128) uint32_t team;
    bool crowded; /* more threads than PUs */
} constant;       /* on a line that nobody writes */
#define team    constant.team
#define crowded constant.crowded

/* Everyone watches everyone's line, two parities; with a pause between two looks or, on cores that have nothing else to do,
 * without. */
static inline void watch_all(uint32_t id, bool pause)
{
    uint32_t e = ++episode[id].count;
    atomic_store_explicit(&arrival[id][e & 1].word, e, memory_order_release);
    for (uint32_t i = 1; i < team; i++) {
        uint32_t peer = id + i < team ? id + i : id + i - team;
        while (atomic_load_explicit(&arrival[peer][e & 1].word, memory_order_acquire) != e)
            if (pause)
                PAUSE();
    }
}

static void flags_barrier(void *context, uint32_t id)
{
    (void)context;
    watch_all(id, true);
}

static void eager_barrier(void *context, uint32_t id)
{
    (void)context;
    watch_all(id, false);
}

/* One counter, one sense word; waiting threads yield. */
static void yield_barrier(void *context, uint32_t id)
{
    uint32_t e = ++episode[id].count;
    (void)context;
    if (atomic_fetch_add_explicit(&counter.word, 1, memory_order_acq_rel) == team - 1) {
        atomic_store_explicit(&counter.word, 0, memory_order_relaxed);
        atomic_store_explicit(&sense.word, e, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&sense.word, memory_order_acquire) != e)
        sched_yield();
}

/* -- all-reduce, f32 SUM -- */

static void my_part(size_t count, uint32_t id, size_t *first, size_t *end)
{
    size_t lines = (count + 15) / 16, each = lines / team, more = lines % team;
    *first = (id * each + (id < more ? id : more)) * 16;
    *end = *first + (each + (id < more)) * 16;
    *end = *end < count ? *end : count;
}

/* Owners between two barriers. */
static void owners_form(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    const struct contender_ops *barrier = context;
    barrier->barrier(NULL, id);
    work_owners_loop(work, w, id);
    barrier->barrier(NULL, id);
}

#if defined(__x86_64__)
/* The same with non-temporal stores, for results that no cache can hold. Two threads, whole lines. */
static void streaming_form(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    const struct contender_ops *barrier = context;
    size_t first, end;
    my_part(work->bytes / 4, id, &first, &end);
    barrier->barrier(NULL, id);
    const float *a = w[0].src, *b = w[1].src;
    size_t i = first;
    for (; i + 4 <= end; i += 4) {
        __m128 sum = _mm_add_ps(_mm_load_ps(a + i), _mm_load_ps(b + i));
        _mm_stream_ps(w[0].dst + i, sum);
        _mm_stream_ps(w[1].dst + i, sum);
    }
    for (; i < end; i++)
        w[0].dst[i] = w[1].dst[i] = a[i] + b[i];
    _mm_sfence();
    barrier->barrier(NULL, id);
}

#endif

/* Eight threads: all eight inputs in one pass, in registers, into all eight results. */
static void eight_form(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    const struct contender_ops *barrier = context;
    size_t lines = (work->bytes / 4 + 15) / 16, count = work->bytes / 4;
    size_t first = lines * id / 8 * 16, end = lines * (id + 1) / 8 * 16;
    end = end < count ? end : count;
    barrier->barrier(NULL, id);
    const float *a = w[0].src, *b = w[1].src, *c = w[2].src, *d = w[3].src;
    const float *e = w[4].src, *f = w[5].src, *g = w[6].src, *h = w[7].src;
    float *s = w[0].dst, *t = w[1].dst, *u = w[2].dst, *v = w[3].dst;
    float *o = w[4].dst, *p = w[5].dst, *q = w[6].dst, *r = w[7].dst;
    WORK_INDEPENDENT
    for (size_t i = first; i < end; i++) {
        float sum = ((a[i] + b[i]) + (c[i] + d[i])) + ((e[i] + f[i]) + (g[i] + h[i]));
        s[i] = t[i] = u[i] = v[i] = o[i] = p[i] = q[i] = r[i] = sum;
    }
    barrier->barrier(NULL, id);
}

/* Small messages: copied to a line beside the flag; everyone adds everything; one meeting. */
enum { COPY_BYTES = 8192 };
static alignas(128) char copies[64][2][COPY_BYTES];
static void copies_form(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    const struct contender_ops *barrier = context;
    uint32_t parity = (episode[id].count + 1) & 1;
    size_t count = work->bytes / 4;
    memcpy(copies[id][parity], w[id].src, work->bytes);
    barrier->barrier(NULL, id);
    const float *a = (const float *)copies[0][parity];
    float *out = w[id].dst;
    if (team == 1) {
        memcpy(out, a, work->bytes);
        return;
    }
    for (uint32_t r = 1; r < team; r++) {
        const float *b = (const float *)copies[r][parity];
        for (size_t i = 0; i < count; i++)
            out[i] = (r == 1 ? a[i] : out[i]) + b[i];
    }
}

/* Up to 48 bytes: the message rides in the line of the flag; one line each way is all that moves. Two threads. */
static void rider_form(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    uint32_t e = ++episode[id].count, other = 1 - id;
    struct rider *mine = &rider[id][e & 1], *theirs = &rider[other][e & 1];
    (void)context;
    memcpy(mine->payload, w[id].src, work->bytes);
    atomic_store_explicit(&mine->word, e, memory_order_release);
    while (atomic_load_explicit(&theirs->word, memory_order_acquire) != e)
        PAUSE();
    const float *a = id == 0 ? mine->payload : theirs->payload, *b = id == 0 ? theirs->payload : mine->payload;
    for (size_t i = 0; i < work->bytes / 4; i++)
        w[id].dst[i] = a[i] + b[i];
}

/* -- the pool -- */

struct pool {
    pthread_t thread[MOST];
    struct line go, done[MOST];
    const struct work *work;
    struct worker *workers;
    const struct contender_ops *ops;
    bool baseline, touch, loop, rest, end;
    sem_t awake[MOST]; /* at rest the threads sleep here, so that others are not disturbed */
};
static struct pool pool;

/* Spins (or yields): within a batch nobody sleeps. */
static void pool_wait(_Atomic uint32_t *word, uint32_t value)
{
    while (atomic_load_explicit(word, memory_order_acquire) != value)
        if (crowded)
            sched_yield();
        else
            PAUSE();
}

static void pool_work(uint32_t id)
{
    if (pool.loop)
        work_loop_part(pool.work, pool.workers, id);
    else if (pool.touch)
        work_touch(pool.work, pool.workers, id);
    else if (pool.work != NULL)
        work_batch(pool.work, pool.workers, id, pool.ops, (void *)(uintptr_t)pool.ops, pool.baseline);
}

static void *pool_thread(void *argument)
{
    uint32_t id = (uint32_t)(uintptr_t)argument;
    pin_to_part(id, team);
    sem_wait(&pool.awake[id]);
    for (uint32_t round = 1;; round++) {
        pool_wait(&pool.go.word, round);
        if (pool.end)
            return NULL;
        bool rest = pool.rest; /* read before done is told: the master then may change it */
        if (!rest)
            pool_work(id);
        atomic_store_explicit(&pool.done[id].word, round, memory_order_release);
        if (rest)
            sem_wait(&pool.awake[id]);
    }
}

/* Fork and join with nothing around it: one go line, one done line per thread. */
static void fork_join(void)
{
    uint32_t round = atomic_load_explicit(&pool.go.word, memory_order_relaxed) + 1;
    atomic_store_explicit(&pool.go.word, round, memory_order_release);
    if (pool.end)
        return;
    if (!pool.rest)
        pool_work(0);
    for (uint32_t i = 1; i < team; i++)
        pool_wait(&pool.done[i].word, round);
}

static void wake_pool(void)
{
    for (uint32_t i = 1; i < team; i++)
        sem_post(&pool.awake[i]);
}

static void rest_pool(void)
{
    pool.rest = true;
    fork_join();
    pool.rest = false;
}

static double slowest(uint32_t replicas, const struct worker *w)
{
    double most = 0;
    for (uint32_t i = 0; i < replicas; i++)
        most = w[i].seconds > most ? w[i].seconds : most;
    return most;
}

/* -- contenders: each form is one -- */

struct form {
    const char *name;
    struct contender_ops ops;
    size_t most_bytes;
    uint32_t only_for; /* so many threads; 0: any */
    bool for_crowds, for_the_rest;
};
static const struct form forms[] = {
    { "flags", { flags_barrier, owners_form }, SIZE_MAX, 0, false, true },
    { "eager", { eager_barrier, owners_form }, SIZE_MAX, 0, false, true },
    { "yield", { yield_barrier, owners_form }, SIZE_MAX, 0, true, false },
    { "rider", { flags_barrier, rider_form }, 48, 2, false, true },
    { "eight", { flags_barrier, eight_form }, SIZE_MAX, 8, false, true },
    { "eight-yield", { yield_barrier, eight_form }, SIZE_MAX, 8, true, false },
    { "copies", { eager_barrier, copies_form }, COPY_BYTES, 0, false, true },
    { "copies-yield", { yield_barrier, copies_form }, COPY_BYTES, 0, true, false },
#if defined(__x86_64__)
    { "streaming", { eager_barrier, streaming_form }, SIZE_MAX, 2, false, true },
#endif
};
static struct worker *shared_workers; /* one set of buffers for all forms */
static uint32_t users;

static double bound_batch(void *state, const struct work *work, bool baseline)
{
    const struct form *form = state;
    static struct worker clocks[MOST];
    bool forks = work->kind == BENCH_RUN || work->kind == BENCH_PARALLEL_FOR;
    if (work->bytes > form->most_bytes || (forks && form != &forms[crowded ? 2 : 0]))
        return -1;
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    pin_to_part(0, team);
    pool.work = forks ? NULL : work;
    pool.workers = work->kind == BENCH_BARRIER ? clocks : shared_workers;
    pool.ops = &form->ops;
    pool.baseline = baseline;
    wake_pool();
    fork_join();
    double seconds = forks ? 0 : slowest(work->replicas, pool.workers);
    if (forks) {
        pool.work = work;
        pool.loop = work->bytes > 0 && work->kind == BENCH_PARALLEL_FOR;
        if (!pool.loop)
            pool.work = NULL;
        double begin = now_seconds();
        for (uint64_t rep = 0; rep < work->reps; rep++)
            fork_join();
        seconds = now_seconds() - begin;
        pool.loop = false;
    }
    rest_pool();
    sched_setaffinity(0, sizeof before, &before);
    return seconds;
}

static void bound_prepare(void *state, const struct work *work)
{
    (void)state;
    if (users++ > 0)
        return;
    shared_workers = work_allocate(work);
    pool.work = work;
    pool.workers = shared_workers;
    pool.touch = true;
    wake_pool();
    fork_join();
    rest_pool();
    pool.touch = false;
}

static void bound_finish(void *state, const struct work *work)
{
    (void)state;
    if (--users == 0)
        work_free(work, shared_workers);
}

uint32_t bound_open(struct contender *out, uint32_t replicas)
{
    uint32_t count = 0;
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    pin_to_part(0, 1); /* learns the process's PUs */
    sched_setaffinity(0, sizeof before, &before);
    team = replicas;
    crowded = replicas > (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    for (uint32_t i = 1; i < replicas; i++)
        if (sem_init(&pool.awake[i], 0, 0) != 0 ||
            pthread_create(&pool.thread[i], NULL, pool_thread, (void *)(uintptr_t)i) != 0)
            exit(1);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if ((crowded ? forms[i].for_crowds : forms[i].for_the_rest) &&
            (forms[i].only_for == 0 || forms[i].only_for == replicas) &&
            !(forms[i].most_bytes == COPY_BYTES && replicas > 64))
            out[count++] = (struct contender){ .name = forms[i].name,
                                               .is_bound = true,
                                               .state = (void *)(uintptr_t)&forms[i],
                                               .batch = bound_batch,
                                               .prepare = bound_prepare,
                                               .finish = bound_finish };
    return count;
}

void bound_close(void)
{
    pool.end = true;
    wake_pool();
    fork_join();
    for (uint32_t i = 1; i < team; i++)
        pthread_join(pool.thread[i], NULL);
}
