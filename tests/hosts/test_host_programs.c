/* tests/hosts/test_host_programs.c - programs with variables, values, input and checkpoints do the same over
 * several hosts as on one, with the same bits. */
#include "support/host_programs.h"

/* -- variables -- */

enum { COUNT = 3000, LARGE = 400000 };

struct variables {
    struct program *program;
    ditto_variable *mirrored, *mean, *first, *sums, *means, *large;
};

static ditto_status write_variables(ditto_replica *self, void *argument)
{
    struct variables *v = argument;
    uint32_t id = ditto_replica_id(self);
    float value[COUNT];
    void *memory;
    const void *read;
    for (int i = 0; i < COUNT; i++)
        value[i] = 1.0f / (float)(1 + i + (int)id * 17);
    DITTO_TRY(ditto_assign(self, v->mirrored, DITTO_ASSIGN_ADD, value));
    DITTO_TRY(ditto_assign(self, v->mean, DITTO_ASSIGN_SUB, value));
    DITTO_TRY(ditto_assign(self, v->first, DITTO_ASSIGN, value));
    DITTO_TRY(ditto_assign(self, v->sums, DITTO_ASSIGN_ADD, value));
    DITTO_TRY(ditto_assign(self, v->means, DITTO_ASSIGN, value));
    DITTO_TRY(ditto_alloc(self, LARGE * sizeof(double), 64, &memory));
    for (int i = 0; i < LARGE; i++)
        ((double *)memory)[i] = 1.0 / (1 + i % 1000 + (int)id);
    DITTO_TRY(ditto_assign(self, v->large, DITTO_ASSIGN_ADD, memory));
    DITTO_TRY(ditto_free(self, memory));
    ditto_variable *const mirrored[] = { v->mirrored, v->mean, v->first };
    for (int k = 0; k < 3; k++) {
        DITTO_TRY(ditto_read(self, mirrored[k], &read));
        note(v->program, id, read, sizeof value);
    }
    DITTO_TRY(ditto_read(self, v->large, &read));
    note(v->program, id, read, 1000 * sizeof(double));
    return ditto_barrier(self, NULL);
}

static ditto_status use_variables(ditto_strategy *strategy, struct program *p)
{
    struct variables v = { .program = p };
    float initial[COUNT], found[COUNT];
    for (int i = 0; i < COUNT; i++) /* only that of the first host counts */
        initial[i] = (float)(properties_of_strategy(strategy).first_local_replica * 1000) + (float)i;
    DITTO_TRY(program_variable(strategy, "m", DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_F32, COUNT, initial,
                               &v.mirrored));
    DITTO_TRY(program_variable(strategy, "mean", DITTO_ON_WRITE, DITTO_AGGREGATE_MEAN, DITTO_F32, COUNT, NULL,
                               &v.mean));
    DITTO_TRY(program_variable(strategy, "first", DITTO_ON_WRITE, DITTO_AGGREGATE_ONLY_FIRST_REPLICA,
                               DITTO_F32, COUNT, NULL, &v.first));
    DITTO_TRY(program_variable(strategy, "sums", DITTO_ON_READ, DITTO_AGGREGATE_SUM, DITTO_F32, COUNT, NULL,
                               &v.sums));
    DITTO_TRY(program_variable(strategy, "means", DITTO_ON_READ, DITTO_AGGREGATE_MEAN, DITTO_F32, COUNT, NULL,
                               &v.means));
    DITTO_TRY(program_variable(strategy, "large", DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_F64, LARGE, NULL,
                               &v.large));
    for (int run = 0; run < 3; run++) {
        DITTO_TRY(ditto_strategy_run(strategy, write_variables, &v));
        ditto_variable *const all[] = { v.mirrored, v.mean, v.first, v.sums, v.means };
        for (int k = 0; k < 5; k++) {
            DITTO_TRY(ditto_variable_read(all[k], found, sizeof found));
            note_cross(strategy, p, found, sizeof found);
        }
        DITTO_TRY(ditto_variable_assign(v.sums, DITTO_ASSIGN, found, sizeof found));
        DITTO_TRY(ditto_variable_assign(v.mean, DITTO_ASSIGN_ADD, found, sizeof found));
    }
    ditto_variable *const all[] = { v.mirrored, v.mean, v.first, v.sums, v.means, v.large };
    for (int k = 0; k < 6; k++)
        DITTO_TRY(ditto_variable_destroy(all[k]));
    return DITTO_OK;
}

static void variables_have_the_same_values(void **state)
{
    play_everywhere(use_variables);
}

/* -- rows -- */

enum { TABLE_ROWS = 40, TABLE_ROW = 6 };

struct table {
    struct program *program;
    ditto_variable *sums, *first, *own;
};

/* The function of an update. */
static ditto_status add_one(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                            void *user, ditto_tensor *result)
{
    float *x = copy->data;
    for (int i = 0; i < TABLE_ROW; i++)
        x[i] += *(const float *)arguments[0].data;
    return DITTO_OK;
}

static ditto_status change_rows(ditto_replica *self, void *argument)
{
    struct table *t = argument;
    uint32_t id = ditto_replica_id(self);
    int64_t index[3] = { id % TABLE_ROWS, 7, (id * 5 + 1) % TABLE_ROWS }, found[2] = { 7, 0 };
    float values[3 * TABLE_ROW], rows[2 * TABLE_ROW], one = 1.0f + (float)id;
    for (int i = 0; i < 3 * TABLE_ROW; i++)
        values[i] = 1.0f / (float)(3 + i + (int)id);
    ditto_slices slices = { index, values, id % 4, TABLE_ROW, DITTO_F32 };
    DITTO_TRY(ditto_scatter(self, t->sums, DITTO_SCATTER_ADD, &slices));
    slices.rows = 2;
    DITTO_TRY(ditto_scatter(self, t->first, DITTO_SCATTER_UPDATE, &slices));
    DITTO_TRY(ditto_lookup(self, t->sums, found, 2, rows));
    note(t->program, id, rows, sizeof rows);
    DITTO_TRY(ditto_lookup(self, t->first, found, 2, rows));
    note(t->program, id, rows, sizeof rows);
    ditto_tensor given = { .data = &one, .dtype = DITTO_F32 };
    return ditto_update(self, t->own, add_one, NULL, &given, 1, NULL);
}

static ditto_status table(ditto_strategy *strategy, const char *name, ditto_aggregation aggregation,
                          ditto_variable **out)
{
    ditto_tensor initial = { .dtype = DITTO_F32, .rank = 2, .shape = { TABLE_ROWS, TABLE_ROW } };
    return ditto_variable_create(strategy, &initial,
                                 &OPTIONS(variable, .name = name, .aggregation = aggregation), out);
}

static ditto_status use_rows(ditto_strategy *strategy, struct program *p)
{
    struct table t = { .program = p };
    float found[TABLE_ROWS * TABLE_ROW];
    int64_t index = 3;
    ditto_slices slices = { &index, found, 1, TABLE_ROW, DITTO_F32 };
    DITTO_TRY(table(strategy, "sums", DITTO_AGGREGATE_SUM, &t.sums));
    DITTO_TRY(table(strategy, "first", DITTO_AGGREGATE_ONLY_FIRST_REPLICA, &t.first));
    DITTO_TRY(program_variable(strategy, "own", DITTO_ON_READ, DITTO_AGGREGATE_SUM, DITTO_F32, TABLE_ROW,
                               NULL, &t.own));
    for (int run = 0; run < 3; run++) {
        DITTO_TRY(ditto_strategy_run(strategy, change_rows, &t));
        DITTO_TRY(ditto_variable_read(t.own, found, TABLE_ROW * sizeof found[0]));
        note_cross(strategy, p, found, TABLE_ROW * sizeof found[0]);
        DITTO_TRY(ditto_variable_scatter(t.sums, DITTO_SCATTER_SUB, &slices));
        DITTO_TRY(ditto_variable_read(t.sums, found, sizeof found));
        note_cross(strategy, p, found, sizeof found);
    }
    DITTO_TRY(ditto_variable_destroy(t.sums));
    DITTO_TRY(ditto_variable_destroy(t.first));
    return ditto_variable_destroy(t.own);
}

static void rows_are_changed_by_the_replicas_of_all_hosts(void **state)
{
    play_everywhere(use_rows);
}

/* -- merge calls, values and reductions -- */

static ditto_status merge(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count, void *user,
                          ditto_value **result)
{
    struct program *p = user;
    double sum;
    ditto_value *gathered;
    ditto_tensor all;
    DITTO_TRY(ditto_strategy_reduce_f64(strategy, DITTO_SUM, arguments[0], &sum));
    note_cross(strategy, p, &sum, sizeof sum);
    DITTO_TRY(ditto_strategy_gather(strategy, arguments[1], 0, &gathered));
    DITTO_TRY(ditto_value_tensor(gathered, &all));
    note_cross(strategy, p, all.data, ditto_tensor_bytes(&all));
    DITTO_TRY(ditto_value_destroy(gathered));
    return ditto_strategy_reduce(strategy, DITTO_MEAN, arguments[1], NULL, 0, result);
}

static ditto_status merge_and_return(ditto_replica *self, void *argument)
{
    struct program *p = argument;
    uint32_t id = ditto_replica_id(self);
    double x = 1.0 / (3 + id), rows[4] = { x, 2 * x, 3 * x, x * x };
    const ditto_value *merged;
    ditto_tensor found, gathered;
    ditto_tensor arguments[2] = { { .data = &x, .dtype = DITTO_F64 },
                                  { .data = rows, .dtype = DITTO_F64, .rank = 2, .shape = { 1, 4 } } };
    DITTO_TRY(ditto_merge_call(self, merge, p, arguments, 2, &merged));
    DITTO_TRY(ditto_local(self, merged, &found));
    note(p, id, found.data, ditto_tensor_bytes(&found));
    DITTO_TRY(ditto_all_gather_tensor(self, &arguments[1], 0, &gathered));
    note(p, id, gathered.data, ditto_tensor_bytes(&gathered));
    return ditto_free(self, gathered.data);
}

static ditto_status note_gathered(ditto_strategy *strategy, struct program *p, const ditto_value *value)
{
    ditto_value *gathered;
    ditto_tensor all;
    DITTO_TRY(ditto_strategy_gather(strategy, value, 0, &gathered));
    DITTO_TRY(ditto_value_tensor(gathered, &all));
    note_cross(strategy, p, all.data, ditto_tensor_bytes(&all));
    return ditto_value_destroy(gathered);
}

static ditto_status return_two(ditto_replica *self, void *argument)
{
    DITTO_TRY(ditto_return_f64(self, "id", ditto_replica_id(self)));
    return ditto_return_f64(self, "third", 1.0 / (3 + ditto_replica_id(self)));
}

/* A value that is the same for all replicas is gathered once for each replica of all hosts. */
static ditto_status use_values(ditto_strategy *strategy, struct program *p)
{
    double numbers[3] = { 0.1, 0.2, 0.3 }, sum;
    ditto_tensor three = { .data = numbers, .dtype = DITTO_F64, .rank = 1, .shape = { 3 } };
    ditto_result_op reduced[] = { { .name = "third", .op = DITTO_SUM } };
    ditto_variable *v;
    ditto_value *of, *mirrored, *results;
    const ditto_value *third;
    for (int run = 0; run < 3; run++)
        DITTO_TRY(ditto_strategy_run(strategy, merge_and_return, p));
    DITTO_TRY(program_variable(strategy, "v", DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_F64, 3, NULL, &v));
    DITTO_TRY(ditto_variable_value(v, &of));
    DITTO_TRY(ditto_strategy_broadcast_to(strategy, &three, (ditto_destination){ .of = of }, &mirrored));
    DITTO_TRY(note_gathered(strategy, p, mirrored));
    DITTO_TRY(ditto_strategy_run_values(strategy, return_two, NULL, NULL,
                                        &OPTIONS(run, .reduce = reduced, .num_reduce = 1), &results));
    DITTO_TRY(ditto_value_member(results, "third", &third));
    DITTO_TRY(ditto_strategy_reduce_f64(strategy, DITTO_MEAN, third, &sum));
    note_cross(strategy, p, &sum, sizeof sum);
    DITTO_TRY(ditto_value_destroy(results));
    DITTO_TRY(ditto_value_destroy(mirrored));
    DITTO_TRY(ditto_value_destroy(of));
    return ditto_variable_destroy(v);
}

static void values_are_reduced_over_all_hosts(void **state)
{
    play_everywhere(use_values);
}

/* -- input and optimizers -- */

enum { ROWS = 100, FEATURES = 50, BATCH = 16 };
static float rows[ROWS * FEATURES];

struct training {
    struct program *program;
    ditto_iterator *iterator;
    ditto_variable *weights;
    ditto_optimizer *optimizer;
};

static ditto_status train(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    uint32_t id = ditto_replica_id(self);
    ditto_batch batch;
    ditto_status status;
    while ((status = ditto_next(self, t->iterator, &batch)) == DITTO_OK) {
        float gradient[FEATURES] = { 0 };
        const float *x = batch.component[0].data;
        const void *weights;
        DITTO_TRY(ditto_read(self, t->weights, &weights));
        for (uint64_t r = 0; r < batch.rows; r++)
            for (int i = 0; i < FEATURES; i++)
                gradient[i] += x[r * FEATURES + (uint64_t)i] - ((const float *)weights)[i];
        note(t->program, id, x, batch.rows * FEATURES * sizeof *x);
        ditto_tensor g = { .data = gradient, .dtype = DITTO_F32, .rank = 1, .shape = { FEATURES } };
        double norm;
        DITTO_TRY(ditto_apply(self, t->optimizer, &g, &OPTIONS(apply, .learning_rate = 0.1, .norm = &norm)));
        note(t->program, id, &norm, sizeof norm);
    }
    return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
}

/* The last batch has rows for some replicas alone. */
static ditto_status take_as_values(ditto_strategy *strategy, struct program *p, ditto_iterator *iterator)
{
    ditto_value *batch;
    ditto_status status;
    while ((status = ditto_iterator_next(iterator, &batch)) == DITTO_OK) {
        DITTO_TRY(note_gathered(strategy, p, batch));
        DITTO_TRY(ditto_value_destroy(batch));
    }
    note_cross(strategy, p, &status, sizeof status);
    return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
}

static ditto_status use_input(ditto_strategy *strategy, struct program *p)
{
    struct training t = { .program = p };
    ditto_tensor data = { .data = rows, .dtype = DITTO_F32, .rank = 2, .shape = { ROWS, FEATURES } };
    ditto_dataset *from, *shuffled, *batched;
    ditto_variable *slot;
    float found[FEATURES];
    DITTO_TRY(ditto_dataset_from_arrays(&data, 1, &from));
    DITTO_TRY(ditto_dataset_shuffle(from, &OPTIONS(shuffle, .seed = 5), &shuffled));
    DITTO_TRY(ditto_dataset_batch(shuffled, BATCH, 0, &batched));
    DITTO_TRY(program_variable(strategy, "w", DITTO_ON_WRITE, DITTO_AGGREGATE_MEAN, DITTO_F32, FEATURES, NULL,
                               &t.weights));
    ditto_optimizer_options options = OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .momentum = 0.9,
                                              .op = DITTO_MEAN, .clip_norm = 1.5);
    DITTO_TRY(ditto_optimizer_create(&t.weights, 1, &options, &t.optimizer));
    for (int pass = 0; pass < 3; pass++) {
        DITTO_TRY(ditto_strategy_iterate(strategy, batched, NULL, &t.iterator));
        DITTO_TRY(ditto_strategy_run(strategy, train, &t));
        DITTO_TRY(ditto_iterator_destroy(t.iterator));
        DITTO_TRY(ditto_variable_read(t.weights, found, sizeof found));
        note_cross(strategy, p, found, sizeof found);
    }
    DITTO_TRY(ditto_strategy_iterate(strategy, batched, NULL, &t.iterator));
    DITTO_TRY(take_as_values(strategy, p, t.iterator));
    DITTO_TRY(ditto_iterator_destroy(t.iterator));
    DITTO_TRY(ditto_optimizer_slot(t.optimizer, 0, "momentum", &slot));
    DITTO_TRY(ditto_variable_read(slot, found, sizeof found));
    note_cross(strategy, p, found, sizeof found);
    DITTO_TRY(ditto_optimizer_destroy(t.optimizer));
    DITTO_TRY(ditto_variable_destroy(t.weights));
    DITTO_TRY(ditto_dataset_destroy(batched));
    DITTO_TRY(ditto_dataset_destroy(shuffled));
    return ditto_dataset_destroy(from);
}

static void replicas_get_the_same_rows_and_learn_the_same(void **state)
{
    for (int i = 0; i < ROWS * FEATURES; i++)
        rows[i] = (float)(i % 97) / 97.0f;
    play_everywhere(use_input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_have_the_same_values),
        cmocka_unit_test(rows_are_changed_by_the_replicas_of_all_hosts),
        cmocka_unit_test(values_are_reduced_over_all_hosts),
        cmocka_unit_test(replicas_get_the_same_rows_and_learn_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
