/* tests/strategy/test_environment.c - PUs of replicas and the binding of threads, which options of a strategy
 * or the environment give (docs/environment.md). */
#include "support/support.h"

/* Returns the number of PUs that this process may use. */
static uint32_t usable_pus(void)
{
    ditto_topology *topology;
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    assert_ok(ditto_topology_create(NULL, &topology));
    assert_ok(ditto_topology_count(topology, &counts));
    assert_ok(ditto_topology_destroy(topology));
    return counts.pus;
}

static void set_pus(uint32_t pus)
{
    char text[16];
    snprintf(text, sizeof text, "%u", pus);
    setenv("DITTO_PUS_PER_REPLICA", text, 1);
}

static int clear_environment(void **state)
{
    unsetenv("DITTO_PUS_PER_REPLICA");
    unsetenv("DITTO_PIN");
    return 0;
}

static void expect_refusal(ditto_strategy_kind kind, const ditto_strategy_options *options,
                           ditto_status status, const char *words)
{
    ditto_strategy *s = NULL;
    assert_status(ditto_strategy_create(kind, options, &s), status);
    assert_message(words);
    assert_null(s);
}

/* -- PUs of replicas -- */

/* Fails the test unless a strategy with these options has `replicas` replicas of `pus` PUs. */
static void expect_size(ditto_strategy_kind kind, const ditto_strategy_options *options, uint32_t replicas,
                        uint32_t pus)
{
    ditto_strategy *s;
    assert_ok(ditto_strategy_create(kind, options, &s));
    const ditto_placement *placement = properties_of_strategy(s).placement;
    assert_int_equal(ditto_placement_num_replicas(placement), replicas);
    for (uint32_t i = 0; i < replicas; i++)
        assert_int_equal(ditto_placement_num_devices(placement, i), pus);
    assert_ok(ditto_strategy_destroy(s));
}

static void an_option_gives_each_replica_its_pus(void **state)
{
    uint32_t all = usable_pus();
    expect_size(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 3, .pus_per_replica = all), 3, all);
    expect_size(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 2, .pus_per_replica = 1), 2, 1);
    expect_size(DITTO_MIRRORED, &OPTIONS(strategy, .pus_per_replica = all), 1, all);
    expect_size(DITTO_ONE_DEVICE, &OPTIONS(strategy, .pus_per_replica = 1), 1, 1);
    expect_size(DITTO_PARAMETER_SERVER, &OPTIONS(strategy, .num_replicas = 2, .pus_per_replica = all), 2,
                all);
    ditto_placement_options placing = OPTIONS(placement, .num_replicas = 1, .pus_per_replica = all);
    expect_size(DITTO_MIRRORED, &OPTIONS(strategy, .placement_options = &placing), 1, all);
}

static void the_environment_gives_pus_where_the_program_does_not(void **state)
{
    uint32_t all = usable_pus();
    ditto_placement_options compact = OPTIONS(placement, .policy = DITTO_PLACEMENT_COMPACT);
    ditto_placement_options shaped = OPTIONS(placement, .shape = (int64_t[]){ 1, 1, 1, 1 }, .shape_rank = 4);
    set_pus(all);
    expect_size(DITTO_MIRRORED, NULL, 1, all);
    expect_size(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 2), 2, all);
    expect_size(DITTO_ONE_DEVICE, NULL, 1, all);
    expect_size(DITTO_MIRRORED, &OPTIONS(strategy, .placement_options = &compact), 1, all);
    expect_size(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 1, .pus_per_replica = 1), 1, 1);
    expect_size(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 1, .span = DITTO_SPAN_PU), 1, 1);
    expect_size(DITTO_MIRRORED, &OPTIONS(strategy, .placement_options = &shaped), 1, 1);
    set_pus(1);
    expect_size(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 1, .span = DITTO_SPAN_MACHINE), 1, all);
}

static void wrong_numbers_of_pus_are_errors(void **state)
{
    static const char *const wrong[] = { "", "0", "-1", "2x", "1.5", "8193", "99999999999999999999" };
    uint32_t all = usable_pus();
    ditto_placement_options placing = OPTIONS(placement, .num_replicas = 1);
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = 1, .pus_per_replica = 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv("DITTO_PUS_PER_REPLICA", wrong[i], 1);
        expect_refusal(DITTO_MIRRORED, NULL, DITTO_ERR_INVALID, "DITTO_PUS_PER_REPLICA is \"");
        /* A wrong value is an error even if an option wins over it. */
        expect_refusal(DITTO_MIRRORED, &options, DITTO_ERR_INVALID, "it must be a number of PUs, 1 to 8192");
    }
    set_pus(all + 1);
    expect_refusal(DITTO_MIRRORED, NULL, DITTO_ERR_RANGE,
                   "with the environment variable DITTO_PUS_PER_REPLICA: pus_per_replica = ");
    clear_environment(NULL);
    options.pus_per_replica = UINT32_MAX;
    expect_refusal(DITTO_MIRRORED, &options, DITTO_ERR_RANGE, "pus_per_replica = 4294967295, but there are ");
    options.pus_per_replica = 1;
    options.span = DITTO_SPAN_CORE;
    expect_refusal(DITTO_MIRRORED, &options, DITTO_ERR_INVALID,
                   "more than one of pus, span, pus_per_replica");
    options = OPTIONS(strategy, .pus_per_replica = 1, .placement_options = &placing);
    expect_refusal(DITTO_MIRRORED, &options, DITTO_ERR_INVALID,
                   "pus_per_replica and placement_options are both set");
}

struct wide {
    struct report report;
    uint32_t pus;
    uint32_t visits[64];
};

static ditto_status visit(size_t begin, size_t end, uint32_t device, void *argument)
{
    struct wide *w = argument;
    w->visits[device % 64] += (uint32_t)(end - begin);
    return DITTO_OK;
}

static ditto_status loop_on_all_pus(ditto_replica *self, void *argument)
{
    struct wide *w = argument;
    float sum = 1;
    EXPECT(&w->report, ditto_num_logical_devices(self) == w->pus);
    EXPECT(&w->report, ditto_all_reduce(self, &sum, &sum, 1, DITTO_F32, DITTO_SUM, NULL) == DITTO_OK);
    EXPECT(&w->report, sum == (float)ditto_num_replicas(self));
    if (ditto_replica_id(self) == 0)
        EXPECT(&w->report,
               ditto_parallel_for(self, visit, w, 0, w->pus, 1, DITTO_SCHEDULE_STATIC) == DITTO_OK);
    return DITTO_OK;
}

static void loops_use_the_pus_of_their_replica(void **state)
{
    uint32_t pus = usable_pus() < 4 ? usable_pus() : 4;
    struct wide w = { .pus = pus };
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = 2, .pus_per_replica = pus);
    ditto_strategy *s;
    assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &s));
    run_all(s, loop_on_all_pus, &w, &w.report);
    for (uint32_t i = 0; i < pus; i++)
        assert_int_equal(w.visits[i], 1);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- binding -- */

/* Returns true if the threads of a strategy with this option are bound. */
static bool binds(ditto_pin pin)
{
    char text[4000];
    ditto_strategy *s = make_strategy(1, &OPTIONS(strategy, .pin = pin));
    assert_ok(ditto_strategy_describe(s, text, sizeof text, NULL));
    assert_ok(ditto_strategy_destroy(s));
    return strstr(text, "not bound") == NULL;
}

static void an_option_wins_over_ditto_pin_which_wins_over_the_default(void **state)
{
    assert_true(binds(DITTO_PIN_DEFAULT));
    setenv("DITTO_PIN", "none", 1);
    assert_false(binds(DITTO_PIN_DEFAULT));
    assert_true(binds(DITTO_PIN_PU));
    setenv("DITTO_PIN", "PU", 1);
    assert_true(binds(DITTO_PIN_DEFAULT));
    assert_false(binds(DITTO_PIN_NONE));
    setenv("DITTO_PIN", "default", 1);
    assert_true(binds(DITTO_PIN_DEFAULT));
}

static void wrong_values_of_ditto_pin_are_errors(void **state)
{
    static const char *const wrong[] = { "", "yes", "0", "none ", "core" };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv("DITTO_PIN", wrong[i], 1);
        expect_refusal(DITTO_MIRRORED, NULL, DITTO_ERR_INVALID, "DITTO_PIN is \"");
        expect_refusal(DITTO_MIRRORED, &OPTIONS(strategy, .pin = DITTO_PIN_PU), DITTO_ERR_INVALID,
                       "it must be default, pu or none");
    }
}

/* -- the default strategy -- */

/* Its replica is the thread itself, which the library does not bind, and which has no other PU. */
static void the_default_strategy_reads_neither_variable(void **state)
{
    setenv("DITTO_PUS_PER_REPLICA", "8193", 1);
    setenv("DITTO_PIN", "bogus", 1);
    ditto_replica *self = ditto_get_replica_context();
    assert_non_null(self);
    assert_int_equal(ditto_num_replicas(self), 1);
    assert_int_equal(ditto_num_logical_devices(self), 1);
}

int main(void)
{
    /* The default strategy is made once, so its test must be the first one that needs it. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_default_strategy_reads_neither_variable, clear_environment),
        cmocka_unit_test(an_option_gives_each_replica_its_pus),
        cmocka_unit_test_teardown(the_environment_gives_pus_where_the_program_does_not, clear_environment),
        cmocka_unit_test_teardown(wrong_numbers_of_pus_are_errors, clear_environment),
        cmocka_unit_test(loops_use_the_pus_of_their_replica),
        cmocka_unit_test_teardown(an_option_wins_over_ditto_pin_which_wins_over_the_default,
                                  clear_environment),
        cmocka_unit_test_teardown(wrong_values_of_ditto_pin_are_errors, clear_environment),
    };
    clear_environment(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
