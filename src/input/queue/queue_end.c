/* src/input/queue/queue_end.c - ends a queue, because it is closed, or a producer fails or has exited.
 * queue.h has the argument. */
#include "base/errors/status.h"
#include "base/waiting/fork.h"
#include "input/queue/queue.h"

#include <sched.h>
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

static void lock(ditto_queue *q)
{
    uint32_t own = dti_process_number() + 1, holder = 0;
    /* acquire: what the previous holder wrote. If a process other than this one holds the lock, it is one
     * from which this one was forked, and the next exchange takes the lock away from it. */
    while (!atomic_compare_exchange_weak_explicit(&q->lock, &holder, own, memory_order_acquire,
                                                  memory_order_relaxed))
        if (holder == own) {
            sched_yield();
            holder = 0;
        }
}

static void unlock(ditto_queue *q)
{
    /* release: pairs with the acquire in lock */
    atomic_store_explicit(&q->lock, 0, memory_order_release);
}

ditto_status dti_queue_failure(ditto_queue *q)
{
    lock(q);
    /* relaxed: it changes only under the lock */
    const struct dti_queue_failure *f = &q->failure[atomic_load_explicit(&q->recorded, memory_order_relaxed)];
    ditto_status status = f->status;
    DTI_FAIL(status, "producer %u failed at ticket %llu: %s", f->producer, (unsigned long long)f->ticket,
             f->message);
    unlock(q);
    return status;
}

static void record(ditto_queue *q, uint32_t producer, uint64_t ticket, ditto_status status,
                   const char *message)
{
    lock(q);
    /* relaxed: it changes only under the lock */
    uint32_t recorded = atomic_load_explicit(&q->recorded, memory_order_relaxed);
    if (q->failure[recorded].status == DITTO_OK || ticket < q->failure[recorded].ticket) { /* I4 */
        struct dti_queue_failure *f = &q->failure[1 - recorded];
        f->status = status;
        f->producer = producer;
        f->ticket = ticket;
        snprintf(f->message, sizeof f->message, "%s", message != NULL ? message : ditto_status_name(status));
        /* release: a child process that sees this sees the failure */
        atomic_store_explicit(&q->recorded, 1 - recorded, memory_order_release);
    }
    unlock(q);
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

void dti_queue_abandon(ditto_queue *q, uint32_t producer, ditto_status status, const char *message)
{
    for (uint64_t i = 0; i <= q->mask; i++)
        /* relaxed, as in dti_queue_claimed_slot */
        if (atomic_load_explicit(&q->slot[i].holder, memory_order_relaxed) == producer + 1)
            (void)dti_queue_fail(q, producer, q->slot[i].ticket, status, message);
}
