/* bench/buffers.c - the memory of the measured work, and the PUs of its threads, see work.h. */
#include "work.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

static size_t buffer_bytes(const struct work *work)
{
    return work->kind == BENCH_CG      ? cg_buffer_bytes(work)
           : work->kind == BENCH_TRAIN ? train_buffer_bytes(work)
                                       : work->bytes;
}

/* Rounds up to whole huge pages. Otherwise the contender that allocates first would get better pages and be
 * faster. */
static size_t padded_bytes(const struct work *work)
{
    return (buffer_bytes(work) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

static char *map_bytes(const struct work *work)
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
    return start;
}

static void map_worker(const struct work *work, struct worker *w)
{
    w->src = map_bytes(work);
    w->dst = work->in_place ? w->src : map_bytes(work);
}

/* The array of a parallel loop. All contenders of a process share it, because a loop that memory bandwidth
 * limits is some percent faster on some pages than on others. */
static struct {
    char *array;
    uint32_t users;
} loop;

static struct worker *no_buffers(const struct work *work)
{
    struct worker *workers = aligned_alloc(128, (work->replicas * sizeof *workers + 127) / 128 * 128);
    if (workers == NULL)
        exit(1);
    memset(workers, 0, work->replicas * sizeof *workers);
    return workers;
}

struct worker *work_allocate_one(const struct work *work, uint32_t id)
{
    struct worker *workers = no_buffers(work);
    map_worker(work, &workers[id]);
    return workers;
}

struct worker *work_allocate(const struct work *work)
{
    struct worker *workers = no_buffers(work);
    if (work->kind == BENCH_PARALLEL_FOR) {
        if (loop.users++ == 0)
            loop.array = map_bytes(work);
        workers[0].src = loop.array;
        return workers;
    }
    for (uint32_t i = 0; i < work->replicas; i++)
        map_worker(work, &workers[i]);
    return workers;
}

void work_touch(const struct work *work, struct worker *workers, uint32_t id)
{
    if (work->kind == BENCH_PARALLEL_FOR) {
        work_loop_part(work, workers, id);
        return;
    }
    memset(workers[id].src, 0, buffer_bytes(work));
    memset(workers[id].dst, 0, buffer_bytes(work));
}

void work_free(const struct work *work, struct worker *workers)
{
    bool shared = work->kind == BENCH_PARALLEL_FOR;
    if (shared && --loop.users == 0)
        munmap(loop.array, padded_bytes(work));
    for (uint32_t i = 0; i < work->replicas && !shared; i++) {
        if (workers[i].src == NULL)
            continue;
        munmap(workers[i].src, padded_bytes(work));
        if (workers[i].dst != workers[i].src)
            munmap(workers[i].dst, padded_bytes(work));
    }
    free(workers);
}

/* -- PUs -- */

/* Returns the PUs that the process might use before any thread was bound. */
static const cpu_set_t *first_pus(void)
{
    static cpu_set_t first;
    static bool known;
    if (!known) {
        sched_getaffinity(0, sizeof first, &first);
        known = true;
    }
    return &first;
}

uint32_t part_pu(uint32_t id, uint32_t count)
{
    const cpu_set_t *first = first_pus();
    uint32_t pus = (uint32_t)CPU_COUNT(first), wanted = count > pus ? id * pus / count : id, cpu = 0;
    while (cpu < CPU_SETSIZE && (!CPU_ISSET(cpu, first) || wanted-- > 0))
        cpu++;
    return cpu;
}

uint32_t part_group(uint32_t id, uint32_t count, uint32_t groups)
{
    return count > (uint32_t)CPU_COUNT(first_pus()) ? id % groups : id / (count / groups);
}

void pin_to_part(uint32_t id, uint32_t count)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(part_pu(id, count), &one);
    sched_setaffinity(0, sizeof one, &one);
}
