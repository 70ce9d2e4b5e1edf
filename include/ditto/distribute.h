/* include/ditto/distribute.h - a dataset cut into per-replica batches, delivered ahead of time into each
 * replica's queue.
 *
 * A step gives every replica one batch, which may have no rows. One pipeline serves all replicas, or several
 * pipelines serve equally many replicas each. A pipeline chooses its rows one after the other. Its producers,
 * threads that run beside the replicas, read and compute these rows into memory on the node of the replica
 * that gets them. docs/input.md tells how to choose and what to look at. */
#ifndef DITTO_DISTRIBUTE_H
#define DITTO_DISTRIBUTE_H

#include <ditto/dataset.h>
#include <ditto/strategy.h>
#include <ditto/value.h>

DITTO_BEGIN

/** One pass over a distributed dataset: producers, and a queue per replica whose memory lies on the replica's node. */
typedef struct ditto_iterator ditto_iterator;

typedef enum ditto_partial {
    DITTO_PARTIAL_DEFAULT = 0, /**< FILL */
    DITTO_PARTIAL_FILL =
        1, /**< the last, smaller global batch fills replica 0 first: 6 rows, G = 8, N = 2: 4 and 2 */
    DITTO_PARTIAL_EVEN = 2, /**< it is shared out evenly: 3 and 3 */
} ditto_partial;

/** How several pipelines share one dataset. Except with OFF, every row is delivered by one of them. */
typedef enum ditto_shard {
    DITTO_SHARD_DEFAULT = 0, /**< AUTO */

    /** FILE if the dataset has at least as many files as there are pipelines and nothing counts rows across
     *  files, else DATA. */
    DITTO_SHARD_AUTO = 1,

    /** Pipeline w reads the files whose number mod W is w. A pipeline without files has no rows. */
    DITTO_SHARD_FILE = 2,

    /** Every pipeline chooses all rows, and delivers those of its own replicas. The rows of each replica, and
     *  the error that ends them, are the same with any number of pipelines. */
    DITTO_SHARD_DATA = 3,

    /** Every pipeline delivers all rows to its own replicas. */
    DITTO_SHARD_OFF = 4,
} ditto_shard;

typedef enum ditto_replication {
    DITTO_REPLICATION_DEFAULT = 0, /**< PER_PIPELINE */
    DITTO_PER_PIPELINE = 1,      /**< a dataset for each pipeline, whose replicas take its batches in turn */
    DITTO_PER_REPLICA_INPUT = 2, /**< one for each replica: as many pipelines as replicas */
} ditto_replication;

#define DITTO_NO_PREFETCH \
    UINT32_MAX /**< ditto_input_options.buffer: a batch is made when its replica asks for it */

/** Every batch has its full size, which is 0 for some replicas where G < N. The pass ends before the first
 *  step for which any pipeline has too few rows, and what other pipelines have left is dropped with it. */
#define DITTO_INPUT_STATIC 1u

#define DITTO_INPUT_HOST_MEMORY \
    2u /**< batches lie where the calling thread's memory does, not on their replica's node */

typedef struct ditto_input_options {
    size_t struct_size;    /**< set by DITTO_INPUT_OPTIONS_INIT */
    uint64_t global_batch; /**< G for a dataset that was not batched; 0: the dataset's own */
    uint32_t
        buffer; /**< batches that wait ready for each replica, beside the one in use; 0: the dataset's prefetch, or 2 */
    uint32_t
        producers; /**< threads of each pipeline; 0: as many as PUs are left over by replicas, 1 at least, at most one for
                                each replica. Any number gives the same rows in the same order */
    ditto_partial partial;         /**< not for datasets from a function */
    uint64_t pass;                 /**< which pass a reshuffling dataset begins with: an epoch's number */
    uint32_t pipelines;            /**< W, a divisor of the number of replicas; 0: 1 */
    ditto_shard shard;             /**< not for datasets from a function */
    ditto_replication replication; /**< PER_REPLICA_INPUT: for datasets from a function alone */
    uint32_t flags;                /**< DITTO_INPUT_* */
    uint64_t
        max_bytes; /**< of all queues together: fewer batches wait where they would have more. 0: no limit */
    const void
        *state; /**< goes on where ditto_iterator_save has been; NULL: begins a pass. Read during the call */
    size_t state_bytes;
} ditto_input_options;
#define DITTO_INPUT_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_input_options)

/** Starts a pass.
 *
 *  Sizes. A full step has G rows. Replica r gets floor(G/N) of them, the first G mod N replicas get one more,
 *  and consecutive rows go to the replicas in replica order. This holds for one pipeline, and for several
 *  with DITTO_SHARD_DATA. Pipelines that read different rows by themselves (FILE, OFF) take turns with the
 *  larger sizes: in step t, the replicas of pipeline w get the sizes that the replicas of pipeline
 *  (w + t) mod W have in a full step, so that over W steps all pipelines deliver equally many rows.
 *
 *  Steps. Rows flow across the borders of repetitions. The last step may have fewer rows
 *  (ditto_input_options.partial), and so may every step of a pipeline whose files have ended. A step exists
 *  if any replica has rows in it, or if a pipeline whose size in it is 0 has rows for a later one. Replicas
 *  without rows get a batch of 0 rows. DITTO_BATCH_DROP_REMAINDER, and an infinite dataset, drop a last step
 *  that lacks rows at the end of all input. They drop nothing where a pipeline that reads rows by itself ends
 *  before the others. With DITTO_INPUT_STATIC, steps exist as long as no pipeline lacks rows for one.
 *
 *  Cross-replica context; errors as in strategy.h, and:
 *  @param dataset  kept alive until the iterator is destroyed
 *  @param options  NULL for the defaults
 *  @param out      the caller's, to be given to ditto_iterator_destroy
 *  @retval DITTO_ERR_INVALID    the dataset was not batched and global_batch is 0: batch it first; both were
 *                               given and differ; W does not divide the number of replicas; options that
 *                               contradict one another, named; a state of another dataset, of another G, W or
 *                               way to share rows out (also of DITTO_SHARD_DATA with several pipelines, saved
 *                               when it meant every W-th row); or of another N, saved when replicas or
 *                               pipelines were at different steps; DITTO_SHARD_FILE of a dataset that counts
 *                               rows across files (take, skip, shard, zip, DROP_REMAINDER), or has other
 *                               sources beside them
 *  @retval DITTO_ERR_NOT_FOUND  DITTO_SHARD_FILE of a dataset without files
 *  @retval DITTO_ERR_RANGE      an unknown enum; a buffer above 65536, more than 1024 producers; batches that
 *                               are larger than size_t counts; max_bytes below one batch of each replica
 *  @retval DITTO_ERR_CORRUPT    a state that is cut or damaged
 *  @retval DITTO_ERR_NO_MEMORY  a queue was refused
 *  @retval DITTO_ERR_SYSTEM     a producer's thread was refused
 *  Cost  buffer + 1 batches of memory per replica, 8 bytes or more for each row of buffer + 2 steps, and the
 *        producers' threads. With DITTO_SHARD_DATA every pipeline chooses all rows and keeps those 8 bytes,
 *        or the values of rows that can't be read twice, for all rows of a step. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_iterate(ditto_strategy *strategy,
                                                              ditto_dataset *dataset,
                                                              const ditto_input_options *options,
                                                              ditto_iterator **out);

/** What a function that makes datasets is told. */
typedef struct ditto_input_context {
    uint32_t pipelines; /**< W */
    uint32_t pipeline;  /**< whose dataset it is */
    uint32_t replicas;  /**< N: of all pipelines together */
} ditto_input_context;

/** Rows of each replica's batch when a step has G rows in all. @retval DITTO_ERR_INVALID  N does not divide G, or G is 0 */
DITTO_API DITTO_NODISCARD ditto_status ditto_input_per_replica_batch(const ditto_input_context *context,
                                                                     uint64_t global_batch, uint64_t *out);

/** Makes a pipeline's dataset, batched by rows of one replica's batch. @param out  set on DITTO_OK: the library's then */
typedef ditto_status (*ditto_dataset_fn)(const ditto_input_context *context, void *user, ditto_dataset **out);
/** Starts a pass over datasets that a function makes, one for each pipeline. They are not sharded and not
 *  rebatched: a pipeline's replicas take its batches in turn. A last step with batches for some replicas only
 *  is delivered, unless DITTO_INPUT_STATIC is set, or there is one pipeline, whose dataset is batched with
 *  DITTO_BATCH_DROP_REMAINDER or infinite. The function is called on this thread, pipelines ascending.
 *  @retval as ditto_strategy_iterate; DITTO_ERR_INVALID also: global_batch, partial or shard is set; rows of
 *             two pipelines differ in dtypes or shapes
 *  @retval DITTO_ERR_USER  the function failed (or the status that it returned) */
DITTO_API DITTO_NODISCARD ditto_status
ditto_strategy_iterate_from_function(ditto_strategy *strategy, ditto_dataset_fn function, void *user,
                                     const ditto_input_options *options, ditto_iterator **out);

/** Stops the producers and frees the queues; also with rows left. NULL is allowed, also after its strategy was destroyed.
 *  Waits for a run of the strategy that another thread is in. In a child process after fork, and of a poisoned strategy, the iterator's
 *  memory is left: producers that the child does not have were in the middle of their work, and a replica that never returned may
 *  still take a batch.
 *  @retval DITTO_ERR_BUSY     another thread is in a call on it; nothing was done
 *  @retval DITTO_ERR_CONTEXT  on a replica's thread, or in a function of a dataset; nothing was done */
DITTO_API ditto_status ditto_iterator_destroy(ditto_iterator *iterator);

/* -- What comes -- */

/** What batches look like: component k of a replica's batch is [rows, row's shape...]. rows is DITTO_ANY_SIZE
 *  unless all batches of all replicas have equally many rows. They have if N divides G (datasets from a
 *  function: if all are batched by equally many rows), and
 *  - DITTO_INPUT_STATIC is set; or
 *  - the dataset is batched with DITTO_BATCH_DROP_REMAINDER, or infinite, and all pipelines end in the same
 *    step: there is one pipeline, or they share one dataset in another way than by FILE. Then a batch in
 *    front of an error of the input may still have fewer rows.
 *
 *  Any context, also after the strategy was destroyed.
 *  @param out  [DITTO_MAX_COMPONENTS]; data is NULL */
DITTO_API DITTO_NODISCARD ditto_status ditto_iterator_element_spec(const ditto_iterator *iterator,
                                                                   uint32_t *components, ditto_tensor *out);

/* -- Replica context -- */

/** A per-replica batch: a view into the queue, valid until the replica's next ditto_next on the same iterator. */
typedef struct ditto_batch {
    uint64_t rows; /**< 0: this replica has none in this step, but takes part in it */
    uint64_t step; /**< number in the pass, from 0; an iterator made of a saved state goes on counting */
    uint32_t components;
    ditto_tensor component[DITTO_MAX_COMPONENTS]; /**< shape [rows, row's shape...], 64-byte aligned */
} ditto_batch;

/** The replica's next batch. Outside of runs and scopes `self` may be the default strategy's (ditto_get_replica_context), with an
 *  iterator of that strategy: then threads that share the iterator take batches in turn.
 *  @retval DITTO_END_OF_INPUT      after the last step, again and again
 *  @retval DITTO_ERR_CORRUPT, DITTO_ERR_IO, DITTO_ERR_USER, ...  reading failed, or a function of the
 *                             dataset's; the message names the place. Comes after all rows before it, which
 *                             may make a smaller batch (with DITTO_INPUT_STATIC that batch is not delivered).
 *                             Rows behind it come to no replica of the pipeline, and with
 *                             DITTO_SHARD_DATA and DITTO_INPUT_STATIC to no replica at all. Replicas of
 *                             other pipelines get it then, else in place of the end. Again and again
 *  @retval DITTO_ERR_DIVERGED      the producers wait for a replica that has returned from its function, so
 *                                  no row can come; the message names it
 *  @retval DITTO_ERR_TIMED_OUT     nothing came within the strategy's timeout
 *  @retval DITTO_ERR_PEER_STOPPED  another replica failed
 *  @retval DITTO_ERR_CONTEXT       self is not the thread's own; the iterator is of another or a destroyed
 *                                  strategy; its batches have been taken with ditto_iterator_next
 *  Cost  nothing but a look, when the batch is there: no copy. */
DITTO_API DITTO_NODISCARD ditto_status ditto_next(ditto_replica *self, ditto_iterator *iterator,
                                                  ditto_batch *out);
/** The same, where the end is no error: *has_value is 0 then, and the batch is not set. */
DITTO_API DITTO_NODISCARD ditto_status ditto_next_as_optional(ditto_replica *self, ditto_iterator *iterator,
                                                              ditto_batch *out, int *has_value);

/** Nanoseconds that this replica has waited in ditto_next on this iterator. */
DITTO_API DITTO_NODISCARD ditto_status ditto_input_wait_ns(ditto_replica *self,
                                                           const ditto_iterator *iterator, uint64_t *out);

/* -- Cross-replica context -- */

/** The next batch of every replica as a per-replica value, for ditto_strategy_run_values: a nest of them, "0", "1", ..., where rows
 *  have several components. An iterator is used in this way or with ditto_next, not both.
 *  @param out  the caller's; a copy, which stays good
 *  @retval as ditto_next
 *  Cost  two meetings of all replicas, and each copies its batch */
DITTO_API DITTO_NODISCARD ditto_status ditto_iterator_next(ditto_iterator *iterator, ditto_value **out);
/** The same, where the end is no error: *has_value is 0 then, and *out NULL. */
DITTO_API DITTO_NODISCARD ditto_status ditto_iterator_next_as_optional(ditto_iterator *iterator,
                                                                       ditto_value **out, int *has_value);

/** Writes down where the iterator is: behind the batches that the replicas have taken. An iterator that is made of it
 *  (ditto_input_options.state), with the same dataset, gives exactly the rows that would have come; with another number of replicas
 *  and producers too, if all had taken equally many batches. Between runs.
 *  @param state  *bytes bytes, the caller's, to be given to ditto_state_free. They differ from call to call: producers run ahead
 *  @retval DITTO_ERR_UNSUPPORTED  a generator that can't save its position
 *  @retval any other              that reading came to: there is nothing to go on from
 *  Cost  a shuffle writes down the rows of its buffer, generators and compressed files with all their values. Numbers take as few bytes as
 *        they need. Going on reads nothing again, but for compressed files: those from their start. */
DITTO_API DITTO_NODISCARD ditto_status ditto_iterator_save(ditto_iterator *iterator, void **state,
                                                           size_t *bytes);
DITTO_API void ditto_state_free(void *state); /**< NULL is allowed. Any thread */

/* -- Seeing it: any context; while a run goes on, numbers of about now -- */

/** What an iterator has done since it was made. Time spent by several threads is added up. */
typedef struct ditto_input_stats {
    uint64_t elapsed_ns;
    uint64_t steps, rows, bytes; /**< taken by replicas; steps: of the replica that is furthest */
    uint64_t ready, waited; /**< batches that were there when they were asked for, and those that were not */
    uint64_t consumer_wait_ns; /**< replicas waited for batches: the program is input bound if this is much */
    uint64_t producer_wait_ns; /**< producers waited for room in queues: compute bound if this is much */
    uint64_t choosing_ns; /**< rows were chosen: the part that does not become faster with more producers */
    uint64_t filling_ns;  /**< rows were read, computed and copied: the part that does */
    uint64_t queue_bytes; /**< memory of the queues */
    uint32_t replicas, pipelines, producers,
        slots;      /**< slots: of each replica's queue; producers: of all pipelines */
    uint32_t depth; /**< batches that lie ready now, of all replicas */
} ditto_input_stats;
/** @param replica  one of the strategy's, or DITTO_ALL_REPLICAS. @retval DITTO_ERR_RANGE  there is no such replica.
 *  @retval DITTO_ERR_CONTEXT  the strategy was destroyed */
DITTO_API DITTO_NODISCARD ditto_status ditto_iterator_stats(const ditto_iterator *iterator, uint32_t replica,
                                                            ditto_input_stats *out);
#define DITTO_ALL_REPLICAS UINT32_MAX

DITTO_END
#endif
