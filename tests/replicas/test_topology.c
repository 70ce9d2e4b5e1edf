/* tests/replicas/test_topology.c - the claims of include/ditto/topology.h and limits.h, on machines that are not here. */
#include "machines.h"

#include "replicas/mesh.h"
#include "replicas/replicas.h"

#include <unistd.h>

static void a_machine_is_counted(void **state)
{
    ditto_topology *topology = machine_part("pack:2 [numa] core:4 pu:2", NULL);
    ditto_topology_counts counts;
    (void)state;
    assert_ok(ditto_topology_count(topology, &counts));
    assert_int_equal(counts.packages, 2);
    assert_int_equal(counts.numa_nodes, 2);
    assert_int_equal(counts.cores, 8);
    assert_int_equal(counts.pus, 16);
    assert_int_equal(counts.llcs, 2);
    assert_int_equal(counts.regular, 1);
    assert_memory_equal(counts.mesh, ((uint32_t[]){ 2, 1, 4, 2 }), sizeof counts.mesh);
    assert_int_equal(ditto_topology_default_replicas(topology), 8);
    ditto_topology_destroy(topology);
}

static ditto_pu pu_at(const ditto_topology *topology, uint32_t index)
{
    ditto_pu pu;
    assert_ok(ditto_topology_pu(topology, index, &pu));
    return pu;
}

static ditto_node node_at(const ditto_topology *topology, uint32_t index)
{
    ditto_node node;
    assert_ok(ditto_topology_node(topology, index, &node));
    return node;
}

static void pus_are_listed_in_the_order_of_the_mesh(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_SERVER);
    ditto_topology_counts counts;
    ditto_pu pu;
    (void)state;
    assert_ok(ditto_topology_count(t, &counts));
    assert_memory_equal(counts.mesh, ((uint32_t[]){ 2, 1, 64, 2 }), sizeof counts.mesh);
    assert_int_equal(pu_at(t, 0).number, 0);
    assert_int_equal(pu_at(t, 1).number, 128); /* the sibling */
    assert_int_equal(pu_at(t, 1).smt, 1);
    assert_int_equal(pu_at(t, 128).number, 64);
    assert_memory_equal(pu_at(t, 131).mesh, ((uint32_t[]){ 1, 0, 1, 1 }), 16);
    assert_int_equal(pu_at(t, 131).number, 64 + 1 + 128);
    assert_status(ditto_topology_pu(t, 256, &pu), DITTO_ERR_RANGE);
    ditto_topology_destroy(t);
}

static void a_part_of_a_machine_is_cut_out(void **state)
{
    ditto_topology *t = machine_part(machines[MACHINE_PACKAGES].text, "8-12,16,31");
    ditto_topology_options options = DITTO_TOPOLOGY_OPTIONS_INIT;
    ditto_topology_counts counts;
    (void)state;
    assert_ok(ditto_topology_count(t, &counts));
    assert_int_equal(counts.pus, 7);
    assert_int_equal(counts.machine_pus, 32);
    assert_int_equal(counts.packages, 3);
    assert_int_equal(counts.regular, 0);
    assert_memory_equal(counts.mesh, ((uint32_t[]){ 3, 1, 5, 1 }), sizeof counts.mesh);
    assert_int_equal(pu_at(t, 5).package, 2); /* the machine's number; its coordinate is 1 */
    assert_int_equal(pu_at(t, 5).mesh[0], 1);
    ditto_topology_destroy(t);
    options.synthetic = "pack:1 [numa] core:2 pu:1";
    static const char *const malformed[] = { "", "x", "1-", "2-1", "0,", ",0", "0 1", "8192", "99999999999", "0-8192" };
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        options.cpus = malformed[i];
        assert_status(ditto_topology_create(&options, &t), DITTO_ERR_INVALID);
    }
    options.cpus = "0-2";
    assert_status(ditto_topology_create(&options, &t), DITTO_ERR_RANGE);
    assert_message("PU 2");
}

static void sets_of_numbers_are_written_as_they_are_read(void **state)
{
    static const char *const lists[] = { "0", "0-3", "1,3,5", "0-1,63-64,8191", "4094-4097" };
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct dti_mask mask;
        char text[64];
        struct dti_text out = { text, sizeof text, 0 };
        assert_true(dti_mask_parse(lists[i], strlen(lists[i]), &mask));
        dti_mask_write(&mask, &out);
        assert_string_equal(text, lists[i]);
    }
}

static void a_node_without_memory_gets_it_from_the_nearest(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_MEMORYLESS);
    (void)state;
    assert_int_equal(node_at(t, 0).kind, DITTO_NODE_ORDINARY);
    assert_int_equal(node_at(t, 1).kind, DITTO_NODE_MEMORYLESS);
    assert_int_equal(node_at(t, 2).kind, DITTO_NODE_ORDINARY);
    assert_int_equal(ditto_topology_distance(t, 0, 2), 31);
    assert_int_equal(ditto_topology_distance(t, 1, 1), 10);
    assert_int_equal(ditto_topology_distance(t, 1, 3), 0); /* there is no such node */
    assert_int_equal(pu_at(t, 2).numa_node, 1);
    assert_int_equal(pu_at(t, 2).memory_node, 0); /* 0 and 2 are equally near: the lower number */
    assert_int_equal(pu_at(t, 3).memory_node, 2);
    ditto_topology_destroy(t);
}

static void nodes_without_pus_never_count(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_CPULESS);
    ditto_topology_counts counts;
    (void)state;
    assert_ok(ditto_topology_count(t, &counts));
    assert_int_equal(counts.numa_nodes, 1);
    assert_int_equal(counts.machine_nodes, 2);
    assert_int_equal(counts.packages, 2);
    assert_int_equal(node_at(t, 1).kind, DITTO_NODE_CPULESS);
    ditto_topology_destroy(t);
    t = machine_topology(MACHINE_HBM);
    assert_ok(ditto_topology_count(t, &counts));
    assert_int_equal(counts.numa_nodes, 8);
    assert_int_equal(counts.machine_nodes, 16);
    for (uint32_t i = 0; i < counts.pus; i++)
        assert_int_equal(pu_at(t, i).numa_node, i / 28 * 2); /* DRAM has the even numbers */
    ditto_topology_destroy(t);
}

/* The recording, with its node 0 declared to be HBM: then node 1 is where PUs belong. */
static void ordinary_memory_goes_before_hbm_whatever_its_number(void **state)
{
    static char text[1 << 15], changed[1 << 15];
    ditto_topology_options options = DITTO_TOPOLOGY_OPTIONS_INIT;
    ditto_topology *t;
    FILE *file = fopen("tests/replicas/machines/hbm.xml", "r");
    (void)state;
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    char *node = strstr(text, "<object type=\"NUMANode\" os_index=\"0\"");
    assert_non_null(node);
    snprintf(changed, sizeof changed, "%.*s<object type=\"NUMANode\" subtype=\"HBM\"%s", (int)(node - text), text,
             node + strlen("<object type=\"NUMANode\""));
    char *path = temporary_file(changed);
    options.xml_path = path;
    assert_ok(ditto_topology_create(&options, &t));
    assert_int_equal(pu_at(t, 0).numa_node, 1);
    assert_int_equal(node_at(t, 0).kind, DITTO_NODE_CPULESS);
    ditto_topology_destroy(t);
    remove(path);
    free(path);
}

static void caches_are_told_with_their_sharers(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_AMD);
    ditto_cache cache[DITTO_MAX_CACHES];
    ditto_topology_counts counts;
    uint32_t count;
    (void)state;
    assert_ok(ditto_topology_count(t, &counts));
    assert_int_equal(counts.llcs, 24);
    assert_ok(ditto_topology_caches(t, 17, cache, &count));
    assert_int_equal(count, 1);
    assert_int_equal(cache[0].level, 3);
    assert_int_equal(cache[0].pus, 16);
    assert_true(cache[0].bytes == (uint64_t)32 << 20);
    assert_int_equal(pu_at(t, 17).llc, 1);
    ditto_topology_destroy(t);
}

/* Two packages with two nodes each, and distances that say: from node 0, 1 and then 3 is nearest in the other package. */
static void nodes_follow_one_another_by_distance(void **state)
{
    static const uint32_t distance[4][4] = {
        { 10, 12, 40, 30 }, { 12, 10, 40, 20 }, { 40, 40, 10, 12 }, { 30, 20, 12, 10 }
    };
    struct dti_raw_pu raw[4] = { 0 };
    struct dti_pu pus[4];
    ditto_node nodes[4] = { 0 };
    ditto_topology t = { .pus = pus, .nodes = nodes, .distance = (uint32_t *)(uintptr_t)distance };
    (void)state;
    t.counts.machine_nodes = 4;
    for (uint32_t i = 0; i < 4; i++)
        raw[i] = (struct dti_raw_pu){ .pu = { .is = { .number = i, .package = i / 2, .numa_node = i, .core = i } },
                                      .node = i,
                                      .locality = i,
                                      .llc = i };
    assert_true(dti_mesh_order(&t, raw, 4));
    assert_int_equal(pus[0].is.number, 0);
    assert_int_equal(pus[1].is.number, 1);
    assert_int_equal(pus[2].is.number, 3);
    assert_int_equal(pus[3].is.number, 2);
    assert_memory_equal(pus[2].is.mesh, ((uint32_t[]){ 1, 0, 0, 0 }), 16);
}

/* -- limits -- */

static void limits_are_read_from_the_kernel_s_files(void **state)
{
    char root[] = "/tmp/ditto-limits-XXXXXX", command[64];
    ditto_limits limits;
    (void)state;
    assert_non_null(mkdtemp(root));
    put_file(root, "/proc/self/status", "Name:\tx\nMems_allowed:\t5\nMems_allowed_list:\t0,2\nother:\t1\n");
    put_file(root, "/proc/sys/kernel/numa_balancing", "2\n");
    put_file(root, "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    dti_limits_read(root, NULL, &limits);
    assert_string_equal(limits.memory_nodes, "0,2");
    assert_int_equal(limits.numa_balancing, 2);
    assert_int_equal(limits.huge_pages, DITTO_HUGE_PAGES_MADVISE);
    assert_int_not_equal(limits.affinity[0], 0);
    snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0);
    dti_limits_read("/nowhere", NULL, &limits);
    assert_string_equal(limits.memory_nodes, "");
    assert_int_equal(limits.numa_balancing, -1);
    assert_int_equal(limits.huge_pages, DITTO_HUGE_PAGES_UNKNOWN);
    assert_ok(ditto_limits_read(&limits));
    assert_status(ditto_limits_read(NULL), DITTO_ERR_INVALID);
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
        cmocka_unit_test(pus_are_listed_in_the_order_of_the_mesh),
        cmocka_unit_test(a_part_of_a_machine_is_cut_out),
        cmocka_unit_test(sets_of_numbers_are_written_as_they_are_read),
        cmocka_unit_test(a_node_without_memory_gets_it_from_the_nearest),
        cmocka_unit_test(nodes_without_pus_never_count),
        cmocka_unit_test(ordinary_memory_goes_before_hbm_whatever_its_number),
        cmocka_unit_test(caches_are_told_with_their_sharers),
        cmocka_unit_test(nodes_follow_one_another_by_distance),
        cmocka_unit_test(limits_are_read_from_the_kernel_s_files),
        cmocka_unit_test(malformed_machines_are_refused),
        cmocka_unit_test(an_empty_cpuset_is_refused),
        cmocka_unit_test(this_machine_is_cut_to_the_affinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
