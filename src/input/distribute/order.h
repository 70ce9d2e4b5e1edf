/* src/input/distribute/order.h - hands over batches to their replicas in the order of rows.
 *
 * Producers finish batches in any order. A batch is handed over only when all batches before it have been
 * read without an error. After an error, the error is handed over instead of each later batch. Until all
 * earlier batches have been read, one may still fail, and no replica may get rows after an error. The
 * producer that finishes the next batch in order also hands over the finished ones after it. A single
 * producer finishes batches in this order anyway.
 *
 * Several pipelines hand over their batches without waiting for one another. A replica that depends on other
 * pipelines takes a batch only when all pipelines have handed over the batches before it in the order of all
 * batches (sequencer.h). If there is an error among these, the replica gets the error instead, although its
 * own pipeline has read further. There are two cases:
 * 1. The pipelines share the rows of one input, or a step exists for all pipelines or for none. Then every
 *    batch waits for the other pipelines.
 * 2. Each pipeline has its own order of rows. Then only empty batches after the pipeline's last row, and the
 *    end, wait for the other pipelines, because they depend on the steps of the others.
 * Edges       N0 -> N1  pipeline_progress.error_point, stored before order.next -> the replica that has
 *                       loaded order.next. Once the `next` of every pipeline has passed an error's position,
 *                       every earlier error has been stored, so this one is the first.
 * Progress    The first batch that has not been handed over can always be produced, because all earlier ones
 *             can be taken, which frees its slot. A replica gets an error even if its next slot is not
 *             filled, because the producers that would fill the slot may be waiting for replicas that already
 *             have the error and take no more batches.
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
    /* The next two members never change. They have cache lines that no thread writes, because consumers read
     * is_ordered while they wait. */

    /* If false, producers hand over each batch as soon as it is finished. */
    alignas(DTI_CACHE_LINE_PAIR) bool is_ordered;

    /* [replicas * slots], one for each slot of each ring: the ticket + 1 of the finished batch in this slot
     * that waits to be handed over, otherwise 0. Protected by the lock. */
    uint64_t *finished;

    /* Protects what `finished` points to and last_status. `next` is stored under it. */
    alignas(DTI_CACHE_LINE_PAIR) pthread_mutex_t lock;

    /* The status that was handed over last. If it is not DITTO_OK, all later batches get the same status. */
    ditto_status last_status;

    /* step * replicas + replica of the batch that is handed over next. Replicas are numbered within the
     * pipeline. DTI_ORDER_ENDED after the end was handed over. Written under the lock. Consumers of all
     * pipelines read it. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t next;
};
#define DTI_ORDER_ENDED UINT64_MAX

/* The pipeline's sequencer must be initialised first, and restored if there is a state. Returns DITTO_OK or
 * DITTO_ERR_NO_MEMORY. */
ditto_status dti_order_init(struct dti_pipeline *pipeline, bool is_ordered);
void dti_order_free(struct dti_pipeline *pipeline); /* a struct of zeros is allowed */

/* -- A producer -- */

/* Called when the producer has filled the slot of the ticket. Returns true if any batch was handed over. */
bool dti_order_finish(struct dti_pipeline *pipeline, const struct dti_ticket *ticket);

/* -- Any thread -- */

/* Stores the replica and ticket of the next batch. Returns false if batches are not ordered, the input has
 * ended, or the position has no ticket. */
bool dti_order_awaits(const struct dti_pipeline *pipeline, uint32_t *replica, uint64_t *ticket);

/* Returns the position of the first batch that this pipeline has not handed over, or the largest position
 * after its end. Correct only if batches are ordered. */
uint64_t dti_order_reached(const struct dti_pipeline *pipeline);

/* -- A replica's own thread -- */
enum dti_next_delivery {
    DTI_NEXT_DELIVERY_NONE,

    /* The content of the replica's next slot: a batch, the end, or the error of its own pipeline. */
    DTI_NEXT_DELIVERY_BATCH,

    /* The error of the pipeline that is stored in the consumer's failed_pipeline. In the order of all batches
     * it comes before the replica's next batch. */
    DTI_NEXT_DELIVERY_ERROR,
};

/* Returns what the replica gets next. */
enum dti_next_delivery dti_order_next_delivery(struct ditto_iterator *iterator, uint32_t replica);

#endif
