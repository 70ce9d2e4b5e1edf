/* bench/peers/openmp.c - does the work of bench/work.h with OpenMP. Threads are bound, and a collective is
 * a hand-written loop between two `omp barrier`s. */
#include "protocol.h"
#include "loops.h"

#include <omp.h>
#include <stdlib.h>
#include <unistd.h>

static void barrier(void *context, uint32_t id)
{
    (void)context, (void)id;
#pragma omp barrier
}

static void collective(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    (void)context;
#pragma omp barrier
    loops_collective(work, w, id);
#pragma omp barrier
}

static const struct contender_ops ops = { barrier, collective };
static struct worker workers_without_buffers[WORK_MOST_REPLICAS], *workers;
static struct work work;

/* Each repetition is a parallel region, which is empty or contains a loop. */
static struct timing regions(bool loop)
{
    counters_find_threads();
#pragma omp parallel
    counters_start_own();
    double begin = now_seconds();
    for (uint64_t rep = 0; rep < work.reps; rep++) {
#pragma omp parallel
        {
            __asm__ volatile("" ::: "memory"); /* keeps the compiler from removing the region */
            if (loop)
                work_loop_part(&work, workers, (uint32_t)omp_get_thread_num());
        }
    }
    struct timing timing = { now_seconds() - begin, 0, 0 };
#pragma omp parallel
    counters_stop_own(&workers_without_buffers[omp_get_thread_num()].counts);
    return timing;
}

static struct worker *used_workers(void)
{
    const struct bench_facts *facts = &bench_facts[work.kind];
    return facts->collective || work_is_program(work.kind) ? workers : workers_without_buffers;
}

static struct timing batch(bool baseline)
{
    struct worker *used = used_workers();
    if (work.kind == BENCH_RUN || work.kind == BENCH_PARALLEL_FOR)
        return regions(work.kind == BENCH_PARALLEL_FOR && work.bytes > 0);
#pragma omp parallel
    work_batch(&work, used, (uint32_t)omp_get_thread_num(), &ops, NULL, baseline);
    return work_timing(used, work.replicas);
}

/* Returns false if this peer cannot do the work. BENCH_LIST, one call for many tensors, is done as one loop
 * over all of them. BENCH_ASYNC is refused, because a loop cannot be started and waited for later. */
static bool prepare(const struct work *wanted)
{
    uint32_t replicas = work.replicas;
    work = *wanted;
    work.replicas = replicas;
    if (!loops_can(&work) || work.kind == BENCH_ASYNC)
        return false;
    workers = work_allocate(&work);
#pragma omp parallel
    work_touch(&work, workers, (uint32_t)omp_get_thread_num());
    return true;
}

int main(int count, char **word)
{
    work.replicas = count > 1 ? (uint32_t)atoi(word[1]) : 2;
    choose_counters();
    omp_set_dynamic(0);
    omp_set_num_threads((int)work.replicas);
    printf("hello %d\n", (int)getpid());
    fflush(stdout);
    for (;;) {
        struct order order = read_order(stdin);
        switch (order.what) {
        case ORDER_PREPARE:
            answer_yes(prepare(&order.work));
            break;
        case ORDER_BATCH:
            work.kind = order.work.kind;
            work.reps = order.work.reps;
            work.skew_ns = order.work.skew_ns;
            answer(batch(order.baseline != 0), &used_workers()->counts, sizeof *workers, work.replicas);
            break;
        case ORDER_FINISH:
            work_free(&work, workers);
            answer_yes(true);
            break;
        case ORDER_FUNCTIONS:
            answer_yes(false);
            break;
        case ORDER_END:
            return 0;
        }
    }
}
