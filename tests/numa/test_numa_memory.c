/* tests/numa/test_numa_memory.c - checks on which CPUs threads run, and on which nodes the pages of replicas,
 * queues, values and devices are. It runs on any machine, and prints what it cannot show on a machine with
 * one node. guest.sh boots machines of many kinds. The argument of the program is the condition under which
 * it runs. */
#include "numa/kernel_reports.h"

#include "input/distribute/iterator.h"
#include "replicas/team/team_state.h"

#include <dirent.h>
#include <sched.h>
#include <time.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_BYTES ((size_t)8 << 20)

/* Returns the CPU to which a thread is bound, or -1 if it may run on several. */
static int only_cpu_of_thread(int tid)
{
    char path[64], *end;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
    const char *list = value_of(path, "Cpus_allowed_list:");
    long cpu = strtol(list, &end, 10);
    return end > list && *end == '\n' ? (int)cpu : -1;
}

/* -- Replicas of one PU -- */

struct look {
    struct report report;
    ditto_variable *mirrored, *local;
    ditto_iterator *iterator;

    /* The CPU of each replica, and the nodes of its memory. */
    int cpu[DITTO_MAX_REPLICAS], arena[DITTO_MAX_REPLICAS], large[DITTO_MAX_REPLICAS];
    int batch[DITTO_MAX_REPLICAS], own_mapping[DITTO_MAX_REPLICAS];
};

/* Maps memory without ditto, so that only the memory policy of the thread decides about its node. Returns
 * this node, or -1 if the pages are on several nodes. */
static int node_of_own_mapping(void)
{
    char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int node = -1;
    if (memory == MAP_FAILED)
        return -1;
    madvise(memory, 1 << 20, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < 1 << 20; at += 4096) {
        memory[at] = 1;
        int here = node_of_page(memory + at);
        node = at == 0 || node == here ? here : -1;
    }
    munmap(memory, 1 << 20);
    return node;
}

static ditto_status look_around(ditto_replica *self, void *argument)
{
    struct look *l = argument;
    uint32_t id = ditto_replica_id(self);
    ditto_batch batch;
    void *small, *large;
    l->cpu[id] = only_cpu_of_thread(gettid());
    DITTO_TRY(ditto_alloc(self, 1000, 0, &small));
    DITTO_TRY(ditto_alloc(self, LARGE_BYTES, 0, &large));
    memset(small, 1, 1000);
    memset(large, 1, LARGE_BYTES);
    l->arena[id] = node_of_page(small);
    l->large[id] = node_of_page((char *)large + LARGE_BYTES - 1);
    l->own_mapping[id] = node_of_own_mapping();
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
    ditto_dataset *dataset;
    ditto_variable_options options = OPTIONS(variable, .aggregation = DITTO_AGGREGATE_SUM);
    assert_ok(ditto_variable_create(s, &spec, &options, &l->mirrored));
    options.synchronization = DITTO_ON_READ;
    assert_ok(ditto_variable_create(s, &spec, &options, &l->local));
    assert_ok(ditto_dataset_from_arrays(&array, 1, &dataset));
    assert_ok(ditto_strategy_iterate(s, dataset, &OPTIONS(input, .global_batch = 2048), &l->iterator));
    assert_ok(ditto_dataset_destroy(dataset));
}

static void check_replica(ditto_strategy *s, const struct look *l, uint32_t i)
{
    const void *mirrored, *local;
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    int node = memory_node_of_cpu(l->cpu[i]);
    assert_ok(component_of(l->mirrored, i, &mirrored));
    assert_ok(component_of(l->local, i, &local));
    assert_ok(ditto_strategy_replica_info(s, i, 0, &info));
    printf("  %7u  %3d  %3d  %12d  %5d  %11d  %8d  %12d  %5d  %4d  %s\n", i, l->cpu[i],
           node_of_cpu(l->cpu[i]), node, l->arena[i], l->large[i], node_of_page(mirrored),
           node_of_page(local), l->batch[i], l->own_mapping[i],
           info.binding == DITTO_BINDING_FIRST_TOUCH ? "first-touch" : "preferred");
    assert_true(l->cpu[i] >= 0); /* bound to one CPU */
    assert_int_equal(l->cpu[i], info.planned.pu.number);
    assert_int_equal(node_of_cpu(l->cpu[i]), info.planned.pu.numa_node);
    assert_int_equal(node, info.planned.pu.memory_node);
    assert_int_equal(l->arena[i], node);
    assert_int_equal(l->large[i], node);
    assert_int_equal(node_of_page(mirrored), node); /* the copy of this node */
    assert_int_equal(node_of_page(local), node);
    assert_int_equal(l->batch[i], node);
    assert_int_equal(info.memory_node, node); /* what ditto reports */
    assert_int_equal(info.remote_pages, 0);
    assert_int_equal(info.binding,
                     is_condition("no-mbind") ? DITTO_BINDING_FIRST_TOUCH : DITTO_BINDING_PREFERRED);
    /* Threads that ditto starts drop the memory policy that they inherit. The caller's thread keeps it. */
    if (i > 0)
        assert_int_equal(l->own_mapping[i], node);
}

static void everything_of_a_replica_is_on_its_node(void **state)
{
    for (uint32_t n = 1; n <= 8; n *= 2)
        for (int policy = DITTO_PLACEMENT_SPREAD; policy <= DITTO_PLACEMENT_COMPACT; policy++) {
            struct look *l = calloc(1, sizeof *l);
            ditto_placement_options placing = OPTIONS(placement, .num_replicas = n,
                                                      .policy = (ditto_placement_policy)policy);
            ditto_strategy *s = make_strategy(n, &OPTIONS(strategy, .placement_options = &placing));
            prepare(s, l);
            run_all(s, look_around, l, &l->report);
            printf("  %u replicas, %s\n  replica  cpu on node  memory from: arena  large block  mirrored  "
                   "sync-on-read  batch  own mapping\n",
                   n, policy == DITTO_PLACEMENT_SPREAD ? "spread" : "compact");
            for (uint32_t i = 0; i < n; i++)
                check_replica(s, l, i);
            assert_ok(ditto_iterator_destroy(l->iterator));
            assert_ok(ditto_variable_destroy(l->mirrored));
            assert_ok(ditto_variable_destroy(l->local));
            assert_ok(ditto_strategy_destroy(s));
            free(l);
        }
}

/* -- Queues, and the producers that fill them -- */

static ditto_status take_some(ditto_replica *self, void *argument)
{
    ditto_batch batch;
    for (int step = 0; step < 8; step++)
        DITTO_TRY(ditto_next(self, argument, &batch));
    return DITTO_OK;
}

/* Returns the list of CPUs on which the thread with this name may run, or "" if there is no such thread. */
static const char *cpus_of_thread(const char *name)
{
    static char list[256];
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    list[0] = '\0';
    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        char path[300];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        /* Both names end with a line feed. */
        if (strcmp(value_of(path, "Name:"), name) == 0)
            snprintf(list, sizeof list, "%s", value_of(path, "Cpus_allowed_list:"));
    }
    closedir(tasks);
    return list;
}

static bool is_replicas(const struct dti_team *team, int cpu)
{
    for (uint32_t r = 0; r < team->n; r++)
        if ((int)team->replica[r].pu.number == cpu)
            return true;
    return false;
}

/* Returns true if a producer that may run on the CPUs of `list` is where it belongs. If this process may use
 * CPUs without replicas, the producer may run only on those. If some of them are on the node `home`, whose
 * replicas the producer serves, the producer may run only on that node. */
static bool is_placed(const struct dti_team *team, const char *list, int home)
{
    int free_here = 0, free_anywhere = 0, here = 0, others = 0, shared = 0;
    char allowed[256];
    snprintf(allowed, sizeof allowed, "%s", value_of("/proc/self/status", "Cpus_allowed_list:"));
    for (int cpu = 0; cpu < 64; cpu++) {
        bool is_free = in_list(allowed, cpu) && !is_replicas(team, cpu);
        free_anywhere += is_free;
        free_here += is_free && node_of_cpu(cpu) == home;
        if (!in_list(list, cpu))
            continue;
        here += node_of_cpu(cpu) == home;
        others += node_of_cpu(cpu) != home;
        shared += is_replicas(team, cpu);
    }
    return list[0] != '\0' && (free_anywhere == 0 || shared == 0) &&
           (free_here == 0 || (here > 0 && others == 0));
}

/* Checks that the producer is where it belongs. A producer sets its name and its CPUs itself when its thread
 * begins. Therefore this waits, because a thread may begin after other producers have made all batches. */
static void check_producer(const ditto_iterator *it, uint32_t index)
{
    const struct dti_producer *p = &it->producer[index];
    int home = node_of_cpu(
        (int)it->team->replica[p->pipeline->first_replica + p->group->replica[0]].pu.number);
    time_t limit = time(NULL) + 60;
    char name[32];
    snprintf(name, sizeof name, "ditto-in%u\n", index);
    const char *list = cpus_of_thread(name);
    while (!is_placed(it->team, list, home) && time(NULL) < limit) {
        sleep_ms(1);
        list = cpus_of_thread(name);
    }
    printf("  producer %u, for replicas on node %d: CPUs %s", index, home, list);
    assert_true(is_placed(it->team, list, home));
}

static void queues_are_on_their_replicas_nodes(void **state)
{
    static float rows[4096][64];
    ditto_tensor array = { .data = rows, .dtype = DITTO_F32, .rank = 2, .shape = { 4096, 64 } };
    for (uint32_t n = 1; n <= 4; n *= 2)
        for (uint32_t pipelines = 1; pipelines <= n; pipelines += n > 1 ? n - 1 : 1) {
            ditto_strategy *s = make_strategy(n, NULL);
            ditto_dataset *d;
            ditto_iterator *it;
            assert_ok(ditto_dataset_from_arrays(&array, 1, &d));
            ditto_input_options options = OPTIONS(input, .global_batch = 64ull * n,
                                                  .num_pipelines = pipelines, .shard = DITTO_SHARD_OFF);
            assert_ok(ditto_strategy_iterate(s, d, &options, &it));
            assert_ok(ditto_strategy_run(s, take_some, it));
            printf("  %u replicas, %u pipelines: replica, its node, node of the slot, node of its payload\n",
                   n, pipelines);
            for (uint32_t r = 0; r < n; r++) {
                const struct dti_ring *ring = &it->consumer[r].ring;
                int home = memory_node_of_cpu((int)it->team->replica[r].pu.number);
                for (uint32_t i = 0; i < ring->slots; i++) {
                    const char *payload = ring->slot[i].payload;
                    printf("  %7u  %4d  %8d  %16d\n", r, home, node_of_page(&ring->slot[i]),
                           node_of_page(payload));
                    assert_int_equal(node_of_page(&ring->slot[i]), home);
                    assert_int_equal(node_of_page(payload), home);
                    assert_int_equal(node_of_page(payload + 64 * 64 * sizeof(float) - 1), home);
                }
            }
            for (uint32_t i = 0; i < it->producers; i++)
                check_producer(it, i);
            assert_ok(ditto_iterator_destroy(it));
            assert_ok(ditto_dataset_destroy(d));
            assert_ok(ditto_strategy_destroy(s));
        }
}

/* -- Errors of rows -- */

/* The replicas of each node have their own producers. The rows of replica 3 are slow, so that on several
 * nodes the producers of the first node usually reach row 12, which fails, while those of the last node are
 * still at row 3. */
enum { ERROR_REPLICAS = 4, BAD_ROW = 12 };

static ditto_status fail_early(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                               void *user)
{
    int64_t row = *(const int64_t *)in[0].data;
    *(int64_t *)out[0].data = row;
    if (row % ERROR_REPLICAS == ERROR_REPLICAS - 1)
        sleep_ms(20);
    return row == BAD_ROW ? DITTO_ERR_CORRUPT : DITTO_OK;
}

struct until_error {
    struct report report;
    ditto_iterator *iterator;
    int rows[ERROR_REPLICAS];
};

static ditto_status check_rows(ditto_replica *self, void *argument)
{
    struct until_error *u = argument;
    uint32_t id = ditto_replica_id(self);
    ditto_batch b;
    ditto_status status;
    /* Each replica has one row of each batch. */
    while ((status = ditto_next(self, u->iterator, &b)) == DITTO_OK) {
        EXPECT(&u->report, b.rows == 1);
        EXPECT(&u->report,
               *(const int64_t *)b.component[0].data == u->rows[id] * ERROR_REPLICAS + (int64_t)id);
        u->rows[id]++;
    }
    EXPECT(&u->report, status == DITTO_ERR_CORRUPT);
    return DITTO_OK;
}

static void exactly_the_rows_before_an_error_arrive_on_every_node(void **state)
{
    ditto_strategy *s = make_strategy(ERROR_REPLICAS, NULL);
    struct until_error u = { 0 };
    ditto_dataset *range, *d;
    assert_ok(ditto_dataset_from_range(0, 100, 1, &range));
    assert_ok(ditto_dataset_map(range, fail_early, NULL, NULL, &d));
    assert_ok(ditto_strategy_iterate(
        s, d, &OPTIONS(input, .global_batch = ERROR_REPLICAS, .num_producers = ERROR_REPLICAS), &u.iterator));
    run_all(s, check_rows, &u, &u.report);
    for (int r = 0; r < ERROR_REPLICAS; r++)
        assert_int_equal(u.rows[r], BAD_ROW / ERROR_REPLICAS);
    assert_ok(ditto_iterator_destroy(u.iterator));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_destroy(range));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- Components of values -- */

/* The components have 256 KiB. */
enum { VALUE_COUNT = 1 << 16 };

static ditto_status give_rows(uint32_t replica, uint32_t num_replicas, void *memory, ditto_tensor *component)
{
    *component = (ditto_tensor){ .data = memory, .dtype = DITTO_F32, .rank = 1, .shape = { VALUE_COUNT } };
    return DITTO_OK;
}

static ditto_status echo_rows(ditto_replica *self, void *unused)
{
    ditto_tensor t;
    DITTO_TRY(ditto_argument(self, NULL, &t));
    return ditto_return(self, NULL, &t);
}

static void expect_components_on_nodes(ditto_strategy *s, const ditto_value *value)
{
    for (uint32_t i = 0; i < ditto_strategy_num_replicas(s); i++) {
        ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
        ditto_tensor t;
        assert_ok(ditto_strategy_replica_info(s, i, 0, &info));
        assert_ok(ditto_value_component(value, i, &t));
        assert_int_equal(node_of_page(t.data), info.planned.pu.memory_node);
        assert_int_equal(node_of_page((char *)t.data + ditto_tensor_bytes(&t) - 1),
                         info.planned.pu.memory_node);
    }
}

static void components_of_values_are_on_their_replicas_nodes(void **state)
{
    ditto_strategy *s = make_strategy(8, NULL);
    float *memory = calloc(VALUE_COUNT, sizeof *memory);
    ditto_value *made, *returned, *reduced;
    /* In the second round, the memory comes from the buffer pools. */
    for (int i = 0; i < 2; i++) {
        assert_ok(ditto_strategy_value_from_function(s, give_rows, memory, &made));
        assert_ok(ditto_strategy_run_values(s, echo_rows, NULL, made, NULL, &returned));
        assert_ok(ditto_strategy_reduce_to(s, DITTO_SUM, (const ditto_value *[]){ made },
                                           &(ditto_destination){ .of = made }, 1, &reduced));
        expect_components_on_nodes(s, made);
        expect_components_on_nodes(s, returned);
        expect_components_on_nodes(s, reduced);
        assert_ok(ditto_value_destroy(made));
        assert_ok(ditto_value_destroy(returned));
        assert_ok(ditto_value_destroy(reduced));
    }
    free(memory);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- Replicas of many PUs -- */

struct wide {
    struct report report;
    int cpu[8][64]; /* of each device of each replica */
};

struct part {
    struct wide *all;
    uint32_t replica;
};

static ditto_status note_cpu(uint32_t device, void *argument)
{
    struct part *p = argument;
    p->all->cpu[p->replica][device] = only_cpu_of_thread(gettid());
    return DITTO_OK;
}

/* Stores the CPU of each device. Checks that the blocks of a split tensor are on their devices' nodes. */
static ditto_status use_devices(ditto_replica *self, void *argument)
{
    struct wide *w = argument;
    uint32_t devices = ditto_num_logical_devices(self), id = ditto_replica_id(self);
    struct part part = { w, id };
    static float rows[64 * 4096];
    ditto_tensor blocks[64],
        t = { .data = rows, .dtype = DITTO_F32, .rank = 1, .shape = { (size_t)devices * 4096 } };
    EXPECT(&w->report, devices <= 64);
    for (uint32_t d = 0; d < devices; d++)
        DITTO_TRY(ditto_on_logical_device(self, d, note_cpu, &part));
    DITTO_TRY(ditto_join(self));
    DITTO_TRY(ditto_split(self, &t, &devices, 1, blocks));
    for (uint32_t d = 0; d < devices; d++) {
        int expected = memory_node_of_cpu(w->cpu[id][d]), found = node_of_page(blocks[d].data);
        if (found != expected)
            return ditto_fail(self, 1, "the block of device %u, CPU %d, is on node %d, not %d", d,
                              w->cpu[id][d], found, expected);
        DITTO_TRY(ditto_free(self, blocks[d].data));
    }
    return DITTO_OK;
}

static void devices_are_on_their_pus_and_blocks_on_their_nodes(void **state)
{
    static const ditto_span spans[] = { DITTO_SPAN_NUMA_NODE, DITTO_SPAN_PACKAGE, DITTO_SPAN_MACHINE,
                                        DITTO_SPAN_LLC };
    for (size_t k = 0; k < sizeof spans / sizeof spans[0]; k++) {
        struct wide *w = calloc(1, sizeof *w);
        ditto_strategy *s;
        assert_ok(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .span = spans[k]), &s));
        run_all(s, use_devices, w, &w->report);
        const ditto_placement *p = properties_of_strategy(s).placement;
        for (uint32_t r = 0; r < ditto_placement_num_replicas(p); r++) {
            printf("  replica %u on CPUs", r);
            for (uint32_t d = 0; d < ditto_placement_num_devices(p, r); d++) {
                ditto_placed_device place;
                ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
                assert_ok(ditto_placement_get(p, r, d, &place));
                assert_ok(ditto_strategy_replica_info(s, r, d, &info));
                printf(" %d", w->cpu[r][d]);
                assert_int_equal(w->cpu[r][d], place.pu.number);
                assert_int_equal(w->cpu[r][d], info.cpu);
                if (spans[k] == DITTO_SPAN_NUMA_NODE)
                    assert_int_equal(node_of_cpu(w->cpu[r][d]), node_of_cpu(w->cpu[r][0]));
            }
            printf("\n");
        }
        assert_ok(ditto_strategy_destroy(s));
        free(w);
    }
}

struct leader {
    struct report report;
    int node; /* of the memory of its first PU */
};

/* Without helpers, a leader may run on all PUs of its replica, also on other nodes. Its memory must stay on
 * the node of its first PU. */
static ditto_status look_at_own_memory(ditto_replica *self, void *argument)
{
    struct leader *leader = argument;
    void *memory;
    for (int i = 0; i < 20; i++) {
        DITTO_TRY(ditto_alloc(self, LARGE_BYTES / 4, 0, &memory));
        memset(memory, 1, LARGE_BYTES / 4);
        int node = node_of_page((char *)memory + LARGE_BYTES / 8);
        EXPECT(&leader->report, node == leader->node);
        sched_yield();
    }
    return DITTO_OK;
}

static void without_helpers_memory_stays_on_the_node_of_the_first_pu(void **state)
{
    struct leader leader = { .node = -1 };
    ditto_strategy *s;
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    ditto_strategy_options options = OPTIONS(strategy, .span = DITTO_SPAN_MACHINE,
                                             .helpers = DITTO_SWITCH_OFF, .caller = DITTO_CALLER_WAITS);
    assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &s));
    assert_ok(ditto_strategy_replica_info(s, 0, 0, &info));
    leader.node = memory_node_of_cpu((int)info.planned.pu.number);
    run_all(s, look_at_own_memory, &leader, &leader.report);
    assert_ok(ditto_strategy_replica_info(s, 0, 0, &info));
    assert_int_equal(info.remote_pages, 0);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- What ditto reports about the process -- */

static void limits_of_the_process_are_reported(void **state)
{
    ditto_limits l = DITTO_LIMITS_INIT;
    cpu_set_t allowed_cpus;
    ditto_topology *here;
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    assert_ok(ditto_limits_read(&l));
    printf("  affinity %s, memory nodes %s, policy %d on %s, mbind %d, numa_balancing %d\n", l.affinity,
           l.memory_nodes, (int)l.memory_policy, l.policy_nodes, l.mbind_errno, l.numa_balancing);
    assert_int_equal(l.mbind_errno != 0, is_condition("no-mbind"));
    ditto_numa_policy expected = is_condition("interleave") ? DITTO_NUMA_POLICY_INTERLEAVE
                                 : is_condition("bind-1")   ? DITTO_NUMA_POLICY_BIND
                                 : is_condition("no-mbind") ? DITTO_NUMA_POLICY_UNKNOWN
                                                            : DITTO_NUMA_POLICY_DEFAULT;
    assert_int_equal(l.memory_policy, expected);
    if (is_condition("bind-1"))
        assert_string_equal(l.policy_nodes, "1");
    for (int node = 0; node < 64; node++)
        assert_int_equal(in_list(l.memory_nodes, node),
                         in_list(value_of("/proc/self/status", "Mems_allowed_list:"), node));
    assert_ok(ditto_topology_create(NULL, &here));
    assert_ok(ditto_topology_count(here, &counts));
    assert_int_equal(sched_getaffinity(0, sizeof allowed_cpus, &allowed_cpus), 0);
    assert_int_equal(counts.pus, CPU_COUNT(&allowed_cpus));
    for (uint32_t i = 0; i < counts.machine_nodes; i++) {
        ditto_node node;
        assert_ok(ditto_topology_node(here, i, &node));
        bool has_memory = in_list(value_of("/sys/devices/system/node/has_memory", ""), (int)node.number);
        bool has_cpus = in_list(value_of("/sys/devices/system/node/has_cpu", ""), (int)node.number);
        assert_int_equal(node.kind, !has_cpus    ? DITTO_NODE_CPULESS
                                    : has_memory ? DITTO_NODE_ORDINARY
                                                 : DITTO_NODE_MEMORYLESS);
    }
    assert_ok(ditto_topology_destroy(here));
}

int main(int count, char **word)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_of_a_replica_is_on_its_node),
        cmocka_unit_test(queues_are_on_their_replicas_nodes),
        cmocka_unit_test(exactly_the_rows_before_an_error_arrive_on_every_node),
        cmocka_unit_test(components_of_values_are_on_their_replicas_nodes),
        cmocka_unit_test(devices_are_on_their_pus_and_blocks_on_their_nodes),
        cmocka_unit_test(without_helpers_memory_stays_on_the_node_of_the_first_pu),
        cmocka_unit_test(limits_of_the_process_are_reported),
    };
    read_condition(count, word);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
