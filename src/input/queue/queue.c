/* src/input/queue/queue.c - takes tickets, fills slots and empties them. queue.h has the argument. */
#include "input/queue/queue.h"
#include "base/errors/status.h"

#include <string.h>

/* The number of checks of a condition before the clock is read. They take about 1 us, which is not counted as
 * a wait. There is no pause instruction between them, because handing over an item takes only as long as two
 * or three of these. With the clock and pauses from the start it took 350 ns. Now it takes 42 ns (two
 * hyper-threads) or 130 ns (two cores), measured with ditto-bench queue. */
#define CHECKS 1000u

/* -- slots and bytes -- */

/* Reserves bytes. Returns false if they do not fit now. */
static bool take_bytes(ditto_queue *q, uint64_t bytes)
{
    /* acquire: B1. It comes before the load of `reserved`, so `reserved` is never older, and the difference
     * is never negative. */
    uint64_t returned = atomic_load_explicit(&q->returned, memory_order_acquire);
    uint64_t reserved = atomic_load_explicit(&q->reserved, memory_order_relaxed);
    do { /* relaxed: it is only a number and publishes nothing */
        /* `returned` may be older than `reserved`, so this may be more than max_bytes. */
        uint64_t used = reserved - returned;
        if (used > q->max_bytes || bytes > q->max_bytes - used) /* a sum could exceed 64 bits */
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&q->reserved, &reserved, reserved + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* Returns true if the slot of ticket `tail` is free. `tail` may be an old value, below head. The difference
 * is negative then, and the compare-and-swap of the caller fails and loads tail again. */
static inline bool has_slot(const ditto_queue *q, struct dti_queue_producer *m, uint64_t tail)
{
    if (__builtin_expect((int64_t)(tail - m->seen_head) <= (int64_t)q->mask, 1))
        return true;
    m->seen_head = atomic_load_explicit(&q->head, memory_order_acquire); /* F1 */
    return (int64_t)(tail - m->seen_head) <= (int64_t)q->mask;
}

/* Takes the next ticket if its slot is free. tail is relaxed, because head (F1) orders the accesses to the
 * slot. */
static inline bool take_ticket(ditto_queue *q, struct dti_queue_producer *m, uint64_t *ticket)
{
    uint64_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);
    if (q->producers == 1) {
        if (!has_slot(q, m, tail))
            return false;
        atomic_store_explicit(&q->tail, tail + 1, memory_order_relaxed); /* T0 */
    } else {
        do
            if (!has_slot(q, m, tail))
                return false;
        while (!atomic_compare_exchange_weak_explicit(&q->tail, &tail, tail + 1, memory_order_relaxed,
                                                      memory_order_relaxed)); /* T0 */
    }
    *ticket = tail;
    return true;
}

static inline uint32_t state_of(const ditto_queue *q)
{
    /* relaxed: producers read a failure under the lock, and closing has no data that they read */
    return atomic_load_explicit(&q->state, memory_order_relaxed);
}

/* -- a producer -- */

static inline void hand_over(ditto_queue *q, struct dti_queue_slot *e, uint64_t ticket)
{
    atomic_store_explicit(&e->filled, ticket + 1, memory_order_release); /* P0 */
    dti_wait_queue_signal(&q->consumer_waiting, DTI_EVERYONE);
}
void dti_queue_hand_over(ditto_queue *q, struct dti_queue_slot *e, uint64_t ticket)
{
    hand_over(q, e, ticket);
}

static ditto_status refuse(ditto_queue *q)
{
    if ((state_of(q) & DTI_QUEUE_FAILED) != 0)
        return dti_queue_failure(q);
    return DTI_FAIL(DITTO_ERR_CLOSED, "the queue is closed: nothing more can be put");
}

struct claiming {
    ditto_queue *queue;
    struct dti_queue_producer *producer_state;
    uint64_t bytes, ticket;
    bool has_bytes, has_ticket;
};

/* Takes the bytes and the ticket if they are available. Returns true if the producer has both, or if the
 * queue accepts nothing more. */
static inline bool advance(struct claiming *c)
{
    if (state_of(c->queue) != 0)
        return true;
    if (!c->has_bytes && !(c->has_bytes = take_bytes(c->queue, c->bytes)))
        return false;
    return c->has_ticket = take_ticket(c->queue, c->producer_state, &c->ticket);
}
static bool advanced(void *argument)
{
    return advance(argument);
}

static void give_back_bytes(struct claiming *c)
{
    if (!c->has_bytes || c->bytes == 0 || c->queue->max_bytes == 0)
        return;
    atomic_fetch_sub_explicit(&c->queue->reserved, c->bytes, memory_order_relaxed); /* as in take_bytes */
    dti_wait_queue_signal(&c->queue->producers_waiting, DTI_EVERYONE);
}

/* Waits until the condition holds or the timeout passes. If the policy spins, checks the condition CHECKS
 * times first. Returns whether the condition holds. */
static bool wait_in(struct dti_wait_queue *wait_queue, uint32_t waiter, struct dti_wait_policy *wait_policy,
                    uint32_t timeout_ms, dti_condition *condition, void *argument, _Atomic uint64_t *waits,
                    _Atomic uint64_t *wait_ns)
{
    for (uint32_t checks = wait_policy->spin_ns != 0 ? CHECKS : 0; checks > 0; checks--)
        if (condition(argument))
            return true;
    uint64_t begin = dti_now_ns();
    struct dti_deadline deadline = { .timeout_ms = timeout_ms };
    bool holds = dti_wait(wait_queue, waiter, DTI_EVERYONE, wait_policy, &deadline, condition, argument);
    dti_queue_count(waits, 1);
    dti_queue_count(wait_ns, dti_now_ns() - begin);
    return holds;
}

/* Waits until the queue has a slot and bytes for the producer, or accepts nothing more. */
__attribute__((noinline)) static ditto_status wait_for_slot(struct claiming *c, uint32_t producer,
                                                            uint32_t timeout_ms)
{
    ditto_queue *q = c->queue;
    struct dti_queue_producer *m = c->producer_state;
    if (timeout_ms != 0 && wait_in(&q->producers_waiting, producer, &m->wait_policy, timeout_ms, advanced, c,
                                   &m->waits, &m->wait_ns))
        return DITTO_OK;
    give_back_bytes(c);
    if (timeout_ms == 0)
        return DITTO_PENDING;
    return DTI_FAIL(DITTO_ERR_TIMED_OUT,
                    "producer %u waited %u ms for a free slot or free bytes: the consumer is too slow or has "
                    "exited",
                    producer, timeout_ms);
}

/* Withdraws a ticket that was taken while the queue was closing, or after it. The consumer skips the
 * ticket. */
__attribute__((noinline)) static ditto_status withdraw(struct claiming *c, struct dti_queue_slot *e)
{
    e->kind = DTI_QUEUE_SLOT_WITHDRAWN;
    dti_queue_hand_over(c->queue, e, c->ticket); /* W0 */
    return refuse(c->queue);
}

/* Takes a ticket and returns its slot. If that is not possible, returns NULL and sets *status. */
static inline __attribute__((always_inline)) struct dti_queue_slot *claim(struct claiming *c,
                                                                          uint32_t producer,
                                                                          uint32_t timeout_ms,
                                                                          ditto_status *status)
{
    ditto_queue *q = c->queue;
    c->producer_state = &q->producer_state[producer];
    c->has_bytes = q->max_bytes == 0;
    if (__builtin_expect(!advance(c), 0) && (*status = wait_for_slot(c, producer, timeout_ms)) != DITTO_OK)
        return NULL;
    if (__builtin_expect(!c->has_ticket, 0)) {
        give_back_bytes(c);
        *status = refuse(q);
        return NULL;
    }
    struct dti_queue_slot *e = dti_queue_slot_of(q, c->ticket);
    e->producer = producer;
    e->claimed_bytes = c->bytes;
    dti_fence_light();
    if (__builtin_expect((state_of(q) & DTI_QUEUE_CLOSING) == 0, 1)) /* T1 */
        return e;
    *status = withdraw(c, e);
    return NULL;
}

static inline void publish(ditto_queue *q, struct dti_queue_slot *e, uint64_t ticket, void *item,
                           uint64_t bytes)
{
    struct dti_queue_producer *m = &q->producer_state[e->producer];
    e->item = item;
    e->bytes = bytes;
    e->kind = DTI_QUEUE_SLOT_ITEM;
    hand_over(q, e, ticket);
    dti_queue_count(&m->puts, 1);
    dti_queue_count(&m->bytes, bytes);
}

ditto_status dti_queue_put(ditto_queue *q, uint32_t producer, void *item, uint64_t bytes, uint32_t timeout_ms)
{
    struct claiming c = { .queue = q, .bytes = bytes };
    ditto_status status;
    struct dti_queue_slot *e = claim(&c, producer, timeout_ms, &status);
    if (__builtin_expect(e == NULL, 0))
        return status;
    if (q->payload != NULL) {
        void *payload = dti_queue_payload(q, c.ticket);
        if (bytes != 0)
            memcpy(payload, item, bytes);
        item = payload;
    }
    publish(q, e, c.ticket, item, bytes);
    return DITTO_OK;
}

ditto_status dti_queue_claim(ditto_queue *q, uint32_t producer, uint64_t bytes, uint32_t timeout_ms,
                             uint64_t *ticket, void **payload)
{
    struct claiming c = { .queue = q, .bytes = bytes };
    ditto_status status;
    struct dti_queue_slot *e = claim(&c, producer, timeout_ms, &status);
    if (__builtin_expect(e == NULL, 0))
        return status;
    e->ticket = c.ticket;
    /* relaxed: only this producer relies on it, or the thread that has taken over its number */
    atomic_store_explicit(&e->holder, producer + 1, memory_order_relaxed);
    *ticket = c.ticket;
    if (payload != NULL)
        *payload = dti_queue_payload(q, c.ticket);
    return DITTO_OK;
}

struct dti_queue_slot *dti_queue_claimed_slot(const ditto_queue *q, uint32_t producer, uint64_t ticket)
{
    struct dti_queue_slot *e = dti_queue_slot_of(q, ticket);
    /* relaxed: if it names this producer, this thread wrote it, or the thread that had the producer's number
     * before, and the producer owns the slot */
    bool held = atomic_load_explicit(&e->holder, memory_order_relaxed) == producer + 1 && e->ticket == ticket;
    return held ? e : NULL;
}

ditto_status dti_queue_publish(ditto_queue *q, uint32_t producer, uint64_t ticket, void *item, uint64_t bytes)
{
    struct dti_queue_slot *e = dti_queue_claimed_slot(q, producer, ticket);
    if (e == NULL)
        return DTI_FAIL(DITTO_ERR_CONTEXT, "producer %u does not hold ticket %llu", producer,
                        (unsigned long long)ticket);
    if (bytes > e->claimed_bytes)
        return DTI_FAIL(
            DITTO_ERR_RANGE, "producer %u publishes %llu bytes with ticket %llu, and claimed %llu", producer,
            (unsigned long long)bytes, (unsigned long long)ticket, (unsigned long long)e->claimed_bytes);
    atomic_store_explicit(&e->holder, 0, memory_order_relaxed); /* as in dti_queue_claimed_slot */
    publish(q, e, ticket, q->payload != NULL ? dti_queue_payload(q, ticket) : item, bytes);
    return DITTO_OK;
}

/* -- the consumer -- */

/* Gives back the slot at head and its bytes. */
static inline void give_back(ditto_queue *q, uint64_t bytes)
{
    uint64_t head = atomic_load_explicit(&q->head, memory_order_relaxed); /* only the consumer writes it */
    atomic_store_explicit(&q->head, head + 1, memory_order_release);      /* F0 */
    if (q->max_bytes != 0)                                                /* B0 */
        atomic_store_explicit(&q->returned, atomic_load_explicit(&q->returned, memory_order_relaxed) + bytes,
                              memory_order_release);
    dti_wait_queue_signal(&q->producers_waiting, DTI_EVERYONE);
}

static bool has_ended(const ditto_queue *q)
{
    /* acquire: C1, with the fence of the closing thread. tail then includes every ticket that will not be
     * withdrawn. */
    return (atomic_load_explicit(&q->state, memory_order_acquire) & DTI_QUEUE_CLOSED) != 0 &&
           atomic_load_explicit(&q->tail, memory_order_relaxed) == q->next; /* E1 */
}

enum next_slot_state { NEXT_NONE, NEXT_SLOT, NEXT_END };

/* Returns what the consumer sees at its next ticket: nothing yet, a slot with an item or a failure, or the
 * end. It skips withdrawn tickets. The caller must act on this answer and must not read the slot again. After
 * the end was seen, a producer that took a ticket too late may still fill the slot, with WITHDRAWN and the
 * item of an earlier ticket. */
static inline enum next_slot_state inspect_next(ditto_queue *q)
{
    for (;;) {
        struct dti_queue_slot *e = dti_queue_slot_of(q, q->next);
        if (atomic_load_explicit(&e->filled, memory_order_acquire) != q->next + 1) { /* P1 */
            if (!q->ended && !has_ended(q))
                return NEXT_NONE;
            /* It is written only when the end is seen, because producers read this cache line. */
            q->ended = true;
            return NEXT_END;
        }
        if (__builtin_expect(e->kind != DTI_QUEUE_SLOT_WITHDRAWN, 1))
            return NEXT_SLOT;
        q->next++;
        give_back(q, e->claimed_bytes);
    }
}

struct item_wait {
    ditto_queue *queue;
    enum next_slot_state seen;
};
static bool item_ready(void *argument)
{
    struct item_wait *wait = argument;
    wait->seen = inspect_next(wait->queue);
    return wait->seen != NEXT_NONE;
}

/* Returns NEXT_NONE after the timeout, and records DITTO_ERR_TIMED_OUT. */
__attribute__((noinline)) static enum next_slot_state wait_for_item(ditto_queue *q, uint32_t timeout_ms)
{
    struct item_wait wait = { .queue = q };
    if (wait_in(&q->consumer_waiting, 0, &q->wait_policy, timeout_ms, item_ready, &wait, &q->waits,
                &q->wait_ns))
        return wait.seen;
    uint64_t ticket = q->next;
    bool taken = atomic_load_explicit(&q->tail, memory_order_relaxed) != ticket; /* for the message */
    DTI_FAIL(DITTO_ERR_TIMED_OUT, "the consumer waited %u ms for ticket %llu, which %s", timeout_ms,
             (unsigned long long)ticket,
             taken ? "is claimed but not published"
                   : "no producer has claimed: the producers are too slow or have exited");
    return NEXT_NONE;
}

ditto_status dti_queue_get(ditto_queue *q, ditto_queue_item *out, uint32_t timeout_ms)
{
    /* relaxed: only the consumer writes it */
    if (q->payload != NULL && q->next != atomic_load_explicit(&q->head, memory_order_relaxed))
        give_back(q, dti_queue_slot_of(q, q->next - 1)->claimed_bytes);
    enum next_slot_state seen = inspect_next(q);
    if (seen == NEXT_NONE) {
        if (timeout_ms == 0)
            return DITTO_PENDING;
        seen = wait_for_item(q, timeout_ms);
    }
    if (__builtin_expect(seen != NEXT_SLOT, 0))
        return seen == NEXT_END ? DITTO_END_OF_INPUT : DITTO_ERR_TIMED_OUT;
    uint64_t ticket = q->next;
    struct dti_queue_slot *e = dti_queue_slot_of(q, ticket);
    /* A failure stays in its slot, and the next call finds it again. */
    if (__builtin_expect(e->kind == DTI_QUEUE_SLOT_FAILED, 0))
        return dti_queue_failure(q);
    *out = (ditto_queue_item){
        .item = e->item, .bytes = e->bytes, .ticket = ticket, .producer = e->producer
    };
    q->next = ticket + 1;
    if (q->payload == NULL)
        give_back(q, e->claimed_bytes);
    dti_queue_count(&q->gets, 1);
    dti_queue_count(&q->got_bytes, out->bytes);
    return DITTO_OK;
}
