/* tests/input/queue/queue_threads.c - see queue_threads.h. */
#include "input/queue/queue_threads.h"

#include "input/queue/queue.h"

#include <time.h>

ditto_queue *make(const ditto_queue_options *options)
{
    ditto_queue *queue = NULL;
    assert_ok(ditto_queue_create(options, &queue));
    return queue;
}

ditto_queue *make_with(uint32_t slots, uint32_t producers)
{
    return make(&OPTIONS(queue, .num_slots = slots, .num_producers = producers, .spin_us = 1));
}

void *number(uint64_t n)
{
    return (void *)(uintptr_t)n;
}

uint64_t number_of(const ditto_queue_item *got)
{
    return (uint64_t)(uintptr_t)got->item;
}

static void *block(void *argument)
{
    struct blocked *b = argument;
    ditto_queue_item got;
    b->status = b->puts ? ditto_queue_put(b->queue, b->producer, NULL, 0, DITTO_FOREVER)
                        : ditto_queue_get(b->queue, DITTO_FOREVER, &got);
    return NULL;
}

void begin_blocked(struct blocked *b, uint32_t count)
{
    const struct dti_wait_queue *queue = b->puts ? &b->queue->producers_waiting : &b->queue->consumer_waiting;
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&b[i].thread, NULL, block, &b[i]), 0);
    for (int i = 0; atomic_load(&queue->parked) < count; i++) {
        assert_true(i < 12000);
        sleep_ms(10);
    }
}

void end_blocked(struct blocked *b, uint32_t count)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 120;
    for (uint32_t i = 0; i < count; i++)
        if (pthread_timedjoin_np(b[i].thread, NULL, &limit) != 0)
            fail_msg("thread %u of %u was not woken", i, count);
}
