/* tests/semantics/test_rows.c - docs/semantics.md, "Variables": rules 8.13 (indexed updates) and 8.16
 * (shards). */
#include "support/as_hosts.h"
#include "support/support.h"

#include "vars/variables/copies.h"
#include "vars/vars.h"

#define ROWS 23
#define ROW  3

enum form { PLAIN, COPIES, SHARDS, FORMS };

static ditto_variable *make(ditto_strategy *s, ditto_dtype dtype, ditto_aggregation how, enum form form,
                            const void *initial)
{
    ditto_tensor tensor = {
        .data = (void *)(uintptr_t)initial, .dtype = dtype, .rank = 2, .shape = { ROWS, ROW }
    };
    ditto_variable *v;
    ditto_variable_options options = OPTIONS(variable, .name = "table", .aggregation = how);
    if (form == COPIES)
        options.copies = DITTO_COPIES_PER_REPLICA;
    if (form == SHARDS)
        options.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 4 };
    assert_ok(ditto_variable_create(s, &tensor, &options, &v));
    return v;
}

static double get(ditto_dtype dtype, const void *array, size_t i)
{
    return dtype == DITTO_F64 ? ((const double *)array)[i] : (double)((const int32_t *)array)[i];
}

static void put(ditto_dtype dtype, void *array, size_t i, double x)
{
    if (dtype == DITTO_F64)
        ((double *)array)[i] = x;
    else
        ((int32_t *)array)[i] = (int32_t)x;
}

/* -- slices: replicas have different numbers of them, up to 5, and some rows in common -- */

static size_t slices_of(uint32_t replica)
{
    return (replica * 4 + 5) % 6;
}

/* The fourth slice of a replica has the row of its first one, and another value. */
static int64_t index_of(uint32_t replica, size_t k)
{
    return (int64_t)((replica * 5 + k % 3 * 7) % 9);
}

static double value_of(uint32_t replica, size_t k, size_t column)
{
    return (double)((replica + k * 3 + column) % 5) + 1; /* never 0 */
}

static double combine(ditto_dtype dtype, ditto_scatter_op op, double old, double value)
{
    switch (op) {
    case DITTO_SCATTER_ADD:
        return old + value;
    case DITTO_SCATTER_SUB:
        return old - value;
    case DITTO_SCATTER_MUL:
        return dtype == DITTO_F64 ? old * value : (double)(int32_t)(uint32_t)((int64_t)old * (int64_t)value);
    case DITTO_SCATTER_DIV:
        return dtype == DITTO_F64 ? old / value : (double)((int32_t)old / (int32_t)value);
    case DITTO_SCATTER_MIN:
        return old < value ? old : value;
    case DITTO_SCATTER_MAX:
        return old > value ? old : value;
    default:
        return value;
    }
}

/* Divides the slices of the first `replicas` replicas by `divisor`, and applies them to an array one after
 * the other, as the rule says. */
static void expect(ditto_dtype dtype, ditto_scatter_op op, uint32_t replicas, double divisor, void *array)
{
    for (uint32_t r = 0; r < replicas; r++)
        for (size_t k = 0; k < slices_of(r); k++)
            for (size_t c = 0; c < ROW; c++) {
                size_t i = (size_t)index_of(r, k) * ROW + c;
                put(dtype, array, i, combine(dtype, op, get(dtype, array, i), value_of(r, k, c) / divisor));
            }
}

struct scattering {
    struct report report;
    ditto_variable *v;
    ditto_scatter_op op;
    ditto_dtype dtype;
    ditto_status expected;
    uint32_t wrong; /* the replica whose last index is out of range, if it exists */
};

static size_t fill(uint32_t replica, ditto_dtype dtype, int64_t *indices, void *values)
{
    size_t count = slices_of(replica);
    for (size_t k = 0; k < count; k++) {
        indices[k] = index_of(replica, k);
        for (size_t c = 0; c < ROW; c++)
            put(dtype, values, k * ROW + c, value_of(replica, k, c));
    }
    return count;
}

static ditto_status scatter(ditto_replica *self, void *argument)
{
    struct scattering *s = argument;
    int64_t indices[6];
    double values[6 * ROW];
    uint32_t id = ditto_replica_id(self);
    ditto_slices slices = { .indices = indices,
                            .values = values,
                            .rows = fill(id, s->dtype, indices, values),
                            .row_count = ROW,
                            .dtype = s->dtype };
    if (id == s->wrong)
        indices[slices.rows++] = ROWS;
    uint64_t before = generation_of(s->v);
    EXPECT(&s->report, ditto_scatter(self, s->v, s->op, &slices) == s->expected);
    EXPECT(&s->report,
           s->expected == DITTO_OK || strstr(ditto_last_error()->message, "the index 23,") != NULL);
    EXPECT(&s->report,
           (generation_of(s->v) != before) == (s->expected == DITTO_OK || s->expected == DITTO_ERR_RANGE));
    return DITTO_OK;
}

static void expect_table(const char *whose, const void *found, ditto_dtype dtype, const void *expected)
{
    for (size_t i = 0; i < ROWS * ROW; i++)
        if (get(dtype, found, i) != get(dtype, expected, i))
            fail_msg("element %zu of %s is %g, not %g", i, whose, get(dtype, found, i),
                     get(dtype, expected, i));
}

/* Checks the value that is read, and the component of each replica of this host if the variable is not in
 * shards. */
static void check(ditto_strategy *s, ditto_variable *v, ditto_dtype dtype, const void *expected)
{
    char value[ROWS * ROW * 8];
    ditto_tensor spec = spec_of(v);
    assert_ok(ditto_variable_read(v, value, ditto_tensor_bytes(&spec)));
    expect_table("the value", value, dtype, expected);
    for (uint32_t r = first_local(s); properties_of(v).num_shards == 1 && r < end_local(s); r++) {
        char whose[40];
        const void *component;
        assert_ok(component_of(v, r, &component));
        snprintf(whose, sizeof whose, "component %u", r);
        expect_table(whose, component, dtype, expected);
    }
}

static void fill_table(ditto_dtype dtype, void *table)
{
    for (size_t i = 0; i < ROWS * ROW; i++)
        put(dtype, table, i, (double)(i * 1000 % 77777) + 100);
}

static void try_rule(uint32_t n, ditto_dtype dtype, ditto_aggregation how, ditto_scatter_op op,
                     enum form form)
{
    char table[ROWS * ROW * 8];
    ditto_strategy *s = make_strategy(n, NULL);
    bool first = how == DITTO_AGGREGATE_ONLY_FIRST_REPLICA;
    fill_table(dtype, table);
    struct scattering scattering = {
        .v = make(s, dtype, how, form, table), .op = op, .dtype = dtype, .wrong = UINT32_MAX
    };
    for (int round = 0; round < 2; round++) {
        run_all(s, scatter, &scattering, &scattering.report);
        expect(dtype, op, first ? 1 : n, how == DITTO_AGGREGATE_MEAN ? n : 1, table);
    }
    check(s, scattering.v, dtype, table);
    assert_ok(ditto_variable_destroy(scattering.v));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_8_13_slices_of_all_replicas_are_applied_once_in_order(void **state)
{
    for (size_t i = 0; i < replica_counts_length; i++)
        for (int op = DITTO_SCATTER_ADD; op <= DITTO_SCATTER_UPDATE; op++)
            for (int form = PLAIN; form < FORMS; form++) {
                uint32_t n = replica_counts[i];
                if (n == 64 && form != op % FORMS)
                    continue;
                try_rule(n, DITTO_F64, DITTO_AGGREGATE_ONLY_FIRST_REPLICA, (ditto_scatter_op)op,
                         (enum form)form);
                if (op >= DITTO_SCATTER_MIN)
                    continue;
                try_rule(n, DITTO_F64, DITTO_AGGREGATE_SUM, (ditto_scatter_op)op, (enum form)form);
                try_rule(n, DITTO_F64, DITTO_AGGREGATE_MEAN, (ditto_scatter_op)op, (enum form)form);
                try_rule(n, DITTO_I32, DITTO_AGGREGATE_SUM, (ditto_scatter_op)op, (enum form)form);
            }
}

static void rule_8_13_an_index_out_of_range_writes_nothing(void **state)
{
    char table[ROWS * ROW * 8];
    fill_table(DITTO_F64, table);
    for (size_t i = 0; i < replica_counts_length; i++) {
        uint32_t n = replica_counts[i];
        ditto_strategy *s = make_strategy(n, NULL);
        struct scattering scattering = { .v = make(s, DITTO_F64, DITTO_AGGREGATE_SUM, (enum form)(i % FORMS),
                                                   table),
                                         .op = DITTO_SCATTER_ADD,
                                         .dtype = DITTO_F64,
                                         .expected = DITTO_ERR_RANGE,
                                         .wrong = n - 1 };
        /* The run continues, because all replicas get the same error. */
        run_all(s, scatter, &scattering, &scattering.report);
        check(s, scattering.v, DITTO_F64, table);
        assert_ok(ditto_variable_destroy(scattering.v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void rule_8_13_in_cross_replica_context_slices_are_applied_once_and_not_scaled(void **state)
{
    static const ditto_aggregation hows[] = { DITTO_AGGREGATE_NONE, DITTO_AGGREGATE_SUM, DITTO_AGGREGATE_MEAN,
                                              DITTO_AGGREGATE_ONLY_FIRST_REPLICA };
    double table[ROWS * ROW], values[6 * ROW];
    int64_t indices[6];
    ditto_strategy *s = make_strategy(3, NULL);
    for (int op = DITTO_SCATTER_ADD; op <= DITTO_SCATTER_UPDATE; op++)
        for (size_t h = 0; h < 4; h++)
            for (int form = PLAIN; form < FORMS; form++) {
                fill_table(DITTO_F64, table);
                ditto_variable *v = make(s, DITTO_F64, hows[h], (enum form)form, table);
                ditto_slices slices = { indices, values, fill(0, DITTO_F64, indices, values), ROW,
                                        DITTO_F64 };
                if (op >= DITTO_SCATTER_MIN && (h == 1 || h == 2)) {
                    assert_status(ditto_variable_scatter(v, (ditto_scatter_op)op, &slices),
                                  DITTO_ERR_UNSUPPORTED);
                } else {
                    assert_ok(ditto_variable_scatter(v, (ditto_scatter_op)op, &slices));
                    expect(DITTO_F64, (ditto_scatter_op)op, 1, 1, table);
                }
                check(s, v, DITTO_F64, table);
                assert_ok(ditto_variable_destroy(v));
            }
    assert_ok(ditto_strategy_destroy(s));
}

struct refusal {
    struct report report;
    ditto_variable *none, *sum, *on_read, *flags, *scalar, *whole;
};

static ditto_status scatter_wrongly(ditto_replica *self, void *argument)
{
    struct refusal *r = argument;
    static int64_t index[1];
    static double row[ROW];
    static int32_t zeros[ROW];
    static unsigned char flags[ROW];
    const ditto_slices good = { index, row, 1, ROW, DITTO_F64 },
                       narrow = { index, row, 1, ROW - 1, DITTO_F64 };
    const ditto_slices other = { index, row, 1, ROW, DITTO_F32 }, null = { index, NULL, 1, ROW, DITTO_F64 };
    const ditto_slices by_zero = { index, zeros, 1, ROW, DITTO_I32 },
                       bits = { index, flags, 1, ROW, DITTO_BOOL };
    struct report *report = &r->report;
    EXPECT(report, ditto_scatter(self, r->none, DITTO_SCATTER_ADD, &good) == DITTO_ERR_INVALID);
    EXPECT(report, strstr(ditto_last_error()->message, "to say how to aggregate") != NULL);
    EXPECT(report, ditto_scatter(self, r->sum, DITTO_SCATTER_MIN, &good) == DITTO_ERR_UNSUPPORTED);
    EXPECT(report, ditto_scatter(self, r->sum, DITTO_SCATTER_UPDATE, &good) == DITTO_ERR_UNSUPPORTED);
    EXPECT(report, ditto_scatter(self, r->on_read, DITTO_SCATTER_ADD, &good) == DITTO_ERR_UNSUPPORTED);
    EXPECT(report, ditto_scatter(self, r->flags, DITTO_SCATTER_ADD, &bits) == DITTO_ERR_UNSUPPORTED);
    EXPECT(report, ditto_scatter(self, r->flags, DITTO_SCATTER_UPDATE, &bits) == DITTO_OK);
    EXPECT(report, ditto_scatter(self, r->sum, DITTO_SCATTER_ADD, &narrow) == DITTO_ERR_SHAPE);
    EXPECT(report, ditto_scatter(self, r->sum, DITTO_SCATTER_ADD, &other) == DITTO_ERR_INVALID);
    EXPECT(report, ditto_scatter(self, r->sum, DITTO_SCATTER_ADD, &null) == DITTO_ERR_INVALID);
    EXPECT(report, ditto_scatter(self, r->sum, DITTO_SCATTER_ADD, NULL) == DITTO_ERR_INVALID);
    EXPECT(report, ditto_scatter(self, r->sum, (ditto_scatter_op)8, &good) == DITTO_ERR_RANGE);
    EXPECT(report, ditto_scatter(self, r->scalar, DITTO_SCATTER_ADD, &good) == DITTO_ERR_SHAPE);
    EXPECT(report, ditto_scatter(self, r->whole, DITTO_SCATTER_DIV, &by_zero) == DITTO_ERR_INVALID);
    EXPECT(report, strstr(ditto_last_error()->message, "an integer divided by 0") != NULL);
    return DITTO_OK;
}

static void rule_8_13_updates_without_a_meaning_are_refused(void **state)
{
    ditto_tensor scalar = { .dtype = DITTO_F64 };
    struct refusal r = { .none = NULL };
    ditto_strategy *s = make_strategy(2, NULL);
    r.none = make(s, DITTO_F64, DITTO_AGGREGATE_NONE, PLAIN, NULL);
    r.sum = make(s, DITTO_F64, DITTO_AGGREGATE_SUM, PLAIN, NULL);
    r.flags = make(s, DITTO_BOOL, DITTO_AGGREGATE_ONLY_FIRST_REPLICA, PLAIN, NULL);
    r.whole = make(s, DITTO_I32, DITTO_AGGREGATE_SUM, PLAIN, NULL);
    ditto_variable_options options = OPTIONS(variable, .aggregation = DITTO_AGGREGATE_SUM);
    assert_ok(ditto_variable_create(s, &scalar, &options, &r.scalar));
    options.synchronization = DITTO_ON_READ;
    ditto_tensor table = { .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, ROW } };
    assert_ok(ditto_variable_create(s, &table, &options, &r.on_read));
    run_all(s, scatter_wrongly, &r, &r.report);
    ditto_variable *all[] = { r.none, r.sum, r.on_read, r.flags, r.scalar, r.whole };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_ok(ditto_variable_destroy(all[i]));
    assert_ok(ditto_strategy_destroy(s));
}

/* An update function that scatters into its variable. Only the copy that it updates changes. */
static ditto_status scatter_copy(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                 void *v, ditto_tensor *result)
{
    int64_t index[] = { 2, 2 };
    double rows[2 * ROW] = { 1, 2, 3, 10, 20, 30 };
    ditto_slices slices = { index, rows, 2, ROW, DITTO_F64 };
    return ditto_variable_scatter(v, DITTO_SCATTER_ADD, &slices);
}

static void rule_8_13_in_an_update_function_a_scatter_changes_the_copy_being_updated(void **state)
{
    double rows[2 * ROW];
    int64_t indices[] = { 2, 1 };
    ditto_strategy *s = make_strategy(3, NULL);
    ditto_variable *v = make(s, DITTO_F64, DITTO_AGGREGATE_SUM, COPIES, NULL);
    assert_ok(ditto_variable_update(v, scatter_copy, v, NULL, 0, NULL, NULL));
    assert_ok(ditto_variable_lookup(v, indices, 2, rows, sizeof rows));
    assert_true(rows[0] == 11 && rows[1] == 22 && rows[2] == 33 && rows[3] == 0);
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- shards -- */

/* Returns the number of shards by the formulas of rule 8.16. */
static size_t shards_by_rule(const ditto_partitioner *p, size_t rows, size_t row_bytes)
{
    size_t k = 1, bytes = p->bytes != 0 ? p->bytes : 256 << 10;
    if (p->kind == DITTO_PARTITION_FIXED)
        k = p->num_shards < rows ? p->num_shards : rows;
    if (p->kind == DITTO_PARTITION_MIN_SIZE) {
        size_t most = p->num_shards != 0 ? p->num_shards : 1;
        k = (rows * row_bytes + bytes - 1) / bytes;
        k = k < most ? k : most;
        k = k < rows ? k : rows;
    }
    if (p->kind == DITTO_PARTITION_MAX_SIZE) {
        size_t each = p->bytes / row_bytes > 1 ? p->bytes / row_bytes : 1;
        k = (rows + each - 1) / each;
        k = p->num_shards != 0 && k > p->num_shards ? p->num_shards : k;
    }
    return k > 1 ? k : 1;
}

static void rule_8_16_partitioners_choose_the_number_of_shards_by_the_rule(void **state)
{
    static const size_t rows[] = { 1, 2, 7, 100, 4096 }, widths[] = { 1, 3, 1000 },
                        bytes[] = { 4, 100, 4096, 1 << 20 };
    int points = 0;
    for (int kind = DITTO_PARTITION_FIXED; kind <= DITTO_PARTITION_MAX_SIZE; kind++)
        for (size_t k = 1; k <= 20; k++)
            for (size_t r = 0; r < 5; r++)
                for (size_t w = 0; w < 3; w++)
                    for (size_t b = 0; b < 4; b++, points++) {
                        ditto_partitioner p = { .kind = (ditto_partition)kind,
                                                .num_shards = k,
                                                .bytes = bytes[b] };
                        assert_int_equal(dti_partition_shards(&p, rows[r], widths[w] * 4),
                                         shards_by_rule(&p, rows[r], widths[w] * 4));
                    }
    ditto_partitioner smallest = { .kind = DITTO_PARTITION_MIN_SIZE },
                      bad = { .kind = DITTO_PARTITION_FIXED };
    /* With 0 shards at most 1 is made, and 0 bytes mean 256 KiB. */
    assert_int_equal(dti_partition_shards(&smallest, 1000000, 4), 1);
    smallest.num_shards = 100;
    assert_int_equal(dti_partition_shards(&smallest, 1000000, 4), 16);
    assert_status(dti_partitioner_check(&bad), DITTO_ERR_INVALID);
    bad.kind = DITTO_PARTITION_MAX_SIZE;
    assert_status(dti_partitioner_check(&bad), DITTO_ERR_INVALID);
    bad.kind = (ditto_partition)5;
    assert_status(dti_partitioner_check(&bad), DITTO_ERR_RANGE);
    printf("  %d points\n", points);
}

/* The rows that `initialize` was called for. */
struct initialized {
    size_t first[8], rows[8];
    int calls;
};

static ditto_status initialize(const ditto_tensor *value, size_t first_row, void *user)
{
    struct initialized *initialized = user;
    initialized->first[initialized->calls] = first_row;
    initialized->rows[initialized->calls++] = value->shape[0];
    for (size_t i = 0; i < elements_in(value); i++)
        ((double *)value->data)[i] = (double)(first_row * ROW + i);
    return DITTO_OK;
}

static void rule_8_16_the_first_shards_have_one_row_more_and_initializers_get_their_rows(void **state)
{
    double found[ROWS * ROW];
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_tensor tensor = { .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, ROW } };
    for (size_t i = 0; i < replica_counts_length; i++)
        for (size_t shards = 1; shards <= 6; shards++) {
            struct initialized initialized = { .calls = 0 };
            ditto_variable *v;
            ditto_strategy *s = make_strategy(replica_counts[i], NULL);
            options.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = shards };
            options.initialize = initialize;
            options.initialize_user = &initialized;
            assert_ok(ditto_variable_create(s, &tensor, &options, &v));
            assert_int_equal(properties_of(v).num_shards, shards);
            bool is_first_host = first_local(s) == 0; /* where alone initialize is called */
            assert_int_equal(initialized.calls, is_first_host ? shards : 0);
            size_t next = 0;
            for (size_t k = 0; k < shards; k++) {
                ditto_shard_info shard = shard_of(v, k);
                size_t first = shard.first_row, rows = shard.rows;
                assert_int_equal(first, next);
                assert_int_equal(rows, ROWS / shards + (k < ROWS % shards));
                assert_int_equal(initialized.first[k], is_first_host ? first : 0);
                assert_int_equal(initialized.rows[k], is_first_host ? rows : 0);
                assert_true(*(const double *)shard.data == (double)(first * ROW));
                next += rows;
            }
            assert_int_equal(next, ROWS);
            ditto_shard_info none = DITTO_SHARD_INFO_INIT;
            assert_status(ditto_variable_shard(v, shards, &none), DITTO_ERR_RANGE);
            assert_ok(ditto_variable_read(v, found, sizeof found));
            for (size_t e = 0; e < ROWS * ROW; e++)
                assert_true(found[e] == (double)e);
            assert_ok(ditto_variable_destroy(v));
            assert_ok(ditto_strategy_destroy(s));
        }
}

struct sharded {
    struct report report;
    ditto_variable *v;
};

/* Every replica adds its id + 1 to all elements, looks up rows of several shards, and subtracts its id + 1
 * again. */
static ditto_status add_and_look(ditto_replica *self, void *argument)
{
    struct sharded *t = argument;
    uint32_t n = ditto_num_replicas(self);
    double amounts[ROWS * ROW], rows[4 * ROW];
    int64_t indices[] = { 22, 0, 11, 22 }, wrong[] = { 0, 23 };
    const void *data;
    for (int i = 0; i < ROWS * ROW; i++)
        amounts[i] = (double)ditto_replica_id(self) + 1;
    DITTO_TRY(ditto_assign(self, t->v, DITTO_ASSIGN_ADD, amounts));
    DITTO_TRY(ditto_lookup(self, t->v, indices, 4, rows));
    for (int k = 0; k < 4 * ROW; k++)
        EXPECT(&t->report, rows[k] == (double)(indices[k / ROW] * ROW + k % ROW) + n * (n + 1) / 2.0);
    rows[0] = -1;
    EXPECT(&t->report, ditto_lookup(self, t->v, wrong, 2, rows) == DITTO_ERR_RANGE && rows[0] == -1);
    EXPECT(&t->report, ditto_read(self, t->v, &data) == DITTO_ERR_UNSUPPORTED);
    return ditto_assign(self, t->v, DITTO_ASSIGN_SUB, amounts);
}

static void rule_8_16_shards_are_assigned_added_read_and_looked_up(void **state)
{
    for (size_t i = 0; i < replica_counts_length; i++) {
        double initial[ROWS * ROW], found[ROWS * ROW], rows[2 * ROW];
        int64_t indices[] = { 22, 5 };
        char words[300];
        const void *data;
        ditto_value *value;
        for (int e = 0; e < ROWS * ROW; e++)
            initial[e] = e;
        ditto_strategy *s = make_strategy(replica_counts[i], NULL);
        struct sharded t = { .v = make(s, DITTO_F64, DITTO_AGGREGATE_SUM, SHARDS, initial) };
        run_all(s, add_and_look, &t, &t.report);
        assert_ok(ditto_variable_read(t.v, found, sizeof found));
        assert_memory_equal(found, initial, sizeof found);
        assert_ok(ditto_variable_assign(t.v, DITTO_ASSIGN_ADD, initial, sizeof initial));
        assert_ok(ditto_variable_lookup(t.v, indices, 2, rows, sizeof rows));
        assert_true(rows[0] == 2 * 22 * ROW && rows[ROW] == 2 * 5 * ROW);
        assert_status(ditto_variable_lookup(t.v, indices, 2, rows, sizeof rows - 8), DITTO_ERR_SHAPE);
        assert_status(component_of(t.v, first_local(s), &data), DITTO_ERR_UNSUPPORTED);
        assert_status(ditto_variable_value(t.v, &value), DITTO_ERR_UNSUPPORTED);
        ditto_variable *plain = make(s, DITTO_F64, DITTO_AGGREGATE_NONE, PLAIN, initial);
        ditto_variable *shards = make(s, DITTO_F64, DITTO_AGGREGATE_NONE, SHARDS, NULL);
        assert_ok(ditto_variable_value(plain, &value));
        assert_ok(ditto_variable_assign_value(shards, DITTO_ASSIGN, value));
        assert_ok(ditto_variable_assign_value(shards, DITTO_ASSIGN_ADD, value));
        assert_ok(ditto_value_destroy(value));
        assert_ok(ditto_variable_read(shards, found, sizeof found));
        for (int e = 0; e < ROWS * ROW; e++)
            assert_true(found[e] == 2 * e);
        assert_ok(ditto_variable_destroy(plain));
        assert_ok(ditto_variable_destroy(shards));
        assert_ok(ditto_variable_describe(t.v, words, sizeof words, NULL));
        assert_non_null(strstr(words, "table: f64 [23, 3], mirrored, SUM, trainable, 4 shards on NUMA node"));
        assert_ok(ditto_variable_destroy(t.v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void rule_8_16_one_shard_is_a_plain_variable(void **state)
{
    ditto_tensor scalar = { .dtype = DITTO_F64 }, small = { .dtype = DITTO_F64, .rank = 1, .shape = { 100 } };
    const ditto_tensor *const tensors[] = { &scalar, &small };
    ditto_variable *v;
    const void *data;
    char words[300];
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_variable_options options = OPTIONS(
        variable, .partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_MAX_SIZE, .bytes = 800 });
    for (int i = 0; i < 2; i++) {
        assert_ok(ditto_variable_create(s, tensors[i], &options, &v));
        assert_int_equal(properties_of(v).num_shards, 1);
        assert_ok(component_of(v, end_local(s) - 1, &data));
        assert_ok(ditto_variable_describe(v, words, sizeof words, NULL));
        /* Rule 8.4: an option that is not used is reported. */
        assert_non_null(strstr(words, "not used: the partitioner MAX_SIZE"));
        assert_ok(ditto_variable_destroy(v));
    }
    options.synchronization = DITTO_ON_READ;
    assert_status(ditto_variable_create(s, &small, &options, &v), DITTO_ERR_INVALID);
    options.synchronization = DITTO_ON_WRITE;
    options.copies = DITTO_COPIES_PER_REPLICA;
    assert_status(ditto_variable_create(s, &small, &options, &v), DITTO_ERR_INVALID);
    options.copies = DITTO_COPIES_DEFAULT;
    options.partitioner.bytes = 0;
    assert_status(ditto_variable_create(s, &small, &options, &v), DITTO_ERR_INVALID);
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_8_13_slices_of_all_replicas_are_applied_once_in_order),
        cmocka_unit_test(rule_8_13_an_index_out_of_range_writes_nothing),
        cmocka_unit_test(rule_8_13_in_cross_replica_context_slices_are_applied_once_and_not_scaled),
        cmocka_unit_test(rule_8_13_updates_without_a_meaning_are_refused),
        cmocka_unit_test(rule_8_13_in_an_update_function_a_scatter_changes_the_copy_being_updated),
        cmocka_unit_test(rule_8_16_partitioners_choose_the_number_of_shards_by_the_rule),
        cmocka_unit_test(rule_8_16_the_first_shards_have_one_row_more_and_initializers_get_their_rows),
        cmocka_unit_test(rule_8_16_shards_are_assigned_added_read_and_looked_up),
        cmocka_unit_test(rule_8_16_one_shard_is_a_plain_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
