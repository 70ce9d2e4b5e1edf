/* tests/semantics/reductions/test_destinations.c - docs/semantics.md, rules 4.6 and 4.7: reductions that are
 * stored at destinations, and broadcast_to. */
#include "support/as_hosts.h"
#include "semantics/reductions/make_values.h"

#include "values/values.h"

static ditto_variable *make_variable(ditto_strategy *strategy, ditto_copies copies)
{
    double zeros[2] = { 0 };
    ditto_tensor t = { .data = zeros, .dtype = DITTO_F64, .rank = 1, .shape = { 2 } };
    ditto_variable *variable;
    assert_ok(ditto_variable_create(
        strategy, &t, &OPTIONS(variable, .aggregation = DITTO_AGGREGATE_SUM, .copies = copies), &variable));
    return variable;
}

static void expect_vector(const ditto_value *value, uint32_t replica, double x, double y)
{
    ditto_tensor t;
    assert_ok(ditto_value_component(value, replica, &t));
    assert_true(t.shape[0] == 2 && ((double *)t.data)[0] == x && ((double *)t.data)[1] == y);
}

static void rule_4_6_a_reduction_is_stored_where_its_destination_is(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *strategy = make_strategy(n, NULL);
        size_t rows[64];
        for (uint32_t r = 0; r < n; r++)
            rows[r] = 2;
        double x = (double)n * (n - 1), y = x + n, old[2]; /* 0 + 2 + 4 ..., 1 + 3 + 5 ... */
        ditto_value *value = counting(strategy, rows), *all, *one, *shared, *to_variable;
        ditto_variable *variable = make_variable(strategy, DITTO_COPIES_PER_REPLICA);
        assert_ok(ditto_variable_value(variable, &to_variable));
        assert_ok(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ value },
                                           &(ditto_destination){ .of = value }, 1, &all));
        assert_int_equal(properties_of_value(all).kind, DITTO_VALUE_MIRRORED);
        ditto_tensor a, b;
        uint32_t first = first_local(strategy), end = end_local(strategy);
        for (uint32_t r = first; r < end; r++) {
            expect_vector(all, r, x, y);
            assert_ok(ditto_value_component(all, r, &a));
            assert_ok(ditto_value_component(all, first, &b));
            assert_true(r == first || a.data != b.data); /* each replica has its own */
        }
        assert_ok(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ value },
                                           &(ditto_destination){ .replica = n - 1 }, 1, &one));
        if (end == n)
            expect_vector(one, first, x, y);
        else /* no replica of this host has a component */
            assert_status(ditto_value_component(one, first, &a), DITTO_ERR_RANGE);
        for (uint32_t r = first; r < end; r++) /* only replica n - 1 has a component */
            assert_int_equal(one->part[r - first].rank == DTI_NO_PART, r != n - 1);
        assert_ok(ditto_strategy_reduce_to(strategy, DITTO_MEAN, (const ditto_value *[]){ value },
                                           &(ditto_destination){ .of = to_variable }, 1, &shared));
        expect_vector(shared, end - 1, x / n, y / n);
        assert_ok(ditto_variable_read(variable, old, sizeof old));
        assert_true(old[0] == 0 && old[1] == 0); /* the variable itself is not changed */
        ditto_value *made[] = { all, one, shared, to_variable, value };
        for (int i = 0; i < 5; i++)
            assert_ok(ditto_value_destroy(made[i]));
        assert_ok(ditto_variable_destroy(variable));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void rule_4_6_a_batch_gives_the_results_of_single_calls_in_order(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    ditto_value *a = counting(strategy, (const size_t[]){ 2, 2, 2 }),
                *b = counting(strategy, (const size_t[]){ 5, 5, 5 });
    ditto_value *out[2] = { NULL }, *single;
    ditto_destination places[2] = { { .of = a }, { .replica = 2 } };
    ditto_tensor t, s;
    assert_ok(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ a, b }, places, 2, out));
    for (int i = 0; i < 2; i++) {
        assert_ok(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ i == 0 ? a : b },
                                           &places[i], 1, &single));
        if (i == 0 || end_local(strategy) == 3) {
            assert_ok(ditto_value_tensor(out[i], &t));
            assert_ok(ditto_value_tensor(single, &s));
            assert_int_equal(ditto_tensor_bytes(&t), ditto_tensor_bytes(&s));
            assert_memory_equal(t.data, s.data, ditto_tensor_bytes(&t));
        } else { /* replica 2, to which it goes, is on another host */
            assert_status(ditto_value_tensor(out[i], &t), DITTO_ERR_RANGE);
        }
        assert_ok(ditto_value_destroy(single));
        assert_ok(ditto_value_destroy(out[i]));
        out[i] = NULL;
    }
    assert_status(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ a }, places, 0, out),
                  DITTO_ERR_INVALID);
    ditto_value *uneven = counting(strategy, (const size_t[]){ 1, 2, 2 });
    assert_status(
        ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ a, uneven }, places, 2, out),
        DITTO_ERR_SHAPE);
    assert_null(out[0]); /* no output is set */
    places[1].replica = 3;
    assert_status(
        ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ a, b }, places, 2, out),
        DITTO_ERR_RANGE);
    assert_ok(ditto_value_destroy(a));
    assert_ok(ditto_value_destroy(b));
    assert_ok(ditto_value_destroy(uneven));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_4_7_broadcast_to_makes_one_copy_per_destination(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    double pair[] = { 8, 9 };
    ditto_tensor t = { .data = pair, .dtype = DITTO_F64, .rank = 1, .shape = { 2 } }, a, b;
    ditto_value *like = counting(strategy, (const size_t[]){ 1, 1, 1 }), *mirrored;
    assert_ok(ditto_strategy_broadcast_to(strategy, &t, (ditto_destination){ .of = like }, &mirrored));
    for (uint32_t r = first_local(strategy); r < end_local(strategy); r++) {
        expect_vector(mirrored, r, 8, 9);
        assert_ok(ditto_value_component(mirrored, r, &a));
        assert_ok(ditto_value_component(mirrored, end_local(strategy) - 1, &b));
        assert_true((a.data != b.data || r == end_local(strategy) - 1) && a.data != pair);
    }
    assert_ok(ditto_value_destroy(mirrored));
    assert_ok(ditto_value_destroy(like));
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_4_6_a_reduction_is_stored_where_its_destination_is),
        cmocka_unit_test(rule_4_6_a_batch_gives_the_results_of_single_calls_in_order),
        cmocka_unit_test(rule_4_7_broadcast_to_makes_one_copy_per_destination),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
