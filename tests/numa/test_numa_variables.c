/* tests/numa/test_numa_variables.c - checks on which nodes the pages of variables and of slots are. It runs
 * like test_numa_memory.c. */
#include "numa/kernel_reports.h"

#include "replicas/team/team_state.h"
#include "vars/vars.h"

/* -- Central storage -- */

static void expect_central_storage_on(uint32_t node)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *s;
    ditto_tensor spec = { .dtype = DITTO_F32, .rank = 1, .shape = { 100000 } };
    ditto_variable *v;
    const void *data;
    options.num_replicas = 2; /* some nodes have no replica */
    options.parameter_node = node;
    options.has_parameter_node = 1;
    ditto_status status = ditto_strategy_create(DITTO_CENTRAL_STORAGE, &options, &s);
    assert_int_equal(status, may_use_memory_of((int)node) ? DITTO_OK : DITTO_ERR_RANGE);
    if (status != DITTO_OK)
        return;
    assert_ok(ditto_variable_create(s, &spec, NULL, &v));
    assert_ok(component_of(v, 1, &data));
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    assert_ok(ditto_strategy_replica_info(s, 0, 0, &info));
    /* With first touch, the memory is on the node of the thread that touched it first. */
    if (info.binding != DITTO_BINDING_FIRST_TOUCH)
        assert_int_equal(node_of_page(data), node);
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
}

/* Tries the first and the last node that may be used, and two numbers above the last. If a node between these
 * two may not be used, for example because it has no memory, tries one such node. It tries no more, because
 * each strategy takes seconds on an emulated machine. */
static void central_storage_is_on_its_node(void **state)
{
    uint32_t first = 0, last = 0, unusable = 0;
    for (uint32_t node = 64; node-- > 0;)
        first = may_use_memory_of((int)node) ? node : first;
    for (uint32_t node = 0; node < 64; node++)
        last = may_use_memory_of((int)node) ? node : last;
    expect_central_storage_on(first);
    if (last != first)
        expect_central_storage_on(last);
    for (unusable = first; unusable < last && may_use_memory_of((int)unusable);)
        unusable++;
    if (unusable < last)
        expect_central_storage_on(unusable);
    expect_central_storage_on(last + 1);
    expect_central_storage_on(63);
}

/* -- Copies of mirrored variables -- */

static ditto_status set_copy(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                             void *user, ditto_tensor *result)
{
    *(float *)copy->data = *(const float *)arguments[0].data;
    *result = *copy;
    return DITTO_OK;
}

static ditto_status update_shared(ditto_replica *self, void *variable)
{
    float mine = (float)ditto_replica_id(self) + 1;
    ditto_tensor argument = { .data = &mine, .dtype = DITTO_F32 }, result;
    DITTO_TRY(ditto_update(self, variable, set_copy, NULL, &argument, 1, &result));
    float found = *(float *)result.data;
    DITTO_TRY(ditto_free(self, result.data));
    return found == 1 ? DITTO_OK
                      : ditto_fail(self, 1, "the copy has replica %g's argument", (double)found - 1);
}

static void shared_copies_are_updated_with_the_arguments_of_replica_0(void **state)
{
    ditto_strategy *s = make_strategy(8, NULL);
    ditto_tensor spec = { .dtype = DITTO_F32 };
    ditto_variable *v;
    assert_ok(ditto_variable_create(s, &spec, &OPTIONS(variable, .aggregation = DITTO_AGGREGATE_SUM), &v));
    assert_ok(ditto_strategy_run(s, update_shared, v));
    for (uint32_t i = 0; i < 8; i++) {
        const void *copy;
        assert_ok(component_of(v, i, &copy));
        assert_true(*(const float *)copy == 1);
    }
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
}

static uint32_t nodes_of_parameters(ditto_strategy *s, uint32_t *list, uint32_t capacity)
{
    ditto_strategy_properties found = properties_of_strategy(s);
    for (uint32_t i = 0; i < found.num_parameter_nodes && i < capacity; i++)
        list[i] = found.parameter_nodes[i];
    return found.num_parameter_nodes;
}

static ditto_status add_one(ditto_replica *self, void *argument)
{
    float one[1000];
    for (int i = 0; i < 1000; i++)
        one[i] = 1.0f;
    for (int i = 0; i < 3; i++)
        DITTO_TRY(ditto_assign(self, argument, DITTO_ASSIGN_ADD, one));
    return DITTO_OK;
}

static void a_mirrored_variable_has_one_equal_copy_per_node(void **state)
{
    ditto_strategy *s = make_strategy(8, NULL);
    ditto_tensor spec = { .dtype = DITTO_F32, .rank = 1, .shape = { 1000 } };
    struct report report = { 0 };
    ditto_variable *v;
    const void *component[8];
    assert_ok(ditto_variable_create(s, &spec, &OPTIONS(variable, .aggregation = DITTO_AGGREGATE_SUM), &v));
    run_all(s, add_one, v, &report);
    for (uint32_t i = 0; i < 8; i++)
        assert_ok(component_of(v, i, &component[i]));
    for (uint32_t i = 0; i < 8; i++)
        for (uint32_t k = 0; k < 8; k++) {
            assert_int_equal(component[i] == component[k],
                             node_of_page(component[i]) == node_of_page(component[k]));
            assert_memory_equal(component[i], component[k], 4000);
        }
    assert_true(((const float *)component[7])[999] == 24);
    uint32_t devices[64], count = nodes_of_parameters(s, devices, 64);
    for (uint32_t i = 0; i < count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < 8; k++)
            found |= node_of_page(component[k]) == (int)devices[i];
        assert_true(found);
    }
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- Slices -- */

enum { SLICED_ROWS = 4, SLICED_COLUMNS = 41, SLICED_INNER = 2048 };

/* Writes the initial values of a slice, which nobody has touched before. */
static ditto_status number_columns(const ditto_tensor *slice, size_t first, void *user)
{
    float *element = slice->data;
    for (size_t row = 0; row < slice->shape[0]; row++)
        for (size_t column = 0; column < slice->shape[1]; column++)
            for (size_t i = 0; i < slice->shape[2]; i++)
                *element++ = (float)(first + column);
    return DITTO_OK;
}

struct sliced {
    ditto_variable *v;
    int node[8]; /* of each replica's memory */
    struct report report;
};

static ditto_status find_pages(ditto_replica *self, void *argument)
{
    struct sliced *t = argument;
    int node = t->node[ditto_replica_id(self)];
    ditto_tensor slice;
    size_t first;
    DITTO_TRY(ditto_local_slice(self, t->v, &slice, &first));
    const char *data = slice.data;
    EXPECT(&t->report, slice.shape[0] == SLICED_ROWS && slice.shape[2] == SLICED_INNER);
    EXPECT(&t->report, ((const float *)slice.data)[0] == (float)first);
    for (size_t at = 0; at < ditto_tensor_bytes(&slice); at += 4096)
        EXPECT(&t->report, node_of_page(data + at) == node);
    return DITTO_OK;
}

/* Along four ranks, and over all eight replicas. */
static void slices_are_on_the_nodes_of_their_replicas(void **state)
{
    ditto_strategy *s = make_strategy(8, NULL);
    const ditto_mesh_axis axes[] = { { "data", 2 }, { "tensor", 4 } };
    ditto_tensor spec = { .dtype = DITTO_F32,
                          .rank = 3,
                          .shape = { SLICED_ROWS, SLICED_COLUMNS, SLICED_INNER } };
    ditto_grouping *axis[2];
    assert_ok(ditto_strategy_mesh(s, axes, 2, axis));
    for (int all = 0; all < 2; all++) {
        struct sliced t = { 0 };
        for (uint32_t i = 0; i < 8; i++) {
            ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
            assert_ok(ditto_strategy_replica_info(s, i, 0, &info));
            t.node[i] = (int)info.planned.pu.memory_node;
        }
        assert_ok(ditto_variable_create(s, &spec,
                                        &OPTIONS(variable, .initialize = number_columns,
                                                 .partitioner = { .kind = DITTO_PARTITION_BY_REPLICA },
                                                 .slice_axis = 1, .slice_along = all ? NULL : axis[1]),
                                        &t.v));
        run_all(s, find_pages, &t, &t.report);
        assert_ok(ditto_variable_destroy(t.v));
    }
    assert_ok(ditto_grouping_destroy(axis[0]));
    assert_ok(ditto_grouping_destroy(axis[1]));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- Copies that are split by an update -- */

static ditto_status split_by_update(ditto_replica *self, void *variable)
{
    float mine = (float)ditto_replica_id(self);
    return ditto_update(self, variable, set_copy, NULL, &(ditto_tensor){ .data = &mine, .dtype = DITTO_F32 },
                        1, NULL);
}

static void copies_are_shared_on_each_node_and_after_a_split_are_near_their_replicas(void **state)
{
    enum { ELEMENTS = 100000 };
    ditto_strategy *s = make_strategy(8, NULL);
    ditto_tensor spec = { .dtype = DITTO_F32, .rank = 1, .shape = { ELEMENTS } };
    const float *before[8], *after[8];
    ditto_variable *v;
    assert_ok(ditto_variable_create(s, &spec, NULL, &v));
    for (uint32_t i = 0; i < 8; i++)
        assert_ok(component_of(v, i, (const void **)&before[i]));
    for (uint32_t i = 0; i < 8; i++)
        for (uint32_t k = 0; k < 8; k++)
            assert_int_equal(before[i] == before[k], node_of_page(before[i]) == node_of_page(before[k]));
    assert_ok(ditto_strategy_run(s, split_by_update, v));
    for (uint32_t i = 0; i < 8; i++) {
        ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
        assert_ok(ditto_strategy_replica_info(s, i, 0, &info));
        assert_ok(component_of(v, i, (const void **)&after[i]));
        assert_true(after[i][0] == (float)i);
        assert_int_equal(node_of_page(after[i]), info.planned.pu.memory_node);
        assert_int_equal(node_of_page(after[i] + ELEMENTS - 1), info.planned.pu.memory_node);
        for (uint32_t k = 0; k < i; k++)
            assert_ptr_not_equal(after[i], after[k]);
    }
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- Shards and slots -- */

/* If the first shards of all variables were on one node, the numbers of shards on two, four or eight nodes
 * would differ by more than one. */
static void shards_of_all_variables_are_distributed_evenly_over_the_nodes(void **state)
{
    ditto_strategy *s = make_strategy(8, NULL);
    ditto_tensor spec = { .dtype = DITTO_F32, .rank = 2, .shape = { 9, 4096 } };
    ditto_variable *v[3];
    uint32_t devices[64], count = nodes_of_parameters(s, devices, 64), most = 0, least = UINT32_MAX;
    for (int k = 0; k < 3; k++)
        assert_ok(ditto_variable_create(
            s, &spec,
            &OPTIONS(variable,
                     .partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 3 }),
            &v[k]));
    for (uint32_t d = 0; d < count; d++) {
        uint32_t here = 0;
        for (int k = 0; k < 3; k++)
            for (uint32_t i = 0; i < 3; i++)
                here += v[k]->copy_node[i] == devices[d];
        printf("  node %u: %u of 9 shards\n", devices[d], here);
        most = here > most ? here : most;
        least = here < least ? here : least;
    }
    assert_true(most - least <= 1);
    for (int k = 0; k < 3; k++)
        assert_ok(ditto_variable_destroy(v[k]));
    assert_ok(ditto_strategy_destroy(s));
}

/* Rows of two floats. Each shard and each slot has several pages. */
#define ROWS 60000

struct applying {
    struct report report;
    ditto_variable *v[2]; /* one with copies, one with shards */
    ditto_optimizer *optimizer;
};

static ditto_status apply_gradients(ditto_replica *self, void *argument)
{
    struct applying *a = argument;
    void *data;
    DITTO_TRY(ditto_alloc(self, ROWS * 2 * sizeof(float), 64, &data));
    for (int i = 0; i < ROWS * 2; i++)
        ((float *)data)[i] = (float)(i % 11) / 7 + (float)ditto_replica_id(self) / 3;
    ditto_tensor gradient = spec_of(a->v[0]);
    gradient.data = data;
    for (int step = 0; step < 2; step++)
        DITTO_TRY(ditto_apply(self, a->optimizer, (ditto_tensor[]){ gradient, gradient }, NULL));
    return ditto_free(self, data);
}

static void expect_shards_on_nodes_in_turn(ditto_strategy *s, ditto_variable *v)
{
    uint32_t devices[64], count = nodes_of_parameters(s, devices, 64);
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    assert_ok(ditto_strategy_replica_info(s, 0, 0, &info));
    for (size_t k = 0; k < properties_of(v).num_shards && info.binding != DITTO_BINDING_FIRST_TOUCH; k++) {
        ditto_shard_info shard = shard_of(v, k);
        const void *data = shard.data;
        assert_int_equal(node_of_page(data),
                         node_of_page((const char *)data + (shard.rows * 2 - 1) * sizeof(float)));
        bool known = false;
        for (uint32_t i = 0; i < count; i++)
            known |= node_of_page(data) == (int)devices[i];
        assert_true(known);
        /* Nodes are used in turn, so the shard is on the same node as the one `count` before it. */
        if (k >= count)
            assert_int_equal(node_of_page(data), node_of_page(shard_of(v, k - count).data));
    }
}

/* The first page of each piece of a slot is in memory near the replica that updates the piece. */
static void expect_slots_near_their_updaters(ditto_strategy *s, ditto_optimizer *o)
{
    for (uint32_t k = 0; k < 2; k++) {
        ditto_variable *slot;
        assert_ok(ditto_optimizer_slot(o, k, "momentum", &slot));
        for (uint32_t p = 0; p < slot->pieces; p++) {
            ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
            assert_ok(ditto_strategy_replica_info(s, slot->copy[p].owner, 0, &info));
            assert_int_equal(node_of_page(slot->copy[p].data), info.planned.pu.memory_node);
        }
    }
}

static void train(size_t hierarchical_bytes, float *out)
{
    ditto_tensor spec = { .dtype = DITTO_F32, .rank = 2, .shape = { ROWS, 2 } };
    struct applying a = { .optimizer = NULL };
    ditto_tuning tuning = { .struct_size = sizeof tuning, .hierarchical_bytes = hierarchical_bytes };
    ditto_strategy *s = make_strategy(8, &OPTIONS(strategy, .tuning = &tuning));
    assert_ok(ditto_variable_create(s, &spec, NULL, &a.v[0]));
    assert_ok(ditto_variable_create(
        s, &spec,
        &OPTIONS(variable,
                 .partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 5 }),
        &a.v[1]));
    assert_ok(ditto_optimizer_create(a.v, 2, &OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .momentum = 0.9),
                                     &a.optimizer));
    expect_shards_on_nodes_in_turn(s, a.v[1]);
    expect_slots_near_their_updaters(s, a.optimizer);
    run_all(s, apply_gradients, &a, &a.report);
    for (int k = 0; k < 2; k++)
        assert_ok(ditto_variable_read(a.v[k], out + k * ROWS * 2, ROWS * 2 * sizeof(float)));
    assert_ok(ditto_optimizer_destroy(a.optimizer));
    assert_ok(ditto_variable_destroy(a.v[0]));
    assert_ok(ditto_variable_destroy(a.v[1]));
    assert_ok(ditto_strategy_destroy(s));
}

static void shards_and_slots_are_on_their_nodes_and_all_algorithms_give_the_same_bits(void **state)
{
    static float owners[4 * ROWS], groups[4 * ROWS];
    train(SIZE_MAX, owners);
    train(1, groups);
    /* Both algorithms give the same bits, in copies and in shards. */
    assert_memory_equal(owners, groups, sizeof owners);
    assert_memory_equal(owners, owners + 2 * ROWS, 2 * ROWS * sizeof(float));
}

int main(int count, char **word)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mirrored_variable_has_one_equal_copy_per_node),
        cmocka_unit_test(slices_are_on_the_nodes_of_their_replicas),
        cmocka_unit_test(central_storage_is_on_its_node),
        cmocka_unit_test(shards_and_slots_are_on_their_nodes_and_all_algorithms_give_the_same_bits),
        cmocka_unit_test(shared_copies_are_updated_with_the_arguments_of_replica_0),
        cmocka_unit_test(copies_are_shared_on_each_node_and_after_a_split_are_near_their_replicas),
        cmocka_unit_test(shards_of_all_variables_are_distributed_evenly_over_the_nodes),
    };
    read_condition(count, word);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
