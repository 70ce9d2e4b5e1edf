/* tests/input/queue/queue_threads.c - see queue_threads.h. */
#include "input/queue/queue_threads.h"

#include "input/queue/queue.h"

ditto_queue *make(const ditto_queue_options *options)
{
    ditto_queue *queue = NULL;
    assert_ok(ditto_queue_create(options, &queue));
    return queue;
}

ditto_queue *make_with(uint32_t slots, uint32_t producers)
{
    ditto_queue_options options = DITTO_QUEUE_OPTIONS_INIT;
    options.num_slots = slots;
    options.num_producers = producers;
    options.spin_us = 1;
    return make(&options);
}

void *number(uint64_t n)
{
    return (void *)(uintptr_t)n;
}

uint64_t number_of(const ditto_queue_item *got)
{
    return (uint64_t)(uintptr_t)got->item;
}

void *block(void *argument)
{
    struct blocked *b = argument;
    ditto_queue_item got;
    b->status = b->puts ? ditto_queue_put(b->queue, 1, NULL, 0, DITTO_FOREVER)
                        : ditto_queue_get(b->queue, DITTO_FOREVER, &got);
    return NULL;
}

void wait_until_asleep(const struct blocked *b)
{
    const struct dti_wait_queue *queue = b->puts ? &b->queue->producers_waiting : &b->queue->consumer_waiting;
    while (atomic_load(&queue->parked) == 0)
        sleep_ms(1);
}
