/* tests/schedules/scenarios/variables.c - variables, updates by functions, rows, and optimizers. */
#include "scenarios.h"

#include <ditto/merge.h>
#include <ditto/optimizer.h>
#include <ditto/rows.h>

enum { COUNT = 300, REPLICAS = 3 };
static ditto_variable *variable;

static void make_variable(ditto_variable_options *o, ditto_dtype dtype, size_t rows, size_t columns)
{
    ditto_tensor zeros = { .dtype = dtype, .rank = columns == 1 ? 1 : 2, .shape = { rows, columns } };
    three();
    if (ditto_variable_create(strategy, &zeros, o, &variable) != DITTO_OK)
        fail("no variable: %s", ditto_last_error()->message);
}

/* Reads the whole in another thread. All elements have been changed equally often, by `step` each time. */
static void *read_whole(void *step)
{
    int32_t found[COUNT];
    EXPECT(ditto_variable_read(variable, found, sizeof found) == DITTO_OK);
    for (int i = 0; i < COUNT; i++)
        EXPECT(found[i] == found[0] && found[0] % (int32_t)(intptr_t)step == 0);
    return NULL;
}
static void read_end(int32_t value)
{
    int32_t found[COUNT];
    EXPECT(ditto_variable_read(variable, found, sizeof found) == DITTO_OK);
    for (int i = 0; i < COUNT; i++)
        EXPECT(found[i] == value);
}
static void change_and_read(ditto_replica_fn change, intptr_t step)
{
    pthread_t other = thread_of(read_whole, (void *)step);
    run(change, NULL);
    join(other);
    read_end((int32_t)step);
    EXPECT(ditto_variable_destroy(variable) == DITTO_OK);
    EXPECT(ditto_strategy_destroy(strategy) == DITTO_OK);
}

/* -- mirrored: all replicas write, and each sees the sum -- */

static void three_with_a_mirrored(void)
{
    ditto_variable_options o = DITTO_VARIABLE_OPTIONS_INIT;
    o.aggregation = DITTO_AGGREGATE_SUM;
    make_variable(&o, DITTO_I32, COUNT, 1);
}
static void three_with_a_copy_each(void)
{
    ditto_variable_options o = DITTO_VARIABLE_OPTIONS_INIT;
    o.aggregation = DITTO_AGGREGATE_SUM;
    o.copies = DITTO_COPIES_PER_REPLICA;
    make_variable(&o, DITTO_I32, COUNT, 1);
}
static void fill(int32_t *to, int32_t value)
{
    for (int i = 0; i < COUNT; i++)
        to[i] = value;
}
static void expect_local(ditto_replica *self, int32_t value)
{
    const void *data;
    EXPECT(ditto_read(self, variable, &data) == DITTO_OK);
    for (int i = 0; i < COUNT; i++)
        EXPECT(((const int32_t *)data)[i] == value);
}
static ditto_status add_ones(ditto_replica *self, void *unused)
{
    int32_t ones[COUNT];
    (void)unused;
    fill(ones, 1);
    for (int k = 1; k <= 2; k++) {
        EXPECT(ditto_assign(self, variable, DITTO_ASSIGN_ADD, ones) == DITTO_OK);
        expect_local(self, REPLICAS * k);
    }
    return DITTO_OK;
}
static void mirrored_variables(void)
{
    change_and_read(add_ones, 2 * REPLICAS);
}

/* -- sync-on-read: each replica has its own, and other threads read the sum -- */

static void three_with_a_sync_on_read(void)
{
    ditto_variable_options o = DITTO_VARIABLE_OPTIONS_INIT;
    o.synchronization = DITTO_ON_READ;
    o.aggregation = DITTO_AGGREGATE_SUM;
    make_variable(&o, DITTO_I32, COUNT, 1);
}
static ditto_status add_to_own(ditto_replica *self, void *unused)
{
    int32_t ones[COUNT];
    (void)unused;
    fill(ones, 1);
    for (int k = 1; k <= 2; k++) {
        EXPECT(ditto_assign(self, variable, DITTO_ASSIGN_ADD, ones) == DITTO_OK);
        expect_local(self, k);
    }
    return DITTO_OK;
}
static void sync_on_read_variables(void)
{
    change_and_read(add_to_own, 2 * REPLICAS);
}

/* -- sliced: each replica writes its slice -- */

static void three_with_a_sliced(void)
{
    ditto_variable_options o = DITTO_VARIABLE_OPTIONS_INIT;
    o.aggregation = DITTO_AGGREGATE_SUM; /* over the replicas that have the slice: one */
    o.partitioner.kind = DITTO_PARTITION_BY_REPLICA;
    make_variable(&o, DITTO_I32, COUNT, 1);
}
static ditto_status write_slice(ditto_replica *self, void *unused)
{
    int32_t sevens[COUNT];
    ditto_tensor own;
    size_t first;
    (void)unused;
    fill(sevens, 7);
    EXPECT(ditto_assign(self, variable, DITTO_ASSIGN, sevens) == DITTO_OK);
    EXPECT(ditto_local_slice(self, variable, &own, &first) == DITTO_OK);
    EXPECT(own.shape[0] == COUNT / REPLICAS && first == ditto_replica_id(self) * (COUNT / REPLICAS));
    for (int i = 0; i < COUNT / REPLICAS; i++)
        EXPECT(((const int32_t *)own.data)[i] == 7);
    return DITTO_OK;
}
static void sliced_variables(void)
{
    change_and_read(write_slice, 7);
}

/* -- updates by a function, in a run and beside one -- */

static ditto_status add_argument(const ditto_tensor *copy, const ditto_tensor *arguments,
                                 uint32_t num_arguments, void *user, ditto_tensor *result)
{
    (void)user, (void)result;
    for (int i = 0; i < COUNT; i++)
        ((int32_t *)copy->data)[i] += num_arguments > 0 ? *(const int32_t *)arguments[0].data : 6;
    return DITTO_OK;
}
static ditto_status update(ditto_replica *self, void *unused)
{
    int32_t addend = 2;
    const ditto_tensor argument = { .dtype = DITTO_I32, .data = &addend };
    (void)unused;
    for (int k = 0; k < 3; k++)
        EXPECT(ditto_update(self, variable, add_argument, NULL, &argument, 1, NULL) == DITTO_OK);
    return DITTO_OK;
}
static void *update_outside(void *unused)
{
    (void)unused;
    EXPECT(ditto_variable_update(variable, add_argument, NULL, NULL, 0, NULL, NULL) == DITTO_OK);
    return NULL;
}
static void updates(void)
{
    pthread_t other = thread_of(update_outside, NULL), reader = thread_of(read_whole, (void *)6);
    run(update, NULL);
    join(other);
    join(reader);
    read_end(3 * 2 + 6);
    EXPECT(ditto_variable_destroy(variable) == DITTO_OK);
}

/* The copies of a variable without aggregation are split in a pause, and each replica changes its own. */
static void three_without_aggregation(void)
{
    ditto_variable_options o = DITTO_VARIABLE_OPTIONS_INIT;
    make_variable(&o, DITTO_I32, COUNT, 1);
}
static ditto_status update_own(ditto_replica *self, void *unused)
{
    int32_t id = (int32_t)ditto_replica_id(self);
    const ditto_tensor argument = { .dtype = DITTO_I32, .data = &id };
    (void)unused;
    for (int k = 1; k <= 2; k++) {
        EXPECT(ditto_update(self, variable, add_argument, NULL, &argument, 1, NULL) == DITTO_OK);
        expect_local(self, k * id);
    }
    return DITTO_OK;
}
static void split_copies(void)
{
    run(update_own, NULL);
    EXPECT(ditto_variable_destroy(variable) == DITTO_OK);
}

/* A variable that all replicas create, in a pause. */
static ditto_status create_and_add(ditto_replica *self, void *unused)
{
    ditto_variable_options o = DITTO_VARIABLE_OPTIONS_INIT;
    const ditto_tensor zeros = { .dtype = DITTO_I32, .rank = 1, .shape = { COUNT } };
    ditto_variable *created;
    o.aggregation = DITTO_AGGREGATE_SUM;
    (void)unused;
    EXPECT(ditto_create_variable(self, &zeros, &o, &created) == DITTO_OK);
    if (ditto_replica_id(self) == 0)
        variable = created;
    EXPECT(ditto_barrier(self, NULL) == DITTO_OK);
    return add_ones(self, NULL);
}
static void created_in_a_run(void)
{
    run(create_and_add, NULL);
    EXPECT(ditto_strategy_destroy(strategy) == DITTO_OK);
    EXPECT(ditto_variable_destroy(variable) == DITTO_OK);
}

/* -- rows: all replicas add to the same ones -- */

enum { ROWS = 4, COLUMNS = 20 };
static void three_with_rows(void)
{
    ditto_variable_options o = DITTO_VARIABLE_OPTIONS_INIT;
    o.aggregation = DITTO_AGGREGATE_SUM;
    make_variable(&o, DITTO_I32, ROWS, COLUMNS);
}
static ditto_status scatter(ditto_replica *self, void *unused)
{
    int64_t indices[] = { 1, ditto_replica_id(self), 1 };
    int32_t ones[3][COLUMNS];
    const int32_t wanted[ROWS] = { 1, 2 * REPLICAS + 1, 1, 0 };
    const ditto_slices slices = { indices, ones, 3, COLUMNS, DITTO_I32 };
    const void *data;
    (void)unused;
    for (int i = 0; i < 3 * COLUMNS; i++)
        (&ones[0][0])[i] = 1;
    for (int k = 1; k <= 2; k++) {
        EXPECT(ditto_scatter(self, variable, DITTO_SCATTER_ADD, &slices) == DITTO_OK);
        EXPECT(ditto_read(self, variable, &data) == DITTO_OK);
        for (int i = 0; i < ROWS * COLUMNS; i++)
            EXPECT(((const int32_t *)data)[i] == k * wanted[i / COLUMNS]);
        EXPECT(ditto_barrier(self, NULL) == DITTO_OK);
    }
    return DITTO_OK;
}
static void *look_up(void *unused)
{
    const int64_t indices[] = { 2, 1 };
    int32_t found[2][COLUMNS];
    (void)unused;
    EXPECT(ditto_variable_lookup(variable, indices, 2, found, sizeof found) == DITTO_OK);
    for (int i = 0; i < COLUMNS; i++)
        EXPECT(found[0][i] == found[0][0] && found[1][i] == (2 * REPLICAS + 1) * found[0][0]);
    return NULL;
}
static void rows(void)
{
    pthread_t other = thread_of(look_up, NULL);
    run(scatter, NULL);
    join(other);
    look_up(NULL);
    EXPECT(ditto_variable_destroy(variable) == DITTO_OK);
}

/* -- optimizers: x becomes x - the sum of the gradients -- */

enum { MODEL = 2, MOST_WEIGHTS = 600 };
static const size_t weights[MODEL] = { 20, MOST_WEIGHTS };
static ditto_variable *model[MODEL];
static ditto_optimizer *optimizer;

static void make_model(double clip_norm, ditto_partition partition)
{
    ditto_optimizer_options o = DITTO_OPTIMIZER_OPTIONS_INIT;
    ditto_variable_options v = DITTO_VARIABLE_OPTIONS_INIT;
    v.partitioner.kind = partition;
    three();
    for (int k = 0; k < MODEL; k++) {
        const ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { weights[k] } };
        EXPECT(ditto_variable_create(strategy, &zeros, &v, &model[k]) == DITTO_OK);
    }
    o.rule = DITTO_RULE_SUB;
    o.op = DITTO_SUM;
    o.clip_norm = clip_norm;
    EXPECT(ditto_optimizer_create(model, MODEL, &o, &optimizer) == DITTO_OK);
}
static void three_with_an_optimizer(void)
{
    make_model(0, DITTO_PARTITION_DEFAULT);
}
static void three_with_a_clipping_optimizer(void)
{
    make_model(1e6, DITTO_PARTITION_DEFAULT);
}
static void three_with_an_optimizer_of_slices(void)
{
    make_model(0, DITTO_PARTITION_BY_REPLICA);
}

/* Sets the gradients to 1. */
static void gradients_of(float (*data)[MOST_WEIGHTS], ditto_tensor *gradients)
{
    for (int k = 0; k < MODEL; k++) {
        gradients[k] = (ditto_tensor){
            .data = data[k], .dtype = DITTO_F32, .rank = 1, .shape = { weights[k] }
        };
        for (size_t i = 0; i < weights[k]; i++)
            data[k][i] = 1;
    }
}
static void expect_model(ditto_replica *self, float value)
{
    for (int k = 0; k < MODEL; k++) {
        const void *data;
        EXPECT(ditto_read(self, model[k], &data) == DITTO_OK);
        for (size_t i = 0; i < weights[k]; i++)
            EXPECT(((const float *)data)[i] == value);
    }
    EXPECT(ditto_barrier(self, NULL) == DITTO_OK);
}
static ditto_status apply(ditto_replica *self, void *clips)
{
    float data[MODEL][MOST_WEIGHTS];
    ditto_tensor gradients[MODEL];
    ditto_apply_options o = DITTO_APPLY_OPTIONS_INIT;
    double norm = 0;
    o.norm = clips != NULL ? &norm : NULL;
    gradients_of(data, gradients);
    for (int k = 1; k <= 2; k++) {
        EXPECT(ditto_apply(self, optimizer, gradients, &o) == DITTO_OK);
        EXPECT(clips == NULL || norm > 74.6); /* the square root of 620 * 9 */
        expect_model(self, (float)(-REPLICAS * k));
    }
    return DITTO_OK;
}
static ditto_status apply_in_parts(ditto_replica *self, void *unused)
{
    float data[MODEL][MOST_WEIGHTS];
    ditto_tensor gradients[MODEL];
    (void)unused;
    gradients_of(data, gradients);
    for (int k = 1; k <= 2; k++) {
        for (uint32_t part = MODEL; part-- > 0;)
            EXPECT(ditto_apply_start(self, optimizer, part, 1, &gradients[part], NULL) == DITTO_OK);
        EXPECT(ditto_apply_finish(self, optimizer, NULL) == DITTO_OK);
        expect_model(self, (float)(-REPLICAS * k));
    }
    return DITTO_OK;
}

/* Each replica has the gradient of its own slice, which no other one changes. */
static ditto_status apply_to_slices(ditto_replica *self, void *unused)
{
    float data[MODEL][MOST_WEIGHTS];
    ditto_tensor gradients[MODEL], own;
    size_t first;
    (void)unused;
    gradients_of(data, gradients);
    for (int k = 0; k < MODEL; k++) {
        EXPECT(ditto_local_slice(self, model[k], &own, &first) == DITTO_OK);
        gradients[k].shape[0] = own.shape[0];
    }
    for (int step = 1; step <= 2; step++) {
        EXPECT(ditto_apply(self, optimizer, gradients, NULL) == DITTO_OK);
        for (int k = 0; k < MODEL; k++) {
            EXPECT(ditto_local_slice(self, model[k], &own, &first) == DITTO_OK);
            for (size_t i = 0; i < own.shape[0]; i++)
                EXPECT(((const float *)own.data)[i] == (float)-step);
        }
    }
    return DITTO_OK;
}

static void end_model(void)
{
    EXPECT(ditto_optimizer_destroy(optimizer) == DITTO_OK);
    for (int k = 0; k < MODEL; k++)
        EXPECT(ditto_variable_destroy(model[k]) == DITTO_OK);
    EXPECT(ditto_strategy_destroy(strategy) == DITTO_OK);
}
static void optimizers(void)
{
    run(apply, NULL);
    end_model();
}
static void clipping_optimizers(void)
{
    run(apply, optimizer);
    end_model();
}
static void started_steps(void)
{
    run(apply_in_parts, NULL);
    end_model();
}
static void optimizers_of_slices(void)
{
    run(apply_to_slices, NULL);
    end_model();
}

const struct scenario variable_scenarios[] = {
    { .name = "mirrored_variables", .setup = three_with_a_mirrored, .body = mirrored_variables },
    { .name = "variables_with_a_copy_each", .setup = three_with_a_copy_each, .body = mirrored_variables },
    { .name = "sync_on_read_variables", .setup = three_with_a_sync_on_read, .body = sync_on_read_variables },
    { .name = "sliced_variables", .setup = three_with_a_sliced, .body = sliced_variables },
    { .name = "updates", .setup = three_with_a_mirrored, .body = updates },
    { .name = "split_copies", .setup = three_without_aggregation, .body = split_copies },
    { .name = "created_in_a_run", .setup = three, .body = created_in_a_run },
    { .name = "rows", .setup = three_with_rows, .body = rows },
    { .name = "optimizers", .setup = three_with_an_optimizer, .body = optimizers },
    { .name = "clipping_optimizers", .setup = three_with_a_clipping_optimizer, .body = clipping_optimizers },
    { .name = "started_steps", .setup = three_with_an_optimizer, .body = started_steps },
    { .name = "optimizers_of_slices",
      .setup = three_with_an_optimizer_of_slices,
      .body = optimizers_of_slices },
    { 0 },
};
