/* tests/stress/test_stress.c - random programs on many replicas, with mixed collectives, short sleeps and
 * failures. A replica compares the result of each call that returns DITTO_OK. A call that fails has no result
 * to compare. The seed is printed. DITTO_STRESS_SECONDS sets the duration in seconds (default 6). */
#include "support/support.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The calls of a program are drawn from a seed that all replicas share, so all make the same calls. The
 * short sleeps of each replica are drawn from its own seed. */
struct program {
    struct report report;
    uint64_t seed;
    int length;

    /* The replica that fails, or -1 if none fails, and the number of the call before which it fails. */
    int64_t failer, fails_at;

    ditto_variable *shared, *local;
    _Atomic uint64_t calls;
};

enum { MOST = 6000 };

static void sleep_sometimes(uint64_t *random)
{
    switch (test_random(random) % 40) {
    case 0:
        /* It often lasts longer than the other replicas spin (50 us by default), so that they sleep. */
        nanosleep(&(struct timespec){ .tv_nsec = (long)(test_random(random) % 200000) }, NULL);
        break;
    case 1:
    case 2:
        sched_yield();
        break;
    default:
        break;
    }
}

static ditto_status sum_numbers(ditto_replica *self, struct program *p, float *buffer, size_t count,
                                bool in_place)
{
    float n = (float)ditto_num_replicas(self), id = (float)ditto_replica_id(self);
    float *dst = in_place ? buffer : buffer + MOST;
    for (size_t i = 0; i < count; i++)
        buffer[i] = (float)(i % 100) + id;
    DITTO_TRY(ditto_all_reduce(self, buffer, dst, count, DITTO_F32, DITTO_SUM, NULL));
    for (size_t i = 0; i < count; i++)
        EXPECT(&p->report, dst[i] == n * (float)(i % 100) + n * (n - 1) / 2);
    return DITTO_OK;
}

static ditto_status add_to_shared(ditto_replica *self, struct program *p)
{
    const void *before, *after;
    int64_t one = 1;
    DITTO_TRY(ditto_read(self, p->shared, &before));
    int64_t old = *(const int64_t *)before;
    DITTO_TRY(ditto_assign(self, p->shared, DITTO_ASSIGN_ADD, &one));
    DITTO_TRY(ditto_read(self, p->shared, &after));
    EXPECT(&p->report, *(const int64_t *)after == old + ditto_num_replicas(self));
    return ditto_assign(self, p->local, DITTO_ASSIGN_ADD, &one);
}

static ditto_status play(ditto_replica *self, void *argument)
{
    struct program *p = argument;
    uint64_t common_random = p->seed;
    uint64_t sleep_random = p->seed ^ (ditto_replica_id(self) + 1) * 0x1234567u;
    void *memory;
    DITTO_TRY(ditto_alloc(self, 2 * MOST * sizeof(float), 64, &memory));
    for (int i = 0; i < p->length; i++) {
        if (p->failer == (int64_t)ditto_replica_id(self) && p->fails_at == i) {
            /* No other replica may read it now. */
            memset(memory, 0xee, 2 * MOST * sizeof(float));
            DITTO_TRY(ditto_free(self, memory));
            return ditto_fail(self, i, "planned");
        }
        sleep_sometimes(&sleep_random);
        uint64_t draw = test_random(&common_random);
        ditto_status status = draw % 5 == 0 ? ditto_barrier(self, NULL)
                              : draw % 5 == 1
                                  ? add_to_shared(self, p)
                                  : sum_numbers(self, p, memory,
                                                (size_t)(draw >> 8) % (draw & 64 ? 20 : MOST), draw & 128);
        if (status != DITTO_OK) {
            memset(memory, 0xee, 2 * MOST * sizeof(float));
            DITTO_TRY(ditto_free(self, memory));
            return status;
        }
        atomic_fetch_add(&p->calls, 1);
    }
    return ditto_free(self, memory);
}

static void stress(uint32_t n, double seconds, bool failing, ditto_caller caller)
{
    uint64_t seed = test_seed(n * 1000003u + failing);
    ditto_variable_options on_read = DITTO_VARIABLE_OPTIONS_INIT, on_write = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_tensor scalar = { .dtype = DITTO_I64 };
    struct program p = { .failer = -1, .fails_at = -1 };
    uint64_t runs = 0, stopped = 0;
    ditto_strategy_options options = OPTIONS(strategy, .caller = caller);
    options.timeout_ms = 120000; /* a lost wake-up becomes an error that names replicas */
    ditto_strategy *s = make_strategy(n, &options);
    on_read.synchronization = DITTO_ON_READ;
    on_read.aggregation = on_write.aggregation = DITTO_AGGREGATE_SUM;
    assert_ok(ditto_variable_create(s, &scalar, &on_write, &p.shared));
    assert_ok(ditto_variable_create(s, &scalar, &on_read, &p.local));
    for (double end = now() + seconds; now() < end; runs++) {
        p.seed = test_random(&seed);
        p.length = 1 + (int)(test_random(&seed) % 60);
        p.failer = failing ? (int64_t)(test_random(&seed) % n) : -1;
        p.fails_at = (int64_t)(test_random(&seed) % (uint64_t)p.length);
        ditto_status status = ditto_strategy_run(s, play, &p);
        if (p.report.first_failure[0] != '\0')
            fail_msg("%s", p.report.first_failure);
        assert_status(status, failing ? DITTO_ERR_USER : DITTO_OK);
        stopped += failing;
    }
    print_message("  %u replicas: %llu runs (%llu stopped), %llu calls\n", n, (unsigned long long)runs,
                  (unsigned long long)stopped, (unsigned long long)p.calls);
    assert_ok(ditto_variable_destroy(p.shared));
    assert_ok(ditto_variable_destroy(p.local));
    assert_ok(ditto_strategy_destroy(s));
}

static double seconds_each(void)
{
    const char *text = getenv("DITTO_STRESS_SECONDS");
    return (text != NULL ? strtod(text, NULL) : 6.0) / 12.0;
}

static void random_programs_give_right_results(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        stress(replica_counts[k], seconds_each(), false, DITTO_CALLER_DEFAULT);
    stress(3, seconds_each(), false, DITTO_CALLER_WAITS);
}

static void random_failures_stop_all_replicas_and_no_freed_buffer_is_touched(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        stress(replica_counts[k], seconds_each(), true, DITTO_CALLER_DEFAULT);
    stress(3, seconds_each(), true, DITTO_CALLER_WAITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_give_right_results),
        cmocka_unit_test(random_failures_stop_all_replicas_and_no_freed_buffer_is_touched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
