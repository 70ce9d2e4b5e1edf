/* bench/bound.c - measures the bound of a row, which is the time of the fastest form in bound_forms.c. A pool
 * of pinned threads runs the forms, without ditto, and without handling errors and stops. */
#include "bound.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = WORK_MOST_REPLICAS };
#define team           bound_team.size
#define oversubscribed bound_team.oversubscribed

/* -- the pool -- */

struct pool {
    pthread_t thread[MOST];
    struct {
        alignas(128) _Atomic uint32_t word;
    } go, done[MOST];
    const struct work *work;
    struct worker *workers;
    const struct form *form;
    bool baseline, touch, loop, rest, end;

    /* Threads sleep here while other contenders are measured. */
    sem_t awake[MOST];

    pid_t id[MOST];               /* of each thread */
    const struct worker *counted; /* the workers of the last batch */
};
static struct pool pool;

/* Spins, or yields if there are more threads than PUs. No thread sleeps within a batch. */
static void pool_wait(_Atomic uint32_t *word, uint32_t value)
{
    while (atomic_load_explicit(word, memory_order_acquire) != value)
        if (oversubscribed)
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
        work_batch(pool.work, pool.workers, id, &pool.form->ops, (void *)(uintptr_t)pool.form, pool.baseline);
}

static void *pool_thread(void *argument)
{
    uint32_t id = (uint32_t)(uintptr_t)argument;
    pin_to_part(id, team);
    pool.id[id] = counters_this_thread();
    sem_wait(&pool.awake[id]);
    for (uint32_t round = 1;; round++) {
        pool_wait(&pool.go.word, round);
        if (pool.end)
            return NULL;
        /* Is read before the store to `done`, because the main thread may change it after that. */
        bool rest = pool.rest;
        if (!rest)
            pool_work(id);
        atomic_store_explicit(&pool.done[id].word, round, memory_order_release);
        if (rest)
            sem_wait(&pool.awake[id]);
    }
}

/* A minimal fork and join. There is one line for `go`, and one line for `done` of each thread. */
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

/* -- contenders, one for each form -- */

static struct worker *shared_workers; /* one set of buffers for all forms */
static uint32_t users;

/* Each repetition is a fork and a join, with a loop between them if there is one. Sets the counts of
 * `clocks`. */
static double forks(const struct work *work, struct worker *clocks)
{
    pool.work = work->bytes > 0 && work->kind == BENCH_PARALLEL_FOR ? work : NULL;
    pool.loop = pool.work != NULL;
    counters_start_all();
    double begin = now_seconds();
    for (uint64_t rep = 0; rep < work->reps; rep++)
        fork_join();
    double seconds = now_seconds() - begin;
    counters_stop_all();
    pool.loop = false;
    for (uint32_t i = 0; i < work->replicas; i++)
        counters_read(pool.id[i], &clocks[i].counts);
    return seconds;
}

static struct timing bound_batch(void *state, const struct work *work, bool baseline)
{
    const struct form *form = state;
    static struct worker clocks[MOST];
    bool forking = work->kind == BENCH_RUN || work->kind == BENCH_PARALLEL_FOR;
    struct timing timing;
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    pin_to_part(0, team);
    pool.work = forking ? NULL : work;
    pool.workers = work->kind == BENCH_BARRIER ? clocks : shared_workers;
    pool.form = form;
    pool.baseline = baseline;
    wake_pool();
    fork_join();
    if (forking)
        timing = (struct timing){ forks(work, clocks), 0, 0 };
    else
        timing = work_timing(pool.workers, work->replicas);
    pool.counted = forking ? clocks : pool.workers;
    rest_pool();
    sched_setaffinity(0, sizeof before, &before);
    return timing;
}

static const struct counts *bound_counts(void *form, uint32_t replica)
{
    (void)form;
    return &pool.counted[replica].counts;
}

static bool bound_prepare(void *state, const struct work *work)
{
    if (!form_does(state, work))
        return false;
    bound_slots_open(state, work->replicas);
    if (users++ > 0)
        return true;
    shared_workers = work_allocate(work);
    pool.work = work;
    pool.workers = shared_workers;
    pool.touch = true;
    wake_pool();
    fork_join();
    rest_pool();
    pool.touch = false;
    return true;
}

static void bound_finish(void *state, const struct work *work)
{
    (void)state;
    if (--users == 0)
        work_free(work, shared_workers);
}

static bool fits(const struct form *form)
{
    return (oversubscribed ? form->for_shared_pus : form->for_own_pus) && team >= form->least_team &&
           (form->most_team == 0 || team <= form->most_team) && variant_exists(form->variant);
}

uint32_t bound_open(struct contender *out, enum bench_kind kind, uint32_t replicas)
{
    uint32_t count = 0;
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    pin_to_part(0, 1); /* the first call reads the PUs of the process */
    sched_setaffinity(0, sizeof before, &before);
    team = replicas;
    pool.id[0] = counters_this_thread();
    oversubscribed = replicas > (uint32_t)CPU_COUNT(&before);
    for (uint32_t i = 1; i < replicas; i++)
        if (sem_init(&pool.awake[i], 0, 0) != 0 ||
            pthread_create(&pool.thread[i], NULL, pool_thread, (void *)(uintptr_t)i) != 0)
            exit(1);
    for (uint32_t i = 0; i < bound_form_count; i++)
        if (fits(&bound_forms[i]) && (bound_forms[i].kinds >> bench_facts[kind].like & 1u) != 0)
            out[count++] = (struct contender){ .name = bound_forms[i].name,
                                               .is_bound = true,
                                               .state = (void *)(uintptr_t)&bound_forms[i],
                                               .batch = bound_batch,
                                               .prepare = bound_prepare,
                                               .finish = bound_finish,
                                               .counts = bound_counts };
    return count;
}

void bound_close(void)
{
    pool.end = true;
    wake_pool();
    fork_join();
    for (uint32_t i = 1; i < team; i++)
        pthread_join(pool.thread[i], NULL);
    bound_slots_close();
}
