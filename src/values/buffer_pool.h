/* src/values/buffer_pool.h - a replica's memory for values: kept, so that on a steady path nothing is allocated.
 *
 * A component is the memory of one tensor, on the node of its replica. Its replica alone takes it; anybody gives it
 * back, onto a stack that the replica empties when it runs short.
 * Whoever gives one back has read it before (release); its replica, which takes the whole stack (acquire), writes it
 * after. */
#ifndef DTI_BUFFER_POOL_H
#define DTI_BUFFER_POOL_H

#include <ditto/run.h>

#include "replicas/replicas.h"

struct dti_buffer_pool;

struct dti_value_buffer {
    alignas(DTI_CACHE_LINE) struct dti_buffer_pool *pool;
    struct dti_value_buffer *next;
    void *memory; /* of `room` bytes; NULL: none */
    size_t capacity;
    alignas(16) unsigned char small[16]; /* scalars need no more, and no second line */
};

/* A result that a replica's function has given. */
struct dti_result {
    ditto_value_kind kind;                /* per-replica, variable, slices */
    char name[DITTO_MAX_RESULT_NAME + 1]; /* "": the only one */
    struct dti_value_buffer *component;   /* NULL: a variable */
    ditto_variable *variable;
    int64_t *index; /* of slices: [rows] */
    size_t dense_rows;
    ditto_tensor tensor;
};

struct dti_results {
    struct dti_buffer_pool *pool;
    uint32_t count;
    struct dti_result result[DITTO_MAX_RESULTS];
};

#define DTI_LEVELS 8 /* runs inside runs */

struct dti_buffer_pool {
    /* the replica's own; results: also of whoever posted the run, when it is over */
    alignas(DTI_CACHE_LINE_PAIR) struct dti_replica *replica;
    struct dti_value_buffer *small, *large; /* without and with memory of their own; kept for the next */
    uint64_t allocations;                   /* of components and their memory */
    struct dti_results *results[DTI_LEVELS];
    alignas(DTI_CACHE_LINE_PAIR) _Atomic(struct dti_value_buffer *) returned;
};

/* -- The replica's own thread -- */
/* Memory for `bytes`, aligned to 64 (16 for small ones); *data is where. NO_MEMORY. */
ditto_status dti_value_buffer_take(struct dti_buffer_pool *pool, size_t bytes, struct dti_value_buffer **out,
                                   void **data);
/* The results of the run on a level, none yet. NO_MEMORY. */
ditto_status dti_results_begin(struct dti_buffer_pool *pool, uint32_t level);

/* -- Any thread -- */
void dti_value_buffer_give(struct dti_value_buffer *component); /* NULL is allowed */

/* -- The poster of a run, when all replicas have returned -- */
void dti_results_drop(struct dti_results *results); /* gives their components back. NULL is allowed */

#endif
