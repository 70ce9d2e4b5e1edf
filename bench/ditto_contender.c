/* bench/ditto_contender.c - measures ditto through its public interface. */
#include "harness.h"
#include "perf_control.h"
#include "samples.h"

#include <ditto.h>

#include <stdio.h>
#include <stdlib.h>

struct ditto_state {
    ditto_strategy *strategy;
    struct worker *workers;
    const struct work *work;
    bool baseline;
    struct timing loops;          /* of the last batch of loops */
    const struct worker *counted; /* the workers of the last batch */
    bool plain;                   /* does the plain all-reduce instead of its variants */
    ditto_wait_policy wait;       /* of a contender that makes its strategy in `prepare` */
};

/* The handle of the replica that runs on this thread. */
static _Thread_local ditto_replica *this_replica;

static void barrier(void *context, uint32_t id)
{
    (void)context, (void)id;
    must(ditto_barrier(this_replica, NULL));
}

/* The tensors of a list. They are ready before the call, as in a user's program. */
static _Thread_local ditto_list_item list[WORK_TENSORS];

static void make_list(const struct work *work, const struct worker *w)
{
    for (uint32_t i = 0; i < WORK_TENSORS; i++) {
        struct span s = work_tensor(work, i);
        list[i] = (ditto_list_item){ .src = w->src + s.first,
                                     .dst = w->dst + s.first,
                                     .count = (s.end - s.first) / work_element_bytes(work->dtype),
                                     .dtype = work->dtype };
    }
}

static void collective(void *context, uint32_t id, const struct work *work, struct worker *workers)
{
    char *src = workers[id].src, *dst = workers[id].dst;
    size_t count = work->bytes / work_element_bytes(work->dtype), part = count / work->replicas;
    size_t own_part = work_part(work, id).first;
    ditto_pending pending;
    (void)context;
    switch (work->kind) {
    case BENCH_ALL_GATHER:
        must(ditto_all_gather(this_replica, src + own_part, dst, part, NULL, work->dtype, NULL));
        break;
    case BENCH_BROADCAST:
        must(ditto_broadcast_from_root(this_replica, dst, count, work->dtype, work->root, NULL));
        break;
    case BENCH_REDUCE_SCATTER:
        must(
            ditto_reduce_scatter(this_replica, src, dst + own_part, part, NULL, work->dtype, work->op, NULL));
        break;
    case BENCH_REDUCE:
        must(ditto_reduce_to_root(this_replica, src, dst, count, work->dtype, work->op, work->root, NULL));
        break;
    case BENCH_GATHER:
        must(ditto_gather_to_root(this_replica, src + own_part, dst, part, NULL, NULL, work->dtype,
                                  work->root, NULL));
        break;
    case BENCH_SCATTER:
        must(ditto_scatter_from_root(this_replica, src, dst + own_part, part, NULL, NULL, work->dtype,
                                     work->root, NULL));
        break;
    case BENCH_ALL_TO_ALL:
        must(ditto_all_to_all(this_replica, src, dst, part, NULL, work->dtype, NULL));
        break;
    case BENCH_SCAN:
        must(ditto_scan(this_replica, src, dst, count, work->dtype, work->op, NULL));
        break;
    case BENCH_SCAN_EXCLUSIVE:
        must(ditto_scan_exclusive(this_replica, src, dst, count, work->dtype, work->op, NULL));
        break;
    case BENCH_LIST:
        must(ditto_all_reduce_list(this_replica, list, WORK_TENSORS, work->op, NULL));
        break;
    case BENCH_ASYNC:
        must(ditto_all_reduce_start(this_replica, src, dst, count, work->dtype, work->op, NULL, &pending));
        must(ditto_wait(this_replica, &pending, NULL));
        break;
    default:
        must(ditto_all_reduce(this_replica, src, dst, count, work->dtype, work->op, NULL));
    }
}

static const struct contender_ops ops = { barrier, collective };

static ditto_status batch_on_replica(ditto_replica *self, void *argument)
{
    struct ditto_state *s = argument;
    this_replica = self;
    if (s->work->kind == BENCH_LIST)
        make_list(s->work, &s->workers[ditto_replica_id(self)]);
    work_batch(s->work, s->workers, ditto_replica_id(self), &ops, s, s->baseline);
    return DITTO_OK;
}

static ditto_status touch_on_replica(ditto_replica *self, void *argument)
{
    struct ditto_state *s = argument;
    work_touch(s->work, s->workers, ditto_replica_id(self));
    return DITTO_OK;
}

static ditto_status nothing(ditto_replica *self, void *argument)
{
    (void)self, (void)argument;
    return DITTO_OK;
}

static ditto_status piece(size_t begin, size_t end, uint32_t device, void *argument)
{
    struct ditto_state *s = argument;
    (void)device;
    if (s->work->bytes > 0)
        work_loop(s->workers, begin, end);
    return DITTO_OK;
}

/* For work that no worker measures. */
static struct worker clocks[WORK_MOST_REPLICAS];

/* Begin and end counting on the thread of each replica, or of each device. If the main thread did it for all,
 * the others would wait, and perhaps sleep, while they count. */
static ditto_status start_on_replica(ditto_replica *self, void *unused)
{
    (void)self, (void)unused;
    counters_start_own();
    return DITTO_OK;
}

static ditto_status stop_on_replica(ditto_replica *self, void *unused)
{
    (void)unused;
    counters_stop_own(&clocks[ditto_replica_id(self)].counts);
    return DITTO_OK;
}

static ditto_status start_on_device(size_t begin, size_t end, uint32_t device, void *unused)
{
    (void)begin, (void)end, (void)device, (void)unused;
    counters_start_own();
    return DITTO_OK;
}

static ditto_status stop_on_device(size_t begin, size_t end, uint32_t device, void *unused)
{
    (void)begin, (void)end, (void)unused;
    counters_stop_own(&clocks[device].counts);
    return DITTO_OK;
}

static void on_devices(ditto_replica *self, const struct ditto_state *s, ditto_range_fn function)
{
    if (counters_events > 0)
        must(ditto_parallel_for(self, function, NULL, 0, s->work->replicas, 1, DITTO_SCHEDULE_STATIC));
}

/* Runs parallel loops. A loop with an empty body has one index for each device. */
static ditto_status loops(ditto_replica *self, void *argument)
{
    struct ditto_state *s = argument;
    size_t count = s->work->bytes > 0 ? s->work->bytes / sizeof(float) : s->work->replicas;
    on_devices(self, s, start_on_device);
    perf_control_enable();
    double begin = now_seconds();
    for (uint64_t rep = 0; rep < s->work->reps; rep++)
        must(
            ditto_parallel_for(self, piece, s, 0, count, s->work->bytes > 0 ? 16 : 1, DITTO_SCHEDULE_STATIC));
    s->loops = (struct timing){ now_seconds() - begin, 0, 0 };
    perf_control_disable();
    on_devices(self, s, stop_on_device);
    return DITTO_OK;
}

static ditto_status touch_loop(ditto_replica *self, void *argument)
{
    struct ditto_state *s = argument;
    return ditto_parallel_for(self, piece, s, 0, s->work->bytes / sizeof(float), 16, DITTO_SCHEDULE_STATIC);
}

static void on_replicas(ditto_strategy *strategy, ditto_replica_fn function)
{
    if (counters_events > 0)
        must(ditto_strategy_run(strategy, function, NULL));
}

/* Runs an empty function `reps` times. */
static struct timing runs(ditto_strategy *strategy, uint64_t reps)
{
    on_replicas(strategy, start_on_replica);
    perf_control_enable();
    double begin = now_seconds();
    for (uint64_t rep = 0; rep < reps; rep++)
        must(ditto_strategy_run(strategy, nothing, NULL));
    struct timing timing = { now_seconds() - begin, 0, 0 };
    perf_control_disable();
    on_replicas(strategy, stop_on_replica);
    return timing;
}

/* Executes a batch of runs or loops. */
static struct timing forks(struct ditto_state *s, const struct work *work)
{
    counters_find_threads();
    s->counted = clocks;
    if (work->kind == BENCH_RUN)
        return runs(s->strategy, work->reps);
    must(ditto_strategy_run(s->strategy, loops, s));
    return s->loops;
}

static const struct counts *counts(void *state, uint32_t replica)
{
    const struct ditto_state *s = state;
    return &s->counted[replica].counts;
}

static struct timing batch(void *state, const struct work *work, bool baseline)
{
    struct ditto_state *s = state;
    struct worker *buffers = s->workers;
    struct work this_work = *work;
    s->work = &this_work;
    s->baseline = baseline;
    if (work->kind == BENCH_RUN || work->kind == BENCH_PARALLEL_FOR)
        return forks(s, work);
    if (work->kind == BENCH_BARRIER)
        s->workers = clocks;
    else if (s->plain)
        this_work.kind = BENCH_ALL_REDUCE;
    must(ditto_strategy_run(s->strategy, batch_on_replica, s));
    struct timing timing = work_timing(s->workers, work->replicas);
    s->counted = s->workers;
    s->workers = buffers;
    return timing;
}

static bool prepare(void *state, const struct work *work)
{
    struct ditto_state *s = state;
    s->workers = work_allocate(work);
    s->work = work;
    must(
        ditto_strategy_run(s->strategy, work->kind == BENCH_PARALLEL_FOR ? touch_loop : touch_on_replica, s));
    return true;
}

static void finish(void *state, const struct work *work)
{
    struct ditto_state *s = state;
    work_free(work, s->workers);
    s->workers = NULL;
}

/* Makes a strategy with one replica on the first PUs of the machine. If there are more devices than PUs, they
 * share PUs. */
static void create_wide(uint32_t devices, ditto_strategy **out)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_placement_options places = DITTO_PLACEMENT_OPTIONS_INIT;
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    ditto_topology *topology;
    ditto_placement *placement;
    uint32_t pus[1024];
    must(ditto_topology_create(NULL, &topology));
    must(ditto_topology_count(topology, &counts));
    for (uint32_t i = 0; i < devices; i++) {
        ditto_pu pu;
        must(ditto_topology_pu(topology, i % counts.pus, &pu));
        pus[i] = pu.number;
    }
    places.pus = pus;
    places.num_pus = devices;
    places.set_sizes = &devices;
    places.num_replicas = 1;
    places.flags = DITTO_PLACEMENT_SHARE;
    must(ditto_placement_create(topology, &places, &placement));
    options.placement = placement;
    must(ditto_strategy_create(DITTO_MIRRORED, &options, out));
    must(ditto_placement_destroy(placement));
    must(ditto_topology_destroy(topology));
}

/* Makes the state of a contender. With the strategy of another contender, it does the plain all-reduce. */
static struct ditto_state *new_state(ditto_strategy *strategy)
{
    struct ditto_state *s = calloc(1, sizeof *s);
    if (s == NULL)
        exit(1);
    s->strategy = strategy;
    s->plain = strategy != NULL;
    return s;
}

static void close_first(void *state)
{
    struct ditto_state *s = state;
    must(ditto_strategy_scope_leave(s->strategy));
    must(ditto_strategy_destroy(s->strategy));
    free(s);
}

static struct contender contender(const char *name, struct ditto_state *s, void (*close)(void *))
{
    return (struct contender){ .name = name,
                               .state = s,
                               .prepare = prepare,
                               .batch = batch,
                               .finish = finish,
                               .close = close,
                               .counts = counts };
}

uint32_t ditto_contender_open(struct contender *out, enum bench_kind kind, uint32_t replicas)
{
    struct ditto_state *s = new_state(NULL);
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.num_replicas = replicas;
    if (kind == BENCH_PARALLEL_FOR)
        create_wide(replicas, &s->strategy);
    else
        must(ditto_strategy_create(DITTO_MIRRORED, &options, &s->strategy));
    must(ditto_strategy_scope_enter(s->strategy));
    out[0] = contender("ditto", s, close_first);
    if (kind != BENCH_LIST && kind != BENCH_ASYNC)
        return 1;
    out[1] = contender("ditto-plain", new_state(s->strategy), free);
    return 2;
}

/* -- ways to wait -- */

static bool prepare_waiting(void *state, const struct work *work)
{
    struct ditto_state *s = state;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.num_replicas = work->replicas;
    options.wait = s->wait;
    must(ditto_strategy_create(DITTO_MIRRORED, &options, &s->strategy));
    must(ditto_strategy_scope_enter(s->strategy));
    return prepare(state, work);
}

static void finish_waiting(void *state, const struct work *work)
{
    struct ditto_state *s = state;
    finish(state, work);
    must(ditto_strategy_scope_leave(s->strategy));
    must(ditto_strategy_destroy(s->strategy));
    s->strategy = NULL;
}

uint32_t waiting_dittos_open(struct contender *out)
{
    static const char *const names[] = { "ditto", "ditto-active", "ditto-passive" };
    static const ditto_wait_policy policies[] = { DITTO_WAIT_DEFAULT, DITTO_WAIT_ACTIVE, DITTO_WAIT_PASSIVE };
    for (int i = 0; i < 3; i++) {
        struct ditto_state *s = new_state(NULL);
        s->wait = policies[i];
        out[i] = contender(names[i], s, free);
        out[i].prepare = prepare_waiting;
        out[i].finish = finish_waiting;
    }
    return 3;
}
