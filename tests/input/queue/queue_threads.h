/* tests/input/queue/queue_threads.h - creates queues for tests, and describes the threads that put into them
 * or wait at them. */
#ifndef QUEUE_THREADS_H
#define QUEUE_THREADS_H

#include "support/support.h"

#include <ditto/queue.h>

/* Creates a queue. Fails the test if it cannot be created. */
ditto_queue *make(const ditto_queue_options *options);

/* Creates a queue whose threads sleep soon when they wait. */
ditto_queue *make_with(uint32_t slots, uint32_t producers);

/* Makes an item of a number. */
void *number(uint64_t n);

/* Returns the number of an item. */
uint64_t number_of(const ditto_queue_item *got);

/* Sleeps. */
void rest_ms(long ms);

/* What the producers of a queue send. */
struct stream {
    ditto_queue *queue;
    uint32_t producers;
    uint64_t items, max_bytes, seed;
    bool payload, claims;

    /* The bytes for which put or claim has returned and get has not. */
    _Atomic uint64_t outstanding;
    struct report report;
};

/* A producer and its number. */
struct producer {
    struct stream *stream;
    uint32_t id;
};

/* A thread that waits in a put or in a get. */
struct blocked {
    ditto_queue *queue;
    bool puts;
    ditto_status status;
};

/* The function of such a thread. */
void *block(void *argument);

/* Returns when the thread sleeps in the queue. */
void wait_until_asleep(const struct blocked *blocked);

#endif
