/* tests/schedules/scenarios/collectives.c - meetings, collectives and their algorithms. */
#include "scenarios.h"

#include <ditto/exchange.h>
#include <ditto/scan.h>
#include <ditto/slices.h>
#include <ditto/tuning.h>

static void three_that_spin(void)
{
    ditto_strategy_options o = options_of(3, FOUR_PUS);
    o.spin_us = 1;
    make_strategy(&o);
}

static void three_that_adapt(void)
{
    ditto_strategy_options o = options_of(3, FOUR_PUS);
    o.has_spin_us = 0;
    make_strategy(&o);
}

/* After a barrier all see everything that a replica has done before it. */
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

enum what {
    ALL_REDUCE,
    LIST,    /* an all-reduce of two parts */
    THROUGH, /* an all-reduce through a function that doubles it */
    REDUCE_SCATTER,
    ALL_GATHER,
    BROADCAST,
    REDUCE,
    GATHER,
    SCATTER,
    ALL_TO_ALL,
    SCAN,
    EXCLUSIVE_SCAN,
    CIRCLE, /* in a circle: dst begins with what the next replica gives, and the one before gives the rest */
    BLOCK_SUM
};
struct call {
    enum what what;
    size_t count;
    bool in_place, started;
};
enum { MOST_COUNT = 16 << 10, MOST = 4 };
static int32_t given[MOST][MOST * MOST_COUNT], found[MOST][MOST * MOST_COUNT];

/* Each call has other numbers, so that one cannot find the results of the one before. */
static _Thread_local int32_t salt;
static int32_t number_of(uint32_t replica, size_t i)
{
    return (int32_t)((replica + 1) * (i % 13 + 1)) + salt;
}

static size_t given_count(const struct call *c, uint32_t n)
{
    return c->what == REDUCE_SCATTER || c->what == ALL_TO_ALL || c->what == SCATTER ? n * c->count : c->count;
}

static size_t found_count(const struct call *c, uint32_t n, uint32_t id)
{
    switch (c->what) {
    case ALL_GATHER:
    case ALL_TO_ALL:
        return n * c->count;
    case GATHER:
        return id == n - 1 ? n * c->count : 0;
    case REDUCE:
        return id == n - 1 ? c->count : 0;
    case EXCLUSIVE_SCAN:
        return id > 0 ? c->count : 0;
    case CIRCLE:
        return 2 * c->count;
    case BLOCK_SUM:
        return 1;
    default:
        return c->count;
    }
}

/* The sum of element i over replicas 0 to end - 1. */
static int32_t sum_of(uint32_t end, size_t i)
{
    int32_t sum = 0;
    for (uint32_t r = 0; r < end; r++)
        sum += number_of(r, i);
    return sum;
}

static int32_t expected(const struct call *c, uint32_t n, uint32_t id, size_t i)
{
    size_t part = i / c->count, rest = i % c->count;
    int32_t sum = 0;
    switch (c->what) {
    case ALL_GATHER:
    case GATHER:
        return number_of((uint32_t)part, rest);
    case ALL_TO_ALL:
        return number_of((uint32_t)part, id * c->count + rest);
    case BROADCAST:
        return number_of(n - 1, i);
    case SCATTER:
        return number_of(n - 1, id * c->count + i);
    case CIRCLE:
        return number_of((id + (part == 0 ? 1 : n - 1)) % n, rest);
    case SCAN:
        return sum_of(id + 1, i);
    case EXCLUSIVE_SCAN:
        return sum_of(id, i);
    case REDUCE_SCATTER:
        return sum_of(n, id * c->count + i);
    case THROUGH:
        return 2 * sum_of(n, i);
    case BLOCK_SUM:
        for (size_t k = 0; k < c->count; k++)
            sum += sum_of(n, k);
        return sum;
    default:
        return sum_of(n, i);
    }
}

static ditto_status double_all(void *buffer, size_t count, ditto_dtype dtype, void *user)
{
    (void)dtype, (void)user;
    for (size_t i = 0; i < count; i++)
        ((int32_t *)buffer)[i] *= 2;
    return DITTO_OK;
}

static ditto_status exchange(ditto_replica *self, const int32_t *src, int32_t *dst, size_t count)
{
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self), before = (id + n - 1) % n;
    ditto_exchange_part parts[] = {
        { (id + 1) % n, id, src, dst, count, count, DITTO_I32 },
        { before, before, src, dst + count, count, count, DITTO_I32 },
    };
    return ditto_exchange(self, parts, 2, NULL);
}

static ditto_status call(ditto_replica *self, const struct call *c, const int32_t *src, int32_t *dst)
{
    uint32_t last = ditto_num_replicas(self) - 1;
    size_t count = c->count, half = count / 2;
    const ditto_list_item items[] = { { src, dst, half, DITTO_I32, NULL },
                                      { src + half, dst + half, count - half, DITTO_I32, NULL } };
    switch (c->what) {
    case ALL_REDUCE:
        return ditto_all_reduce(self, src, dst, count, DITTO_I32, DITTO_SUM, NULL);
    case LIST:
        return ditto_all_reduce_list(self, items, 2, DITTO_SUM, NULL);
    case THROUGH:
        return ditto_all_reduce_through(self, src, dst, count, DITTO_I32, DITTO_SUM, double_all, NULL, NULL);
    case REDUCE_SCATTER:
        return ditto_reduce_scatter(self, src, dst, count, NULL, DITTO_I32, DITTO_SUM, NULL);
    case ALL_GATHER:
        return ditto_all_gather(self, src, dst, count, NULL, DITTO_I32, NULL);
    case BROADCAST:
        return ditto_broadcast_from_root(self, dst, count, DITTO_I32, last, NULL);
    case REDUCE:
        return ditto_reduce_to_root(self, src, dst, count, DITTO_I32, DITTO_SUM, last, NULL);
    case GATHER:
        return ditto_gather_to_root(self, src, dst, count, NULL, NULL, DITTO_I32, last, NULL);
    case SCATTER:
        return ditto_scatter_from_root(self, src, dst, count, NULL, NULL, DITTO_I32, last, NULL);
    case ALL_TO_ALL:
        return ditto_all_to_all(self, src, dst, count, NULL, DITTO_I32, NULL);
    case CIRCLE:
        return exchange(self, src, dst, count);
    case BLOCK_SUM:
        return ditto_block_sum(self, src, dst, count, DITTO_I32, NULL);
    case EXCLUSIVE_SCAN:
        return ditto_scan_exclusive(self, src, dst, count, DITTO_I32, DITTO_SUM, NULL);
    default:
        return ditto_scan(self, src, dst, count, DITTO_I32, DITTO_SUM, NULL);
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
        salt++;
        for (size_t i = 0; i < found_count(c, n, id); i++)
            dst[i] = -1;
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

static void more_small_collectives(void)
{
    RUN_CALLS({ LIST, 4, true, false }, { THROUGH, 2, false, false }, { GATHER, 2, false, false },
              { SCATTER, 2, false, false }, { EXCLUSIVE_SCAN, 2, false, false }, { CIRCLE, 2, false, false },
              { BLOCK_SUM, 700, false, false });
}
static void more_large_collectives(void)
{
    RUN_CALLS({ LIST, 3000, true, false }, { THROUGH, 2000, false, false }, { GATHER, 2000, false, false },
              { SCATTER, 2000, false, false }, { EXCLUSIVE_SCAN, 2000, false, false },
              { CIRCLE, 2000, false, false }, { BLOCK_SUM, 2000, false, false });
}

/* -- algorithms that the thresholds would choose for larger messages -- */

static void make_tuned(uint32_t replicas, const ditto_tuning *tuning)
{
    ditto_strategy_options o = options_of(replicas, FOUR_PUS);
    o.tuning = tuning;
    make_strategy(&o);
}
static void two_that_stage(void)
{
    ditto_tuning t = DITTO_TUNING_INIT;
    t.stage_bytes = t.stage_one_way_bytes = 1024;
    make_tuned(2, &t);
}
static void three_that_stream(void)
{
    ditto_tuning t = DITTO_TUNING_INIT;
    t.small_bytes = 64;
    t.stream_bytes = 1024;
    make_tuned(3, &t);
}
static void three_that_fetch(void)
{
    ditto_tuning t = DITTO_TUNING_INIT;
    t.small_bytes = 64;
    t.fetch_bytes = 1;
    make_tuned(3, &t);
}
static void four_in_two_groups(void)
{
    ditto_tuning t = DITTO_TUNING_INIT;
    t.near_replicas = 2;
    t.hierarchical_bytes = 1;
    t.block_bytes = 4096;
    make_tuned(4, &t);
}
static void staged_collectives(void)
{
    RUN_CALLS({ ALL_REDUCE, 600, false, false }, { ALL_REDUCE, 600, true, false },
              { REDUCE_SCATTER, 600, false, false }, { ALL_GATHER, 600, false, false },
              { ALL_TO_ALL, 600, false, false }, { REDUCE, 600, false, false },
              { BROADCAST, 600, true, false }, { GATHER, 600, false, false }, { SCATTER, 600, false, false },
              { SCAN, 600, false, false });
}
static void tuned_collectives(void)
{
    RUN_CALLS({ ALL_REDUCE, 1500, false, false }, { ALL_REDUCE, 1500, true, false },
              { REDUCE_SCATTER, 500, false, false }, { ALL_GATHER, 500, false, false },
              { BROADCAST, 1500, true, false }, { REDUCE, 1500, false, false });
}

/* -- slices: rows of all replicas, merged by their indices -- */

static ditto_status merge_slices(ditto_replica *self, void *flags)
{
    enum { ROWS = 3, ROW = 5 };
    int64_t indices[ROWS] = { 0, 1, 1 + ditto_replica_id(self) }, found_indices[MOST * ROWS];
    int32_t values[ROWS][ROW], merged[MOST * ROWS][ROW];
    const ditto_slices src = { indices, values, ROWS, ROW, DITTO_I32 };
    ditto_slices dst = { found_indices, merged, MOST * ROWS, ROW, DITTO_I32 };
    ditto_reduce_options o = DITTO_REDUCE_OPTIONS_INIT;
    uint32_t n = ditto_num_replicas(self);
    o.flags = (uint32_t)(uintptr_t)flags;
    for (int i = 0; i < ROWS * ROW; i++)
        (&values[0][0])[i] = 1;
    EXPECT(ditto_all_reduce_slices(self, &src, &dst, DITTO_SUM, &o) == DITTO_OK);
    if (o.flags == 0) {
        EXPECT(dst.rows == n * ROWS);
    } else { /* index 0 comes n times, 1 comes n + 1 times, and the others once */
        EXPECT(dst.rows == n + 1 && found_indices[n] == n);
        EXPECT(merged[0][ROW - 1] == (int32_t)n && merged[1][0] == (int32_t)n + 1 && merged[n][0] == 1);
    }
    return DITTO_OK;
}
static void slices(void)
{
    run(merge_slices, NULL);
    run(merge_slices, (void *)(uintptr_t)DITTO_SLICES_MERGE);
}

/* -- started operations that are looked at, several at a time, and given up -- */

static ditto_status start_several(ditto_replica *self, void *gives_up)
{
    salt++;
    enum { OPERATIONS = 3, ELEMENTS = 50 };
    static int32_t buffer[MOST][OPERATIONS][ELEMENTS];
    ditto_pending pending[OPERATIONS];
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    for (int k = 0; k < OPERATIONS; k++) {
        for (int i = 0; i < ELEMENTS; i++)
            buffer[id][k][i] = salt + k;
        ditto_status status = ditto_all_reduce_start(self, buffer[id][k], buffer[id][k], ELEMENTS, DITTO_I32,
                                                     DITTO_SUM, NULL, &pending[k]);
        if (status != DITTO_OK)
            return ditto_abandon(self, status);
    }
    if (gives_up != NULL && id == 1) {
        EXPECT(ditto_abandon(self, DITTO_ERR_USER) == DITTO_ERR_USER);
        memset(buffer[id], 0, sizeof buffer[id]); /* no other replica uses it */
        return DITTO_ERR_USER;
    }
    for (int k = OPERATIONS; k-- > 0;) {
        ditto_status status = DITTO_PENDING;
        for (int tries = 0; tries < 3 && status == DITTO_PENDING; tries++)
            status = ditto_test(self, &pending[k]);
        if (status == DITTO_PENDING)
            status = ditto_wait(self, &pending[k], NULL);
        if (status != DITTO_OK)
            return ditto_abandon(self, status);
        for (int i = 0; i < ELEMENTS; i++)
            EXPECT(buffer[id][k][i] == (salt + k) * (int32_t)n);
    }
    return DITTO_OK;
}
static void several_started(void)
{
    run(start_several, NULL);
    run(start_several, NULL);
}
static void abandoned_operations(void)
{
    EXPECT(ditto_strategy_run(strategy, start_several, strategy) == DITTO_ERR_USER);
    run(start_several, NULL);
}

/* So many operations are open that a start waits until the other replica has consumed an old one. */
static ditto_status start_many(ditto_replica *self, void *unused)
{
    enum { MANY = DITTO_MAX_PENDING + 3 };
    static int32_t buffer[2][MANY];
    ditto_pending pending[MANY];
    uint32_t id = ditto_replica_id(self);
    (void)unused;
    for (int k = 0; k < MANY; k++) {
        buffer[id][k] = k;
        if (k >= DITTO_MAX_PENDING)
            EXPECT(ditto_wait(self, &pending[k - DITTO_MAX_PENDING], NULL) == DITTO_OK);
        EXPECT(ditto_all_reduce_start(self, &buffer[id][k], &buffer[id][k], 1, DITTO_I32, DITTO_SUM, NULL,
                                      &pending[k]) == DITTO_OK);
    }
    for (int k = MANY - DITTO_MAX_PENDING; k < MANY; k++)
        EXPECT(ditto_wait(self, &pending[k], NULL) == DITTO_OK);
    for (int k = 0; k < MANY; k++)
        EXPECT(buffer[id][k] == 2 * k);
    return DITTO_OK;
}
static void many_started(void)
{
    run(start_many, NULL);
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
    { .name = "barrier_of_adapting", .setup = three_that_adapt, .body = barriers },
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
    { .name = "more_small_collectives", .setup = three, .body = more_small_collectives },
    { .name = "more_large_collectives", .setup = three, .body = more_large_collectives },
    { .name = "staged_collectives", .setup = two_that_stage, .body = staged_collectives },
    { .name = "streamed_collectives", .setup = three_that_stream, .body = tuned_collectives },
    { .name = "fetched_collectives", .setup = three_that_fetch, .body = tuned_collectives },
    { .name = "hierarchical_collectives", .setup = four_in_two_groups, .body = tuned_collectives },
    { .name = "slices", .setup = three, .body = slices },
    { .name = "several_started", .setup = three, .body = several_started },
    { .name = "many_started", .setup = two, .body = many_started },
    { .name = "abandoned_operations", .setup = three, .body = abandoned_operations },
    { .name = "all_gather_after_barrier",
      .setup = three_by_counter_and_a_caller,
      .body = all_gather_after_barrier },
    { 0 },
};
