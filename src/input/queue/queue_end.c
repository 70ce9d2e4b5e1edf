/* src/input/queue/queue_end.c - ends a queue, because it is closed, or a producer fails or has exited.
 * queue.h has the argument. */
#include "base/errors/status.h"
#include "input/queue/queue.h"

#include <stdio.h>

void dti_queue_close(ditto_queue *q)
{
    /* relaxed: E0, which the fence orders */
    atomic_fetch_or_explicit(&q->state, DTI_QUEUE_CLOSING, memory_order_relaxed);
    dti_fence_heavy(); /* pairs with dti_fence_light between T0 and T1 */
    atomic_fetch_or_explicit(&q->state, DTI_QUEUE_CLOSED, memory_order_release); /* C0 */
    dti_wait_queue_signal(&q->producers_waiting, DTI_EVERYONE);
    dti_wait_queue_signal(&q->consumer_waiting, DTI_EVERYONE);
}

ditto_status dti_queue_failure(ditto_queue *q)
{
    pthread_mutex_lock(&q->lock);
    ditto_status status = q->status;
    DTI_FAIL(status, "producer %u failed at ticket %llu: %s", q->failed_producer,
             (unsigned long long)q->failed_ticket, q->message);
    pthread_mutex_unlock(&q->lock);
    return status;
}

static void record(ditto_queue *q, uint32_t producer, uint64_t ticket, ditto_status status,
                   const char *message)
{
    pthread_mutex_lock(&q->lock);
    if (q->status == DITTO_OK || ticket < q->failed_ticket) { /* I4 */
        q->status = status;
        q->failed_producer = producer;
        q->failed_ticket = ticket;
        snprintf(q->message, sizeof q->message, "%s",
                 message != NULL ? message : ditto_status_sentence(status));
    }
    pthread_mutex_unlock(&q->lock);
}

ditto_status dti_queue_fail(ditto_queue *q, uint32_t producer, uint64_t ticket, ditto_status status,
                            const char *message)
{
    struct dti_queue_slot *e = dti_queue_claimed_slot(q, producer, ticket);
    if (e == NULL)
        return DTI_FAIL(DITTO_ERR_CONTEXT, "producer %u does not hold ticket %llu", producer,
                        (unsigned long long)ticket);
    record(q, producer, ticket, status, message);
    /* relaxed: a thread that sees the bit takes the lock that record() has released. A producer that sees the
     * bit late puts an item that the consumer never gets. */
    atomic_fetch_or_explicit(&q->state, DTI_QUEUE_FAILED, memory_order_relaxed);
    atomic_store_explicit(&e->holder, 0, memory_order_relaxed); /* as in dti_queue_claimed_slot */
    e->kind = DTI_QUEUE_SLOT_FAILED;
    dti_queue_hand_over(q, e, ticket);
    dti_wait_queue_signal(&q->producers_waiting, DTI_EVERYONE);
    return DITTO_OK;
}

void dti_queue_abandon(ditto_queue *q, uint32_t producer)
{
    for (uint64_t i = 0; i <= q->mask; i++)
        /* relaxed, as in dti_queue_claimed_slot */
        if (atomic_load_explicit(&q->slot[i].holder, memory_order_relaxed) == producer + 1)
            (void)dti_queue_fail(q, producer, q->slot[i].ticket, DITTO_ERR_PEER_STOPPED,
                                 "it was abandoned with a slot that it had claimed and not published");
}
