/* src/input/queue/queue.h - the queue of include/ditto/queue.h, a ring of slots that producers fill and one
 * consumer empties. The numbers of slots and of bytes are limited. The queue ends by closing or by a failure.
 *
 * A producer takes ticket t from tail. Ticket t uses slot t mod slots, where slots is the number of slots. A
 * slot says only whether it is filled. Whether it is free follows from head, the number of slots that the
 * consumer has given back. The consumer therefore never writes a slot. The cache line of a slot moves to the
 * consumer when it reads the line, and back to a producer when it writes the line. A producer loads head once
 * per round of the ring, except when the ring is full. (With a turn word in each slot, as in ring.h, the
 * consumer would fetch the line a second time to write it, and that store would stay in its store buffer in
 * front of its next stores.)
 *
 * A producer takes a ticket only when its slot is free, and it reserves bytes before that. The holder of a
 * ticket therefore has everything it needs and never waits. A producer that waits for a slot may hold bytes.
 * The consumer gives back slots and bytes. It waits only for the holder of its next ticket, or, if there is
 * none, for a producer that takes this ticket. Then all slots are free. So there is no cycle of waits.
 * Invariants  I1  tail is the number of tickets taken, and head is the number of slots given back:
 *                 head <= tail <= head + slots. A single producer stores tail, and several producers use
 *                 compare-and-swap. Only the consumer stores head.
 *             I2  reserved - returned bytes are in use, at most max_bytes. Only producers write reserved.
 *                 Only the consumer writes returned, and it never decreases.
 *             I3  Every ticket that is taken ends in one P0, as ITEM, FAILED or WITHDRAWN. Only the producer
 *                 of the ticket, or the thread that abandons this producer, writes the slot before P0. No
 *                 thread writes it between P0 and F0.
 *             I4  The recorded failure is that of the lowest ticket that has failed so far. The consumer
 *                 comes to this ticket first.
 * Edges       P0 -> P1  filled == t + 1: the slot -> the consumer that comes to ticket t
 *             F0 -> F1  head > t - slots: the consumer's last access to the slot -> the producer that takes
 *                       ticket t
 *             T0 -> E1  A producer stores tail (T0), executes dti_fence_light and loads CLOSING (T1). The
 *             C0 -> C1  closing thread stores CLOSING (E0), executes dti_fence_heavy and stores CLOSED (C0).
 *                       If T1 does not see CLOSING, a consumer that has seen CLOSED (C1) sees that tail at
 *                       E1.
 *             B0 -> B1  the consumer's store of returned -> the producer that reserves these bytes. The
 *                       producer's load of reserved is not older than returned.
 * Therefore   A consumer that sees CLOSED, and no ticket beyond its own, has received every item that was
 *             ever put. The producer of a ticket that the consumer does not see finds CLOSING at T1. It
 *             withdraws the ticket (W0), and its call returns DITTO_ERR_CLOSED. The loads of the slot (P1),
 *             of CLOSED (C1) and of tail (E1) are three steps, and a withdrawn ticket may fill the slot after
 *             the last of them. The consumer therefore decides once, from these three loads, and does not
 *             read the slot again.
 * Cost        Closing costs one load per put, and no locked instruction if there is one producer. A closed
 *             bit in tail would need a locked instruction, which waits for all earlier stores.
 * Waiting     Producers sleep in one wait queue. Every return of slots or bytes signals it. The consumer
 *             sleeps in another, and every P0 signals it. The conditions of these waits take what they find,
 *             so when a wait ends the thread has its slot or its item. wait.h shows that no wake-up is lost.
 * Source      Tickets taken before the work, and head read rarely: LMAX Disruptor. One word per slot: D.
 *             Vyukov's bounded MPMC queue.
 * Model       tests/model/queue_close.pml */
#ifndef DTI_QUEUE_H
#define DTI_QUEUE_H

#include <ditto/queue.h>

#include "base/waiting/wait.h"

enum dti_queue_slot_kind { DTI_QUEUE_SLOT_ITEM, DTI_QUEUE_SLOT_FAILED, DTI_QUEUE_SLOT_WITHDRAWN };

/* A slot. One item without a payload moves only this cache line between two cores. */
struct dti_queue_slot {
    alignas(DTI_CACHE_LINE) _Atomic uint64_t filled; /* ticket + 1 of its content */
    void *item;
    uint64_t bytes;
    uint32_t producer;
    enum dti_queue_slot_kind kind;

    /* The bytes that are reserved for the item. They count against max_bytes. */
    uint64_t claimed_bytes;

    /* The ticket of a claim. It is valid only for the producer that `holder` names. */
    uint64_t ticket;

    /* producer + 1 from claim until publish or fail, otherwise 0. Only that producer relies on it, or the
     * thread that abandons the producer. */
    _Atomic uint32_t holder;
};

/* One producer's own cache lines. */
struct dti_queue_producer {
    /* Statistics. Only this producer writes them, and other threads read them. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t puts, bytes, waits, wait_ns;
    uint64_t seen_head; /* the value of head that it has loaded last */
    struct dti_wait_policy wait_policy;
};

/* The failure of a ticket. */
struct dti_queue_failure {
    ditto_status status; /* DITTO_OK if there is none */
    uint32_t producer;
    uint64_t ticket;
    char message[400];
};

enum { DTI_QUEUE_CLOSING = 1, DTI_QUEUE_CLOSED = 2, DTI_QUEUE_FAILED = 4 };

struct ditto_queue {
    /* Constant, except for `state`, which changes when the queue ends, and the wait queues. */
    struct dti_queue_slot *slot;
    char *payload; /* NULL if items are pointers */
    uint64_t mask; /* slots - 1 */
    uint64_t max_bytes, payload_bytes, payload_stride;
    uint32_t producers;
    _Atomic uint32_t state;                    /* DTI_QUEUE_CLOSING and so on, combined */
    struct dti_queue_producer *producer_state; /* [producers] */
    void (*drop)(void *item, void *argument);
    void *drop_argument;
    size_t mapped_bytes; /* size of the mapping at `slot` */
    struct dti_wait_queue producers_waiting, consumer_waiting;

    /* Written by producers. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t tail;
    _Atomic uint64_t reserved;

    /* Written by the consumer. Producers read `head` and `returned`. Other members are atomic because other
     * threads read them for statistics. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t head;

    /* The ticket that the consumer takes next. It is head, or head + 1 while the consumer holds the payload
     * of a slot. */
    uint64_t next;
    _Atomic uint64_t returned;
    _Atomic uint64_t gets, got_bytes, waits, wait_ns;
    struct dti_wait_policy wait_policy;

    /* The consumer has seen the end. No item can follow it, so the consumer does not look for the end
     * again. */
    bool ended;

    /* Guards the recorded failure. It is 0, or 1 more than the number of the process whose thread holds the
     * lock (fork.h). In a child process a thread that does not exist there may hold it. The child sees that
     * from the number, and takes the lock away. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t lock;

    /* failure[recorded] is the failure of the lowest ticket (I4). A new failure is written to the other
     * member, and then `recorded` changes. So a child process whose parent was writing finds the earlier
     * failure unchanged. */
    _Atomic uint32_t recorded;
    struct dti_queue_failure failure[2];
};

ditto_status dti_queue_create(const ditto_queue_options *options, ditto_queue **out);
ditto_status dti_queue_destroy(ditto_queue *queue);
void dti_queue_stats(const ditto_queue *queue, ditto_queue_counters *out);

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
void dti_queue_abandon(ditto_queue *queue, uint32_t producer, ditto_status status, const char *message);

/* -- Shared by the queue's .c files -- */

static inline struct dti_queue_slot *dti_queue_slot_of(const ditto_queue *queue, uint64_t ticket)
{
    return &queue->slot[ticket & queue->mask];
}
static inline void *dti_queue_payload(const ditto_queue *queue, uint64_t ticket)
{
    return queue->payload == NULL ? NULL : queue->payload + (ticket & queue->mask) * queue->payload_stride;
}
/* Returns the slot of a ticket that this producer has claimed and not yet published, or NULL. */
struct dti_queue_slot *dti_queue_claimed_slot(const ditto_queue *queue, uint32_t producer, uint64_t ticket);

/* Marks the slot as filled (P0) and signals the consumer. The caller has written the slot. */
void dti_queue_hand_over(ditto_queue *queue, struct dti_queue_slot *slot, uint64_t ticket);

/* Makes the recorded failure the calling thread's error and returns its status. */
ditto_status dti_queue_failure(ditto_queue *queue);

/* Adds to a counter that one thread writes, so it needs no read-modify-write. */
static inline void dti_queue_count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

#endif
