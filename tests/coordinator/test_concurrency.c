/* tests/coordinator/test_concurrency.c - docs/semantics.md, "Parameter servers": parameters that are read and
 * written without locks (rules 12.10 to 12.12, ditto_concurrency). */
#include "support/support.h"

#include <ditto/parameter.h>

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_BYTES 65536
#define MOST_ROWS  64

/* Workers with a parameter of MOST_ROWS rows or fewer. */
struct table {
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    ditto_variable *variable;
    ditto_variable *other; /* of another strategy, or NULL */
    ditto_concurrency concurrency;
    ditto_optimizer *optimizer; /* NULL if there is none */
    ditto_tensor spec;
    uint32_t workers;
    size_t shards, row_bytes;
    _Atomic uint32_t calls[DITTO_MAX_REPLICAS]; /* of each worker */
    struct report report;
};

static void make_table_with(struct table *t, const ditto_strategy_options *options, ditto_dtype dtype,
                            size_t rows, size_t width, size_t shards, ditto_concurrency concurrency)
{
    memset(t, 0, sizeof *t);
    t->spec = (ditto_tensor){ .dtype = dtype, .rank = 2, .shape = { rows, width } };
    t->workers = options->num_replicas;
    t->concurrency = concurrency;
    t->row_bytes = width * ditto_dtype_bytes(dtype);
    t->shards = shards;
    assert_true(rows <= MOST_ROWS && rows * t->row_bytes <= MOST_BYTES);
    ditto_variable_options cut = OPTIONS(
        variable, .partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = shards },
        .concurrency = concurrency);
    assert_ok(ditto_strategy_create(DITTO_PARAMETER_SERVER, options, &t->strategy));
    assert_ok(ditto_variable_create(t->strategy, &t->spec, &cut, &t->variable));
    assert_ok(ditto_coordinator_create(t->strategy, NULL, &t->coordinator));
}

static void make_table(struct table *t, uint32_t workers, ditto_dtype dtype, size_t rows, size_t width,
                       size_t shards, ditto_concurrency concurrency)
{
    make_table_with(t, &OPTIONS(strategy, .num_replicas = workers), dtype, rows, width, shards, concurrency);
}

static void execute(struct table *t, const char *name, ditto_replica_fn function, int times)
{
    assert_ok(ditto_function_register(name, function, t));
    for (int i = 0; i < times; i++)
        assert_ok(ditto_coordinator_schedule(t->coordinator, name, NULL, NULL, NULL));
    ditto_status status = ditto_coordinator_join(t->coordinator);
    if (t->report.claimed)
        fail_msg("%s", t->report.first_failure);
    assert_ok(status);
    assert_ok(ditto_function_unregister(name));
}

static void destroy_table(struct table *t)
{
    assert_ok(ditto_coordinator_destroy(t->coordinator));
    assert_ok(ditto_variable_destroy(t->variable));
    assert_ok(ditto_strategy_destroy(t->strategy));
}

static size_t bytes_of(const struct table *t)
{
    return t->spec.shape[0] * t->row_bytes;
}

static ditto_slices slices_of(const struct table *t, int64_t *indices, size_t rows, void *values)
{
    return (ditto_slices){ .indices = indices,
                           .values = values,
                           .rows = rows,
                           .row_count = t->spec.shape[1],
                           .dtype = t->spec.dtype };
}

/* Returns the unsigned integer at `at`, of 1, 2, 4 or 8 bytes. */
static uint64_t integer(const void *at, size_t bytes)
{
    uint8_t of_1;
    uint16_t of_2 = 0;
    uint32_t of_4 = 0;
    uint64_t of_8 = 0;
    memcpy(&of_1, at, sizeof of_1);
    if (bytes >= 2)
        memcpy(&of_2, at, sizeof of_2);
    if (bytes >= 4)
        memcpy(&of_4, at, sizeof of_4);
    if (bytes == 8)
        memcpy(&of_8, at, sizeof of_8);
    return bytes == 1 ? of_1 : bytes == 2 ? of_2 : bytes == 4 ? of_4 : of_8;
}

/* Stores 1 as an integer of 1, 2, 4 or 8 bytes. */
static void set_one(void *at, size_t bytes)
{
    const uint8_t of_1 = 1;
    const uint16_t of_2 = 1;
    const uint32_t of_4 = 1;
    const uint64_t of_8 = 1;
    memcpy(at,
           bytes == 1   ? (const void *)&of_1
           : bytes == 2 ? (const void *)&of_2
           : bytes == 4 ? (const void *)&of_4
                        : (const void *)&of_8,
           bytes);
}

/* -- different rows -- */

/* Adds 1 to all rows of which the worker is the only writer. */
static ditto_status add_to_own_rows(ditto_replica *self, void *user)
{
    struct table *t = user;
    _Alignas(16) char ones[MOST_BYTES] = { 0 };
    int64_t own[MOST_ROWS];
    uint32_t worker = ditto_worker(self), rows = 0;
    size_t element_bytes = ditto_dtype_bytes(t->spec.dtype);
    for (uint32_t row = worker; row < t->spec.shape[0]; row += t->workers)
        own[rows++] = row;
    for (size_t at = 0; at < rows * t->row_bytes; at += element_bytes)
        set_one(ones + at, element_bytes);
    ditto_slices slices = slices_of(t, own, rows, ones);
    EXPECT(&t->report, ditto_scatter(self, t->variable, DITTO_SCATTER_ADD, &slices) == DITTO_OK);
    uint32_t calls = ++t->calls[worker];
    _Alignas(16) char found[MOST_BYTES];
    EXPECT(&t->report, ditto_lookup(self, t->variable, own, rows, found) == DITTO_OK);
    for (size_t at = 0; at < rows * t->row_bytes; at += element_bytes)
        EXPECT(&t->report,
               integer(found + at, element_bytes) == (calls & (UINT64_MAX >> (64 - 8 * element_bytes))));
    return DITTO_OK;
}

static void rule_12_11_different_rows_do_not_touch_each_other(void **state)
{
    const ditto_dtype dtypes[] = { DITTO_I8, DITTO_U16, DITTO_I32, DITTO_U64 };
    for (size_t k = 0; k < replica_counts_length; k++)
        for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
            struct table t;
            _Alignas(16) char found[MOST_BYTES];
            size_t element_bytes = ditto_dtype_bytes(dtypes[d]);
            make_table(&t, replica_counts[k], dtypes[d], MOST_ROWS, d % 2 == 0 ? 3 : 8, 5,
                       DITTO_CONCURRENCY_HOGWILD);
            execute(&t, "add_to_own_rows", add_to_own_rows, test_trials(300));
            assert_ok(ditto_variable_read(t.variable, found, bytes_of(&t)));
            for (size_t at = 0; at < bytes_of(&t); at += element_bytes) {
                uint64_t calls = t.calls[at / t.row_bytes % t.workers];
                assert_true(integer(found + at, element_bytes) ==
                            (calls & (UINT64_MAX >> (64 - 8 * element_bytes))));
            }
            destroy_table(&t);
        }
}

/* Adds 1 to one row, of which the worker is the only writer, and pulls. The first element of each row counts
 * the calls that have written it, and the version of a shard counts those that have ended there. */
static ditto_status add_and_compare_versions(ditto_replica *self, void *user)
{
    struct table *t = user;
    int64_t ones[4] = { 1, 1, 1, 1 }, pulled[MOST_ROWS * 4], row = ditto_worker(self);
    uint64_t versions[4];
    ditto_slices slices = slices_of(t, &row, 1, ones);
    EXPECT(&t->report, ditto_scatter(self, t->variable, DITTO_SCATTER_ADD, &slices) == DITTO_OK);
    EXPECT(&t->report,
           ditto_pull(self, t->variable, &OPTIONS(pull, .versions = versions), pulled) == DITTO_OK);
    for (size_t s = 0; s < t->shards; s++) {
        ditto_shard_info shard = DITTO_SHARD_INFO_INIT;
        uint64_t sum = 0;
        EXPECT(&t->report, ditto_variable_shard(t->variable, s, &shard) == DITTO_OK);
        for (size_t i = shard.first_row; i < shard.first_row + shard.rows; i++)
            sum += (uint64_t)pulled[i * 4 + 3];
        EXPECT(&t->report, sum >= versions[s]);
    }
    return DITTO_OK;
}

static void rule_12_11_versions_count_the_calls_that_have_ended(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct table t;
        uint64_t sum = 0;
        int times = test_trials(600);
        make_table(&t, replica_counts[k], DITTO_I64, MOST_ROWS, 4, 4, DITTO_CONCURRENCY_HOGWILD);
        execute(&t, "add_and_compare_versions", add_and_compare_versions, times);
        for (size_t s = 0; s < 4; s++)
            sum += shard_of(t.variable, s).version;
        assert_int_equal(sum, times);
        assert_int_equal(properties_of(t.variable).generation, times);
        destroy_table(&t);
    }
}

/* -- the same rows -- */

/* Assigns elements of which all bytes are equal, and checks that none is torn. */
static ditto_status assign_and_check(ditto_replica *self, void *user)
{
    struct table *t = user;
    _Alignas(16) char value[MOST_BYTES], found[MOST_BYTES];
    int64_t rows[3] = { 1, 2, (int64_t)t->spec.shape[0] - 1 };
    size_t element_bytes = ditto_dtype_bytes(t->spec.dtype);
    uint32_t worker = ditto_worker(self), calls = ++t->calls[worker];
    memset(value, (int)(worker * 16 + calls), bytes_of(t));
    ditto_slices slices = slices_of(t, rows, 3, value);
    EXPECT(&t->report, ditto_assign(self, t->variable, DITTO_ASSIGN, value) == DITTO_OK);
    EXPECT(&t->report, ditto_scatter(self, t->variable, DITTO_SCATTER_UPDATE, &slices) == DITTO_OK);
    EXPECT(&t->report, ditto_pull(self, t->variable, NULL, found) == DITTO_OK);
    EXPECT(&t->report, ditto_lookup(self, t->variable, rows, 3, found) == DITTO_OK);
    for (size_t at = 0; at < bytes_of(t); at++)
        EXPECT(&t->report, found[at] == found[at / element_bytes * element_bytes]);
    return DITTO_OK;
}

static void rule_12_11_no_element_is_torn(void **state)
{
    const ditto_dtype dtypes[] = { DITTO_BOOL, DITTO_F16, DITTO_BF16, DITTO_F32, DITTO_F64, DITTO_C64 };
    for (size_t k = 0; k < replica_counts_length; k++)
        for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
            struct table t;
            make_table(&t, replica_counts[k], dtypes[d], 20, 2 + k % 2, 1 + k, DITTO_CONCURRENCY_HOGWILD);
            execute(&t, "assign_and_check", assign_and_check, test_trials(200));
            destroy_table(&t);
        }
}

/* Adds 1 to every element, to row 0 once more, and subtracts nothing from the last row. */
static ditto_status add_to_all(ditto_replica *self, void *user)
{
    struct table *t = user;
    double ones[MOST_ROWS * 4], nothing[4] = { 0 };
    int64_t first = 0, last = (int64_t)t->spec.shape[0] - 1;
    ditto_slices once_more = slices_of(t, &first, 1, ones), at_last = slices_of(t, &last, 1, nothing);
    for (int i = 0; i < MOST_ROWS * 4; i++)
        ones[i] = 1;
    EXPECT(&t->report, ditto_assign(self, t->variable, DITTO_ASSIGN_ADD, ones) == DITTO_OK);
    EXPECT(&t->report, ditto_scatter(self, t->variable, DITTO_SCATTER_ADD, &once_more) == DITTO_OK);
    EXPECT(&t->report, ditto_scatter(self, t->variable, DITTO_SCATTER_SUB, &at_last) == DITTO_OK);
    return DITTO_OK;
}

/* An update may be lost, but none is applied twice, and none is lost that began after the others ended. */
static void rule_12_11_updates_of_the_same_row_may_be_lost(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct table t;
        double found[MOST_ROWS * 4], again[MOST_ROWS * 4];
        int times = test_trials(400);
        make_table(&t, replica_counts[k], DITTO_F64, MOST_ROWS, 4, 3, DITTO_CONCURRENCY_HOGWILD);
        execute(&t, "add_to_all", add_to_all, times);
        assert_ok(ditto_variable_read(t.variable, found, sizeof found));
        for (int i = 0; i < MOST_ROWS * 4; i++) {
            double most = i < 4 ? 2 * times : times;
            assert_true(found[i] >= 1 && found[i] <= most);
            assert_true(t.workers > 1 || found[i] == most);
        }
        assert_int_equal(shard_of(t.variable, 0).version, 2 * times);
        assert_int_equal(shard_of(t.variable, 1).version, times);
        assert_int_equal(shard_of(t.variable, 2).version, 2 * times);
        execute(&t, "add_to_all", add_to_all, 1);
        assert_ok(ditto_variable_read(t.variable, again, sizeof again));
        for (int i = 0; i < MOST_ROWS * 4; i++)
            assert_true(again[i] == found[i] + (i < 4 ? 2 : 1));
        destroy_table(&t);
    }
}

/* -- one worker -- */

/* Changes rows by all operations that the dtype has. Rows are repeated. */
static ditto_status change_in_all_ways(ditto_replica *self, void *user)
{
    struct table *t = user;
    _Alignas(16) char values[MOST_BYTES];
    int64_t rows[MOST_ROWS];
    uint64_t seed = 1;
    for (size_t i = 0; i < t->spec.shape[0]; i++)
        rows[i] = (int64_t)(test_random(&seed) % t->spec.shape[0]);
    for (size_t i = 0; i < bytes_of(t); i++)
        values[i] = (char)(test_random(&seed) % 60 + 1); /* no infinities, no zeros */
    if (t->spec.dtype == DITTO_BOOL)
        memset(values, 1, sizeof values);
    ditto_slices slices = slices_of(t, rows, t->spec.shape[0], values);
    for (int op = DITTO_SCATTER_ADD; op <= DITTO_SCATTER_UPDATE; op++) {
        ditto_status status = ditto_scatter(self, t->variable, (ditto_scatter_op)op, &slices);
        EXPECT(&t->report, status == DITTO_OK || status == DITTO_ERR_UNSUPPORTED);
        if (op % 2 == 0 && t->spec.dtype != DITTO_BOOL)
            EXPECT(&t->report, ditto_assign(self, t->variable, DITTO_ASSIGN_SUB, values) == DITTO_OK);
    }
    return DITTO_OK;
}

static void rule_12_11_one_worker_has_the_bits_of_a_locked_parameter(void **state)
{
    const ditto_concurrency concurrencies[] = { DITTO_CONCURRENCY_HOGWILD, DITTO_CONCURRENCY_FREE_READS };
    const ditto_dtype dtypes[] = { DITTO_BOOL, DITTO_F16, DITTO_BF16, DITTO_F32, DITTO_F64,
                                   DITTO_C64,  DITTO_I8,  DITTO_I16,  DITTO_I32, DITTO_I64,
                                   DITTO_U8,   DITTO_U16, DITTO_U32,  DITTO_U64 };
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
        for (size_t width = 1; width <= 301; width += 100) { /* each concurrency with two of them */
            struct table locked, free_of_locks;
            _Alignas(16) static char expected[MOST_BYTES], found[MOST_BYTES];
            make_table(&locked, 1, dtypes[d], 20, width, 3, DITTO_CONCURRENCY_LOCKED);
            execute(&locked, "change_in_all_ways", change_in_all_ways, 2);
            make_table(&free_of_locks, 1, dtypes[d], 20, width, 3, concurrencies[width % 200 / 100]);
            execute(&free_of_locks, "change_in_all_ways", change_in_all_ways, 2);
            assert_ok(ditto_variable_read(locked.variable, expected, bytes_of(&locked)));
            assert_ok(ditto_variable_read(free_of_locks.variable, found, bytes_of(&locked)));
            assert_memory_equal(found, expected, bytes_of(&locked));
            destroy_table(&locked);
            destroy_table(&free_of_locks);
        }
}

/* -- steps -- */

/* Takes a step whose gradient depends on the number of the call. */
static ditto_status take_step(ditto_replica *self, void *user)
{
    struct table *t = user;
    float gradient[MOST_ROWS * 40];
    ditto_tensor tensor = t->spec;
    uint64_t seed = ++t->calls[ditto_worker(self)];
    int64_t steps;
    double norm;
    tensor.data = gradient;
    for (int i = 0; i < MOST_ROWS * 40; i++)
        gradient[i] = (float)(test_random(&seed) % 2001) / 1000 - 1;
    EXPECT(&t->report, ditto_optimizer_steps(self, t->optimizer, &steps) == DITTO_OK);
    EXPECT(&t->report,
           ditto_apply(self, t->optimizer, &tensor,
                       &OPTIONS(apply, .read_steps = steps, .has_read_steps = 1, .norm = &norm)) == DITTO_OK);
    return DITTO_OK;
}

static void train(struct table *t, const ditto_optimizer_options *options, ditto_replica_fn function,
                  int times, float *found)
{
    assert_ok(ditto_optimizer_create(&t->variable, 1, options, &t->optimizer));
    execute(t, "train", function, times);
    assert_ok(ditto_variable_read(t->variable, found, bytes_of(t)));
    assert_ok(ditto_optimizer_destroy(t->optimizer));
    destroy_table(t);
}

static void rule_12_12_steps_without_locks(void **state)
{
    const struct {
        ditto_rule rule;
        double decay, clip;
        int64_t max_staleness;
    } tries[] = { { DITTO_RULE_SGD, 0, 0, 0 },
                  { DITTO_RULE_SGD, 0.1, 5, 0 },
                  { DITTO_RULE_ADD, 0, 0, 3 },
                  { DITTO_RULE_SUB, 0, 0, 0 },
                  { DITTO_RULE_ASSIGN, 0, 0, 0 } };
    for (size_t k = 0; k < sizeof tries / sizeof tries[0]; k++) {
        static float expected[MOST_ROWS * 40], found[MOST_ROWS * 40];
        struct table t;
        ditto_optimizer_options options = OPTIONS(
            optimizer, .rule = tries[k].rule, .weight_decay = tries[k].decay, .clip_norm = tries[k].clip,
            .max_staleness = tries[k].max_staleness, .has_max_staleness = tries[k].max_staleness != 0);
        make_table(&t, 1, DITTO_F32, MOST_ROWS, 40, 3, DITTO_CONCURRENCY_LOCKED);
        train(&t, &options, take_step, 10, expected);
        make_table(&t, 1, DITTO_F32, MOST_ROWS, 40, 3, DITTO_CONCURRENCY_HOGWILD);
        train(&t, &options, take_step, 10, found);
        assert_memory_equal(found, expected, sizeof found);
        for (size_t n = 0; n < replica_counts_length; n++) { /* results depend on timing */
            make_table(&t, replica_counts[n], DITTO_F32, MOST_ROWS, 40, 3, DITTO_CONCURRENCY_HOGWILD);
            train(&t, &options, take_step, test_trials(60), found);
            for (int i = 0; i < MOST_ROWS * 40; i++)
                assert_true(found[i] == found[i]); /* no NaN */
        }
    }
}

static void no_rule(const ditto_rule_range *range, void *user) {}

static void rule_12_12_steps_that_need_a_lock_are_refused(void **state)
{
    struct table t;
    ditto_optimizer *refused;
    make_table(&t, 2, DITTO_F32, 10, 3, 2, DITTO_CONCURRENCY_HOGWILD);
    for (int k = 0; k < 4; k++) {
        ditto_rule rule = k == 1 ? DITTO_RULE_ADAM : k == 2 ? DITTO_RULE_FUNCTION : DITTO_RULE_SGD;
        ditto_optimizer_options options = OPTIONS(optimizer, .rule = rule, .momentum = k == 0 ? 0.9 : 0,
                                                  .function = k == 2 ? no_rule : NULL,
                                                  .accumulate = k == 3 ? 2 : 0);
        assert_status(ditto_optimizer_create(&t.variable, 1, &options, &refused), DITTO_ERR_UNSUPPORTED);
        assert_message("DITTO_CONCURRENCY_HOGWILD");
        assert_message("DITTO_CONCURRENCY_LOCKED");
        assert_message(k < 2 ? "slots" : k == 2 ? "function" : "accumulate");
    }
    destroy_table(&t);
}

/* -- free reads -- */

/* Adds 1 to every element, and to row 7 once more. Reads with and without locks meanwhile. */
static ditto_status add_and_read_freely(ditto_replica *self, void *user)
{
    struct table *t = user;
    double ones[MOST_ROWS * 3], pulled[MOST_ROWS * 3], rows[4 * 3];
    int64_t seven = 7, read[4] = { 7, 0, 7, (int64_t)t->spec.shape[0] - 1 };
    uint64_t versions[4], of_rows[4] = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
    ditto_slices slices = slices_of(t, &seven, 1, ones);
    for (int i = 0; i < MOST_ROWS * 3; i++)
        ones[i] = 1;
    EXPECT(&t->report, ditto_assign(self, t->variable, DITTO_ASSIGN_ADD, ones) == DITTO_OK);
    EXPECT(&t->report, ditto_scatter(self, t->variable, DITTO_SCATTER_ADD, &slices) == DITTO_OK);
    ditto_pull_options options = OPTIONS(pull, .lock = DITTO_SWITCH_OFF, .versions = versions);
    EXPECT(&t->report, ditto_pull(self, t->variable, &options, pulled) == DITTO_OK);
    for (size_t s = 1; s < t->shards; s++) { /* only assign_add changes them: all updates are contained */
        ditto_shard_info shard = DITTO_SHARD_INFO_INIT;
        EXPECT(&t->report, ditto_variable_shard(t->variable, s, &shard) == DITTO_OK);
        for (size_t i = shard.first_row * 3; i < (shard.first_row + shard.rows) * 3; i++)
            EXPECT(&t->report, pulled[i] >= (double)versions[s]);
    }
    options.versions = of_rows;
    EXPECT(&t->report, ditto_pull_rows(self, t->variable, read, 4, &options, rows) == DITTO_OK);
    EXPECT(&t->report, of_rows[0] >= versions[0] && of_rows[t->shards - 1] >= versions[t->shards - 1]);
    EXPECT(&t->report, t->shards < 3 || of_rows[1] == UINT64_MAX); /* no row is there */
    for (int i = 0; i < 3; i++)
        EXPECT(&t->report,
               rows[i] >= pulled[7 * 3 + i] && rows[6 + i] >= rows[i] && rows[3 + i] >= pulled[i]);
    options.lock = DITTO_SWITCH_ON;
    EXPECT(&t->report, ditto_pull_rows(self, t->variable, read, 3, &options, rows) == DITTO_OK);
    EXPECT(&t->report, memcmp(rows, rows + 6, t->row_bytes) == 0 && rows[0] == rows[2]);
    return DITTO_OK;
}

static void rule_12_10_free_reads_lose_no_update(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (size_t shards = 1; shards <= 4; shards += 3) {
            struct table t;
            double found[MOST_ROWS * 3];
            int times = test_trials(300);
            make_table(&t, replica_counts[k], DITTO_F64, MOST_ROWS, 3, shards, DITTO_CONCURRENCY_FREE_READS);
            execute(&t, "add_and_read_freely", add_and_read_freely, times);
            assert_ok(ditto_variable_read(t.variable, found, sizeof found));
            for (int i = 0; i < MOST_ROWS * 3; i++)
                assert_true(found[i] == (i / 3 == 7 ? 2 * times : times));
            destroy_table(&t);
        }
}

/* Assigns elements of which all bytes are equal, and checks in free reads that none is torn. */
static ditto_status assign_and_read_freely(ditto_replica *self, void *user)
{
    struct table *t = user;
    _Alignas(16) char value[MOST_BYTES], found[MOST_BYTES];
    size_t element_bytes = ditto_dtype_bytes(t->spec.dtype);
    uint32_t worker = ditto_worker(self);
    memset(value, (int)(worker * 16 + ++t->calls[worker]), bytes_of(t));
    EXPECT(&t->report, ditto_assign(self, t->variable, DITTO_ASSIGN, value) == DITTO_OK);
    EXPECT(&t->report,
           ditto_pull(self, t->variable, &OPTIONS(pull, .lock = DITTO_SWITCH_OFF), found) == DITTO_OK);
    for (size_t at = 0; at < bytes_of(t); at++)
        EXPECT(&t->report, found[at] == found[at / element_bytes * element_bytes]);
    return DITTO_OK;
}

static void rule_12_10_free_reads_tear_no_element(void **state)
{
    const ditto_dtype dtypes[] = { DITTO_BF16, DITTO_F32, DITTO_C64, DITTO_I8 };
    for (size_t k = 0; k < replica_counts_length; k++)
        for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
            struct table t;
            make_table(&t, replica_counts[k], dtypes[d], 30, 2 + k % 2, 1 + k,
                       d % 2 == 0 ? DITTO_CONCURRENCY_FREE_READS : DITTO_CONCURRENCY_HOGWILD);
            execute(&t, "assign_and_read_freely", assign_and_read_freely, test_trials(200));
            destroy_table(&t);
        }
}

/* A rule of the program. */
static void add_and_count(const ditto_rule_range *range, void *user)
{
    float *value = range->value, *count = range->slot[0];
    const float *gradient = range->gradient;
    for (size_t i = 0; i < range->count; i++) {
        value[i] += gradient[i];
        count[i] += 1;
    }
}

/* Takes a step, and reads the variable without locks. */
static ditto_status step_and_read_freely(ditto_replica *self, void *user)
{
    struct table *t = user;
    float found[MOST_ROWS * 40];
    DITTO_TRY(take_step(self, user));
    EXPECT(&t->report,
           ditto_pull(self, t->variable, &OPTIONS(pull, .lock = DITTO_SWITCH_OFF), found) == DITTO_OK);
    return DITTO_OK;
}

static void rule_12_12_steps_of_all_rules_allow_free_reads(void **state)
{
    for (int k = 0; k < 5; k++) {
        static float expected[MOST_ROWS * 40], found[MOST_ROWS * 40];
        struct table t;
        ditto_rule rule = k < 2 ? DITTO_RULE_ADAM : k == 2 ? DITTO_RULE_FUNCTION : DITTO_RULE_SGD;
        ditto_optimizer_options options = OPTIONS(
            optimizer, .rule = rule, .momentum = k == 3 ? 0.9 : 0, .weight_decay = k == 1 ? 0.1 : 0,
            .clip_norm = k == 1 ? 5 : 0, .function = k == 2 ? add_and_count : NULL, .num_slots = k == 2,
            .accumulate = k == 4 ? 3 : 0);
        make_table(&t, 1, DITTO_F32, MOST_ROWS, 40, 3, DITTO_CONCURRENCY_LOCKED);
        train(&t, &options, take_step, 11, expected);
        make_table(&t, 1, DITTO_F32, MOST_ROWS, 40, 3, DITTO_CONCURRENCY_FREE_READS);
        train(&t, &options, step_and_read_freely, 11, found);
        assert_memory_equal(found, expected, sizeof found);
        for (size_t n = 0; n < replica_counts_length; n++) { /* results depend on timing */
            make_table(&t, replica_counts[n], DITTO_F32, MOST_ROWS, 40, 3, DITTO_CONCURRENCY_FREE_READS);
            train(&t, &options, step_and_read_freely, test_trials(60), found);
            for (int i = 0; i < MOST_ROWS * 40; i++)
                assert_true(found[i] == found[i]); /* no NaN */
        }
    }
}

/* Reads in ways that are not allowed. */
static ditto_status read_wrongly(ditto_replica *self, void *user)
{
    struct table *t = user;
    float found[MOST_ROWS];
    int64_t row = 0, beyond = 10, negative = -1;
    ditto_variable *slot;
    bool has_locks = t->optimizer != NULL;
    ditto_pull_options options = OPTIONS(pull, .lock = (ditto_switch)3);
    EXPECT(&t->report, ditto_pull(self, t->variable, &options, found) == DITTO_ERR_RANGE);
    options.lock = has_locks ? DITTO_SWITCH_OFF : DITTO_SWITCH_ON;
    EXPECT(&t->report, ditto_pull(self, t->variable, &options, found) == DITTO_ERR_INVALID);
    EXPECT(&t->report, strstr(ditto_last_error()->message, "DITTO_CONCURRENCY_FREE_READS") != NULL);
    EXPECT(&t->report, ditto_pull_rows(self, t->variable, &row, 1, &options, found) == DITTO_ERR_INVALID);
    options.lock = DITTO_SWITCH_DEFAULT;
    EXPECT(&t->report, ditto_pull_rows(self, t->variable, &row, 1, &options, found) == DITTO_OK);
    EXPECT(&t->report, ditto_pull_rows(self, t->variable, NULL, 0, NULL, NULL) == DITTO_OK);
    EXPECT(&t->report, ditto_pull_rows(self, t->variable, &beyond, 1, NULL, found) == DITTO_ERR_RANGE);
    EXPECT(&t->report, ditto_pull_rows(self, t->variable, &negative, 1, NULL, found) == DITTO_ERR_RANGE);
    EXPECT(&t->report, ditto_pull_rows(self, t->variable, NULL, 1, NULL, found) == DITTO_ERR_INVALID);
    EXPECT(&t->report, ditto_pull_rows(self, t->variable, &row, 1, NULL, NULL) == DITTO_ERR_INVALID);
    EXPECT(&t->report, ditto_pull_rows(NULL, t->variable, &row, 1, NULL, found) == DITTO_ERR_INVALID);
    EXPECT(&t->report, ditto_pull_rows(self, NULL, &row, 1, NULL, found) == DITTO_ERR_INVALID);
    if (!has_locks)
        return DITTO_OK;
    EXPECT(&t->report, ditto_optimizer_slot(t->optimizer, 0, "momentum", &slot) == DITTO_OK);
    options.lock = DITTO_SWITCH_OFF;
    EXPECT(&t->report, ditto_pull(self, slot, &options, found) == DITTO_ERR_INVALID);
    ditto_variable *scalar;
    scalar = iterations_of(t->optimizer);
    EXPECT(&t->report, ditto_pull_rows(self, scalar, &row, 1, NULL, found) == DITTO_ERR_SHAPE);
    return DITTO_OK;
}

static void rule_12_10_wrong_reads_are_refused(void **state)
{
    struct table t;
    make_table(&t, 2, DITTO_F32, 10, 3, 2, DITTO_CONCURRENCY_LOCKED);
    assert_ok(ditto_optimizer_create(
        &t.variable, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .momentum = 0.9), &t.optimizer));
    execute(&t, "read_wrongly", read_wrongly, 4);
    assert_ok(ditto_optimizer_destroy(t.optimizer));
    destroy_table(&t);
    make_table(&t, 2, DITTO_F32, 10, 3, 2, DITTO_CONCURRENCY_HOGWILD);
    execute(&t, "read_wrongly", read_wrongly, 4);
    destroy_table(&t);
}

/* -- in place -- */

static _Atomic uint64_t *own_element(const struct table *t, void *elements, size_t row)
{
    return (_Atomic uint64_t *)((char *)elements + row * t->row_bytes);
}

/* Adds 1 to the first element of a row that no other thread changes meanwhile. */
static void add_one(const struct table *t, void *elements, size_t row)
{
    _Atomic uint64_t *element = own_element(t, elements, row);
    atomic_store_explicit(element, atomic_load_explicit(element, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* Adds 2 to each of the worker's own rows: once in place, and once by a call, which finds what is there. */
static ditto_status add_in_both_ways(ditto_replica *self, void *user)
{
    struct table *t = user;
    void *elements, *again;
    const void *read;
    uint64_t ones[MOST_ROWS * 3] = { 0 }, found[MOST_ROWS * 3];
    int64_t own[MOST_ROWS];
    size_t rows = 0;
    uint32_t calls = ++t->calls[ditto_worker(self)];
    EXPECT(&t->report, ditto_component(self, t->variable, &elements) == DITTO_OK);
    EXPECT(&t->report, ditto_component(self, t->variable, &again) == DITTO_OK && again == elements);
    EXPECT(&t->report, ditto_read(self, t->variable, &read) == DITTO_OK && read == elements);
    for (uint32_t row = ditto_worker(self); row < t->spec.shape[0]; row += t->workers) {
        add_one(t, elements, row);
        ones[3 * rows] = 1;
        own[rows++] = row;
    }
    ditto_slices slices = slices_of(t, own, rows, ones);
    EXPECT(&t->report, ditto_scatter(self, t->variable, DITTO_SCATTER_ADD, &slices) == DITTO_OK);
    EXPECT(&t->report, ditto_lookup(self, t->variable, own, rows, found) == DITTO_OK);
    for (size_t i = 0; i < rows; i++) {
        EXPECT(&t->report, found[3 * i] == 2 * (uint64_t)calls && found[3 * i + 1] == 0);
        EXPECT(&t->report, atomic_load(own_element(t, elements, (size_t)own[i])) == found[3 * i]);
    }
    return DITTO_OK;
}

static void rule_12_11_rows_in_place_are_those_of_calls(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (size_t shards = 1; shards <= 7; shards += 6) {
            struct table t;
            uint64_t found[MOST_ROWS * 3];
            make_table(&t, replica_counts[k], DITTO_U64, MOST_ROWS, 3, shards, DITTO_CONCURRENCY_HOGWILD);
            execute(&t, "add_in_both_ways", add_in_both_ways, test_trials(300));
            assert_ok(ditto_variable_read(t.variable, found, sizeof found));
            for (size_t row = 0; row < MOST_ROWS; row++)
                assert_int_equal(found[3 * row], 2 * t.calls[row % t.workers]);
            destroy_table(&t);
        }
}

/* Adds 1 to the row of each shard of which the worker is the only writer, and compares all elements with the
 * versions. Every third function fails after that. */
static ditto_status add_in_each_shard(ditto_replica *self, void *user)
{
    struct table *t = user;
    void *elements;
    uint64_t pulled[MOST_ROWS * 2], versions[4];
    EXPECT(&t->report,
           ditto_pull(self, t->variable, &OPTIONS(pull, .versions = versions), pulled) == DITTO_OK);
    for (int times = 0; times < 2; times++)
        EXPECT(&t->report, ditto_component(self, t->variable, &elements) == DITTO_OK);
    for (size_t s = 0; s < t->shards; s++) {
        ditto_shard_info shard = DITTO_SHARD_INFO_INIT;
        uint64_t sum = 0;
        EXPECT(&t->report, ditto_variable_shard(t->variable, s, &shard) == DITTO_OK);
        for (size_t i = shard.first_row; i < shard.first_row + shard.rows; i++)
            sum += pulled[i * 2];
        EXPECT(&t->report, sum >= versions[s]);
        add_one(t, elements, shard.first_row + ditto_worker(self));
    }
    return ++t->calls[ditto_worker(self)] % 3 == 0 ? ditto_fail(self, 5, "the third one") : DITTO_OK;
}

static void rule_12_11_a_function_counts_once_in_place(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (size_t shards = 1; shards <= 4; shards += 3) {
            struct table t;
            uint64_t calls = 0, found[MOST_ROWS * 2];
            uint32_t workers = replica_counts[k] <= MOST_ROWS / 4 ? replica_counts[k] : MOST_ROWS / 4;
            make_table(&t, workers, DITTO_U64, MOST_ROWS, 2, shards, DITTO_CONCURRENCY_HOGWILD);
            assert_ok(ditto_function_register("add_in_each_shard", add_in_each_shard, &t));
            for (int i = 0; i < test_trials(300);
                 i++) /* a failure cancels others, which then count nothing */
                (void)!ditto_coordinator_schedule(t.coordinator, "add_in_each_shard", NULL, NULL, NULL);
            while (ditto_coordinator_join(t.coordinator) != DITTO_OK)
                ;
            if (t.report.claimed)
                fail_msg("%s", t.report.first_failure);
            assert_ok(ditto_function_unregister("add_in_each_shard"));
            assert_ok(ditto_variable_read(t.variable, found, sizeof found));
            for (uint32_t w = 0; w < workers; w++)
                calls += t.calls[w];
            assert_true(calls > 0);
            for (size_t s = 0; s < shards; s++) {
                ditto_shard_info shard = shard_of(t.variable, s);
                assert_int_equal(shard.version, calls);
                for (uint32_t w = 0; w < workers; w++)
                    assert_int_equal(found[(shard.first_row + w) * 2], t.calls[w]);
            }
            assert_int_equal(properties_of(t.variable).generation, shards * calls);
            destroy_table(&t);
        }
}

/* Reads in place what others write in other ways. */
static ditto_status write_and_read_in_place(ditto_replica *self, void *user)
{
    struct table *t = user;
    const void *data;
    int64_t ones[MOST_ROWS * 3], before[MOST_ROWS * 3];
    for (int i = 0; i < MOST_ROWS * 3; i++)
        ones[i] = 1;
    EXPECT(&t->report, ditto_read(self, t->variable, &data) == DITTO_OK);
    const _Atomic int64_t *elements = data;
    for (int i = 0; i < MOST_ROWS * 3; i++)
        before[i] = atomic_load_explicit(&elements[i], memory_order_relaxed);
    EXPECT(&t->report, ditto_assign(self, t->variable, DITTO_ASSIGN_ADD, ones) == DITTO_OK);
    for (int i = 0; i < MOST_ROWS * 3; i++)
        EXPECT(&t->report, atomic_load_explicit(&elements[i], memory_order_relaxed) > before[i]);
    return DITTO_OK;
}

static void rule_12_10_free_reads_in_place(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (size_t shards = 1; shards <= 4; shards += 3) {
            struct table t;
            int64_t found[MOST_ROWS * 3];
            int times = test_trials(300);
            make_table(&t, replica_counts[k], DITTO_I64, MOST_ROWS, 3, shards, DITTO_CONCURRENCY_FREE_READS);
            execute(&t, "write_and_read_in_place", write_and_read_in_place, times);
            assert_ok(ditto_variable_read(t.variable, found, sizeof found));
            for (int i = 0; i < MOST_ROWS * 3; i++)
                assert_int_equal(found[i], times);
            assert_int_equal(shard_of(t.variable, 0).version, times); /* reads count nothing */
            destroy_table(&t);
        }
}

/* What a function must not do in place. */
static ditto_status access_in_place_wrongly(ditto_replica *self, void *user)
{
    struct table *t = user;
    const void *read;
    void *elements;
    EXPECT(&t->report, ditto_component(NULL, t->variable, &elements) == DITTO_ERR_INVALID);
    EXPECT(&t->report, ditto_component(self, NULL, &elements) == DITTO_ERR_INVALID);
    EXPECT(&t->report, ditto_component(self, t->variable, NULL) == DITTO_ERR_INVALID);
    EXPECT(&t->report, ditto_read(self, NULL, &read) == DITTO_ERR_INVALID);
    EXPECT(&t->report, ditto_component(self, t->other, &elements) == DITTO_ERR_CONTEXT);
    EXPECT(&t->report, ditto_read(self, t->other, &read) == DITTO_ERR_CONTEXT);
    bool is_hogwild = t->concurrency == DITTO_CONCURRENCY_HOGWILD,
         is_locked = t->concurrency == DITTO_CONCURRENCY_LOCKED;
    EXPECT(&t->report, ditto_read(self, t->variable, is_locked ? &read : NULL) ==
                           (is_locked ? DITTO_ERR_CONTEXT : DITTO_ERR_INVALID));
    EXPECT(&t->report, !is_locked || strstr(ditto_last_error()->message, "FREE_READS") != NULL);
    if (is_hogwild)
        return DITTO_OK;
    EXPECT(&t->report, ditto_component(self, t->variable, &elements) == DITTO_ERR_INVALID);
    EXPECT(&t->report, strstr(ditto_last_error()->message, "DITTO_CONCURRENCY_HOGWILD") != NULL);
    return DITTO_OK;
}

static void rule_12_11_wrong_accesses_in_place_are_refused(void **state)
{
    const ditto_concurrency concurrencies[] = { DITTO_CONCURRENCY_LOCKED, DITTO_CONCURRENCY_FREE_READS,
                                                DITTO_CONCURRENCY_HOGWILD };
    struct table other;
    make_table(&other, 1, DITTO_F32, 10, 3, 2, DITTO_CONCURRENCY_HOGWILD);
    for (int k = 0; k < 3; k++) {
        struct table t;
        make_table(&t, 2, DITTO_F32, 10, 3, 2, concurrencies[k]);
        t.other = other.variable;
        execute(&t, "access_in_place_wrongly", access_in_place_wrongly, 4);
        assert_int_equal(properties_of(t.variable).generation, 0);
        destroy_table(&t);
    }
    destroy_table(&other);
}

/* Takes the address, and waits until the program has tried to destroy the variable. In a child process, the
 * address cannot be taken, and the memory is the child's own. */
static ditto_status hold_in_place(ditto_replica *self, void *user)
{
    struct table *t = user;
    void *elements;
    EXPECT(&t->report, ditto_component(self, t->variable, &elements) == DITTO_OK);
    add_one(t, elements, 3);
    if (!SANITIZED) {
        int ended;
        pid_t child = fork();
        if (child == 0) {
            add_one(t, elements, 3);
            _exit(ditto_component(self, t->variable, &elements) == DITTO_ERR_FORKED ? 0 : 1);
        }
        EXPECT(&t->report, child > 0 && waitpid(child, &ended, 0) == child && ended == 0);
    }
    atomic_store(&t->calls[0], 1);
    while (atomic_load(&t->calls[0]) == 1)
        usleep(100);
    add_one(t, elements, 3);
    return DITTO_OK;
}

static void rule_12_11_what_is_used_in_place_is_not_destroyed(void **state)
{
    struct table t;
    uint64_t found[20];
    make_table(&t, 1, DITTO_U64, 10, 2, 2, DITTO_CONCURRENCY_HOGWILD);
    assert_ok(ditto_function_register("hold_in_place", hold_in_place, &t));
    assert_ok(ditto_coordinator_schedule(t.coordinator, "hold_in_place", NULL, NULL, NULL));
    while (atomic_load(&t.calls[0]) == 0 && !t.report.claimed)
        usleep(100);
    assert_status(ditto_variable_destroy(t.variable), DITTO_ERR_BUSY);
    assert_status(ditto_strategy_destroy(t.strategy), DITTO_ERR_BUSY);
    assert_ok(ditto_variable_read(t.variable, found, sizeof found));
    assert_int_equal(found[6], 1);
    assert_int_equal(shard_of(t.variable, 0).version, 0); /* not yet */
    atomic_store(&t.calls[0], 2);
    assert_ok(ditto_coordinator_join(t.coordinator));
    if (t.report.claimed)
        fail_msg("%s", t.report.first_failure);
    assert_ok(ditto_function_unregister("hold_in_place"));
    assert_ok(ditto_variable_read(t.variable, found, sizeof found));
    assert_int_equal(found[6], 2);
    assert_int_equal(shard_of(t.variable, 0).version, 1);
    assert_int_equal(shard_of(t.variable, 1).version, 1);
    destroy_table(&t);
}

/* Of a worker with several replicas, each counts. */
static ditto_status add_in_own_row(ditto_replica *self, void *user)
{
    struct table *t = user;
    void *elements;
    EXPECT(&t->report, ditto_component(self, t->variable, &elements) == DITTO_OK);
    add_one(t, elements, ditto_worker(self) * 3 + ditto_replica_id(self));
    return ditto_barrier(self, NULL);
}

static void rule_12_11_each_replica_of_a_worker_counts_in_place(void **state)
{
    struct table t;
    uint64_t found[MOST_ROWS * 2], sum = 0;
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = 6, .replicas_per_worker = 3);
    make_table_with(&t, &options, DITTO_U64, MOST_ROWS, 2, 3, DITTO_CONCURRENCY_HOGWILD);
    execute(&t, "add_in_own_row", add_in_own_row, 20);
    assert_ok(ditto_variable_read(t.variable, found, sizeof found));
    for (int row = 0; row < 6; row++)
        sum += found[row * 2];
    assert_int_equal(sum, 3 * 20);
    for (size_t s = 0; s < 3; s++)
        assert_int_equal(shard_of(t.variable, s).version, 3 * 20);
    destroy_table(&t);
}

/* Changes its row when the worker has been given up, and the variable was destroyed. */
static ditto_status add_late(ditto_replica *self, void *user)
{
    struct table *t = user;
    void *elements;
    DITTO_TRY(ditto_component(self, t->variable, &elements));
    atomic_store(&t->calls[0], 1);
    while (atomic_load(&t->calls[0]) == 1)
        usleep(100);
    add_one(t, elements, 3);
    DITTO_TRY(ditto_component(self, t->variable, &elements));
    atomic_store(&t->calls[0], 3);
    return DITTO_OK;
}

/* In a child process, because a late function keeps its memory until the process ends. */
static int destroy_before_late(void *unused)
{
    static struct table t;
    ditto_tensor spec = { .dtype = DITTO_U64, .rank = 2, .shape = { 10, 2 } };
    ditto_variable_options cut = OPTIONS(
        variable, .partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 3 },
        .concurrency = DITTO_CONCURRENCY_HOGWILD);
    t.row_bytes = 16;
    REQUIRE(ditto_strategy_create(DITTO_PARAMETER_SERVER,
                                  &OPTIONS(strategy, .num_replicas = 1, .timeout_ms = 2000,
                                           .run_timeout_ms = SANITIZED ? 500 : 100),
                                  &t.strategy) == DITTO_OK);
    REQUIRE(ditto_variable_create(t.strategy, &spec, &cut, &t.variable) == DITTO_OK);
    REQUIRE(ditto_coordinator_create(t.strategy, &OPTIONS(coordinator, .max_attempts = 1), &t.coordinator) ==
            DITTO_OK);
    REQUIRE(ditto_function_register("add_late", add_late, &t) == DITTO_OK);
    REQUIRE(ditto_coordinator_schedule(t.coordinator, "add_late", NULL, NULL, NULL) == DITTO_OK);
    REQUIRE(ditto_coordinator_join(t.coordinator) != DITTO_OK);
    REQUIRE(ditto_variable_destroy(t.variable) == DITTO_ERR_BUSY);
    REQUIRE(ditto_coordinator_destroy(t.coordinator) == DITTO_ERR_POISONED);
    REQUIRE(ditto_variable_destroy(t.variable) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(t.strategy) == DITTO_ERR_POISONED);
    uint32_t begun = 1; /* if the function has begun before its worker was retired */
    if (atomic_compare_exchange_strong(&t.calls[0], &begun, 2))
        while (atomic_load(&t.calls[0]) != 3)
            usleep(100);
    usleep(100000); /* the thread ends, and counts */
    return 0;
}

static void rule_12_7_a_late_function_keeps_what_it_uses_in_place(void **state)
{
    assert_int_equal(in_child(destroy_before_late, NULL, 100), 0);
}

/* Creates tables with several shards whose memory is refused, or is not, in both orders of destroying. The
 * process may have 1 GB more than it has, and the tables have 2.4 GB in all. */
static int create_below_limit(void *unused)
{
    ditto_strategy *strategy;
    ditto_variable *large, *small;
    struct rlimit limit;
    ditto_tensor t = { .dtype = DITTO_U8, .rank = 2, .shape = { 1 << 20, 40 } };
    ditto_variable_options cut = OPTIONS(
        variable, .partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 5 },
        .concurrency = DITTO_CONCURRENCY_HOGWILD);
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = 2);
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    REQUIRE(file != NULL && fscanf(file, "%lu", &pages) == 1);
    REQUIRE(fclose(file) == 0);
    REQUIRE(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + 1000000000;
    for (int i = 0; i < 60; i++) {
        REQUIRE(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy) == DITTO_OK);
        REQUIRE(i > 0 || setrlimit(RLIMIT_AS, &limit) == 0);
        t.shape[1] = 4000;
        REQUIRE(ditto_variable_create(strategy, &t, &cut, &large) == DITTO_ERR_NO_MEMORY);
        REQUIRE(strstr(ditto_last_error()->message, "RLIMIT_AS") != NULL);
        t.shape[1] = 40;
        REQUIRE(ditto_variable_create(strategy, &t, &cut, &small) == DITTO_OK);
        if (i % 2 == 0)
            REQUIRE(ditto_variable_destroy(small) == DITTO_OK);
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
        if (i % 2 != 0)
            REQUIRE(ditto_variable_destroy(small) == DITTO_OK);
    }
    return 0;
}

static void memory_of_shards_without_locks_is_given_back(void **state)
{
    if (SANITIZED)
        skip(); /* their shadow memory exceeds the limit */
    assert_int_equal(in_child(create_below_limit, NULL, 100), 0);
}

/* -- creation -- */

static void rule_12_11_wrong_concurrencies_are_refused(void **state)
{
    struct table t;
    char text[400];
    ditto_variable *refused;
    ditto_strategy *mirrored = make_strategy(2, NULL);
    ditto_tensor f32 = { .dtype = DITTO_F32 }, c128 = { .dtype = DITTO_C128 };
    make_table(&t, 2, DITTO_F32, 10, 3, 2, DITTO_CONCURRENCY_HOGWILD);
    assert_ok(ditto_variable_describe(t.variable, text, sizeof text, NULL));
    assert_non_null(strstr(text, "HOGWILD"));
    ditto_variable_options options = OPTIONS(variable, .concurrency = (ditto_concurrency)-1);
    assert_status(ditto_variable_create(t.strategy, &f32, &options, &refused), DITTO_ERR_RANGE);
    options.concurrency = (ditto_concurrency)4;
    assert_status(ditto_variable_create(t.strategy, &f32, &options, &refused), DITTO_ERR_RANGE);
    assert_message("concurrency");
    options.concurrency = DITTO_CONCURRENCY_HOGWILD;
    assert_status(ditto_variable_create(t.strategy, &c128, &options, &refused), DITTO_ERR_UNSUPPORTED);
    assert_message("c128");
    assert_status(ditto_variable_create(mirrored, &f32, &options, &refused), DITTO_ERR_INVALID);
    assert_message("DITTO_PARAMETER_SERVER");
    options.concurrency = DITTO_CONCURRENCY_LOCKED;
    assert_status(ditto_variable_create(mirrored, &f32, &options, &refused), DITTO_ERR_INVALID);
    assert_ok(ditto_variable_create(t.strategy, &c128, &options, &refused));
    assert_ok(ditto_variable_destroy(refused));
    options.concurrency = DITTO_CONCURRENCY_HOGWILD; /* of scalars and of variables without elements */
    f32.rank = 2;
    f32.shape[0] = 3;
    assert_ok(ditto_variable_create(t.strategy, &f32, &options, &refused));
    assert_ok(ditto_variable_assign(refused, DITTO_ASSIGN, NULL, 0));
    assert_ok(ditto_variable_destroy(refused));
    float number = 2;
    f32 = (ditto_tensor){ .dtype = DITTO_F32 };
    assert_ok(ditto_variable_create(t.strategy, &f32, &options, &refused));
    assert_ok(ditto_variable_assign(refused, DITTO_ASSIGN_ADD, &number, sizeof number));
    assert_ok(ditto_variable_assign(refused, DITTO_ASSIGN_ADD, &number, sizeof number));
    assert_ok(ditto_variable_read(refused, &number, sizeof number));
    assert_true(number == 4);
    assert_ok(ditto_variable_destroy(refused));
    assert_ok(ditto_strategy_destroy(mirrored));
    destroy_table(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_12_11_different_rows_do_not_touch_each_other),
        cmocka_unit_test(rule_12_11_versions_count_the_calls_that_have_ended),
        cmocka_unit_test(rule_12_11_no_element_is_torn),
        cmocka_unit_test(rule_12_11_updates_of_the_same_row_may_be_lost),
        cmocka_unit_test(rule_12_11_one_worker_has_the_bits_of_a_locked_parameter),
        cmocka_unit_test(rule_12_12_steps_without_locks),
        cmocka_unit_test(rule_12_12_steps_that_need_a_lock_are_refused),
        cmocka_unit_test(rule_12_10_free_reads_lose_no_update),
        cmocka_unit_test(rule_12_10_free_reads_tear_no_element),
        cmocka_unit_test(rule_12_12_steps_of_all_rules_allow_free_reads),
        cmocka_unit_test(rule_12_10_wrong_reads_are_refused),
        cmocka_unit_test(rule_12_11_rows_in_place_are_those_of_calls),
        cmocka_unit_test(rule_12_11_a_function_counts_once_in_place),
        cmocka_unit_test(rule_12_10_free_reads_in_place),
        cmocka_unit_test(rule_12_11_wrong_accesses_in_place_are_refused),
        cmocka_unit_test(rule_12_11_what_is_used_in_place_is_not_destroyed),
        cmocka_unit_test(rule_12_11_each_replica_of_a_worker_counts_in_place),
        cmocka_unit_test(rule_12_7_a_late_function_keeps_what_it_uses_in_place),
        cmocka_unit_test(memory_of_shards_without_locks_is_given_back),
        cmocka_unit_test(rule_12_11_wrong_concurrencies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
