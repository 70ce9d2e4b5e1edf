/* tests/strategy/test_local_replicas.c - on one host, all replicas of a strategy are on this host. */
#include "support/support.h"

struct counted {
    struct report report;
    _Atomic int firsts;
};

static ditto_status count_firsts(ditto_replica *self, void *argument)
{
    struct counted *c = argument;
    int is_first = ditto_replica_is_first_of_host(self);
    EXPECT(&c->report, is_first == (ditto_replica_id(self) == 0));
    c->firsts += is_first;
    return DITTO_OK;
}

static void all_replicas_are_on_this_host(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct counted c = { .firsts = 0 };
        ditto_strategy *s = make_strategy(replica_counts[k], NULL);
        assert_int_equal(properties_of_strategy(s).num_local_replicas, replica_counts[k]);
        assert_int_equal(ditto_strategy_num_replicas(s), replica_counts[k]);
        assert_int_equal(properties_of_strategy(s).first_local_replica, 0);
        run_all(s, count_firsts, &c, &c.report);
        assert_int_equal(c.firsts, 1);
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void without_a_replica_the_answer_is_0(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    assert_ok(ditto_strategy_scope_enter(s));
    assert_int_equal(ditto_replica_is_first_of_host((ditto_replica *)s), 0); /* no handle of this thread */
    assert_ok(ditto_strategy_scope_leave(s));
    assert_ok(ditto_strategy_destroy(s));
}

static void replicas_that_do_not_exist_are_named(void **state)
{
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    ditto_strategy *s = make_strategy(3, NULL);
    assert_ok(ditto_strategy_replica_info(s, 2, 0, &info));
    assert_int_equal(info.planned.replica, 2);
    assert_status(ditto_strategy_replica_info(s, 3, 0, &info), DITTO_ERR_RANGE);
    assert_message("replica 3 does not exist: the strategy has 3");
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_replicas_are_on_this_host),
        cmocka_unit_test(without_a_replica_the_answer_is_0),
        cmocka_unit_test(replicas_that_do_not_exist_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
