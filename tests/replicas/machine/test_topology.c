/* tests/replicas/machine/test_topology.c - the claims of include/ditto/topology.h and include/ditto/limits.h,
 * mostly on the machines of machines.h. */
#include "replicas/machine/machines.h"

#include "replicas/machine/affinity.h"
#include "replicas/machine/limits.h"
#include "replicas/machine/topology.h"

#include <sched.h>
#include <unistd.h>

static ditto_topology_counts counts_of(const ditto_topology *topology)
{
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    assert_ok(ditto_topology_count(topology, &counts));
    return counts;
}

static void a_machine_is_counted(void **state)
{
    ditto_topology *topology = machine_part("pack:2 [numa] core:4 pu:2", NULL);
    ditto_topology_counts counts = counts_of(topology);
    assert_int_equal(counts.packages, 2);
    assert_int_equal(counts.numa_nodes, 2);
    assert_int_equal(counts.cores, 8);
    assert_int_equal(counts.pus, 16);
    assert_int_equal(counts.llcs, 2);
    assert_int_equal(counts.regular, 1);
    assert_memory_equal(counts.mesh, ((uint32_t[]){ 2, 1, 4, 2 }), sizeof counts.mesh);
    assert_int_equal(counts.default_num_replicas, 8);
    assert_ok(ditto_topology_destroy(topology));
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
    ditto_pu pu;
    ditto_topology_counts counts = counts_of(t);
    assert_memory_equal(counts.mesh, ((uint32_t[]){ 2, 1, 64, 2 }), sizeof counts.mesh);
    assert_int_equal(pu_at(t, 0).number, 0);
    assert_int_equal(pu_at(t, 1).number, 128); /* the sibling of PU 0 */
    assert_int_equal(pu_at(t, 1).smt, 1);
    assert_int_equal(pu_at(t, 128).number, 64);
    assert_memory_equal(pu_at(t, 131).mesh, ((uint32_t[]){ 1, 0, 1, 1 }), 16);
    assert_int_equal(pu_at(t, 131).number, 64 + 1 + 128);
    assert_status(ditto_topology_pu(t, 256, &pu), DITTO_ERR_RANGE);
    assert_ok(ditto_topology_destroy(t));
}

static void a_topology_may_be_a_part_of_a_machine(void **state)
{
    ditto_topology *t = machine_part(machines[MACHINE_PACKAGES].text, "8-12,16,31");
    ditto_topology_counts counts = counts_of(t);
    assert_int_equal(counts.pus, 7);
    assert_int_equal(counts.machine_pus, 32);
    assert_int_equal(counts.packages, 3);
    assert_int_equal(counts.regular, 0);
    assert_memory_equal(counts.mesh, ((uint32_t[]){ 3, 1, 5, 1 }), sizeof counts.mesh);
    assert_int_equal(pu_at(t, 5).package, 2); /* its number on the whole machine */
    assert_int_equal(pu_at(t, 5).mesh[0], 1);
    assert_ok(ditto_topology_destroy(t));
    ditto_topology_options options = OPTIONS(topology, .synthetic = "pack:1 [numa] core:2 pu:1");
    static const char *const malformed[] = { "",   "x",   "1-",   "2-1",         "0,",
                                             ",0", "0 1", "8192", "99999999999", "0-8192" };
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
    assert_int_equal(node_at(t, 0).kind, DITTO_NODE_ORDINARY);
    assert_int_equal(node_at(t, 1).kind, DITTO_NODE_MEMORYLESS);
    assert_int_equal(node_at(t, 2).kind, DITTO_NODE_ORDINARY);
    assert_int_equal(t->distance[2], 31);
    assert_int_equal(t->distance[3 + 1], 10);
    assert_int_equal(pu_at(t, 2).numa_node, 1);
    assert_int_equal(pu_at(t, 2).memory_node, 2); /* its distance is 21, that of node 0 is 31 */
    assert_int_equal(pu_at(t, 3).memory_node, 2);
    assert_ok(ditto_topology_destroy(t));
}

static void nodes_without_pus_are_not_counted(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_CPULESS);
    ditto_topology_counts counts = counts_of(t);
    assert_int_equal(counts.numa_nodes, 1);
    assert_int_equal(counts.machine_nodes, 2);
    assert_int_equal(counts.packages, 2);
    assert_int_equal(node_at(t, 1).kind, DITTO_NODE_CPULESS);
    assert_ok(ditto_topology_destroy(t));
    t = machine_topology(MACHINE_HBM);
    counts = counts_of(t);
    assert_int_equal(counts.numa_nodes, 8);
    assert_int_equal(counts.machine_nodes, 16);
    for (uint32_t i = 0; i < counts.pus; i++)
        assert_int_equal(pu_at(t, i).numa_node, i / 28 * 2); /* DRAM nodes have even numbers */
    assert_ok(ditto_topology_destroy(t));
}

static void caches_are_read_with_the_number_of_their_pus(void **state)
{
    ditto_topology *t = machine_topology(MACHINE_AMD);
    ditto_topology_counts counts = counts_of(t);
    assert_int_equal(counts.llcs, 24);
    const struct dti_cache *cache = t->pus[17].cache;
    assert_int_equal(t->pus[17].caches, 1);
    assert_int_equal(cache[0].level, 3);
    assert_int_equal(cache[0].num_pus, 16);
    assert_true(cache[0].bytes == (uint64_t)32 << 20);
    assert_int_equal(pu_at(t, 17).llc, 1);
    assert_ok(ditto_topology_destroy(t));
}

/* There are two packages with two nodes each. Node 3 of the other package is the nearest to node 0. Node 1
 * still follows node 0, because the nodes of a package stay together. Then comes node 3, which is nearer to
 * node 1 than node 2 is. */
static void nodes_are_ordered_by_distance_within_packages(void **state)
{
    static const uint32_t distance[4][4] = {
        { 10, 12, 40, 11 }, { 12, 10, 40, 20 }, { 40, 40, 10, 12 }, { 11, 20, 12, 10 }
    };
    struct dti_raw_pu raw[4] = { 0 };
    struct dti_pu pus[4];
    ditto_node nodes[4] = { 0 };
    ditto_topology t = { .pus = pus, .nodes = nodes, .apart = (uint32_t *)(uintptr_t)distance };
    t.counts.machine_nodes = 4;
    for (uint32_t i = 0; i < 4; i++)
        raw[i] = (struct dti_raw_pu){
            .pu = { .is = { .number = i, .package = i / 2, .numa_node = i, .core = i } },
            .node = i,
            .locality = i,
            .llc = i
        };
    assert_true(dti_mesh_order(&t, raw, 4));
    assert_int_equal(pus[0].is.number, 0);
    assert_int_equal(pus[1].is.number, 1);
    assert_int_equal(pus[2].is.number, 3);
    assert_int_equal(pus[3].is.number, 2);
    assert_memory_equal(pus[2].is.mesh, ((uint32_t[]){ 1, 0, 0, 0 }), 16);
}

/* Opens a copy of a recording in which one piece of text is replaced. */
static ditto_topology *changed_recording(const char *name, const char *from, const char *to)
{
    static char text[1 << 15], changed[1 << 15];
    ditto_topology *t;
    char path[128];
    snprintf(path, sizeof path, "tests/replicas/machine/machines/%s", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    char *made = temporary_file(changed);
    assert_ok(ditto_topology_create(&OPTIONS(topology, .xml_path = made), &t));
    remove(made);
    free(made);
    return t;
}

/* In this copy of the recording node 0 is HBM, so the PUs belong to node 1. */
static void ordinary_memory_goes_before_hbm_of_a_lower_number(void **state)
{
    ditto_topology *t = changed_recording("hbm.xml", "<object type=\"NUMANode\" os_index=\"0\"",
                                          "<object type=\"NUMANode\" subtype=\"HBM\" os_index=\"0\"");
    assert_int_equal(pu_at(t, 0).numa_node, 1);
    assert_int_equal(node_at(t, 0).kind, DITTO_NODE_CPULESS);
    assert_ok(ditto_topology_destroy(t));
}

/* Node 1 has no memory. The copy of the recording has no distances. Of nodes 0 and 2, node 2 is in the
 * package of node 1. */
static void without_distances_the_nearest_node_is_in_the_same_package(void **state)
{
    ditto_topology *t = changed_recording("memoryless.xml", "NUMALatency", "NoSuchName");
    assert_int_equal(t->distance[2], 0);
    assert_int_equal(pu_at(t, 2).numa_node, 1);
    assert_int_equal(pu_at(t, 2).memory_node, 2);
    assert_ok(ditto_topology_destroy(t));
}

static void pus_that_a_recording_does_not_allow_are_left_out(void **state)
{
    ditto_topology *t = changed_recording("memoryless.xml", "allowed_cpuset=\"0x0000000f\"",
                                          "allowed_cpuset=\"0x00000007\"");
    ditto_topology_counts counts = counts_of(t);
    assert_int_equal(counts.pus, 3);
    assert_int_equal(counts.cpuset_pus, 3);
    assert_int_equal(counts.affinity_pus, 3);
    assert_int_equal(counts.machine_pus, 4);
    assert_ok(ditto_topology_destroy(t));
}

static void caches_of_any_level_are_distinguished_and_never_cross_packages(void **state)
{
    /* This machine has no caches. Each node has two packages, which share no last-level cache. */
    ditto_topology *t = machine_part("numa:2 pack:2 core:2 pu:1", NULL);
    ditto_topology_counts counts = counts_of(t);
    assert_int_equal(counts.packages, 4);
    assert_int_equal(counts.llcs, 4);
    assert_ok(ditto_topology_destroy(t));
    /* Package 0 loses its L3, so the L2 caches of its two cores are last-level caches. hwloc numbers the
     * caches of each level from 0, so one of these and the L3 of package 1 both have index 0. */
    t = changed_recording(
        "cpuless.xml",
        "<object type=\"L3Cache\" os_index=\"0\" cpuset=\"0x00000003\" complete_cpuset=\"0x00000003\" "
        "nodeset=\"0x00000001\" complete_nodeset=\"0x00000001\" gp_index=\"8\" cache_size=\"16777216\" "
        "depth=\"3\" cache_linesize=\"64\" cache_associativity=\"16\" cache_type=\"0\">",
        "<object type=\"Group\" cpuset=\"0x00000003\" complete_cpuset=\"0x00000003\" "
        "nodeset=\"0x00000001\" complete_nodeset=\"0x00000001\" gp_index=\"8\" kind=\"0\" subkind=\"0\">");
    counts = counts_of(t);
    assert_int_equal(counts.llcs, 3);
    assert_ok(ditto_topology_destroy(t));
}

static void a_core_in_two_nodes_is_one_core(void **state)
{
    ditto_topology *t = machine_part("pack:1 core:2 numa:2 pu:1", NULL);
    ditto_topology_counts counts = counts_of(t);
    assert_int_equal(counts.cores, 2);
    assert_int_equal(counts.pus, 4);
    assert_int_equal(counts.numa_nodes, 4);
    assert_ok(ditto_topology_destroy(t));
}

static int create_with_a_synthetic_environment(void *unused)
{
    ditto_topology *t = NULL;
    ditto_strategy *s = NULL;
    setenv("HWLOC_SYNTHETIC", "pack:2 [numa] core:1 pu:1", 1);
    REQUIRE(ditto_topology_create(NULL, &t) == DITTO_ERR_INVALID);
    REQUIRE(strstr(ditto_last_error()->message, "HWLOC_SYNTHETIC") != NULL);
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, NULL, &s) == DITTO_ERR_INVALID);
    return 0;
}

static void a_synthetic_machine_from_the_environment_is_refused(void **state)
{
    assert_int_equal(in_child(create_with_a_synthetic_environment, NULL, 60), 0);
}

static void lists_that_do_not_fit_end_in_dots(void **state)
{
    struct dti_mask mask;
    char text[32];
    struct dti_text out = { text, sizeof text, 0 };
    dti_mask_clear(&mask);
    for (uint32_t i = 100; i < 140; i += 2)
        dti_mask_add(&mask, i);
    dti_mask_write(&mask, &out);
    dti_number_list_fit(&out);
    assert_string_equal(text, "100,102,104,106,108,110,112,...");
    out = (struct dti_text){ text, sizeof text, 0 };
    dti_mask_clear(&mask);
    dti_mask_add(&mask, 7);
    dti_mask_write(&mask, &out);
    dti_number_list_fit(&out);
    assert_string_equal(text, "7");
}

/* -- limits -- */

static void limits_are_read_from_files_of_the_kernel(void **state)
{
    char root[SCRATCH_NAME], command[SCRATCH_NAME + 20];
    ditto_limits limits = DITTO_LIMITS_INIT;
    assert_non_null(mkdtemp(scratch_name(root, "limits")));
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
    ditto_topology *topology;
    char *rubbish = temporary_file("<?xml version=\"1.0\"?><topology><object type=\"Mach");
    ditto_topology_options options = OPTIONS(topology, .synthetic = "pack:zwei");
    assert_status(ditto_topology_create(&options, &topology), DITTO_ERR_INVALID);
    options.synthetic = "";
    assert_status(ditto_topology_create(&options, &topology), DITTO_ERR_INVALID);
    options.synthetic = NULL;
    options.xml_path = rubbish;
    assert_status(ditto_topology_create(&options, &topology), DITTO_ERR_CORRUPT);
    assert_message("is not an hwloc topology");
    forget_file(rubbish);
    rubbish = temporary_file("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                             "<!DOCTYPE topology SYSTEM \"hwloc9.dtd\">\n<topology version=\"9.0\">\n"
                             "<object type=\"Machine\"/>\n</topology>\n");
    options.xml_path = rubbish;
    assert_status(ditto_topology_create(&options, &topology), DITTO_ERR_CORRUPT);
    assert_message("is a topology of hwloc 9, and this library reads with hwloc ");
    assert_message("lstopo --export-xml-flags v");
    options.xml_path = "/nowhere/machine.xml";
    assert_status(ditto_topology_create(&options, &topology), DITTO_ERR_NOT_FOUND);
    options.synthetic = "pu:1";
    assert_status(ditto_topology_create(&options, &topology), DITTO_ERR_INVALID);
    forget_file(rubbish);
}

static void an_empty_cpuset_is_refused(void **state)
{
    ditto_topology_options here = DITTO_TOPOLOGY_OPTIONS_INIT;
    ditto_topology *topology;
    struct dti_mask none;
    dti_mask_clear(&none);
    assert_status(dti_topology_read(&here, &none, &topology), DITTO_ERR_RANGE);
    assert_message("no PU is left");
}

static void the_topology_of_this_machine_is_limited_to_the_affinity(void **state)
{
    struct dti_mask before, one;
    ditto_topology *topology;
    uint32_t pu = 0;
    assert_ok(dti_affinity_get(&before));
    while (!dti_mask_has(&before, pu))
        pu++;
    dti_mask_clear(&one);
    dti_mask_add(&one, pu);
    assert_ok(dti_pin_to(&one));
    assert_ok(ditto_topology_create(NULL, &topology));
    dti_affinity_restore(&before);
    ditto_topology_counts counts = counts_of(topology);
    assert_int_equal(counts.pus, 1);
    assert_int_equal(counts.affinity_pus, 1);
    assert_int_equal(pu_at(topology, 0).number, pu);
    assert_ok(ditto_topology_destroy(topology));
}

/* Binds the thread as OpenMP does it, and describes a strategy. */
static int describe_bound_strategy(void *unused)
{
    static const char *const variables[] = { "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                                             "KMP_AFFINITY" };
    static const struct {
        const char *set[3], *said;
    } cases[] = {
        { { NULL }, "taskset, numactl, a launcher or the program has set it" },
        { { "OMP_PROC_BIND=true" }, "OMP_PROC_BIND lets OpenMP" },
        { { "OMP_PROC_BIND=close", "OMP_PLACES=cores" }, "OMP_PROC_BIND lets OpenMP" },
        { { "OMP_PLACES=cores" }, "OMP_PLACES lets OpenMP" },
        { { "GOMP_CPU_AFFINITY=0-3" }, "GOMP_CPU_AFFINITY lets OpenMP" },
        { { "GOMP_CPU_AFFINITY=0-3", "OMP_PROC_BIND=FALSE" }, "taskset" },
        { { "OMP_PROC_BIND=" }, "taskset" },
        { { "KMP_AFFINITY=granularity=fine,compact,1,0", "OMP_PROC_BIND=false" },
          "KMP_AFFINITY lets OpenMP" },
        { { "KMP_AFFINITY=verbose,None", "OMP_PROC_BIND=spread" }, "OMP_PROC_BIND lets OpenMP" },
        { { "KMP_AFFINITY=disabled" }, "taskset" },
    };
    char text[4096], begin[100];
    cpu_set_t one;
    ditto_topology *topology;
    ditto_topology_counts before = DITTO_TOPOLOGY_COUNTS_INIT;
    REQUIRE(ditto_topology_create(NULL, &topology) == DITTO_OK);
    REQUIRE(ditto_topology_count(topology, &before) == DITTO_OK);
    CPU_ZERO(&one);
    CPU_SET(pu_at(topology, before.pus - 1).number, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    snprintf(begin, sizeof begin, "leaves out %u of the cpuset's %u PUs: ", before.cpuset_pus - 1,
             before.cpuset_pus);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ditto_strategy *s;
        for (size_t k = 0; k < sizeof variables / sizeof variables[0]; k++)
            unsetenv(variables[k]);
        for (size_t k = 0; cases[i].set[k] != NULL; k++)
            REQUIRE(putenv((char *)(uintptr_t)cases[i].set[k]) == 0);
        REQUIRE(ditto_strategy_create(DITTO_MIRRORED, NULL, &s) == DITTO_OK);
        REQUIRE(ditto_strategy_describe(s, text, sizeof text, NULL) == DITTO_OK);
        const char *line = strstr(text, begin);
        REQUIRE(before.cpuset_pus == 1 ? line == NULL
                                       : line != NULL && strncmp(line + strlen(begin), cases[i].said,
                                                                 strlen(cases[i].said)) == 0);
        REQUIRE(ditto_strategy_destroy(s) == DITTO_OK);
    }
    return ditto_topology_destroy(topology) != DITTO_OK;
}

static void a_description_says_what_the_affinity_leaves_out_and_why(void **state)
{
    assert_int_equal(in_child(describe_bound_strategy, NULL, 120), 0);
}

enum { ONE_PU = 77 };

/* hwloc takes this machine for one whose second PU is on a faster kind of cores. */
static int use_two_kinds(void *unused)
{
    struct dti_mask allowed;
    char path[SCRATCH_NAME], pu[2][16], text[4096], expected[200];
    const char *const kinds[] = { pu[0], pu[1], NULL };
    uint32_t number[2], found = 0;
    ditto_strategy *s;
    REQUIRE(dti_affinity_get(&allowed) == DITTO_OK);
    for (uint32_t i = 0; i < DTI_MAX_PUS && found < 2; i++)
        if (dti_mask_has(&allowed, i)) {
            snprintf(pu[found], sizeof pu[found], "%u", i);
            number[found++] = i;
        }
    if (found < 2)
        return ONE_PU;
    cpu_set_t two;
    CPU_ZERO(&two);
    CPU_SET(number[0], &two);
    CPU_SET(number[1], &two);
    REQUIRE(sched_setaffinity(0, sizeof two, &two) == 0);
    write_kinds(path, NULL, kinds, true);
    setenv("HWLOC_XMLFILE", path, 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    for (uint32_t replicas = 1; replicas <= 2; replicas++) {
        ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
        snprintf(expected, sizeof expected, "the cores are of 2 kinds, the fastest first: PUs %u; %u%s\n",
                 number[1], number[0],
                 replicas == 2
                     ? ". Replicas are on 2 of them, and wait for the slowest; fastest_kinds leaves "
                       "slow ones out"
                     : "");
        REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = replicas), &s) ==
                DITTO_OK);
        REQUIRE(ditto_strategy_replica_info(s, 0, 0, &info) == DITTO_OK);
        REQUIRE(info.planned.pu.number == number[1] && info.cpu == (int32_t)number[1]);
        REQUIRE(ditto_strategy_describe(s, text, sizeof text, NULL) == DITTO_OK);
        REQUIRE(strstr(text, expected) != NULL);
        REQUIRE(ditto_strategy_destroy(s) == DITTO_OK);
    }
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .fastest_kinds = 1), &s) == DITTO_OK);
    REQUIRE(ditto_strategy_num_replicas(s) == 1);
    REQUIRE(ditto_strategy_describe(s, text, sizeof text, NULL) == DITTO_OK);
    REQUIRE(strstr(text, "kinds") == NULL);
    REQUIRE(ditto_strategy_destroy(s) == DITTO_OK);
    return remove(path);
}

static void a_strategy_uses_fast_kinds_first_and_describes_them(void **state)
{
    int code = in_child(use_two_kinds, NULL, 60);
    if (code == ONE_PU)
        skip();
    assert_int_equal(code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_is_counted),
        cmocka_unit_test(pus_are_listed_in_the_order_of_the_mesh),
        cmocka_unit_test(a_topology_may_be_a_part_of_a_machine),
        cmocka_unit_test(sets_of_numbers_are_written_as_they_are_read),
        cmocka_unit_test(a_node_without_memory_gets_it_from_the_nearest),
        cmocka_unit_test(nodes_without_pus_are_not_counted),
        cmocka_unit_test(ordinary_memory_goes_before_hbm_of_a_lower_number),
        cmocka_unit_test(caches_are_read_with_the_number_of_their_pus),
        cmocka_unit_test(nodes_are_ordered_by_distance_within_packages),
        cmocka_unit_test(without_distances_the_nearest_node_is_in_the_same_package),
        cmocka_unit_test(pus_that_a_recording_does_not_allow_are_left_out),
        cmocka_unit_test(caches_of_any_level_are_distinguished_and_never_cross_packages),
        cmocka_unit_test(a_core_in_two_nodes_is_one_core),
        cmocka_unit_test(a_synthetic_machine_from_the_environment_is_refused),
        cmocka_unit_test(lists_that_do_not_fit_end_in_dots),
        cmocka_unit_test(limits_are_read_from_files_of_the_kernel),
        cmocka_unit_test(malformed_machines_are_refused),
        cmocka_unit_test(an_empty_cpuset_is_refused),
        cmocka_unit_test(the_topology_of_this_machine_is_limited_to_the_affinity),
        cmocka_unit_test(a_strategy_uses_fast_kinds_first_and_describes_them),
        cmocka_unit_test(a_description_says_what_the_affinity_leaves_out_and_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
