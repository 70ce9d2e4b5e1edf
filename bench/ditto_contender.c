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
    bool divides;                 /* makes groups */
    ditto_grouping *grouping;     /* of the replicas, or NULL */
    ditto_wait_policy wait;
};

/* The handle of the replica that runs on this thread, and the options of its calls, which name its group. */
static _Thread_local ditto_replica *this_replica;
static _Thread_local const ditto_reduce_options *this_options;

static void barrier(void *context, uint32_t id)
{
    (void)context, (void)id;
    must(ditto_barrier(this_replica, this_options));
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
        must(ditto_all_gather(this_replica, src + own_part, dst, part, NULL, work->dtype, this_options));
        break;
    case BENCH_BROADCAST:
        must(ditto_broadcast_from_root(this_replica, dst, count, work->dtype, work->root, this_options));
        break;
    case BENCH_REDUCE_SCATTER:
        must(ditto_reduce_scatter(this_replica, src, dst + own_part, part, NULL, work->dtype, work->op,
                                  this_options));
        break;
    case BENCH_REDUCE:
        must(ditto_reduce_to_root(this_replica, src, dst, count, work->dtype, work->op, work->root,
                                  this_options));
        break;
    case BENCH_GATHER:
        must(ditto_gather_to_root(this_replica, src + own_part, dst, part, NULL, NULL, work->dtype,
                                  work->root, this_options));
        break;
    case BENCH_SCATTER:
        must(ditto_scatter_from_root(this_replica, src, dst + own_part, part, NULL, NULL, work->dtype,
                                     work->root, this_options));
        break;
    case BENCH_ALL_TO_ALL:
        must(ditto_all_to_all(this_replica, src, dst, part, NULL, work->dtype, this_options));
        break;
    case BENCH_SCAN:
        must(ditto_scan(this_replica, src, dst, count, work->dtype, work->op, this_options));
        break;
    case BENCH_SCAN_EXCLUSIVE:
        must(ditto_scan_exclusive(this_replica, src, dst, count, work->dtype, work->op, this_options));
        break;
    case BENCH_LIST:
        must(ditto_all_reduce_list(this_replica, list, WORK_TENSORS, work->op, this_options));
        break;
    case BENCH_ASYNC:
        must(ditto_all_reduce_start(this_replica, src, dst, count, work->dtype, work->op, this_options,
                                    &pending));
        must(ditto_wait(this_replica, &pending, NULL));
        break;
    default:
        must(ditto_all_reduce(this_replica, src, dst, count, work->dtype, work->op, this_options));
    }
}

static const struct contender_ops ops = { barrier, collective };

/* Returns the group of a replica, which is the whole team if there are no groups. */
static ditto_group group_of(const struct ditto_state *s, ditto_replica *self)
{
    ditto_group group = { .rank = ditto_replica_id(self), .size = s->work->replicas };
    if (s->grouping != NULL)
        must(ditto_group_of(self, s->grouping, &group));
    return group;
}

static ditto_status batch_on_replica(ditto_replica *self, void *argument)
{
    struct ditto_state *s = argument;
    ditto_group group = group_of(s, self);
    ditto_reduce_options options = DITTO_REDUCE_OPTIONS_INIT;
    struct worker *workers = s->workers + group.index * group.size;
    if (s->work->alone && group.index > 0)
        return DITTO_OK;
    options.group = &group;
    this_replica = self;
    this_options = s->grouping != NULL ? &options : NULL;
    if (s->work->kind == BENCH_LIST)
        make_list(s->work, &workers[group.rank]);
    work_batch(s->work, workers, group.rank, &ops, s, s->baseline);
    return DITTO_OK;
}

static ditto_status touch_on_replica(ditto_replica *self, void *argument)
{
    struct ditto_state *s = argument;
    ditto_group group = group_of(s, self);
    work_touch(s->work, s->workers + group.index * group.size, group.rank);
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

/* Returns the work of all groups, whose workers are one group after the other. */
static struct work of_groups(const struct ditto_state *s, const struct work *work)
{
    struct work all = *work;
    all.replicas *= s->divides ? work->groups : 1;
    return all;
}

static struct timing batch_in_scope(struct ditto_state *s, const struct work *work, bool baseline)
{
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
    struct timing timing = work_timing(s->workers, of_groups(s, work).replicas);
    s->counted = s->workers;
    s->workers = buffers;
    return timing;
}

/* In the scope of a strategy, its runs need not bind this thread to the PUs of replica 0. */
static struct timing batch(void *state, const struct work *work, bool baseline)
{
    struct ditto_state *s = state;
    must(ditto_strategy_scope_enter(s->strategy));
    struct timing timing = batch_in_scope(s, work, baseline);
    must(ditto_strategy_scope_leave(s->strategy));
    return timing;
}

static bool prepare(void *state, const struct work *work)
{
    struct ditto_state *s = state;
    struct work all = of_groups(s, work);
    s->workers = work_allocate(&all);
    s->work = work;
    must(
        ditto_strategy_run(s->strategy, work->kind == BENCH_PARALLEL_FOR ? touch_loop : touch_on_replica, s));
    return true;
}

static void finish(void *state, const struct work *work)
{
    struct ditto_state *s = state;
    struct work all = of_groups(s, work);
    work_free(&all, s->workers);
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

/* -- strategies that live for a batch or a work, because others would share their PUs -- */

static void create_strategy(struct ditto_state *s, uint32_t replicas)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.num_replicas = replicas;
    options.wait = s->wait;
    must(ditto_strategy_create(DITTO_MIRRORED, &options, &s->strategy));
}

static void destroy_strategy(struct ditto_state *s)
{
    must(ditto_grouping_destroy(s->grouping));
    must(ditto_strategy_destroy(s->strategy));
    s->grouping = NULL;
    s->strategy = NULL;
}

/* Makes the groups, or a strategy with as many replicas as a group. */
static void create_groups(struct ditto_state *s, const struct work *work)
{
    uint32_t replicas = work->replicas * (s->divides ? work->groups : 1), colors[WORK_MOST_REPLICAS];
    create_strategy(s, replicas);
    for (uint32_t id = 0; id < replicas; id++)
        colors[id] = part_group(id, replicas, work->groups);
    if (s->divides)
        must(ditto_strategy_split(s->strategy, colors, NULL, replicas, &s->grouping));
}

static bool prepare_groups(void *state, const struct work *work)
{
    create_groups(state, work);
    bool done = prepare(state, work);
    destroy_strategy(state);
    return done;
}

static struct timing batch_of_groups(void *state, const struct work *work, bool baseline)
{
    create_groups(state, work);
    struct timing timing = batch(state, work, baseline);
    destroy_strategy(state);
    return timing;
}

static uint32_t groups_open(struct contender *out)
{
    static const char *const names[] = { "ditto", "ditto-strategy" };
    for (int i = 0; i < 2; i++) {
        struct ditto_state *s = new_state(NULL);
        s->divides = i == 0;
        out[i] = contender(names[i], s, free);
        out[i].prepare = prepare_groups;
        out[i].batch = batch_of_groups;
    }
    return 2;
}

static bool prepare_waiting(void *state, const struct work *work)
{
    create_strategy(state, work->replicas);
    return prepare(state, work);
}

static void finish_waiting(void *state, const struct work *work)
{
    finish(state, work);
    destroy_strategy(state);
}

/* -- opening -- */

uint32_t ditto_contender_open(struct contender *out, const struct request *q)
{
    if (q->groups > 0)
        return groups_open(out);
    struct ditto_state *s = new_state(NULL);
    if (q->kind == BENCH_PARALLEL_FOR)
        create_wide(q->replicas, &s->strategy);
    else
        create_strategy(s, q->replicas);
    out[0] = contender("ditto", s, close_first);
    if (q->kind != BENCH_LIST && q->kind != BENCH_ASYNC)
        return 1;
    out[1] = contender("ditto-plain", new_state(s->strategy), free);
    return 2;
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
