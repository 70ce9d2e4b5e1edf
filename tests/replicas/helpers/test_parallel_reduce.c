/* tests/replicas/helpers/test_parallel_reduce.c - the claims of include/ditto/device.h about loops
 * whose parts are combined. */
#include "support/support.h"

#include <math.h>
#include <stdatomic.h>

static const uint32_t device_counts[] = { 1, 2, 3, 8 };

/* -- reductions -- */

enum { VALUES = 10000, WIDE = 500 };
static float values[VALUES];

struct sums {
    struct report report;
    uint32_t devices;
    float sum[8];
    double wide[WIDE];
    _Atomic uint32_t wrong;
};

static ditto_status add_part(size_t begin, size_t end, uint32_t device, void *partial, void *user)
{
    const struct sums *s = user;
    float sum = 0;
    for (size_t i = begin; i < end; i++)
        sum += values[i];
    *(float *)partial = sum;
    return device < s->devices && (uintptr_t)partial % 64 == 0 ? DITTO_OK : DITTO_ERR_INVALID;
}

/* The rule of the header, for one thread. */
static float expected_sum(size_t begin, size_t end, size_t grain)
{
    float part[256] = { 0 };
    size_t each = grain != 0 ? grain : 1, parts = (end - begin + each - 1) / each;
    if (parts > 256) {
        each *= (parts + 255) / 256;
        parts = (end - begin + each - 1) / each;
    }
    for (size_t p = 0; p < parts; p++)
        for (size_t i = begin + p * each; i < end && i < begin + (p + 1) * each; i++)
            part[p] += values[i];
    for (size_t half; parts > 1; parts = half) {
        half = (parts + 1) / 2;
        for (size_t j = 0; j + half < parts; j++)
            part[j] += part[j + half];
    }
    return part[0];
}

static const size_t lengths[] = { 0, 1, 2, 255, 256, 257, 1000, 9000 };
static const size_t grains[] = { 0, 1, 7, 100, 100000 };

static ditto_status try_sums(ditto_replica *self, void *argument)
{
    struct sums *s = argument;
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
        for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++) {
            size_t begin = 100 * k, end = begin + lengths[k];
            float sum = -1, wanted = expected_sum(begin, end, grains[g]);
            EXPECT(&s->report, ditto_parallel_reduce(self, add_part, s, begin, end, grains[g], DITTO_F32,
                                                     DITTO_SUM, 1, &sum) == DITTO_OK);
            EXPECT(&s->report, memcmp(&sum, &wanted, sizeof sum) == 0);
        }
    return DITTO_OK;
}

static void a_sum_has_the_same_bits_with_any_number_of_devices(void **state)
{
    uint64_t random = test_seed(23);
    for (size_t i = 0; i < VALUES; i++)
        values[i] = (float)(test_random(&random) % 1000003) / 977;
    for (uint32_t n = 1; n <= 3; n += 2)
        for (size_t k = 0; k < 4; k++) {
            struct sums s = { .devices = device_counts[k] };
            ditto_strategy *strategy = make_wide_strategy(n, device_counts[k], NULL);
            run_all(strategy, try_sums, &s, &s.report);
            assert_ok(ditto_strategy_destroy(strategy));
        }
}

/* Contributes WIDE numbers, which do not fit in 16 KiB for all parts. */
static ditto_status largest(size_t begin, size_t end, uint32_t device, void *partial, void *user)
{
    double *out = partial;
    for (size_t k = 0; k < WIDE; k++) {
        out[k] = -INFINITY;
        for (size_t i = begin; i < end; i++)
            out[k] = fmax(out[k], (double)(i * (k + 1) % 1009));
    }
    return DITTO_OK;
}

static ditto_status try_wide(ditto_replica *self, void *argument)
{
    struct sums *s = argument;
    DITTO_TRY(ditto_parallel_reduce(self, largest, NULL, 0, 300, 1, DITTO_F64, DITTO_MAX, WIDE, s->wide));
    for (size_t k = 0; k < WIDE; k++) {
        double wanted = -INFINITY;
        for (size_t i = 0; i < 300; i++)
            wanted = fmax(wanted, (double)(i * (k + 1) % 1009));
        EXPECT(&s->report, s->wide[k] == wanted);
    }
    return DITTO_OK;
}

static void large_contributions_are_combined_elementwise(void **state)
{
    for (size_t k = 0; k < 4; k++) {
        struct sums s = { .devices = device_counts[k] };
        ditto_strategy *strategy = make_wide_strategy(1, device_counts[k], NULL);
        run_all(strategy, try_wide, &s, &s.report);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static ditto_status fail_part(size_t begin, size_t end, uint32_t device, void *partial, void *user)
{
    *(float *)partial = 0;
    return begin == 2 ? ditto_fail(NULL, 8, "part %zu has failed", begin) : DITTO_OK;
}

/* -- stops -- */

enum { MANY = 1000000 };

struct stopping {
    _Atomic uint32_t begun;
    ditto_status status[2]; /* of replica 1's two loops */
    _Atomic uint32_t indices, parts;
};

static ditto_status wait_for_stop(struct stopping *s)
{
    sleep_ms(1); /* so that MANY calls would take minutes */
    return DITTO_OK;
}

static ditto_status slow_index(size_t begin, size_t end, uint32_t device, void *user)
{
    struct stopping *s = user;
    atomic_store(&s->begun, 1);
    atomic_fetch_add(&s->indices, 1);
    return wait_for_stop(s);
}

static ditto_status slow_part(size_t begin, size_t end, uint32_t device, void *partial, void *user)
{
    struct stopping *s = user;
    *(float *)partial = 0;
    atomic_fetch_add(&s->parts, 1);
    return wait_for_stop(s);
}

/* Replica 0 fails when replica 1 is in its loop. */
static ditto_status stop_loops(ditto_replica *self, void *argument)
{
    struct stopping *s = argument;
    float result;
    if (ditto_replica_id(self) == 0) {
        while (atomic_load(&s->begun) == 0)
            sleep_ms(1);
        return ditto_fail(self, 9, "replica 0 has failed");
    }
    s->status[0] = ditto_parallel_for(self, slow_index, s, 0, MANY, 1, DITTO_SCHEDULE_DYNAMIC);
    s->status[1] = ditto_parallel_reduce(self, slow_part, s, 0, 200, 1, DITTO_F32, DITTO_SUM, 1, &result);
    return s->status[0];
}

static void a_stop_ends_both_loops_between_two_calls(void **state)
{
    for (size_t k = 0; k < 3; k++) {
        struct stopping s = { 0 };
        ditto_strategy *strategy = make_wide_strategy(2, device_counts[k], NULL);
        assert_status(ditto_strategy_run(strategy, stop_loops, &s), DITTO_ERR_USER);
        assert_int_equal(s.status[0], DITTO_ERR_PEER_STOPPED);
        assert_int_equal(s.status[1], DITTO_ERR_PEER_STOPPED);
        assert_true(s.indices >= 1 && s.indices < MANY);
        assert_int_equal(s.parts, 0);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- refused -- */

static ditto_status try_refused(ditto_replica *self, void *argument)
{
    struct sums *s = argument;
    float result[2] = { 5, 5 };
    struct report *r = &s->report;
    EXPECT(r, ditto_parallel_reduce(self, NULL, s, 0, 1, 1, DITTO_F32, DITTO_SUM, 1, result) ==
                  DITTO_ERR_INVALID);
    EXPECT(r, ditto_parallel_reduce(self, add_part, s, 2, 1, 1, DITTO_F32, DITTO_SUM, 1, result) ==
                  DITTO_ERR_RANGE);
    EXPECT(r, ditto_parallel_reduce(self, add_part, s, 0, 1, 1, DITTO_F32, DITTO_MEAN, 1, result) ==
                  DITTO_ERR_UNSUPPORTED);
    EXPECT(r, ditto_parallel_reduce(self, add_part, s, 0, 1, 1, DITTO_F32, DITTO_XOR, 1, result) ==
                  DITTO_ERR_UNSUPPORTED);
    EXPECT(r, ditto_parallel_reduce(self, add_part, s, 0, 1, 1, (ditto_dtype)99, DITTO_SUM, 1, result) ==
                  DITTO_ERR_INVALID);
    EXPECT(r, ditto_parallel_reduce(self, add_part, s, 0, 1, 1, DITTO_F32, DITTO_SUM, SIZE_MAX, result) ==
                  DITTO_ERR_RANGE);
    EXPECT(r, ditto_parallel_reduce(self, add_part, s, 0, 1, 1, DITTO_F32, DITTO_SUM, 0, NULL) ==
                  DITTO_ERR_RANGE);
    EXPECT(r, ditto_parallel_reduce(self, add_part, s, 0, 1, 1, DITTO_F32, DITTO_SUM, 1, NULL) ==
                  DITTO_ERR_INVALID);
    EXPECT(r, ditto_parallel_reduce(self, add_part, s, 0, 1, 1, DITTO_F32, DITTO_SUM, 1,
                                    (char *)result + 1) == DITTO_ERR_INVALID);
    ditto_status status = ditto_parallel_reduce(self, fail_part, s, 0, 5, 1, DITTO_F32, DITTO_SUM, 1, result);
    EXPECT(r, status == DITTO_ERR_USER);
    EXPECT(r, strstr(ditto_last_error()->message, "part 2 has failed") != NULL);
    EXPECT(r, result[0] == 5 && result[1] == 5); /* results are set only on DITTO_OK */
    return status;
}

static void wrong_arguments_are_refused_and_errors_returned(void **state)
{
    for (size_t k = 0; k < 4; k++) {
        struct sums s = { .devices = device_counts[k] };
        ditto_strategy *strategy = make_wide_strategy(1, device_counts[k], NULL);
        assert_status(ditto_strategy_run(strategy, try_refused, &s), DITTO_ERR_USER);
        assert_int_equal(s.report.claimed, 0);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_has_the_same_bits_with_any_number_of_devices),
        cmocka_unit_test(large_contributions_are_combined_elementwise),
        cmocka_unit_test(a_stop_ends_both_loops_between_two_calls),
        cmocka_unit_test(wrong_arguments_are_refused_and_errors_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
