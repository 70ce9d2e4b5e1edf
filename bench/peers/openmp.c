/* bench/peers/openmp.c - the same work in OpenMP: bound threads, a hand-written direct loop between two `omp barrier`s.
 *
 * A process of its own, so that its spinning threads can be stopped while somebody else is measured. It reads lines
 *     prepare KIND BYTES IN_PLACE | batch KIND REPS BASELINE | finish
 * and answers each with one line: the seconds of the slowest thread. */
#include "work.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void barrier(void *context, uint32_t id)
{
    (void)context, (void)id;
#pragma omp barrier
}

static void all_reduce(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    (void)context;
#pragma omp barrier
    work_owners_loop(work, w, id);
#pragma omp barrier
}

static const struct contender_ops ops = { barrier, all_reduce };
static struct worker clocks[1024], *workers;
static struct work work;

static double batch(bool baseline)
{
    struct worker *used = work.kind == BENCH_BARRIER ? clocks : workers;
    if (work.kind == BENCH_RUN) {
#pragma omp parallel
        {
        }
        double begin = now_seconds();
        for (uint64_t rep = 0; rep < work.reps; rep++) {
#pragma omp parallel
            {
                __asm__ volatile("" ::: "memory"); /* an empty region is still one */
            }
        }
        return now_seconds() - begin;
    }
    if (work.kind == BENCH_PARALLEL_FOR) {
        double begin = now_seconds();
        for (uint64_t rep = 0; rep < work.reps; rep++) {
#pragma omp parallel
            {
                __asm__ volatile("" ::: "memory");
                if (work.bytes > 0)
                    work_loop_part(&work, workers, (uint32_t)omp_get_thread_num());
            }
        }
        return now_seconds() - begin;
    }
#pragma omp parallel
    work_batch(&work, used, (uint32_t)omp_get_thread_num(), &ops, NULL, baseline);
    double slowest = 0;
    for (uint32_t i = 0; i < work.replicas; i++)
        slowest = used[i].seconds > slowest ? used[i].seconds : slowest;
    return slowest;
}

int main(int count, char **word)
{
    char line[256];
    int kind, in_place, baseline;
    work.replicas = count > 1 ? (uint32_t)atoi(word[1]) : 2;
    omp_set_dynamic(0);
    omp_set_num_threads((int)work.replicas);
    while (fgets(line, sizeof line, stdin) != NULL) {
        double seconds = 0;
        if (sscanf(line, "prepare %d %zu %d", &kind, &work.bytes, &in_place) == 3) {
            work.kind = (enum bench_kind)kind;
            work.in_place = in_place != 0;
            workers = work_allocate(&work);
#pragma omp parallel
            work_touch(&work, workers, (uint32_t)omp_get_thread_num());
        } else if (sscanf(line, "batch %d %zu %d", &kind, (size_t *)&work.reps, &baseline) == 3) {
            work.kind = (enum bench_kind)kind;
            seconds = batch(baseline != 0);
        } else {
            work_free(&work, workers);
        }
        printf("%.12g\n", seconds);
        fflush(stdout);
    }
    return 0;
}
