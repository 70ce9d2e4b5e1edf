/* bench/work.h - what is measured, the same for ditto, for bounds and for peers: fresh data, the collective, a look
 * at the result.
 *
 * In every repetition each replica rewrites its whole input, the collective runs, and each replica reads one word of
 * every line of its result. Without the rewriting every core would keep its half of all buffers in its own cache,
 * and nothing would have to move. A second batch does the same with a barrier in place of the collective; the figure
 * is
 *     median(rewrite + collective + read) - median(rewrite + barrier + read) + barrier.
 * Before each batch results are checked: who is fast and wrong is not measured. With skew one
 * replica after the other computes for a while before its call, so that the others wait. The second batch then is
 * the work alone: nobody meets anybody. Its CPU seconds are what the same without ditto would have used. */
#ifndef WORK_H
#define WORK_H

#include <ditto/collective.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bench_kind {
    BENCH_BARRIER,
    BENCH_RUN,
    BENCH_ALL_REDUCE,
    BENCH_ALL_GATHER,
    BENCH_BROADCAST,
    BENCH_REDUCE_SCATTER,
    BENCH_REDUCE,
    BENCH_LIST,  /* an all-reduce of WORK_TENSORS tensors at once */
    BENCH_ASYNC, /* an all-reduce that is started, then waited for */
    BENCH_SKEW,  /* an all-reduce to which one replica comes late */
    BENCH_PARALLEL_FOR,
    BENCH_CREATE, /* from here on: rows of their own, without contenders */
    BENCH_REST,
    BENCH_RUN_VALUES,
    BENCH_REDUCE_VALUES,
    BENCH_MERGE_CALL,
    BENCH_TRACE,
    BENCH_ASSIGN,
    BENCH_APPLY,
    BENCH_CHECKPOINT,
    BENCH_QUEUE,
    BENCH_INPUT,
    BENCH_KINDS
};

/* Which bytes of a buffer a replica gives or gets. Parts are equal and stand in the order of the replicas. */
enum extent { EXTENT_NOTHING, EXTENT_WHOLE, EXTENT_OWN_PART, EXTENT_WHOLE_AT_ROOT };

struct bench_facts {
    const char *name;
    enum bench_kind like; /* what moves: all-reduces of all sorts move the same bytes */
    enum extent input, output;
    bool collective, reduces, one_buffer;
    const char *sizes; /* of --bytes, if nothing is said; NULL: there are none */
};
extern const struct bench_facts bench_facts[BENCH_KINDS];

enum { WORK_TENSORS = 100, WORK_MOST_REPLICAS = 1024 };

struct work {
    enum bench_kind kind;
    uint32_t replicas; /* threads; of a parallel-for: the devices of one replica */
    size_t bytes; /* of the longer side of a replica; of a parallel-for: of its one array, 0: an empty body */
    ditto_dtype dtype;
    ditto_op op;
    bool in_place;
    bool turns;    /* every repetition has the next replica as its root: nobody can run ahead of the others */
    uint32_t root; /* of this repetition */
    uint32_t skew_ns;
    uint64_t reps; /* per batch */
};

/* Bytes [first, end) of a buffer. */
struct span {
    size_t first, end;
};

struct timing {
    double seconds, cpu_seconds; /* of the slowest replica; of all. seconds < 0: such work is not done */
};
#define TIMING_NONE ((struct timing){ -1, 0 })

/* One replica's buffers and clock, on lines of its own. */
struct worker {
    char *src, *dst;      /* work->bytes each; equal in place */
    struct timing timing; /* of the last batch */
    uint32_t seen;        /* keeps the reading alive */
    char apart[128];
};

/* What a contender does in one replica. */
struct contender_ops {
    void (*barrier)(void *context, uint32_t id);
    void (*collective)(void *context, uint32_t id, const struct work *work, struct worker *workers);
};

/* A batch on replica `id`: `reps` repetitions, with the collective or, if `baseline`, with a barrier in its place. */
void work_batch(const struct work *work, struct worker *workers, uint32_t id, const struct contender_ops *ops,
                void *context, bool baseline);

/* The slowest replica's seconds and everyone's CPU seconds. */
struct timing work_timing(const struct worker *workers, uint32_t replicas);

size_t work_element_bytes(ditto_dtype dtype);
struct span work_input(const struct work *work, uint32_t id);
struct span work_output(const struct work *work, uint32_t id);
struct span work_part(const struct work *work, uint32_t id);
/* Of a list: where tensor `index` stands. The last one takes what is left over. */
struct span work_tensor(const struct work *work, uint32_t index);

/* Buffers for all replicas, or for replica `id` alone (work_free takes both), untouched: work_touch, on each
 * replica's own thread, puts them on its node. */
struct worker *work_allocate(const struct work *work);
struct worker *work_allocate_one(const struct work *work, uint32_t id);
void work_touch(const struct work *work, struct worker *workers, uint32_t id);
void work_free(const struct work *work, struct worker *workers);

/* A loop that memory bounds: f32 [first, end) of workers[0].src are read, changed and written back. */
void work_loop(struct worker *workers, size_t first, size_t end);
/* The same for thread `id` of work->replicas, each with one contiguous part. */
void work_loop_part(const struct work *work, struct worker *workers, uint32_t id);

double now_seconds(void);

/* Binds the calling thread, number `id` of `count`, to a PU that the process may use: neighbours share a PU. */
void pin_to_part(uint32_t id, uint32_t count);

#ifdef __cplusplus
}
#endif
#endif
