/* tests/replicas/helpers/test_devices.c - the claims of include/ditto/device.h about loops and functions on
 * the devices of a replica. */
#include "support/support.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define MOST_INDICES 5000

struct loops {
    struct report report;
    _Atomic uint8_t hits[8][MOST_INDICES]; /* of each replica */
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
    (void)state;
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

/* -- functions: their order, alone and with loops, and more functions than a ring holds -- */

struct order {
    struct report report;

    /* For each device, the number of the item that must come next. */
    uint32_t next[64];

    _Atomic uint32_t wrong, ran;
};
struct item {
    struct order *order;
    uint32_t number;
};

static ditto_status in_order(uint32_t device, void *argument)
{
    struct item *item = argument;
    if (item->order->next[device]++ != item->number)
        atomic_fetch_add(&item->order->wrong, 1);
    atomic_fetch_add(&item->order->ran, 1);
    return DITTO_OK;
}

static ditto_status stay_away(uint32_t device, void *argument)
{
    (void)device, (void)argument;
    return DITTO_OK;
}

static ditto_status after_all_functions(size_t begin, size_t end, uint32_t device, void *argument)
{
    struct order *o = argument;
    (void)begin, (void)end;
    if (o->next[device] != 300) /* the functions of a device run before its part of a loop */
        atomic_fetch_add(&o->wrong, 1);
    return DITTO_OK;
}

static ditto_status post_many(ditto_replica *self, void *argument)
{
    struct order *o = argument;
    static struct item items[300];
    uint32_t devices = ditto_num_logical_devices(self);
    for (uint32_t i = 0; i < 300; i++) {
        items[i] = (struct item){ o, i };
        for (uint32_t d = 0; d < devices; d++)
            EXPECT(&o->report, ditto_on_logical_device(self, d, in_order, &items[i]) == DITTO_OK);
    }
    EXPECT(&o->report, ditto_parallel_for(self, after_all_functions, o, 0, devices, 1,
                                          DITTO_SCHEDULE_STATIC) == DITTO_OK);
    EXPECT(&o->report, o->wrong == 0 && o->ran == 300 * devices);
    EXPECT(&o->report, ditto_join(self) == DITTO_OK); /* there is nothing to wait for */
    memset(o->next, 0, sizeof o->next);
    for (uint32_t d = 0; d < devices; d++) /* the end of this function joins them */
        EXPECT(&o->report, ditto_on_logical_device(self, d, in_order, &items[0]) == DITTO_OK);
    return DITTO_OK;
}

static void functions_of_a_device_run_in_order_and_before_loops(void **state)
{
    (void)state;
    for (uint32_t devices = 1; devices <= 8; devices += devices < 3 ? 1 : 5) {
        struct order o = { 0 };
        ditto_strategy *s = make_wide_strategy(1, devices, NULL);
        run_all(s, post_many, &o, &o.report);
        assert_int_equal(o.wrong, 0);
        assert_int_equal(o.ran, 301 * devices);
        assert_ok(ditto_strategy_destroy(s));
    }
}

/* -- failing -- */

struct failing {
    struct report report;
    uint32_t devices, fail_on;
    bool loop, join, silent;
    ditto_status status[8]; /* of the call of each replica */
    _Atomic uint32_t begun;
    char message[8][1024];
};

static ditto_status fail_there(uint32_t device, void *argument)
{
    struct failing *f = argument;
    if (device != f->fail_on)
        return DITTO_OK;
    return f->silent ? DITTO_ERR_IO : ditto_fail(NULL, 42, "device %u has had enough", device);
}

static ditto_status fail_piece(size_t begin, size_t end, uint32_t device, void *argument)
{
    (void)begin, (void)end;
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
    (void)state;
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
                    assert_message("without a message of its own");
                else
                    assert_message("has had enough");
                if (!f->silent)
                    assert_int_equal(ditto_last_error()->user_code, 42);
                if (f->loop || f->join) {
                    assert_int_equal(f->status[1], expected);
                    assert_non_null(strstr(f->message[1], "has had enough"));
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
    _Atomic uint32_t started, finished, late;
    ditto_status status;
};

static ditto_status slow_piece(size_t begin, size_t end, uint32_t device, void *argument)
{
    struct stopped *p = argument;
    (void)begin, (void)end, (void)device;
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
        return ditto_fail(self, 7, "enough");
    }
    /* Without a stop this loop would take minutes. */
    p->status = ditto_parallel_for(self, slow_piece, p, 0, 1000000, 1, DITTO_SCHEDULE_DYNAMIC);
    atomic_store(&p->late, atomic_load(&p->started) - atomic_load(&p->finished));
    return p->status;
}

static void a_stop_ends_a_loop_and_waits_for_pieces_that_have_begun(void **state)
{
    struct stopped p = { 0 };
    ditto_strategy *s = make_wide_strategy(2, 3, NULL);
    (void)state;
    assert_status(ditto_strategy_run(s, loop_until_stopped, &p), DITTO_ERR_USER);
    assert_int_equal(p.status, DITTO_ERR_PEER_STOPPED);
    assert_int_equal(p.late, 0);
    assert_true(p.started < 10000);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- calls that are refused -- */

struct refused {
    struct report report;
    ditto_replica *self[2];
    _Atomic uint32_t ready;
    ditto_strategy *strategy;
};

static ditto_status nest(size_t begin, size_t end, uint32_t device, void *argument)
{
    struct refused *r = argument;
    float value = 1;
    void *memory;
    (void)begin, (void)end, (void)device;
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
    (void)state;
    r.strategy = make_wide_strategy(2, 2, NULL);
    run_all(r.strategy, try_refused, &r, &r.report);
    assert_ok(ditto_strategy_destroy(r.strategy));
}

/* -- threads -- */

/* Counts the threads of this process whose names begin with `prefix`. If wide_only is set, counts only those
 * of them that may run on more than one CPU. */
static int count_named(const char *prefix, bool wide_only)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        char path[300], name[32] = "";
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file != NULL && fgets(name, sizeof name, file) != NULL &&
            strncmp(name, prefix, strlen(prefix)) == 0) {
            cpu_set_t set;
            sched_getaffinity((pid_t)atoi(entry->d_name), sizeof set, &set);
            count += !wide_only || CPU_COUNT(&set) > 1;
        }
        if (file != NULL)
            fclose(file);
    }
    closedir(tasks);
    return count;
}

static void helpers_are_pinned_and_end_with_the_strategy(void **state)
{
    long before = count_threads();
    ditto_device_info info = DITTO_DEVICE_INFO_INIT;
    (void)state;
    ditto_strategy *s = make_wide_strategy(2, 3, NULL);
    assert_int_equal(count_named("ditto-r", false), 5); /* two replicas of three threads, less the caller */
    assert_int_equal(count_named("ditto-r", true), 0);
    assert_ok(ditto_strategy_device_info(s, 1, 2, &info));
    assert_int_equal(info.cpu, info.planned.pu.number);
    assert_true(info.thread_id > 0);
    assert_status(ditto_strategy_device_info(s, 1, 3, &info), DITTO_ERR_RANGE);
    assert_status(ditto_strategy_device_info(s, 2, 0, &info), DITTO_ERR_RANGE);
    assert_ok(ditto_strategy_destroy(s));
    assert_int_equal(count_threads(), before);
}

struct mask_check {
    struct report report;
    int cpus[2];
};

static ditto_status look_at_mask(ditto_replica *self, void *argument)
{
    struct mask_check *m = argument;
    cpu_set_t set;
    EXPECT(&m->report, sched_getaffinity(0, sizeof set, &set) == 0);
    m->cpus[ditto_replica_id(self)] = CPU_COUNT(&set);
    return DITTO_OK;
}

static void without_helpers_the_leader_may_run_on_all_pus_of_its_replica(void **state)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    struct mask_check m = { 0 };
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    ditto_topology *here;
    ditto_strategy *s;
    (void)state;
    assert_ok(ditto_topology_create(NULL, &here));
    assert_ok(ditto_topology_count(here, &counts));
    assert_ok(ditto_topology_destroy(here));
    options.span = DITTO_SPAN_MACHINE;
    options.num_replicas = 2; /* both use all PUs */
    options.helpers = DITTO_SWITCH_OFF;
    assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &s));
    run_all(s, look_at_mask, &m, &m.report);
    assert_int_equal(m.cpus[0], counts.pus);
    assert_int_equal(m.cpus[1], counts.pus);
    assert_int_equal(count_named("ditto-r", false), 1);
    assert_ok(ditto_strategy_destroy(s));
}

struct hooked {
    _Atomic int started, stopped;
};
static void started(uint32_t replica, void *user)
{
    (void)replica;
    atomic_fetch_add(&((struct hooked *)user)->started, 1);
}
static void stopped(uint32_t replica, void *user)
{
    (void)replica;
    atomic_fetch_add(&((struct hooked *)user)->stopped, 1);
}

static void hooks_are_called_for_helpers_too(void **state)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    struct hooked h = { 0 };
    (void)state;
    options.thread_start = started;
    options.thread_stop = stopped;
    options.thread_user = &h;
    ditto_strategy *s = make_wide_strategy(2, 3, &options);
    assert_ok(ditto_strategy_destroy(s));
    assert_int_equal(h.started, 5);
    assert_int_equal(h.stopped, 5);
}

/* -- strategies side by side -- */

static void overlapping_strategies_are_described_as_shared_and_disjoint_ones_are_not(void **state)
{
    char text[4096];
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    ditto_topology *here;
    ditto_pu first, last;
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    ditto_strategy *one, *other;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_placement_options placing = DITTO_PLACEMENT_OPTIONS_INIT;
    (void)state;
    assert_ok(ditto_topology_create(NULL, &here));
    assert_ok(ditto_topology_count(here, &counts));
    assert_ok(ditto_topology_pu(here, 0, &first));
    assert_ok(ditto_topology_pu(here, counts.pus - 1, &last));
    assert_ok(ditto_topology_destroy(here));
    placing.pus = &first.number;
    placing.num_pus = 1;
    options.placement_options = &placing;
    assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &one));
    assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &other));
    assert_ok(ditto_strategy_replica_info(one, 0, &info));
    assert_int_equal(info.num_foreign_threads, 1);
    assert_ok(ditto_strategy_describe(one, text, sizeof text, NULL));
    assert_non_null(strstr(text, "PU shared with 1 thread of other strategies"));
    assert_ok(ditto_strategy_destroy(other));
    assert_ok(ditto_strategy_replica_info(one, 0, &info));
    assert_int_equal(info.num_foreign_threads, 0);
    if (counts.pus > 1) {
        ditto_strategy_options wide = DITTO_STRATEGY_OPTIONS_INIT;
        placing.pus = &last.number;
        assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &other));
        assert_ok(ditto_strategy_replica_info(one, 0, &info));
        assert_int_equal(info.num_foreign_threads, 0);
        assert_ok(ditto_strategy_destroy(one));
        /* The replica shares a PU with `other` that is not the PU of its leader, with helpers and without. */
        wide.span = DITTO_SPAN_MACHINE;
        for (int helpers = DITTO_SWITCH_ON; helpers <= DITTO_SWITCH_OFF; helpers++) {
            wide.helpers = (ditto_switch)helpers;
            assert_ok(ditto_strategy_create(DITTO_MIRRORED, &wide, &one));
            assert_ok(ditto_strategy_replica_info(one, 0, &info));
            assert_int_equal(info.num_foreign_threads, 1);
            assert_ok(ditto_strategy_replica_info(other, 0, &info));
            assert_int_equal(info.num_foreign_threads, 1);
            if (helpers == DITTO_SWITCH_ON)
                assert_ok(ditto_strategy_destroy(one));
        }
        assert_ok(ditto_strategy_destroy(other));
    }
    assert_ok(ditto_strategy_destroy(one));
}

struct side {
    ditto_strategy *strategy;
    struct report report;
    pthread_t host;
    float sum;
};

static ditto_status sum_many_times(ditto_replica *self, void *argument)
{
    struct side *side = argument;
    for (int i = 0; i < 2000; i++) {
        float value = (float)(ditto_replica_id(self) + 1);
        DITTO_TRY(ditto_all_reduce(self, &value, &value, 1, DITTO_F32, DITTO_SUM, NULL));
        if (ditto_replica_id(self) == 0)
            side->sum = value;
    }
    return DITTO_OK;
}

static void *host_of_a_side(void *argument)
{
    struct side *side = argument;
    for (int run = 0; run < 5; run++)
        if (ditto_strategy_run(side->strategy, sum_many_times, side) != DITTO_OK)
            report_failure(&side->report, __FILE__, __LINE__, "%s", ditto_last_error()->message);
    return NULL;
}

/* Two threads run two strategies at the same time. Each strategy has its own part of the machine if there is
 * more than one PU. */
static void two_strategies_work_side_by_side(void **state)
{
    struct side side[2] = { 0 };
    ditto_topology *here;
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    (void)state;
    assert_ok(ditto_topology_create(NULL, &here));
    assert_ok(ditto_topology_count(here, &counts));
    for (uint32_t i = 0; i < 2; i++) {
        ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
        ditto_placement_options placing = DITTO_PLACEMENT_OPTIONS_INIT;
        uint32_t pus[2] = { 0 };
        for (uint32_t k = 0; k < 2; k++) {
            ditto_pu pu;
            assert_ok(ditto_topology_pu(here, counts.pus > 1 ? i * (counts.pus / 2) : 0, &pu));
            pus[k] = pu.number;
        }
        placing.pus = pus;
        placing.num_pus = 2;
        placing.flags = DITTO_PLACEMENT_SHARE;
        options.placement_options = &placing;
        options.caller = i == 0 ? DITTO_CALLER_DEFAULT : DITTO_CALLER_WAITS;
        assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &side[i].strategy));
    }
    assert_ok(ditto_topology_destroy(here));
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&side[i].host, NULL, host_of_a_side, &side[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(side[i].host, NULL);
    for (int i = 0; i < 2; i++) {
        ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
        assert_string_equal(side[i].report.first_failure, "");
        assert_true(side[i].sum == 3);
        assert_ok(ditto_strategy_replica_info(side[i].strategy, 0, &info));
        if (counts.pus > 1)
            assert_int_equal(info.num_foreign_threads, 0);
        assert_ok(ditto_strategy_destroy(side[i].strategy));
    }
}

static void without_pinning_threads_are_not_bound(void **state)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    struct mask_check m = { 0 };
    cpu_set_t own;
    ditto_device_info info = DITTO_DEVICE_INFO_INIT;
    (void)state;
    sched_getaffinity(0, sizeof own, &own);
    options.pin = DITTO_PIN_NONE;
    ditto_strategy *s = make_wide_strategy(2, 2, &options);
    run_all(s, look_at_mask, &m, &m.report);
    assert_int_equal(m.cpus[0], CPU_COUNT(&own));
    assert_int_equal(m.cpus[1], CPU_COUNT(&own));
    assert_int_equal(count_named("ditto-r", true), CPU_COUNT(&own) > 1 ? 3 : 0);
    assert_ok(ditto_strategy_device_info(s, 1, 1, &info));
    assert_int_equal(info.cpu, -1);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- a leader that fails while its devices work -- */

struct leaving {
    struct report report;
    _Atomic int begun, ended, ran;
    _Atomic bool told;
    ditto_status other;
};

/* Returns after the other replica has noticed the stop. If the leader's error were reported only after this
 * function, neither would end. */
static ditto_status until_released(uint32_t device, void *argument)
{
    struct leaving *l = argument;
    (void)device;
    atomic_fetch_add(&l->begun, 1);
    for (int i = 0; i < 20000 && !atomic_load(&l->told); i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    atomic_fetch_add(&l->ended, 1);
    return atomic_load(&l->told) ? ditto_fail(NULL, 2, "later") : ditto_fail(NULL, 3, "no stop was noticed");
}

static ditto_status count_runs(uint32_t device, void *argument)
{
    struct leaving *l = argument;
    (void)device;
    atomic_fetch_add(&l->ran, 1);
    return DITTO_OK;
}

static ditto_status leave_without_joining(ditto_replica *self, void *argument)
{
    struct leaving *l = argument;
    if (ditto_replica_id(self) == 0) {
        l->other = ditto_barrier(self, NULL);
        atomic_store(&l->told, true);
        return l->other;
    }
    DITTO_TRY(ditto_on_logical_device(self, 1, until_released, l));
    while (atomic_load(&l->begun) == 0)
        sched_yield();
    for (int i = 0; i < 20; i++) /* these have not begun when the leader fails, so they never run */
        DITTO_TRY(ditto_on_logical_device(self, 1, count_runs, l));
    return ditto_fail(self, 1, "the leader fails first");
}

static void a_failing_leader_reports_at_once_and_waits_for_functions_that_have_begun(void **state)
{
    struct leaving l = { 0 };
    ditto_strategy *s = make_wide_strategy(2, 2, NULL);
    (void)state;
    assert_status(ditto_strategy_run(s, leave_without_joining, &l), DITTO_ERR_USER);
    assert_int_equal(ditto_last_error()->user_code, 1);
    assert_int_equal(l.other, DITTO_ERR_PEER_STOPPED);
    assert_int_equal(l.ended, 1);
    assert_int_equal(l.ran, 0);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- placing a tensor on a device does not report errors of the user's functions -- */

static ditto_status fail_late(uint32_t device, void *argument)
{
    (void)device, (void)argument;
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    return ditto_fail(NULL, 9, "the user's own");
}

static ditto_status assign_beside_a_failure(ditto_replica *self, void *argument)
{
    struct report *report = argument;
    float values[4] = { 1, 2, 3, 4 };
    ditto_tensor placed, t = { .data = values, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    EXPECT(report, ditto_on_logical_device(self, 2, fail_late, NULL) == DITTO_OK);
    /* The function of device 2 does not affect device 1. */
    EXPECT(report, ditto_assign_to_logical_device(self, &t, 1, &placed) == DITTO_OK);
    EXPECT(report, memcmp(placed.data, values, sizeof values) == 0);
    EXPECT(report, ditto_free(self, placed.data) == DITTO_OK);
    ditto_status status = ditto_join(self);
    EXPECT(report, status == DITTO_ERR_USER && ditto_last_error()->user_code == 9);
    EXPECT(report, strcmp(ditto_last_error()->function, "ditto_fail") == 0);
    /* The run is stopped, so functions that would never run are refused. */
    EXPECT(report, ditto_on_logical_device(self, 1, fail_late, NULL) == DITTO_ERR_PEER_STOPPED);
    EXPECT(report, ditto_assign_to_logical_device(self, &t, 1, &placed) == DITTO_ERR_PEER_STOPPED);
    return status;
}

static void placing_a_tensor_leaves_errors_of_functions_to_join(void **state)
{
    struct report report = { 0 };
    ditto_strategy *s = make_wide_strategy(1, 3, NULL);
    (void)state;
    assert_status(ditto_strategy_run(s, assign_beside_a_failure, &report), DITTO_ERR_USER);
    assert_string_equal(report.first_failure, "");
    assert_ok(ditto_strategy_destroy(s));
}

/* -- a fork inside a run -- */

static int use_devices_in_child(void *argument)
{
    ditto_replica *self = argument;
    struct order order = { 0 };
    REQUIRE(ditto_parallel_for(self, after_all_functions, &order, 0, 100, 1, DITTO_SCHEDULE_STATIC) ==
            DITTO_ERR_FORKED);
    REQUIRE(ditto_on_logical_device(self, 1, stay_away, NULL) == DITTO_ERR_FORKED);
    REQUIRE(ditto_join(self) == DITTO_ERR_FORKED);
    float value = 1;
    ditto_tensor out[2], t = { .data = &value, .dtype = DITTO_F32 };
    REQUIRE(ditto_replicate(self, &t, out) == DITTO_ERR_FORKED);
    return 0;
}

static ditto_status fork_inside(ditto_replica *self, void *argument)
{
    struct report *report = argument;
    EXPECT(report, ditto_on_logical_device(self, 1, stay_away, NULL) == DITTO_OK);
    EXPECT(report, in_child(use_devices_in_child, self, 60) == 0);
    return ditto_join(self);
}

static void a_child_that_forked_inside_a_run_gets_FORKED(void **state)
{
    struct report report = { 0 };
    ditto_strategy *s = make_wide_strategy(1, 2, NULL);
    (void)state;
    run_all(s, fork_inside, &report, &report);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- a helper that does not return -- */

struct stuck {
    _Atomic bool release, ended;
};

static ditto_status stay(uint32_t device, void *argument)
{
    struct stuck *stuck = argument;
    (void)device;
    while (!atomic_load(&stuck->release))
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return DITTO_OK;
}

static ditto_status wait_for_stuck_helper(ditto_replica *self, void *argument)
{
    struct stuck *stuck = argument;
    if (ditto_replica_id(self) != 1)
        return DITTO_OK;
    DITTO_TRY(ditto_on_logical_device(self, 1, stay, stuck));
    ditto_status status = ditto_join(self);
    atomic_store(&stuck->ended, true);
    return status;
}

/* Runs in a child process, because the strategy stays in memory if its leader has not returned before
 * destroy. */
static int stick_and_come_home(void *unused)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    static struct stuck stuck;
    long before = count_threads();
    (void)unused;
    options.run_timeout_ms = 50;
    ditto_strategy *s = make_wide_strategy(2, 2, &options);
    REQUIRE(ditto_strategy_run(s, wait_for_stuck_helper, &stuck) == DITTO_ERR_TIMED_OUT);
    REQUIRE(strstr(ditto_last_error()->message, "had not returned: 1") != NULL);
    REQUIRE(ditto_strategy_run(s, wait_for_stuck_helper, &stuck) == DITTO_ERR_POISONED);
    atomic_store(&stuck.release, true);
    for (int i = 0; i < 10000 && !atomic_load(&stuck.ended); i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    REQUIRE(stuck.ended);
    /* The leader returns a moment after it has set `ended`. */
    nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    ditto_status status = ditto_strategy_destroy(s);
    REQUIRE(status == DITTO_OK || status == DITTO_ERR_POISONED);
    REQUIRE(status != DITTO_OK || count_threads() == before);
    return 0;
}

static void a_stuck_helper_poisons_the_strategy_until_it_returns(void **state)
{
    (void)state;
    assert_int_equal(in_child(stick_and_come_home, NULL, 60), 0);
}

/* The strategy is destroyed before the function of the helper returns. When it returns, all threads of its
 * replica end. Runs in a child process, because the poisoned strategy stays in memory. */
static int give_up_on_a_helper(void *unused)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    static struct stuck stuck;
    static struct hooked hooked;
    (void)unused;
    options.run_timeout_ms = 50;
    options.thread_start = started;
    options.thread_stop = stopped;
    options.thread_user = &hooked;
    ditto_strategy *s = make_wide_strategy(2, 3, &options);
    REQUIRE(ditto_strategy_run(s, wait_for_stuck_helper, &stuck) == DITTO_ERR_TIMED_OUT);
    REQUIRE(ditto_strategy_destroy(s) == DITTO_ERR_POISONED);
    REQUIRE(hooked.stopped < hooked.started);
    atomic_store(&stuck.release, true);
    for (int i = 0; i < 20000 && hooked.stopped < hooked.started; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    REQUIRE(hooked.stopped == hooked.started);
    return 0;
}

static void threads_of_a_poisoned_strategy_end_when_they_return(void **state)
{
    (void)state;
    assert_int_equal(in_child(give_up_on_a_helper, NULL, 60), 0);
}

static ditto_status wait_as_replica_0(ditto_replica *self, void *argument)
{
    struct leaving *l = argument;
    if (ditto_replica_id(self) == 1) {
        l->other = ditto_barrier(self, NULL);
        atomic_store(&l->told, true);
        return l->other;
    }
    DITTO_TRY(ditto_on_logical_device(self, 1, until_released, l));
    return ditto_join(self);
}

/* The run cannot return without its caller. But when its time is over, the other replicas are stopped. */
static void a_caller_that_waits_too_long_for_its_helper_stops_the_run(void **state)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    struct leaving l = { 0 };
    (void)state;
    options.run_timeout_ms = 50;
    ditto_strategy *s = make_wide_strategy(2, 2, &options);
    assert_status(ditto_strategy_run(s, wait_as_replica_0, &l), DITTO_ERR_TIMED_OUT);
    assert_message("logical device 1 of replica 0 had not returned");
    assert_int_equal(l.other, DITTO_ERR_PEER_STOPPED);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- forks -- */

static int destroy_in_child(void *argument)
{
    REQUIRE(ditto_strategy_run(argument, look_at_mask, NULL) == DITTO_ERR_FORKED);
    REQUIRE(ditto_strategy_destroy(argument) == DITTO_OK);
    return 0;
}

static void a_child_process_destroys_a_strategy_with_helpers(void **state)
{
    ditto_strategy *s = make_wide_strategy(2, 2, NULL);
    (void)state;
    assert_int_equal(in_child(destroy_in_child, s, 60), 0);
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_runs_once_with_both_schedules),
        cmocka_unit_test(functions_of_a_device_run_in_order_and_before_loops),
        cmocka_unit_test(a_failing_function_stops_the_run_like_a_leader),
        cmocka_unit_test(a_stop_ends_a_loop_and_waits_for_pieces_that_have_begun),
        cmocka_unit_test(nesting_and_foreign_handles_are_refused),
        cmocka_unit_test(helpers_are_pinned_and_end_with_the_strategy),
        cmocka_unit_test(without_helpers_the_leader_may_run_on_all_pus_of_its_replica),
        cmocka_unit_test(hooks_are_called_for_helpers_too),
        cmocka_unit_test(overlapping_strategies_are_described_as_shared_and_disjoint_ones_are_not),
        cmocka_unit_test(two_strategies_work_side_by_side),
        cmocka_unit_test(without_pinning_threads_are_not_bound),
        cmocka_unit_test(a_stuck_helper_poisons_the_strategy_until_it_returns),
        cmocka_unit_test(threads_of_a_poisoned_strategy_end_when_they_return),
        cmocka_unit_test(a_caller_that_waits_too_long_for_its_helper_stops_the_run),
        cmocka_unit_test(a_failing_leader_reports_at_once_and_waits_for_functions_that_have_begun),
        cmocka_unit_test(placing_a_tensor_leaves_errors_of_functions_to_join),
        cmocka_unit_test(a_child_that_forked_inside_a_run_gets_FORKED),
        cmocka_unit_test(a_child_process_destroys_a_strategy_with_helpers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
