/* tests/schedules/scenarios/queue.c - the queue: its order, its limits, tickets, and its end. */
#include "scenarios.h"

#include <ditto/queue.h>

#include <stdatomic.h>

enum { ITEMS = 3, PRODUCERS = 2 };
static ditto_queue *queue;
static int item[PRODUCERS][ITEMS];
static _Atomic uint32_t put; /* how many have been put */
static uint32_t dropped;

static void drop(void *dropped_item, void *user)
{
    (void)dropped_item, (void)user;
    dropped++;
}

static void open_queue(uint32_t slots, uint64_t most_bytes, uint64_t payload_bytes)
{
    ditto_queue_options o = DITTO_QUEUE_OPTIONS_INIT;
    o.num_slots = slots;
    o.num_producers = PRODUCERS;
    o.max_bytes = most_bytes;
    o.payload_bytes = payload_bytes;
    o.has_spin_us = 1;
    o.drop = drop;
    EXPECT(ditto_queue_create(&o, &queue) == DITTO_OK);
}
static void queue_of_two_slots(void)
{
    open_queue(2, 0, 0);
}
static void queue_of_few_bytes(void)
{
    open_queue(8, 3, 0);
}
static void queue_of_two_payloads(void)
{
    open_queue(2, 0, sizeof(int));
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
        if (status == DITTO_END_OF_INPUT)
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

/* -- tickets that are taken before the work -- */

static void *claim_and_publish(void *argument)
{
    uint32_t me = (uint32_t)(uintptr_t)argument;
    for (int i = 0; i < ITEMS; i++) {
        uint64_t ticket;
        void *payload;
        ditto_status status = ditto_queue_claim(queue, me, sizeof(int), DITTO_FOREVER, &ticket, &payload);
        if (status == DITTO_ERR_CLOSED)
            return NULL;
        EXPECT(status == DITTO_OK);
        *(int *)payload = i + 1;
        EXPECT(ditto_queue_publish(queue, me, ticket, NULL, sizeof(int)) == DITTO_OK);
        atomic_fetch_add_explicit(&put, 1, memory_order_relaxed);
    }
    return NULL;
}
static void claimed_tickets(void)
{
    pthread_t a = thread_of(claim_and_publish, (void *)0), b = thread_of(claim_and_publish, (void *)1);
    EXPECT(consume(PRODUCERS * ITEMS) == PRODUCERS * ITEMS);
    join(a);
    join(b);
    EXPECT(ditto_queue_destroy(queue) == DITTO_OK);
}
static void closed_beside_claims(void)
{
    pthread_t a = thread_of(claim_and_publish, (void *)0), b = thread_of(claim_and_publish, (void *)1),
              c = thread_of(close_queue, NULL);
    uint32_t taken = consume(UINT32_MAX);
    join(a);
    join(b);
    join(c);
    EXPECT(taken == put);
    EXPECT(ditto_queue_destroy(queue) == DITTO_OK);
}

/* Producer 0 publishes an item, and ends the ticket after it with an error, or leaves, so that another thread
 * does that. Producer 1 puts until it gets the error. */
static void *claim_and_fail(void *leaves)
{
    uint64_t ticket;
    item[0][0] = 1;
    EXPECT(ditto_queue_claim(queue, 0, 1, DITTO_FOREVER, &ticket, NULL) == DITTO_OK);
    EXPECT(ditto_queue_publish(queue, 0, ticket, &item[0][0], 1) == DITTO_OK);
    atomic_fetch_add_explicit(&put, 1, memory_order_relaxed);
    EXPECT(ditto_queue_claim(queue, 0, 1, DITTO_FOREVER, &ticket, NULL) == DITTO_OK);
    if (leaves != NULL)
        return NULL; /* with the ticket */
    EXPECT(ditto_queue_fail(queue, 0, ticket, DITTO_ERR_USER, "it fails") == DITTO_OK);
    EXPECT(ditto_queue_put(queue, 0, &item[0][1], 1, DITTO_FOREVER) == DITTO_ERR_USER);
    return NULL;
}
static void *put_until_error(void *unused)
{
    ditto_status status;
    (void)unused;
    for (int i = 0; i < 6; i++) {
        item[1][0] = 1;
        status = ditto_queue_put(queue, 1, &item[1][0], 1, DITTO_FOREVER);
        if (status != DITTO_OK) {
            EXPECT(status == DITTO_ERR_USER);
            return NULL;
        }
        atomic_fetch_add_explicit(&put, 1, memory_order_relaxed);
    }
    return NULL;
}
static void *fail_for_producer(void *first)
{
    join(*(pthread_t *)first);
    EXPECT(ditto_queue_fail(queue, 0, DITTO_ALL_TICKETS, DITTO_ERR_USER, "it fails") == DITTO_OK);
    return NULL;
}
static void fail_with(void *leaves)
{
    pthread_t a = thread_of(claim_and_fail, leaves), b = thread_of(put_until_error, NULL);
    pthread_t c = leaves != NULL ? thread_of(fail_for_producer, &a) : a;
    ditto_queue_item got;
    ditto_status status;
    uint32_t taken = 0, of_first = 0;
    while ((status = ditto_queue_get(queue, DITTO_FOREVER, &got)) == DITTO_OK) {
        taken++;
        of_first += got.producer == 0;
    }
    EXPECT(status == DITTO_ERR_USER && strstr(ditto_last_error()->message, "it fails") != NULL);
    EXPECT(of_first == 1); /* all items before the ticket that failed have come */
    join(c);
    join(b);
    EXPECT(ditto_queue_get(queue, 0, &got) == DITTO_ERR_USER);
    EXPECT(ditto_queue_destroy(queue) == DITTO_OK);
    EXPECT(taken + dropped == put); /* the others are given to the program */
}
static void failing_ticket(void)
{
    fail_with(NULL);
}
static void failing_producer(void)
{
    fail_with(queue);
}

/* -- limits of time: nothing is lost, and nothing comes twice -- */

static void *put_impatiently(void *argument)
{
    uint32_t me = (uint32_t)(uintptr_t)argument;
    for (int i = 0; i < ITEMS; i++) {
        ditto_status status = DITTO_PENDING;
        item[me][i] = i + 1;
        for (uint32_t wait = 0; status != DITTO_OK; wait = 1 - wait) {
            status = ditto_queue_put(queue, me, &item[me][i], 1, wait);
            EXPECT(status == DITTO_OK || status == (wait == 0 ? DITTO_PENDING : DITTO_ERR_TIMED_OUT));
        }
    }
    return NULL;
}
static void impatient_queue(void)
{
    ditto_queue_counters found = DITTO_QUEUE_COUNTERS_INIT;
    pthread_t a = thread_of(put_impatiently, (void *)0), b = thread_of(put_impatiently, (void *)1);
    int last[PRODUCERS] = { 0 };
    for (uint32_t taken = 0, wait = 0; taken < PRODUCERS * ITEMS; wait = 1 - wait) {
        ditto_queue_item got;
        ditto_status status = ditto_queue_get(queue, wait, &got);
        EXPECT(ditto_queue_stats(queue, &found) == DITTO_OK && found.gets <= PRODUCERS * ITEMS);
        if (status == DITTO_OK) {
            taken++;
            EXPECT(*(int *)got.item == ++last[got.producer]);
        } else {
            EXPECT(status == (wait == 0 ? DITTO_PENDING : DITTO_ERR_TIMED_OUT));
        }
    }
    join(a);
    join(b);
    EXPECT(ditto_queue_stats(queue, &found) == DITTO_OK && found.puts == PRODUCERS * ITEMS);
    EXPECT(ditto_queue_destroy(queue) == DITTO_OK);
}

const struct scenario queue_scenarios[] = {
    { .name = "queue_of_two_slots", .setup = queue_of_two_slots, .body = all_items },
    { .name = "queue_of_few_bytes", .setup = queue_of_few_bytes, .body = all_items },
    { .name = "closed_queue", .setup = queue_of_two_slots, .body = closed_queue },
    { .name = "closed_queue_without_membarrier",
      .setup = queue_of_two_slots,
      .body = closed_queue,
      .no_membarrier = true },
    { .name = "claimed_tickets", .setup = queue_of_two_payloads, .body = claimed_tickets },
    { .name = "closed_beside_claims", .setup = queue_of_two_payloads, .body = closed_beside_claims },
    { .name = "failing_ticket", .setup = queue_of_two_slots, .body = failing_ticket },
    { .name = "failing_producer", .setup = queue_of_few_bytes, .body = failing_producer },
    { .name = "impatient_queue", .setup = queue_of_two_slots, .body = impatient_queue },
    { 0 },
};
