/* tools/survey.c - collects data about the machine and the process, and the warnings about them. */
#include "base/text/environment.h"
#include "survey.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check(ditto_status status)
{
    if (status == DITTO_OK)
        return;
    fprintf(stderr, "ditto-info: %s: %s\n", ditto_status_name(status), ditto_last_error()->message);
    exit(1);
}

static const char *name_of(const char *const *names, int count, int value)
{
    return value >= 0 && value < count ? names[value] : "unknown";
}

const char *binding_name(ditto_binding binding)
{
    static const char *const names[] = { "unknown", "bound", "preferred", "first-touch" };
    return name_of(names, 4, (int)binding);
}

const char *node_kind_name(ditto_node_kind kind)
{
    static const char *const names[] = { "ordinary", "memory-less", "CPU-less" };
    return name_of(names, 3, (int)kind);
}

const char *policy_name(ditto_numa_policy policy)
{
    static const char *const names[] = { "unknown",    "default", "preferred", "bind",
                                         "interleave", "local",   "other" };
    return name_of(names, 7, (int)policy);
}

const char *huge_pages_name(ditto_huge_pages pages)
{
    static const char *const names[] = { "unknown", "never", "madvise", "always" };
    return name_of(names, 4, (int)pages);
}

__attribute__((format(printf, 3, 4))) static void warn(struct survey *s, const char *remedy,
                                                       const char *format, ...)
{
    struct warning *w = &s->warning[s->warnings++];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(w->what, sizeof w->what, format, arguments);
    va_end(arguments);
    snprintf(w->remedy, sizeof w->remedy, "%s", remedy);
}

/* -- the PUs that the process may use -- */

static int compare_numbers(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

size_t name_numbers(uint32_t *number, uint32_t count, char *text, size_t size)
{
    size_t used = 0;
    qsort(number, count, sizeof *number, compare_numbers);
    for (uint32_t i = 0; i < count && used < size - 31;) {
        uint32_t first = i++;
        while (i < count && number[i] == number[i - 1] + 1)
            i++;
        used += (size_t)snprintf(text + used, size - used, i - first > 1 ? "%s%u-%u" : "%s%u",
                                 used > 0 ? "," : "", number[first], number[i - 1]);
        if (i < count && used >= size - 31)
            used += (size_t)snprintf(text + used, size - used, ",...");
    }
    return used;
}

uint32_t name_kinds(const struct survey *s, char *text, size_t size)
{
    static uint32_t number[MOST_PUS];
    uint32_t kinds = 0;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t kind = s->counts.core_kinds; kind-- > 0;) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < s->counts.pus; i++) {
            ditto_pu pu;
            check(ditto_topology_pu(s->topology, i, &pu));
            if (pu.kind == kind)
                number[count++] = pu.number;
        }
        if (count == 0)
            continue;
        if (kinds++ > 0 && used < size - 34)
            used += (size_t)snprintf(text + used, size - used, "; ");
        if (used < size - 32)
            used += name_numbers(number, count, text + used, size - used);
    }
    return kinds;
}

/* Returns the number of kinds of cores on which replicas are. */
static uint32_t kinds_of_replicas(const struct survey *s)
{
    uint32_t kinds = 0;
    for (uint32_t kind = 0; kind < s->counts.core_kinds; kind++) {
        bool found = false;
        for (uint32_t i = 0; i < s->counts.pus; i++) {
            ditto_pu pu;
            check(ditto_topology_pu(s->topology, i, &pu));
            found |= pu.kind == kind && s->first[pu.number + 1] > s->first[pu.number];
        }
        kinds += found;
    }
    return kinds;
}

static void warn_of_cuts(struct survey *s)
{
    const ditto_topology_counts *c = &s->counts;
    if (c->cpuset_pus < c->machine_pus)
        warn(s,
             "widen the cpuset (docker --cpuset-cpus, systemd AllowedCPUs=, the batch system's allocation), "
             "if ditto shall have them",
             "%u of the machine's %u PUs are offline or outside the process's cpuset",
             c->machine_pus - c->cpuset_pus, c->machine_pus);
    if (c->part_is_shared)
        warn(s, "start at most one process for each PU, or one for all of them",
             "%u processes share %u PUs: waiting threads yield", c->num_parts, c->divided_pus);
    const char *variable = dti_openmp_binding();
    if (c->affinity_pus < c->cpuset_pus)
        warn(s,
             "widen the affinity (taskset, numactl, mpirun --bind-to none, srun --cpu-bind=none), if ditto "
             "shall have them",
             "the thread's affinity leaves out %u of the cpuset's %u PUs", c->cpuset_pus - c->affinity_pus,
             c->cpuset_pus);
    if (variable != NULL && s->live)
        warn(s, "unset it for programs that use ditto",
             "%s lets OpenMP bind the thread of main: a strategy then takes only the PUs of that thread",
             variable);
    if (!c->regular)
        warn(s,
             "nothing, if it is as you expect: replicas of several PUs take whole boxes first, then the "
             "remaining PUs",
             "the mesh %u x %u x %u x %u is irregular: nodes or cores differ, or a cpuset cuts into them",
             c->mesh[0], c->mesh[1], c->mesh[2], c->mesh[3]);
    char list[160];
    uint32_t kinds = name_kinds(s, list, sizeof list);
    if (kinds > 1)
        warn(s,
             kinds_of_replicas(s) > 1
                 ? "leave slow kinds out (--kinds 1, fastest_kinds of a strategy), unless their replicas get "
                   "less work: all replicas wait for the slowest one"
                 : "nothing: all replicas are on one kind",
             "the cores are of %u kinds, the fastest first: PUs %s", kinds, list);
    if (c->packages > 4 && c->packages == c->cores)
        warn(s, "check with --measure, and correct the hypervisor's options (qemu -smp sockets=,cores=)",
             "each of the %u cores is shown as a package: a hypervisor probably reports a wrong topology",
             c->cores);
}

static void warn_of_sharing(struct survey *s)
{
    uint32_t replicas = ditto_placement_num_replicas(s->placement), sharing = 0, threads = 0, wide = 0;
    for (uint32_t r = 0; r < replicas; r++) {
        bool shared = false, wider = false;
        uint32_t devices = ditto_placement_num_devices(s->placement, r);
        ditto_placed_device first, place;
        check(ditto_placement_get(s->placement, r, 0, &first));
        for (uint32_t d = 0; d < devices; d++) {
            check(ditto_placement_get(s->placement, r, d, &place));
            shared |= place.num_sharers > 1;
            wider |= place.pu.memory_node != first.pu.memory_node;
        }
        sharing += shared;
        wide += wider;
        threads += s->request->helpers == DITTO_SWITCH_OFF ? 1 : devices;
    }
    if (sharing > 0)
        warn(
            s,
            "use fewer replicas: waiting threads yield instead of spinning, which costs microseconds in each "
            "meeting",
            "%u replicas share PUs", sharing);
    double quota = s->counts.cpu_quota / s->counts.num_parts; /* this process's share */
    if (quota > 0 && quota < threads)
        warn(s, "raise the quota (docker --cpus, systemd CPUQuota=, kubernetes limits) or use fewer replicas",
             "control groups grant %.2f CPUs of time to %u threads: they are throttled, and waiting threads "
             "yield",
             quota, threads);
    if (wide > 0)
        warn(s, "one replica per NUMA node (--per node) where memory bandwidth matters",
             "%u replicas are wider than a NUMA node: their memory is on their leader's node", wide);
}

/* -- memory -- */

/* Properties of nodes that have a warning. One warning names all nodes that have the property. */
static bool is_memoryless(const ditto_node *node)
{
    return node->kind == DITTO_NODE_MEMORYLESS && node->num_pus > 0;
}
static bool is_cpuless(const ditto_node *node)
{
    return node->kind == DITTO_NODE_CPULESS;
}
static bool is_forbidden(const ditto_node *node)
{
    return node->num_pus > 0 && !node->allowed;
}

static void warn_of_nodes_with(struct survey *s, bool (*has_property)(const ditto_node *node),
                               const char *remedy, const char *what)
{
    char list[128] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < s->counts.machine_nodes; i++) {
        ditto_node node;
        check(ditto_topology_node(s->topology, i, &node));
        if (has_property(&node) && used < sizeof list - 16)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", used > 0 ? ", " : "",
                                     node.number);
        else if (has_property(&node) && list[used - 1] != '.')
            used += (size_t)snprintf(list + used, sizeof list - used, ", ...");
    }
    if (used > 0)
        warn(s, remedy, "NUMA node %s: %s", list, what);
}

static void warn_of_nodes(struct survey *s)
{
    warn_of_nodes_with(s, is_memoryless,
                       "nothing in software: populate the memory channels, or leave the PUs out (--cpus)",
                       "PUs but no memory; they use the nearest node's");
    warn_of_nodes_with(s, is_cpuless,
                       "nothing: use it through your own allocations (memkind, numactl) if you want it",
                       "memory but no PUs (HBM, CXL); no replica is placed there");
    warn_of_nodes_with(s, is_forbidden, "add the node to the cpuset's mems, or take its PUs out of its cpus",
                       "PUs, but the process may not take memory there");
}

static void warn_of_memory(struct survey *s)
{
    const ditto_limits *l = &s->limits;
    if (l->mbind_errno != 0)
        warn(s,
             "allow it: docker --cap-add SYS_NICE, or a seccomp profile with mbind, set_mempolicy and "
             "get_mempolicy",
             "mbind is refused (%s): pages are placed by first touch", strerror(l->mbind_errno));
    if (l->move_pages_errno != 0)
        warn(s, "allow move_pages in the seccomp profile to see where pages are",
             "move_pages is refused (%s): the node of pages is not known", strerror(l->move_pages_errno));
    if (l->numa_balancing > 0 && l->mbind_errno != 0)
        warn(
            s, "sysctl kernel.numa_balancing=0, or allow mbind",
            "numa_balancing is %d and memory cannot be bound: the kernel may move pages, and its hint faults "
            "add jitter",
            l->numa_balancing);
    if (l->memory_policy == DITTO_NUMA_POLICY_PREFERRED || l->memory_policy == DITTO_NUMA_POLICY_BIND ||
        l->memory_policy == DITTO_NUMA_POLICY_INTERLEAVE || l->memory_policy == DITTO_NUMA_POLICY_OTHER)
        warn(s,
             "nothing: ditto's memory is placed near its replicas; only the program's other memory follows "
             "numactl's options",
             "the process inherits the memory policy %s on nodes %s", policy_name(l->memory_policy),
             l->policy_nodes);
    if (l->huge_pages == DITTO_HUGE_PAGES_NEVER)
        warn(s, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
             "transparent huge pages are off: large arrays are read through 4 KiB pages");
}

static void warn_of_pages(struct survey *s)
{
    uint64_t remote_pages = 0;
    for (uint32_t r = 0; r < ditto_strategy_num_replicas(s->strategy); r++) {
        ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
        check(ditto_strategy_replica_info(s->strategy, r, 0, &info));
        remote_pages += info.remote_pages;
    }
    if (remote_pages > 0)
        warn(s, "free memory on the nodes, or ask for DITTO_MEMORY_STRICT to get an error instead",
             "%llu pages of replicas are on other nodes than planned", (unsigned long long)remote_pages);
}

/* -- all -- */

static void make_strategy(struct survey *s)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.placement = s->placement;
    options.helpers = s->request->helpers;
    check(ditto_strategy_create(DITTO_MIRRORED, &options, &s->strategy));
}

static void read_placement(struct survey *s, const char *path)
{
    static char text[1 << 20];
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    size_t length = fread(text, 1, sizeof text, file);
    if (file != stdin)
        fclose(file);
    check(ditto_placement_read(s->topology, text, length, &s->placement));
}

/* Lists the replicas on each PU. The first round counts them for each PU, and the second round writes the
 * list. */
static void list_replicas(struct survey *s)
{
    uint32_t replicas = ditto_placement_num_replicas(s->placement);
    ditto_placed_device place;
    s->first = calloc(MOST_PUS + 2, sizeof *s->first);
    for (int round = 0; round < 2; round++) {
        for (uint32_t r = 0; r < replicas; r++)
            for (uint32_t d = 0; d < ditto_placement_num_devices(s->placement, r); d++) {
                check(ditto_placement_get(s->placement, r, d, &place));
                if (round == 0)
                    s->first[place.pu.number + 2]++;
                else
                    s->replica_on[s->first[place.pu.number + 1]++] = r;
            }
        for (uint32_t i = 2; i < MOST_PUS + 2 && round == 0; i++)
            s->first[i] += s->first[i - 1];
        if (round == 0)
            s->replica_on = calloc(s->first[MOST_PUS + 1] + 1u, sizeof *s->replica_on);
    }
}

/* Sets what the request leaves open, as a strategy does. A value of the variable that is no number is refused
 * when the strategy is created. */
static void choose_size(const struct survey *s, ditto_placement_options *o)
{
    const char *pus = s->live ? getenv("DITTO_PUS_PER_REPLICA") : NULL;
    if (o->span != DITTO_SPAN_DEFAULT || o->shape != NULL || o->stride != NULL || o->pus_per_replica != 0)
        return;
    if (pus == NULL) {
        o->num_replicas = o->num_replicas != 0 ? o->num_replicas : s->counts.default_num_replicas;
        return;
    }
    unsigned long number = strtoul(pus, NULL, 10);
    if (number > s->counts.pus) {
        fprintf(stderr,
                "ditto-info: the environment variable DITTO_PUS_PER_REPLICA is %s, but the process may use "
                "%u PUs\n",
                pus, s->counts.pus);
        exit(1);
    }
    o->pus_per_replica = (uint32_t)number;
}

void survey_make(struct survey *s, const struct request *request)
{
    ditto_placement_options placement = request->placement;
    *s = (struct survey){ .request = request,
                          .live = request->topology.xml_path == NULL && request->topology.synthetic == NULL };
    ditto_topology_options topology = request->topology;
    topology.part = DITTO_SWITCH_ON; /* as a strategy does */
    check(ditto_topology_create(&topology, &s->topology));
    s->counts = (ditto_topology_counts)DITTO_TOPOLOGY_COUNTS_INIT;
    check(ditto_topology_count(s->topology, &s->counts));
    choose_size(s, &placement);
    if (request->placement_file != NULL)
        read_placement(s, request->placement_file);
    else
        check(ditto_placement_create(s->topology, &placement, &s->placement));
    list_replicas(s);
    if (s->live) {
        s->limits = (ditto_limits)DITTO_LIMITS_INIT;
        check(ditto_limits_read(&s->limits));
        make_strategy(s);
    }
    if (s->live) {
        warn_of_memory(s);
        warn_of_pages(s);
    }
    warn_of_cuts(s);
    warn_of_sharing(s);
    warn_of_nodes(s);
}

void survey_free(struct survey *s)
{
    check(ditto_strategy_destroy(s->strategy));
    check(ditto_placement_destroy(s->placement));
    check(ditto_topology_destroy(s->topology));
    free(s->first);
    free(s->replica_on);
}
