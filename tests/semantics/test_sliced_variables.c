/* tests/semantics/test_sliced_variables.c - docs/semantics.md, "Variables": rules 8.17 to 8.21 (sliced
 * variables), and "Optimizers". */
#include "support/checkpoints.h"
#include "support/support.h"

#include <ditto/checkpoint.h>

#include <pthread.h>
#include <unistd.h>

/* An odd number of indices in each dimension, at least as many as there are replicas in these tests. */
enum { D0 = 13, D1 = 11, D2 = 9, COUNT = D0 * D1 * D2 };

static int32_t whole[COUNT];

static void number_elements(void)
{
    for (int i = 0; i < COUNT; i++)
        whole[i] = i + 1;
}

/* A way to slice: replicas by themselves, or along an axis of a mesh. */
struct slicing {
    uint32_t data, tensor; /* the mesh, whose axes are "data" and "tensor" */
    uint32_t axis;         /* the dimension that is sliced */
    bool all;              /* not along the mesh: each replica has a slice of its own */
    bool two_nodes;        /* so the replicas that mirror a slice have two copies of it */
};

static const struct slicing slicings[] = {
    { 1, 1, 0, true, false },  { 1, 1, 2, false, false }, { 1, 2, 0, true, false },
    { 1, 2, 1, false, false }, { 2, 1, 1, false, false }, { 1, 3, 2, true, false },
    { 1, 3, 0, false, false }, { 2, 2, 2, false, false }, { 2, 3, 1, false, false },
    { 4, 2, 0, false, false }, { 1, 8, 2, true, false },  { 2, 4, 1, true, false },
    { 2, 2, 1, false, true },  { 4, 2, 0, false, true },
};
enum { SLICINGS = sizeof slicings / sizeof slicings[0] };

static uint32_t slices_of(const struct slicing *s)
{
    return s->all ? s->data * s->tensor : s->tensor;
}

static uint32_t rank_of(const struct slicing *s, uint32_t replica)
{
    return s->all ? replica : replica % s->tensor;
}

/* Of n slices the first (extent mod n) have one index more. */
static size_t begin_of(size_t extent, uint32_t slices, uint32_t k)
{
    return extent / slices * k + (k < extent % slices ? k : extent % slices);
}

struct setting {
    struct report report;
    struct slicing s;
    ditto_strategy *strategy;
    ditto_grouping *axis[2];
    ditto_variable *v;
    _Atomic int calls; /* of the initializer */
};

static void begin(struct setting *t, const struct slicing *s)
{
    const ditto_mesh_axis axes[] = { { "data", s->data }, { "tensor", s->tensor } };
    *t = (struct setting){ .s = *s };
    uint32_t n = s->data * s->tensor;
    t->strategy = s->two_nodes ? make_on_two_nodes(n) : make_strategy(n, NULL);
    assert_ok(ditto_strategy_mesh(t->strategy, axes, 2, t->axis));
}

static ditto_variable_options options_of(const struct setting *t, ditto_aggregation how)
{
    return OPTIONS(variable, .name = "sliced", .aggregation = how,
                   .partitioner = { .kind = DITTO_PARTITION_BY_REPLICA }, .slice_axis = t->s.axis,
                   .slice_along = t->s.all ? NULL : t->axis[1]);
}

static void create(struct setting *t, ditto_aggregation how, const void *data)
{
    ditto_tensor initial = { (void *)(uintptr_t)data, DITTO_I32, 3, { D0, D1, D2 }, 0 };
    ditto_variable_options options = options_of(t, how);
    assert_ok(ditto_variable_create(t->strategy, &initial, &options, &t->v));
}

static void end(struct setting *t)
{
    assert_ok(ditto_variable_destroy(t->v));
    assert_ok(ditto_grouping_destroy(t->axis[0]));
    assert_ok(ditto_grouping_destroy(t->axis[1]));
    assert_ok(ditto_strategy_destroy(t->strategy));
}

/* Returns the index in the whole of element i of a slice, whose first index is `first`. */
static size_t place_of(const ditto_tensor *slice, uint32_t axis, size_t first, size_t i)
{
    size_t at[3] = { i / slice->shape[2] / slice->shape[1], i / slice->shape[2] % slice->shape[1],
                     i % slice->shape[2] };
    at[axis] += first;
    return (at[0] * D1 + at[1]) * D2 + at[2];
}

/* -- rule 8.17: which elements a replica has -- */

static ditto_status look_at_slice(ditto_replica *self, void *argument)
{
    struct setting *t = argument;
    static const size_t shape[3] = { D0, D1, D2 };
    uint32_t slices = slices_of(&t->s), rank = rank_of(&t->s, ditto_replica_id(self));
    size_t extent = shape[t->s.axis], from = begin_of(extent, slices, rank), first;
    ditto_tensor slice;
    const void *data;
    EXPECT(&t->report, ditto_local_slice(self, t->v, &slice, &first) == DITTO_OK);
    EXPECT(&t->report, first == from && slice.rank == 3 && slice.dtype == DITTO_I32 && slice.device == 0);
    for (uint32_t d = 0; d < 3; d++)
        EXPECT(&t->report,
               slice.shape[d] == (d == t->s.axis ? begin_of(extent, slices, rank + 1) - from : shape[d]));
    EXPECT(&t->report, ditto_read(self, t->v, &data) == DITTO_ERR_UNSUPPORTED);
    for (size_t i = 0; i < elements_in(&slice); i++)
        EXPECT(&t->report, ((const int32_t *)slice.data)[i] == whole[place_of(&slice, t->s.axis, first, i)]);
    return DITTO_OK;
}

static void check_shards(const struct setting *t)
{
    static const size_t shape[3] = { D0, D1, D2 };
    size_t extent = shape[t->s.axis];
    uint32_t slices = slices_of(&t->s);
    assert_int_equal(properties_of(t->v).num_shards, slices);
    for (uint32_t k = 0; k < slices; k++) {
        assert_int_equal(shard_of(t->v, k).first_row, begin_of(extent, slices, k));
        assert_int_equal(shard_of(t->v, k).rows,
                         begin_of(extent, slices, k + 1) - begin_of(extent, slices, k));
    }
}

static void each_replica_has_the_slice_of_its_rank(void **state)
{
    static int32_t found[COUNT];
    (void)state;
    number_elements();
    for (int i = 0; i < SLICINGS; i++) {
        struct setting t;
        begin(&t, &slicings[i]);
        create(&t, DITTO_AGGREGATE_NONE, whole);
        run_all(t.strategy, look_at_slice, &t, &t.report);
        check_shards(&t);
        assert_ok(ditto_variable_read(t.v, found, sizeof found));
        assert_memory_equal(found, whole, sizeof whole);
        end(&t);
    }
}

/* -- rule 8.18: the initializer -- */

static ditto_status initialize(const ditto_tensor *value, size_t first, void *user)
{
    struct setting *t = user;
    t->calls++;
    for (size_t i = 0; i < elements_in(value); i++)
        ((int32_t *)value->data)[i] = whole[place_of(value, t->s.axis, first, i)];
    /* A call of the strategy would wait for the thread that creates the variable. */
    int32_t x;
    if (ditto_variable_read(t->v, &x, sizeof x) == DITTO_OK)
        return DITTO_ERR_USER;
    return DITTO_OK;
}

static ditto_status refuse(const ditto_tensor *value, size_t first, void *user)
{
    (void)value, (void)user;
    return first == 0 ? DITTO_OK : ditto_fail(NULL, 0, "no value from %zu on", first);
}

static void each_slice_is_initialized_once(void **state)
{
    (void)state;
    number_elements();
    for (int i = 0; i < SLICINGS; i++) {
        struct setting t;
        ditto_tensor one = { .dtype = DITTO_I32 }, initial = { NULL, DITTO_I32, 3, { D0, D1, D2 }, 0 };
        ditto_variable *scalar, *none;
        begin(&t, &slicings[i]);
        assert_ok(ditto_variable_create(t.strategy, &one, NULL, &scalar));
        t.v = scalar;
        ditto_variable_options options = options_of(&t, DITTO_AGGREGATE_NONE);
        options.initialize = initialize;
        options.initialize_user = &t;
        ditto_variable *v;
        assert_ok(ditto_variable_create(t.strategy, &initial, &options, &v));
        assert_int_equal(t.calls, slices_of(&t.s));
        t.v = v;
        run_all(t.strategy, look_at_slice, &t, &t.report);
        options.initialize = refuse;
        if (slices_of(&t.s) > 1) {
            assert_status(ditto_variable_create(t.strategy, &initial, &options, &none), DITTO_ERR_USER);
            assert_message("no value from");
        }
        assert_ok(ditto_variable_destroy(scalar));
        end(&t);
    }
}

/* -- rule 8.19: writes -- */

static ditto_status write_slice(ditto_replica *self, void *argument)
{
    struct setting *t = argument;
    static int32_t values[8][COUNT];
    uint32_t id = ditto_replica_id(self), mirror = t->s.all ? 0 : id / t->s.tensor;
    ditto_tensor slice;
    size_t first;
    EXPECT(&t->report, ditto_local_slice(self, t->v, &slice, &first) == DITTO_OK);
    for (size_t i = 0; i < elements_in(&slice); i++)
        values[id][i] = (int32_t)(place_of(&slice, t->s.axis, first, i) * (mirror + 1));
    EXPECT(&t->report, ditto_assign(self, t->v, DITTO_ASSIGN, values[id]) == DITTO_OK);
    EXPECT(&t->report, ditto_assign(self, t->v, DITTO_ASSIGN_ADD, values[id]) == DITTO_OK);
    EXPECT(&t->report, ditto_assign(self, t->v, DITTO_ASSIGN_ADD, values[id]) == DITTO_OK);
    EXPECT(&t->report, ditto_assign(self, t->v, DITTO_ASSIGN_SUB, values[id]) == DITTO_OK);
    return DITTO_OK;
}

static void replicas_that_mirror_a_slice_write_their_sum(void **state)
{
    static int32_t found[COUNT];
    (void)state;
    number_elements();
    for (int i = 0; i < SLICINGS; i++) {
        struct setting t;
        begin(&t, &slicings[i]);
        create(&t, DITTO_AGGREGATE_SUM, NULL);
        run_all(t.strategy, write_slice, &t, &t.report);
        uint32_t mirrors = t.s.all ? 1 : t.s.data, sum = mirrors * (mirrors + 1) / 2;
        assert_ok(ditto_variable_read(t.v, found, sizeof found));
        for (int k = 0; k < COUNT; k++)
            assert_int_equal(found[k], (uint32_t)k * sum * 2);
        end(&t);
    }
}

static void outside_of_runs_a_sliced_variable_is_whole(void **state)
{
    static int32_t found[COUNT], rows[2 * D1 * D2];
    (void)state;
    number_elements();
    for (int i = 0; i < SLICINGS; i++) {
        struct setting t;
        const int64_t indices[] = { D0 - 1, 3 };
        begin(&t, &slicings[i]);
        create(&t, DITTO_AGGREGATE_SUM, NULL);
        assert_ok(ditto_variable_assign(t.v, DITTO_ASSIGN, whole, sizeof whole));
        run_all(t.strategy, look_at_slice, &t, &t.report);
        assert_ok(ditto_variable_assign(t.v, DITTO_ASSIGN_ADD, whole, sizeof whole));
        assert_ok(ditto_variable_read(t.v, found, sizeof found));
        for (int k = 0; k < COUNT; k++)
            assert_int_equal(found[k], 2 * whole[k]);
        assert_ok(ditto_variable_lookup(t.v, indices, 2, rows, sizeof rows));
        for (int k = 0; k < D1 * D2; k++) {
            assert_int_equal(rows[k], 2 * whole[(D0 - 1) * D1 * D2 + k]);
            assert_int_equal(rows[D1 * D2 + k], 2 * whole[3 * D1 * D2 + k]);
        }
        end(&t);
    }
}

static ditto_status add_a_row(ditto_replica *self, void *argument)
{
    struct setting *t = argument;
    int32_t row[D1 * D2], found[D1 * D2];
    int64_t index = 5;
    for (int i = 0; i < D1 * D2; i++)
        row[i] = 3; /* the same on all replicas */
    ditto_slices slices = {
        .indices = &index, .values = row, .dtype = DITTO_I32, .rows = 1, .row_count = D1 * D2
    };
    ditto_status status = ditto_scatter(self, t->v, DITTO_SCATTER_ADD, &slices);
    if (t->s.axis != 0)
        EXPECT(&t->report, status == DITTO_ERR_UNSUPPORTED);
    else
        EXPECT(&t->report, status == DITTO_OK);
    EXPECT(&t->report, ditto_lookup(self, t->v, &index, 1, found) == DITTO_ERR_UNSUPPORTED);
    return DITTO_OK;
}

static void indexed_updates_need_slices_of_rows(void **state)
{
    static int32_t found[COUNT];
    (void)state;
    for (int i = 0; i < SLICINGS; i++) {
        struct setting t;
        begin(&t, &slicings[i]);
        create(&t, DITTO_AGGREGATE_SUM, NULL);
        run_all(t.strategy, add_a_row, &t, &t.report);
        assert_ok(ditto_variable_read(t.v, found, sizeof found));
        int32_t sum = t.s.axis == 0 ? 3 * (int32_t)(t.s.data * t.s.tensor) : 0;
        for (int k = 0; k < COUNT; k++)
            assert_int_equal(found[k], k / (D1 * D2) == 5 ? sum : 0);
        end(&t);
    }
}

/* -- rule 8.21: updates by a function -- */

/* Adds a number to the copy of a slice by an assignment, and another to its last row, and checks that both
 * change this copy alone. The first argument has the first row of the slice. */
static ditto_status update_slice(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                 void *user, ditto_tensor *result)
{
    static _Thread_local int32_t seen[COUNT], more[COUNT], row[D1 * D2];
    static _Thread_local int64_t index;
    struct setting *t = user;
    uint32_t rank = rank_of(&t->s, context_here().update_replica), slices = slices_of(&t->s);
    size_t first = begin_of(D0, slices, rank), rows = begin_of(D0, slices, rank + 1) - first;
    size_t elements = rows * D1 * D2, bytes = elements * sizeof(int32_t);
    ditto_slices last = {
        .indices = &index, .values = row, .dtype = DITTO_I32, .rows = 1, .row_count = D1 * D2
    };
    EXPECT(&t->report, count == 1 && *(const int32_t *)arguments[0].data == (int32_t)first);
    EXPECT(&t->report, copy->rank == 3 && copy->shape[0] == rows && copy->shape[1] == D1);
    EXPECT(&t->report,
           ditto_variable_read(t->v, seen, sizeof whole) == (slices == 1 ? DITTO_OK : DITTO_ERR_SHAPE));
    EXPECT(&t->report, ditto_variable_read(t->v, seen, bytes) == DITTO_OK);
    EXPECT(&t->report, memcmp(seen, copy->data, bytes) == 0);
    for (size_t i = 0; i < elements; i++)
        more[i] = 1;
    for (int i = 0; i < D1 * D2; i++)
        row[i] = 100;
    EXPECT(&t->report, ditto_variable_assign(t->v, DITTO_ASSIGN_ADD, more, bytes) == DITTO_OK);
    index = (int64_t)rows;
    EXPECT(&t->report, ditto_variable_scatter(t->v, DITTO_SCATTER_ADD, &last) == DITTO_ERR_RANGE);
    index = (int64_t)rows - 1;
    EXPECT(&t->report, ditto_variable_scatter(t->v, DITTO_SCATTER_ADD, &last) == DITTO_OK);
    for (size_t i = 0; i < elements; i++)
        EXPECT(&t->report, ((int32_t *)copy->data)[i] == seen[i] + (i / (D1 * D2) == rows - 1 ? 101 : 1));
    *result = *copy;
    t->calls++;
    return DITTO_OK;
}

/* Each replica gives its own number, but only the first that has a slice gives the one that is expected. */
static int32_t given_by(const struct setting *t, uint32_t replica)
{
    bool is_first = t->s.all || replica < t->s.tensor;
    return is_first ? (int32_t)begin_of(D0, slices_of(&t->s), rank_of(&t->s, replica)) : -1;
}

static ditto_status update_in_run(ditto_replica *self, void *argument)
{
    struct setting *t = argument;
    int32_t given = given_by(t, ditto_replica_id(self));
    ditto_tensor number = { .data = &given, .dtype = DITTO_I32 }, slice, result;
    ditto_status status = ditto_update(self, t->v, update_slice, t, &number, 1, &result);
    EXPECT(&t->report, status == (t->s.axis == 0 ? DITTO_OK : DITTO_ERR_UNSUPPORTED));
    if (status != DITTO_OK)
        return DITTO_OK;
    EXPECT(&t->report, ditto_local_slice(self, t->v, &slice, NULL) == DITTO_OK);
    EXPECT(&t->report, result.shape[0] == slice.shape[0]);
    EXPECT(&t->report, memcmp(result.data, slice.data, elements_in(&slice) * sizeof(int32_t)) == 0);
    return ditto_free(self, result.data);
}

static ditto_status update_outside(struct setting *t)
{
    int32_t given[8];
    ditto_tensor number[8];
    ditto_value *each, *results;
    uint32_t n = t->s.data * t->s.tensor;
    for (uint32_t r = 0; r < n; r++) {
        given[r] = given_by(t, r);
        number[r] = (ditto_tensor){ .data = &given[r], .dtype = DITTO_I32 };
    }
    assert_ok(ditto_strategy_value_from_tensors(t->strategy, number, 1, &each));
    ditto_status status = ditto_variable_update(t->v, update_slice, t, (const ditto_value *[]){ each }, 1,
                                                &OPTIONS(update, .ungrouped = 1), &results);
    if (status == DITTO_OK)
        assert_ok(ditto_value_destroy(results));
    assert_ok(ditto_value_destroy(each));
    return status;
}

static int count_copies(const struct setting *t)
{
    uint32_t slices = slices_of(&t->s);
    return (int)(t->s.two_nodes && !t->s.all ? 2 * slices : slices);
}

/* Variables with and without aggregation have the same updates, because the copies of a slice stay equal. */
static void an_update_of_slices_has_the_arguments_of_their_first_replicas(void **state)
{
    static int32_t found[COUNT];
    static const ditto_aggregation aggregations[] = { DITTO_AGGREGATE_NONE, DITTO_AGGREGATE_SUM };
    (void)state;
    for (int i = 0; i < 2 * SLICINGS; i++) {
        struct setting t;
        begin(&t, &slicings[i / 2]);
        create(&t, aggregations[i % 2], NULL);
        ditto_status status = update_outside(&t);
        assert_string_equal(t.report.first_failure, "");
        assert_int_equal(status, t.s.axis == 0 ? DITTO_OK : DITTO_ERR_UNSUPPORTED);
        if (status != DITTO_OK)
            assert_message("which is sliced in dimension");
        run_all(t.strategy, update_in_run, &t, &t.report);
        assert_int_equal(t.calls, t.s.axis == 0 ? 2 * count_copies(&t) : 0);
        assert_ok(ditto_variable_read(t.v, found, sizeof found));
        for (uint32_t k = 0, slices = slices_of(&t.s); t.s.axis == 0 && k < slices; k++)
            for (size_t row = begin_of(D0, slices, k), end = begin_of(D0, slices, k + 1); row < end; row++)
                for (size_t e = 0; e < (size_t)D1 * D2; e++)
                    assert_int_equal(found[row * D1 * D2 + e], row == end - 1 ? 202 : 2);
        end(&t);
    }
}

/* -- rule 8.20: what a sliced variable is used with -- */

static void checkpoints_do_not_depend_on_the_slicing(void **state)
{
    static int32_t found[COUNT];
    char folder[SCRATCH_NAME], path[SCRATCH_NAME + 16];
    (void)state;
    number_elements();
    assert_non_null(mkdtemp(scratch_name(folder, "slices-XXXXXX")));
    snprintf(path, sizeof path, "%s/sliced.h5", folder);
    for (int from = 0; from < SLICINGS; from++) {
        struct setting t;
        begin(&t, &slicings[from]);
        create(&t, DITTO_AGGREGATE_NONE, whole);
        assert_ok(ditto_checkpoint_save(t.strategy, path, NULL));
        end(&t);
        for (int to = 0; to < SLICINGS; to++) {
            begin(&t, &slicings[to]);
            create(&t, DITTO_AGGREGATE_NONE, NULL);
            assert_ok(ditto_checkpoint_restore(t.strategy, path, NULL, NULL));
            assert_ok(ditto_variable_read(t.v, found, sizeof found));
            assert_memory_equal(found, whole, sizeof whole);
            run_all(t.strategy, look_at_slice, &t, &t.report);
            end(&t);
        }
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* -- optimizers -- */

enum { STEPS = 3, MOST_SLOTS = 2 };

static const struct rule {
    ditto_rule rule;
    double momentum, clip_norm;
    bool measures_norm;
    const char *slots[MOST_SLOTS];
} rules[] = { { DITTO_RULE_SGD, 0, 0, true, { NULL } },
              { DITTO_RULE_SGD, 0.9, 0, false, { "momentum" } },
              { DITTO_RULE_ADAM, 0, 0, false, { "m", "v" } },
              { DITTO_RULE_ADAM, 0, 0.5, true, { "m", "v" } } };
enum { RULES = sizeof rules / sizeof rules[0] };

/* What a training leaves behind. */
struct trained {
    float weights[COUNT], bias[5], slots[MOST_SLOTS][COUNT];
    double norm;
    int64_t steps;
};

struct training {
    struct report report;
    const struct slicing *s; /* NULL: mirrored, on as many replicas as there are mirrors */
    ditto_variable *weights;
    ditto_optimizer *optimizer;
    int step;
    double norm;
};

static float gradient_of(uint32_t mirror, size_t element, int step)
{
    return (float)((mirror * 7 + element * 3 + (size_t)step * 5) % 23) * 0.1f - 1;
}

static ditto_status train(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    static float weights[8][COUNT], bias[8][5];
    uint32_t id = ditto_replica_id(self);
    uint32_t mirror = t->s == NULL ? id : t->s->all ? 0 : id / t->s->tensor;
    bool is_first = t->s == NULL || rank_of(t->s, id) == 0;
    ditto_tensor gradients[2];
    size_t first;
    double norm = 0;
    EXPECT(&t->report, ditto_local_slice(self, t->weights, &gradients[0], &first) == DITTO_OK);
    for (size_t i = 0; i < elements_in(&gradients[0]); i++)
        weights[id][i] = gradient_of(mirror, place_of(&gradients[0], t->s != NULL ? t->s->axis : 0, first, i),
                                     t->step);
    for (size_t i = 0; i < 5;
         i++) /* only one replica of each mirror adds to the variable that is not sliced */
        bias[id][i] = is_first ? gradient_of(mirror, i, t->step) : 0;
    gradients[0].data = weights[id];
    gradients[1] = (ditto_tensor){ bias[id], DITTO_F32, 1, { 5 }, 0 };
    ditto_apply_options options = OPTIONS(apply, .norm = t->norm < 0 ? NULL : &norm);
    EXPECT(&t->report, ditto_apply(self, t->optimizer, gradients, &options) == DITTO_OK);
    if (id == 0 && t->norm >= 0)
        t->norm = norm;
    return DITTO_OK;
}

/* Makes the optimizer, restores it from a checkpoint or trains it, and stores what it has. */
static void train_with(ditto_strategy *strategy, ditto_variable *weights, const struct slicing *s,
                       const struct rule *rule, const char *restored, const char *saved, struct trained *out)
{
    ditto_tensor of_bias = { NULL, DITTO_F32, 1, { 5 }, 0 };
    ditto_variable *variables[2] = { weights }, *slot;
    struct training t = { .s = s, .weights = weights, .norm = rule->measures_norm ? 0 : -1 };
    assert_ok(ditto_variable_create(strategy, &of_bias, &OPTIONS(variable, .name = "bias"), &variables[1]));
    ditto_optimizer_options options = OPTIONS(optimizer, .rule = rule->rule, .momentum = rule->momentum,
                                              .clip_norm = rule->clip_norm);
    assert_ok(ditto_optimizer_create(variables, 2, &options, &t.optimizer));
    if (restored != NULL)
        assert_ok(ditto_checkpoint_restore(strategy, restored, NULL, NULL));
    for (t.step = restored != NULL ? STEPS : 0; t.step < (restored != NULL ? 2 * STEPS : STEPS); t.step++)
        run_all(strategy, train, &t, &t.report);
    if (saved != NULL)
        assert_ok(ditto_checkpoint_save(strategy, saved, NULL));
    memset(out, 0, sizeof *out);
    assert_ok(ditto_variable_read(weights, out->weights, sizeof out->weights));
    assert_ok(ditto_variable_read(variables[1], out->bias, sizeof out->bias));
    for (int i = 0; i < MOST_SLOTS && rule->slots[i] != NULL; i++) {
        assert_ok(ditto_optimizer_slot(t.optimizer, 0, rule->slots[i], &slot));
        assert_ok(ditto_variable_read(slot, out->slots[i], sizeof out->slots[i]));
    }
    assert_ok(ditto_variable_read(iterations_of(t.optimizer), &out->steps, sizeof out->steps));
    out->norm = t.norm;
    assert_ok(ditto_optimizer_destroy(t.optimizer));
    assert_ok(ditto_variable_destroy(variables[1]));
}

static void train_sliced(const struct slicing *s, const struct rule *rule, const char *restored,
                         const char *saved, struct trained *out)
{
    struct setting t;
    ditto_tensor initial = { NULL, DITTO_F32, 3, { D0, D1, D2 }, 0 };
    begin(&t, s);
    ditto_variable_options options = options_of(&t, DITTO_AGGREGATE_NONE);
    assert_ok(ditto_variable_create(t.strategy, &initial, &options, &t.v));
    train_with(t.strategy, t.v, s, rule, restored, saved, out);
    end(&t);
}

static void train_mirrored(uint32_t replicas, const struct rule *rule, const char *restored,
                           const char *saved, struct trained *out)
{
    ditto_strategy *strategy = make_strategy(replicas, NULL);
    ditto_variable *v;
    ditto_tensor initial = { NULL, DITTO_F32, 3, { D0, D1, D2 }, 0 };
    assert_ok(ditto_variable_create(strategy, &initial, &OPTIONS(variable, .name = "sliced"), &v));
    train_with(strategy, v, NULL, rule, restored, saved, out);
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(strategy));
}

static bool is_near(double a, double b)
{
    double difference = a > b ? a - b : b - a;
    return difference <= 1e-5 * (b > 0 ? b : -b) + 1e-9;
}

/* Clipping multiplies by a factor whose last bits depend on the slicing. */
static void assert_alike(const struct trained *a, const struct trained *b, const struct rule *rule)
{
    assert_int_equal(a->steps, b->steps);
    assert_true(is_near(a->norm, b->norm));
    if (rule->clip_norm == 0) {
        assert_memory_equal(a->weights, b->weights, sizeof a->weights);
        assert_memory_equal(a->bias, b->bias, sizeof a->bias);
        assert_memory_equal(a->slots, b->slots, sizeof a->slots);
        return;
    }
    for (int i = 0; i < COUNT; i++)
        assert_true(is_near(a->weights[i], b->weights[i]) && is_near(a->slots[0][i], b->slots[0][i]));
}

static uint32_t mirrors_of(const struct slicing *s)
{
    return s->all ? 1 : s->data;
}

static void an_optimizer_steps_slices_as_it_steps_the_whole(void **state)
{
    static struct trained sliced, whole_one;
    (void)state;
    for (int r = 0; r < RULES; r++)
        for (int i = 0; i < SLICINGS; i++) {
            train_mirrored(mirrors_of(&slicings[i]), &rules[r], NULL, NULL, &whole_one);
            train_sliced(&slicings[i], &rules[r], NULL, NULL, &sliced);
            assert_alike(&sliced, &whole_one, &rules[r]);
        }
}

static void training_goes_on_from_a_checkpoint_with_another_slicing(void **state)
{
    static struct trained expected, found, before;
    char folder[SCRATCH_NAME], path[SCRATCH_NAME + 16];
    (void)state;
    assert_non_null(mkdtemp(scratch_name(folder, "slices-XXXXXX")));
    snprintf(path, sizeof path, "%s/trained.h5", folder);
    for (int r = 0; r < RULES; r++)
        for (int from = 0; from < SLICINGS; from++)
            for (int to = 0; to < SLICINGS; to += test_is_short() ? 5 : 1) {
                if (mirrors_of(&slicings[from]) != mirrors_of(&slicings[to]))
                    continue;
                train_sliced(&slicings[from], &rules[r], NULL, path, &before);
                train_mirrored(mirrors_of(&slicings[to]), &rules[r], path, NULL, &expected);
                train_sliced(&slicings[to], &rules[r], path, NULL, &found);
                assert_alike(&found, &expected, &rules[r]);
            }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* One variable is sliced along "tensor", one along "data", one over all replicas, and one is mirrored. */
enum { KINDS = 4 };
struct mixed {
    struct setting t;
    ditto_variable *variable[KINDS];
    ditto_optimizer *optimizer;
};

/* Every element of the gradient of replica i is i + 1. */
static ditto_status step_mixed(ditto_replica *self, void *argument)
{
    struct mixed *m = argument;
    float gradient[COUNT];
    ditto_tensor gradients[KINDS];
    for (int i = 0; i < COUNT; i++)
        gradient[i] = (float)ditto_replica_id(self) + 1;
    for (int k = 0; k < KINDS; k++) {
        DITTO_TRY(ditto_local_slice(self, m->variable[k], &gradients[k], NULL));
        gradients[k].data = gradient;
    }
    return ditto_apply(self, m->optimizer, gradients, NULL);
}

/* x + 2 g, and counts in a slot how often an element was updated. */
static void add_twice(const ditto_rule_range *range, void *user)
{
    float *value = range->value, *calls = range->slot[0];
    const float *gradient = range->gradient;
    (void)user;
    for (size_t i = 0; i < range->count; i++) {
        value[i] += 2 * gradient[i];
        calls[i] += 1;
    }
}

/* Returns the sum of i + 1 over the replicas that have the slice of an index in dimension 1, and their
 * number. */
static float sum_of_mirrors(int kind, uint32_t data, uint32_t tensor, uint32_t index, float *mirrors)
{
    const uint32_t slices[KINDS] = { tensor, data, data * tensor, 1 };
    float sum = 0;
    uint32_t slice = 0;
    while (begin_of(D1, slices[kind], slice + 1) <= index)
        slice++;
    *mirrors = 0;
    for (uint32_t i = 0; i < data * tensor; i++) {
        const uint32_t rank[KINDS] = { i % tensor, i / tensor, i, 0 };
        sum += rank[kind] == slice ? (float)i + 1 : 0;
        *mirrors += rank[kind] == slice;
    }
    return sum;
}

static void an_optimizer_steps_variables_of_several_slicings(void **state)
{
    static const struct slicing meshes[] = { { .data = 2, .tensor = 2 },
                                             { .data = 2, .tensor = 3 },
                                             { .data = 4, .tensor = 2, .two_nodes = true } };
    static const char *const names[KINDS] = { "by tensor", "by data", "by all", "mirrored" };
    static float found[COUNT];
    ditto_tensor initial = { NULL, DITTO_F32, 3, { D0, D1, D2 }, 0 };
    ditto_variable *calls;
    (void)state;
    for (size_t i = 0; i < 2 * sizeof meshes / sizeof meshes[0]; i++) {
        struct mixed m;
        ditto_op op = i % 2 == 0 ? DITTO_SUM : DITTO_MEAN;
        const struct slicing *s = &meshes[i / 2];
        begin(&m.t, s);
        for (int k = 0; k < KINDS; k++) {
            ditto_variable_options options = OPTIONS(variable, .name = names[k], .slice_axis = 1);
            options.partitioner.kind = k < 3 ? DITTO_PARTITION_BY_REPLICA : DITTO_PARTITION_DEFAULT;
            options.slice_along = k == 0 ? m.t.axis[1] : k == 1 ? m.t.axis[0] : NULL;
            assert_ok(ditto_variable_create(m.t.strategy, &initial, &options, &m.variable[k]));
        }
        ditto_optimizer_options rule = OPTIONS(optimizer, .rule = DITTO_RULE_FUNCTION, .function = add_twice,
                                               .num_slots = 1, .op = op);
        assert_ok(ditto_optimizer_create(m.variable, KINDS, &rule, &m.optimizer));
        for (int step = 0; step < 3; step++)
            assert_ok(ditto_strategy_run(m.t.strategy, step_mixed, &m));
        for (int k = 0; k < KINDS; k++) {
            assert_ok(ditto_variable_read(m.variable[k], found, sizeof found));
            for (int e = 0; e < COUNT; e++) {
                float mirrors, sum = sum_of_mirrors(k, s->data, s->tensor, (uint32_t)e / D2 % D1, &mirrors);
                float wanted = 6 * (op == DITTO_SUM ? sum : sum / mirrors);
                assert_true(is_near(found[e], wanted));
            }
            assert_ok(ditto_optimizer_slot(m.optimizer, (uint32_t)k, "slot0", &calls));
            assert_ok(ditto_variable_read(calls, found, sizeof found));
            for (int e = 0; e < COUNT; e++)
                assert_true(found[e] == 3);
        }
        assert_ok(ditto_optimizer_destroy(m.optimizer));
        for (int k = 1; k < KINDS; k++)
            assert_ok(ditto_variable_destroy(m.variable[k]));
        m.t.v = m.variable[0];
        end(&m.t);
    }
}

/* What one replica does otherwise than the others in a step. */
enum difference { RATE, NORM, CALLS_IN_RULE };

struct differing {
    struct training t;
    enum difference how;
};

static ditto_status step_differently(ditto_replica *self, void *argument)
{
    struct differing *d = argument;
    static float zeros[COUNT];
    double norm;
    ditto_tensor gradient;
    ditto_apply_options options = OPTIONS(apply, .has_learning_rate = 1, .learning_rate = 1);
    if (ditto_replica_id(self) == 0 && d->how == RATE)
        options.learning_rate = 2;
    if (ditto_replica_id(self) == 0 && d->how == NORM)
        options.norm = &norm;
    DITTO_TRY(ditto_local_slice(self, d->t.weights, &gradient, NULL));
    gradient.data = zeros;
    return ditto_apply(self, d->t.optimizer, &gradient, &options);
}

static ditto_replica *in_rule; /* of replica 0 */
static ditto_status found_in_rule;

static void meet_in_rule(const ditto_rule_range *range, void *user)
{
    (void)range, (void)user;
    ditto_replica *self = ditto_get_replica_context();
    if (self != NULL && self == in_rule)
        found_in_rule = ditto_barrier(self, NULL);
}

static ditto_status note_replica(ditto_replica *self, void *unused)
{
    (void)unused;
    if (ditto_replica_id(self) == 0)
        in_rule = self;
    return DITTO_OK;
}

static ditto_status step_by_function(ditto_replica *self, void *argument)
{
    DITTO_TRY(note_replica(self, NULL));
    return step_differently(self, argument);
}

static void a_step_of_slices_must_agree(void **state)
{
    (void)state;
    for (int how = RATE; how <= CALLS_IN_RULE; how++)
        for (int i = 0; i < SLICINGS; i++) {
            struct setting t;
            struct differing d = { .how = (enum difference)how };
            ditto_tensor initial = { NULL, DITTO_F32, 3, { D0, D1, D2 }, 0 };
            begin(&t, &slicings[i]);
            ditto_variable_options options = options_of(&t, DITTO_AGGREGATE_NONE);
            assert_ok(ditto_variable_create(t.strategy, &initial, &options, &t.v));
            d.t.weights = t.v;
            ditto_optimizer_options sgd = OPTIONS(optimizer, .rule = DITTO_RULE_SGD);
            if (how == CALLS_IN_RULE) {
                sgd.rule = DITTO_RULE_FUNCTION;
                sgd.function = meet_in_rule;
            }
            found_in_rule = DITTO_OK;
            assert_ok(ditto_optimizer_create(&t.v, 1, &sgd, &d.t.optimizer));
            ditto_status status = ditto_strategy_run(t.strategy, step_by_function, &d);
            if (how == CALLS_IN_RULE)
                assert_int_equal(found_in_rule, DITTO_ERR_CONTEXT);
            else
                assert_int_equal(status, t.s.data * t.s.tensor == 1 ? DITTO_OK : DITTO_ERR_DIVERGED);
            assert_ok(ditto_optimizer_destroy(d.t.optimizer));
            end(&t);
        }
}

static ditto_status assign_until_an_error(ditto_replica *self, void *argument)
{
    struct setting *t = argument;
    static int32_t values[8][COUNT];
    if (ditto_replica_id(self) == 0)
        return ditto_fail(self, 0, "as it should");
    for (;;)
        DITTO_TRY(ditto_assign(self, t->v, DITTO_ASSIGN, values[ditto_replica_id(self)]));
}

static void a_stopped_run_ends_assignments_of_own_slices(void **state)
{
    struct setting t;
    (void)state;
    begin(&t, &(struct slicing){ .data = 1, .tensor = 3, .all = true });
    create(&t, DITTO_AGGREGATE_SUM, NULL);
    assert_status(ditto_strategy_run(t.strategy, assign_until_an_error, &t), DITTO_ERR_USER);
    end(&t);
}

#define REFUSES(options, status, words)                                                      \
    do {                                                                                     \
        assert_status(ditto_variable_create(t.strategy, &initial, (options), &v), (status)); \
        assert_message(words);                                                               \
    } while (0)

static void wrong_slicings_are_refused(void **state)
{
    struct setting t;
    ditto_variable *v;
    ditto_grouping *some;
    const uint32_t five[] = { 0, 0, 0, 1, 1, DITTO_NO_COLOR };
    ditto_tensor initial = { NULL, DITTO_F32, 2, { 13, 2 }, 0 }, scalar = { .dtype = DITTO_F32 };
    (void)state;
    begin(&t, &(struct slicing){ .data = 2, .tensor = 3 });
    assert_ok(ditto_strategy_split(t.strategy, five, NULL, 6, &some));
    ditto_variable_options good = options_of(&t, DITTO_AGGREGATE_SUM), bad = good;
    bad.slice_axis = 2;
    REFUSES(&bad, DITTO_ERR_INVALID, "is 2, but it has 2 dimensions");
    assert_status(ditto_variable_create(t.strategy, &scalar, &good, &v), DITTO_ERR_INVALID);
    assert_message("has 0 dimensions");
    bad.slice_axis = 1;
    REFUSES(&bad, DITTO_ERR_INVALID, "has 2 indices, which is not enough for 3 slices");
    bad = good;
    bad.slice_along = some;
    REFUSES(&bad, DITTO_ERR_INVALID, "groups of 3 and of 2");
    bad = good;
    bad.aggregation = DITTO_AGGREGATE_ONLY_FIRST_REPLICA;
    REFUSES(&bad, DITTO_ERR_INVALID, "replica 0 has one slice only");
    bad = good;
    bad.synchronization = DITTO_ON_READ;
    REFUSES(&bad, DITTO_ERR_INVALID, "has a partitioner and synchronization ON_READ");
    bad = good;
    bad.copies = DITTO_COPIES_PER_REPLICA;
    REFUSES(&bad, DITTO_ERR_INVALID, "has a partitioner and DITTO_COPIES_PER_REPLICA");
    assert_ok(ditto_grouping_destroy(some));
    bad = good;
    bad.slice_along = some; /* the address is only compared */
    REFUSES(&bad, DITTO_ERR_INVALID, "is no grouping of its strategy");
    /* A grouping stays as long as a variable is sliced along it, and so do those of its mirrors. */
    assert_ok(ditto_variable_create(t.strategy, &initial, &good, &v));
    assert_status(ditto_grouping_destroy(t.axis[1]), DITTO_ERR_BUSY);
    assert_status(ditto_grouping_destroy(t.axis[0]), DITTO_ERR_BUSY);
    assert_message("1 variable is sliced along");
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_grouping_destroy(t.axis[0]));
    /* Now the mirrors are no axis, and the library makes their groups. */
    assert_ok(ditto_variable_create(t.strategy, &initial, &good, &t.v));
    t.axis[0] = NULL;
    end(&t);
}

static void other_strategies_have_no_slices(void **state)
{
    ditto_tensor initial = { NULL, DITTO_F32, 2, { 13, 2 }, 0 };
    ditto_variable_options options = OPTIONS(variable, .partitioner = { .kind = DITTO_PARTITION_BY_REPLICA });
    static const ditto_strategy_kind kinds[] = { DITTO_CENTRAL_STORAGE, DITTO_PARAMETER_SERVER };
    (void)state;
    for (int i = 0; i < 2; i++) {
        ditto_strategy *s;
        ditto_variable *v;
        assert_ok(ditto_strategy_create(kinds[i], &OPTIONS(strategy, .num_replicas = 1), &s));
        assert_status(ditto_variable_create(s, &initial, &options, &v), DITTO_ERR_UNSUPPORTED);
        assert_message("slices are for strategies of kind DITTO_MIRRORED on one host");
        assert_ok(ditto_strategy_destroy(s));
    }
}

static ditto_status use_without_aggregation(ditto_replica *self, void *argument)
{
    struct setting *t = argument;
    static int32_t value[COUNT];
    EXPECT(&t->report, ditto_assign(self, t->v, DITTO_ASSIGN, value) == DITTO_ERR_INVALID);
    return DITTO_OK;
}

static void a_variable_without_aggregation_is_not_written_in_a_run(void **state)
{
    struct setting t;
    (void)state;
    begin(&t, &(struct slicing){ .data = 2, .tensor = 2, .axis = 1 });
    create(&t, DITTO_AGGREGATE_NONE, NULL);
    run_all(t.strategy, use_without_aggregation, &t, &t.report);
    end(&t);
}

static void the_strategy_may_end_before_its_sliced_variables(void **state)
{
    struct setting t;
    (void)state;
    begin(&t, &(struct slicing){ .data = 2, .tensor = 2, .axis = 1 });
    create(&t, DITTO_AGGREGATE_SUM, NULL);
    assert_ok(ditto_strategy_destroy(t.strategy));
    assert_ok(ditto_grouping_destroy(t.axis[0]));
    assert_ok(ditto_grouping_destroy(t.axis[1]));
    assert_ok(ditto_variable_destroy(t.v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_replica_has_the_slice_of_its_rank),
        cmocka_unit_test(each_slice_is_initialized_once),
        cmocka_unit_test(replicas_that_mirror_a_slice_write_their_sum),
        cmocka_unit_test(outside_of_runs_a_sliced_variable_is_whole),
        cmocka_unit_test(indexed_updates_need_slices_of_rows),
        cmocka_unit_test(an_update_of_slices_has_the_arguments_of_their_first_replicas),
        cmocka_unit_test(checkpoints_do_not_depend_on_the_slicing),
        cmocka_unit_test(an_optimizer_steps_slices_as_it_steps_the_whole),
        cmocka_unit_test(an_optimizer_steps_variables_of_several_slicings),
        cmocka_unit_test(training_goes_on_from_a_checkpoint_with_another_slicing),
        cmocka_unit_test(a_step_of_slices_must_agree),
        cmocka_unit_test(a_stopped_run_ends_assignments_of_own_slices),
        cmocka_unit_test(wrong_slicings_are_refused),
        cmocka_unit_test(other_strategies_have_no_slices),
        cmocka_unit_test(a_variable_without_aggregation_is_not_written_in_a_run),
        cmocka_unit_test(the_strategy_may_end_before_its_sliced_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
