/* bench/work.h - what is measured, the same for ditto, for bounds and for peers: fresh data, the collective, a look at
 * the result.
 *
 * In every repetition each replica rewrites its whole input, the collective runs, and each replica reads one word of
 * every line of its result. Without the rewriting every core would keep its half of all buffers in its own cache, and
 * nothing would have to move. A second batch does the same with a barrier in place of the collective; the figure is
 *     median(rewrite + collective + read) - median(rewrite + barrier + read) + barrier. */
#ifndef WORK_H
#define WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Before a loop: in place or out of place, no iteration needs another one's result. */
#if defined(__clang__)
#define WORK_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define WORK_INDEPENDENT _Pragma("GCC ivdep")
#endif

enum bench_kind { BENCH_BARRIER, BENCH_RUN, BENCH_ALL_REDUCE, BENCH_PARALLEL_FOR, BENCH_CREATE, BENCH_REST };

struct work {
    enum bench_kind kind;
    uint32_t replicas; /* threads; of a parallel-for: the devices of one replica */
    size_t bytes;      /* of f32 per replica; of a parallel-for: of its one array, 0: an empty body */
    bool in_place;
    uint64_t reps; /* per batch */
};

/* One replica's buffers and clock, on lines of its own. */
struct worker {
    float *src, *dst; /* equal in place */
    double seconds;   /* of the last batch */
    float seen;       /* keeps the reading alive */
    char apart[128];
};

/* What a contender does in one replica. */
struct contender_ops {
    void (*barrier)(void *context, uint32_t id);
    void (*all_reduce)(void *context, uint32_t id, const struct work *work, struct worker *workers);
};

/* A batch on replica `id`: `reps` repetitions, with the collective or, if `baseline`, with a barrier in its place. */
void work_batch(const struct work *work, struct worker *workers, uint32_t id, const struct contender_ops *ops,
                void *context, bool baseline);

/* Buffers for all replicas, untouched: work_touch, on each replica's own thread, puts them on its node. */
struct worker *work_allocate(const struct work *work);
void work_touch(const struct work *work, struct worker *workers, uint32_t id);
void work_free(const struct work *work, struct worker *workers);

/* The hand-written direct loop of bounds and of peers: the owner of an index range adds it up from all inputs and
 * writes it to all results, in blocks that stay in the first-level cache. */
void work_owners_loop(const struct work *work, struct worker *workers, uint32_t id);

/* A loop that memory bounds: indices [first, end) of workers[0].src are read, changed and written back. */
void work_loop(struct worker *workers, size_t first, size_t end);
/* The same for thread `id` of work->replicas, each with one contiguous part. */
void work_loop_part(const struct work *work, struct worker *workers, uint32_t id);

double now_seconds(void);

/* Binds the calling thread, number `id` of `count`, to one of the PUs that the process may use: neighbours share a PU. */
void pin_to_part(uint32_t id, uint32_t count);

#endif
