/* tests/semantics/reductions/test_gather.c - docs/semantics.md, rules 5.1 to 5.3 and 6.9: gather,
 * and tensors that are gathered or exchanged in a run. */
#include "support/as_hosts.h"
#include "semantics/reductions/make_values.h"

/* Replica r has shape [r + 1, 2], or [2, r + 1] for axis 1. Its element i is 1000 r + i. */
static ditto_value *ragged(ditto_strategy *strategy, uint32_t axis)
{
    uint32_t n = ditto_strategy_num_replicas(strategy);
    static int32_t numbers[64][130];
    ditto_tensor t[64];
    ditto_value *value;
    for (uint32_t r = 0; r < n; r++) {
        for (int32_t i = 0; i < 130; i++)
            numbers[r][i] = (int32_t)(1000 * r) + i;
        t[r] = (ditto_tensor){ .data = numbers[r], .dtype = DITTO_I32, .rank = 2 };
        t[r].shape[axis] = r + 1;
        t[r].shape[1 - axis] = 2;
    }
    assert_ok(ditto_strategy_value_from_tensors(strategy, t + first_local(strategy), 1, &value));
    return value;
}

/* Returns true if t is the components of ragged, concatenated along `axis`. */
static bool is_gathered(const ditto_tensor *t, uint32_t n, uint32_t axis)
{
    size_t entries = (size_t)n * (n + 1) / 2;
    bool right = t->rank == 2 && t->shape[axis] == entries && t->shape[1 - axis] == 2;
    for (size_t x = 0; right && x < t->shape[0]; x++)
        for (size_t y = 0; right && y < t->shape[1]; y++) {
            size_t along = axis == 0 ? x : y, across = axis == 0 ? y : x, r = 0;
            while (along > r)
                along -= ++r;
            size_t place = axis == 0 ? along * 2 + across : across * (r + 1) + along;
            right = ((int32_t *)t->data)[x * t->shape[1] + y] == (int32_t)(1000 * r + place);
        }
    return right;
}

static void rule_5_1_gather_concatenates_along_an_axis(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (uint32_t axis = 0; axis < 2; axis++) {
            ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
            ditto_value *value = ragged(strategy, axis), *whole;
            ditto_tensor t;
            assert_ok(ditto_strategy_gather(strategy, value, axis, &whole));
            assert_ok(ditto_value_tensor(whole, &t));
            assert_true(is_gathered(&t, replica_counts[k], axis));
            assert_ok(ditto_value_destroy(whole));
            assert_ok(ditto_value_destroy(value));
            assert_ok(ditto_strategy_destroy(strategy));
        }
}

static void rule_5_1_errors_of_gather_have_their_own_messages(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    double x[3] = { 1, 2, 3 };
    ditto_tensor t[3];
    ditto_value *scalars, *value = ragged(strategy, 0), *whole;
    for (int r = 0; r < 3; r++)
        t[r] = (ditto_tensor){ .data = &x[r], .dtype = DITTO_F64 };
    assert_ok(ditto_strategy_value_from_tensors(strategy, t + first_local(strategy), 1, &scalars));
    assert_status(ditto_strategy_gather(strategy, scalars, 0, &whole), DITTO_ERR_SHAPE);
    assert_message("scalars");
    assert_status(ditto_strategy_gather(strategy, value, 1, &whole), DITTO_ERR_SHAPE);
    assert_message("dimension 0 is 2 on replica 1 and 1 on replica 0");
    assert_status(ditto_strategy_gather(strategy, value, 2, &whole), DITTO_ERR_RANGE);
    assert_message("axis 2 of tensors of rank 2");
    assert_ok(ditto_value_destroy(scalars));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_5_2_nests_are_gathered_leaf_by_leaf_and_slices_are_refused(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    double number = 4;
    ditto_tensor t = { .data = &number, .dtype = DITTO_F64 };
    ditto_value *value = ragged(strategy, 0), *plain, *nest, *whole, *slices = make_slices(strategy, 0);
    const ditto_value *member;
    assert_ok(ditto_strategy_value(strategy, &t, &plain));
    assert_ok(ditto_strategy_nest(strategy, NULL, (const ditto_value *[]){ value, plain }, 2, &nest));
    assert_ok(ditto_strategy_gather(strategy, nest, 0, &whole));
    assert_ok(ditto_value_member(whole, "0", &member));
    assert_ok(ditto_value_tensor(member, &t));
    assert_true(is_gathered(&t, 3, 0));
    assert_ok(ditto_value_member(whole, "1", &member));
    assert_ptr_equal(member, plain);
    assert_ok(ditto_value_destroy(whole));
    assert_status(ditto_strategy_gather(strategy, slices, 0, &whole), DITTO_ERR_UNSUPPORTED);
    ditto_value *made[] = { value, plain, nest, slices };
    for (int i = 0; i < 4; i++)
        assert_ok(ditto_value_destroy(made[i]));
    assert_ok(ditto_strategy_destroy(strategy));
}

struct gathering {
    struct report report;
    uint32_t axis;
};

static ditto_status gather_inside(ditto_replica *self, void *argument)
{
    struct gathering *g = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    int32_t numbers[130];
    ditto_tensor own = { .data = numbers, .dtype = DITTO_I32, .rank = 2 }, whole;
    own.shape[g->axis] = id + 1;
    own.shape[1 - g->axis] = 2;
    for (int32_t i = 0; i < 130; i++)
        numbers[i] = (int32_t)(1000 * id) + i;
    EXPECT(&g->report, ditto_all_gather_tensor(self, &own, g->axis, &whole) == DITTO_OK);
    EXPECT(&g->report, is_gathered(&whole, n, g->axis));
    EXPECT(&g->report, ditto_free(self, whole.data) == DITTO_OK); /* the replica owns the memory */
    if (n > 1) { /* all replicas get the error, and the run continues */
        own.shape[1 - g->axis] = id == 1 ? 1 : 2;
        EXPECT(&g->report, ditto_all_gather_tensor(self, &own, g->axis, &whole) == DITTO_ERR_SHAPE);
        own.rank = id == 1 ? 1 : 2;
        own.shape[0] = own.shape[1] = 1;
        EXPECT(&g->report, ditto_all_gather_tensor(self, &own, 0, &whole) == DITTO_ERR_SHAPE);
        own.rank = 2;
    }
    own.shape[0] = own.shape[1] = 1;
    EXPECT(&g->report, ditto_all_gather_tensor(self, &own, 2, &whole) == DITTO_ERR_RANGE);
    own.rank = 0;
    own.shape[0] = 0;
    EXPECT(&g->report, ditto_all_gather_tensor(self, &own, 0, &whole) == DITTO_ERR_SHAPE);
    return ditto_barrier(self, NULL);
}

static void rule_5_3_all_gather_gives_every_replica_the_same_result(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (uint32_t axis = 0; axis < 2; axis++) {
            struct gathering g = { .axis = axis };
            run_once(replica_counts[k], NULL, gather_inside, &g, &g.report);
        }
}

/* -- parts of tensors that are exchanged -- */

struct exchanging {
    struct report report;
    uint32_t split_axis, concat_axis;
};

/* Element (a, b, c) of replica `id`. */
static int32_t exchanged(uint32_t id, size_t a, size_t b, size_t c)
{
    return (int32_t)(id * 1000000 + a * 10000 + b * 100 + c);
}

/* Each length of the tensor of replica `id` is 2, but that along concat_axis is id % 3 + 1, and that along
 * split_axis is that many times as long as there are replicas. */
static void set_shape(const struct exchanging *x, uint32_t id, uint32_t n, size_t *shape)
{
    for (uint32_t d = 0; d < 3; d++)
        shape[d] = (d == x->concat_axis ? id % 3 + 1 : 2) * (d == x->split_axis ? n : 1);
}

static ditto_status exchange_inside(ditto_replica *self, void *argument)
{
    struct exchanging *x = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    ditto_tensor own = { .dtype = DITTO_I32, .rank = 3 }, whole;
    set_shape(x, id, n, own.shape);
    int32_t *numbers = malloc(own.shape[0] * own.shape[1] * own.shape[2] * sizeof *numbers), *next = numbers;
    own.data = numbers;
    for (size_t a = 0; a < own.shape[0]; a++)
        for (size_t b = 0; b < own.shape[1]; b++)
            for (size_t c = 0; c < own.shape[2]; c++)
                *next++ = exchanged(id, a, b, c);
    ditto_status status = ditto_all_to_all_tensor(self, &own, x->split_axis, x->concat_axis, &whole);
    size_t lengths[3] = { 2, 2, 2 };
    lengths[x->concat_axis] = 0;
    for (uint32_t i = 0; i < n; i++)
        lengths[x->concat_axis] += i % 3 + 1;
    bool right = status == DITTO_OK && memcmp(lengths, whole.shape, sizeof lengths) == 0;
    for (size_t k = 0; right && k < lengths[0] * lengths[1] * lengths[2]; k++) {
        size_t at[3] = { k / lengths[2] / lengths[1], k / lengths[2] % lengths[1], k % lengths[2] };
        uint32_t from = 0;
        for (; at[x->concat_axis] >= from % 3 + 1; from++)
            at[x->concat_axis] -= from % 3 + 1;
        size_t part = x->split_axis == x->concat_axis ? from % 3 + 1 : 2;
        at[x->split_axis] += id * part; /* of the part for this replica */
        right = ((const int32_t *)whole.data)[k] == exchanged(from, at[0], at[1], at[2]);
    }
    EXPECT(&x->report, right);
    if (status == DITTO_OK)
        EXPECT(&x->report, ditto_free(self, whole.data) == DITTO_OK);
    /* All replicas get the error, and the run continues. */
    if (n > 1) {
        own.shape[x->split_axis]--;
        EXPECT(&x->report,
               ditto_all_to_all_tensor(self, &own, x->split_axis, x->concat_axis, &whole) == DITTO_ERR_SHAPE);
        EXPECT(&x->report,
               ditto_all_to_all_tensor(self, &own, id == 1 ? 1 : 0, 2, &whole) == DITTO_ERR_INVALID);
    }
    EXPECT(&x->report, ditto_all_to_all_tensor(self, &own, 3, x->concat_axis, &whole) == DITTO_ERR_RANGE);
    EXPECT(&x->report, ditto_all_to_all_tensor(self, &own, 0, 3, &whole) == DITTO_ERR_RANGE);
    free(numbers);
    return ditto_barrier(self, NULL);
}

static void rule_6_9_parts_of_tensors_are_split_and_concatenated_along_axes(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (uint32_t axes = 0; axes < 9; axes++) {
            struct exchanging x = { .split_axis = axes / 3, .concat_axis = axes % 3 };
            run_once(replica_counts[k], NULL, exchange_inside, &x, &x.report);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_5_1_gather_concatenates_along_an_axis),
        cmocka_unit_test(rule_5_1_errors_of_gather_have_their_own_messages),
        cmocka_unit_test(rule_5_2_nests_are_gathered_leaf_by_leaf_and_slices_are_refused),
        cmocka_unit_test(rule_5_3_all_gather_gives_every_replica_the_same_result),
        cmocka_unit_test(rule_6_9_parts_of_tensors_are_split_and_concatenated_along_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
