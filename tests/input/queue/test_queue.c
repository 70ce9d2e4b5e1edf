/* tests/input/queue/test_queue.c - tests the claims of include/ditto/queue.h. */
#include "support/single_step.h"

#include <ditto/queue.h>

#include "input/queue/queue.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { MOST_PRODUCERS = 64 };

static ditto_queue *make(const ditto_queue_options *options)
{
    ditto_queue *queue = NULL;
    assert_ok(ditto_queue_create(options, &queue));
    return queue;
}

static ditto_queue *make_with(uint32_t slots, uint32_t producers)
{
    ditto_queue_options options = DITTO_QUEUE_OPTIONS_INIT;
    options.num_slots = slots;
    options.num_producers = producers;
    options.spin_us = 1; /* waits change from spinning to sleeping */
    return make(&options);
}

static void *number(uint64_t n)
{
    return (void *)(uintptr_t)n;
}
static uint64_t number_of(const ditto_queue_item *got)
{
    return (uint64_t)(uintptr_t)got->item;
}

static void rest_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* -- streams: every item comes once, in the order of its producer and of the tickets -- */

struct stream {
    ditto_queue *queue;
    uint32_t producers;
    uint64_t items, max_bytes, seed;
    bool payload, claims;

    /* The bytes for which put or claim has returned and get has not. */
    _Atomic uint64_t outstanding;
    struct report report;
};
struct producer {
    struct stream *stream;
    uint32_t id;
};

static uint64_t bytes_of(const struct stream *s, uint64_t n)
{
    return s->max_bytes != 0 ? 16 + n % (s->max_bytes / 2) : 16;
}

/* Claims a ticket, then publishes the item. Sometimes it publishes late, so that other producers overtake
 * it. */
static ditto_status claim_one(struct stream *s, uint32_t id, uint64_t n, uint64_t *random)
{
    uint64_t ticket;
    void *payload;
    EXPECT(&s->report,
           ditto_queue_claim(s->queue, id, bytes_of(s, n), DITTO_FOREVER, &ticket, &payload) == DITTO_OK);
    EXPECT(&s->report, (payload != NULL) == s->payload);
    if (test_random(random) % 64 == 0)
        sched_yield();
    if (s->payload)
        memcpy(payload, &n, sizeof n);
    EXPECT(&s->report,
           ditto_queue_publish(s->queue, id, ticket, s->payload ? NULL : number(n), 16) == DITTO_OK);
    return DITTO_OK;
}

static ditto_status produce(struct stream *s, uint32_t id)
{
    uint64_t random = s->seed + id;
    for (uint64_t i = 0; i < s->items; i++) {
        uint64_t n = id * s->items + i, data[2] = { n, 0 };
        if (s->claims && test_random(&random) % 2 == 0) {
            DITTO_TRY(claim_one(s, id, n, &random));
            continue;
        }
        /* A try, a timeout of 1 ms, or a wait without limit. */
        uint32_t timeout = (uint32_t)(test_random(&random) % 3);
        timeout = timeout == 2 ? DITTO_FOREVER : timeout;
        ditto_status status;
        while ((status = ditto_queue_put(s->queue, id, s->payload ? (void *)data : number(n), 16, timeout)) ==
                   DITTO_PENDING ||
               status == DITTO_ERR_TIMED_OUT)
            sched_yield();
        EXPECT(&s->report, status == DITTO_OK);
    }
    return DITTO_OK;
}
static void *producer_main(void *argument)
{
    struct producer *p = argument;
    (void)produce(p->stream, p->id);
    return NULL;
}

static void consume(struct stream *s)
{
    static uint64_t next[MOST_PRODUCERS];
    memset(next, 0, sizeof next);
    for (uint64_t i = 0; i < s->items * s->producers; i++) {
        ditto_queue_item got;
        assert_ok(ditto_queue_get(s->queue, 60000, &got));
        uint64_t n = number_of(&got);
        if (s->payload)
            memcpy(&n, got.item, sizeof n);
        assert_int_equal(got.ticket, i);
        assert_int_equal(n / s->items, got.producer);
        assert_int_equal(n % s->items, next[got.producer]++);
        assert_int_equal(got.bytes, 16);
    }
}

static void run_stream(struct stream *s)
{
    pthread_t thread[MOST_PRODUCERS];
    struct producer producer[MOST_PRODUCERS];
    ditto_queue_counters stats = DITTO_QUEUE_COUNTERS_INIT;
    ditto_queue_item got;
    for (uint32_t i = 0; i < s->producers; i++) {
        producer[i] = (struct producer){ s, i };
        assert_int_equal(pthread_create(&thread[i], NULL, producer_main, &producer[i]), 0);
    }
    consume(s);
    for (uint32_t i = 0; i < s->producers; i++)
        pthread_join(thread[i], NULL);
    assert_string_equal(s->report.first_failure, "");
    assert_status(ditto_queue_get(s->queue, 0, &got), DITTO_PENDING);
    assert_ok(ditto_queue_stats(s->queue, &stats));
    assert_int_equal(stats.puts, s->items * s->producers);
    assert_int_equal(stats.gets, stats.puts);
    assert_int_equal(stats.put_bytes, 16 * stats.puts);
    assert_int_equal(stats.got_bytes, stats.put_bytes);
    assert_int_equal(stats.depth, 0);
    assert_ok(ditto_queue_close(s->queue));
    assert_status(ditto_queue_get(s->queue, DITTO_FOREVER, &got), DITTO_END_OF_INPUT);
    assert_ok(ditto_queue_destroy(s->queue));
}

static void each_item_comes_once_in_the_order_of_tickets(void **state)
{
    static const uint32_t producers[] = { 1, 2, 3, 8, 64 }, slots[] = { 1, 2, 3, 64, 1000 };
    (void)state;
    for (size_t p = 0; p < 5; p++)
        for (size_t k = 0; k < 5; k++) {
            struct stream s = { .queue = make_with(slots[k], producers[p]), .producers = producers[p] };
            s.items = (uint64_t)test_trials(4000) / producers[p];
            run_stream(&s);
        }
}

static void any_mixture_of_calls_keeps_the_order(void **state)
{
    uint64_t seed = test_seed(20261122);
    (void)state;
    for (int trial = test_trials(60); trial > 0; trial--) {
        ditto_queue_options options = DITTO_QUEUE_OPTIONS_INIT;
        struct stream s = { .seed = seed, .claims = true };
        options.num_producers = s.producers = 1 + (uint32_t)(test_random(&seed) % 5);
        options.num_slots = 1 + (uint32_t)(test_random(&seed) % 9);
        options.max_bytes = s.max_bytes = test_random(&seed) % 2 * (64 + test_random(&seed) % 200);
        s.payload = test_random(&seed) % 2 == 0;
        options.payload_bytes = s.payload ? 512 : 0;
        options.spin_us = (uint32_t)(test_random(&seed) % 3);
        s.items = 500;
        s.queue = make(&options);
        run_stream(&s);
    }
}

/* -- limits -- */

static void a_try_and_a_timeout_report_the_cause(void **state)
{
    ditto_queue *queue = make_with(2, 1);
    ditto_queue_item got;
    uint64_t ticket;
    (void)state;
    assert_status(ditto_queue_get(queue, 0, &got), DITTO_PENDING);
    assert_status(ditto_queue_get(queue, 20, &got), DITTO_ERR_TIMED_OUT);
    assert_message("ticket 0, which no producer has claimed");
    assert_ok(ditto_queue_claim(queue, 0, 0, 0, &ticket, NULL));
    assert_status(ditto_queue_get(queue, 20, &got), DITTO_ERR_TIMED_OUT);
    assert_message("claimed and not published");
    assert_ok(ditto_queue_put(queue, 0, number(7), 0, 0));
    assert_status(ditto_queue_put(queue, 0, number(8), 0, 0), DITTO_PENDING);
    assert_status(ditto_queue_put(queue, 0, number(8), 0, 20), DITTO_ERR_TIMED_OUT);
    assert_message("producer 0 waited 20 ms");
    assert_ok(ditto_queue_publish(queue, 0, ticket, number(6), 0));
    for (uint64_t expected = 6; expected < 8; expected++) {
        assert_ok(ditto_queue_get(queue, 0, &got));
        assert_int_equal(number_of(&got), expected);
    }
    assert_ok(ditto_queue_destroy(queue));
}

static void the_limit_counts_all_bytes_in_use(void **state)
{
    ditto_queue_options options = DITTO_QUEUE_OPTIONS_INIT;
    ditto_queue_item got;
    uint64_t ticket;
    (void)state;
    options.max_bytes = 100;
    options.num_producers = 2;
    ditto_queue *queue = make(&options);
    assert_status(ditto_queue_put(queue, 0, NULL, 101, 0), DITTO_ERR_RANGE);
    assert_message("never fits");
    assert_ok(ditto_queue_put(queue, 0, number(1), 60, 0));
    assert_status(ditto_queue_put(queue, 1, number(2), 41, 0), DITTO_PENDING);
    assert_ok(ditto_queue_claim(queue, 1, 40, 0, &ticket, NULL));
    assert_status(ditto_queue_put(queue, 0, number(3), 1, 10), DITTO_ERR_TIMED_OUT);
    assert_ok(ditto_queue_put(queue, 0, number(3), 0, 0)); /* an item of 0 bytes always fits */
    assert_status(ditto_queue_publish(queue, 1, ticket, number(2), 41), DITTO_ERR_RANGE);
    assert_ok(ditto_queue_publish(queue, 1, ticket, number(2), 4));
    assert_ok(ditto_queue_get(queue, 0, &got));
    assert_ok(ditto_queue_put(queue, 0, number(4), 60, 0));
    assert_status(ditto_queue_put(queue, 0, number(5), 1, 0), DITTO_PENDING);
    assert_ok(ditto_queue_get(queue, 0, &got));
    assert_int_equal(got.bytes, 4);
    assert_ok(ditto_queue_put(queue, 0, number(5), 40, 0)); /* all claimed bytes have been returned */
    assert_ok(ditto_queue_destroy(queue));
}

/* Each thread claims bytes and publishes them. The sum of the claimed bytes never exceeds max_bytes. */
static void *hold_bytes(void *argument)
{
    struct producer *p = argument;
    struct stream *s = p->stream;
    uint64_t random = p->id, ticket;
    for (uint64_t i = 0; i < s->items; i++) {
        uint64_t bytes = 1 + test_random(&random) % s->max_bytes;
        if (ditto_queue_claim(s->queue, p->id, bytes, DITTO_FOREVER, &ticket, NULL) != DITTO_OK)
            report_failure(&s->report, __FILE__, __LINE__, "claim: %s", ditto_last_error()->message);
        uint64_t before = atomic_fetch_add(&s->outstanding, bytes);
        if (before + bytes > s->max_bytes)
            report_failure(&s->report, __FILE__, __LINE__, "%llu bytes are out",
                           (unsigned long long)(before + bytes));
        atomic_fetch_sub(&s->outstanding, bytes);
        if (ditto_queue_publish(s->queue, p->id, ticket, NULL, bytes) != DITTO_OK)
            report_failure(&s->report, __FILE__, __LINE__, "publish: %s", ditto_last_error()->message);
    }
    return NULL;
}

static void claimed_bytes_never_exceed_the_limit(void **state)
{
    ditto_queue_options options = DITTO_QUEUE_OPTIONS_INIT;
    struct stream s = { .producers = 8, .items = (uint64_t)test_trials(2000), .max_bytes = 1000 };
    pthread_t thread[8];
    struct producer producer[8];
    (void)state;
    options.num_producers = 8;
    options.max_bytes = s.max_bytes;
    options.num_slots = 4;
    s.queue = make(&options);
    for (uint32_t i = 0; i < 8; i++) {
        producer[i] = (struct producer){ &s, i };
        pthread_create(&thread[i], NULL, hold_bytes, &producer[i]);
    }
    for (uint64_t i = 0; i < 8 * s.items; i++) {
        ditto_queue_item got;
        assert_ok(ditto_queue_get(s.queue, 60000, &got));
    }
    for (uint32_t i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
    assert_string_equal(s.report.first_failure, "");
    assert_ok(ditto_queue_destroy(s.queue));
}

/* -- the end -- */

struct blocked {
    ditto_queue *queue;
    bool puts;
    ditto_status status;
};
static void *block(void *argument)
{
    struct blocked *b = argument;
    ditto_queue_item got;
    b->status = b->puts ? ditto_queue_put(b->queue, 1, NULL, 0, DITTO_FOREVER)
                        : ditto_queue_get(b->queue, DITTO_FOREVER, &got);
    return NULL;
}

static void closing_wakes_all_waiting_threads(void **state)
{
    (void)state;
    for (int puts = 0; puts < 2; puts++) {
        struct blocked b = { make_with(1, 2), puts != 0, DITTO_OK };
        ditto_queue_item got;
        pthread_t thread;
        if (puts)
            assert_ok(ditto_queue_put(b.queue, 0, number(5), 0, 0));
        pthread_create(&thread, NULL, block, &b);
        rest_ms(20);
        assert_status(ditto_queue_destroy(b.queue), DITTO_ERR_BUSY);
        assert_string_equal(ditto_last_error()->function, "ditto_queue_destroy");
        assert_ok(ditto_queue_close(b.queue));
        assert_ok(ditto_queue_close(b.queue));
        pthread_join(thread, NULL);
        assert_int_equal(b.status, puts ? DITTO_ERR_CLOSED : DITTO_END_OF_INPUT);
        if (puts) {
            assert_ok(ditto_queue_get(b.queue, 0, &got));
            assert_int_equal(number_of(&got), 5);
        }
        assert_status(ditto_queue_get(b.queue, DITTO_FOREVER, &got), DITTO_END_OF_INPUT);
        assert_status(ditto_queue_put(b.queue, 0, NULL, 0, 0), DITTO_ERR_CLOSED);
        assert_ok(ditto_queue_destroy(b.queue));
    }
}

static void items_claimed_before_closing_are_delivered(void **state)
{
    ditto_queue *queue = make_with(8, 1);
    ditto_queue_item got;
    uint64_t ticket, other;
    (void)state;
    assert_ok(ditto_queue_claim(queue, 0, 0, 0, &ticket, NULL));
    assert_ok(ditto_queue_put(queue, 0, number(2), 0, 0));
    assert_ok(ditto_queue_close(queue));
    assert_status(ditto_queue_claim(queue, 0, 0, DITTO_FOREVER, &other, NULL), DITTO_ERR_CLOSED);
    assert_status(ditto_queue_get(queue, 0, &got), DITTO_PENDING);
    assert_ok(ditto_queue_publish(queue, 0, ticket, number(1), 0));
    for (uint64_t expected = 1; expected < 3; expected++) {
        assert_ok(ditto_queue_get(queue, 0, &got));
        assert_int_equal(number_of(&got), expected);
    }
    assert_status(ditto_queue_get(queue, 0, &got), DITTO_END_OF_INPUT);
    assert_ok(ditto_queue_destroy(queue));
}

/* Puts until the queue is closed, and adds the number of successful puts to `outstanding`. */
static void *put_until_closed(void *argument)
{
    struct producer *p = argument;
    uint64_t puts = 0;
    while (ditto_queue_put(p->stream->queue, p->id, NULL, 0, DITTO_FOREVER) == DITTO_OK)
        puts++;
    atomic_fetch_add(&p->stream->outstanding, puts);
    return NULL;
}
static void *close_soon(void *argument)
{
    struct stream *s = argument;
    for (uint64_t i = s->seed % 60; i > 0; i--)
        sched_yield();
    (void)!ditto_queue_close(s->queue);
    return NULL;
}

static void a_put_that_races_with_closing_is_delivered_or_refused(void **state)
{
    uint64_t seed = test_seed(7);
    (void)state;
    for (int trial = test_trials(300); trial > 0; trial--) {
        struct stream s = { .producers = 1 + (uint32_t)trial % 3, .seed = test_random(&seed) };
        pthread_t thread[4];
        struct producer producer[3];
        uint64_t gets = 0;
        ditto_queue_item got;
        ditto_status status;
        s.queue = make_with(4, s.producers);
        for (uint32_t i = 0; i < s.producers; i++) {
            producer[i] = (struct producer){ &s, i };
            pthread_create(&thread[i], NULL, put_until_closed, &producer[i]);
        }
        pthread_create(&thread[3], NULL, close_soon, &s);
        while ((status = ditto_queue_get(s.queue, DITTO_FOREVER, &got)) == DITTO_OK)
            gets++;
        assert_int_equal(status, DITTO_END_OF_INPUT);
        for (uint32_t i = 0; i < s.producers; i++)
            pthread_join(thread[i], NULL);
        pthread_join(thread[3], NULL);
        assert_int_equal(gets, atomic_load(&s.outstanding));
        assert_ok(ditto_queue_destroy(s.queue));
    }
}

#if SINGLE_STEPS
/* A producer is held at one instruction of its put, the queue is closed, and the put ends at one
 * instruction of the consumer's get. */
struct close_race {
    ditto_queue *queue;
    _Atomic bool held, released, ended;
    unsigned long put_steps;
    bool put_was_held;
    int item;
    ditto_status put, got;
    ditto_queue_item taken;
};
static void hold_put(void *argument)
{
    struct close_race *r = argument;
    atomic_store(&r->held, true);
    while (!atomic_load(&r->released))
        sched_yield();
}
static void put_once(void *argument)
{
    struct close_race *r = argument;
    r->put = ditto_queue_put(r->queue, 0, &r->item, 1, DITTO_FOREVER);
}
static void *put_held(void *argument)
{
    struct close_race *r = argument;
    r->put_was_held = call_and_hold(r->put_steps, put_once, hold_put, r);
    atomic_store(&r->ended, true);
    return NULL;
}
static void try_to_get(void *argument)
{
    struct close_race *r = argument;
    r->got = ditto_queue_get(r->queue, 0, &r->taken);
}
static void end_put(void *argument)
{
    struct close_race *r = argument;
    atomic_store(&r->released, true);
    while (!atomic_load(&r->ended))
        sched_yield();
}

/* Returns false if get has fewer instructions than `get_steps`. */
static bool race_of_close(unsigned long put_steps, unsigned long get_steps, bool *put_was_held)
{
    struct close_race r = { .queue = make_with(1, 2), .put_steps = put_steps };
    int before = 0;
    pthread_t thread;
    assert_ok(ditto_queue_put(r.queue, 1, &before, 1, 0));
    assert_ok(ditto_queue_get(r.queue, 0, &r.taken)); /* the only slot still contains this item */
    assert_int_equal(pthread_create(&thread, NULL, put_held, &r), 0);
    while (!atomic_load(&r.held) && !atomic_load(&r.ended))
        sched_yield();
    assert_ok(ditto_queue_close(r.queue));
    bool get_was_held = call_and_hold(get_steps, try_to_get, end_put, &r);
    end_put(&r);
    pthread_join(thread, NULL);
    if (r.got == DITTO_PENDING) /* the put held a ticket */
        r.got = ditto_queue_get(r.queue, DITTO_FOREVER, &r.taken);
    assert_int_equal(r.put, r.got == DITTO_OK ? DITTO_OK : DITTO_ERR_CLOSED);
    if (r.got == DITTO_OK) {
        assert_ptr_equal(r.taken.item, &r.item);
        r.got = ditto_queue_get(r.queue, 0, &r.taken);
    }
    assert_int_equal(r.got, DITTO_END_OF_INPUT);
    assert_int_equal(ditto_queue_get(r.queue, 0, &r.taken), DITTO_END_OF_INPUT); /* every time */
    assert_ok(ditto_queue_destroy(r.queue));
    *put_was_held = r.put_was_held;
    return get_was_held;
}
#endif

static void no_item_comes_twice_if_closing_races_with_a_put(void **state)
{
    (void)state;
#if SINGLE_STEPS
    bool put_was_held = true;
    unsigned long combinations = 0;
    /* A put has about twenty instructions between its load of the state and the load behind its ticket. */
    for (unsigned long put_steps = 1; put_was_held; put_steps += 5)
        for (unsigned long get_steps = 1; race_of_close(put_steps, get_steps, &put_was_held); get_steps++)
            combinations++;
    print_message("%lu combinations of a put's instruction and a get's\n", combinations);
#else
    skip();
#endif
}

static void a_failure_comes_after_all_before_it_and_stays(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < 6; k++) {
        ditto_queue *queue = make_with(8, 3);
        ditto_queue_item got;
        uint64_t ticket[6];
        char text[64];
        for (uint32_t i = 0; i < 6; i++)
            assert_ok(ditto_queue_claim(queue, i % 3, 0, 0, &ticket[i], NULL));
        assert_ok(ditto_queue_fail(queue, 5 % 3, ticket[5], DITTO_ERR_IO,
                                   k == 5 ? "no such place" : "a later one"));
        for (uint32_t i = 5; i-- > 0;)
            if (i != k)
                assert_ok(ditto_queue_publish(queue, i % 3, ticket[i], number(i), 0));
        if (k != 5)
            assert_ok(ditto_queue_fail(queue, (uint32_t)k % 3, ticket[k], DITTO_ERR_IO, "no such place"));
        snprintf(text, sizeof text, "producer %u failed at ticket %u: no such place", (unsigned)k % 3,
                 (unsigned)k);
        assert_status(ditto_queue_put(queue, 0, NULL, 0, DITTO_FOREVER), DITTO_ERR_IO);
        assert_message(text);
        for (uint64_t i = 0; i < k; i++) {
            assert_ok(ditto_queue_get(queue, 0, &got));
            assert_int_equal(number_of(&got), i);
        }
        assert_ok(ditto_queue_close(queue)); /* has no effect */
        for (int again = 0; again < 3; again++) {
            assert_status(ditto_queue_get(queue, DITTO_FOREVER, &got), DITTO_ERR_IO);
            assert_message(text);
        }
        assert_ok(ditto_queue_destroy(queue));
    }
}

static void a_failure_wakes_producers_that_wait_for_a_slot(void **state)
{
    struct blocked b = { make_with(1, 2), true, DITTO_OK };
    pthread_t thread;
    uint64_t ticket;
    (void)state;
    assert_ok(ditto_queue_claim(b.queue, 0, 0, 0, &ticket, NULL));
    pthread_create(&thread, NULL, block, &b);
    rest_ms(20);
    assert_ok(ditto_queue_fail(b.queue, 0, ticket, DITTO_ERR_CORRUPT, NULL));
    pthread_join(thread, NULL);
    assert_int_equal(b.status, DITTO_ERR_CORRUPT);
    assert_ok(ditto_queue_destroy(b.queue));
}

static void tickets_of_a_producer_that_has_exited_are_marked(void **state)
{
    ditto_queue *queue = make_with(8, 2);
    ditto_queue_item got;
    uint64_t ticket[3];
    (void)state;
    assert_ok(ditto_queue_abandon(queue, 0)); /* it holds no ticket */
    assert_ok(ditto_queue_claim(queue, 1, 0, 0, &ticket[0], NULL));
    assert_ok(ditto_queue_claim(queue, 0, 0, 0, &ticket[1], NULL));
    assert_ok(ditto_queue_claim(queue, 0, 0, 0, &ticket[2], NULL));
    assert_ok(ditto_queue_abandon(queue, 0));
    assert_status(ditto_queue_publish(queue, 0, ticket[1], NULL, 0), DITTO_ERR_CONTEXT);
    assert_status(ditto_queue_get(queue, 0, &got), DITTO_PENDING);
    assert_ok(ditto_queue_publish(queue, 1, ticket[0], number(1), 0));
    assert_ok(ditto_queue_get(queue, 0, &got));
    assert_status(ditto_queue_get(queue, 0, &got), DITTO_ERR_PEER_STOPPED);
    assert_message("producer 0 failed at ticket 1: it exited");
    assert_ok(ditto_queue_destroy(queue));
}

static void count_drop(void *item, void *argument)
{
    *(uint64_t *)argument += (uint64_t)(uintptr_t)item;
}

static void items_that_are_left_are_dropped_once(void **state)
{
    ditto_queue_options options = DITTO_QUEUE_OPTIONS_INIT;
    ditto_queue_item got;
    uint64_t sum = 0, ticket;
    (void)state;
    options.drop = count_drop;
    options.drop_user = &sum;
    ditto_queue *queue = make(&options);
    assert_ok(ditto_queue_put(queue, 0, number(1), 0, 0));
    assert_ok(ditto_queue_put(queue, 0, number(10), 0, 0));
    assert_ok(ditto_queue_claim(queue, 0, 0, 0, &ticket, NULL)); /* never published */
    assert_ok(ditto_queue_put(queue, 0, number(100), 0, 0));
    assert_ok(ditto_queue_claim(queue, 0, 0, 0, &ticket, NULL));
    assert_ok(ditto_queue_fail(queue, 0, ticket, DITTO_ERR_USER, "enough"));
    assert_ok(ditto_queue_get(queue, 0, &got));
    assert_ok(ditto_queue_destroy(queue));
    assert_int_equal(sum, 110);
    assert_ok(ditto_queue_destroy(NULL));
}

static void the_consumer_owns_the_payload_until_its_next_get(void **state)
{
    ditto_queue_options options = DITTO_QUEUE_OPTIONS_INIT;
    ditto_queue_item got;
    uint64_t ticket;
    void *payload;
    (void)state;
    options.payload_bytes = 100;
    options.num_slots = 2;
    options.max_bytes = 200;
    ditto_queue *queue = make(&options);
    assert_ok(ditto_queue_put(queue, 0, "first", 6, 0));
    assert_ok(ditto_queue_claim(queue, 0, 100, 0, &ticket, &payload));
    assert_int_equal((uintptr_t)payload % 128, 0);
    memset(payload, 7, 100);
    assert_ok(ditto_queue_publish(queue, 0, ticket, NULL, 100));
    assert_ok(ditto_queue_get(queue, 0, &got));
    assert_string_equal(got.item, "first");
    assert_status(ditto_queue_put(queue, 0, "third", 6, 0), DITTO_PENDING); /* the consumer holds the slot */
    assert_ok(ditto_queue_get(queue, 0, &got));
    assert_ptr_equal(got.item, payload);
    assert_ok(ditto_queue_put(queue, 0, "third", 6, 0));
    assert_status(ditto_queue_put(queue, 0, NULL, 6, 0), DITTO_ERR_INVALID);
    assert_status(ditto_queue_put(queue, 0, payload, 101, 0), DITTO_ERR_RANGE);
    assert_ok(ditto_queue_get(queue, 0, &got));
    assert_string_equal(got.item, "third");
    assert_status(ditto_queue_get(queue, 0, &got), DITTO_PENDING); /* this returns the slot */
    assert_ok(ditto_queue_claim(queue, 0, 0, 0, &ticket, NULL));
    assert_status(ditto_queue_publish(queue, 0, ticket, payload, 0), DITTO_ERR_INVALID);
    assert_ok(ditto_queue_destroy(queue)); /* a ticket is still claimed */
}

static void waits_are_counted_on_both_sides(void **state)
{
    struct blocked b = { make_with(1, 2), true, DITTO_OK };
    ditto_queue_counters stats = DITTO_QUEUE_COUNTERS_INIT;
    ditto_queue_item got;
    pthread_t thread;
    (void)state;
    assert_status(ditto_queue_get(b.queue, 20, &got), DITTO_ERR_TIMED_OUT);
    assert_ok(ditto_queue_put(b.queue, 0, NULL, 3, 0));
    pthread_create(&thread, NULL, block, &b);
    rest_ms(50);
    assert_ok(ditto_queue_stats(b.queue, &stats));
    assert_int_equal(stats.depth, 1);
    assert_ok(ditto_queue_get(b.queue, 0, &got));
    pthread_join(thread, NULL);
    assert_ok(ditto_queue_stats(b.queue, &stats));
    assert_int_equal(stats.get_waits, 1);
    assert_true(stats.get_wait_ns >= 20000000u);
    assert_int_equal(stats.put_waits, 1);
    assert_true(stats.put_wait_ns >= 1000000u);
    assert_int_equal(stats.puts, 2);
    assert_int_equal(stats.got_bytes, 3);
    assert_ok(ditto_queue_destroy(b.queue));
}

/* -- arguments -- */

static void refused(ditto_queue_options options, ditto_status status, const char *text)
{
    ditto_queue *queue = NULL;
    assert_status(ditto_queue_create(&options, &queue), status);
    assert_message(text);
    assert_null(queue);
}

static void wrong_options_are_refused(void **state)
{
    const ditto_queue_options init = DITTO_QUEUE_OPTIONS_INIT;
    ditto_queue_options o;
    ditto_queue *queue;
    (void)state;
    assert_status(ditto_queue_create(NULL, NULL), DITTO_ERR_INVALID);
    o = init, o.struct_size = 0;
    refused(o, DITTO_ERR_INVALID, "struct_size");
    o = init, o.node = 1;
    refused(o, DITTO_ERR_INVALID, "but has_node is 0");
    o = init, o.has_node = 1, o.node = 100000;
    refused(o, DITTO_ERR_RANGE, "NUMA node 100000");
    o = init, o.num_slots = DITTO_MAX_QUEUE_SLOTS + 1;
    refused(o, DITTO_ERR_RANGE, "slots");
    o = init, o.num_producers = DITTO_MAX_QUEUE_PRODUCERS + 1;
    refused(o, DITTO_ERR_RANGE, "producers");
    o = init, o.payload_bytes = UINT64_MAX / 2;
    refused(o, DITTO_ERR_RANGE, "size_t");
    o = init, o.payload_bytes = UINT64_MAX;
    refused(o, DITTO_ERR_RANGE, "size_t");
    o = init, o.has_node = 1, o.node = 0;
    assert_ok(ditto_queue_create(&o, &queue));
    assert_ok(ditto_queue_destroy(queue));
}

static void an_explicit_spin_time_of_0_us_means_no_spinning(void **state)
{
    ditto_queue_options options = DITTO_QUEUE_OPTIONS_INIT;
    (void)state;
    options.has_spin_us = 1; /* neither spins nor yields */
    ditto_queue *queue = make(&options);
    assert_true(queue->wait_policy.spin_ns == 0 && queue->wait_policy.yield_ns == 0);
    assert_ok(ditto_queue_destroy(queue));
    options.spin_us = 3;
    queue = make(&options);
    assert_true(queue->wait_policy.spin_ns == 3000);
    assert_ok(ditto_queue_destroy(queue));
    options = (ditto_queue_options)DITTO_QUEUE_OPTIONS_INIT; /* the default */
    queue = make(&options);
    assert_true(queue->wait_policy.spin_ns != 0 || queue->wait_policy.yield_ns != 0);
    assert_ok(ditto_queue_destroy(queue));
}

static void wrong_arguments_are_refused(void **state)
{
    ditto_queue *queue = make_with(2, 2);
    ditto_queue_item got;
    ditto_queue_counters stats = DITTO_QUEUE_COUNTERS_INIT;
    uint64_t ticket;
    (void)state;
    assert_status(ditto_queue_put(NULL, 0, NULL, 0, 0), DITTO_ERR_INVALID);
    assert_status(ditto_queue_claim(NULL, 0, 0, 0, &ticket, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_queue_claim(queue, 0, 0, 0, NULL, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_queue_publish(NULL, 0, 0, NULL, 0), DITTO_ERR_INVALID);
    assert_status(ditto_queue_fail(NULL, 0, 0, DITTO_ERR_IO, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_queue_abandon(NULL, 0), DITTO_ERR_INVALID);
    assert_status(ditto_queue_get(NULL, 0, &got), DITTO_ERR_INVALID);
    assert_status(ditto_queue_get(queue, 0, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_queue_close(NULL), DITTO_ERR_INVALID);
    assert_status(ditto_queue_stats(NULL, &stats), DITTO_ERR_INVALID);
    assert_status(ditto_queue_stats(queue, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_queue_put(queue, 2, NULL, 0, 0), DITTO_ERR_RANGE);
    assert_message("producer 2 of 2");
    assert_status(ditto_queue_claim(queue, 2, 0, 0, &ticket, NULL), DITTO_ERR_RANGE);
    assert_status(ditto_queue_publish(queue, 2, 0, NULL, 0), DITTO_ERR_RANGE);
    assert_status(ditto_queue_fail(queue, 2, 0, DITTO_ERR_IO, NULL), DITTO_ERR_RANGE);
    assert_status(ditto_queue_abandon(queue, 2), DITTO_ERR_RANGE);
    assert_status(ditto_queue_publish(queue, 0, 0, NULL, 0), DITTO_ERR_CONTEXT);
    assert_message("does not hold ticket 0");
    assert_ok(ditto_queue_claim(queue, 0, 0, 0, &ticket, NULL));
    assert_status(ditto_queue_publish(queue, 1, ticket, NULL, 0), DITTO_ERR_CONTEXT);
    assert_status(ditto_queue_publish(queue, 0, ticket + 2, NULL, 0), DITTO_ERR_CONTEXT);
    assert_status(ditto_queue_fail(queue, 1, ticket, DITTO_ERR_IO, NULL), DITTO_ERR_CONTEXT);
    assert_status(ditto_queue_fail(queue, 0, ticket, DITTO_PENDING, NULL), DITTO_ERR_INVALID);
    assert_ok(ditto_queue_publish(queue, 0, ticket, NULL, 0));
    assert_status(ditto_queue_publish(queue, 0, ticket, NULL, 0), DITTO_ERR_CONTEXT);
    assert_ok(ditto_queue_destroy(queue));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_comes_once_in_the_order_of_tickets),
        cmocka_unit_test(any_mixture_of_calls_keeps_the_order),
        cmocka_unit_test(a_try_and_a_timeout_report_the_cause),
        cmocka_unit_test(the_limit_counts_all_bytes_in_use),
        cmocka_unit_test(claimed_bytes_never_exceed_the_limit),
        cmocka_unit_test(closing_wakes_all_waiting_threads),
        cmocka_unit_test(items_claimed_before_closing_are_delivered),
        cmocka_unit_test(a_put_that_races_with_closing_is_delivered_or_refused),
        cmocka_unit_test(no_item_comes_twice_if_closing_races_with_a_put),
        cmocka_unit_test(a_failure_comes_after_all_before_it_and_stays),
        cmocka_unit_test(a_failure_wakes_producers_that_wait_for_a_slot),
        cmocka_unit_test(tickets_of_a_producer_that_has_exited_are_marked),
        cmocka_unit_test(items_that_are_left_are_dropped_once),
        cmocka_unit_test(the_consumer_owns_the_payload_until_its_next_get),
        cmocka_unit_test(waits_are_counted_on_both_sides),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(an_explicit_spin_time_of_0_us_means_no_spinning),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
