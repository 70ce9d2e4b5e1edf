/* tests/semantics/copies/test_shards.c - docs/semantics.md, rules 8.16 and 8.4: on which nodes shards are
 * placed, and that central storage reports a request for copies, which it ignores. */
#include "semantics/copies/split_variables.h"
#include "support/as_hosts.h"

#include "replicas/team/team_state.h"

#include "vars/vars.h"

/* -- shards -- */

static void rule_8_16_shards_of_all_variables_are_placed_on_the_nodes_in_turn(void **state)
{
    /* Each host has four replicas on two memory nodes of its own. */
    ditto_strategy *s = make_strategy(4 * test_hosts(), NULL);
    struct dti_team *team = dti_team_of(s);
    uint32_t home = team->replica[0].pu.memory_node, on[2] = { 0 };
    for (uint32_t i = 1; i < 4; i++)
        team->replica[i].pu.memory_node = home + (i >= 2);
    ditto_tensor spec = { .dtype = DITTO_F32, .rank = 1, .shape = { 9 } },
                 wrong = { .dtype = DITTO_F32, .rank = 1 };
    ditto_variable *v[3], *whole, *none;
    ditto_variable_options options = OPTIONS(
        variable, .partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 3 });
    for (uint32_t k = 0; k < 3; k++) {
        assert_ok(ditto_variable_create(s, &spec, &options, &v[k]));
        /* Neither a variable without shards nor a creation that fails changes where the next shard goes. */
        assert_ok(ditto_variable_create(s, &spec, NULL, &whole));
        assert_ok(ditto_variable_destroy(whole));
        wrong.dtype = DITTO_I32;
        options.aggregation = DITTO_AGGREGATE_MEAN;
        assert_status(ditto_variable_create(s, &wrong, &options, &none), DITTO_ERR_INVALID);
        options.aggregation = DITTO_AGGREGATE_DEFAULT;
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(v[k]->copy_node[i], home + (3 * k + i) % 2);
            on[v[k]->copy_node[i] - home]++;
        }
    }
    assert_int_equal(on[0], 5); /* not 6 and 3, as if each variable began on the first node */
    assert_int_equal(on[1], 4);
    for (int k = 0; k < 3; k++)
        assert_ok(ditto_variable_destroy(v[k]));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- central storage -- */

static void rule_8_4_a_request_for_copies_that_central_storage_ignores_is_reported(void **state)
{
    ditto_strategy *s;
    char text[400];
    assert_ok(ditto_strategy_create(DITTO_CENTRAL_STORAGE, &OPTIONS(strategy, .num_replicas = 2), &s));
    ditto_variable *requested = make(s, 0, DITTO_AGGREGATE_SUM, DITTO_COPIES_PER_REPLICA);
    ditto_variable *plain = make(s, 0, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
    assert_ok(ditto_variable_describe(requested, text, sizeof text, NULL));
    assert_non_null(strstr(text, "f64 [300], central, SUM"));
    assert_null(strstr(text, "mirrored"));
    assert_non_null(strstr(text, "not used: COPIES_PER_REPLICA"));
    assert_ok(ditto_variable_describe(plain, text, sizeof text, NULL));
    assert_non_null(strstr(text, "central"));
    assert_null(strstr(text, "not used"));
    assert_ok(ditto_variable_destroy(requested));
    assert_ok(ditto_variable_destroy(plain));
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_8_16_shards_of_all_variables_are_placed_on_the_nodes_in_turn),
        cmocka_unit_test(rule_8_4_a_request_for_copies_that_central_storage_ignores_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
