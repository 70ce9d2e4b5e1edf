/* tests/hosts/test_host_updates.c - functions that update variables, variables whose components differ,
 * slices of all replicas, and norms do the same over several hosts as on one, with the same bits. */
#include "support/host_programs.h"

enum { COUNT = 500, ROWS = 30, ROW = 3 };

struct updates {
    struct program *program;
    ditto_variable *shared, *each;
    ditto_optimizer *optimizer;
};

/* -- updates in a run -- */

/* copy += the first argument x the one element of the second. The result is the first element. */
static ditto_status add_scaled(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                               void *user, ditto_tensor *result)
{
    static _Thread_local float first;
    float *x = copy->data;
    for (int i = 0; i < COUNT; i++)
        x[i] += ((const float *)arguments[0].data)[i] * *(const float *)arguments[1].data;
    first = x[0];
    *result = (ditto_tensor){ .data = &first, .dtype = DITTO_F32 };
    return DITTO_OK;
}

static ditto_status note_variable(ditto_replica *self, struct program *p, ditto_variable *v)
{
    const void *read;
    DITTO_TRY(ditto_read(self, v, &read));
    note(p, ditto_replica_id(self), read, COUNT * sizeof(float));
    return ditto_barrier(self, NULL);
}

static ditto_status update_in_run(ditto_replica *self, void *argument)
{
    struct updates *u = argument;
    uint32_t id = ditto_replica_id(self);
    float values[COUNT], factor = 0.5f + (float)id;
    ditto_tensor result;
    for (int i = 0; i < COUNT; i++)
        values[i] = 1.0f / (float)(3 + i + (int)id * 7);
    ditto_tensor arguments[2] = {
        { .data = values, .dtype = DITTO_F32, .rank = 1, .shape = { COUNT } },
        { .data = &factor, .dtype = DITTO_F32 },
    };
    DITTO_TRY(ditto_update(self, u->shared, add_scaled, NULL, arguments, 2, &result));
    note(u->program, id, result.data, sizeof(float));
    DITTO_TRY(ditto_free(self, result.data));
    DITTO_TRY(note_variable(self, u->program, u->shared));
    DITTO_TRY(ditto_update(self, u->each, add_scaled, NULL, arguments, 2, NULL));
    DITTO_TRY(note_variable(self, u->program, u->each));
    /* Components that differ are changed each from its own value, and then made equal. */
    DITTO_TRY(ditto_assign(self, u->each, DITTO_ASSIGN_ADD, values));
    DITTO_TRY(note_variable(self, u->program, u->each));
    DITTO_TRY(ditto_assign(self, u->each, DITTO_ASSIGN, values));
    return note_variable(self, u->program, u->each);
}

static ditto_status use_updates(ditto_strategy *strategy, struct program *p)
{
    struct updates u = { .program = p };
    ditto_tensor spec = { .dtype = DITTO_F32, .rank = 1, .shape = { COUNT } };
    ditto_variable_options options = OPTIONS(variable, .name = "each", .aggregation = DITTO_AGGREGATE_SUM,
                                             .copies = DITTO_COPIES_PER_REPLICA);
    DITTO_TRY(program_variable(strategy, "shared", DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_F32, COUNT,
                               NULL, &u.shared));
    DITTO_TRY(ditto_variable_create(strategy, &spec, &options, &u.each));
    for (int run = 0; run < 3; run++)
        DITTO_TRY(ditto_strategy_run(strategy, update_in_run, &u));
    DITTO_TRY(ditto_variable_destroy(u.each));
    return ditto_variable_destroy(u.shared);
}

static void updates_in_a_run_have_the_arguments_that_one_host_uses(void **state)
{
    play_everywhere(use_updates);
}

/* -- slices -- */

static ditto_status return_rows(ditto_replica *self, void *argument)
{
    uint32_t id = ditto_replica_id(self);
    float values[4 * ROW];
    int64_t indices[4];
    for (int i = 0; i < 4; i++)
        indices[i] = (id * 5 + (uint32_t)i * 3) % ROWS;
    for (int i = 0; i < 4 * ROW; i++)
        values[i] = 1.0f / (float)(1 + i + (int)id);
    ditto_slices slices = {
        .indices = indices, .values = values, .rows = 1 + id % 4, .row_count = ROW, .dtype = DITTO_F32
    };
    return ditto_return_slices(self, NULL, &slices, ROWS);
}

static ditto_status note_slices(ditto_strategy *strategy, struct program *p, const ditto_value *value)
{
    ditto_slices slices;
    DITTO_TRY(ditto_value_slices(value, properties_of_strategy(strategy).first_local_replica, &slices, NULL));
    note_cross(strategy, p, slices.indices, slices.rows * sizeof *slices.indices);
    note_cross(strategy, p, slices.values, slices.rows * ROW * sizeof(float));
    return DITTO_OK;
}

static ditto_status use_slices(ditto_strategy *strategy, struct program *p)
{
    ditto_value *rows, *joined, *merged, *dense;
    ditto_tensor component;
    for (int run = 0; run < 3; run++) {
        DITTO_TRY(ditto_strategy_run_values(strategy, return_rows, NULL, NULL, NULL, &rows));
        DITTO_TRY(ditto_strategy_reduce(strategy, DITTO_MEAN, rows, NULL, 0, &joined));
        DITTO_TRY(note_slices(strategy, p, joined));
        DITTO_TRY(ditto_strategy_merge_slices(strategy, rows, &merged));
        DITTO_TRY(note_slices(strategy, p, merged));
        DITTO_TRY(ditto_value_destroy(merged));
        DITTO_TRY(ditto_strategy_merge_slices(strategy, joined, &merged));
        DITTO_TRY(note_slices(strategy, p, merged));
        DITTO_TRY(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ rows },
                                           &(ditto_destination){ .replica = 0 }, 1, &dense));
        if (properties_of_strategy(strategy).first_local_replica == 0) {
            DITTO_TRY(ditto_value_component(dense, 0, &component));
            note_cross(strategy, p, component.data, ditto_tensor_bytes(&component));
        }
        ditto_value *const all[] = { dense, merged, joined, rows };
        for (int i = 0; i < 4; i++)
            DITTO_TRY(ditto_value_destroy(all[i]));
    }
    return DITTO_OK;
}

static void slices_of_all_hosts_are_reduced(void **state)
{
    play_everywhere(use_slices);
}

/* -- norms of gradients that are not clipped -- */

static ditto_status apply(ditto_replica *self, void *argument)
{
    struct updates *u = argument;
    uint32_t id = ditto_replica_id(self);
    float gradient[2 * COUNT];
    double norm;
    for (int i = 0; i < 2 * COUNT; i++)
        gradient[i] = 1.0f / (float)(2 + i + (int)id * 3);
    ditto_tensor g[2] = { { .data = gradient, .dtype = DITTO_F32, .rank = 1, .shape = { COUNT } },
                          { .data = gradient + COUNT, .dtype = DITTO_F32, .rank = 1, .shape = { COUNT } } };
    ditto_apply_options options = OPTIONS(apply, .learning_rate = 0.1, .norm = &norm);
    for (int i = 0; i < 3; i++) {
        DITTO_TRY(ditto_apply(self, u->optimizer, g, &options));
        note(u->program, id, &norm, sizeof norm);
    }
    return note_variable(self, u->program, u->shared);
}

static ditto_status use_norm(ditto_strategy *strategy, struct program *p)
{
    struct updates u = { .program = p };
    DITTO_TRY(program_variable(strategy, "w", DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_F32, COUNT, NULL,
                               &u.shared));
    DITTO_TRY(program_variable(strategy, "b", DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_F32, COUNT, NULL,
                               &u.each));
    ditto_variable *both[] = { u.shared, u.each };
    DITTO_TRY(ditto_optimizer_create(both, 2, &OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .op = DITTO_SUM),
                                     &u.optimizer));
    DITTO_TRY(ditto_strategy_run(strategy, apply, &u));
    DITTO_TRY(ditto_optimizer_destroy(u.optimizer));
    DITTO_TRY(ditto_variable_destroy(u.each));
    return ditto_variable_destroy(u.shared);
}

static void norms_have_the_same_bits_without_clipping(void **state)
{
    play_everywhere(use_norm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_in_a_run_have_the_arguments_that_one_host_uses),
        cmocka_unit_test(slices_of_all_hosts_are_reduced),
        cmocka_unit_test(norms_have_the_same_bits_without_clipping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
