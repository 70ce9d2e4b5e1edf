/* tests/schedules/scenarios/queue.c - the queue: its order, its limits, and its end. */
#include "scenarios.h"

#include <ditto/queue.h>

#include <stdatomic.h>

enum { ITEMS = 3, PRODUCERS = 2 };
static ditto_queue *queue;
static int item[PRODUCERS][ITEMS];
static _Atomic uint32_t put; /* how many have been put */

static void open_queue(uint32_t slots, uint64_t most_bytes)
{
    ditto_queue_options o = DITTO_QUEUE_OPTIONS_INIT;
    o.num_slots = slots;
    o.num_producers = PRODUCERS;
    o.max_bytes = most_bytes;
    o.has_spin_us = 1;
    EXPECT(ditto_queue_create(&o, &queue) == DITTO_OK);
}
static void queue_of_two_slots(void)
{
    open_queue(2, 0);
}
static void queue_of_few_bytes(void)
{
    open_queue(8, 3);
}

static void *produce(void *argument)
{
    uint32_t me = (uint32_t)(uintptr_t)argument;
    for (int i = 0; i < ITEMS; i++) {
        item[me][i] = i + 1;
        ditto_status status = ditto_queue_put(queue, me, &item[me][i], 1 + (uint64_t)i, DITTO_FOREVER);
        if (status == DITTO_ERR_CLOSED)
            return NULL;
        EXPECT(status == DITTO_OK);
        atomic_fetch_add_explicit(&put, 1, memory_order_relaxed);
    }
    return NULL;
}

/* Takes items until the queue is closed, or `most` have come. Those of a producer come in its order. Tickets
 * that were refused by closing are missing. */
static uint32_t consume(uint32_t most)
{
    int last[PRODUCERS] = { 0 };
    uint64_t next_ticket = 0;
    uint32_t taken = 0;
    for (; taken < most; taken++) {
        ditto_queue_item got;
        ditto_status status = ditto_queue_get(queue, DITTO_FOREVER, &got);
        if (status == DITTO_ERR_CLOSED || status == DITTO_END_OF_INPUT)
            break;
        EXPECT(status == DITTO_OK && got.ticket >= next_ticket);
        next_ticket = got.ticket + 1;
        EXPECT(*(int *)got.item == last[got.producer] + 1);
        last[got.producer]++;
    }
    return taken;
}

static void all_items(void)
{
    pthread_t a = thread_of(produce, (void *)0), b = thread_of(produce, (void *)1);
    EXPECT(consume(PRODUCERS * ITEMS) == PRODUCERS * ITEMS);
    join(a);
    join(b);
    EXPECT(ditto_queue_destroy(queue) == DITTO_OK);
}

static void *close_queue(void *unused)
{
    (void)unused;
    EXPECT(ditto_queue_close(queue) == DITTO_OK);
    return NULL;
}

static void closed_queue(void)
{
    pthread_t a = thread_of(produce, (void *)0), b = thread_of(produce, (void *)1),
              c = thread_of(close_queue, NULL);
    uint32_t taken = consume(UINT32_MAX);
    join(a);
    join(b);
    join(c);
    EXPECT(taken == put); /* what was put is not lost */
    EXPECT(ditto_queue_destroy(queue) == DITTO_OK);
}

const struct scenario queue_scenarios[] = {
    { .name = "queue_of_two_slots", .setup = queue_of_two_slots, .body = all_items },
    { .name = "queue_of_few_bytes", .setup = queue_of_few_bytes, .body = all_items },
    { .name = "closed_queue", .setup = queue_of_two_slots, .body = closed_queue },
    { 0 },
};
