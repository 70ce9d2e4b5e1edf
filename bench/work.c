/* bench/work.c - the measured work. See work.h. */
#include "work.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    if (work->kind ==
        BENCH_ALL_REDUCE) { /* once untimed: what others did meanwhile has emptied the caches of our buffers */
        rewrite(w, count, 0);
        ops->all_reduce(context, id, work, workers);
        look(w, count);
    }
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

static void add_block(float *restrict sum, const float *restrict more, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += more[i];
}

void work_owners_loop(const struct work *work, struct worker *w, uint32_t id)
{
    enum { BLOCK = 1024 };
    uint32_t n = work->replicas;
    size_t count = work->bytes / 4, lines = (count + 15) / 16, each = lines / n, more = lines % n;
    size_t first = (id * each + (id < more ? id : more)) * 16, end = first + (each + (id < more)) * 16;
    end = end < count ? end : count;
    if (n == 2) {
        const float *a = w[0].src, *b = w[1].src;
        float *x = w[0].dst, *y = w[1].dst;
        WORK_INDEPENDENT
        for (size_t i = first; i < end; i++)
            x[i] = y[i] = a[i] + b[i];
        return;
    }
    for (; first < end; first += BLOCK) {
        float sum[BLOCK];
        size_t block = end - first < BLOCK ? end - first : BLOCK;
        memcpy(sum, w[0].src + first, block * sizeof *sum);
        for (uint32_t r = 1; r < n; r++)
            add_block(sum, w[r].src + first, block);
        for (uint32_t r = 0; r < n; r++)
            memcpy(w[(id + r) % n].dst + first, sum, block * sizeof *sum);
    }
}

void work_loop(struct worker *workers, size_t first, size_t end)
{
    float *restrict a = workers[0].src;
    for (size_t i = first; i < end; i++)
        a[i] = a[i] * 0.5f + 1.0f;
}

void work_loop_part(const struct work *work, struct worker *workers, uint32_t id)
{
    size_t lines = work->bytes / 64; /* parts meet at borders of lines, as ditto's do with a grain of 16 */
    work_loop(workers, lines * id / work->replicas * 16, lines * (id + 1) / work->replicas * 16);
}

#define HUGE_PAGE ((size_t)2 << 20)

/* Whole huge pages, the same for everyone: else who allocates first gets the better pages, and is faster for it. */
static size_t padded_bytes(const struct work *work)
{
    return (work->bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

static float *map_floats(const struct work *work)
{
    size_t bytes = padded_bytes(work);
    char *raw = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) {
        perror("bench: mmap");
        exit(1);
    }
    char *start = (char *)(((uintptr_t)raw + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    if (start > raw)
        munmap(raw, (size_t)(start - raw));
    munmap(start + bytes, (size_t)(raw + HUGE_PAGE - start));
    madvise(start, bytes, MADV_HUGEPAGE);
    return (float *)start;
}

/* The array of a loop: one for all contenders of a process, because a loop that memory bounds is some percent faster on some
 * pages than on others, and that is not what is asked. */
static struct {
    float *array;
    uint32_t users;
} loop;

static float *loop_array(const struct work *work)
{
    if (loop.users++ == 0)
        loop.array = map_floats(work);
    return loop.array;
}

struct worker *work_allocate(const struct work *work)
{
    struct worker *workers = aligned_alloc(128, work->replicas * sizeof *workers);
    for (uint32_t i = 0; i < work->replicas; i++) {
        workers[i] = (struct worker){ 0 };
        if (work->kind == BENCH_PARALLEL_FOR) {
            workers[i].src = i == 0 ? loop_array(work) : NULL;
            continue;
        }
        workers[i].src = map_floats(work);
        workers[i].dst = work->in_place ? workers[i].src : map_floats(work);
    }
    return workers;
}

void work_touch(const struct work *work, struct worker *workers, uint32_t id)
{
    if (work->kind == BENCH_PARALLEL_FOR) {
        work_loop_part(work, workers, id);
        return;
    }
    for (size_t i = 0; i < work->bytes / sizeof(float); i++)
        workers[id].src[i] = workers[id].dst[i] = 0;
}

void work_free(const struct work *work, struct worker *workers)
{
    bool shared = work->kind == BENCH_PARALLEL_FOR;
    if (shared && --loop.users == 0)
        munmap(loop.array, padded_bytes(work));
    for (uint32_t i = 0; i < work->replicas && !shared; i++) {
        munmap(workers[i].src, padded_bytes(work));
        if (!work->in_place)
            munmap(workers[i].dst, padded_bytes(work));
    }
    free(workers);
}

void pin_to_part(uint32_t id, uint32_t count)
{
    cpu_set_t allowed, one;
    static cpu_set_t first; /* what the process had before any thread was bound */
    static bool known;
    if (!known) {
        sched_getaffinity(0, sizeof first, &first);
        known = true;
    }
    allowed = first;
    uint32_t pus = (uint32_t)CPU_COUNT(&allowed), wanted = count > pus ? id * pus / count : id;
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && wanted-- == 0) {
            CPU_SET(cpu, &one);
            break;
        }
    sched_setaffinity(0, sizeof one, &one);
}
