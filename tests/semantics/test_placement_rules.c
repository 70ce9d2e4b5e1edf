/* tests/semantics/test_placement_rules.c - docs/semantics.md, "Placement": rules 10.1 to 10.5. */
#include "support/as_hosts.h"
#include "replicas/machine/machines.h"

#include "replicas/placement/placement.h"

#include <sched.h>
#include <stdatomic.h>

static const int64_t ones[] = { 1, 1, 1, 1 };

static ditto_placement_options shaped(const int64_t *shape, const int64_t *stride, uint32_t replicas)
{
    ditto_placement_options o = OPTIONS(placement, .shape = shape, .stride = stride);
    o.shape_rank = o.stride_rank = DITTO_MESH_RANK;
    o.num_replicas = replicas;
    return o;
}

static ditto_status try_on(const char *machine, const ditto_placement_options *o)
{
    ditto_topology *t = machine_part(machine, NULL);
    ditto_placement *p = NULL;
    ditto_status status = ditto_placement_create(t, o, &p);
    DITTO_TRY(ditto_placement_destroy(p));
    DITTO_TRY(ditto_topology_destroy(t));
    return status;
}

/* -- rule 10.1 -- */

static void rule_10_1_an_explicit_build_defaults_to_one_replica_of_one_pu(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_SERVER);
    ditto_placement *p;
    assert_ok(ditto_placement_create(t, NULL, &p));
    assert_int_equal(ditto_placement_num_replicas(p), 1);
    assert_int_equal(ditto_placement_num_devices(p, 0), 1);
    assert_ok(ditto_placement_destroy(p));
    assert_ok(ditto_topology_destroy(t));
}

static void rule_10_1_a_strategy_without_options_has_one_replica_per_core_up_to_the_quota(void **state)
{
    ditto_topology *here;
    ditto_strategy *s;
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    assert_ok(ditto_topology_create(NULL, &here));
    assert_ok(ditto_topology_count(here, &counts));
    uint32_t expected = counts.cores < DITTO_MAX_REPLICAS ? counts.cores : DITTO_MAX_REPLICAS;
    if (counts.cpu_quota > 0 && expected > counts.cpu_quota)
        expected = (uint32_t)counts.cpu_quota + (counts.cpu_quota > (uint32_t)counts.cpu_quota);
    assert_int_equal(counts.default_num_replicas, expected);
    assert_ok(ditto_strategy_create(DITTO_MIRRORED, NULL, &s));
    assert_int_equal(ditto_strategy_num_replicas(s), expected);
    assert_ok(ditto_strategy_destroy(s));
    here->counts.cpu_quota = 0.5; /* is rounded up */
    assert_ok(ditto_topology_count(here, &counts));
    assert_int_equal(counts.default_num_replicas, 1);
    assert_ok(ditto_topology_destroy(here));
}

static void rule_10_1_a_strategy_given_only_a_number_of_replicas_shares_pus_if_it_must(void **state)
{
    for (size_t i = 0; i < replica_counts_length; i++) {
        ditto_strategy *s = make_strategy(replica_counts[i], NULL);
        const ditto_placement *p = properties_of_strategy(s).placement;
        assert_int_equal(ditto_placement_num_replicas(p), replica_counts[i]);
        assert_int_equal(p->shared, replica_counts[i] > p->num_pus);
        assert_ok(ditto_strategy_destroy(s));
    }
}

/* -- rule 10.2 -- */

static void rule_10_2_shape_and_stride_must_be_positive(void **state)
{
    static const int64_t bad[] = { 0, -1, INT64_MIN };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (int d = 0; d < DITTO_MESH_RANK; d++) {
            int64_t values[] = { 1, 1, 1, 1 };
            values[d] = bad[i];
            ditto_placement_options shape = shaped(values, ones, 1), stride = shaped(ones, values, 1);
            assert_status(try_on("pack:2 [numa] core:4 pu:2", &shape), DITTO_ERR_RANGE);
            assert_message("shape[");
            assert_status(try_on("pack:2 [numa] core:4 pu:2", &stride), DITTO_ERR_RANGE);
            assert_message("at least 1");
        }
}

static void rule_10_2_shape_x_stride_must_fit_the_mesh_in_each_dimension(void **state)
{
    static const int64_t mesh[] = { 2, 1, 4, 2 }, two[] = { 1, 1, 2, 1 };
    for (int d = 0; d < DITTO_MESH_RANK; d++) {
        int64_t values[] = { 1, 1, 1, 1 };
        ditto_placement_options o = shaped(values, ones, 1);
        values[d] = mesh[d];
        assert_ok(try_on("pack:2 [numa] core:4 pu:2", &o));
        values[d] = mesh[d] + 1;
        assert_status(try_on("pack:2 [numa] core:4 pu:2", &o), DITTO_ERR_RANGE);
        values[d] = INT64_MAX;
        assert_status(try_on("pack:2 [numa] core:4 pu:2", &o), DITTO_ERR_RANGE);
    }
    ditto_placement_options both = shaped((int64_t[]){ 1, 1, 3, 1 }, two, 1);
    assert_status(try_on("pack:2 [numa] core:4 pu:2", &both), DITTO_ERR_RANGE);
    assert_message("3 x 2 cores of a node, but the mesh has 4");
    both = shaped((int64_t[]){ 1, 1, INT64_MAX, 1 }, two, 1); /* the product overflows */
    assert_status(try_on("pack:2 [numa] core:4 pu:2", &both), DITTO_ERR_RANGE);
}

/* The largest number is prod(floor(mesh / (shape x stride)) x stride). Tests every shape and stride that
 * fits. */
static void rule_10_2_the_largest_number_is_the_product_of_the_blocks(void **state)
{
    static const int64_t mesh[] = { 2, 2, 5, 2 };
    ditto_topology *t = machine_part("pack:2 group:2 [numa] core:5 pu:2", NULL);
    unsigned tried = 0;
    for (int64_t code = 0; code < 2 * 2 * 5 * 2 * 2 * 2 * 5 * 2; code++) {
        int64_t shape[4], stride[4], rest = code, most = 1;
        bool fits = true;
        for (int d = 0; d < DITTO_MESH_RANK; d++) {
            shape[d] = 1 + rest % mesh[d], rest /= mesh[d];
            stride[d] = 1 + rest % mesh[d], rest /= mesh[d];
            fits = fits && shape[d] * stride[d] <= mesh[d];
            most *= mesh[d] / (shape[d] * stride[d]) * stride[d];
        }
        if (!fits)
            continue;
        char largest[32];
        ditto_placement_options o = shaped(shape, stride, (uint32_t)most);
        ditto_placement *p;
        assert_ok(ditto_placement_create(t, &o, &p));
        assert_false(p->shared);
        assert_ok(ditto_placement_destroy(p));
        o.num_replicas++;
        assert_status(ditto_placement_create(t, &o, &p), DITTO_ERR_RANGE);
        snprintf(largest, sizeof largest, "at most %d", (int)most);
        assert_message(largest);
        tried++;
    }
    assert_true(tried > 80);
    assert_ok(ditto_topology_destroy(t));
}

static void rule_10_2_given_pus_must_exist_and_be_distinct_unless_sharing_is_requested(void **state)
{
    static const uint32_t twice[] = { 0, 1, 0 }, missing[] = { 0, 99 };
    ditto_placement_options o = OPTIONS(placement, .pus = twice, .num_pus = 3);
    assert_status(try_on("pack:1 [numa] core:2 pu:1", &o), DITTO_ERR_RANGE);
    o.flags = DITTO_PLACEMENT_SHARE;
    assert_ok(try_on("pack:1 [numa] core:2 pu:1", &o));
    o.pus = missing;
    o.num_pus = 2;
    assert_status(try_on("pack:1 [numa] core:2 pu:1", &o), DITTO_ERR_RANGE);
}

static void rule_10_2_a_shape_of_another_rank_is_refused(void **state)
{
    ditto_placement_options o = shaped(ones, ones, 1);
    for (o.shape_rank = 0; o.shape_rank < 7; o.shape_rank++)
        assert_status(try_on("pack:1 [numa] core:2 pu:1", &o),
                      o.shape_rank == 4 ? DITTO_OK : DITTO_ERR_SHAPE);
}

/* -- rule 10.3 -- */

static void rule_10_3_the_policy_decides_how_many_a_node_gets_and_ids_go_node_by_node(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_SUB_NUMA);
    for (int policy = DITTO_PLACEMENT_SPREAD; policy <= DITTO_PLACEMENT_COMPACT; policy++)
        for (uint32_t n = 1; n <= 64; n++) {
            ditto_placement *p;
            uint32_t least = UINT32_MAX, most = 0, before = 0;
            assert_ok(ditto_placement_create(
                t, &OPTIONS(placement, .num_replicas = n, .policy = (ditto_placement_policy)policy), &p));
            const struct dti_replica_grouping *nodes = &p->level[DTI_LEVEL_NODE];
            for (uint32_t g = 0; g < nodes->groups; g++) {
                const uint32_t *members = nodes->member + nodes->first[g];
                uint32_t count = nodes->first[g + 1] - nodes->first[g];
                assert_int_equal(members[0], before); /* the ids of a node are consecutive */
                before += count;
                assert_int_equal(members[count - 1], before - 1);
                if (policy == DITTO_PLACEMENT_COMPACT && g + 1 < nodes->groups)
                    assert_int_equal(count, 8); /* a node is full before the next one is used */
                least = count < least ? count : least;
                most = count > most ? count : most;
            }
            assert_int_equal(before, n);
            if (policy == DITTO_PLACEMENT_SPREAD) {
                assert_true(most - least <= 1);
                assert_int_equal(nodes->groups, n < 8 ? n : 8);
            } else {
                assert_int_equal(nodes->groups, (n + 7) / 8);
            }
            assert_ok(ditto_placement_destroy(p));
        }
    assert_ok(ditto_topology_destroy(t));
}

static void rule_10_3_replicas_have_coordinates(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_SUB_NUMA);
    ditto_placement *p;
    ditto_placed_device place;
    assert_ok(ditto_placement_create(t, &OPTIONS(placement, .num_replicas = 12), &p));
    assert_ok(ditto_placement_get(p, 6, 0, &place));
    assert_int_equal(place.pu.numa_node, 3);
    assert_ok(ditto_placement_get(p, 11, 0, &place));
    assert_memory_equal(place.pu.mesh, ((uint32_t[]){ 1, 3, 0, 0 }), sizeof place.pu.mesh);
    assert_ok(ditto_placement_destroy(p));
    assert_ok(ditto_topology_destroy(t));
}

/* tests/replicas/placement/test_placement.c tests text for all machines. This test uses the machine that runs
 * it, and creates a strategy. */
static void rule_10_3_a_placement_is_written_and_read_back_and_used_by_a_strategy(void **state)
{
    char text[4096];
    ditto_topology *here;
    ditto_placement *p, *q;
    ditto_strategy *s;
    size_t length;
    assert_ok(ditto_topology_create(NULL, &here));
    assert_ok(ditto_placement_create(here, &OPTIONS(placement, .span = DITTO_SPAN_MACHINE), &p));
    assert_ok(ditto_placement_write(p, text, sizeof text, &length));
    assert_ok(ditto_placement_read(here, text, length, &q));
    ditto_strategy_options options = OPTIONS(strategy, .placement = q);
    assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &s));
    assert_string_equal(placement_lines(properties_of_strategy(s).placement), placement_lines(p));
    assert_ok(ditto_strategy_destroy(s));
    options.num_replicas = 1;
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &s), DITTO_ERR_INVALID);
    assert_ok(ditto_placement_destroy(p));
    assert_ok(ditto_placement_destroy(q));
    assert_ok(ditto_topology_destroy(here));
}

static void rule_10_3_a_placement_of_another_machine_is_refused(void **state)
{
    ditto_topology *there = machine_topology(MACHINE_SUB_NUMA);
    ditto_placement *p;
    ditto_strategy *s;
    assert_ok(ditto_placement_create(there, &OPTIONS(placement, .span = DITTO_SPAN_NUMA_NODE), &p));
    ditto_strategy_options options = OPTIONS(strategy, .placement = p);
    ditto_status status = ditto_strategy_create(DITTO_MIRRORED, &options, &s);
    /* INVALID if the hardware differs, RANGE if it does not but this process may not use the PUs. */
    assert_true(status == DITTO_ERR_INVALID || status == DITTO_ERR_RANGE);
    assert_ok(ditto_placement_destroy(p));
    assert_ok(ditto_topology_destroy(there));
    /* The machine that runs the test has a PU 0 too. It has another number of PUs or nodes, or its PU 0 is
     * not on node 1. */
    there = machine_part("pack:2 [numa(indexes=1,0)] core:2 pu:1", "0");
    assert_int_equal(there->pus[0].is.numa_node, 1);
    assert_ok(ditto_placement_create(there, NULL, &p));
    options.placement = p;
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &s), DITTO_ERR_INVALID);
    assert_message("made for another machine");
    assert_ok(ditto_placement_destroy(p));
    assert_ok(ditto_topology_destroy(there));
}

/* -- rule 10.4 -- */

static void rule_10_4_irregular_machines_are_filled_in_order(void **state)
{
    ditto_topology *t = machine_part("pack:2 [numa] core:4 pu:1", "1-3,6");
    ditto_placement *p;
    assert_ok(ditto_placement_create(t, &OPTIONS(placement, .num_replicas = 4), &p));
    assert_string_equal(placement_lines(p), "0: 1\n1: 2\n2: 3\n3: 6\n");
    assert_ok(ditto_placement_destroy(p));
    assert_ok(ditto_topology_destroy(t));
}

static void rule_10_4_more_replicas_than_pus_share_and_the_description_says_so(void **state)
{
    enum { MOST_PUS = 64 }; /* more threads may not be allowed, and their description would not fit */
    char text[1 << 14];
    ditto_topology *here;
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    assert_ok(ditto_topology_create(NULL, &here));
    assert_ok(ditto_topology_count(here, &counts));
    assert_ok(ditto_topology_destroy(here));
    if (counts.pus > MOST_PUS) {
        print_message("skipped: there are more than %d PUs\n", MOST_PUS);
        skip();
    }
    ditto_strategy *s = make_strategy(counts.pus + 1, NULL);
    const ditto_placement *p = properties_of_strategy(s).placement;
    uint32_t num_shared = 0;
    for (uint32_t i = 0; i < p->num_pus; i++) { /* replicas are placed round robin */
        assert_true(p->sharers[i] == 1 || p->sharers[i] == 2);
        num_shared += p->sharers[i] == 2;
    }
    assert_int_equal(num_shared, 1);
    assert_ok(ditto_strategy_describe(s, text, sizeof text, NULL));
    assert_non_null(strstr(text, "PU shared by"));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- rule 10.5: logical devices -- */

struct devices {
    struct report report;
    uint32_t devices;
    uint32_t ran_on[4096];
    int cpu[4096]; /* where the kernel ran it */
    _Atomic uint32_t runs;

    /* The PUs of the replica, by the placement. With helpers, each device has the PU of its number. */
    uint32_t num_pus;
    uint32_t pu[8];
};

static ditto_status note_device(uint32_t device, void *argument)
{
    struct devices *d = argument;
    uint32_t run = atomic_fetch_add(&d->runs, 1);
    d->ran_on[run] = device;
    d->cpu[run] = sched_getcpu();
    return DITTO_OK;
}

/* Returns true if the device has the PU. Without helpers, device 0 has all PUs of the replica. */
static bool may_run_on(const struct devices *d, uint32_t device, int cpu)
{
    bool found = false;
    for (uint32_t i = 0; i < d->num_pus; i++)
        found = found || ((d->devices == 1 || i == device) && (int)d->pu[i] == cpu);
    return found;
}

static ditto_status use_devices(ditto_replica *self, void *argument)
{
    struct devices *d = argument;
    EXPECT(&d->report, ditto_num_logical_devices(self) == d->devices);
    for (uint32_t i = 0; i < d->devices; i++)
        EXPECT(&d->report, ditto_on_logical_device(self, i, note_device, d) == DITTO_OK);
    EXPECT(&d->report, ditto_join(self) == DITTO_OK);
    EXPECT(&d->report, atomic_load(&d->runs) == d->devices);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < d->devices; i++) {
        seen |= (uint64_t)1 << d->ran_on[i];
        EXPECT(&d->report, may_run_on(d, d->ran_on[i], d->cpu[i]));
    }
    EXPECT(&d->report, seen == ((uint64_t)1 << d->devices) - 1);
    EXPECT(&d->report, ditto_on_logical_device(self, d->devices, note_device, d) == DITTO_ERR_RANGE);
    EXPECT(&d->report, ditto_on_logical_device(self, UINT32_MAX, note_device, d) == DITTO_ERR_RANGE);
    return DITTO_OK;
}

/* Creates a strategy of one replica with `devices` logical devices, which share PUs if there are too few.
 * Without helpers the replica has one device. */
static ditto_strategy *wide(uint32_t devices, ditto_switch helpers, struct devices *d)
{
    ditto_placed_device place;
    d->devices = helpers == DITTO_SWITCH_OFF ? 1 : devices;
    d->num_pus = devices;
    ditto_strategy *s = make_wide_strategy(1, devices, &OPTIONS(strategy, .helpers = helpers));
    for (uint32_t i = 0; i < devices; i++) {
        assert_ok(ditto_placement_get(properties_of_strategy(s).placement, 0, i, &place));
        d->pu[i] = place.pu.number;
    }
    return s;
}

static void rule_10_5_functions_run_on_their_device_and_join_waits(void **state)
{
    for (int helpers = DITTO_SWITCH_ON; helpers <= DITTO_SWITCH_OFF; helpers++)
        for (uint32_t devices = 1; devices <= 8; devices++) {
            struct devices d = { 0 };
            ditto_strategy *s = wide(devices, (ditto_switch)helpers, &d);
            run_all(s, use_devices, &d, &d.report);
            assert_ok(ditto_strategy_destroy(s));
        }
}

static ditto_status cut(ditto_replica *self, void *argument)
{
    struct devices *d = argument;
    uint32_t n = d->devices;
    int32_t values[3 * 4 * 8];
    ditto_tensor blocks[64], t = { .data = values, .dtype = DITTO_I32, .rank = 3, .shape = { 3, 4, 2 } };
    for (int i = 0; i < 96; i++)
        values[i] = i;
    t.shape[1] = 2 * n;
    EXPECT(&d->report, n <= 16 && ditto_split(self, &t, (uint32_t[]){ 1, n, 1 }, 3, blocks) == DITTO_OK);
    for (uint32_t b = 0; b < n; b++) {
        EXPECT(&d->report, blocks[b].device == b && blocks[b].shape[0] == 3 && blocks[b].shape[1] == 2);
        for (uint32_t i = 0; i < 3; i++)
            for (uint32_t j = 0; j < 2; j++)
                for (uint32_t k = 0; k < 2; k++)
                    EXPECT(&d->report, ((int32_t *)blocks[b].data)[(i * 2 + j) * 2 + k] ==
                                           (int32_t)((i * 2 * n + 2 * b + j) * 2 + k));
        EXPECT(&d->report, ditto_free(self, blocks[b].data) == DITTO_OK);
    }
    /* The checks are made in this order: number of entries, divisibility, product. */
    EXPECT(&d->report, ditto_split(self, &t, (uint32_t[]){ 2, 7 }, 2, blocks) == DITTO_ERR_SHAPE);
    EXPECT(&d->report, strstr(ditto_last_error()->message, "one per dimension") != NULL);
    EXPECT(&d->report, ditto_split(self, &t, (uint32_t[]){ 2, n + 1, 1 }, 3, blocks) == DITTO_ERR_SHAPE);
    EXPECT(&d->report, strstr(ditto_last_error()->message, "do not divide") != NULL);
    EXPECT(&d->report, ditto_split(self, &t, (uint32_t[]){ 0, n, 1 }, 3, blocks) == DITTO_ERR_SHAPE);
    EXPECT(&d->report, ditto_split(self, &t, (uint32_t[]){ 3, n, 1 }, 3, blocks) == DITTO_ERR_SHAPE);
    EXPECT(&d->report,
           strstr(ditto_last_error()->message, "give parts that make one block for each") != NULL);
    return DITTO_OK;
}

static ditto_status copy(ditto_replica *self, void *argument)
{
    struct devices *d = argument;
    float values[6] = { 1, 2, 3, 4, 5, 6 };
    ditto_tensor copies[64], placed, t = { .data = values, .dtype = DITTO_F32, .rank = 2, .shape = { 2, 3 } };
    EXPECT(&d->report, d->devices <= 64 && ditto_replicate(self, &t, copies) == DITTO_OK);
    for (uint32_t i = 0; i < d->devices; i++) {
        EXPECT(&d->report, copies[i].device == i && copies[i].data != values);
        EXPECT(&d->report, memcmp(copies[i].data, values, sizeof values) == 0);
        EXPECT(&d->report, ditto_free(self, copies[i].data) == DITTO_OK);
    }
    EXPECT(&d->report, t.device == 0); /* an unmarked tensor is on device 0 */
    EXPECT(&d->report, ditto_assign_to_logical_device(self, &t, d->devices - 1, &placed) == DITTO_OK);
    EXPECT(&d->report, placed.device == d->devices - 1 && memcmp(placed.data, values, sizeof values) == 0);
    d->runs = 0;
    EXPECT(&d->report, ditto_on_logical_device(self, placed.device, note_device, d) == DITTO_OK);
    EXPECT(&d->report, ditto_join(self) == DITTO_OK && d->ran_on[0] == d->devices - 1);
    EXPECT(&d->report, may_run_on(d, d->ran_on[0], d->cpu[0]));
    EXPECT(&d->report, ditto_free(self, placed.data) == DITTO_OK);
    EXPECT(&d->report, ditto_assign_to_logical_device(self, &t, d->devices, &placed) == DITTO_ERR_RANGE);
    return DITTO_OK;
}

static void rule_10_5_split_gives_each_device_its_block(void **state)
{
    for (uint32_t devices = 1; devices <= 8; devices++) {
        struct devices d = { 0 };
        ditto_strategy *s = wide(devices, DITTO_SWITCH_ON, &d);
        run_all(s, cut, &d, &d.report);
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void rule_10_5_replicate_copies_to_all_devices_and_assign_marks_the_device(void **state)
{
    struct devices d = { 0 };
    ditto_strategy *s = wide(3, DITTO_SWITCH_ON, &d);
    run_all(s, copy, &d, &d.report);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- worker and parameter devices -- */

static void worker_and_parameter_devices_come_from_the_placement(void **state)
{
    ditto_strategy *s = make_strategy(3, NULL);
    const ditto_placement *p = properties_of_strategy(s).placement;
    ditto_strategy_properties found = properties_of_strategy(s);
    ditto_placed_device place;
    assert_ok(ditto_placement_get(p, 0, 0, &place));
    assert_int_equal(found.parameter_nodes[0], place.pu.memory_node);
    assert_in_range(found.num_parameter_nodes, 1, p->level[DTI_LEVEL_NODE].groups);
    found.struct_size = 0;
    assert_status(ditto_strategy_info(s, &found), DITTO_ERR_INVALID);
    assert_status(ditto_strategy_info(s, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_strategy_info(NULL, NULL), DITTO_ERR_INVALID);
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_10_1_an_explicit_build_defaults_to_one_replica_of_one_pu),
        cmocka_unit_test(rule_10_1_a_strategy_without_options_has_one_replica_per_core_up_to_the_quota),
        cmocka_unit_test(rule_10_1_a_strategy_given_only_a_number_of_replicas_shares_pus_if_it_must),
        cmocka_unit_test(rule_10_2_shape_and_stride_must_be_positive),
        cmocka_unit_test(rule_10_2_shape_x_stride_must_fit_the_mesh_in_each_dimension),
        cmocka_unit_test(rule_10_2_the_largest_number_is_the_product_of_the_blocks),
        cmocka_unit_test(rule_10_2_given_pus_must_exist_and_be_distinct_unless_sharing_is_requested),
        cmocka_unit_test(rule_10_2_a_shape_of_another_rank_is_refused),
        cmocka_unit_test(rule_10_3_the_policy_decides_how_many_a_node_gets_and_ids_go_node_by_node),
        cmocka_unit_test(rule_10_3_replicas_have_coordinates),
        cmocka_unit_test(rule_10_3_a_placement_is_written_and_read_back_and_used_by_a_strategy),
        cmocka_unit_test(rule_10_3_a_placement_of_another_machine_is_refused),
        cmocka_unit_test(rule_10_4_irregular_machines_are_filled_in_order),
        cmocka_unit_test(rule_10_4_more_replicas_than_pus_share_and_the_description_says_so),
        cmocka_unit_test(rule_10_5_functions_run_on_their_device_and_join_waits),
        cmocka_unit_test(rule_10_5_split_gives_each_device_its_block),
        cmocka_unit_test(rule_10_5_replicate_copies_to_all_devices_and_assign_marks_the_device),
        cmocka_unit_test(worker_and_parameter_devices_come_from_the_placement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
