/* tests/input/queue/queue_threads.h - creates queues for tests, and describes the threads that put items into
 * them or wait in them. */
#ifndef QUEUE_THREADS_H
#define QUEUE_THREADS_H

#include "support/support.h"

#include <ditto/queue.h>

#include <pthread.h>

/* Creates a queue. Fails the test if it cannot be created. */
ditto_queue *make(const ditto_queue_options *options);

/* Creates a queue in which a waiting thread spins for one microsecond and then sleeps. */
ditto_queue *make_with(uint32_t slots, uint32_t producers);

/* Makes an item from a number. */
void *number(uint64_t n);

/* Returns the number of an item. */
uint64_t number_of(const ditto_queue_item *got);

/* A queue, and the items that its producers send. */
struct stream {
    ditto_queue *queue;
    uint32_t producers;
    uint64_t items;     /* of each producer */
    uint64_t max_bytes; /* of the queue, 0 if it has no limit */
    uint64_t seed;

    /* The queue copies payloads. */
    bool payload;

    /* Some items are claimed and published, and not put. */
    bool claims;

    /* The sum of the bytes that are claimed and not published. Only hold_bytes counts them. */
    _Atomic uint64_t claimed_bytes;

    /* The number of successful puts of all producers. Only put_until_closed counts them. */
    _Atomic uint64_t puts;
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
    uint32_t producer;   /* the number of the producer that puts */
    ditto_status status; /* what the call returned */
    pthread_t thread;
};

/* Starts `count` threads that all put into one queue, or one thread that gets from it. Waits until they sleep
 * in the queue, or are about to. Fails the test if they do not within two minutes. */
void begin_blocked(struct blocked *blocked, uint32_t count);

/* Waits until the calls of the threads have returned. Fails the test if they have not after two minutes. */
void end_blocked(struct blocked *blocked, uint32_t count);

#endif
