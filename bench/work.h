/* bench/work.h - the work that is measured, which is the same for ditto, for bounds and for peers.
 *
 * In each repetition, each replica writes its whole input, the collective runs, and each replica reads one
 * word of each cache line of its result. If inputs were not rewritten, each core would keep its part of all
 * buffers in its own cache, and no data would have to move. A second batch does the same with a barrier
 * instead of the collective. The reported time is
 *
 *     median(rewrite + collective + read) - median(rewrite + barrier + read) + barrier.
 *
 * The results of copies, and of SUM for the usual dtypes, are checked before each batch, so that wrong ones
 * are not measured. With skew, one replica after the other computes for some time before its call, so that
 * the others wait. Then the second batch has no barrier, and its CPU seconds are those of the same work
 * without the collective. */
#ifndef WORK_H
#define WORK_H

#include "counters.h"

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
    BENCH_GATHER,
    BENCH_SCATTER,
    BENCH_ALL_TO_ALL,
    BENCH_SCAN,
    BENCH_SCAN_EXCLUSIVE,
    BENCH_LIST,  /* one call that all-reduces WORK_TENSORS tensors */
    BENCH_ASYNC, /* an all-reduce that is started and then waited for */
    BENCH_SKEW,  /* an all-reduce to which one replica comes late */
    BENCH_WAIT,  /* the same after WAIT_WORK_NS of work, and without data */
    BENCH_PARALLEL_FOR,
    BENCH_CG,    /* iterations of conjugate gradients */
    BENCH_TRAIN, /* steps of training a network */

    /* These and the following have no contenders. */
    BENCH_CREATE,
    BENCH_REST,
    BENCH_RUN_VALUES,
    BENCH_REDUCE_VALUES,
    BENCH_MERGE_CALL,
    BENCH_EXCHANGE,
    BENCH_DOT,
    BENCH_TRACE,
    BENCH_ASSIGN,
    BENCH_APPLY,
    BENCH_CHECKPOINT,
    BENCH_QUEUE,
    BENCH_FUNCTIONS,
    BENCH_INPUT,
    BENCH_GENERATE,
    BENCH_KINDS
};

/* The bytes of a buffer that a replica contributes or receives. Parts have equal sizes and are in the order
 * of the replicas. */
enum extent {
    EXTENT_NOTHING,
    EXTENT_WHOLE,
    EXTENT_OWN_PART,
    EXTENT_WHOLE_AT_ROOT,
    EXTENT_WHOLE_BUT_FIRST /* nothing on replica 0 */
};

struct bench_facts {
    const char *name;
    enum bench_kind like; /* the kind that moves the same bytes */
    enum extent input, output;
    bool collective, reduces, one_buffer;
    const char *sizes; /* the default of --bytes, or NULL without sizes */
};
extern const struct bench_facts bench_facts[BENCH_KINDS];

static inline bool work_has_root(enum bench_kind kind)
{
    const struct bench_facts *facts = &bench_facts[kind];
    return facts->input == EXTENT_WHOLE_AT_ROOT || facts->output == EXTENT_WHOLE_AT_ROOT;
}

/* The first replicas are combined for each replica. */
static inline bool work_scans(enum bench_kind kind)
{
    return kind == BENCH_SCAN || kind == BENCH_SCAN_EXCLUSIVE;
}

/* A program has data of its own, and meets inside. */
static inline bool work_is_program(enum bench_kind kind)
{
    return kind == BENCH_CG || kind == BENCH_TRAIN;
}

enum { WORK_TENSORS = 100, WORK_MOST_REPLICAS = 1024 };

/* The CPU time that each replica uses between two meetings of BENCH_WAIT. */
#define WAIT_WORK_NS 300000u

struct work {
    enum bench_kind kind;

    /* The number of threads. For a parallel-for these are the devices of one replica. Of groups these are the
     * members of one. */
    uint32_t replicas;

    /* Of collectives: as many groups do the work at the same time, each for itself. 0 means that there are no
     * groups. If `alone` is true, only the first does it, and the others have nothing to do. */
    uint32_t groups;
    bool alone;

    /* The size of a replica's input or output, whichever is larger. For a parallel-for it is the size of the
     * array, and 0 means an empty body. */
    size_t bytes;
    ditto_dtype dtype;
    ditto_op op;
    bool in_place;

    /* Each replica is a process of its own. */
    bool in_processes;

    /* Each repetition has the next replica as its root, so that no replica can run ahead of the others. */
    bool turns;
    uint32_t root; /* of this repetition */
    uint32_t skew_ns;
    uint64_t reps; /* per batch */
};

/* Bytes [first, end) of a buffer. */
struct span {
    size_t first, end;
};

struct timing {
    /* The time of the slowest replica. It is negative if the work cannot be done. */
    double seconds;
    double cpu_seconds; /* of all replicas */

    /* Of a program: the time in operations, as the mean of the replicas. */
    double operation_seconds;
};
#define TIMING_NONE ((struct timing){ -1, 0, 0 })

/* The buffers and times of one replica. Workers do not share cache lines. */
struct worker {
    char *src, *dst;      /* of work->bytes each, equal if in place */
    struct timing timing; /* of the last batch */
    struct counts counts; /* of the last batch, if anything is counted */
    uint32_t seen;        /* keeps the compiler from removing the reads */
    char apart[128];
};

/* The operations of a contender, which each replica calls. */
struct contender_ops {
    void (*barrier)(void *context, uint32_t id);
    void (*collective)(void *context, uint32_t id, const struct work *work, struct worker *workers);
};

/* Seconds in collectives and barriers, and seconds that are not measured, because the program began anew. */
struct program_times {
    double operations, restarts;
};

/* cg.c: the bytes of a replica's buffer, and work->reps iterations. work->bytes is the size of one vector
 * of a replica, a multiple of 8192. */
size_t cg_buffer_bytes(const struct work *work);
struct program_times cg_run(const struct work *work, struct worker *workers, uint32_t id,
                            const struct contender_ops *ops, void *context);

/* train.c: the same. work->bytes is the size of the gradients, a multiple of 64. */
size_t train_buffer_bytes(const struct work *work);
struct program_times train_run(const struct work *work, struct worker *workers, uint32_t id,
                               const struct contender_ops *ops, void *context);

/* Set by a contender whose replicas cannot read each other's memory. Sends the first `count` of
 * own[length] to the replica before this one and the last ones to the next replica, and receives theirs:
 * halo[0..count) are those of the replica before, and halo[count..2 count) those of the next one. */
extern void (*cg_exchange)(uint32_t id, const double *own, size_t length, double *halo, size_t count);

/* Runs a batch of `reps` repetitions on replica `id`. If `baseline` is true, there is a barrier instead of
 * the collective. */
void work_batch(const struct work *work, struct worker *workers, uint32_t id, const struct contender_ops *ops,
                void *context, bool baseline);

/* Returns the seconds of the slowest replica and the CPU seconds of all replicas. */
struct timing work_timing(const struct worker *workers, uint32_t replicas);

size_t work_element_bytes(ditto_dtype dtype);
struct span work_input(const struct work *work, uint32_t id);
struct span work_output(const struct work *work, uint32_t id);
struct span work_part(const struct work *work, uint32_t id);
/* Returns the number of replicas, from 0 on, that a reduction combines for replica `id`. */
uint32_t work_inputs(const struct work *work, uint32_t id);
/* Returns the bytes of tensor `index` of a list. The last tensor has the remaining bytes. */
struct span work_tensor(const struct work *work, uint32_t index);

/* Allocate buffers for all replicas, or for replica `id` alone. Each replica must then call work_touch on its
 * own thread, which places its buffers on its node. work_free frees both. */
struct worker *work_allocate(const struct work *work);
struct worker *work_allocate_one(const struct work *work, uint32_t id);
void work_touch(const struct work *work, struct worker *workers, uint32_t id);
void work_free(const struct work *work, struct worker *workers);

/* Reads, changes and writes f32 elements [first, end) of workers[0].src. Memory bandwidth limits this
 * loop. */
void work_loop(struct worker *workers, size_t first, size_t end);
/* The same for thread `id`. Each of work->replicas threads has one contiguous part. */
void work_loop_part(const struct work *work, struct worker *workers, uint32_t id);

double now_seconds(void);

/* Returns the PU of thread number `id` of `count`, one that the process may use. If there are more threads
 * than PUs, threads with successive numbers share a PU. The first call reads which PUs the process may use,
 * so no thread may be bound before it. */
uint32_t part_pu(uint32_t id, uint32_t count);

/* Returns the group of thread number `id` of `count`. Neighbours form a group. If there are more threads than
 * PUs, threads of one PU are in different groups, so that a group has as many PUs as it can have. */
uint32_t part_group(uint32_t id, uint32_t count, uint32_t groups);

/* Binds the calling thread to part_pu. */
void pin_to_part(uint32_t id, uint32_t count);

#ifdef __cplusplus
}
#endif
#endif
