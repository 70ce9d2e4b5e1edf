/* src/replicas/topology.c - reading the machine with hwloc. */
#include "replicas/topology.h"
#include "base/base.h"
#include "replicas/cgroup.h"

#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tells hwloc which machine to look at. */
static ditto_status choose_source(hwloc_topology_t hw, const ditto_topology_options *options)
{
    if (options->xml_path != NULL && options->synthetic != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "xml_path and synthetic are both set: a topology has one source");
    if (options->xml_path != NULL) {
        if (access(options->xml_path, R_OK) != 0)
            return DTI_FAIL_ERRNO(DITTO_ERR_NOT_FOUND, errno, "topology file %s", options->xml_path);
        if (hwloc_topology_set_xml(hw, options->xml_path) != 0)
            return DTI_FAIL(DITTO_ERR_CORRUPT, "%s is not an hwloc topology: make one with `lstopo file.xml`",
                            options->xml_path);
    }
    if (options->synthetic != NULL && hwloc_topology_set_synthetic(hw, options->synthetic) != 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "\"%s\" is not a synthetic topology: write it like \"pack:2 [numa] core:4 pu:2\"",
                        options->synthetic);
    return DITTO_OK;
}

/* Removes the PUs outside `allowed`; of this machine those outside the process's cgroup are gone already. */
static ditto_status cut(hwloc_topology_t hw, const struct dti_mask *allowed)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    ditto_status status = DITTO_OK;
    if (set == NULL ||
        hwloc_bitmap_from_ulongs(set, sizeof allowed->bits / sizeof allowed->bits[0], allowed->bits) != 0)
        status = DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a set of PUs");
    else if (!hwloc_bitmap_intersects(set, hwloc_topology_get_topology_cpuset(hw)))
        status = DTI_FAIL(DITTO_ERR_RANGE, "no PU is left: affinity and cpuset of the process have none in common; "
                                           "widen one of them");
    else if (hwloc_topology_restrict(hw, set, 0) != 0)
        status = DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, errno, "hwloc could not cut the topology to the allowed PUs");
    hwloc_bitmap_free(set);
    return status;
}

/* The node that memory for this PU should come from: of several (HBM beside DRAM) the lowest number, which is DRAM on
 * the machines that are known; none at all (a memory-less node was dropped): the nearest ancestor's is inherited. */
static hwloc_obj_t node_of(hwloc_topology_t hw, hwloc_obj_t pu)
{
    int first = hwloc_bitmap_first(pu->nodeset);
    return first < 0 ? NULL : hwloc_get_numanode_obj_by_os_index(hw, (unsigned)first);
}

static uint32_t logical_index(hwloc_topology_t hw, hwloc_obj_type_t type, hwloc_obj_t pu, uint32_t otherwise)
{
    hwloc_obj_t ancestor = hwloc_get_ancestor_obj_by_type(hw, type, pu);
    return ancestor != NULL ? ancestor->logical_index : otherwise;
}

static int compare_pus(const void *left, const void *right)
{
    const struct dti_pu *a = left, *b = right;
    if (a->package != b->package)
        return a->package < b->package ? -1 : 1;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (a->core != b->core)
        return a->core < b->core ? -1 : 1;
    return a->smt < b->smt ? -1 : a->smt > b->smt;
}

/* Fills in what hwloc's logical indices leave open: consecutive node numbers, SMT ranks, counts. */
static void number_pus(ditto_topology *topology)
{
    ditto_topology_counts *counts = &topology->counts;
    struct dti_pu *pus = topology->pus;
    for (uint32_t i = 0; i < counts->pus; i++) {
        pus[i].smt = 0;
        for (uint32_t k = i; k-- > 0 && pus[k].core == pus[i].core && pus[k].package == pus[i].package;)
            pus[i].smt++;
    }
    qsort(pus, counts->pus, sizeof *pus, compare_pus);
    counts->packages = counts->numa_nodes = counts->cores = 0;
    for (uint32_t i = 0; i < counts->pus; i++) {
        bool first = i == 0;
        counts->packages += first || pus[i].package != pus[i - 1].package;
        counts->cores += pus[i].smt == 0;
    }
    uint32_t node = 0, raw_before = pus[0].node;
    for (uint32_t i = 0; i < counts->pus; i++) { /* a node with PUs in two packages counts in each */
        bool next = i > 0 && (pus[i].node != raw_before || pus[i].package != pus[i - 1].package);
        raw_before = pus[i].node;
        node += next;
        pus[i].node = node;
    }
    counts->numa_nodes = node + 1;
}

static ditto_status list_pus(hwloc_topology_t hw, ditto_topology *topology)
{
    int found = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_PU);
    if (found <= 0)
        return DTI_FAIL(DITTO_ERR_RANGE, "the topology has no PU that the process may use");
    topology->pus = calloc((size_t)found, sizeof *topology->pus);
    if (topology->pus == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %d PUs", found);
    topology->counts.pus = (uint32_t)found;
    for (uint32_t i = 0; i < (uint32_t)found; i++) {
        hwloc_obj_t pu = hwloc_get_obj_by_type(hw, HWLOC_OBJ_PU, i);
        hwloc_obj_t node = node_of(hw, pu);
        topology->pus[i] = (struct dti_pu){ .os = pu->os_index,
                                            .package = logical_index(hw, HWLOC_OBJ_PACKAGE, pu, 0),
                                            .node = node != NULL ? node->logical_index : 0,
                                            .node_os = node != NULL ? node->os_index : 0,
                                            .core = logical_index(hw, HWLOC_OBJ_CORE, pu, i) };
        if (pu->os_index >= DTI_MAX_PUS)
            return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "PU number %u: this build counts to %u", pu->os_index, DTI_MAX_PUS);
    }
    number_pus(topology);
    return DITTO_OK;
}

static ditto_status load(hwloc_topology_t hw, const ditto_topology_options *options, const struct dti_mask *allowed,
                         ditto_topology *topology)
{
    topology->live = options->xml_path == NULL && options->synthetic == NULL;
    DTI_TRY(choose_source(hw, options));
    if (hwloc_topology_load(hw) != 0)
        return topology->live ? DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, errno, "hwloc could not read this machine")
                              : DTI_FAIL(DITTO_ERR_CORRUPT, "%s does not describe a machine",
                                         options->xml_path != NULL ? options->xml_path : options->synthetic);
    int complete = hwloc_bitmap_weight(hwloc_topology_get_complete_cpuset(hw));
    topology->counts.machine_pus = complete > 0 ? (uint32_t)complete : 0;
    if (topology->live) {
        struct dti_mask own;
        if (allowed == NULL)
            DTI_TRY(dti_affinity_get(&own));
        DTI_TRY(cut(hw, allowed != NULL ? allowed : &own));
        topology->counts.cpu_quota = dti_cgroup_cpu_quota("");
    }
    return list_pus(hw, topology);
}

ditto_status dti_topology_read(const ditto_topology_options *options, const struct dti_mask *allowed,
                               ditto_topology **out)
{
    hwloc_topology_t hw;
    ditto_status status;
    ditto_topology *topology = calloc(1, sizeof *topology);
    if (topology == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a topology");
    if (hwloc_topology_init(&hw) != 0) {
        free(topology);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "hwloc could not start");
    }
    status = load(hw, options, allowed, topology);
    hwloc_topology_destroy(hw); /* everything needed has been copied out */
    if (status != DITTO_OK) {
        ditto_topology_destroy(topology);
        return status;
    }
    *out = topology;
    return DITTO_OK;
}
