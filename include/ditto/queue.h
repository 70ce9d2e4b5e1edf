/* include/ditto/queue.h - a bounded queue by itself: many producers, one consumer, an order that is fixed before the work is done.
 *
 *     ditto_queue_options options = DITTO_QUEUE_OPTIONS_INIT;
 *     options.producers = 4;
 *     DITTO_TRY(ditto_queue_create(&options, &queue));
 *     ...  ditto_queue_put(queue, producer, item, 0, DITTO_FOREVER)     on the threads that make items
 *     ...  ditto_queue_get(queue, &got, DITTO_FOREVER)                  on the one that takes them
 *
 * It needs no strategy and no other header. A ring of slots; each thing that is put has a ticket, 0, 1, 2, ..., and the consumer gets
 * them in the order of their tickets. `put` takes its ticket when the item is ready, so that the order is that of finishing. `claim` takes
 * it before: whoever claims first comes first, however long the making takes, and the order of several producers is as the
 * program gives out the work, never as the threads happen to run.
 *
 * Producers   have numbers below options.producers. A number is used by one thread at a time: who takes it over has seen the other's
 *             last call return. Tickets that it holds go with the number.
 * Consumer    one thread at a time, likewise. A thread may be producer and consumer.
 * Room        a put or claim waits while all slots are taken or max_bytes would be exceeded; then it has a slot and its bytes, and nothing
 *             that it does with them waits for anybody. So the oldest ticket can always be published, and what is limited is
 *             the number of tickets, not their order: the caps cannot lock anybody out for ever. (Of large and small items that
 *             compete for max_bytes the small ones may come first for as long as there are any.)
 * Waiting     timeout_ms 0 is a try: DITTO_PENDING, which is no error and no message, when there is no room or no item. Otherwise the
 *             thread looks for a while (spin_us) and then sleeps; DITTO_ERR_TIMED_OUT after timeout_ms; DITTO_FOREVER: no limit.
 * Closing     ditto_queue_close by anyone: producers get DITTO_ERR_CLOSED at once, those that wait too; the consumer still gets what has been
 *             claimed, then DITTO_END_OF_INPUT. Tickets that are held are still published.
 * Failing     ditto_queue_fail instead of publishing: the consumer gets everything before that ticket, then this error from every call.
 *             Of several the one with the lowest ticket comes. Producers get it from their next put or claim on, and those that
 *             wait for room at once: nothing that they put would be taken. It wins over closing. No end but destroy.
 * Ordering    what a producer wrote before its put or publish, the consumer sees when it gets the item; what the consumer did with an
 *             item before it gave back the slot, the producer sees that has the slot next.
 * After fork  the child has a copy of its own, in which only the thread that forked is left.
 *
 * Every function: any thread within the rules above, any context. DITTO_ERR_INVALID where a pointer is NULL that is needed.
 * Source  per-slot sequence numbers: D. Vyukov, bounded MPMC queue; tickets taken before the work: LMAX Disruptor. */
#ifndef DITTO_QUEUE_H
#define DITTO_QUEUE_H

#include <ditto/status.h>

DITTO_BEGIN

typedef struct ditto_queue ditto_queue;

#define DITTO_QUEUE_ON_NODE 1u /* options.node is meant */

#define DITTO_MAX_QUEUE_SLOTS     (1u << 20)
#define DITTO_MAX_QUEUE_PRODUCERS 65535u

typedef struct ditto_queue_options {
    size_t struct_size;
    uint32_t flags;     /**< DITTO_QUEUE_ON_NODE */
    uint32_t slots;     /**< tickets that may be out at a time; rounded up to a power of two; 0: 64 */
    uint32_t producers; /**< how many there are; 0: 1, which needs no locked instruction */
    uint32_t
        node; /**< with DITTO_QUEUE_ON_NODE: NUMA node of slots and payload, as the OS numbers them. Otherwise, and where the
                                 kernel refuses (some containers), they lie where the creating thread runs: best the consumer */
    uint64_t
        max_bytes; /**< of all tickets together, from put or claim until the slot is given back; 0: no cap */
    uint64_t
        payload_bytes; /**< 0: items are pointers of the program's own. Else each slot has this much memory */
    /** How long to look before sleeping, in microseconds. Unless has_spin_us is set, 0 means the default: 50,
     *  or, where the machine has fewer CPUs than the queue has threads, not at all; those threads yield for a
     *  while. */
    uint32_t spin_us;
    uint32_t has_spin_us; /**< not 0: spin_us is meant as it stands; 0 then means to sleep at once */
    void (*drop)(
        void *item,
        void
            *argument); /**< ditto_queue_destroy calls it for each pointer put and not got; NULL: nothing. Not
                                                   for payload, which is the queue's */
    void *drop_argument;
} ditto_queue_options;
#define DITTO_QUEUE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_queue_options)

/** What the consumer gets. */
typedef struct ditto_queue_item {
    void *
        item; /**< as it was put; or the slot's memory, which is the consumer's until its next ditto_queue_get, whatever that returns */
    uint64_t bytes;    /**< as they were put or published */
    uint64_t ticket;   /**< in rising order; without gaps but for claims that ditto_queue_close refused */
    uint32_t producer; /**< who put or claimed it */
} ditto_queue_item;

/** @param options  NULL: the defaults
 *  @param out      the caller's, to be given to ditto_queue_destroy
 *  @retval DITTO_ERR_INVALID, DITTO_ERR_UNSUPPORTED  options of the wrong size, or with flags or fields unknown here
 *  @retval DITTO_ERR_RANGE      more than DITTO_MAX_QUEUE_SLOTS or DITTO_MAX_QUEUE_PRODUCERS; more payload than size_t counts; a node
 *                               without memory that this process may use
 *  @retval DITTO_ERR_NO_MEMORY  the system refuses the memory
 *  Cost  one mapping for slots and payload, touched once. */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_create(const ditto_queue_options *options,
                                                          ditto_queue **out);

/** Items that are left go through options.drop, also those behind a failed ticket. No other call on this queue runs or comes. NULL is
 *  allowed.
 *  @retval DITTO_ERR_BUSY  a thread sleeps in the queue: close it and join them first. Nothing is destroyed */
DITTO_API ditto_status ditto_queue_destroy(ditto_queue *queue);

/** Puts one item: claim and publish in one.
 *  @param producer    its number
 *  @param item        a pointer of the program's own, NULL too, which is the consumer's when it gets it; or, where slots have memory, `bytes`
 *                     bytes that are copied there
 *  @param bytes       counted against max_bytes; at most payload_bytes where slots have memory. Without either just a number
 *  @param timeout_ms  0: try; DITTO_FOREVER: no limit
 *  @retval DITTO_PENDING        tried, and there is no room
 *  @retval DITTO_ERR_TIMED_OUT  no room in time
 *  @retval DITTO_ERR_CLOSED     the queue is closed
 *  @retval the status of a failed ticket: ditto_queue_fail. The message names producer and ticket
 *  @retval DITTO_ERR_RANGE      `producer` is none; bytes are more than max_bytes or payload_bytes, so that they would never fit
 *  Unless DITTO_OK the item stays the caller's.
 *  Cost  one line written; with several producers one compare-and-swap, with max_bytes another. */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_put(ditto_queue *queue, uint32_t producer, void *item,
                                                       uint64_t bytes, uint32_t timeout_ms);

/** Takes the next ticket, with a slot and `bytes` of max_bytes. It must end in ditto_queue_publish, ditto_queue_fail or
 *  ditto_queue_abandon: the consumer waits for it. A producer may hold several.
 *  @param ticket   set on DITTO_OK
 *  @param payload  set on DITTO_OK: the slot's memory, the producer's until it publishes; NULL where slots have none. May be NULL
 *  @retval as ditto_queue_put */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_claim(ditto_queue *queue, uint32_t producer,
                                                         uint64_t bytes, uint32_t timeout_ms,
                                                         uint64_t *ticket, void **payload);
/** Hands over what a ticket was claimed for; never waits. Also after closing and after another ticket has failed.
 *  @param item   as ditto_queue_put; where slots have memory NULL: it is there already
 *  @param bytes  at most what was claimed; the rest is free again when the consumer has taken the item
 *  @retval DITTO_ERR_RANGE    more bytes than were claimed; `producer` is none
 *  @retval DITTO_ERR_CONTEXT  this producer does not hold this ticket: never claimed, another's, or published already
 *  @retval DITTO_ERR_INVALID  slots have memory, and item is not NULL */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_publish(ditto_queue *queue, uint32_t producer,
                                                           uint64_t ticket, void *item, uint64_t bytes);
/** Marks a ticket as failed: see Failing above. Never waits.
 *  @param status   an error, < 0
 *  @param message  what went wrong, copied; NULL: the status's sentence
 *  @retval DITTO_ERR_INVALID  `status` is no error
 *  @retval DITTO_ERR_RANGE, DITTO_ERR_CONTEXT  as ditto_queue_publish
 *  @retval DITTO_OK           it is marked (what is returned is not `status`) */
DITTO_API ditto_status ditto_queue_fail(ditto_queue *queue, uint32_t producer, uint64_t ticket,
                                        ditto_status status, const char *message);
/** Marks all tickets that a producer holds as failed with DITTO_ERR_PEER_STOPPED: for one that has gone and will not publish. Called by
 *  whoever knows that, after its last call. Nothing held: nothing happens.
 *  @retval DITTO_ERR_RANGE  `producer` is none
 *  Cost  a look at every slot. */
DITTO_API ditto_status ditto_queue_abandon(ditto_queue *queue, uint32_t producer);

/** The consumer alone: gives back the slot that it has in hand, and takes the next item.
 *  @param timeout_ms  0: try; DITTO_FOREVER: no limit
 *  @retval DITTO_PENDING        tried, and the next item is not there
 *  @retval DITTO_END_OF_INPUT   closed, and all that was claimed has been got: this and every later call
 *  @retval DITTO_ERR_TIMED_OUT  not there in time; the message says whether somebody holds the ticket
 *  @retval the status of the failed ticket whose turn it is: this and every later call. The message names producer and ticket
 *  Cost  one line read and written. */
DITTO_API DITTO_NODISCARD ditto_status ditto_queue_get(ditto_queue *queue, ditto_queue_item *out,
                                                       uint32_t timeout_ms);

/** Closes it: see Closing above. Any thread, any number of times; returns when no later put or claim can succeed. */
DITTO_API ditto_status ditto_queue_close(ditto_queue *queue);

/** What has happened so far. Each number is exact once the threads that count rest. */
typedef struct ditto_queue_stats {
    uint64_t puts, gets;           /**< items put or published; got */
    uint64_t put_bytes, got_bytes; /**< of those */
    uint64_t depth;                /**< tickets that have been claimed, and whose slot was not given back */
    /** Waits that were longer than the first looks, which take less than the clock costs twice (about 1 us): how many, how long. */
    uint64_t put_waits, put_wait_ns; /**< for room, of all producers */
    uint64_t get_waits, get_wait_ns; /**< for an item */
} ditto_queue_stats;
/** Any thread. */
DITTO_API ditto_status ditto_queue_get_stats(const ditto_queue *queue, ditto_queue_stats *out);

DITTO_END
#endif
