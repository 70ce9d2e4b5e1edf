/* include/ditto/queue.h - a bounded queue from many producers to one consumer, in the order of tickets.
 *
 *     static ditto_status open_queue(ditto_queue **queue)
 *     {
 *         ditto_queue_options options = DITTO_QUEUE_OPTIONS_INIT;
 *         options.num_producers = 4;
 *         return ditto_queue_create(&options, queue);
 *     }
 *
 *     static ditto_status give(ditto_queue *queue, uint32_t producer, char *word)
 *     {
 *         return ditto_queue_put(queue, producer, word, 0, DITTO_FOREVER);
 *     }
 *
 *     static ditto_status take(ditto_queue *queue, char **word)
 *     {
 *         ditto_queue_item got;
 *         DITTO_TRY(ditto_queue_get(queue, DITTO_FOREVER, &got));
 *         *word = got.item;
 *         return DITTO_OK;
 *     }
 *
 * The threads that make items call give, and the thread that takes them calls take.
 *
 * The queue needs no strategy and no other header. Its sources are D. Vyukov's bounded MPMC queue (sequence
 * numbers per slot) and the LMAX Disruptor (tickets that are taken before the work). */
#ifndef DITTO_QUEUE_H
#define DITTO_QUEUE_H

#include <ditto/status.h>

DITTO_BEGIN

/* -- Threads --
 *
 * Producers have numbers below ditto_queue_options.num_producers. One thread at a time uses a number, and
 * tickets belong to the number. Another thread may take over a number after it has synchronized with the
 * return of the previous thread's last call. The same holds for the consumer. One thread may be both producer
 * and consumer. All other functions may be called on any thread and in any context. After fork the child has
 * its own copy of the queue, but none of the other threads: tickets that they hold are never published there,
 * and ditto_queue_destroy returns DITTO_ERR_BUSY there if one of them slept in the queue. Every function
 * returns DITTO_ERR_INVALID if a required pointer is NULL. */

/** A queue. It is a ring of slots. Each item has a ticket (0, 1, 2, ...), and the consumer gets the items in
 *  the order of their tickets.
 *
 *  ditto_queue_put takes the ticket when the item is ready, so items come in the order in which they are
 *  ready. ditto_queue_claim takes the ticket before the work, so items come in the order of the claims,
 *  whichever is ready first. */
typedef struct ditto_queue ditto_queue;

/** Largest number of slots. */
#define DITTO_MAX_QUEUE_SLOTS (1u << 20)

/** Largest number of producers. */
#define DITTO_MAX_QUEUE_PRODUCERS 65535u

/** Options of a queue. A field that is 0 has its default. */
typedef struct ditto_queue_options {
    size_t struct_size; /**< set by DITTO_QUEUE_OPTIONS_INIT */

    /** Number of tickets that may be in use at a time. It is rounded up to a power of two. 0 means 64. */
    uint32_t num_slots;

    /** Number of producers. 0 means 1. With one producer and without max_bytes, a put needs no locked
     *  instruction, unless the kernel refuses membarrier(2). */
    uint32_t num_producers;

    /** The NUMA node for slots and payload, as the operating system numbers it. Without has_node it must be
     *  0. */
    uint32_t node;

    /** Not 0: slots and payload are on `node`, or on other nodes if it is full. If has_node is 0, or if the
     *  kernel refuses to bind memory (in some containers), they are where the memory policy of the creating
     *  thread puts them. Without a policy that is its own node, so the consumer should create the queue. */
    int has_node;

    /** Limit for the bytes of all tickets together. The bytes of a ticket count until its slot is released,
     *  and already while its producer waits for a slot. 0 means no limit. */
    uint64_t max_bytes;

    /** Memory of each slot in bytes, aligned to a cache line. 0 means that items are pointers of the
     *  program. */
    uint64_t payload_bytes;

    /** How long a waiting thread spins at most before it sleeps, in microseconds. Unless has_spin_us is set,
     *  0 means the default, which is 50. If fewer CPUs are online than the queue has producers and consumer,
     *  the default is that a thread yields for a while and does not spin. */
    uint32_t spin_us;

    /** Not 0: spin_us is used even if it is 0, which then means to sleep at once. */
    int has_spin_us;

    /** Called by ditto_queue_destroy for each pointer that was put or published, and not taken. It may be
     *  NULL. It is not called for payload, which belongs to the queue. */
    void (*drop)(void *item, void *user);

    void *drop_user; /**< given to `drop` */
} ditto_queue_options;

/** Initial value of ditto_queue_options. */
#define DITTO_QUEUE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_queue_options)

/** An item that the consumer gets. */
typedef struct ditto_queue_item {
    /** The pointer that was put. If slots have memory, the memory of the slot, which the consumer may use
     *  until its next call of ditto_queue_get, whatever that call returns. */
    void *item;

    uint64_t bytes; /**< the number that was put or published */

    /** The ticket. Tickets ascend. There are no gaps, except for puts and claims that were refused
     *  because the queue was being closed. */
    uint64_t ticket;

    uint32_t producer; /**< number of the producer */
} ditto_queue_item;

/* -- Creating and destroying -- */

/** Creates a queue.
 *
 *  @param options  the options, or NULL for the defaults
 *  @param out      [out] the queue; set only on DITTO_OK
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID      struct_size is wrong, or `node` is not 0 and has_node is 0
 *  @retval DITTO_ERR_UNSUPPORTED  options of a newer version have a field set that this version does not know
 *  @retval DITTO_ERR_RANGE        one of these:
 *      - There are more than DITTO_MAX_QUEUE_SLOTS slots or DITTO_MAX_QUEUE_PRODUCERS producers.
 *      - The bytes of the payload overflow size_t.
 *      - The node has no memory that this process may use.
 *  @retval DITTO_ERR_NO_MEMORY    the system refuses the memory
 *  @par Ownership
 *  The caller destroys the queue with ditto_queue_destroy.
 *  @par Cost
 *  The call makes one mapping for slots and payload, and touches all its pages. */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_create(const ditto_queue_options *options,
                                                          ditto_queue **out);

/** Destroys a queue. Items that are left are given to ditto_queue_options.drop, also those after a failed
 *  ticket.
 *
 *  @param queue  the queue, or NULL
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_BUSY  a thread sleeps in the queue. Nothing was destroyed. Close the queue and join its
 *                          threads first
 *  @par Thread safety
 *  No other call on this queue may be in progress or follow.
 *  @par Cost
 *  One call of `drop` for each item that is left, and one system call. */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_destroy(ditto_queue *queue);

/* -- Producers: waiting --
 *
 * A put or claim waits while all slots are taken or max_bytes would be exceeded. A ticket comes with its slot
 * and its bytes, so its producer can always publish it. The limits therefore cannot block the queue for ever,
 * unless a producer that holds a ticket waits for another one. (If large and small items compete for
 * max_bytes, the small ones may come first for as long as there are any.)
 *
 * With timeout_ms 0 a call does not wait. If there is no free slot, no free bytes or no item, it returns
 * DITTO_PENDING, without an error message. Otherwise the thread waits for at most timeout_ms milliseconds, or
 * without limit with DITTO_FOREVER. */

/** Puts one item: claims a ticket and publishes it.
 *
 *  @param queue       the queue
 *  @param producer    number of the producer
 *  @param item        if slots have no memory, a pointer of the program, which may be NULL. If they have
 *                     memory, `bytes` bytes that are copied into the slot
 *  @param bytes       counted against max_bytes. If slots have memory, at most payload_bytes. If there is
 *                     neither limit nor memory, any number of the program
 *  @param timeout_ms  how long to wait in milliseconds, 0 or DITTO_FOREVER
 *  @return DITTO_OK; the status of a ticket that has failed (ditto_queue_fail), with a message that names
 *          producer and ticket; or one of:
 *  @retval DITTO_PENDING        timeout_ms is 0, and there is no free slot, or too few free bytes
 *  @retval DITTO_ERR_TIMED_OUT  there was no free slot, or there were too few free bytes, for timeout_ms
 *  @retval DITTO_ERR_CLOSED     the queue is closed
 *  @retval DITTO_ERR_RANGE      there is no such producer, or `bytes` is above max_bytes or payload_bytes and
 *                               so can never fit
 *  @retval DITTO_ERR_INVALID    slots have memory, `item` is NULL, and `bytes` is not 0
 *  @par Ownership
 *  After DITTO_OK a pointer belongs to the queue until the consumer gets it, and then to the consumer. Unless
 *  the call returns DITTO_OK, the item stays the caller's.
 *  @par Ordering
 *  Everything that the producer wrote before this call, or before ditto_queue_publish, is visible to the
 *  consumer when it gets the item.
 *  @par Cost
 *  A pointer moves one cache line from the producer to the consumer. With several producers the call makes
 *  one compare-and-swap, with max_bytes one more. */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_put(ditto_queue *queue, uint32_t producer, void *item,
                                                       uint64_t bytes, uint32_t timeout_ms);

/** Takes the next ticket, with a slot and `bytes` bytes of max_bytes.
 *
 *  Each ticket must be ended by ditto_queue_publish or ditto_queue_fail, because the
 *  consumer waits for it. A producer may hold several tickets.
 *
 *  @param queue       the queue
 *  @param producer    number of the producer
 *  @param bytes       as in ditto_queue_put
 *  @param timeout_ms  as in ditto_queue_put
 *  @param ticket      [out] the ticket; set only on DITTO_OK
 *  @param payload     [out] memory of the slot, which the producer may use until it ends the ticket, or NULL
 *                     if slots have no memory; set only on DITTO_OK. The argument itself may be NULL
 *  @return DITTO_OK, or a status of ditto_queue_put
 *  @par Cost
 *  That of ditto_queue_put, without a hand-over. */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_claim(ditto_queue *queue, uint32_t producer,
                                                         uint64_t bytes, uint32_t timeout_ms,
                                                         uint64_t *ticket, void **payload);

/** Publishes the item of a claimed ticket. It never waits, and works even if the queue is closed or another
 *  ticket has failed. After an error the producer still holds the tickets that it held.
 *
 *  @param queue     the queue
 *  @param producer  number of the producer that holds the ticket
 *  @param ticket    the ticket
 *  @param item      as in ditto_queue_put. It must be NULL if slots have memory, because the item is already
 *                   in the slot
 *  @param bytes     at most the number that was claimed. All claimed bytes count against max_bytes until the
 *                   slot is released
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_RANGE    there is no such producer, or `bytes` is more than was claimed
 *  @retval DITTO_ERR_CONTEXT  the producer does not hold this ticket: it was never claimed, is held by
 *                             another producer, or has already been ended
 *  @retval DITTO_ERR_INVALID  slots have memory, and `item` is not NULL
 *  @par Cost
 *  Writes one cache line, and wakes the consumer if it sleeps. */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_publish(ditto_queue *queue, uint32_t producer,
                                                           uint64_t ticket, void *item, uint64_t bytes);

/** In place of a ticket of ditto_queue_fail: all tickets that the producer holds, perhaps none. */
#define DITTO_ALL_TICKETS UINT64_MAX

/** Ends a ticket with an error instead of an item. It never waits.
 *
 *  With DITTO_ALL_TICKETS it is for a producer that has exited. Any thread may then call it, after that
 *  producer's last call.
 *
 *  The consumer gets all items before this ticket, and then this error from every call. If several tickets
 *  fail, the one with the lowest number counts. Producers get the error from their next put or claim, because
 *  nothing that they put would be taken. Those that wait get it at once. The error takes precedence over
 *  closing. Only ditto_queue_destroy ends this state.
 *
 *  @param queue     the queue
 *  @param producer  number of the producer that holds the ticket
 *  @param ticket    the ticket, or DITTO_ALL_TICKETS
 *  @param status    the error, below 0
 *  @param message   what went wrong, of which up to 399 bytes are copied. NULL means the name of `status`
 *  @retval DITTO_OK           the ticket is marked as failed
 *  @retval DITTO_ERR_INVALID  `status` is not an error
 *  @retval DITTO_ERR_RANGE    there is no such producer
 *  @retval DITTO_ERR_CONTEXT  the producer does not hold this ticket, as in ditto_queue_publish
 *  @par Cost
 *  That of ditto_queue_publish, and wakes the producers that sleep. With DITTO_ALL_TICKETS one load for
 *  every slot. */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_fail(ditto_queue *queue, uint32_t producer,
                                                        uint64_t ticket, ditto_status status,
                                                        const char *message);

/* -- The consumer, closing, statistics -- */

/** Takes the next item. Only the consumer may call it. If slots have memory, the call first releases the slot
 *  of the previous item. Otherwise it releases the slot of the item that it takes.
 *
 *  @param queue       the queue
 *  @param timeout_ms  as in ditto_queue_put
 *  @param out         [out] the item; set only on DITTO_OK
 *  @return DITTO_OK; the status of the next ticket if it has failed, with a message that names producer and
 *          ticket, also from later calls; or one of:
 *  @retval DITTO_PENDING        timeout_ms is 0, and the next item is not published
 *  @retval DITTO_END_OF_INPUT   the queue is closed, and all items that were claimed have been taken. Later
 *                               calls return this again
 *  @retval DITTO_ERR_TIMED_OUT  the next item was not published within timeout_ms. The message says whether a
 *                               producer holds its ticket
 *  @par Ordering
 *  Everything that the consumer did with an item before this call released its slot is visible to the next
 *  producer that has the slot.
 *  @par Cost
 *  The call reads the cache line of the slot, and writes one line of its own. */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_get(ditto_queue *queue, uint32_t timeout_ms,
                                                       ditto_queue_item *out);

/** Closes a queue. It may be called several times.
 *
 *  Producers get DITTO_ERR_CLOSED at once, also those that wait. When the call returns, no later put or claim
 *  can succeed. Tickets that are held must still be ended. The consumer gets all their items, and then
 *  DITTO_END_OF_INPUT.
 *
 *  @param queue  the queue
 *  @return DITTO_OK
 *  @par Cost
 *  One fence that all threads of the process take part in (membarrier), and wakes threads that sleep. */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_close(ditto_queue *queue);

/** Statistics of a queue. Each number is exact when the threads that count it are idle. A thread that
 *  spins does not count waits of less than about 1 us. */
typedef struct ditto_queue_counters {
    size_t struct_size; /**< set by DITTO_QUEUE_COUNTERS_INIT */

    uint64_t puts;      /**< items put or published */
    uint64_t gets;      /**< items taken */
    uint64_t put_bytes; /**< bytes of the items put */
    uint64_t got_bytes; /**< bytes of the items taken */

    /** Tickets that have been claimed and whose slot has not been released. */
    uint64_t depth;

    uint64_t put_waits;   /**< waits of all producers for a slot or bytes */
    uint64_t put_wait_ns; /**< time of these waits */
    uint64_t get_waits;   /**< waits of the consumer */
    uint64_t get_wait_ns; /**< time of these waits */
} ditto_queue_counters;

/** Initial value of ditto_queue_counters. */
#define DITTO_QUEUE_COUNTERS_INIT DITTO_OPTIONS_INIT(ditto_queue_counters)

/** Reads the statistics of a queue.
 *
 *  @param queue  the queue
 *  @param out    [out] the statistics. Start from DITTO_QUEUE_COUNTERS_INIT
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_INVALID  struct_size is not set
 *  @par Cost
 *  Reads the counters of each producer. */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_stats(const ditto_queue *queue, ditto_queue_counters *out);

DITTO_END
#endif
