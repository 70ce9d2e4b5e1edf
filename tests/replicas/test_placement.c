/* tests/replicas/test_placement.c - the claims of include/ditto/topology.h and placement.h, on synthetic machines. */
#include "support.h"

#include "replicas/replicas.h"

static ditto_topology *synthetic(const char *text)
{
    ditto_topology_options options = DITTO_TOPOLOGY_OPTIONS_INIT;
    ditto_topology *topology;
    options.synthetic = text;
    assert_ok(ditto_topology_create(&options, &topology));
    return topology;
}

/* Places `replicas` on a machine and compares the PUs with the expected ones, ended by -1. */
static void expect_pus(const char *machine, uint32_t replicas, ditto_policy policy, const int *expected)
{
    ditto_topology *topology = synthetic(machine);
    ditto_placement_options options = DITTO_PLACEMENT_OPTIONS_INIT;
    ditto_placement *placement;
    options.replicas = replicas != 0 ? replicas : ditto_topology_default_replicas(topology);
    options.policy = policy;
    options.flags = DITTO_PLACEMENT_SHARE;
    assert_ok(ditto_placement_build(topology, &options, &placement));
    uint32_t count = ditto_placement_replicas(placement);
    for (uint32_t i = 0; i < count; i++) {
        ditto_place place;
        assert_ok(ditto_placement_get(placement, i, 0, &place));
        if ((int)place.pu.number != expected[i])
            fail_msg("%s, %u replicas: replica %u is on PU %u, expected %d", machine, replicas, i, place.pu.number,
                     expected[i]);
    }
    assert_int_equal(expected[count], -1);
    ditto_placement_destroy(placement);
    ditto_topology_destroy(topology);
}

static void a_machine_is_counted(void **state)
{
    ditto_topology *topology = synthetic("pack:2 [numa] core:4 pu:2");
    ditto_topology_counts counts;
    (void)state;
    assert_ok(ditto_topology_count(topology, &counts));
    assert_int_equal(counts.packages, 2);
    assert_int_equal(counts.numa_nodes, 2);
    assert_int_equal(counts.cores, 8);
    assert_int_equal(counts.pus, 16);
    ditto_topology_destroy(topology);
}

static void without_a_number_there_is_one_replica_per_core(void **state)
{
    (void)state;
    expect_pus("pack:2 [numa] core:4 pu:2", 0, DITTO_SPREAD, (int[]){ 0, 2, 4, 6, 8, 10, 12, 14, -1 });
}

static void spread_gives_nodes_equal_numbers_and_ids_go_node_by_node(void **state)
{
    (void)state;
    expect_pus("pack:2 [numa] core:4 pu:2", 4, DITTO_SPREAD, (int[]){ 0, 2, 8, 10, -1 });
    expect_pus("pack:2 [numa] core:4 pu:2", 3, DITTO_SPREAD, (int[]){ 0, 2, 8, -1 });
}

static void compact_fills_a_node_first(void **state)
{
    (void)state;
    expect_pus("pack:2 [numa] core:4 pu:2", 3, DITTO_COMPACT, (int[]){ 0, 2, 4, -1 });
    expect_pus("pack:2 [numa] core:4 pu:2", 5, DITTO_COMPACT, (int[]){ 0, 2, 4, 6, 8, -1 });
}

static void smt_siblings_come_after_all_cores(void **state)
{
    (void)state;
    expect_pus("pack:2 [numa] core:2 pu:2", 6, DITTO_SPREAD, (int[]){ 0, 1, 2, 4, 5, 6, -1 });
}

static void more_replicas_than_pus_share_them_evenly(void **state)
{
    (void)state;
    expect_pus("pack:1 [numa] core:2 pu:1", 5, DITTO_SPREAD, (int[]){ 0, 0, 0, 1, 1, -1 });
    expect_pus("pack:2 [numa] core:1 pu:1", 8, DITTO_COMPACT, (int[]){ 0, 0, 0, 0, 1, 1, 1, 1, -1 });
}

static void sub_numa_clusters_are_nodes_of_their_own(void **state)
{
    (void)state;
    expect_pus("pack:2 group:2 [numa] core:2 pu:1", 4, DITTO_SPREAD, (int[]){ 0, 2, 4, 6, -1 });
}

static void the_largest_machine_of_the_design_is_placed(void **state)
{
    ditto_topology *topology = synthetic("pack:8 [numa] core:64 pu:2");
    ditto_placement_options options = DITTO_PLACEMENT_OPTIONS_INIT;
    ditto_placement *placement;
    ditto_place first, last;
    (void)state;
    options.replicas = 1024;
    assert_ok(ditto_placement_build(topology, &options, &placement));
    assert_ok(ditto_placement_get(placement, 0, 0, &first));
    assert_ok(ditto_placement_get(placement, 1023, 0, &last));
    assert_int_equal(first.pu.number, 0);
    assert_int_equal(last.pu.number, 1023);
    assert_int_equal(last.pu.package, 7);
    assert_int_equal(last.sharers, 1);
    options.replicas = 1025;
    assert_status(ditto_placement_build(topology, &options, &placement), DITTO_ERR_RANGE);
    assert_message("at most 1024");
    ditto_placement_destroy(placement);
    ditto_topology_destroy(topology);
}

static void explicit_pus_are_checked(void **state)
{
    ditto_topology *topology = synthetic("pack:2 [numa] core:2 pu:1");
    ditto_placement_options options = DITTO_PLACEMENT_OPTIONS_INIT;
    ditto_placement *placement;
    ditto_place place;
    uint32_t pus[] = { 3, 0, 3 };
    (void)state;
    options.pus = pus;
    options.num_pus = 2;
    assert_ok(ditto_placement_build(topology, &options, &placement));
    assert_ok(ditto_placement_get(placement, 0, 0, &place));
    assert_int_equal(place.pu.number, 0); /* ids go node by node, whatever the order of the list */
    ditto_placement_destroy(placement);
    options.num_pus = 3;
    assert_status(ditto_placement_build(topology, &options, &placement), DITTO_ERR_RANGE);
    assert_message("names PU 3 again");
    options.flags = DITTO_PLACEMENT_SHARE;
    assert_ok(ditto_placement_build(topology, &options, &placement));
    assert_ok(ditto_placement_get(placement, 2, 0, &place));
    assert_int_equal(place.sharers, 2);
    assert_status(ditto_placement_get(placement, 3, 0, &place), DITTO_ERR_RANGE);
    ditto_placement_destroy(placement);
    pus[0] = 4;
    assert_status(ditto_placement_build(topology, &options, &placement), DITTO_ERR_RANGE);
    assert_message("PU 4, which this process may not use");
    ditto_topology_destroy(topology);
}

static void contradictions_and_unknown_bits_are_refused(void **state)
{
    ditto_topology *topology = synthetic("pack:1 [numa] core:2 pu:1");
    ditto_placement_options options = DITTO_PLACEMENT_OPTIONS_INIT;
    ditto_placement *placement;
    uint32_t pus[] = { 0, 1 };
    (void)state;
    options.flags = 4;
    assert_status(ditto_placement_build(topology, &options, &placement), DITTO_ERR_INVALID);
    options.flags = 0;
    options.policy = (ditto_policy)7;
    assert_status(ditto_placement_build(topology, &options, &placement), DITTO_ERR_RANGE);
    options.policy = DITTO_SPREAD;
    options.num_pus = 2;
    assert_status(ditto_placement_build(topology, &options, &placement), DITTO_ERR_INVALID);
    options.pus = pus;
    options.replicas = 3;
    assert_status(ditto_placement_build(topology, &options, &placement), DITTO_ERR_INVALID);
    assert_status(ditto_placement_build(NULL, NULL, &placement), DITTO_ERR_INVALID);
    assert_status(ditto_placement_build(topology, NULL, NULL), DITTO_ERR_INVALID);
    ditto_topology_destroy(topology);
}

static void malformed_machines_are_refused(void **state)
{
    ditto_topology_options options = DITTO_TOPOLOGY_OPTIONS_INIT;
    ditto_topology *topology;
    char *rubbish = temporary_file("<?xml version=\"1.0\"?><topology><object type=\"Mach");
    (void)state;
    options.synthetic = "pack:zwei";
    assert_status(ditto_topology_create(&options, &topology), DITTO_ERR_INVALID);
    options.synthetic = "";
    assert_status(ditto_topology_create(&options, &topology), DITTO_ERR_INVALID);
    options.synthetic = NULL;
    options.xml_path = rubbish;
    assert_status(ditto_topology_create(&options, &topology), DITTO_ERR_CORRUPT);
    options.xml_path = "/nowhere/machine.xml";
    assert_status(ditto_topology_create(&options, &topology), DITTO_ERR_NOT_FOUND);
    options.synthetic = "pu:1";
    assert_status(ditto_topology_create(&options, &topology), DITTO_ERR_INVALID);
    remove(rubbish);
    free(rubbish);
}

static void an_empty_cpuset_is_refused(void **state)
{
    ditto_topology_options here = DITTO_TOPOLOGY_OPTIONS_INIT;
    ditto_topology *topology;
    struct dti_mask none;
    (void)state;
    dti_mask_clear(&none);
    assert_status(dti_topology_read(&here, &none, &topology), DITTO_ERR_RANGE);
    assert_message("no PU is left");
}

static void this_machine_is_cut_to_the_affinity(void **state)
{
    struct dti_mask before, one;
    ditto_topology *topology;
    ditto_topology_counts counts;
    uint32_t pu = 0;
    (void)state;
    assert_ok(dti_affinity_get(&before));
    while (!dti_mask_has(&before, pu))
        pu++;
    dti_mask_clear(&one);
    dti_mask_add(&one, pu);
    assert_ok(dti_pin_to(&one));
    assert_ok(ditto_topology_create(NULL, &topology));
    dti_affinity_restore(&before);
    assert_ok(ditto_topology_count(topology, &counts));
    assert_int_equal(counts.pus, 1);
    ditto_topology_destroy(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_is_counted),
        cmocka_unit_test(without_a_number_there_is_one_replica_per_core),
        cmocka_unit_test(spread_gives_nodes_equal_numbers_and_ids_go_node_by_node),
        cmocka_unit_test(compact_fills_a_node_first),
        cmocka_unit_test(smt_siblings_come_after_all_cores),
        cmocka_unit_test(more_replicas_than_pus_share_them_evenly),
        cmocka_unit_test(sub_numa_clusters_are_nodes_of_their_own),
        cmocka_unit_test(the_largest_machine_of_the_design_is_placed),
        cmocka_unit_test(explicit_pus_are_checked),
        cmocka_unit_test(contradictions_and_unknown_bits_are_refused),
        cmocka_unit_test(malformed_machines_are_refused),
        cmocka_unit_test(an_empty_cpuset_is_refused),
        cmocka_unit_test(this_machine_is_cut_to_the_affinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
