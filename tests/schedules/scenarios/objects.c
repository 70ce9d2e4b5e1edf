/* tests/schedules/scenarios/objects.c - variables, parameters, helpers and groups. */
#include "scenarios.h"

#include <ditto/coordinator.h>

#include <sched.h>

static ditto_variable *variable;

static void three_with_a_variable(void)
{
    ditto_variable_options o = DITTO_VARIABLE_OPTIONS_INIT;
    const ditto_tensor zeros = { .dtype = DITTO_I32, .rank = 1, .shape = { 300 } };
    three();
    o.aggregation = DITTO_AGGREGATE_SUM;
    EXPECT(ditto_variable_create(strategy, &zeros, &o, &variable) == DITTO_OK);
}
/* -- one thread destroys what another one uses: it is refused, or the other one is -- */

static void *run_on(void *s)
{
    ditto_status status = ditto_strategy_run(s, meet, NULL);
    EXPECT(status == DITTO_OK);
    return NULL;
}
static void destroyed_while_used(void)
{
    pthread_t other = thread_of(run_on, strategy);
    ditto_status status;
    while ((status = ditto_variable_destroy(variable)) == DITTO_ERR_BUSY)
        sched_yield();
    EXPECT(status == DITTO_OK);
    join(other);
    EXPECT(ditto_strategy_destroy(strategy) == DITTO_OK);
}

/* -- helpers: a loop over all devices of each replica -- */

static void two_with_helpers(void)
{
    ditto_strategy_options o = options_of(2, FOUR_PUS);
    o.num_replicas = 2;
    o.pus_per_replica = 2;
    make_strategy(&o);
}
static int32_t doubled[2][64];
static ditto_status double_range(size_t begin, size_t end, uint32_t device, void *user)
{
    (void)device;
    for (size_t i = begin; i < end; i++)
        ((int32_t *)user)[i] = 2 * (int32_t)i;
    return DITTO_OK;
}
static ditto_status loop(ditto_replica *self, void *unused)
{
    uint32_t id = ditto_replica_id(self);
    (void)unused;
    for (int k = 0; k < 2; k++) {
        EXPECT(ditto_parallel_for(self, double_range, doubled[id], 0, 64, 8,
                                  k == 0 ? DITTO_SCHEDULE_STATIC : DITTO_SCHEDULE_DYNAMIC) == DITTO_OK);
        for (int i = 0; i < 64; i++)
            EXPECT(doubled[id][i] == 2 * i);
        memset(doubled[id], 0, sizeof doubled[id]);
    }
    return DITTO_OK;
}
static void helpers(void)
{
    run(loop, NULL);
    EXPECT(ditto_strategy_destroy(strategy) == DITTO_OK);
}

/* -- groups: rows and columns of a mesh, and a circle of waits -- */

static ditto_grouping *axis[2];
static void mesh_of_four(void)
{
    static const ditto_mesh_axis axes[] = { { "row", 2 }, { "column", 2 } };
    make_of(4, FOUR_PUS);
    EXPECT(ditto_strategy_mesh(strategy, axes, 2, axis) == DITTO_OK);
}
static ditto_status sum_over_axes(ditto_replica *self, void *unused)
{
    int32_t x = 1 << ditto_replica_id(self);
    (void)unused;
    for (int a = 0; a < 2; a++) {
        ditto_group group;
        ditto_reduce_options o = DITTO_REDUCE_OPTIONS_INIT;
        EXPECT(ditto_group_of(self, axis[a], &group) == DITTO_OK);
        o.group = &group;
        EXPECT(ditto_all_reduce(self, &x, &x, 1, DITTO_I32, DITTO_SUM, &o) == DITTO_OK);
    }
    EXPECT(x == 15);
    return DITTO_OK;
}
static ditto_status wait_in_a_circle(ditto_replica *self, void *unused)
{
    ditto_group group;
    ditto_reduce_options o = DITTO_REDUCE_OPTIONS_INIT;
    uint32_t id = ditto_replica_id(self);
    (void)unused;
    EXPECT(ditto_group_of(self, axis[id == 0 || id == 3], &group) == DITTO_OK);
    o.group = &group;
    return ditto_barrier(self, &o);
}
static void groups(void)
{
    run(sum_over_axes, NULL);
    run(sum_over_axes, NULL);
}
static void circle(void)
{
    EXPECT(ditto_strategy_run(strategy, wait_in_a_circle, NULL) == DITTO_ERR_DIVERGED);
    run(sum_over_axes, NULL);
}

/* -- parameters: workers add to shards, and read each shard between two updates -- */

static ditto_coordinator *coordinator;
static ditto_concurrency concurrency;
enum { ROWS = 4, COLUMNS = 40 };
static ditto_status add_and_pull(ditto_replica *self, void *unused)
{
    int32_t ones[ROWS][COLUMNS], found[ROWS][COLUMNS];
    (void)unused;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        (&ones[0][0])[i] = 1;
    EXPECT(ditto_assign(self, variable, DITTO_ASSIGN_ADD, ones) == DITTO_OK);
    EXPECT(ditto_pull(self, variable, NULL, found) == DITTO_OK);
    for (int row = 0; row < ROWS; row++) {
        EXPECT(found[row][0] >= 1);
        for (int i = 1; i < COLUMNS && concurrency == DITTO_CONCURRENCY_LOCKED; i++)
            EXPECT(found[row][i] == found[row / 2 * 2][0]);
    }
    return DITTO_OK;
}
static void two_workers(ditto_concurrency how)
{
    ditto_strategy_options o = options_of(2, FOUR_PUS);
    ditto_variable_options v = DITTO_VARIABLE_OPTIONS_INIT;
    const ditto_tensor zeros = { .dtype = DITTO_I32, .rank = 2, .shape = { ROWS, COLUMNS } };
    concurrency = how;
    v.concurrency = how;
    v.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 2 };
    EXPECT(ditto_strategy_create(DITTO_PARAMETER_SERVER, &o, &strategy) == DITTO_OK);
    EXPECT(ditto_variable_create(strategy, &zeros, &v, &variable) == DITTO_OK);
    EXPECT(ditto_coordinator_create(strategy, NULL, &coordinator) == DITTO_OK);
    EXPECT(ditto_function_register("add", add_and_pull, NULL) == DITTO_OK);
}
static void two_locking_workers(void)
{
    two_workers(DITTO_CONCURRENCY_LOCKED);
}
static void two_hogwild_workers(void)
{
    two_workers(DITTO_CONCURRENCY_HOGWILD);
}
static void two_workers_with_free_reads(void)
{
    two_workers(DITTO_CONCURRENCY_FREE_READS);
}
static void parameters(void)
{
    int32_t found[ROWS][COLUMNS];
    for (int k = 0; k < 3; k++)
        EXPECT(ditto_coordinator_schedule(coordinator, "add", NULL, NULL, NULL) == DITTO_OK);
    EXPECT(ditto_coordinator_join(coordinator) == DITTO_OK);
    EXPECT(ditto_variable_read(variable, found, sizeof found) == DITTO_OK);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        EXPECT((&found[0][0])[i] == 3 ||
               (concurrency == DITTO_CONCURRENCY_HOGWILD && (&found[0][0])[i] >= 1));
    for (size_t shard = 0; shard < 2; shard++) {
        ditto_shard_info info = DITTO_SHARD_INFO_INIT;
        EXPECT(ditto_variable_shard(variable, shard, &info) == DITTO_OK && info.version == 3);
    }
    EXPECT(ditto_coordinator_destroy(coordinator) == DITTO_OK);
    EXPECT(ditto_strategy_destroy(strategy) == DITTO_OK);
}

const struct scenario object_scenarios[] = {
    { .name = "destroyed_while_used", .setup = three_with_a_variable, .body = destroyed_while_used },
    { .name = "helpers", .setup = two_with_helpers, .body = helpers },
    { .name = "groups", .setup = mesh_of_four, .body = groups },
    { .name = "circle",
      .setup = mesh_of_four,
      .body = circle,
      .waits_for_time = true }, /* it is looked for after 10 ms */
    { .name = "locked_parameters", .setup = two_locking_workers, .body = parameters, .waits_for_time = true },
    { .name = "hogwild_parameters",
      .setup = two_hogwild_workers,
      .body = parameters,
      .waits_for_time = true },
    { .name = "freely_read_parameters",
      .setup = two_workers_with_free_reads,
      .body = parameters,
      .waits_for_time = true },
    { 0 },
};
