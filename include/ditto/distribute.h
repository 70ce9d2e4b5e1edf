/* include/ditto/distribute.h - a dataset cut into per-replica batches, delivered ahead of time into each replica's queue. */
#ifndef DITTO_DISTRIBUTE_H
#define DITTO_DISTRIBUTE_H

#include <ditto/dataset.h>
#include <ditto/strategy.h>

DITTO_BEGIN

/** One pass over a distributed dataset: producers, and a queue per replica whose memory lies on the replica's node. */
typedef struct ditto_iterator ditto_iterator;

typedef enum ditto_partial {
    DITTO_PARTIAL_DEFAULT = 0, /**< FILL */
    DITTO_PARTIAL_FILL = 1, /**< the last, smaller global batch fills replica 0 first: 6 rows, G = 8, N = 2: 4 and 2 */
    DITTO_PARTIAL_EVEN = 2, /**< it is shared out evenly: 3 and 3 */
} ditto_partial;

typedef struct ditto_input_options {
    size_t struct_size;    /**< set by DITTO_INPUT_OPTIONS_INIT */
    uint64_t global_batch; /**< G for a dataset that was not batched; 0: the dataset's own */
    uint32_t buffer;       /**< batches that wait ready for each replica, beside the one in use; 0: 2 */
    uint32_t
        producers; /**< threads that read, parse and copy; 0: 1. Any number gives the same rows in the same order */
    ditto_partial partial;
    uint64_t pass; /**< which pass a reshuffling dataset begins with: an epoch's number */
} ditto_input_options;
#define DITTO_INPUT_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_input_options)

/** Starts a pass. A global batch of G rows gives replica r floor(G/N) rows, the first G mod N replicas one more; a step's
 *  rows go to the replicas in replica order. Rows flow across the borders of repetitions; the last step may be partial.
 *  Cross-replica context; errors as in strategy.h, and:
 *  @param dataset  kept alive until the iterator is destroyed
 *  @param options  NULL for the defaults
 *  @param out      the caller's, to be given to ditto_iterator_destroy
 *  @retval DITTO_ERR_INVALID    the dataset was not batched and global_batch is 0: batch it first; both were given and
 *                               differ
 *  @retval DITTO_ERR_RANGE      an unknown enum; a buffer that is larger than size_t counts
 *  @retval DITTO_ERR_NO_MEMORY  a queue was refused.  @retval DITTO_ERR_SYSTEM  a producer's thread was refused
 *  Cost  buffer + 1 batches of memory per replica, and the producers' threads. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_iterate(ditto_strategy *strategy, ditto_dataset *dataset,
                                                              const ditto_input_options *options, ditto_iterator **out);
/** Stops the producers and frees the queues; also with rows left. NULL is allowed, also after its strategy was destroyed.
 *  Waits for a run of the strategy that another thread is in.
 *  @retval DITTO_ERR_CONTEXT  on a replica's thread; nothing was done */
DITTO_API ditto_status ditto_iterator_destroy(ditto_iterator *iterator);

/** A per-replica batch: a view into the queue, valid until the replica's next ditto_next on the same iterator. */
typedef struct ditto_batch {
    uint64_t rows; /**< 0: this replica has none in this step, but takes part in it */
    uint64_t step; /**< from 0 */
    uint32_t components;
    ditto_tensor component[DITTO_MAX_COMPONENTS]; /**< shape [rows, row's shape...], 64-byte aligned */
} ditto_batch;

/** The replica's next batch. Replica context.
 *  @retval DITTO_END_OF_INPUT      after the last step, again and again
 *  @retval DITTO_ERR_CORRUPT, DITTO_ERR_IO  reading failed; the message names the place. Again and again
 *  @retval DITTO_ERR_DIVERGED      the producers wait for a replica that has returned from its function, so no row can
 *                                  come; the message names it
 *  @retval DITTO_ERR_TIMED_OUT     nothing came within the strategy's timeout
 *  @retval DITTO_ERR_PEER_STOPPED  another replica failed
 *  @retval DITTO_ERR_CONTEXT       self is not the thread's own; the iterator is of another or a destroyed strategy
 *  Cost  nothing but a look, when the batch is there: no copy. */
DITTO_API DITTO_NODISCARD ditto_status ditto_next(ditto_replica *self, ditto_iterator *iterator, ditto_batch *out);

/** Nanoseconds that this replica has waited in ditto_next on this iterator. Replica context. */
DITTO_API DITTO_NODISCARD ditto_status ditto_input_wait_ns(ditto_replica *self, const ditto_iterator *iterator,
                                                           uint64_t *out);

DITTO_END
#endif
