/* bench/ditto_contender.c - ditto as a user calls it. */
#include "harness.h"

#include <ditto.h>

#include <stdio.h>
#include <stdlib.h>

struct ditto_state {
    ditto_strategy *strategy;
    struct worker *workers;
    const struct work *work;
    bool baseline;
    double seconds; /* of the last batch of loops */
};

static void must(ditto_status status)
{
    if (status != DITTO_OK) {
        fprintf(stderr, "ditto-bench: %s: %s\n", ditto_status_name(status), ditto_last_error()->message);
        exit(1);
    }
}

/* Inside run every replica has its own handle. */
static _Thread_local ditto_replica *own;

static void barrier(void *context, uint32_t id)
{
    (void)context, (void)id;
    must(ditto_barrier(own, NULL));
}

static void all_reduce(void *context, uint32_t id, const struct work *work, struct worker *workers)
{
    (void)context;
    must(ditto_all_reduce(own, workers[id].src, workers[id].dst, work->bytes / sizeof(float), DITTO_F32, DITTO_SUM,
                          NULL));
}

static const struct contender_ops ops = { barrier, all_reduce };

static ditto_status batch_on_replica(ditto_replica *self, void *argument)
{
    struct ditto_state *s = argument;
    own = self;
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

/* An empty body has an index per device. */
static ditto_status loops(ditto_replica *self, void *argument)
{
    struct ditto_state *s = argument;
    size_t count = s->work->bytes > 0 ? s->work->bytes / sizeof(float) : s->work->replicas;
    double begin = now_seconds();
    for (uint64_t rep = 0; rep < s->work->reps; rep++)
        must(ditto_parallel_for(self, 0, count, s->work->bytes > 0 ? 16 : 1, DITTO_STATIC, piece, s));
    s->seconds = now_seconds() - begin;
    return DITTO_OK;
}

static ditto_status touch_loop(ditto_replica *self, void *argument)
{
    struct ditto_state *s = argument;
    return ditto_parallel_for(self, 0, s->work->bytes / sizeof(float), 16, DITTO_STATIC, piece, s);
}

static double batch(void *state, const struct work *work, bool baseline)
{
    struct ditto_state *s = state;
    struct worker few[1024];
    struct worker *buffers = s->workers;
    if (work->kind == BENCH_RUN) {
        double begin = now_seconds();
        for (uint64_t rep = 0; rep < work->reps; rep++)
            must(ditto_strategy_run(s->strategy, nothing, NULL));
        return now_seconds() - begin;
    }
    if (work->kind == BENCH_PARALLEL_FOR) {
        s->work = work;
        must(ditto_strategy_run(s->strategy, loops, s));
        return s->seconds;
    }
    if (work->kind == BENCH_BARRIER)
        s->workers = few; /* clocks only */
    s->work = work;
    s->baseline = baseline;
    must(ditto_strategy_run(s->strategy, batch_on_replica, s));
    double slowest = 0;
    for (uint32_t i = 0; i < work->replicas; i++)
        slowest = s->workers[i].seconds > slowest ? s->workers[i].seconds : slowest;
    s->workers = buffers;
    return slowest;
}

static void prepare(void *state, const struct work *work)
{
    struct ditto_state *s = state;
    s->workers = work_allocate(work);
    s->work = work;
    must(ditto_strategy_run(s->strategy, work->kind == BENCH_PARALLEL_FOR ? touch_loop : touch_on_replica, s));
}

static void finish(void *state, const struct work *work)
{
    struct ditto_state *s = state;
    work_free(work, s->workers);
    s->workers = NULL;
}

/* One replica of the machine's first PUs; more devices than PUs share them. */
static void create_wide(uint32_t devices, ditto_strategy **out)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_placement_options places = DITTO_PLACEMENT_OPTIONS_INIT;
    ditto_topology_counts counts;
    ditto_topology *here;
    ditto_placement *placement;
    uint32_t pus[1024];
    must(ditto_topology_create(NULL, &here));
    must(ditto_topology_count(here, &counts));
    for (uint32_t i = 0; i < devices; i++) {
        ditto_pu pu;
        must(ditto_topology_pu(here, i % counts.pus, &pu));
        pus[i] = pu.number;
    }
    places.pus = pus;
    places.num_pus = devices;
    places.set_sizes = &devices;
    places.replicas = 1;
    places.flags = DITTO_PLACEMENT_SHARE;
    must(ditto_placement_build(here, &places, &placement));
    options.placement = placement;
    must(ditto_strategy_create(DITTO_MIRRORED, &options, out));
    ditto_placement_destroy(placement);
    ditto_topology_destroy(here);
}

void ditto_contender_open(struct contender *out, enum bench_kind kind, uint32_t replicas)
{
    struct ditto_state *s = calloc(1, sizeof *s);
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.replicas = replicas;
    if (kind == BENCH_PARALLEL_FOR)
        create_wide(replicas, &s->strategy);
    else
        must(ditto_strategy_create(DITTO_MIRRORED, &options, &s->strategy));
    must(ditto_strategy_scope_enter(s->strategy));
    *out = (struct contender){ .name = "ditto", .state = s, .batch = batch, .prepare = prepare, .finish = finish };
}

void ditto_contender_close(struct contender *contender)
{
    struct ditto_state *s = contender->state;
    must(ditto_strategy_scope_leave(s->strategy));
    must(ditto_strategy_destroy(s->strategy));
    free(s);
}
