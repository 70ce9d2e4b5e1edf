/* src/input/distribute/order.h - the order in which batches are handed over to their replicas: that of rows.
 *
 * Producers finish batches in any order. A batch is handed over only when all batches before it have been read without an error, because
 * rows behind an error are given to nobody, and whether there is one is known only then. The producer that closes a gap hands over what
 * the others have finished behind it. One producer alone finishes batches in this order anyway.
 *
 * Several pipelines hand over their batches without waiting for one another. A replica takes a batch only
 * when all pipelines have handed over what comes before it in the order of all batches (sequencer.h). If
 * an error is among that, the replica gets the error instead, though its own pipeline has read on. This
 * holds for every batch where pipelines share the rows of one input, or where a step exists for all
 * pipelines or for none. Elsewhere each pipeline has an order of rows of its own. There only what comes to
 * a pipeline by the steps of others waits for them: batches of no rows behind its own last row, and the
 * end.
 * Edges       N0 -> N1  notice.failed, written before order.next -> the replica that has seen order.next
 *             So when all pipelines have come to the first error that a replica sees, it is the first of all:
 *             the replica would see one in front of it.
 * Progress    of all batches that have not been handed over, the first waits for nothing here. Those in
 *             front of it may be taken, so it is made as soon as its own replica has room for it. A
 *             replica is told an error even if its next slot is not filled. Its producers may be waiting
 *             for replicas that have been told the error already and take nothing more.
 * Model       tests/model/order.pml */
#ifndef DTI_ORDER_H
#define DTI_ORDER_H

#include "base/base.h"

#include <pthread.h>

struct dti_pipeline;
struct dti_ticket;
struct ditto_iterator;

/* Of one pipeline. */
struct dti_order {
    /* Constant, on lines that nobody writes: consumers look at them while they wait. */
    alignas(DTI_CACHE_LINE_PAIR) bool needed; /* else producers hand over at once what they have finished */
    /* [replicas * slots], of a slot of each ring: ticket + 1 if it is finished and not handed over, else 0. Under the lock. */
    uint64_t *finished;

    /* Under the lock. */
    alignas(DTI_CACHE_LINE_PAIR) pthread_mutex_t lock;
    ditto_status end; /* what was handed over last: if it is not DITTO_OK, everything behind it is this */

    /* step * replicas + replica, of the pipeline's own replicas, of the batch that is handed over next;
     * DTI_ORDER_ENDED behind the end. Written under the lock; consumers of all pipelines read it. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t next;
};
#define DTI_ORDER_ENDED UINT64_MAX

/* The pipeline's sequencer is at its first step. NO_MEMORY */
ditto_status dti_order_init(struct dti_pipeline *pipeline, bool needed);
void dti_order_free(struct dti_pipeline *pipeline); /* zeroed is allowed */

/* -- A producer -- */
/* It has filled the slot of a ticket. True: batches were handed over, whether this one or others. */
bool dti_order_finish(struct dti_pipeline *pipeline, const struct dti_ticket *ticket);

/* -- Any thread -- */
/* The ticket of one of the pipeline's replicas before which nothing else is handed over. False: that is not known. */
bool dti_order_awaits(const struct dti_pipeline *pipeline, uint32_t *replica, uint64_t *ticket);
/* Where there are several pipelines: the pipeline's first place that was not handed over. */
uint64_t dti_order_reached(const struct dti_pipeline *pipeline);

/* -- A replica's own thread -- */
enum dti_next_delivery {
    DTI_NEXT_DELIVERY_NONE,
    DTI_NEXT_DELIVERY_BATCH, /* what is in the replica's next slot: a batch, the end, or its own pipeline's error */
    DTI_NEXT_DELIVERY_ERROR, /* the error of the consumer's `failed`, which comes before it in the order of all batches */
};
/* What comes next to it. */
enum dti_next_delivery dti_order_next_delivery(struct ditto_iterator *iterator, uint32_t replica);

#endif
