/* src/values/buffer_pool.h - a replica's pool of memory for values. Buffers are reused, so that a program
 * that repeats the same work soon allocates nothing.
 *
 * A buffer holds one tensor, on the NUMA node of its replica. Only the replica's own thread takes buffers
 * from the pool. Any thread may give a buffer back: it pushes the buffer onto a stack, from which the replica
 * takes all buffers when its own lists have none that fits. The push is a release, and taking the whole stack
 * is an acquire. Therefore reads of the buffer by the thread that gives it back happen before the replica
 * writes to the buffer again. */
#ifndef DTI_BUFFER_POOL_H
#define DTI_BUFFER_POOL_H

#include <ditto/run.h>

#include "replicas/team/replica.h"
#include "replicas/team/team.h"

struct dti_buffer_pool;

struct dti_value_buffer {
    alignas(DTI_CACHE_LINE) struct dti_buffer_pool *pool;
    struct dti_value_buffer *next;
    void *memory;                        /* NULL if the buffer has only `small` */
    size_t capacity;                     /* of `memory`, in bytes */
    alignas(16) unsigned char small[16]; /* for scalars, on the same cache line */
};

/* A result that a replica's function has returned. */
struct dti_result {
    ditto_value_kind kind;                      /* per-replica, variable or slices */
    char name[DITTO_MAX_RESULT_NAME_BYTES + 1]; /* "" if it is the only result */
    struct dti_value_buffer *component;         /* NULL if the result is a variable */
    ditto_variable *variable;
    int64_t *index; /* the row numbers of slices */
    size_t dense_rows;
    ditto_tensor tensor;
};

struct dti_results {
    struct dti_buffer_pool *pool;
    uint32_t count;
    struct dti_result result[DITTO_MAX_RESULTS];
};

struct dti_buffer_pool {
    /* The members up to `results` are used by the replica's own thread. When a run is over, the thread that
     * posted it uses `results` too. */
    alignas(DTI_CACHE_LINE_PAIR) struct dti_replica *replica;
    struct dti_value_buffer *small; /* unused buffers without `memory` */
    struct dti_value_buffer *large; /* unused buffers with `memory` */
    uint64_t allocations;           /* of buffers and of their memory */
    struct dti_results *results[DTI_LEVELS];

    /* The stack of buffers that were given back. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic(struct dti_value_buffer *) returned;
};

/* -- The replica's own thread -- */
/* Takes a buffer of at least `bytes` bytes, and sets *data to its memory. The memory is aligned to 64 bytes,
 * or to 16 if `bytes` is at most 16. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_value_buffer_take(struct dti_buffer_pool *pool, size_t bytes, struct dti_value_buffer **out,
                                   void **data);
/* Starts an empty list of results for the run on a level. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_results_begin(struct dti_buffer_pool *pool, uint32_t level);

/* -- Any thread -- */
void dti_value_buffer_give(struct dti_value_buffer *component); /* NULL is allowed */

/* -- The thread that posted a run, when all replicas have returned -- */
/* Gives the buffers of the results back. NULL is allowed. */
void dti_results_drop(struct dti_results *results);

#endif
