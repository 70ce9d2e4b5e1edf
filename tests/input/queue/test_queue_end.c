/* tests/input/queue/test_queue_end.c - tests the claims of include/ditto/queue.h about closed queues, queues
 * that have failed, producers that have exited, and items that are left. */
#include "input/queue/queue_threads.h"

#include "support/single_step.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* The consumer waits in an empty queue. Then two producers wait in a full one. */
static void closing_wakes_all_waiting_threads(void **state)
{
    for (uint32_t puts = 0; puts <= 2; puts += 2) {
        uint32_t waiting = puts == 0 ? 1 : puts;
        ditto_queue *queue = make_with(1, 3);
        /* static, because a thread that was not woken may still use it when the test has failed */
        static struct blocked b[2];
        ditto_queue_item got;
        for (uint32_t i = 0; i < waiting; i++)
            b[i] = (struct blocked){ .queue = queue, .puts = puts > 0, .producer = i + 1 };
        if (puts > 0)
            assert_ok(ditto_queue_put(queue, 0, number(5), 0, 0));
        begin_blocked(b, waiting);
        assert_status(ditto_queue_destroy(queue), DITTO_ERR_BUSY);
        assert_string_equal(ditto_last_error()->function, "ditto_queue_destroy");
        assert_ok(ditto_queue_close(queue)); /* one call wakes them all */
        end_blocked(b, waiting);
        assert_ok(ditto_queue_close(queue));
        for (uint32_t i = 0; i < waiting; i++)
            assert_int_equal(b[i].status, puts > 0 ? DITTO_ERR_CLOSED : DITTO_END_OF_INPUT);
        if (puts > 0) {
            assert_ok(ditto_queue_get(queue, 0, &got));
            assert_int_equal(number_of(&got), 5);
        }
        assert_status(ditto_queue_get(queue, DITTO_FOREVER, &got), DITTO_END_OF_INPUT);
        assert_status(ditto_queue_put(queue, 0, NULL, 0, 0), DITTO_ERR_CLOSED);
        assert_ok(ditto_queue_destroy(queue));
    }
}

static void items_claimed_before_closing_are_delivered(void **state)
{
    ditto_queue *queue = make_with(8, 1);
    ditto_queue_item got;
    uint64_t ticket, other;
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

/* Puts until the queue is closed, and counts the successful puts. */
static void *put_until_closed(void *argument)
{
    struct producer *p = argument;
    uint64_t puts = 0;
    while (ditto_queue_put(p->stream->queue, p->id, NULL, 0, DITTO_FOREVER) == DITTO_OK)
        puts++;
    atomic_fetch_add(&p->stream->puts, puts);
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
    for (int trial = test_trials(150); trial > 0; trial--) {
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
        assert_int_equal(gets, atomic_load(&s.puts));
        assert_ok(ditto_queue_destroy(s.queue));
    }
}

#if SINGLE_STEPS
/* A producer is held at an instruction of its put. Then the queue is closed. The consumer's get is held at
 * one of its instructions until the put has ended. */
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

/* Tries one combination of an instruction of put and one of get. Returns false if get has fewer instructions
 * than `get_steps`. */
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
    if (r.got == DITTO_PENDING) /* get saw the ticket of the put, but no content of the slot */
        r.got = ditto_queue_get(r.queue, DITTO_FOREVER, &r.taken);
    assert_int_equal(r.put, r.got == DITTO_OK ? DITTO_OK : DITTO_ERR_CLOSED);
    if (r.got == DITTO_OK) {
        assert_ptr_equal(r.taken.item, &r.item);
        r.got = ditto_queue_get(r.queue, 0, &r.taken);
    }
    assert_int_equal(r.got, DITTO_END_OF_INPUT);
    assert_int_equal(ditto_queue_get(r.queue, 0, &r.taken), DITTO_END_OF_INPUT); /* again */
    assert_ok(ditto_queue_destroy(r.queue));
    *put_was_held = r.put_was_held;
    return get_was_held;
}
#endif

static void no_item_comes_twice_if_closing_races_with_a_put(void **state)
{
#if SINGLE_STEPS
    bool put_was_held = true;
    unsigned long combinations = 0;
    /* A put loads the state before it takes a ticket, and once more after that. More than twenty instructions
     * are between these loads, so every tenth instruction is enough. */
    for (unsigned long put_steps = 1; put_was_held; put_steps += 10)
        for (unsigned long get_steps = 1; race_of_close(put_steps, get_steps, &put_was_held); get_steps++)
            combinations++;
    print_message("%lu combinations of a put's instruction and a get's\n", combinations);
#else
    skip();
#endif
}

static void a_failure_comes_after_all_items_before_it_and_stays(void **state)
{
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
        assert_ok(ditto_queue_close(queue)); /* the failure takes precedence */
        for (int again = 0; again < 3; again++) {
            assert_status(ditto_queue_get(queue, DITTO_FOREVER, &got), DITTO_ERR_IO);
            assert_message(text);
        }
        assert_ok(ditto_queue_destroy(queue));
    }
}

static void a_failure_wakes_producers_that_wait_for_a_slot(void **state)
{
    ditto_queue *queue = make_with(1, 3);
    static struct blocked b[2]; /* static, for the same reason */
    uint64_t ticket;
    for (uint32_t i = 0; i < 2; i++)
        b[i] = (struct blocked){ .queue = queue, .puts = true, .producer = i + 1 };
    assert_ok(ditto_queue_claim(queue, 0, 0, 0, &ticket, NULL));
    begin_blocked(b, 2);
    assert_ok(ditto_queue_fail(queue, 0, ticket, DITTO_ERR_CORRUPT, NULL));
    end_blocked(b, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(b[i].status, DITTO_ERR_CORRUPT);
    assert_ok(ditto_queue_destroy(queue));
}

static void tickets_of_a_producer_that_has_exited_are_marked(void **state)
{
    ditto_queue *queue = make_with(8, 2);
    ditto_queue_item got;
    uint64_t ticket[3];
    assert_ok(ditto_queue_fail(queue, 0, DITTO_ALL_TICKETS, DITTO_ERR_PEER_STOPPED,
                               "it has exited")); /* it holds no ticket */
    assert_ok(ditto_queue_claim(queue, 1, 0, 0, &ticket[0], NULL));
    assert_ok(ditto_queue_claim(queue, 0, 0, 0, &ticket[1], NULL));
    assert_ok(ditto_queue_claim(queue, 0, 0, 0, &ticket[2], NULL));
    assert_ok(ditto_queue_fail(queue, 0, DITTO_ALL_TICKETS, DITTO_ERR_PEER_STOPPED, "it has exited"));
    assert_status(ditto_queue_publish(queue, 0, ticket[1], NULL, 0), DITTO_ERR_CONTEXT);
    assert_status(ditto_queue_get(queue, 0, &got), DITTO_PENDING);
    assert_ok(ditto_queue_publish(queue, 1, ticket[0], number(1), 0));
    assert_ok(ditto_queue_get(queue, 0, &got));
    assert_status(ditto_queue_get(queue, 0, &got), DITTO_ERR_PEER_STOPPED);
    assert_message("producer 0 failed at ticket 1: it has exited");
    assert_ok(ditto_queue_destroy(queue));
}

static void count_drop(void *item, void *argument)
{
    *(uint64_t *)argument += (uint64_t)(uintptr_t)item;
}

static void items_that_are_left_are_dropped_once(void **state)
{
    ditto_queue_item got;
    uint64_t sum = 0, ticket;
    ditto_queue *queue = make(&OPTIONS(queue, .drop = count_drop, .drop_user = &sum));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closing_wakes_all_waiting_threads),
        cmocka_unit_test(items_claimed_before_closing_are_delivered),
        cmocka_unit_test(a_put_that_races_with_closing_is_delivered_or_refused),
        cmocka_unit_test(no_item_comes_twice_if_closing_races_with_a_put),
        cmocka_unit_test(a_failure_comes_after_all_items_before_it_and_stays),
        cmocka_unit_test(a_failure_wakes_producers_that_wait_for_a_slot),
        cmocka_unit_test(tickets_of_a_producer_that_has_exited_are_marked),
        cmocka_unit_test(items_that_are_left_are_dropped_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
