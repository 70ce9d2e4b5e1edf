/* src/input/queue/queue.h - the queue of include/ditto/queue.h: a ring of slots, tickets taken from its tail, two caps, and its two
 * ends, closing and failing.
 *
 * Ticket t uses slot t mod slots. Its slot says only whether it is filled; whether it is free is told by the consumer's head, the
 * number of slots that it has given back. So the consumer writes no slot: the line of a slot goes to the consumer, which
 * reads it, and back to a producer, which writes it; a producer looks at head once a round of the ring, unless the ring is full.
 * (A turn word in each slot, as in ring.h, would have the consumer fetch the line once more to write it, and that store would
 * stand in its store buffer before whatever it does next.)
 * A ticket is taken only when its slot is free, and bytes are reserved before that: so who holds a ticket has all that it
 * needs, and never waits. Who waits for a slot may hold bytes: slots are given back by the consumer, who waits for holders
 * of tickets alone. No circle.
 * Invariants  I1  tail is the number of tickets taken, head that of slots given back: head <= tail <= head + slots. One producer
 *                 alone stores tail, several compare and swap; the consumer alone stores head.
 *             I2  reserved - returned bytes are in use, at most max_bytes. Producers alone write reserved; the consumer alone
 *                 writes returned, which never falls.
 *             I3  every ticket taken ends in one P0, as ITEM, FAILED or WITHDRAWN. From taking it until then its producer alone
 *                 writes the slot, from then until F0 nobody.
 *             I4  the record of the failure has the lowest ticket that has failed so far: the first that the consumer comes to.
 * Edges       P0 -> P1  filled == t + 1: the slot -> the consumer that comes to ticket t
 *             F0 -> F1  head > t - slots: the consumer's last look at the slot -> the producer that takes ticket t
 *             T0 -> E1  tail, dti_fence_light, a look at CLOSING (T1) | CLOSING (E0), dti_fence_heavy, CLOSED (C0): a taker of a
 *             C0 -> C1  ticket that misses CLOSING has its tail seen by whoever saw CLOSED (C1) and then looks at tail (E1)
 *             B0 -> B1  the consumer's returned -> the producer that reserves what came back: its look at reserved is no older
 * Therefore   the consumer that sees CLOSED and no ticket beyond its own has got all that was ever put: a ticket that it does not see
 *             was taken by one who sees CLOSING at T1, withdraws it (W0) and tells its caller that the queue is closed.
 *             The looks at the slot (P1), at CLOSED (C1) and at tail (E1) are three steps, and a withdrawn ticket may fill the slot
 *             after the last of them. So the consumer decides once, from these three, and does not look at the slot again.
 *             The price of closing is a load per put, and no locked instruction where there is one producer: a closed bit in
 *             tail would need one, which waits for the stores before it.
 * Waiting     producers sleep in one room, signalled by whoever gives back slots or bytes; the consumer in another, signalled by
 *             every P0. Their conditions take what they find, so a wait that ends has it. No wake-up is lost: wait.h.
 * Source      tickets taken before the work, and head seen lazily: LMAX Disruptor; a word per slot: D. Vyukov's bounded MPMC queue.
 * Model       tests/model/queue_close.pml */
#ifndef DTI_QUEUE_H
#define DTI_QUEUE_H

#include <ditto/queue.h>

#include "base/base.h"

#include <pthread.h>

enum dti_queue_slot_kind { DTI_QUEUE_SLOT_ITEM, DTI_QUEUE_SLOT_FAILED, DTI_QUEUE_SLOT_WITHDRAWN };

/* A slot: what moves between two cores for one item is this line alone. */
struct dti_queue_slot {
    alignas(DTI_CACHE_LINE) _Atomic uint64_t filled; /* ticket + 1 of what is in it */
    void *item;
    uint64_t bytes;
    uint32_t producer;
    enum dti_queue_slot_kind kind;
    uint64_t claimed_bytes; /* of max_bytes */
    uint64_t ticket;        /* of claim; believed by who is the holder */
    _Atomic uint32_t
        holder; /* producer + 1 from claim until publish; 0: nobody. Only its own producer writes or believes it */
};

/* One producer's own line. */
struct dti_queue_producer {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t puts, bytes, waits,
        wait_ns;        /* written by it alone, read for statistics */
    uint64_t seen_head; /* its own */
    struct dti_wait_policy wait_policy;
};

enum { DTI_QUEUE_CLOSING = 1, DTI_QUEUE_CLOSED = 2, DTI_QUEUE_FAILED = 4 };

struct ditto_queue {
    /* Constant, but for `state`, which changes when it ends. */
    struct dti_queue_slot *slot;
    char *payload; /* NULL: items are pointers */
    uint64_t mask; /* slots - 1 */
    uint64_t max_bytes, payload_bytes, payload_stride;
    uint32_t producers;
    _Atomic uint32_t state;
    struct dti_queue_producer *producer_state; /* [producers] */
    void (*drop)(void *item, void *argument);
    void *drop_argument;
    size_t mapped_bytes; /* at `entry` */
    struct dti_wait_queue producers_waiting, consumer_waiting;
    /* The producers'. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t tail;
    _Atomic uint64_t reserved;
    /* The consumer's own; atomic for those who read statistics. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t head;
    uint64_t next; /* ticket that it takes next: head, or head + 1 while it has a payload in hand */
    _Atomic uint64_t returned;
    _Atomic uint64_t gets, got_bytes, waits, wait_ns;
    struct dti_wait_policy wait_policy;
    /* The consumer has seen the end. No item can follow it, so the consumer does not ask for it again. */
    bool ended;
    /* The first failure. */
    alignas(DTI_CACHE_LINE_PAIR) pthread_mutex_t lock;
    ditto_status status; /* DITTO_OK: none */
    uint32_t failed_producer;
    uint64_t failed_ticket;
    char message[400];
};

ditto_status dti_queue_create(const ditto_queue_options *options, ditto_queue **out);
ditto_status dti_queue_destroy(ditto_queue *queue);
void dti_queue_stats(const ditto_queue *queue, ditto_queue_stats *out);

/* -- A producer -- */
ditto_status dti_queue_put(ditto_queue *queue, uint32_t producer, void *item, uint64_t bytes,
                           uint32_t timeout_ms);
ditto_status dti_queue_claim(ditto_queue *queue, uint32_t producer, uint64_t bytes, uint32_t timeout_ms,
                             uint64_t *ticket, void **payload);
ditto_status dti_queue_publish(ditto_queue *queue, uint32_t producer, uint64_t ticket, void *item,
                               uint64_t bytes);
/* -- The consumer -- */
ditto_status dti_queue_get(ditto_queue *queue, ditto_queue_item *out, uint32_t timeout_ms);
/* -- Any thread -- */
void dti_queue_close(ditto_queue *queue);
ditto_status dti_queue_fail(ditto_queue *queue, uint32_t producer, uint64_t ticket, ditto_status status,
                            const char *message);
void dti_queue_abandon(ditto_queue *queue, uint32_t producer);

/* -- What the queue's files share -- */

static inline struct dti_queue_slot *dti_queue_slot_of(const ditto_queue *queue, uint64_t ticket)
{
    return &queue->slot[ticket & queue->mask];
}
static inline void *dti_queue_payload(const ditto_queue *queue, uint64_t ticket)
{
    return queue->payload == NULL ? NULL : queue->payload + (ticket & queue->mask) * queue->payload_stride;
}
/* The slot of a ticket that this producer holds, or NULL. */
struct dti_queue_slot *dti_queue_claimed_slot(const ditto_queue *queue, uint32_t producer, uint64_t ticket);
/* P0 and its signal; the slot is written. */
void dti_queue_hand_over(ditto_queue *queue, struct dti_queue_slot *slot, uint64_t ticket);
/* The recorded failure, as the calling thread's error. */
ditto_status dti_queue_failure(ditto_queue *queue);

/* A counter that one thread writes: no read-modify-write is needed. */
static inline void dti_queue_count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

#endif
