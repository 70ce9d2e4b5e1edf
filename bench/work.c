/* bench/work.c - the measured work. See work.h. */
#include "work.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void rewrite(struct worker *w, size_t count, uint64_t rep)
{
    float value = (float)(rep & 7);
    for (size_t i = 0; i < count; i++)
        w->src[i] = value;
}

static void look(struct worker *w, size_t count)
{
    float sum = 0;
    for (size_t i = 0; i < count; i += 16)
        sum += w->dst[i];
    w->seen += sum;
}

void work_batch(const struct work *work, struct worker *workers, uint32_t id, const struct contender_ops *ops,
                void *context, bool baseline)
{
    struct worker *w = &workers[id];
    size_t count = work->bytes / sizeof(float);
    ops->barrier(context, id);
    double begin = now_seconds();
    if (work->kind == BENCH_BARRIER) {
        for (uint64_t rep = 0; rep < work->reps; rep++)
            ops->barrier(context, id);
    } else {
        for (uint64_t rep = 0; rep < work->reps; rep++) {
            rewrite(w, count, rep);
            if (baseline)
                ops->barrier(context, id);
            else
                ops->all_reduce(context, id, work, workers);
            look(w, count);
        }
    }
    w->seconds = now_seconds() - begin;
    ops->barrier(context, id);
}

static float *map_floats(size_t bytes)
{
    size_t padded = (bytes + 4095) / 4096 * 4096 + 4096;
    float *memory = mmap(NULL, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("bench: mmap");
        exit(1);
    }
    madvise(memory, padded, MADV_HUGEPAGE); /* the same for everyone */
    return memory;
}

struct worker *work_allocate(const struct work *work)
{
    struct worker *workers = aligned_alloc(128, work->replicas * sizeof *workers);
    for (uint32_t i = 0; i < work->replicas; i++) {
        workers[i] = (struct worker){ .src = map_floats(work->bytes) };
        workers[i].dst = work->in_place ? workers[i].src : map_floats(work->bytes);
    }
    return workers;
}

void work_touch(const struct work *work, struct worker *workers, uint32_t id)
{
    for (size_t i = 0; i < work->bytes / sizeof(float); i++)
        workers[id].src[i] = workers[id].dst[i] = 0;
}

void work_free(const struct work *work, struct worker *workers)
{
    size_t padded = (work->bytes + 4095) / 4096 * 4096 + 4096;
    for (uint32_t i = 0; i < work->replicas; i++) {
        munmap(workers[i].src, padded);
        if (!work->in_place)
            munmap(workers[i].dst, padded);
    }
    free(workers);
}

void pin_to_nth(uint32_t id)
{
    cpu_set_t allowed, one;
    static cpu_set_t first; /* what the process had before any thread was bound */
    static bool known;
    if (!known) {
        sched_getaffinity(0, sizeof first, &first);
        known = true;
    }
    allowed = first;
    uint32_t wanted = id % (uint32_t)CPU_COUNT(&allowed);
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && wanted-- == 0) {
            CPU_SET(cpu, &one);
            break;
        }
    sched_setaffinity(0, sizeof one, &one);
}
