/* tests/schedules/scenarios/groups.c - groups of replicas, and the helpers of a replica. */
#include "scenarios.h"

#include <ditto/device.h>
#include <ditto/group.h>
#include <ditto/tuning.h>

/* -- groups: rows and columns of a mesh, and a circle of waits -- */

static ditto_grouping *axis[2];
static void mesh_of_four(void)
{
    static const ditto_mesh_axis axes[] = { { "row", 2 }, { "column", 2 } };
    make_of(4, FOUR_PUS);
    EXPECT(ditto_strategy_mesh(strategy, axes, 2, axis) == DITTO_OK);
}
static ditto_reduce_options in_group(ditto_replica *self, const ditto_grouping *grouping, ditto_group *group)
{
    ditto_reduce_options o = DITTO_REDUCE_OPTIONS_INIT;
    EXPECT(ditto_group_of(self, grouping, group) == DITTO_OK);
    o.group = group;
    return o;
}
static ditto_status sum_over_axes(ditto_replica *self, void *unused)
{
    static _Thread_local int32_t calls; /* each has another sum */
    int32_t x = ++calls << ditto_replica_id(self);
    (void)unused;
    for (int a = 0; a < 2; a++) {
        ditto_group group;
        const ditto_reduce_options o = in_group(self, axis[a], &group);
        EXPECT(ditto_all_reduce(self, &x, &x, 1, DITTO_I32, DITTO_SUM, &o) == DITTO_OK);
    }
    EXPECT(x == 15 * calls);
    return DITTO_OK;
}
static ditto_status wait_in_a_circle(ditto_replica *self, void *unused)
{
    ditto_group group;
    uint32_t id = ditto_replica_id(self);
    const ditto_reduce_options o = in_group(self, axis[id == 0 || id == 3], &group);
    (void)unused;
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

/* Larger collectives of the rows, at the same time as those of the columns begin: started, and in place. */
enum { LARGE = 2000 };
static int32_t sums[4][2][LARGE];
static ditto_status reduce_in_groups(ditto_replica *self, void *unused)
{
    uint32_t id = ditto_replica_id(self);
    ditto_pending pending;
    ditto_group row_group, column_group;
    const ditto_reduce_options row = in_group(self, axis[0], &row_group),
                               column = in_group(self, axis[1], &column_group);
    int32_t last = (int32_t)id;
    (void)unused;
    for (int i = 0; i < LARGE; i++)
        sums[id][0][i] = sums[id][1][i] = 1 << id;
    EXPECT(ditto_all_reduce_start(self, sums[id][0], sums[id][0], LARGE, DITTO_I32, DITTO_SUM, &row,
                                  &pending) == DITTO_OK);
    EXPECT(ditto_wait(self, &pending, NULL) == DITTO_OK);
    EXPECT(ditto_all_reduce(self, sums[id][1], sums[id][1], LARGE, DITTO_I32, DITTO_SUM, &column) ==
           DITTO_OK);
    for (int i = 0; i < LARGE; i++)
        EXPECT(sums[id][0][i] + sums[id][1][i] == 15 - (1 << (3 - id)) + (1 << id));
    EXPECT(ditto_broadcast_from_root(self, &last, 1, DITTO_I32, 1, &row) == DITTO_OK);
    EXPECT(last == (int32_t)(id % 2 + 2)); /* the "row" of a replica has those with the same id % 2 */
    return DITTO_OK;
}
static void large_in_groups(void)
{
    run(reduce_in_groups, NULL);
}

/* A replica fails, or returns, while the others wait in their groups. */
static ditto_status fail_in_group(ditto_replica *self, void *returns)
{
    ditto_status expected = returns != NULL ? DITTO_ERR_DIVERGED : DITTO_ERR_PEER_STOPPED;
    ditto_group group;
    const ditto_reduce_options o = in_group(self, axis[0], &group);
    if (ditto_replica_id(self) == 3)
        return returns != NULL ? DITTO_OK : ditto_fail(self, 9, "it fails");
    ditto_status status = DITTO_OK;
    for (int k = 0; k < 3 && status == DITTO_OK; k++)
        status = ditto_barrier(self, &o);
    EXPECT(status == DITTO_OK || status == expected);
    return status;
}
static void failing_in_groups(void)
{
    EXPECT(ditto_strategy_run(strategy, fail_in_group, NULL) == DITTO_ERR_USER);
    EXPECT(ditto_strategy_run(strategy, fail_in_group, axis) == DITTO_ERR_DIVERGED);
    run(sum_over_axes, NULL);
}

/* An interrupt, while replicas start operations in their groups, and wait for them. */
static ditto_status start_in_groups(ditto_replica *self, void *unused)
{
    int32_t x[2] = { 1, 1 };
    ditto_pending pending[2];
    ditto_group group[2];
    ditto_status status = DITTO_OK;
    (void)unused;
    for (int a = 0; a < 2 && status == DITTO_OK; a++) {
        const ditto_reduce_options o = in_group(self, axis[a], &group[a]);
        status = ditto_all_reduce_start(self, &x[a], &x[a], 1, DITTO_I32, DITTO_SUM, &o, &pending[a]);
    }
    for (int a = 2; a-- > 0 && status == DITTO_OK;)
        status = ditto_wait(self, &pending[a], NULL);
    EXPECT(status != DITTO_OK || (x[0] == 2 && x[1] == 2));
    return status == DITTO_OK ? DITTO_OK : ditto_abandon(self, status);
}
static void interrupted_groups(void)
{
    pthread_t other = thread_of(interrupt, NULL);
    ditto_status status = ditto_strategy_run(strategy, start_in_groups, NULL);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_CANCELLED);
    join(other);
    meet_or_be_poisoned();
    end_perhaps_poisoned();
}

/* -- helpers: loops over all devices of each replica, and functions that are given to them -- */

static void two_with_helpers(void)
{
    ditto_strategy_options o = options_of(2, FOUR_PUS);
    ditto_tuning t = DITTO_TUNING_INIT;
    t.helper_bytes = 4096;
    o.tuning = &t;
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

static ditto_status add_range(size_t begin, size_t end, uint32_t device, void *partial, void *user)
{
    (void)device, (void)user;
    *(int64_t *)partial = 0;
    for (size_t i = begin; i < end; i++)
        *(int64_t *)partial += (int64_t)i;
    return DITTO_OK;
}
static ditto_status count_calls(uint32_t device, void *calls)
{
    (void)device;
    ++*(int32_t *)calls;
    return DITTO_OK;
}
static ditto_status give_functions(ditto_replica *self, void *unused)
{
    int32_t calls[2] = { 0 };
    int64_t sum = 0;
    (void)unused;
    for (uint32_t k = 0; k < 6; k++)
        EXPECT(ditto_on_logical_device(self, k % 2, count_calls, &calls[k % 2]) == DITTO_OK);
    EXPECT(ditto_join(self) == DITTO_OK);
    EXPECT(calls[0] == 3 && calls[1] == 3);
    EXPECT(ditto_parallel_reduce(self, add_range, NULL, 0, 100, 8, DITTO_I64, DITTO_SUM, 1, &sum) ==
           DITTO_OK);
    EXPECT(sum == 4950);
    return ditto_barrier(self, NULL);
}
static void functions_of_helpers(void)
{
    run(give_functions, NULL);
    EXPECT(ditto_strategy_destroy(strategy) == DITTO_OK);
}

/* A collective whose parts are so large that the helpers join it. */
static ditto_status reduce_with_helpers(ditto_replica *self, void *unused)
{
    enum { EACH = 6000 };
    static int32_t data[2][EACH];
    uint32_t id = ditto_replica_id(self);
    (void)unused;
    for (int i = 0; i < EACH; i++)
        data[id][i] = i;
    EXPECT(ditto_all_reduce(self, data[id], data[id], EACH, DITTO_I32, DITTO_SUM, NULL) == DITTO_OK);
    for (int i = 0; i < EACH; i++)
        EXPECT(data[id][i] == 2 * i);
    return DITTO_OK;
}
static void helped_all_reduce(void)
{
    run(reduce_with_helpers, NULL);
}

/* A device fails while others execute what was given to them. */
static ditto_status fail_on_device(uint32_t device, void *user)
{
    (void)device, (void)user;
    return DITTO_ERR_USER;
}
static ditto_status give_one_that_fails(ditto_replica *self, void *unused)
{
    static int32_t calls[2];
    (void)unused;
    if (ditto_replica_id(self) == 1) {
        ditto_status status = DITTO_OK;
        for (int k = 0; k < 3 && status == DITTO_OK; k++)
            status = ditto_on_logical_device(self, 1, k == 1 ? fail_on_device : count_calls, &calls[1]);
        if (status == DITTO_OK)
            status = ditto_join(self);
        EXPECT(status == DITTO_ERR_USER);
        return status;
    }
    EXPECT(ditto_barrier(self, NULL) == DITTO_ERR_PEER_STOPPED);
    return DITTO_ERR_PEER_STOPPED;
}
static void failing_helper(void)
{
    EXPECT(ditto_strategy_run(strategy, give_one_that_fails, NULL) == DITTO_ERR_USER);
    run(loop, NULL);
    EXPECT(ditto_strategy_destroy(strategy) == DITTO_OK);
}

const struct scenario group_scenarios[] = {
    { .name = "groups", .setup = mesh_of_four, .body = groups },
    { .name = "large_in_groups", .setup = mesh_of_four, .body = large_in_groups },
    { .name = "failing_in_groups", .setup = mesh_of_four, .body = failing_in_groups },
    { .name = "interrupted_groups", .setup = mesh_of_four, .body = interrupted_groups },
    { .name = "circle_without_membarrier",
      .setup = mesh_of_four,
      .body = circle,
      .no_membarrier = true,
      .longest_ms = 20 },
    { .name = "circle",
      .setup = mesh_of_four,
      .body = circle,
      .longest_ms = 20 }, /* it is looked for after 10 ms */
    { .name = "helpers", .setup = two_with_helpers, .body = helpers },
    { .name = "functions_of_helpers", .setup = two_with_helpers, .body = functions_of_helpers },
    { .name = "helped_all_reduce", .setup = two_with_helpers, .body = helped_all_reduce },
    { .name = "failing_helper", .setup = two_with_helpers, .body = failing_helper },
    { 0 },
};
