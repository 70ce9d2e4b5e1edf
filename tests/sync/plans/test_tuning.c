/* tests/sync/plans/test_tuning.c - what include/ditto/tuning.h promises of settings, of their errors, and of
 * reading them. */
#include "support/support.h"

/* Creates a strategy with the text in the environment, and with the program's own tuning, which may be NULL.
 * Returns the tuning of the strategy. */
static ditto_status tuning_of(const char *text, const ditto_tuning *own, ditto_tuning *out)
{
    ditto_strategy *strategy;
    *out = (ditto_tuning)DITTO_TUNING_INIT;
    setenv("DITTO_TUNING", text, 1);
    ditto_status status = ditto_strategy_create(
        DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 2, .tuning = own), &strategy);
    unsetenv("DITTO_TUNING");
    if (status != DITTO_OK)
        return status;
    *out = *properties_of_strategy(strategy).tuning;
    return ditto_strategy_destroy(strategy);
}

/* The first text is the example in include/ditto/tuning.h. */
static void the_environment_sets_what_the_program_does_not(void **state)
{
    ditto_tuning t, own = DITTO_TUNING_INIT;
    assert_ok(tuning_of("small_bytes=2K,near_replicas=4", NULL, &t));
    assert_int_equal(t.small_bytes, 2048);
    assert_int_equal(t.near_replicas, 4);
    assert_ok(tuning_of("stream_bytes=never,block_bytes=4099", NULL, &t));
    assert_true(t.stream_bytes == DITTO_NEVER_BYTES);
    assert_int_equal(t.block_bytes, 4096); /* blocks stay aligned */
    assert_true(t.small_bytes > 0 && t.helper_bytes > 0 && t.hierarchical_bytes > 0);
    own.small_bytes = 512;
    assert_ok(tuning_of("small_bytes=2K,near_replicas=4", &own, &t));
    assert_int_equal(t.small_bytes, 512);
    assert_int_equal(t.near_replicas, 4);
}

static void wrong_settings_are_refused_with_a_message_that_quotes_them(void **state)
{
    static const struct {
        const char *text, *words;
        ditto_status status;
    } cases[] = {
        { "near=4", "near=4", DITTO_ERR_INVALID },
        { "small_bytes", "small_bytes", DITTO_ERR_INVALID },
        { "small_bytes=", "small_bytes=", DITTO_ERR_INVALID },
        { "small_bytes=-1", "small_bytes=-1", DITTO_ERR_INVALID },
        { "small_bytes=2T", "2T", DITTO_ERR_INVALID },
        { "small_bytes=99999999999G", "99999999999G", DITTO_ERR_INVALID },
        { "block_bytes=1K", "block_bytes = 1024", DITTO_ERR_RANGE },
        { "near_replicas=4294967298", "near_replicas = 4294967298", DITTO_ERR_RANGE },
        { "near_replicas=never", "near_replicas", DITTO_ERR_RANGE },
    };
    ditto_tuning t;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_status(tuning_of(cases[i].text, NULL, &t), cases[i].status);
        assert_message(cases[i].words);
    }
}

static void only_the_members_that_an_older_struct_has_are_written(void **state)
{
    struct {
        ditto_strategy_properties found;
        unsigned char behind[16];
    } older, zeros;
    const size_t known = offsetof(ditto_strategy_properties, first_local_replica);
    ditto_strategy *strategy = make_strategy(2, NULL);
    memset(&older, 0, sizeof older);
    memset(&zeros, 0, sizeof zeros);
    older.found.struct_size = known;
    assert_ok(ditto_strategy_info(strategy, &older.found));
    assert_true(older.found.num_replicas == 2 && older.found.num_local_replicas == 2);
    /* All members from first_local_replica on, and the bytes behind the struct. */
    assert_memory_equal((char *)&older + known, (char *)&zeros + known, sizeof older - known);
    assert_int_equal(older.found.struct_size, known);
    assert_ok(ditto_strategy_destroy(strategy));
}

/* All results are the same, whether a result in place is fetched first or not: of pairs, of more replicas, of
 * a mean, of a list and of started operations. */
static ditto_status reduce_in_place(ditto_replica *self, void *argument)
{
    enum { COUNT = 40000 };
    struct report *r = argument;
    uint32_t n = ditto_num_replicas(self), id = ditto_replica_id(self);
    float *data;
    ditto_pending pending;
    DITTO_TRY(ditto_alloc(self, COUNT * sizeof *data, 64, (void **)&data));
    ditto_list_item items[2] = {
        { .src = data, .dst = data, .count = 100, .dtype = DITTO_F32 },
        { .src = data + 100, .dst = data + 100, .count = COUNT - 100, .dtype = DITTO_F32 }
    };
    for (int i = 0; i < COUNT; i++)
        data[i] = (float)(id + 1);
    DITTO_TRY(ditto_all_reduce(self, data, data, COUNT, DITTO_F32, DITTO_SUM, NULL));
    DITTO_TRY(ditto_all_reduce(self, data, data, COUNT, DITTO_F32, DITTO_MEAN, NULL));
    DITTO_TRY(ditto_all_reduce_list(self, items, 2, DITTO_SUM, NULL));
    DITTO_TRY(ditto_all_reduce_start(self, data, data, COUNT, DITTO_F32, DITTO_MAX, NULL, &pending));
    DITTO_TRY(ditto_wait(self, &pending, NULL));
    for (int i = 0; i < COUNT; i++)
        EXPECT(r, data[i] == (float)(n * n * (n + 1) / 2));
    return ditto_free(self, data);
}

static void results_in_place_do_not_depend_on_fetching(void **state)
{
    for (uint32_t replicas = 1; replicas <= 8; replicas++)
        for (int fetches = 0; fetches < 2; fetches++) {
            struct report report = { 0 };
            ditto_tuning tuning = { .struct_size = sizeof tuning,
                                    .fetch_bytes = fetches ? 1 : DITTO_NEVER_BYTES };
            run_once(replicas, &OPTIONS(strategy, .tuning = &tuning), reduce_in_place, &report, &report);
        }
}

static void a_strategy_describes_its_thresholds(void **state)
{
    char text[4096];
    ditto_tuning tuning = { .struct_size = sizeof tuning,
                            .small_bytes = 100,
                            .stream_bytes = 5000,
                            .hierarchical_bytes = DITTO_NEVER_BYTES,
                            .fetch_bytes = 1,
                            .stage_bytes = DITTO_NEVER_BYTES,
                            .stage_one_way_bytes = DITTO_NEVER_BYTES };
    ditto_strategy *strategy = make_strategy(2, &OPTIONS(strategy, .tuning = &tuning));
    assert_ok(ditto_strategy_describe(strategy, text, sizeof text, NULL));
    assert_non_null(strstr(text, "\ncollectives: DITTO_TUNING=small_bytes=100,stream_bytes=5000,"
                                 "hierarchical_bytes=never,helper_bytes=262144,block_bytes=32768,"
                                 "fetch_bytes=1,stage_bytes=never,stage_one_way_bytes=never\n"));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* The elements that a user function receives are aligned as documented, whatever the tuning is. */
static ditto_status needs_alignment(void *out, const void *left, const void *right, size_t count, void *user)
{
    struct report *r = user;
    const double *a = left, *b = right;
    EXPECT(r, ((uintptr_t)out | (uintptr_t)left | (uintptr_t)right) % 16 == 0);
    for (size_t i = 0; i < 2 * count; i++)
        ((double *)out)[i] = a[i] + b[i];
    return DITTO_OK;
}

static ditto_status add_pairs(ditto_replica *self, void *argument)
{
    enum { PAIRS = 5000 };
    void *data;
    DITTO_TRY(ditto_alloc(self, PAIRS * 16, 64, &data));
    for (int i = 0; i < 2 * PAIRS; i++)
        ((double *)data)[i] = 1;
    DITTO_TRY(ditto_all_reduce_with(self, data, data, PAIRS, 16, needs_alignment, argument, NULL));
    for (int i = 0; i < 2 * PAIRS; i++)
        EXPECT(argument, ((double *)data)[i] == ditto_num_replicas(self));
    return ditto_free(self, data);
}

static void elements_are_aligned_with_odd_block_sizes(void **state)
{
    static const size_t sizes[] = { 4096, 4099, 5000, 12345 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct report report = { 0 };
        ditto_tuning tuning = { .struct_size = sizeof tuning, .block_bytes = sizes[i], .near_replicas = 2 };
        run_once(6,
                 &OPTIONS(strategy, .tuning = &tuning, .implementation = DITTO_IMPLEMENTATION_HIERARCHICAL),
                 add_pairs, &report, &report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_sets_what_the_program_does_not),
        cmocka_unit_test(wrong_settings_are_refused_with_a_message_that_quotes_them),
        cmocka_unit_test(only_the_members_that_an_older_struct_has_are_written),
        cmocka_unit_test(results_in_place_do_not_depend_on_fetching),
        cmocka_unit_test(a_strategy_describes_its_thresholds),
        cmocka_unit_test(elements_are_aligned_with_odd_block_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
