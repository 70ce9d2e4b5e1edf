/* tests/numa/test_numa.c - where threads and pages really are, asked of the kernel without ditto: /proc/self/task and
 * move_pages(2). Needs at least two NUMA nodes (exit 77 without); guest.sh boots a machine that has them. */
#include "support.h"

#include <dirent.h>
#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

/* The node of the page at an address; a negative errno if it is not there. */
static int node_of_page(const void *address)
{
    void *page = (void *)((uintptr_t)address & ~(uintptr_t)4095);
    int node = -1;
    return move_pages(0, 1, &page, NULL, &node, 0) == 0 ? node : -1;
}

/* The node of a CPU, from sysfs. */
static int node_of_cpu(int cpu)
{
    char path[128];
    for (int node = 0; node < 64; node++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/node%d", cpu, node);
        if (access(path, F_OK) == 0)
            return node;
    }
    return -1;
}

/* Cpus_allowed_list of a thread, when it is one CPU; else -1. */
static int only_cpu_of_thread(int tid)
{
    char path[64], line[256], rest;
    int cpu = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "Cpus_allowed_list:", 18) == 0 && sscanf(line + 18, " %d%c", &cpu, &rest) == 2 &&
            rest != '\n')
            cpu = -1;
    if (file != NULL)
        fclose(file);
    return cpu;
}

struct look {
    struct report report;
    ditto_variable *mirrored, *local;
    ditto_iterator *iterator;
    int tid[DITTO_MAX_REPLICAS], arena[DITTO_MAX_REPLICAS], batch[DITTO_MAX_REPLICAS];
    int cpu[DITTO_MAX_REPLICAS], large[DITTO_MAX_REPLICAS];
};

static ditto_status look_around(ditto_replica *self, void *argument)
{
    struct look *l = argument;
    uint32_t id = ditto_replica_id(self);
    ditto_batch batch;
    void *small, *large;
    l->tid[id] = gettid();
    l->cpu[id] = only_cpu_of_thread(gettid());
    DITTO_TRY(ditto_alloc(self, 1000, 0, &small));
    DITTO_TRY(ditto_alloc(self, (size_t)8 << 20, 0, &large));
    memset(small, 1, 1000);
    memset(large, 1, (size_t)8 << 20);
    l->arena[id] = node_of_page(small);
    l->large[id] = node_of_page((char *)large + ((size_t)8 << 20) - 1);
    DITTO_TRY(ditto_next(self, l->iterator, &batch));
    EXPECT(&l->report, batch.rows > 0);
    l->batch[id] = node_of_page(batch.component[0].data);
    DITTO_TRY(ditto_free(self, small));
    return ditto_free(self, large);
}

static void prepare(ditto_strategy *s, struct look *l)
{
    static float rows[4096][16];
    ditto_tensor array = { .data = rows, .dtype = DITTO_F32, .rank = 2, .shape = { 4096, 16 } };
    ditto_tensor spec = { .dtype = DITTO_F32, .rank = 1, .shape = { 100000 } };
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_input_options input = DITTO_INPUT_OPTIONS_INIT;
    ditto_dataset *dataset;
    options.aggregation = DITTO_AGGREGATE_SUM;
    assert_ok(ditto_variable_create(s, &spec, &options, &l->mirrored));
    options.synchronization = DITTO_ON_READ;
    assert_ok(ditto_variable_create(s, &spec, &options, &l->local));
    assert_ok(ditto_dataset_from_arrays(&array, 1, &dataset));
    input.global_batch = 2048;
    assert_ok(ditto_strategy_iterate(s, dataset, &input, &l->iterator));
    ditto_dataset_destroy(dataset);
}

static void everything_of_a_replica_is_on_its_node(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 8; n *= 2)
        for (int policy = DITTO_SPREAD; policy <= DITTO_COMPACT; policy++) {
            struct look l = { 0 };
            ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
            options.policy = (ditto_policy)policy;
            ditto_strategy *s = make_strategy(n, &options);
            prepare(s, &l);
            run_all(s, look_around, &l, &l.report);
            printf(
                "  %u replicas, %s\n  replica  cpu  node of: cpu  arena  large block  mirrored  sync-on-read  batch\n",
                n, policy == DITTO_SPREAD ? "spread" : "compact");
            for (uint32_t i = 0; i < n; i++) {
                const void *mirrored, *local;
                ditto_replica_info info;
                assert_ok(ditto_variable_component(l.mirrored, i, &mirrored));
                assert_ok(ditto_variable_component(l.local, i, &local));
                assert_ok(ditto_strategy_replica_info(s, i, &info));
                int node = node_of_cpu(l.cpu[i]);
                printf("  %7u  %3d  %12d  %5d  %11d  %8d  %12d  %5d\n", i, l.cpu[i], node, l.arena[i], l.large[i],
                       node_of_page(mirrored), node_of_page(local), l.batch[i]);
                assert_true(l.cpu[i] >= 0); /* bound to one CPU */
                assert_int_equal(l.cpu[i], info.place.pu.number);
                assert_int_equal(node, info.place.pu.memory_node);
                assert_int_equal(l.arena[i], node);
                assert_int_equal(l.large[i], node);
                assert_int_equal(node_of_page(mirrored), node); /* the node's own copy */
                assert_int_equal(node_of_page(local), node);
                assert_int_equal(l.batch[i], node);
                assert_int_equal(info.memory_node, node); /* what ditto says is what is */
                assert_int_equal(info.pages_elsewhere, 0);
            }
            ditto_iterator_destroy(l.iterator);
            ditto_variable_destroy(l.mirrored);
            ditto_variable_destroy(l.local);
            assert_ok(ditto_strategy_destroy(s));
        }
}

static ditto_status add_one(ditto_replica *self, void *argument)
{
    float one[1000];
    for (int i = 0; i < 1000; i++)
        one[i] = 1.0f;
    for (int i = 0; i < 3; i++)
        DITTO_TRY(ditto_assign_add(self, argument, one));
    return DITTO_OK;
}

static void a_mirrored_variable_has_one_equal_copy_per_node(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_tensor spec = { .dtype = DITTO_F32, .rank = 1, .shape = { 1000 } };
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    struct report report = { 0 };
    ditto_variable *v;
    const void *component[4];
    (void)state;
    options.aggregation = DITTO_AGGREGATE_SUM;
    assert_ok(ditto_variable_create(s, &spec, &options, &v));
    run_all(s, add_one, v, &report);
    for (uint32_t i = 0; i < 4; i++)
        assert_ok(ditto_variable_component(v, i, &component[i]));
    assert_ptr_equal(component[0], component[1]);
    assert_ptr_equal(component[2], component[3]);
    assert_ptr_not_equal(component[0], component[2]);
    assert_memory_equal(component[0], component[2], 4000);
    assert_true(((const float *)component[2])[999] == 12);
    ditto_variable_destroy(v);
    assert_ok(ditto_strategy_destroy(s));
}

static void an_inherited_memory_policy_is_overridden(void **state)
{
    unsigned long mask = 2; /* as under numactl --membind=1 */
    struct look l = { 0 };
    (void)state;
    assert_int_equal(set_mempolicy(MPOL_BIND, &mask, 64), 0);
    ditto_strategy *s = make_strategy(2, NULL);
    prepare(s, &l);
    run_all(s, look_around, &l, &l.report);
    assert_int_equal(l.arena[0], node_of_cpu(l.cpu[0]));
    assert_int_equal(l.arena[1], node_of_cpu(l.cpu[1]));
    assert_int_equal(set_mempolicy(MPOL_DEFAULT, NULL, 0), 0);
    ditto_iterator_destroy(l.iterator);
    ditto_variable_destroy(l.mirrored);
    ditto_variable_destroy(l.local);
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_of_a_replica_is_on_its_node),
        cmocka_unit_test(a_mirrored_variable_has_one_equal_copy_per_node),
        cmocka_unit_test(an_inherited_memory_policy_is_overridden),
    };
    if (access("/sys/devices/system/node/node1", F_OK) != 0) {
        printf("this machine has one NUMA node: guest.sh boots one that has two\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
