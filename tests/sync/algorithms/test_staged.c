/* tests/sync/algorithms/test_staged.c - tests collectives of two replicas by way of staging memory: every
 * result is right, wherever sources and results are, and however long the message is. */
#include "support/support.h"

#include "sync/reference.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

/* Where the buffers of the two replicas are. */
enum place {
    OUT_OF_PLACE,
    IN_PLACE,
    ONE_IN_PLACE,    /* replica 0 */
    SHARED_SOURCE,   /* which replica 0 writes when it has its result */
    RESULT_IN_SOURCE /* the result of replica 0 is where the source of replica 1 is */
};

struct task {
    struct report report;
    size_t count;
    ditto_dtype dtype;
    ditto_op op;
    enum place place;
    uint64_t seed;
    char *src[2], *dst[2];
    uint32_t times;
    _Atomic bool is_freed;
};

static void fill(const struct task *t, uint32_t replica, void *data)
{
    for (size_t i = 0; i < t->count; i++)
        reference_fill(t->dtype, t->seed, replica, i, (char *)data + i * ditto_dtype_bytes(t->dtype));
}

static ditto_status reduce(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    uint32_t id = ditto_replica_id(self), shared = t->place == SHARED_SOURCE ? 0 : id;
    size_t bytes = t->count * ditto_dtype_bytes(t->dtype);
    for (uint32_t time = 0; time < t->times; time++) {
        if (shared == id)
            fill(t, id, t->src[id]);
        /* Without this, one replica would fill a buffer in which the other one has its result. */
        DITTO_TRY(ditto_barrier(self, NULL));
        DITTO_TRY(ditto_all_reduce(self, t->src[shared], t->dst[id], t->count, t->dtype, t->op, NULL));
        if (t->place == SHARED_SOURCE && id == 0)
            memset(t->src[0], 0x11, bytes);
        DITTO_TRY(ditto_barrier(self, NULL));
    }
    return DITTO_OK;
}

static void check(const struct task *t)
{
    size_t size = ditto_dtype_bytes(t->dtype);
    char *input[2], expected[16];
    for (uint32_t r = 0; r < 2; r++) {
        input[r] = malloc(t->count * size);
        fill(t, t->place == SHARED_SOURCE ? 0 : r, input[r]);
    }
    for (size_t i = 0; i < t->count; i++) {
        const void *source[2] = { input[0] + i * size, input[1] + i * size };
        reference_reduce(t->dtype, t->op, source, 2, expected);
        for (uint32_t r = 0; r < 2; r++)
            if (!reference_same(t->dtype, expected, t->dst[r] + i * size))
                fail_msg("place %d, %s %s: element %zu of %zu of replica %u differs from the tree", t->place,
                         ditto_dtype_name(t->dtype), ditto_op_name(t->op), i, t->count, r);
    }
    free(input[0]);
    free(input[1]);
}

static void try_place(ditto_strategy *strategy, struct task *t)
{
    size_t bytes = t->count * ditto_dtype_bytes(t->dtype);
    char *buffer[4];
    for (int i = 0; i < 4; i++)
        buffer[i] = malloc(bytes);
    for (uint32_t r = 0; r < 2; r++) {
        t->src[r] = buffer[r];
        t->dst[r] = buffer[2 + r];
    }
    if (t->place == IN_PLACE || t->place == ONE_IN_PLACE)
        t->dst[0] = t->src[0];
    if (t->place == IN_PLACE)
        t->dst[1] = t->src[1];
    if (t->place == RESULT_IN_SOURCE)
        t->dst[0] = t->src[1];
    run_all(strategy, reduce, t, &t->report);
    check(t);
    for (int i = 0; i < 4; i++)
        free(buffer[i]);
}

static ditto_strategy *staged_strategy(ditto_wait_policy wait)
{
    ditto_tuning tuning = { .struct_size = sizeof tuning, .stage_bytes = 1, .stage_one_way_bytes = 1 };
    return make_strategy(2, &OPTIONS(strategy, .tuning = &tuning, .wait = wait));
}

/* A chunk of f32 has 32768 elements. */
static void results_have_the_bits_of_the_tree(void **state)
{
    static const size_t counts[] = { 1, 100, 8192, 32768, 32769, 98305 };
    static const struct {
        ditto_dtype dtype;
        ditto_op op;
    } kinds[] = { { DITTO_F32, DITTO_SUM },
                  { DITTO_F32, DITTO_MEAN },
                  { DITTO_F64, DITTO_SUM },
                  { DITTO_BF16, DITTO_SUM },
                  { DITTO_U8, DITTO_MAX } };
    uint64_t seed = test_seed(20451);
    ditto_strategy *strategy = staged_strategy(DITTO_WAIT_DEFAULT);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
            for (int place = OUT_OF_PLACE; place <= RESULT_IN_SOURCE; place++) {
                struct task t = { .count = counts[c],
                                  .dtype = kinds[k].dtype,
                                  .op = kinds[k].op,
                                  .place = (enum place)place,
                                  .seed = ++seed,
                                  .times = 2 };
                try_place(strategy, &t);
            }
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Many calls of several lengths after each other, without another meeting in between. Each result is checked,
 * because a chunk that comes too early or too late would spoil only one of them. */
static ditto_status reduce_often(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    uint64_t random = t->seed; /* the same on both replicas */
    uint32_t id = ditto_replica_id(self);
    float *src, *dst;
    DITTO_TRY(ditto_alloc(self, t->count * sizeof *src, 64, (void **)&src));
    DITTO_TRY(ditto_alloc(self, t->count * sizeof *dst, 64, (void **)&dst));
    for (uint32_t time = 1; time <= t->times; time++) {
        size_t most = test_random(&random) % 2 == 0 ? 2000 : t->count,
               count = test_random(&random) % most + 1;
        bool in_place = (test_random(&random) >> (8 * id)) % 3 == 0; /* of this replica alone */
        float *to = in_place ? src : dst;
        for (size_t i = 0; i < count; i++)
            src[i] = (float)(time * (id + 1) + i % 7);
        DITTO_TRY(ditto_all_reduce(self, src, to, count, DITTO_F32, DITTO_SUM, NULL));
        for (size_t i = 0; i < count; i++)
            EXPECT(&t->report, to[i] == (float)(time * 3 + 2 * (i % 7)));
    }
    DITTO_TRY(ditto_free(self, src));
    return ditto_free(self, dst);
}

static void calls_after_each_other_do_not_disturb_each_other(void **state)
{
    static const ditto_wait_policy waits[] = { DITTO_WAIT_DEFAULT, DITTO_WAIT_ACTIVE, DITTO_WAIT_PASSIVE };
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        struct task t = { .count = 100000, .times = test_is_short() ? 100 : 1000, .seed = test_seed(20452) };
        ditto_strategy *strategy = staged_strategy(waits[i]);
        run_all(strategy, reduce_often, &t, &t.report);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* The other patterns, from both roots, with elements of 4 and of 1 byte. */
static ditto_status move_and_reduce(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    uint32_t id = ditto_replica_id(self);
    size_t count = t->count;
    int32_t *src = malloc(8 * count), *dst = malloc(8 * count);
    for (uint32_t root = 0; root < 2; root++) {
        for (size_t i = 0; i < 2 * count; i++) {
            src[i] = (int32_t)((i + 1) * (id + 1));
            dst[i] = -1;
        }
        DITTO_TRY(ditto_reduce_to_root(self, src, dst, count, DITTO_I32, DITTO_SUM, root, NULL));
        for (size_t i = 0; i < count; i++)
            EXPECT(&t->report, dst[i] == (id == root ? (int32_t)(i + 1) * 3 : -1));
        DITTO_TRY(ditto_reduce_scatter(self, src, dst, count, NULL, DITTO_I32, DITTO_SUM, NULL));
        for (size_t i = 0; i < count; i++)
            EXPECT(&t->report, dst[i] == (int32_t)(id * count + i + 1) * 3);
        DITTO_TRY(ditto_all_gather(self, src, dst, count, NULL, DITTO_I32, NULL));
        for (size_t i = 0; i < 2 * count; i++)
            EXPECT(&t->report, dst[i] == (int32_t)((i % count + 1) * (i / count + 1)));
        for (size_t i = 0; i < count; i++) /* the same in place */
            dst[id * count + i] = -(int32_t)((i + 1) * (id + 1));
        DITTO_TRY(ditto_all_gather(self, dst + id * count, dst, count, NULL, DITTO_I32, NULL));
        for (size_t i = 0; i < 2 * count; i++)
            EXPECT(&t->report, dst[i] == -(int32_t)((i % count + 1) * (i / count + 1)));
        DITTO_TRY(ditto_scan(self, src, dst, count, DITTO_I32, DITTO_SUM, NULL));
        for (size_t i = 0; i < count; i++)
            EXPECT(&t->report, dst[i] == (int32_t)(i + 1) * (id == 0 ? 1 : 3));
        DITTO_TRY(ditto_scan(self, dst, dst, count, DITTO_I32, DITTO_SUM, NULL));
        for (size_t i = 0; i < count; i++)
            EXPECT(&t->report, dst[i] == (int32_t)(i + 1) * (id == 0 ? 1 : 4));
        DITTO_TRY(ditto_scan_exclusive(self, dst, dst, count, DITTO_I32, DITTO_SUM, NULL));
        for (size_t i = 0; i < count; i++)
            EXPECT(&t->report, dst[i] == (int32_t)(i + 1));
        DITTO_TRY(ditto_broadcast_from_root(self, src, 4 * count, DITTO_U8, root, NULL));
        for (size_t i = 0; i < count; i++)
            EXPECT(&t->report, src[i] == (int32_t)((i + 1) * (root + 1)));
    }
    free(src);
    free(dst);
    return DITTO_OK;
}

static void other_patterns_are_staged(void **state)
{
    static const size_t counts[] = { 1, 100, 5000, 32768, 32769, 100001 };
    ditto_strategy *strategy = staged_strategy(DITTO_WAIT_DEFAULT);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        struct task t = { .count = counts[c] };
        run_all(strategy, move_and_reduce, &t, &t.report);
    }
    assert_ok(ditto_strategy_destroy(strategy));
}

/* A replica that does not come to a staged call is named, as in any other. */
static ditto_status leave_one_out(ditto_replica *self, void *argument)
{
    static float src[2][50000], dst[2][50000];
    uint32_t id = ditto_replica_id(self);
    (void)argument;
    return id == 1 ? DITTO_OK
                   : ditto_all_reduce(self, src[id], dst[id], 50000, DITTO_F32, DITTO_SUM,
                                      &OPTIONS(reduce, .timeout_ms = 200));
}

static void a_missing_replica_is_named(void **state)
{
    ditto_strategy *strategy = staged_strategy(DITTO_WAIT_DEFAULT);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ditto_strategy_run(strategy, leave_one_out, NULL), DITTO_ERR_DIVERGED);
        assert_non_null(strstr(ditto_last_error()->message, "replica 1"));
        struct task t = { .count = 70000, .dtype = DITTO_F32, .op = DITTO_SUM, .times = 3 };
        try_place(strategy, &t); /* the strategy works as before */
    }
    assert_ok(ditto_strategy_destroy(strategy));
}

/* The replicas share a source. Replica 0 frees it when its call has failed. Replica 1 comes later, and must
 * not read it. */
static ditto_status free_shared_source(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    static float dst[2][8192];
    uint32_t id = ditto_replica_id(self);
    while (id == 1 && !atomic_load(&t->is_freed))
        sched_yield();
    ditto_status status = ditto_all_reduce(self, t->src[0], dst[id], 8192, DITTO_F32, DITTO_SUM,
                                           &OPTIONS(reduce, .timeout_ms = 100));
    EXPECT(&t->report, status == (id == 0 ? DITTO_ERR_TIMED_OUT : DITTO_ERR_PEER_STOPPED));
    if (id == 0) {
        munmap(t->src[0], sizeof dst[0]);
        atomic_store(&t->is_freed, true);
    }
    return status;
}

static void a_source_is_not_read_after_the_call_of_its_owner(void **state)
{
    struct task t = { .count = 8192 };
    ditto_strategy *strategy = staged_strategy(DITTO_WAIT_DEFAULT);
    t.src[0] = mmap(NULL, 4 * t.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(t.src[0], MAP_FAILED);
    assert_int_equal(ditto_strategy_run(strategy, free_shared_source, &t), DITTO_ERR_TIMED_OUT);
    assert_string_equal(t.report.first_failure, "");
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_have_the_bits_of_the_tree),
        cmocka_unit_test(calls_after_each_other_do_not_disturb_each_other),
        cmocka_unit_test(other_patterns_are_staged),
        cmocka_unit_test(a_missing_replica_is_named),
        cmocka_unit_test(a_source_is_not_read_after_the_call_of_its_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
