/* tests/semantics/optimizer/test_clipping.c - ditto_apply: the norm of the gradients of all variables, and
 * clipping by it. */
#include "support/as_hosts.h"
#include "semantics/optimizer/train_variables.h"

#include <math.h>

static double norm_of(uint32_t n, int step)
{
    double squares = 0;
    for (uint32_t k = 0; k < VARIABLES; k++)
        for (size_t i = 0; i < rows[k] * 2; i++)
            squares += summed(step, n, k, i) * summed(step, n, k, i);
    return sqrt(squares); /* the sum is a whole number below 2^53, so it is exact */
}

static void clip_once(uint32_t n, double clip)
{
    static struct training t;
    static double found[5000 * 2];
    ditto_strategy *s = make_strategy(n, NULL);
    t = (struct training){ .dtype = DITTO_F64, .step = 1 };
    create_variables(s, &t);
    assert_ok(ditto_optimizer_create(
        t.variable, VARIABLES,
        &OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .learning_rate = 0.5, .clip_norm = clip), &t.optimizer));
    run_all(s, take_step, &t, &t.report);
    double norm = norm_of(n, 1), factor = norm > clip ? clip / norm : 1;
    for (uint32_t i = first_local(s); i < end_local(s); i++)
        assert_true(t.norm[i] == norm);
    for (uint32_t k = 0; k < VARIABLES; k++) {
        assert_ok(ditto_variable_read(t.variable[k], found, rows[k] * 2 * sizeof found[0]));
        for (size_t i = 0; i < rows[k] * 2; i++)
            assert_true(found[i] == first_value(k, i) - 0.5 * (summed(1, n, k, i) * factor));
    }
    destroy_all(s, &t);
}

static void gradients_are_clipped_by_the_norm_over_all_variables(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        clip_once(replica_counts[k], 2.5);
        clip_once(replica_counts[k], 1e9);
    }
}

/* The squares of these gradients are not exact, so another order of additions would give another norm. */
static ditto_status measure_norm(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    ditto_tensor gradient[VARIABLES];
    uint32_t id = ditto_replica_id(self);
    for (uint32_t k = 0; k < VARIABLES; k++) {
        gradient[k] = spec_of(t->variable[k]);
        DITTO_TRY(ditto_alloc(self, rows[k] * 2 * ditto_dtype_bytes(t->dtype), 64, &gradient[k].data));
        for (size_t i = 0; i < rows[k] * 2; i++)
            put(t->dtype, gradient[k].data, i, 1.0 / (double)(1 + i % 97 + k) + (double)id / 7);
    }
    DITTO_TRY(ditto_apply(self, t->optimizer, gradient, &OPTIONS(apply, .norm = &t->norm[id])));
    for (uint32_t k = 0; k < VARIABLES; k++)
        DITTO_TRY(ditto_free(self, gradient[k].data));
    return DITTO_OK;
}

static double norm_with(uint32_t near, ditto_dtype dtype, float *first)
{
    static struct training t;
    static char value[5000 * 2 * 8];
    ditto_tuning tuning = { .struct_size = sizeof tuning,
                            .hierarchical_bytes = near != 0 ? 1 : SIZE_MAX,
                            .block_bytes = 4096,
                            .near_replicas = near };
    ditto_strategy *s = make_strategy(8, &OPTIONS(strategy, .tuning = &tuning));
    t = (struct training){ .dtype = dtype };
    create_variables(s, &t);
    assert_ok(ditto_optimizer_create(
        t.variable, VARIABLES, &OPTIONS(optimizer, .rule = DITTO_RULE_ADAM, .clip_norm = 3), &t.optimizer));
    for (int i = 0; i < 2; i++)
        run_all(s, measure_norm, &t, &t.report);
    double norm = t.norm[first_local(s)];
    for (uint32_t i = first_local(s); i < end_local(s); i++)
        assert_true(t.norm[i] == norm);
    assert_ok(ditto_variable_read(t.variable[3], value, rows[3] * 2 * ditto_dtype_bytes(dtype)));
    memcpy(first, value, 400);
    destroy_all(s, &t);
    return norm;
}

static void the_norm_has_the_same_bits_with_every_algorithm(void **state)
{
    float owners[100], groups[100];
    for (int wide = 0; wide < 2; wide++) {
        double norm = norm_with(0, wide ? DITTO_F64 : DITTO_F32, owners);
        assert_true(norm > 3);
        for (uint32_t near = 2; near <= 4; near++) {
            assert_true(norm_with(near, wide ? DITTO_F64 : DITTO_F32, groups) == norm);
            assert_memory_equal(owners, groups, sizeof owners);
        }
    }
}

static void the_norm_is_computed_without_clipping_too(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        static struct training t;
        uint32_t n = replica_counts[k];
        struct step_with w = { .t = &t, .options = DITTO_APPLY_OPTIONS_INIT, .asking = n };
        ditto_strategy *s = make_strategy(n, NULL);
        t = (struct training){ .dtype = DITTO_F64, .step = 2 };
        create_variables(s, &t);
        assert_ok(ditto_optimizer_create(t.variable, VARIABLES,
                                         &OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .learning_rate = 0.5),
                                         &t.optimizer));
        assert_ok(ditto_strategy_run(s, take_step_with, &w));
        for (uint32_t i = first_local(s); i < end_local(s); i++)
            assert_true(w.norm[i] == norm_of(n, 2));
        assert_true(value_at(&t, 1, 77) == first_value(1, 77) - 0.5 * summed(2, n, 1, 77));
        if (n > 1) { /* either all replicas must ask for the norm, or none */
            w.asking = 1;
            assert_status(ditto_strategy_run(s, take_step_with, &w), DITTO_ERR_DIVERGED);
        }
        destroy_all(s, &t);
    }
}

static ditto_status ask_for_the_norm(ditto_replica *self, void *argument)
{
    int32_t zero = 0;
    double norm;
    return ditto_apply(self, argument, &(ditto_tensor){ .data = &zero, .dtype = DITTO_I32 },
                       &OPTIONS(apply, .norm = &norm));
}

static void a_norm_of_integers_is_refused(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_optimizer *out;
    ditto_variable *v;
    assert_ok(ditto_variable_create(s, &(ditto_tensor){ .dtype = DITTO_I32 }, NULL, &v));
    assert_ok(ditto_optimizer_create(&v, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_ADD), &out));
    assert_status(ditto_strategy_run(s, ask_for_the_norm, out), DITTO_ERR_UNSUPPORTED);
    assert_message("\"Variable\" is of i32");
    assert_ok(ditto_optimizer_destroy(out));
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_clipped_by_the_norm_over_all_variables),
        cmocka_unit_test(the_norm_has_the_same_bits_with_every_algorithm),
        cmocka_unit_test(the_norm_is_computed_without_clipping_too),
        cmocka_unit_test(a_norm_of_integers_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
