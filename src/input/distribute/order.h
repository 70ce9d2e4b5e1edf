/* src/input/distribute/order.h - hands over batches to their replicas in the order of rows.
 *
 * Producers finish batches in any order. A batch is handed over only when all batches before it have been
 * read without an error. The reason is that no replica gets the rows behind an error, and before that an
 * error may still be found. The producer that closes a gap also hands over the finished batches behind it. A
 * single producer finishes batches in this order anyway.
 *
 * Several pipelines hand over their batches without waiting for one another. A replica takes a batch only
 * when all pipelines have handed over the batches before it in the order of all batches (sequencer.h). If
 * there is an error among these, the replica gets the error instead, although its own pipeline has read
 * further. This holds for every batch if pipelines share the rows of one input, or if a step exists for all
 * pipelines or for none. Otherwise each pipeline has its own order of rows. Then only two things wait for
 * other pipelines, because they depend on the steps of the others: batches of no rows behind the pipeline's
 * own last row, and the end.
 * Edges       N0 -> N1  pipeline_progress.failed, stored before order.next -> the replica that has loaded
 *                       order.next. When all pipelines have reached the first error that a replica sees,
 *                       there is no earlier one, because the replica would see it too.
 * Progress    The first of all batches that have not been handed over waits for nothing in this file. The
 *             replicas may take the batches before it, so its replica's ring gets a free slot, and a producer
 *             makes it. A replica gets an error even if its next slot is not filled. The producers that would
 *             fill the slot may be waiting for replicas that already have the error and take no more batches.
 * Model       tests/model/order.pml */
#ifndef DTI_ORDER_H
#define DTI_ORDER_H

#include <ditto/status.h>

#include "base/platform.h"

#include <pthread.h>

struct dti_pipeline;
struct dti_ticket;
struct ditto_iterator;

/* The state of one pipeline. */
struct dti_order {
    /* The next two members are constant. They are on cache lines that no thread writes, because consumers
     * read them while they wait. */

    /* If false, producers hand over each batch as soon as it is finished. */
    alignas(DTI_CACHE_LINE_PAIR) bool needed;

    /* [replicas * slots], one for each slot of each ring: ticket + 1 if it is finished and not handed over,
     * otherwise 0. Protected by the lock. */
    uint64_t *finished;

    /* Protects `finished` and `end`. */
    alignas(DTI_CACHE_LINE_PAIR) pthread_mutex_t lock;

    /* The status that was handed over last. If it is not DITTO_OK, everything behind it has the same
     * status. */
    ditto_status end;

    /* step * replicas + replica of the batch that is handed over next, where the replica is the pipeline's
     * own number. DTI_ORDER_ENDED behind the end. Written under the lock. Consumers of all pipelines read
     * it. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t next;
};
#define DTI_ORDER_ENDED UINT64_MAX

/* Called when the pipeline's sequencer is at its first step. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_order_init(struct dti_pipeline *pipeline, bool needed);
void dti_order_free(struct dti_pipeline *pipeline); /* a struct of zeros is allowed */

/* -- A producer -- */

/* The producer has filled the slot of the ticket. Returns true if batches were handed over, this one or
 * others. */
bool dti_order_finish(struct dti_pipeline *pipeline, const struct dti_ticket *ticket);

/* -- Any thread -- */

/* Sets the pipeline's replica and ticket that must be handed over next. Returns false if that is not
 * known. */
bool dti_order_awaits(const struct dti_pipeline *pipeline, uint32_t *replica, uint64_t *ticket);

/* For several pipelines: the position of the first batch that this pipeline has not handed over. */
uint64_t dti_order_reached(const struct dti_pipeline *pipeline);

/* -- A replica's own thread -- */
enum dti_next_delivery {
    DTI_NEXT_DELIVERY_NONE,

    /* The content of the replica's next slot: a batch, the end, or the error of its own pipeline. */
    DTI_NEXT_DELIVERY_BATCH,

    /* The error of the pipeline in the consumer's `failed`. It comes before the slot in the order of all
     * batches. */
    DTI_NEXT_DELIVERY_ERROR,
};

/* Returns what the replica gets next. */
enum dti_next_delivery dti_order_next_delivery(struct ditto_iterator *iterator, uint32_t replica);

#endif
