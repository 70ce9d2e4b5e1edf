/* src/replicas/machine/topology.c - reads the machine with hwloc. */
#include "replicas/machine/topology.h"
#include "base/errors/status.h"
#include "base/text/text.h"
#include "replicas/machine/affinity.h"
#include "replicas/machine/limits.h"
#include "replicas/machine/part.h"

#include <errno.h>
#include <hwloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- nodes -- */

static int by_number(const void *left, const void *right)
{
    const ditto_node *a = left, *b = right;
    return a->number < b->number ? -1 : a->number > b->number;
}

static uint32_t index_of_node(const ditto_topology *t, uint32_t number)
{
    const ditto_node *found = bsearch(&(ditto_node){ .number = number }, t->nodes, t->counts.machine_nodes,
                                      sizeof *t->nodes, by_number);
    return found != NULL ? (uint32_t)(found - t->nodes) : DITTO_NO_NODE;
}

/* Reads the relative latencies that the firmware reports. If there are none, all distances stay 0. */
static void read_distances(hwloc_topology_t hw, ditto_topology *t)
{
    struct hwloc_distances_s *d = NULL;
    unsigned found = 1;
    if (hwloc_distances_get_by_name(hw, "NUMALatency", &found, &d, 0) != 0 || found == 0 || d == NULL)
        return;
    for (unsigned i = 0; i < d->nbobjs; i++)
        for (unsigned k = 0; k < d->nbobjs; k++) {
            uint32_t from = d->objs[i] != NULL ? index_of_node(t, d->objs[i]->os_index) : DITTO_NO_NODE;
            uint32_t to = d->objs[k] != NULL ? index_of_node(t, d->objs[k]->os_index) : DITTO_NO_NODE;
            hwloc_uint64_t value = d->values[(size_t)i * d->nbobjs + k];
            if (from != DITTO_NO_NODE && to != DITTO_NO_NODE && value <= UINT32_MAX)
                t->distance[(size_t)from * t->counts.machine_nodes + to] = (uint32_t)value;
        }
    hwloc_distances_release(hw, d);
}

/* The part of the machine to which the memory of a node is attached. */
struct attached {
    hwloc_obj_t to;
};

/* Fills t->apart. It is the distance of two nodes if the firmware reports it. Otherwise it is 0 for a node
 * and itself, and for two nodes a number above all distances. This number is larger if the smallest part of
 * the machine that contains both nodes is nearer to the root. `where` [machine_nodes] is in the order of
 * t->nodes. */
static void compare_nodes(hwloc_topology_t hw, ditto_topology *t, const struct attached *where)
{
    uint32_t nodes = t->counts.machine_nodes;
    for (uint32_t i = 0; i < nodes; i++)
        for (uint32_t k = 0; k < nodes; k++) {
            uint32_t reported = t->distance[(size_t)i * nodes + k], unreported = 0;
            if (reported == 0 && i != k)
                unreported = UINT32_MAX -
                             (uint32_t)hwloc_get_common_ancestor_obj(hw, where[i].to, where[k].to)->depth;
            t->apart[(size_t)i * nodes + k] = reported != 0 ? reported : unreported;
        }
}

static ditto_status list_nodes(hwloc_topology_t hw, ditto_topology *t)
{
    struct dti_mask mems;
    bool mems_known = t->live && dti_limits_mems("", &mems);
    int found = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_NUMANODE);
    uint32_t count = found > 0 ? (uint32_t)found : 0;
    hwloc_const_nodeset_t allowed = hwloc_topology_get_allowed_nodeset(hw);
    if (count > DTI_MAX_NODES)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "%u NUMA nodes: this build supports at most %u", count,
                        DTI_MAX_NODES);
    t->nodes = calloc(count + 1u, sizeof *t->nodes); /* + 1, so that the size is never 0 */
    t->distance = calloc((size_t)count * count + 1, sizeof *t->distance);
    t->apart = calloc((size_t)count * count + 1, sizeof *t->apart);
    struct attached *where = calloc(count + 1u, sizeof *where);
    if (t->nodes == NULL || t->distance == NULL || t->apart == NULL || where == NULL) {
        free(where);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u NUMA nodes", count);
    }
    t->counts.machine_nodes = count;
    for (uint32_t i = 0; i < count; i++) {
        hwloc_obj_t node = hwloc_get_obj_by_type(hw, HWLOC_OBJ_NUMANODE, i);
        bool node_allowed = hwloc_bitmap_isset(allowed, node->os_index) &&
                            (!mems_known || dti_mask_has(&mems, node->os_index));
        t->nodes[i] = (ditto_node){ .number = node->os_index,
                                    .allowed = node_allowed,
                                    .memory_bytes = node->attr->numanode.local_memory };
        /* The number of PUs of the node, which own_node_of reads for every PU. */
        node->userdata = (void *)(uintptr_t)hwloc_bitmap_weight(node->cpuset);
    }
    qsort(t->nodes, count, sizeof *t->nodes, by_number);
    read_distances(hw, t);
    /* The order of hwloc differs from that of t->nodes, which is by number. */
    for (uint32_t i = 0; i < count; i++) {
        hwloc_obj_t node = hwloc_get_obj_by_type(hw, HWLOC_OBJ_NUMANODE, i);
        where[index_of_node(t, node->os_index)].to = node->parent;
    }
    compare_nodes(hw, t, where);
    free(where);
    return DITTO_OK;
}

/* Returns true for memory that programs get by default. HBM, CXL memory and memory of devices are not
 * ordinary. */
static bool is_ordinary(const struct hwloc_obj *node)
{
    return node->subtype == NULL || node->subtype[0] == '\0' || strcmp(node->subtype, "DRAM") == 0;
}

/* Returns the node to which a PU belongs, or NULL if no node contains it. Ordinary memory is preferred. Among
 * the nodes that are left, the one with the fewest PUs is chosen, and then the one with the lowest number,
 * because on known machines DRAM has lower numbers than HBM. */
static hwloc_obj_t own_node_of(hwloc_topology_t hw, unsigned pu)
{
    hwloc_obj_t best = NULL, node = NULL;
    while ((node = hwloc_get_next_obj_by_type(hw, HWLOC_OBJ_NUMANODE, node)) != NULL) {
        if (!hwloc_bitmap_isset(node->cpuset, pu))
            continue;
        uintptr_t size = (uintptr_t)node->userdata, least = best != NULL ? (uintptr_t)best->userdata : 0;
        bool kinds_differ = best != NULL && is_ordinary(node) != is_ordinary(best);
        if (best == NULL || (kinds_differ && is_ordinary(node)) ||
            (!kinds_differ && (size < least || (size == least && node->os_index < best->os_index))))
            best = node;
    }
    return best;
}

/* -- PUs -- */

static hwloc_obj_t ancestor(hwloc_topology_t hw, hwloc_obj_type_t type, hwloc_obj_t pu)
{
    return hwloc_get_ancestor_obj_by_type(hw, type, pu);
}

static void read_caches(hwloc_obj_t pu, hwloc_const_bitmap_t usable, struct dti_raw_pu *raw)
{
    hwloc_obj_t last = NULL;
    for (hwloc_obj_t above = pu->parent; above != NULL; above = above->parent) {
        if (!hwloc_obj_type_is_dcache(above->type) || raw->pu.caches == DTI_MAX_CACHES)
            continue;
        hwloc_bitmap_t shared = hwloc_bitmap_alloc();
        int pus = shared != NULL && hwloc_bitmap_and(shared, above->cpuset, usable) == 0
                      ? hwloc_bitmap_weight(shared)
                      : 0;
        hwloc_bitmap_free(shared);
        raw->pu.cache[raw->pu.caches++] = (struct dti_cache){ .level = above->attr->cache.depth,
                                                              .num_pus = pus > 0 ? (uint32_t)pus : 0,
                                                              .bytes = above->attr->cache.size };
        last = above;
    }
    /* If hwloc shows no cache, all PUs of a domain count as sharing one. */
    if (last == NULL) {
        raw->llc = (uint64_t)1 << 63 | (uint64_t)raw->pu.is.package << 32 | raw->locality;
        return;
    }
    /* The first PU of a cache distinguishes it from other caches, whatever their levels. */
    while (last->first_child != NULL)
        last = last->first_child;
    raw->llc = last->logical_index;
}

static ditto_status read_pu(hwloc_topology_t hw, ditto_topology *t, uint32_t index,
                            hwloc_const_bitmap_t usable, struct dti_raw_pu *raw)
{
    hwloc_obj_t pu = hwloc_get_obj_by_type(hw, HWLOC_OBJ_PU, index), own_node = own_node_of(hw, pu->os_index);
    hwloc_obj_t package = ancestor(hw, HWLOC_OBJ_PACKAGE, pu), core = ancestor(hw, HWLOC_OBJ_CORE, pu);
    int kind = hwloc_cpukinds_get_by_cpuset(hw, pu->cpuset, 0);
    if (pu->os_index >= DTI_MAX_PUS && hwloc_bitmap_isset(usable, pu->os_index))
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "PU %u: this build supports numbers below %u; exclude it by affinity, cpuset or .cpus",
            pu->os_index, DTI_MAX_PUS);
    *raw = (struct dti_raw_pu){
        .pu = { .is = { .number = pu->os_index,
                        .package = package != NULL ? package->logical_index : 0,
                        .core = core != NULL ? core->logical_index : index,
                        .kind = kind > 0 && t->counts.core_kinds > 1 ? (uint32_t)kind : 0,
                        .numa_node = own_node != NULL ? own_node->os_index : DITTO_NO_NODE },
                .package_os = package != NULL ? package->os_index : 0,
                .core_os = core != NULL ? core->os_index : pu->os_index },
        .node = own_node != NULL ? index_of_node(t, own_node->os_index) : DITTO_NO_NODE,
        .locality = own_node != NULL ? own_node->logical_index : UINT32_MAX,
    };
    read_caches(pu, usable, raw);
    return DITTO_OK;
}

/* Returns false if the topology describes no memory at all. All nodes then count as having some. */
static bool memory_is_known(const ditto_topology *t)
{
    bool known = false;
    for (uint32_t i = 0; i < t->counts.machine_nodes; i++)
        known |= t->nodes[i].memory_bytes > 0;
    return known;
}

/* Returns the number of the node whose memory the PUs of a node get. `own_node` is the index of that node, or
 * DITTO_NO_NODE. The result is the node itself if it has memory and is allowed, and otherwise the nearest
 * node for which this is so. DITTO_NO_NODE means that there is none. */
static uint32_t memory_node(const ditto_topology *t, uint32_t own_node)
{
    uint32_t nodes = t->counts.machine_nodes, best = DITTO_NO_NODE;
    bool known = memory_is_known(t);
    for (uint32_t i = 0; i < nodes; i++) {
        if (!t->nodes[i].allowed || (known && t->nodes[i].memory_bytes == 0))
            continue;
        if (i == own_node)
            return t->nodes[i].number;
        if (best == DITTO_NO_NODE ||
            (own_node != DITTO_NO_NODE &&
             t->apart[(size_t)own_node * nodes + i] < t->apart[(size_t)own_node * nodes + best]))
            best = i;
    }
    return best != DITTO_NO_NODE ? t->nodes[best].number : DITTO_NO_NODE;
}

static void count_nodes(ditto_topology *t, const bool *has_pus)
{
    bool known = memory_is_known(t);
    t->counts.numa_nodes = 0;
    for (uint32_t i = 0; i < t->counts.pus; i++) {
        uint32_t own_node = index_of_node(t, t->pus[i].is.numa_node);
        t->pus[i].is.memory_node = memory_node(t, own_node);
        if (own_node != DITTO_NO_NODE)
            t->nodes[own_node].num_pus++;
        else if (i == 0 || t->pus[i].domain != t->pus[i - 1].domain)
            t->counts.numa_nodes++; /* the domain of PUs without a node counts as one */
    }
    for (uint32_t i = 0; i < t->counts.machine_nodes; i++) {
        ditto_node *node = &t->nodes[i];
        t->counts.numa_nodes += node->num_pus > 0;
        node->kind = !has_pus[i]                        ? DITTO_NODE_CPULESS
                     : known && node->memory_bytes == 0 ? DITTO_NODE_MEMORYLESS
                                                        : DITTO_NODE_ORDINARY;
    }
}

/* Returns the number of kinds of cores, or 0 if hwloc cannot say which are faster. */
static uint32_t count_kinds(hwloc_topology_t hw)
{
    int kinds = hwloc_cpukinds_get_nr(hw, 0), efficiency = -1;
    bool ranked = kinds > 0 && hwloc_cpukinds_get_info(hw, 0, NULL, &efficiency, NULL, NULL, 0) == 0 &&
                  efficiency >= 0;
    return kinds == 1 || ranked ? (uint32_t)kinds : 0;
}

/* Sets faster_kinds of all PUs, and keeps only the PUs of the `fastest` fastest kinds, or all if it is 0.
 * `faster` [core_kinds + 1] is workspace that is zero. */
static void rank_kinds(ditto_topology *t, struct dti_raw_pu *raw, uint32_t *count, uint32_t fastest,
                       uint32_t *faster)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++)
        faster[raw[i].pu.is.kind] = 1; /* a PU has this kind; the next loop replaces it by its rank */
    for (uint32_t kind = t->counts.core_kinds + 1u; kind-- > 0;)
        if (faster[kind] != 0)
            faster[kind] = t->kinds++;
    for (uint32_t i = 0; i < *count; i++) {
        raw[i].pu.faster_kinds = faster[raw[i].pu.is.kind];
        if (fastest == 0 || raw[i].pu.faster_kinds < fastest)
            raw[kept++] = raw[i];
    }
    *count = kept;
    t->kinds = fastest != 0 && fastest < t->kinds ? fastest : t->kinds;
}

/* Reads all PUs of the machine. Those in `usable` become the PUs of the topology. */
static ditto_status list_pus(hwloc_topology_t hw, hwloc_const_bitmap_t usable, uint32_t fastest_kinds,
                             ditto_topology *t)
{
    int found = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_PU);
    uint32_t all = found > 0 ? (uint32_t)found : 0, used = 0;
    struct dti_raw_pu *raw = calloc(all + 1u, sizeof *raw);
    bool *has_pus = calloc(t->counts.machine_nodes + 1u, sizeof *has_pus);
    ditto_status status = DITTO_OK;
    t->pus = calloc(all + 1u, sizeof *t->pus);
    t->counts.core_kinds = count_kinds(hw);
    uint32_t *faster = calloc(t->counts.core_kinds + 1u, sizeof *faster);
    if (faster == NULL || raw == NULL || has_pus == NULL || t->pus == NULL)
        status = DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u PUs", all);
    for (uint32_t i = 0; i < all && status == DITTO_OK; i++) {
        status = read_pu(hw, t, i, usable, &raw[used]);
        if (status == DITTO_OK && raw[used].node != DITTO_NO_NODE)
            has_pus[raw[used].node] = true;
        used += status == DITTO_OK && hwloc_bitmap_isset(usable, raw[used].pu.is.number);
    }
    if (status == DITTO_OK && used == 0)
        status = DTI_FAIL(DITTO_ERR_RANGE,
                          "no PU is left that the process may use: affinity, cpuset and .cpus have none in "
                          "common; widen one of them");
    if (status == DITTO_OK)
        rank_kinds(t, raw, &used, fastest_kinds, faster);
    if (status == DITTO_OK && !dti_mesh_order(t, raw, used))
        status = DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a mesh of %u PUs", used);
    if (status == DITTO_OK)
        count_nodes(t, has_pus);
    free(faster);
    free(has_pus);
    free(raw);
    return status;
}

/* -- the PUs that may be used -- */

/* Returns the number of PUs in a set. */
static uint32_t number_of(hwloc_const_bitmap_t pus)
{
    int number = hwloc_bitmap_weight(pus);
    return number > 0 ? (uint32_t)number : 0; /* -1 means without end */
}

static ditto_status keep_only(hwloc_bitmap_t usable, const struct dti_mask *mask)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    bool done = set != NULL &&
                hwloc_bitmap_from_ulongs(set, sizeof mask->bits / sizeof mask->bits[0], mask->bits) == 0 &&
                hwloc_bitmap_and(usable, usable, set) == 0;
    hwloc_bitmap_free(set);
    return done ? DITTO_OK : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a set of PUs");
}

/* Keeps the PUs that the option `cpus` names. Each of them must be usable. */
static ditto_status keep_named(hwloc_bitmap_t usable, const char *cpus)
{
    struct dti_mask named;
    if (!dti_mask_parse(cpus, strlen(cpus), &named))
        return DTI_FAIL(DITTO_ERR_INVALID, "cpus is \"%s\": write it like \"0-3,8\", numbers below %u", cpus,
                        DTI_MAX_PUS);
    for (uint32_t pu = 0; pu < DTI_MAX_PUS; pu++)
        if (dti_mask_has(&named, pu) && !hwloc_bitmap_isset(usable, pu))
            return DTI_FAIL(DITTO_ERR_RANGE,
                            "cpus names PU %u, which does not exist or which this process may not use: widen "
                            "the affinity or cpuset, or leave it out",
                            pu);
    return keep_only(usable, &named);
}

/* `allowed` is the affinity that limits a live topology, or NULL. */
static ditto_status find_usable(hwloc_topology_t hw, const ditto_topology_options *options,
                                const struct dti_mask *allowed, ditto_topology *topology,
                                hwloc_bitmap_t usable)
{
    /* PUs that are offline or outside the cpuset cgroup are in the topology, but not in its allowed set. */
    if (hwloc_bitmap_and(usable, hwloc_topology_get_topology_cpuset(hw),
                         hwloc_topology_get_allowed_cpuset(hw)) != 0)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a set of PUs");
    if (allowed != NULL)
        DTI_TRY(keep_only(usable, allowed));
    topology->counts.affinity_pus = number_of(usable);
    return options->cpus != NULL ? keep_named(usable, options->cpus) : DITTO_OK;
}

/* Says why hwloc has refused a file. lstopo of hwloc 3 writes files that hwloc 2 does not read. */
static ditto_status refuse_xml(const char *path)
{
    static const char begin[] = "<topology version=\"";
    unsigned own = hwloc_get_api_version() >> 16;
    char text[1024];
    const char *version = dti_read_file(path, text, sizeof text) ? strstr(text, begin) : NULL;
    unsigned long found = version != NULL ? strtoul(version + sizeof begin - 1, NULL, 10) : 0;
    if (found > own)
        return DTI_FAIL(DITTO_ERR_CORRUPT,
                        "%s is a topology of hwloc %lu, and this library reads with hwloc %u: write it with "
                        "`lstopo --export-xml-flags v%u file.xml`",
                        path, found, own, own);
    return DTI_FAIL(DITTO_ERR_CORRUPT, "%s is not an hwloc topology: make one with `lstopo file.xml`", path);
}

static ditto_status load(hwloc_topology_t hw, const ditto_topology_options *options,
                         const struct dti_mask *allowed, ditto_topology *topology)
{
    struct dti_mask own_affinity;
    topology->live = options->xml_path == NULL && options->synthetic == NULL;
    /* Sets the machine that hwloc reads. */
    if (options->xml_path != NULL && options->synthetic != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "xml_path and synthetic are both set: a topology has one source");
    if (options->xml_path != NULL) {
        if (access(options->xml_path, R_OK) != 0)
            return DTI_FAIL_ERRNO(DITTO_ERR_NOT_FOUND, errno, "topology file %s", options->xml_path);
        if (hwloc_topology_set_xml(hw, options->xml_path) != 0)
            return refuse_xml(options->xml_path);
    }
    if (options->synthetic != NULL && hwloc_topology_set_synthetic(hw, options->synthetic) != 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "\"%s\" is not a synthetic topology: write it like \"pack:2 [numa] core:4 pu:2\"",
                        options->synthetic);
    /* A refusal is detected here, because hwloc repeats sched_getaffinity until it succeeds. */
    if (topology->live)
        DTI_TRY(dti_affinity_get(&own_affinity));
    /* hwloc reads the whole machine, so that indices and nodes do not depend on what the process may use. */
    hwloc_topology_set_flags(hw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (hwloc_topology_load(hw) != 0) {
        if (options->xml_path != NULL)
            return refuse_xml(options->xml_path);
        if (options->synthetic != NULL)
            return DTI_FAIL(DITTO_ERR_CORRUPT, "%s does not describe a machine", options->synthetic);
        return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, errno, "hwloc could not read this machine");
    }
    if (topology->live && !hwloc_topology_is_thissystem(hw))
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "hwloc describes another machine, because HWLOC_XMLFILE, HWLOC_SYNTHETIC or HWLOC_FSROOT is set "
            "in the environment: threads can't be bound to it. Unset them, or give the machine in .xml_path "
            "or .synthetic");
    topology->counts.machine_pus = number_of(hwloc_topology_get_complete_cpuset(hw));
    topology->counts.cpuset_pus = number_of(hwloc_topology_get_allowed_cpuset(hw));
    topology->counts.cpu_quota = topology->live ? dti_cgroup_cpu_quota("") : 0;
    DTI_TRY(list_nodes(hw, topology));
    hwloc_bitmap_t usable = hwloc_bitmap_alloc();
    if (usable == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a set of PUs");
    const struct dti_mask *affinity = !topology->live ? NULL : allowed != NULL ? allowed : &own_affinity;
    ditto_status status = find_usable(hw, options, affinity, topology, usable);
    if (status == DITTO_OK)
        status = list_pus(hw, usable, options->fastest_kinds, topology);
    hwloc_bitmap_free(usable);
    return status;
}

/* Held during all calls of hwloc. hwloc holds a lock of its own while it starts and ends. If another thread
 * forked meanwhile, that lock would stay locked in the child for ever. */
static pthread_mutex_t hwloc_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_hwloc(void)
{
    pthread_mutex_lock(&hwloc_lock);
}

static void unlock_hwloc(void)
{
    pthread_mutex_unlock(&hwloc_lock);
}

static void watch_forks(void)
{
    /* This fails only if there is no memory. Forks are then as unsafe as without the handler. */
    (void)pthread_atfork(lock_hwloc, unlock_hwloc, unlock_hwloc);
}

void dti_topology_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
}

static ditto_status read_with_hwloc(const ditto_topology_options *options, const struct dti_mask *allowed,
                                    ditto_topology *topology)
{
    hwloc_topology_t hw;
    if (hwloc_topology_init(&hw) != 0)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "hwloc could not start");
    ditto_status status = load(hw, options, allowed, topology);
    hwloc_topology_destroy(hw); /* all data that is needed has been copied */
    return status;
}

void dti_topology_destroy(ditto_topology *topology)
{
    if (topology != NULL) {
        free(topology->pus);
        free(topology->nodes);
        free(topology->distance);
        free(topology->apart);
    }
    free(topology);
}

/* Reads the machine without dividing it. */
static ditto_status read_whole(const ditto_topology_options *options, const struct dti_mask *allowed,
                               ditto_topology **out)
{
    ditto_topology *topology = calloc(1, sizeof *topology);
    if (topology == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a topology");
    dti_topology_watch_forks();
    lock_hwloc();
    ditto_status status = read_with_hwloc(options, allowed, topology);
    unlock_hwloc();
    if (status != DITTO_OK) {
        dti_topology_destroy(topology);
        return status;
    }
    topology->counts.num_parts = 1;
    topology->counts.divided_pus = topology->counts.pus;
    *out = topology;
    return DITTO_OK;
}

/* Reads the part of the machine that dti_part_choose gives this process. */
static ditto_status read_part(const ditto_topology *whole, const struct dti_part *part,
                              const struct dti_mask *allowed, ditto_topology **out)
{
    ditto_topology_options options = DITTO_TOPOLOGY_OPTIONS_INIT;
    struct dti_mask pus;
    size_t size = 6 * (size_t)whole->counts.pus + 1; /* "8191," has five characters */
    char *list = malloc(size);
    if (list == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a set of PUs");
    struct dti_text text = { list, size, 0 };
    bool shared = dti_part_choose(whole, part, &pus);
    dti_mask_write(&pus, &text);
    options.cpus = list;
    ditto_status status = read_whole(&options, allowed, out);
    free(list);
    if (status != DITTO_OK)
        return status;
    (*out)->counts.num_parts = part->parts;
    (*out)->counts.part = part->index;
    (*out)->counts.part_is_shared = shared;
    (*out)->counts.divided_pus = whole->counts.pus;
    (*out)->counts.part_source = part->source;
    return DITTO_OK;
}

/* Replaces the topology by the part of this process, if the machine is to be divided. */
static ditto_status take_part(const ditto_topology_options *options, const struct dti_mask *allowed,
                              ditto_topology **topology)
{
    const ditto_topology_counts *counts = &(*topology)->counts;
    struct dti_part part;
    ditto_topology *mine;
    if (options->part != DITTO_SWITCH_ON || !(*topology)->live || options->cpus != NULL)
        return DITTO_OK;
    DTI_TRY(dti_part_read(&part));
    /* A launcher that has bound its processes has divided the machine already. */
    if (part.parts < 2 || (!part.asked && counts->affinity_pus != counts->cpuset_pus))
        return DITTO_OK;
    DTI_TRY(read_part(*topology, &part, allowed, &mine));
    dti_topology_destroy(*topology);
    *topology = mine;
    return DITTO_OK;
}

ditto_status dti_topology_read(const ditto_topology_options *options, const struct dti_mask *allowed,
                               ditto_topology **out)
{
    ditto_topology *topology;
    DTI_TRY(read_whole(options, allowed, &topology));
    ditto_status status = take_part(options, allowed, &topology);
    if (status == DITTO_OK)
        *out = topology;
    else
        dti_topology_destroy(topology);
    return status;
}

const struct dti_pu *dti_topology_find(const ditto_topology *topology, uint32_t number)
{
    for (uint32_t i = 0; i < topology->counts.pus; i++)
        if (topology->pus[i].is.number == number)
            return &topology->pus[i];
    return NULL;
}

bool dti_pu_same(const struct dti_pu *a, const struct dti_pu *b)
{
    return a->is.number == b->is.number && a->is.numa_node == b->is.numa_node &&
           a->package_os == b->package_os && a->core_os == b->core_os;
}
