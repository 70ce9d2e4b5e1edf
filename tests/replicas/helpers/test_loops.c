/* tests/replicas/helpers/test_loops.c - the claims of include/ditto/device.h about loops over the devices of
 * a replica: their indices, failures, stops and calls that are refused. */
#include "support/support.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#define MOST_INDICES 5000

/* The number of pieces of a loop that would take minutes without a stop. */
#define PIECES 1000000

struct loops {
    struct report report;

    /* For each replica, how often each index was executed. */
    _Atomic uint8_t hits[8][MOST_INDICES];

    uint32_t devices;
    uint64_t seed;
};

struct loop {
    struct loops *all;
    uint32_t replica;
    size_t begin, end, grain;
    _Atomic uint32_t wrong, calls;
};

static ditto_status hit(size_t begin, size_t end, uint32_t device, void *argument)
{
    struct loop *l = argument;
    atomic_fetch_add(&l->calls, 1);
    if (begin >= end || begin < l->begin || end > l->end || device >= l->all->devices)
        atomic_fetch_add(&l->wrong, 1);
    if (l->grain != 0 &&
        ((begin - l->begin) % l->grain != 0 || (end != l->end && (end - l->begin) % l->grain != 0)))
        atomic_fetch_add(&l->wrong, 1);
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add(&l->all->hits[l->replica][i], 1);
    return DITTO_OK;
}

static ditto_status try_loops(ditto_replica *self, void *argument)
{
    struct loops *all = argument;
    uint32_t id = ditto_replica_id(self);
    uint64_t random = all->seed + id;
    for (int round = 0; round < 60; round++) {
        struct loop l = { .all = all, .replica = id };
        l.begin = test_random(&random) % 100;
        l.end = l.begin + test_random(&random) % (round % 2 != 0 ? MOST_INDICES - 100 : 9);
        l.grain = test_random(&random) % 3 == 0 ? 0 : test_random(&random) % 700;
        ditto_schedule schedule = (ditto_schedule)(test_random(&random) % 2);
        memset(all->hits[id], 0, sizeof all->hits[id]);
        EXPECT(&all->report,
               ditto_parallel_for(self, hit, &l, l.begin, l.end, l.grain, schedule) == DITTO_OK);
        EXPECT(&all->report, l.wrong == 0);
        for (size_t i = 0; i < MOST_INDICES; i++) /* each index of the loop once, and no other */
            EXPECT(&all->report, all->hits[id][i] == (i >= l.begin && i < l.end));
        if (schedule == DITTO_SCHEDULE_STATIC)
            EXPECT(&all->report, l.calls <= all->devices);
    }
    return DITTO_OK;
}

static void every_index_runs_once_with_both_schedules(void **state)
{
    static const uint32_t devices[] = { 1, 2, 3, 8 };
    uint64_t seed = test_seed(11);
    for (uint32_t n = 1; n <= 3; n += 2)
        for (size_t k = 0; k < 4; k++) {
            struct loops *all = calloc(1, sizeof *all);
            ditto_strategy *s = make_wide_strategy(n, devices[k], NULL);
            all->devices = devices[k];
            all->seed = seed;
            run_all(s, try_loops, all, &all->report);
            assert_ok(ditto_strategy_destroy(s));
            free(all);
        }
}

/* -- failing -- */

struct failing {
    struct report report;
    uint32_t devices, fail_on;
    bool loop, join, silent;
    ditto_status status[8]; /* of the call of each replica */
    char message[8][1024];
};

static ditto_status fail_there(uint32_t device, void *argument)
{
    struct failing *f = argument;
    if (device != f->fail_on)
        return DITTO_OK;
    return f->silent ? DITTO_ERR_IO : ditto_fail(NULL, 42, "device %u has failed", device);
}

static ditto_status fail_piece(size_t begin, size_t end, uint32_t device, void *argument)
{
    return fail_there(device, argument);
}

static ditto_status run_failing(ditto_replica *self, void *argument)
{
    struct failing *f = argument;
    uint32_t id = ditto_replica_id(self);
    ditto_status status = DITTO_OK;
    if (id == 1) {
        if (f->loop)
            status = ditto_parallel_for(self, fail_piece, f, 0, f->devices, 1, DITTO_SCHEDULE_STATIC);
        else
            status = ditto_on_logical_device(self, f->fail_on, fail_there, f);
        if (!f->loop && f->join)
            status = ditto_join(self);
        f->status[id] = status;
        snprintf(f->message[id], sizeof f->message[id], "%s", ditto_last_error()->message);
        return DITTO_OK; /* the run is stopped although the leader ignores the error */
    }
    f->status[id] = ditto_barrier(self, NULL); /* never completes, because replica 1 does not call it */
    return f->status[id];
}

static void a_failing_function_stops_the_run_like_a_leader(void **state)
{
    for (int shape = 0; shape < 4; shape++)
        for (uint32_t devices = 1; devices <= 3; devices++)
            for (uint32_t where = 0; where < devices; where++) {
                struct failing *f = calloc(1, sizeof *f);
                ditto_strategy *s = make_wide_strategy(3, devices, NULL);
                f->devices = devices;
                f->fail_on = where;
                f->loop = shape == 0;
                f->join = shape == 1;
                f->silent = shape == 2;
                ditto_status expected = f->silent ? DITTO_ERR_IO : DITTO_ERR_USER;
                ditto_status status = ditto_strategy_run(s, run_failing, f);
                assert_int_equal(status, expected);
                assert_int_equal(ditto_last_error()->replica, 1);
                if (f->silent)
                    assert_message("without a message: set one with ditto_fail");
                else
                    assert_message("has failed");
                if (!f->silent)
                    assert_int_equal(ditto_last_error()->user_code, 42);
                if (f->loop || f->join) {
                    assert_int_equal(f->status[1], expected);
                    assert_non_null(strstr(f->message[1], "has failed"));
                }
                assert_int_equal(f->status[0], DITTO_ERR_PEER_STOPPED);
                assert_int_equal(f->status[2], DITTO_ERR_PEER_STOPPED);
                /* The next run works. */
                struct loops *all = calloc(1, sizeof *all);
                all->devices = devices;
                run_all(s, try_loops, all, &all->report);
                free(all);
                assert_ok(ditto_strategy_destroy(s));
                free(f);
            }
}

struct stopped {
    struct report report;
    _Atomic uint32_t started, finished;

    /* The pieces that had begun and had not finished when the loop returned. */
    _Atomic uint32_t unfinished;
    ditto_status status;
};

static ditto_status slow_piece(size_t begin, size_t end, uint32_t device, void *argument)
{
    struct stopped *p = argument;
    atomic_fetch_add(&p->started, 1);
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
    atomic_fetch_add(&p->finished, 1);
    return DITTO_OK;
}

static ditto_status loop_until_stopped(ditto_replica *self, void *argument)
{
    struct stopped *p = argument;
    if (ditto_replica_id(self) == 0) {
        while (atomic_load(&p->started) == 0)
            sched_yield();
        return ditto_fail(self, 7, "stopped on purpose");
    }
    p->status = ditto_parallel_for(self, slow_piece, p, 0, PIECES, 1, DITTO_SCHEDULE_DYNAMIC);
    atomic_store(&p->unfinished, atomic_load(&p->started) - atomic_load(&p->finished));
    return p->status;
}

static void a_stop_ends_a_loop_and_waits_for_pieces_that_have_begun(void **state)
{
    struct stopped p = { 0 };
    ditto_strategy *s = make_wide_strategy(2, 3, NULL);
    assert_status(ditto_strategy_run(s, loop_until_stopped, &p), DITTO_ERR_USER);
    assert_int_equal(p.status, DITTO_ERR_PEER_STOPPED);
    assert_int_equal(p.unfinished, 0);
    assert_true(p.started < PIECES);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- calls that are refused -- */

struct refused {
    struct report report;
    ditto_replica *self[2];
    _Atomic uint32_t ready;
    ditto_strategy *strategy;

    /* How often the function of a refused run was called. */
    _Atomic uint32_t runs;
};

static ditto_status count_run(ditto_replica *self, void *argument)
{
    atomic_fetch_add(&((struct refused *)argument)->runs, 1);
    return DITTO_OK;
}

static ditto_status nest(size_t begin, size_t end, uint32_t device, void *argument)
{
    struct refused *r = argument;
    float value = 1;
    void *memory;
    EXPECT(&r->report,
           ditto_parallel_for(r->self[0], nest, r, 0, 9, 1, DITTO_SCHEDULE_STATIC) == DITTO_ERR_CONTEXT);
    EXPECT(&r->report, strstr(ditto_last_error()->message, "loops do not nest") != NULL);
    EXPECT(&r->report, ditto_on_logical_device(r->self[0], 0, NULL, r) == DITTO_ERR_CONTEXT);
    EXPECT(&r->report, ditto_join(r->self[0]) == DITTO_ERR_CONTEXT);
    EXPECT(&r->report, ditto_alloc(r->self[0], 8, 0, &memory) == DITTO_ERR_CONTEXT);
    EXPECT(&r->report,
           ditto_all_reduce(r->self[0], &value, &value, 1, DITTO_F32, DITTO_SUM, NULL) == DITTO_ERR_CONTEXT);
    EXPECT(&r->report, ditto_num_logical_devices(r->self[0]) == 0);
    EXPECT(&r->report, ditto_strategy_run(r->strategy, NULL, NULL) == DITTO_ERR_INVALID);
    EXPECT(&r->report, ditto_strategy_run(r->strategy, count_run, r) == DITTO_ERR_CONTEXT);
    EXPECT(&r->report, ditto_strategy_scope_enter(r->strategy) == DITTO_ERR_CONTEXT);
    EXPECT(&r->report, ditto_strategy_destroy(r->strategy) == DITTO_ERR_CONTEXT);
    return DITTO_OK;
}

static ditto_status try_refused(ditto_replica *self, void *argument)
{
    struct refused *r = argument;
    uint32_t id = ditto_replica_id(self);
    r->self[id] = self;
    atomic_fetch_add(&r->ready, 1);
    while (atomic_load(&r->ready) < 2)
        sched_yield();
    ditto_replica *other = r->self[1 - id];
    EXPECT(&r->report, ditto_on_logical_device(other, 0, fail_there, r) == DITTO_ERR_CONTEXT);
    EXPECT(&r->report, strstr(ditto_last_error()->message, "another replica's") != NULL);
    EXPECT(&r->report,
           ditto_parallel_for(other, nest, r, 0, 1, 1, DITTO_SCHEDULE_STATIC) == DITTO_ERR_CONTEXT);
    EXPECT(&r->report, ditto_join(other) == DITTO_ERR_CONTEXT);
    EXPECT(&r->report, ditto_join(NULL) == DITTO_ERR_INVALID);
    EXPECT(&r->report, ditto_parallel_for(self, nest, r, 1, 0, 1, DITTO_SCHEDULE_STATIC) == DITTO_ERR_RANGE);
    EXPECT(&r->report, ditto_parallel_for(self, nest, r, 0, 1, 1, (ditto_schedule)2) == DITTO_ERR_RANGE);
    EXPECT(&r->report,
           ditto_parallel_for(self, NULL, r, 0, 1, 1, DITTO_SCHEDULE_STATIC) == DITTO_ERR_INVALID);
    EXPECT(&r->report, ditto_on_logical_device(self, 0, NULL, r) == DITTO_ERR_INVALID);
    if (id == 0)
        EXPECT(&r->report, ditto_parallel_for(self, nest, r, 0, 2, 1, DITTO_SCHEDULE_STATIC) == DITTO_OK);
    return DITTO_OK;
}

static void nesting_and_foreign_handles_are_refused(void **state)
{
    struct refused r = { 0 };
    r.strategy = make_wide_strategy(2, 2, NULL);
    run_all(r.strategy, try_refused, &r, &r.report);
    assert_int_equal(r.runs, 0);
    assert_ok(ditto_strategy_destroy(r.strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_runs_once_with_both_schedules),
        cmocka_unit_test(a_failing_function_stops_the_run_like_a_leader),
        cmocka_unit_test(a_stop_ends_a_loop_and_waits_for_pieces_that_have_begun),
        cmocka_unit_test(nesting_and_foreign_handles_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
