/* tests/input/queue/test_queue.c - tests the claims of include/ditto/queue.h about the order of items, calls
 * that do not wait, limits, payloads, statistics, options and arguments. */
#include "input/queue/queue_threads.h"

#include "input/queue/queue.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { MOST_PRODUCERS = 64 };

/* -- streams of items -- */

static uint64_t bytes_of(const struct stream *s, uint64_t n)
{
    return s->max_bytes != 0 ? 16 + n % (s->max_bytes / 2) : 16;
}

/* Claims a ticket, then publishes the item. Sometimes it yields in between, so that other producers can
 * publish later tickets first. */
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
    for (int trial = test_trials(60); trial > 0; trial--) {
        struct stream s = { .seed = seed, .claims = true };
        ditto_queue_options options = OPTIONS(
            queue, .num_producers = s.producers = 1 + (uint32_t)(test_random(&seed) % 5),
            .num_slots = 1 + (uint32_t)(test_random(&seed) % 9),
            .max_bytes = s.max_bytes = test_random(&seed) % 2 * (64 + test_random(&seed) % 200));
        s.payload = test_random(&seed) % 2 == 0;
        options.payload_bytes = s.payload ? 512 : 0;
        options.spin_us = (uint32_t)(test_random(&seed) % 3);
        s.items = 500;
        s.queue = make(&options);
        run_stream(&s);
    }
}

/* -- limits -- */

static void a_try_returns_pending_and_a_timeout_names_the_cause(void **state)
{
    ditto_queue *queue = make_with(2, 1);
    ditto_queue_item got;
    uint64_t ticket;
    assert_status(ditto_queue_get(queue, 0, &got), DITTO_PENDING);
    assert_status(ditto_queue_get(queue, 20, &got), DITTO_ERR_TIMED_OUT);
    assert_message("ticket 0, which no producer has claimed");
    assert_ok(ditto_queue_claim(queue, 0, 0, 0, &ticket, NULL));
    assert_status(ditto_queue_get(queue, 20, &got), DITTO_ERR_TIMED_OUT);
    assert_message("claimed but not published");
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
    ditto_queue_item got;
    uint64_t ticket;
    ditto_queue *queue = make(&OPTIONS(queue, .max_bytes = 100, .num_producers = 2));
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
    assert_ok(ditto_queue_put(queue, 0, number(5), 40, 0)); /* all 40 claimed bytes are free again */
    assert_ok(ditto_queue_destroy(queue));
    queue = make(&OPTIONS(queue, .max_bytes = UINT64_MAX - 1));
    assert_ok(ditto_queue_put(queue, 0, queue, UINT64_MAX - 1, 0));
    assert_status(ditto_queue_put(queue, 0, queue, 10, 0), DITTO_PENDING); /* the sum exceeds 64 bits */
    assert_ok(ditto_queue_get(queue, 0, &got));
    assert_ok(ditto_queue_put(queue, 0, queue, 10, 0));
    assert_ok(ditto_queue_destroy(queue));
}

/* Claims bytes and publishes them, again and again. Records a failure if the claimed bytes of all threads
 * together exceed max_bytes. */
static void *hold_bytes(void *argument)
{
    struct producer *p = argument;
    struct stream *s = p->stream;
    uint64_t random = p->id, ticket;
    for (uint64_t i = 0; i < s->items; i++) {
        uint64_t bytes = 1 + test_random(&random) % s->max_bytes;
        if (ditto_queue_claim(s->queue, p->id, bytes, DITTO_FOREVER, &ticket, NULL) != DITTO_OK)
            report_failure(&s->report, __FILE__, __LINE__, "claim: %s", ditto_last_error()->message);
        uint64_t before = atomic_fetch_add(&s->claimed_bytes, bytes);
        if (before + bytes > s->max_bytes)
            report_failure(&s->report, __FILE__, __LINE__, "%llu bytes are claimed",
                           (unsigned long long)(before + bytes));
        atomic_fetch_sub(&s->claimed_bytes, bytes);
        if (ditto_queue_publish(s->queue, p->id, ticket, NULL, bytes) != DITTO_OK)
            report_failure(&s->report, __FILE__, __LINE__, "publish: %s", ditto_last_error()->message);
    }
    return NULL;
}

static void claimed_bytes_never_exceed_the_limit(void **state)
{
    struct stream s = { .producers = 8, .items = (uint64_t)test_trials(2000), .max_bytes = 1000 };
    pthread_t thread[8];
    struct producer producer[8];
    s.queue = make(&OPTIONS(queue, .num_producers = 8, .max_bytes = s.max_bytes, .num_slots = 4));
    for (uint32_t i = 0; i < 8; i++) {
        producer[i] = (struct producer){ &s, i };
        assert_int_equal(pthread_create(&thread[i], NULL, hold_bytes, &producer[i]), 0);
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

/* -- payloads and counters -- */

static void the_consumer_owns_the_payload_until_its_next_get(void **state)
{
    ditto_queue_item got;
    uint64_t ticket;
    void *payload;
    ditto_queue *queue = make(&OPTIONS(queue, .payload_bytes = 100, .num_slots = 2, .max_bytes = 200));
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
    struct blocked b = { .queue = make_with(1, 2), .puts = true, .producer = 1 };
    ditto_queue_counters stats = DITTO_QUEUE_COUNTERS_INIT;
    ditto_queue_item got;
    assert_status(ditto_queue_get(b.queue, 20, &got), DITTO_ERR_TIMED_OUT);
    assert_ok(ditto_queue_put(b.queue, 0, NULL, 3, 0));
    begin_blocked(&b, 1);
    sleep_ms(5);
    assert_ok(ditto_queue_stats(b.queue, &stats));
    assert_int_equal(stats.depth, 1);
    assert_ok(ditto_queue_get(b.queue, 0, &got));
    end_blocked(&b, 1);
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

static void refuse(ditto_queue_options options, ditto_status status, const char *text)
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
    assert_status(ditto_queue_create(NULL, NULL), DITTO_ERR_INVALID);
    o = init, o.struct_size = 0;
    refuse(o, DITTO_ERR_INVALID, "struct_size");
    o = init, o.node = 1;
    refuse(o, DITTO_ERR_INVALID, "but has_node is 0");
    o = init, o.has_node = 1, o.node = 100000;
    refuse(o, DITTO_ERR_RANGE, "NUMA node 100000");
    o = init, o.num_slots = DITTO_MAX_QUEUE_SLOTS + 1;
    refuse(o, DITTO_ERR_RANGE, "slots");
    o = init, o.num_producers = DITTO_MAX_QUEUE_PRODUCERS + 1;
    refuse(o, DITTO_ERR_RANGE, "producers");
    o = init, o.payload_bytes = UINT64_MAX / 2;
    refuse(o, DITTO_ERR_RANGE, "size_t");
    o = init, o.payload_bytes = UINT64_MAX;
    refuse(o, DITTO_ERR_RANGE, "size_t");
    o = init, o.has_node = 1, o.node = 0;
    assert_ok(ditto_queue_create(&o, &queue));
    assert_ok(ditto_queue_destroy(queue));
}

static void an_explicit_spin_time_of_0_us_means_no_spinning(void **state)
{
    ditto_queue_options options = OPTIONS(queue, .has_spin_us = 1);
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
    assert_status(ditto_queue_put(NULL, 0, NULL, 0, 0), DITTO_ERR_INVALID);
    assert_status(ditto_queue_claim(NULL, 0, 0, 0, &ticket, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_queue_claim(queue, 0, 0, 0, NULL, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_queue_publish(NULL, 0, 0, NULL, 0), DITTO_ERR_INVALID);
    assert_status(ditto_queue_fail(NULL, 0, 0, DITTO_ERR_IO, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_queue_fail(NULL, 0, DITTO_ALL_TICKETS, DITTO_ERR_PEER_STOPPED, "it has exited"),
                  DITTO_ERR_INVALID);
    assert_status(ditto_queue_get(NULL, 0, &got), DITTO_ERR_INVALID);
    assert_status(ditto_queue_get(queue, 0, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_queue_close(NULL), DITTO_ERR_INVALID);
    assert_status(ditto_queue_stats(NULL, &stats), DITTO_ERR_INVALID);
    assert_status(ditto_queue_stats(queue, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_queue_put(queue, 2, NULL, 0, 0), DITTO_ERR_RANGE);
    assert_message("producer is 2, but the queue has 2 producers");
    assert_status(ditto_queue_claim(queue, 2, 0, 0, &ticket, NULL), DITTO_ERR_RANGE);
    assert_status(ditto_queue_publish(queue, 2, 0, NULL, 0), DITTO_ERR_RANGE);
    assert_status(ditto_queue_fail(queue, 2, 0, DITTO_ERR_IO, NULL), DITTO_ERR_RANGE);
    assert_status(ditto_queue_fail(queue, 2, DITTO_ALL_TICKETS, DITTO_ERR_PEER_STOPPED, "it has exited"),
                  DITTO_ERR_RANGE);
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
        cmocka_unit_test(a_try_returns_pending_and_a_timeout_names_the_cause),
        cmocka_unit_test(the_limit_counts_all_bytes_in_use),
        cmocka_unit_test(claimed_bytes_never_exceed_the_limit),
        cmocka_unit_test(the_consumer_owns_the_payload_until_its_next_get),
        cmocka_unit_test(waits_are_counted_on_both_sides),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(an_explicit_spin_time_of_0_us_means_no_spinning),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
