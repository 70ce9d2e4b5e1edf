/* tests/semantics/optimizer/train_variables.c - see train_variables.h. */
#include "semantics/optimizer/train_variables.h"

const size_t rows[VARIABLES] = { 1, 300, 7, 5000 };

double gradient_of(int step, uint32_t replica, uint32_t k, size_t i)
{
    return (double)((step * 7 + (int)replica * 5 + (int)k * 3 + (int)(i % 1000) * 11) % 17 - 8);
}

double summed(int step, uint32_t n, uint32_t k, size_t i)
{
    double sum = 0;
    for (uint32_t r = 0; r < n; r++)
        sum += gradient_of(step, r, k, i);
    return sum;
}

double first_value(uint32_t k, size_t i)
{
    return 0.25 * (double)((i + k) % 9) - 1;
}

void put(ditto_dtype dtype, void *array, size_t i, double x)
{
    if (dtype == DITTO_F32)
        ((float *)array)[i] = (float)x;
    else
        ((double *)array)[i] = x;
}

double get(ditto_dtype dtype, const void *array, size_t i)
{
    return dtype == DITTO_F32 ? (double)((const float *)array)[i] : ((const double *)array)[i];
}

ditto_status take_step(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    ditto_tensor gradient[VARIABLES];
    uint32_t id = ditto_replica_id(self);
    size_t bytes = ditto_dtype_bytes(t->dtype);
    for (uint32_t k = 0; k < VARIABLES; k++) {
        gradient[k] = spec_of(t->variable[k]);
        DITTO_TRY(ditto_alloc(self, rows[k] * 2 * bytes, 64, &gradient[k].data));
        for (size_t i = 0; i < rows[k] * 2; i++)
            put(t->dtype, gradient[k].data, i, gradient_of(t->step, id, k, i));
    }
    ditto_apply_options options = OPTIONS(apply, .norm = &t->norm[id]);
    uint64_t before = generation_of(t->variable[1]);
    DITTO_TRY(ditto_apply(self, t->optimizer, gradient, &options));
    EXPECT(&t->report, generation_of(t->variable[1]) == before + 1);
    for (uint32_t k = 0; k < VARIABLES; k++)
        DITTO_TRY(ditto_free(self, gradient[k].data));
    return DITTO_OK;
}

void create_variables(ditto_strategy *s, struct training *t)
{
    static char initial[5000 * 2 * 8];
    static const char *const names[] = { "a", "b/c", "d", "e" };
    for (uint32_t k = 0; k < VARIABLES; k++) {
        ditto_tensor tensor = { .data = initial, .dtype = t->dtype, .rank = 2, .shape = { rows[k], 2 } };
        for (size_t i = 0; i < rows[k] * 2; i++)
            put(t->dtype, initial, i, first_value(k, i));
        ditto_variable_options options = OPTIONS(variable, .name = names[k]);
        if (k == 1)
            options.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 3 };
        if (k == 2)
            options.copies = DITTO_COPIES_PER_REPLICA;
        assert_ok(ditto_variable_create(s, &tensor, &options, &t->variable[k]));
    }
}

void destroy_all(ditto_strategy *s, struct training *t)
{
    assert_status(ditto_variable_destroy(t->variable[0]), DITTO_ERR_BUSY);
    assert_ok(ditto_optimizer_destroy(t->optimizer));
    for (uint32_t k = 0; k < VARIABLES; k++)
        assert_ok(ditto_variable_destroy(t->variable[k]));
    assert_ok(ditto_strategy_destroy(s));
}

ditto_status take_step_with(ditto_replica *self, void *argument)
{
    struct step_with *w = argument;
    struct training *t = w->t;
    ditto_tensor gradient[VARIABLES];
    ditto_apply_options options = w->options;
    uint32_t id = ditto_replica_id(self);
    for (uint32_t k = 0; k < VARIABLES; k++) {
        gradient[k] = spec_of(t->variable[k]);
        DITTO_TRY(ditto_alloc(self, rows[k] * 2 * ditto_dtype_bytes(t->dtype), 64, &gradient[k].data));
        for (size_t i = 0; i < rows[k] * 2; i++)
            put(t->dtype, gradient[k].data, i, gradient_of(t->step, id, k, i));
    }
    options.norm = id < w->asking ? &w->norm[id] : NULL;
    return ditto_apply(self, t->optimizer, gradient, &options);
}

double value_at(struct training *t, uint32_t k, size_t i)
{
    static double values[5000 * 2];
    assert_ok(ditto_variable_read(t->variable[k], values, rows[k] * 2 * ditto_dtype_bytes(t->dtype)));
    return get(t->dtype, values, i);
}
