/* tests/replicas/placement/test_placement.c - the claims of include/ditto/placement.h, on the machines of
 * machines.h. The expected placements were written by hand. */
#include "replicas/machine/machines.h"

#include <time.h>

#include "replicas/placement/placement.h"

/* Builds a placement on a machine and compares it with the expected lines, unless they are NULL. */
static void expect(int machine, const ditto_placement_options *options, const char *expected)
{
    ditto_topology *topology = machine_topology(machine);
    ditto_placement *placement;
    assert_ok(ditto_placement_create(topology, options, &placement));
    if (expected != NULL)
        assert_string_equal(placement_lines(placement), expected);
    assert_ok(ditto_placement_destroy(placement));
    assert_ok(ditto_topology_destroy(topology));
}

static void expect_shape(int machine, const int64_t shape[4], const int64_t stride[4], uint32_t replicas,
                         ditto_placement_policy policy, const char *expected)
{
    ditto_placement_options o = OPTIONS(placement, .num_replicas = replicas, .policy = policy, .shape = shape,
                                        .shape_rank = shape != NULL ? 4 : 0, .stride = stride,
                                        .stride_rank = stride != NULL ? 4 : 0);
    expect(machine, &o, expected);
}

static void expect_span(int machine, ditto_span span, uint32_t flags, uint32_t replicas, const char *expected)
{
    expect(machine, &OPTIONS(placement, .span = span, .flags = flags, .num_replicas = replicas), expected);
}

/* -- the 2 x 64 SMT server -- */

static void each_span_has_its_candidates_on_the_server(void **state)
{
    expect_span(MACHINE_SERVER, DITTO_SPAN_PU, 0, 3, "0: 0\n1: 1\n2: 64\n");
    expect_span(MACHINE_SERVER, DITTO_SPAN_CORE, 0, 3, "0: 0,128\n1: 1,129\n2: 64,192\n");
    expect_span(MACHINE_SERVER, DITTO_SPAN_LLC, 0, 0, "0: 0-63,128-191\n1: 64-127,192-255\n");
    expect_span(MACHINE_SERVER, DITTO_SPAN_NUMA_NODE, 0, 0, "0: 0-63,128-191\n1: 64-127,192-255\n");
    expect_span(MACHINE_SERVER, DITTO_SPAN_PACKAGE, DITTO_PLACEMENT_NO_SMT, 0, "0: 0-63\n1: 64-127\n");
    expect_span(MACHINE_SERVER, DITTO_SPAN_MACHINE, 0, 0, "0: 0-255\n");
}

static void blocks_of_a_shape_are_placed_on_the_server(void **state)
{
    static const int64_t half_node[] = { 1, 1, 32, 2 }, cores[] = { 1, 1, 32, 1 }, apart[] = { 1, 1, 2, 1 },
                         both[] = { 2, 1, 1, 1 }, all[] = { 2, 1, 64, 2 };
    expect_shape(MACHINE_SERVER, NULL, NULL, 0, DITTO_PLACEMENT_SPREAD, "0: 0\n");
    expect_shape(MACHINE_SERVER, NULL, NULL, 4, DITTO_PLACEMENT_COMPACT, "0: 0\n1: 1\n2: 2\n3: 3\n");
    expect_shape(MACHINE_SERVER, half_node, NULL, 3, DITTO_PLACEMENT_SPREAD,
                 "0: 0-31,128-159\n1: 32-63,160-191\n2: 64-95,192-223\n");
    /* The fifth block to be chosen has siblings, because no block of 32 first PUs of cores is left. It
     * becomes replica 1, because replicas are numbered in the order of the mesh. */
    expect_shape(MACHINE_SERVER, cores, NULL, 5, DITTO_PLACEMENT_COMPACT,
                 "0: 0-31\n1: 128-159\n2: 32-63\n3: 64-95\n4: 96-127\n");
    expect_shape(MACHINE_SERVER, both, NULL, 2, DITTO_PLACEMENT_SPREAD, "0: 0,64\n1: 1,65\n");
    expect_shape(MACHINE_SERVER, all, NULL, 1, DITTO_PLACEMENT_SPREAD, "0: 0-255\n");
    expect_shape(
        MACHINE_SERVER, cores, apart, 2, DITTO_PLACEMENT_COMPACT,
        "0: 0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,46,48,50,52,54,56,58,60,62\n"
        "1: 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,41,43,45,47,49,51,53,55,57,59,61,63\n");
}

/* -- sub-NUMA clusters: 2 packages of 4 nodes of 8 cores -- */

static void replicas_are_placed_on_sub_numa_clusters(void **state)
{
    expect_span(MACHINE_SUB_NUMA, DITTO_SPAN_NUMA_NODE, DITTO_PLACEMENT_NO_SMT, 0,
                "0: 0-7\n1: 8-15\n2: 16-23\n3: 24-31\n4: 32-39\n5: 40-47\n6: 48-55\n7: 56-63\n");
    expect_span(MACHINE_SUB_NUMA, DITTO_SPAN_PACKAGE, 0, 0, "0: 0-31,64-95\n1: 32-63,96-127\n");
    expect_shape(MACHINE_SUB_NUMA, (int64_t[]){ 1, 2, 8, 1 }, NULL, 4, DITTO_PLACEMENT_SPREAD,
                 "0: 0-15\n1: 16-31\n2: 32-47\n3: 48-63\n");
    /* Each of the 8 nodes gets one replica, and node 0 gets a second, which is replica 1. */
    expect_shape(MACHINE_SUB_NUMA, (int64_t[]){ 1, 1, 4, 2 }, NULL, 9, DITTO_PLACEMENT_SPREAD,
                 "0: 0-3,64-67\n1: 4-7,68-71\n2: 8-11,72-75\n3: 16-19,80-83\n4: 24-27,88-91\n5: 32-35,96-99\n"
                 "6: 40-43,104-107\n7: 48-51,112-115\n8: 56-59,120-123\n");
}

/* -- AMD: last-level caches are smaller than nodes -- */

static void caches_that_are_smaller_than_nodes_are_candidates(void **state)
{
    expect_span(MACHINE_AMD, DITTO_SPAN_LLC, DITTO_PLACEMENT_NO_SMT, 4,
                "0: 0-7\n1: 8-15\n2: 96-103\n3: 104-111\n");
    expect_span(MACHINE_AMD, DITTO_SPAN_LLC, 0, 1, "0: 0-7,192-199\n");
}

/* -- numbers of PUs -- */

static void expect_size(int machine, uint32_t pus, uint32_t flags, uint32_t replicas, const char *expected)
{
    expect(machine, &OPTIONS(placement, .pus_per_replica = pus, .flags = flags, .num_replicas = replicas),
           expected);
}

static void the_pus_of_nodes_are_cut_into_sets_of_a_size(void **state)
{
    /* The sets that need no sibling are the default. */
    expect_size(MACHINE_SERVER, 32, 0, 0, "0: 0-31\n1: 32-63\n2: 64-95\n3: 96-127\n");
    expect_size(MACHINE_SERVER, 32, 0, 2, "0: 0-31\n1: 64-95\n");
    expect(MACHINE_SERVER,
           &OPTIONS(placement, .pus_per_replica = 32, .num_replicas = 2, .policy = DITTO_PLACEMENT_COMPACT),
           "0: 0-31\n1: 32-63\n");
    expect_size(MACHINE_SERVER, 1, 0, 3, "0: 0\n1: 1\n2: 64\n");
    expect_size(MACHINE_SERVER, 48, 0, 0, "0: 0-47\n1: 64-111\n");
    /* The last set has what is left over of both nodes. */
    expect_size(MACHINE_SERVER, 48, 0, 5,
                "0: 0-47\n1: 160-191,224-239\n2: 48-63,128-159\n3: 64-111\n4: 112-127,192-223\n");
    /* All sets need siblings. */
    expect_size(MACHINE_SERVER, 128, 0, 0, "0: 0-63,128-191\n1: 64-127,192-255\n");
    expect_size(MACHINE_SERVER, 200, 0, 0, "0: 0-199\n");
    expect_size(MACHINE_SERVER, 256, 0, 0, "0: 0-255\n");
    expect_size(MACHINE_SERVER, 128, DITTO_PLACEMENT_SHARE, 3,
                "0: 0-63,128-191\n1: 0-63,128-191\n2: 64-127,192-255\n");
    expect_size(MACHINE_SERVER, 48, DITTO_PLACEMENT_NO_SMT, 0, "0: 0-47\n1: 64-111\n");
    expect_size(MACHINE_MEMORYLESS, 2, 0, 0, "0: 0-1\n1: 2-3\n");
    /* Fast cores come first. */
    expect_size(MACHINE_RK3588, 3, 0, 0, "0: 4-6\n1: 7,0-1\n");
    expect_size(MACHINE_RK3588, 4, 0, 1, "0: 4-7\n");
}

static void a_quota_limits_the_default_number_of_wide_replicas(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_SERVER);
    ditto_placement_options o = OPTIONS(placement, .pus_per_replica = 16);
    ditto_placement *p;
    t->counts.cpu_quota = 40;
    assert_ok(ditto_placement_create(t, &o, &p));
    assert_string_equal(placement_lines(p), "0: 0-15\n1: 16-31\n2: 64-79\n");
    assert_ok(ditto_placement_destroy(p));
    assert_ok(ditto_topology_destroy(t));
}

static void sizes_that_do_not_fit_are_refused(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_SERVER);
    ditto_placement *p;
    ditto_placement_options o = OPTIONS(placement, .pus_per_replica = 257);
    assert_status(ditto_placement_create(t, &o, &p), DITTO_ERR_RANGE);
    assert_message("pus_per_replica = 257, but there are 256 PUs");
    o.flags = DITTO_PLACEMENT_NO_SMT;
    o.pus_per_replica = 129;
    assert_status(ditto_placement_create(t, &o, &p), DITTO_ERR_RANGE);
    assert_message("pus_per_replica = 129, but there are 128 PUs without SMT siblings");
    o.pus_per_replica = 48;
    o.num_replicas = 3;
    assert_status(ditto_placement_create(t, &o, &p), DITTO_ERR_RANGE);
    assert_message("at most 2 of that");
    assert_ok(ditto_topology_destroy(t));
}

/* -- nodes without memory, nodes without PUs, a node in two packages, a machine of one core -- */

static void each_node_with_pus_is_a_candidate_in_each_of_its_packages(void **state)
{
    expect_span(MACHINE_MEMORYLESS, DITTO_SPAN_NUMA_NODE, 0, 0, "0: 0-1\n1: 2\n2: 3\n");
    expect_span(MACHINE_MEMORYLESS, DITTO_SPAN_LLC, 0, 0, "0: 0-1\n1: 2-3\n"); /* wider than a node */
    expect_span(MACHINE_MEMORYLESS, DITTO_SPAN_PU, 0, 4, "0: 0\n1: 1\n2: 2\n3: 3\n");
    /* Node 0 gives one candidate in each of its packages. */
    expect_span(MACHINE_CPULESS, DITTO_SPAN_NUMA_NODE, 0, 0, "0: 0-1\n1: 2-3\n");
    expect_span(MACHINE_CPULESS, DITTO_SPAN_MACHINE, 0, 0, "0: 0-3\n");
    expect_span(MACHINE_ONE_CORE, DITTO_SPAN_PACKAGE, 0, 0, "0: 0\n");
}

static void an_irregular_mesh_is_filled_in_order(void **state)
{
    ditto_topology *t = machine_part(machines[MACHINE_PACKAGES].text, "0-2,8-12");
    ditto_placement *p;
    ditto_placement_options o = OPTIONS(placement, .shape = (int64_t[]){ 1, 1, 2, 1 }, .shape_rank = 4,
                                        .num_replicas = 3);
    assert_ok(ditto_placement_create(t, &o, &p));
    assert_string_equal(placement_lines(p), "0: 0-1\n1: 8-9\n2: 10-11\n"); /* full blocks are used first */
    assert_ok(ditto_placement_destroy(p));
    o.num_replicas = 4;
    assert_ok(ditto_placement_create(t, &o, &p));
    /* The remaining PUs, 2 and 12, are chosen last, but replicas are numbered in the order of the mesh. */
    assert_string_equal(placement_lines(p), "0: 0-1\n1: 2,12\n2: 8-9\n3: 10-11\n");
    assert_ok(ditto_placement_destroy(p));
    o.num_replicas = 5;
    assert_status(ditto_placement_create(t, &o, &p), DITTO_ERR_RANGE);
    assert_message("at most 4");
    assert_ok(ditto_topology_destroy(t));
}

/* Tries random spans and shapes on random parts of random machines. No PU is in two replicas. */
static void no_pu_is_shared_without_the_share_flag(void **state)
{
    uint64_t random = test_seed(5), built = 0;
    for (int round = 0; round < 400; round++) {
        char cpus[512];
        struct dti_text text = { cpus, sizeof cpus, 0 };
        struct dti_mask mask;
        int machine = (int)(test_random(&random) % MACHINES);
        ditto_topology *t = machine_topology(machine);
        dti_mask_clear(&mask);
        for (uint32_t i = 0; i < 24; i++)
            dti_mask_add(&mask, t->pus[test_random(&random) % t->counts.pus].is.number);
        dti_mask_write(&mask, &text);
        assert_ok(ditto_topology_destroy(t));
        t = machine_part(machines[machine].text, cpus);
        for (int k = 0; k < 8; k++) {
            ditto_placement *p;
            int64_t shape[4], stride[4];
            ditto_placement_options o = OPTIONS(
                placement, .policy = (ditto_placement_policy)(test_random(&random) % 2),
                .num_replicas = (uint32_t)(test_random(&random) % 9),
                .span = k < 4 ? (ditto_span)(test_random(&random) % (DITTO_SPAN_MACHINE + 1))
                              : DITTO_SPAN_DEFAULT);
            for (int d = 0; d < 4; d++) {
                shape[d] = (int64_t)(1 + test_random(&random) % t->counts.mesh[d]);
                stride[d] = (int64_t)(1 + test_random(&random) % 2);
            }
            if (k == 3) {
                o.span = DITTO_SPAN_DEFAULT;
                o.pus_per_replica = (uint32_t)(1 + test_random(&random) % 9);
            } else if (o.span == DITTO_SPAN_DEFAULT) {
                o.shape = shape, o.stride = stride;
                o.shape_rank = o.stride_rank = 4;
            }
            ditto_status status = ditto_placement_create(t, &o, &p);
            if (status != DITTO_OK) {
                assert_int_equal(status, DITTO_ERR_RANGE);
                continue;
            }
            built++;
            assert_false(p->shared);
            for (uint32_t i = 0; i < p->num_pus; i++)
                assert_true(p->sharers[i] <= 1);
            for (uint32_t r = 1; r < p->replicas; r++) /* replicas are numbered in the order of the mesh */
                assert_true(p->list[p->blocks[r].first] > p->list[p->blocks[r - 1].first]);
            assert_ok(ditto_placement_destroy(p));
        }
        assert_ok(ditto_topology_destroy(t));
    }
    assert_true(built > 300);
}

static void more_replicas_than_candidates_share_them_evenly(void **state)
{
    ditto_placement_options o = OPTIONS(placement, .flags = DITTO_PLACEMENT_SHARE, .num_replicas = 10);
    expect(MACHINE_MEMORYLESS, &o, "0: 0\n1: 0\n2: 0\n3: 1\n4: 1\n5: 2\n6: 2\n7: 2\n8: 3\n9: 3\n");
    o.policy = DITTO_PLACEMENT_COMPACT;
    o.span = DITTO_SPAN_NUMA_NODE;
    o.num_replicas = 4;
    expect(MACHINE_MEMORYLESS, &o, "0: 0-1\n1: 0-1\n2: 2\n3: 3\n");
}

static void pus_keep_their_order_within_given_sets_which_are_checked(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_PACKAGES);
    ditto_placement *p;
    ditto_placed_device place;
    uint32_t pus[] = { 9, 8, 3, 0, 1 }, sizes[] = { 2, 1, 2 };
    ditto_placement_options o = OPTIONS(placement, .pus = pus, .num_pus = 5, .set_sizes = sizes,
                                        .num_replicas = 3);
    assert_ok(ditto_placement_create(t, &o, &p));
    /* Replicas are numbered in the order of their leaders' PUs. The PU of a leader comes first. */
    assert_string_equal(placement_lines(p), "0: 0-1\n1: 3\n2: 9,8\n");
    assert_ok(ditto_placement_get(p, 2, 1, &place));
    assert_int_equal(place.pu.number, 8);
    assert_int_equal(place.device, 1);
    assert_status(ditto_placement_get(p, 2, 2, &place), DITTO_ERR_RANGE);
    assert_status(ditto_placement_get(p, 3, 0, &place), DITTO_ERR_RANGE);
    assert_int_equal(ditto_placement_num_devices(p, 2), 2);
    assert_int_equal(ditto_placement_num_devices(p, 3), 0);
    assert_ok(ditto_placement_destroy(p));
    pus[4] = 9; /* PU 9 is in two sets */
    assert_status(ditto_placement_create(t, &o, &p), DITTO_ERR_RANGE);
    assert_message("names PU 9 again");
    o.flags = DITTO_PLACEMENT_SHARE;
    assert_ok(ditto_placement_create(t, &o, &p));
    assert_ok(ditto_placement_get(p, 2, 0, &place));
    assert_int_equal(place.num_sharers, 2);
    assert_ok(ditto_placement_destroy(p));
    pus[4] = 0; /* PU 0 is twice in one set, so two logical devices share it */
    assert_ok(ditto_placement_create(t, &o, &p));
    assert_string_equal(placement_lines(p), "0: 0,0\n1: 3\n2: 9,8\n");
    assert_ok(ditto_placement_destroy(p));
    pus[4] = 32;
    assert_status(ditto_placement_create(t, &o, &p), DITTO_ERR_RANGE);
    assert_message("PU 32, which does not exist or which this process may not use");
    pus[4] = UINT32_MAX;
    assert_status(ditto_placement_create(t, &o, &p), DITTO_ERR_RANGE);
    sizes[2] = 0;
    assert_status(ditto_placement_create(t, &o, &p), DITTO_ERR_RANGE);
    sizes[2] = 1;
    assert_status(ditto_placement_create(t, &o, &p), DITTO_ERR_INVALID);
    sizes[2] = UINT32_MAX;
    assert_status(ditto_placement_create(t, &o, &p), DITTO_ERR_INVALID);
    assert_ok(ditto_topology_destroy(t));
}

static void contradictions_and_unknown_values_are_refused(void **state)
{
    static const int64_t ones[] = { 1, 1, 1, 1 };
    static const uint32_t pus[] = { 0 };
    ditto_topology *t = machine_topology(MACHINE_PACKAGES);
    ditto_placement *p;
    const struct {
        ditto_placement_options o;
        ditto_status status;
    } cases[] = {
        { { .flags = 4 }, DITTO_ERR_INVALID },
        { { .policy = (ditto_placement_policy)7 }, DITTO_ERR_RANGE },
        { { .span = (ditto_span)7 }, DITTO_ERR_RANGE },
        { { .span = (ditto_span)-1 }, DITTO_ERR_RANGE },
        { { .num_pus = 2 }, DITTO_ERR_INVALID },
        { { .pus = pus }, DITTO_ERR_INVALID },
        { { .num_pus = 1, .pus = pus, .num_replicas = 2 }, DITTO_ERR_INVALID },
        { { .num_pus = 1, .pus = pus, .span = DITTO_SPAN_CORE }, DITTO_ERR_INVALID },
        { { .num_pus = 1, .pus = pus, .flags = DITTO_PLACEMENT_NO_SMT }, DITTO_ERR_INVALID },
        { { .num_pus = 1, .pus = pus, .set_sizes = pus }, DITTO_ERR_INVALID },
        { { .set_sizes = pus }, DITTO_ERR_INVALID },
        { { .span = DITTO_SPAN_CORE, .shape = ones, .shape_rank = 4 }, DITTO_ERR_INVALID },
        { { .span = DITTO_SPAN_CORE, .pus_per_replica = 1 }, DITTO_ERR_INVALID },
        { { .num_pus = 1, .pus = pus, .pus_per_replica = 1 }, DITTO_ERR_INVALID },
        { { .shape = ones, .shape_rank = 4, .pus_per_replica = 1 }, DITTO_ERR_INVALID },
        { { .shape_rank = 4 }, DITTO_ERR_INVALID },
        { { .shape = ones, .shape_rank = 3 }, DITTO_ERR_SHAPE },
        { { .stride = ones, .stride_rank = 5 }, DITTO_ERR_SHAPE },
        { { .shape = ones }, DITTO_ERR_SHAPE },
        { { .num_replicas = 1025 }, DITTO_ERR_RANGE },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ditto_placement_options o = cases[i].o;
        o.struct_size = sizeof o;
        if (ditto_placement_create(t, &o, &p) != cases[i].status)
            fail_msg("case %zu: %s", i, ditto_last_error()->message);
    }
    assert_status(ditto_placement_create(NULL, NULL, &p), DITTO_ERR_INVALID);
    assert_status(ditto_placement_create(t, NULL, NULL), DITTO_ERR_INVALID);
    assert_ok(ditto_topology_destroy(t));
}

static void levels_list_the_replicas_of_their_groups(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_MEMORYLESS);
    ditto_placement *p;
    assert_ok(ditto_placement_create(t, &OPTIONS(placement, .span = DITTO_SPAN_PU), &p));
    const struct dti_replica_grouping *caches = &p->level[DTI_LEVEL_LLC], *nodes = &p->level[DTI_LEVEL_NODE];
    assert_int_equal(caches->groups, 2);
    assert_int_equal(nodes->groups, 3);
    assert_int_equal(p->level[DTI_LEVEL_PACKAGE].groups, 2);
    assert_int_equal(caches->first[2] - caches->first[1], 2);
    assert_int_equal(caches->member[caches->first[1]], 2);
    assert_int_equal(caches->member[caches->first[1] + 1], 3);
    assert_int_equal(nodes->first[1] - nodes->first[0], 2);
    assert_ok(ditto_placement_destroy(p));
    assert_ok(ditto_topology_destroy(t));
}

static void as_many_replicas_as_possible_are_placed_on_the_largest_machine(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_LARGEST);
    ditto_placement *p;
    ditto_placed_device last;
    struct timespec begin, end;
    ditto_placement_options o = OPTIONS(placement, .num_replicas = 1024);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_ok(ditto_placement_create(t, &o, &p));
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("  1024 replicas on 8 x 64 x 2: %.2f ms\n",
           (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) * 1e-6);
    assert_ok(ditto_placement_get(p, 1023, 0, &last));
    assert_int_equal(last.pu.number, 1023);
    assert_int_equal(last.pu.package, 7);
    assert_int_equal(last.num_sharers, 1);
    assert_int_equal(p->level[DTI_LEVEL_PACKAGE].groups, 8);
    assert_ok(ditto_placement_destroy(p));
    o.num_replicas = 1025;
    assert_status(ditto_placement_create(t, &o, &p), DITTO_ERR_RANGE);
    assert_message("at most 1024");
    assert_ok(ditto_topology_destroy(t));
}

/* -- text -- */

static void text_that_was_written_is_read_back(void **state)
{
    for (int machine = 0; machine < MACHINES; machine++)
        for (int span = DITTO_SPAN_PU; span <= DITTO_SPAN_MACHINE; span++) {
            static char text[1 << 16], again[1 << 16];
            ditto_topology *t = machine_topology(machine);
            ditto_placement *p, *q;
            size_t length, asked_length;
            ditto_placement_options o = OPTIONS(placement, .span = (ditto_span)span,
                                                .flags = DITTO_PLACEMENT_SHARE, .num_replicas = 7);
            assert_ok(ditto_placement_create(t, &o, &p));
            assert_ok(ditto_placement_write(p, text, sizeof text, &length));
            assert_ok(ditto_placement_read(t, text, length, &q));
            assert_ok(ditto_placement_write(q, again, sizeof again, NULL));
            assert_string_equal(text, again);
            assert_ok(ditto_placement_write(p, NULL, 0, &asked_length));
            assert_int_equal(asked_length, length);
            assert_ok(ditto_placement_destroy(p));
            assert_ok(ditto_placement_destroy(q));
            assert_ok(ditto_topology_destroy(t));
        }
}

static void placements_of_another_machine_are_refused(void **state)
{
    char text[256];
    ditto_topology *there = machine_topology(MACHINE_SERVER), *here = machine_topology(MACHINE_PACKAGES);
    ditto_placement *p;
    size_t length;
    ditto_placement_options o = OPTIONS(placement, .pus = (uint32_t[]){ 1, 9 }, .num_pus = 2);
    assert_ok(ditto_placement_create(there, &o, &p));
    assert_ok(ditto_placement_write(p, text, sizeof text, &length));
    assert_ok(ditto_placement_destroy(p));
    assert_status(ditto_placement_read(here, text, length, &p), DITTO_ERR_INVALID);
    assert_message("other hardware");
    assert_ok(ditto_topology_destroy(there));
    assert_ok(ditto_topology_destroy(here));
    /* The machines of a pair have equal numbers of PUs and nodes. PU 3 is in different packages in the first
     * pair, and in different cores in the second. */
    static const char *const pairs[][2] = { { "pack:1 numa:2 core:2 pu:1", "pack:2 numa:1 core:2 pu:1" },
                                            { "pack:1 [numa] core:4 pu:1", "pack:1 [numa] core:2 pu:2" } };
    for (int i = 0; i < 2; i++) {
        there = machine_part(pairs[i][0], NULL);
        here = machine_part(pairs[i][1], NULL);
        o.pus = (uint32_t[]){ 0, 3 };
        assert_ok(ditto_placement_create(there, &o, &p));
        assert_ok(ditto_placement_write(p, text, sizeof text, &length));
        ditto_placement *moved = NULL, *read = NULL;
        assert_status(ditto_placement_read(here, text, length, &read), DITTO_ERR_INVALID);
        assert_status(dti_placement_move(p, here, &moved), DITTO_ERR_INVALID);
        assert_message("made for another machine");
        assert_ok(dti_placement_move(p, there, &moved));
        assert_ok(ditto_placement_destroy(moved));
        assert_ok(ditto_placement_destroy(p));
        assert_ok(ditto_topology_destroy(there));
        assert_ok(ditto_topology_destroy(here));
    }
    /* PU 0, the only one of the placement, is the same on both machines, but the machines differ in size. */
    there = machine_part("pack:8 [numa] core:16 pu:1", NULL);
    here = machine_part("pack:1 [numa] core:2 pu:1", NULL);
    assert_ok(ditto_placement_create(there, NULL, &p));
    ditto_placement *moved = NULL;
    assert_status(dti_placement_move(p, here, &moved), DITTO_ERR_INVALID);
    assert_message("of 128 PUs and 8 NUMA nodes; this one has 2 and 1");
    assert_ok(ditto_placement_destroy(p));
    assert_ok(ditto_topology_destroy(there));
    assert_ok(ditto_topology_destroy(here));
}

/* The order of the nodes may depend on which of them the process may use. The machine is written by hand:
 * it has three packages of one PU, and node 2 is nearer to node 0 than node 1 is. The order is 0, 2, 1 for
 * all three nodes, but 1, 2 without node 0. */
static void text_is_read_in_a_cpuset_with_another_order_of_nodes(void **state)
{
    static const char machine[] = "chain_of_nodes.xml";
    ditto_topology *all = machine_part(machine, NULL), *part = machine_part(machine, "1-2");
    ditto_placement *p;
    char text[256];
    size_t length;
    assert_ok(
        ditto_placement_create(all, &OPTIONS(placement, .pus = (uint32_t[]){ 1, 2 }, .num_pus = 2), &p));
    assert_string_equal(placement_lines(p), "0: 2\n1: 1\n");
    assert_ok(ditto_placement_write(p, text, sizeof text, &length));
    assert_ok(ditto_placement_destroy(p));
    assert_ok(ditto_placement_read(part, text, length, &p));
    assert_string_equal(placement_lines(p), "0: 1\n1: 2\n");
    assert_ok(ditto_placement_destroy(p));
    assert_ok(ditto_topology_destroy(all));
    assert_ok(ditto_topology_destroy(part));
}

static void malformed_text_is_refused(void **state)
{
    static const struct {
        const char *text, *message;
        ditto_status status;
    } cases[] = {
        { "", "line 0", DITTO_ERR_CORRUPT },
        { "ditto-placement 2\nend\n", "line 1", DITTO_ERR_CORRUPT },
        { "ditto-placement 1\nend\n", "at least one", DITTO_ERR_CORRUPT },
        { "ditto-placement 1\nreplica 0: 0\n", "is cut", DITTO_ERR_CORRUPT },
        { "ditto-placement 1\nreplica 1: 0\nend\n", "line 2", DITTO_ERR_CORRUPT },
        { "ditto-placement 1\nreplica 0: 0\nreplica 0: 1\nend\n", "line 3", DITTO_ERR_CORRUPT },
        { "ditto-placement 1\nreplica 0: \nend\n", "numbers of PUs", DITTO_ERR_CORRUPT },
        { "ditto-placement 1\nreplica 0: 0-\nend\n", "numbers of PUs", DITTO_ERR_CORRUPT },
        { "ditto-placement 1\nreplica 0: 0;1\nend\n", "numbers of PUs", DITTO_ERR_CORRUPT },
        { "ditto-placement 1\nreplica 0: 3-1\nend\n", "numbers of PUs", DITTO_ERR_CORRUPT },
        { "ditto-placement 1\ncheck 0\nreplica 0: 0\nend\n", "16 hexadecimal", DITTO_ERR_CORRUPT },
        { "ditto-placement 1\nreplica 0: 0\nend\nmore\n", "after", DITTO_ERR_CORRUPT },
        { "ditto-placement 1\nreplica 0: 32\nend\n", "PU 32", DITTO_ERR_RANGE },
        { "ditto-placement 1\nreplica 0: 9000\nend\n", "PU 9000", DITTO_ERR_RANGE },
        { "ditto-placement 1\nreplica 0: 0-8191,0\nend\n", "more than 8192", DITTO_ERR_RANGE },
    };
    ditto_topology *t = machine_topology(MACHINE_PACKAGES);
    ditto_placement *p;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_status(ditto_placement_read(t, cases[i].text, strlen(cases[i].text), &p), cases[i].status);
        assert_message(cases[i].message);
    }
    static const char by_hand[] = "ditto-placement 1\r\nreplica 0: 8,0\r\nreplica 1: 1-3\r\nend\r\n\r\n";
    assert_ok(ditto_placement_read(t, by_hand, sizeof by_hand - 1, &p));
    assert_string_equal(placement_lines(p), "0: 1-3\n1: 8,0\n"); /* in the order of the mesh */
    assert_ok(ditto_placement_destroy(p));
    assert_ok(ditto_topology_destroy(t));
}

/* Prints a table of the machines, which `meson test -v placement` shows. Asserts only that each placement can
 * be made. */
static void the_placements_on_all_machines_are_printed(void **state)
{
    static const char *const names[] = { "", "PU", "core", "LLC", "NUMA node", "package", "machine" };
    printf("  %-26s %-10s %8s  %-22s %s\n", "machine", "span", "replicas", "replica 0", "last replica");
    for (int machine = 0; machine < MACHINES; machine++)
        for (int span = DITTO_SPAN_PU; span <= DITTO_SPAN_MACHINE; span++) {
            ditto_topology *t = machine_topology(machine);
            ditto_placement *p;
            assert_ok(ditto_placement_create(t, &OPTIONS(placement, .span = (ditto_span)span), &p));
            const char *lines = placement_lines(p), *last = lines + strlen(lines) - 1;
            while (last > lines && last[-1] != '\n')
                last--;
            printf("  %-26s %-10s %8u  %-22.*s %.*s\n", machines[machine].name, names[span], p->replicas,
                   (int)strcspn(lines + 3, "\n"), lines + 3, (int)strcspn(last, "\n"), last);
            assert_ok(ditto_placement_destroy(p));
            assert_ok(ditto_topology_destroy(t));
        }
}

/* -- fast and slow kinds of cores -- */

static void fast_kinds_of_cores_are_used_first(void **state)
{
    static const char four[] = "core:8 pu:1", phone[] = "core:8 pu:1", two_caches[] = "l3:2 core:10 pu:1",
                      laptop[] = "core:14 pu:2", two_nodes[] = "pack:1 numa:2 core:4 pu:1";
    /* From slow to fast. */
    static const char *const halves[] = { "0-3", "4-7", NULL },
                             *const of_phone[] = { "0-3", "4-6", "7", NULL },
                             *const in_caches[] = { "0-4,10-14", "5-9,15-19", NULL },
                             *const of_laptop[] = { "12-27", "0-11", NULL },
                             *const three[] = { "0-4", "5-7", NULL };
    /* The slow cores of the laptop have one PU each. */
    static const char pus_of_laptop[] = "0-12,14,16,18,20,22,24,26";
    static const int64_t pair[] = { 1, 1, 2, 1 };
    static const struct {
        const char *machine;
        const char *const *kinds;
        const char *cpus;
        uint32_t fastest_kinds;
        ditto_placement_options o;
        const char *expected;
    } cases[] = {
        { four, halves, NULL, 0, { .num_replicas = 4 }, "0: 4\n1: 5\n2: 6\n3: 7\n" },
        { four, halves, NULL, 0, { .num_replicas = 6 }, "0: 4\n1: 5\n2: 6\n3: 7\n4: 0\n5: 1\n" },
        { four, halves, NULL, 0, { .span = DITTO_SPAN_MACHINE }, "0: 4-7,0-3\n" },
        { four, halves, NULL, 1, { .span = DITTO_SPAN_MACHINE }, "0: 4-7\n" },
        { four, halves, NULL, 1, { .span = DITTO_SPAN_CORE }, "0: 4\n1: 5\n2: 6\n3: 7\n" },
        { four, halves, NULL, 9, { .num_replicas = 1 }, "0: 4\n" },
        { four, halves, "0-3", 0, { .num_replicas = 2 }, "0: 0\n1: 1\n" },
        { four, halves, "0-3", 1, { .span = DITTO_SPAN_MACHINE }, "0: 0-3\n" },
        { phone, of_phone, NULL, 0, { .num_replicas = 3 }, "0: 7\n1: 4\n2: 5\n" },
        { phone, of_phone, NULL, 2, { .span = DITTO_SPAN_CORE }, "0: 7\n1: 4\n2: 5\n3: 6\n" },
        { phone, of_phone, "0-5", 1, { .span = DITTO_SPAN_CORE }, "0: 4\n1: 5\n" },
        { two_caches, in_caches, NULL, 0, { .num_replicas = 3 }, "0: 5\n1: 6\n2: 7\n" },
        { two_caches, in_caches, NULL, 0, { .span = DITTO_SPAN_LLC }, "0: 5-9,0-4\n1: 15-19,10-14\n" },
        { two_caches, in_caches, NULL, 1, { .span = DITTO_SPAN_LLC }, "0: 5-9\n1: 15-19\n" },
        /* A sibling of a fast core is used after all slow cores. */
        { laptop,
          of_laptop,
          pus_of_laptop,
          0,
          { .num_replicas = 15 },
          "0: 0\n1: 1\n2: 2\n3: 4\n4: 6\n5: 8\n6: 10\n7: 12\n8: 14\n9: 16\n10: 18\n11: 20\n12: 22\n13: 24\n"
          "14: 26\n" },
        { laptop,
          of_laptop,
          pus_of_laptop,
          0,
          { .span = DITTO_SPAN_MACHINE },
          "0: 0,2,4,6,8,10,12,14,16,18,20,22,24,26,1,3,5,7,9,11\n" },
        { laptop,
          of_laptop,
          pus_of_laptop,
          1,
          { .span = DITTO_SPAN_CORE },
          "0: 0-1\n1: 2-3\n2: 4-5\n3: 6-7\n4: 8-9\n5: 10-11\n" },
        /* The fast node comes before the equal spread over the nodes. */
        { two_nodes, halves, NULL, 0, { .num_replicas = 4 }, "0: 4\n1: 5\n2: 6\n3: 7\n" },
        { two_nodes, halves, NULL, 0, { .num_replicas = 5 }, "0: 0\n1: 4\n2: 5\n3: 6\n4: 7\n" },
        { two_nodes, halves, NULL, 0, { .num_replicas = 1, .span = DITTO_SPAN_NUMA_NODE }, "0: 4-7\n" },
        /* A pair is as slow as its slower core. */
        { four, three, NULL, 0, { .num_replicas = 1, .shape = pair, .shape_rank = 4 }, "0: 5-6\n" },
        { four,
          three,
          NULL,
          0,
          { .num_replicas = 3, .shape = pair, .shape_rank = 4 },
          "0: 5-6\n1: 7,0\n2: 1-2\n" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ditto_topology *t = machine_of_kinds(cases[i].machine, cases[i].kinds, true, cases[i].cpus,
                                             cases[i].fastest_kinds);
        ditto_placement_options o = cases[i].o;
        ditto_placement *p;
        o.struct_size = sizeof o;
        assert_ok(ditto_placement_create(t, &o, &p));
        if (strcmp(placement_lines(p), cases[i].expected) != 0)
            fail_msg("case %zu is placed on\n%sand not on\n%s", i, placement_lines(p), cases[i].expected);
        assert_ok(ditto_placement_destroy(p));
        assert_ok(ditto_topology_destroy(t));
    }
}

static void the_default_number_of_replicas_is_that_of_the_chosen_kinds(void **state)
{
    static const char *const kinds[] = { "0-3", "4-6", "7", NULL };
    static const uint32_t expected[] = { 8, 1, 4, 8, 8 }, expected_unranked[] = { 8, 8, 8, 8, 8 };
    for (uint32_t fastest = 0; fastest < 5; fastest++)
        for (int ranked = 0; ranked < 2; ranked++) {
            ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
            ditto_topology *t = machine_of_kinds("core:8 pu:1", kinds, ranked != 0, NULL, fastest);
            ditto_pu pu;
            assert_ok(ditto_topology_count(t, &counts));
            assert_ok(ditto_topology_pu(t, 0, &pu));
            assert_int_equal(counts.core_kinds, ranked != 0 ? 3 : 0);
            assert_int_equal(counts.default_num_replicas, (ranked ? expected : expected_unranked)[fastest]);
            assert_int_equal(counts.cpuset_pus, 8);
            assert_int_equal(counts.affinity_pus, 8);
            assert_int_equal(pu.number, ranked != 0 ? 7 : 0);
            assert_int_equal(pu.kind, ranked != 0 ? 2 : 0);
            assert_ok(ditto_topology_destroy(t));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_span_has_its_candidates_on_the_server),
        cmocka_unit_test(blocks_of_a_shape_are_placed_on_the_server),
        cmocka_unit_test(replicas_are_placed_on_sub_numa_clusters),
        cmocka_unit_test(caches_that_are_smaller_than_nodes_are_candidates),
        cmocka_unit_test(the_pus_of_nodes_are_cut_into_sets_of_a_size),
        cmocka_unit_test(a_quota_limits_the_default_number_of_wide_replicas),
        cmocka_unit_test(sizes_that_do_not_fit_are_refused),
        cmocka_unit_test(each_node_with_pus_is_a_candidate_in_each_of_its_packages),
        cmocka_unit_test(an_irregular_mesh_is_filled_in_order),
        cmocka_unit_test(no_pu_is_shared_without_the_share_flag),
        cmocka_unit_test(more_replicas_than_candidates_share_them_evenly),
        cmocka_unit_test(pus_keep_their_order_within_given_sets_which_are_checked),
        cmocka_unit_test(contradictions_and_unknown_values_are_refused),
        cmocka_unit_test(levels_list_the_replicas_of_their_groups),
        cmocka_unit_test(as_many_replicas_as_possible_are_placed_on_the_largest_machine),
        cmocka_unit_test(text_that_was_written_is_read_back),
        cmocka_unit_test(placements_of_another_machine_are_refused),
        cmocka_unit_test(text_is_read_in_a_cpuset_with_another_order_of_nodes),
        cmocka_unit_test(malformed_text_is_refused),
        cmocka_unit_test(the_placements_on_all_machines_are_printed),
        cmocka_unit_test(fast_kinds_of_cores_are_used_first),
        cmocka_unit_test(the_default_number_of_replicas_is_that_of_the_chosen_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
