/* tests/schedules/scenarios/collectives.c - meetings and collectives. */
#include "scenarios.h"

static void three_that_spin(void)
{
    ditto_strategy_options o = options_of(3, FOUR_PUS);
    o.spin_us = 1;
    make_strategy(&o);
}

/* What replica r has done before a barrier is seen by all after it. */
static int before_barrier[4];
static ditto_status meet_twice(ditto_replica *self, void *unused)
{
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    (void)unused;
    for (int round = 1; round <= 2; round++) {
        before_barrier[id] = round;
        EXPECT(ditto_barrier(self, NULL) == DITTO_OK);
        for (uint32_t i = 0; i < n; i++)
            EXPECT(before_barrier[i] == round);
        EXPECT(ditto_barrier(self, NULL) == DITTO_OK);
    }
    return DITTO_OK;
}
static void barriers(void)
{
    run(meet_twice, NULL);
}

/* -- collectives, whose results are compared with those of a plain loop -- */

enum what { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, ALL_TO_ALL, SCAN };
struct call {
    enum what what;
    size_t count;
    bool in_place, started;
};
enum { MOST_COUNT = 16 << 10, MOST = 4 };
static int32_t given[MOST][MOST * MOST_COUNT], found[MOST][MOST * MOST_COUNT];

static int32_t number_of(uint32_t replica, size_t i)
{
    return (int32_t)((replica + 1) * (i % 13 + 1));
}

static size_t given_count(const struct call *c, uint32_t n)
{
    return c->what == REDUCE_SCATTER || c->what == ALL_TO_ALL ? n * c->count : c->count;
}

static size_t found_count(const struct call *c, uint32_t n, uint32_t id)
{
    return c->what == ALL_GATHER || c->what == ALL_TO_ALL ? n * c->count
           : c->what == REDUCE && id != n - 1             ? 0
                                                          : c->count;
}

static int32_t expected(const struct call *c, uint32_t n, uint32_t id, size_t i)
{
    int32_t sum = 0;
    uint32_t last = c->what == SCAN ? id + 1 : n;
    size_t part = i / c->count, rest = i % c->count;
    if (c->what == ALL_GATHER)
        return number_of((uint32_t)part, rest);
    if (c->what == ALL_TO_ALL)
        return number_of((uint32_t)part, id * c->count + rest);
    if (c->what == BROADCAST)
        return number_of(n - 1, i);
    for (uint32_t r = 0; r < last; r++)
        sum += number_of(r, c->what == REDUCE_SCATTER ? id * c->count + i : i);
    return sum;
}

static ditto_status call(ditto_replica *self, const struct call *c, const int32_t *src, int32_t *dst)
{
    uint32_t last = ditto_num_replicas(self) - 1;
    switch (c->what) {
    case ALL_REDUCE:
        return ditto_all_reduce(self, src, dst, c->count, DITTO_I32, DITTO_SUM, NULL);
    case REDUCE_SCATTER:
        return ditto_reduce_scatter(self, src, dst, c->count, NULL, DITTO_I32, DITTO_SUM, NULL);
    case ALL_GATHER:
        return ditto_all_gather(self, src, dst, c->count, NULL, DITTO_I32, NULL);
    case BROADCAST:
        return ditto_broadcast_from_root(self, dst, c->count, DITTO_I32, last, NULL);
    case REDUCE:
        return ditto_reduce_to_root(self, src, dst, c->count, DITTO_I32, DITTO_SUM, last, NULL);
    case ALL_TO_ALL:
        return ditto_all_to_all(self, src, dst, c->count, NULL, DITTO_I32, NULL);
    default:
        return ditto_scan(self, src, dst, c->count, DITTO_I32, DITTO_SUM, NULL);
    }
}

static ditto_status start_and_wait(ditto_replica *self, const struct call *c, const int32_t *src,
                                   int32_t *dst)
{
    ditto_pending pending;
    ditto_status status = c->what == ALL_REDUCE ? ditto_all_reduce_start(self, src, dst, c->count, DITTO_I32,
                                                                         DITTO_SUM, NULL, &pending)
                          : c->what == REDUCE_SCATTER
                              ? ditto_reduce_scatter_start(self, src, dst, c->count, DITTO_I32, DITTO_SUM,
                                                           NULL, &pending)
                          : c->what == ALL_GATHER
                              ? ditto_all_gather_start(self, src, dst, c->count, DITTO_I32, NULL, &pending)
                              : ditto_all_to_all_start(self, src, dst, c->count, DITTO_I32, NULL, &pending);
    return status == DITTO_OK ? ditto_wait(self, &pending, NULL) : status;
}

static ditto_status call_and_compare(ditto_replica *self, void *argument)
{
    const struct call *c = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    bool in_place = c->in_place || c->what == BROADCAST;
    int32_t *src = in_place ? found[id] : given[id], *dst = found[id];
    int rounds = c->count < MOST_COUNT ? 2 : 1;
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < given_count(c, n); i++)
            src[i] = number_of(id, i);
        EXPECT((c->started ? start_and_wait(self, c, src, dst) : call(self, c, src, dst)) == DITTO_OK);
        for (size_t i = 0; i < found_count(c, n, id); i++)
            EXPECT(dst[i] == expected(c, n, id, i));
    }
    return DITTO_OK;
}

static void run_calls(const struct call *calls, size_t count)
{
    for (size_t k = 0; k < count; k++)
        run(call_and_compare, (void *)(uintptr_t)&calls[k]);
}
#define RUN_CALLS(...)                                      \
    do {                                                    \
        static const struct call calls[] = { __VA_ARGS__ }; \
        run_calls(calls, sizeof calls / sizeof calls[0]);   \
    } while (0)

/* 2 elements travel with the arrivals, 300 in mailboxes, and 5000 are read from the sources. */
static void small_all_reduce(void)
{
    RUN_CALLS({ ALL_REDUCE, 2, true, false }, { ALL_REDUCE, 2, false, false });
}
static void middle_all_reduce(void)
{
    RUN_CALLS({ ALL_REDUCE, 300, true, false }, { ALL_REDUCE, 300, false, false });
}
static void large_all_reduce(void)
{
    RUN_CALLS({ ALL_REDUCE, 5000, true, false }, { ALL_REDUCE, 5000, false, false });
}
static void all_reduce_of_64_kib(void)
{
    RUN_CALLS({ ALL_REDUCE, 16 << 10, true, false });
}
static void small_collectives(void)
{
    RUN_CALLS({ REDUCE_SCATTER, 2, false, false }, { ALL_GATHER, 2, false, false },
              { BROADCAST, 2, true, false }, { REDUCE, 2, false, false }, { ALL_TO_ALL, 2, false, false },
              { SCAN, 2, false, false });
}
static void large_collectives(void)
{
    RUN_CALLS({ REDUCE_SCATTER, 700, false, false }, { ALL_GATHER, 2000, false, false },
              { BROADCAST, 2000, true, false }, { REDUCE, 2000, false, false },
              { ALL_TO_ALL, 700, false, false }, { SCAN, 2000, false, false });
}
static void started_operations(void)
{
    RUN_CALLS({ ALL_REDUCE, 4000, false, true }, { ALL_REDUCE, 100, false, true },
              { REDUCE_SCATTER, 100, false, true }, { ALL_GATHER, 100, false, true },
              { ALL_TO_ALL, 100, false, true });
}

/* Seen once under ThreadSanitizer: the time limit of an all-gather after a barrier, by counter, with a caller
 * that waits. */
static void three_by_counter_and_a_caller(void)
{
    ditto_strategy_options o = options_of(3, TWO_PUS);
    o.caller = DITTO_CALLER_WAITS;
    make_strategy(&o);
}
static ditto_status barrier_and_all_gather(ditto_replica *self, void *argument)
{
    EXPECT(ditto_barrier(self, NULL) == DITTO_OK);
    return call_and_compare(self, argument);
}
static void all_gather_after_barrier(void)
{
    static const struct call c = { ALL_GATHER, 2, false, false };
    run(barrier_and_all_gather, (void *)(uintptr_t)&c);
}

const struct scenario collective_scenarios[] = {
    { .name = "barrier_in_rounds", .setup = three, .body = barriers },
    { .name = "barrier_of_spinning", .setup = three_that_spin, .body = barriers },
    { .name = "barrier_by_counter", .setup = three_on_two_pus, .body = barriers },
    { .name = "barrier_of_two", .setup = two, .body = barriers },
    { .name = "small_all_reduce", .setup = three, .body = small_all_reduce },
    { .name = "small_all_reduce_of_two", .setup = two, .body = small_all_reduce },
    { .name = "small_all_reduce_by_counter", .setup = three_on_two_pus, .body = small_all_reduce },
    { .name = "middle_all_reduce", .setup = three, .body = middle_all_reduce },
    { .name = "middle_all_reduce_of_two", .setup = two, .body = middle_all_reduce },
    { .name = "middle_all_reduce_by_counter", .setup = three_on_two_pus, .body = middle_all_reduce },
    { .name = "large_all_reduce", .setup = three, .body = large_all_reduce },
    { .name = "large_all_reduce_of_two", .setup = two, .body = large_all_reduce },
    { .name = "all_reduce_of_64_kib", .setup = three, .body = all_reduce_of_64_kib },
    { .name = "small_collectives", .setup = three, .body = small_collectives },
    { .name = "small_collectives_by_counter", .setup = three_on_two_pus, .body = small_collectives },
    { .name = "large_collectives", .setup = three, .body = large_collectives },
    { .name = "large_collectives_of_two", .setup = two, .body = large_collectives },
    { .name = "started_operations", .setup = three, .body = started_operations },
    { .name = "started_by_counter", .setup = three_on_two_pus, .body = started_operations },
    { .name = "all_gather_after_barrier",
      .setup = three_by_counter_and_a_caller,
      .body = all_gather_after_barrier },
    { 0 },
};
