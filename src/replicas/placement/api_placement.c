/* src/replicas/placement/api_placement.c - the functions of include/ditto/placement.h. */
#include "base/base.h"
#include "replicas/replicas.h"

#include <stdlib.h>

ditto_status ditto_placement_build(const ditto_topology *topology, const ditto_placement_options *options,
                                   ditto_placement **out)
{
    ditto_placement_options known;
    DTI_ENTER();
    DTI_TRY(dti_not_null(topology, "topology"));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_placement_options"));
    return dti_placement_make(topology, &known, out);
}

static void free_grouping(struct dti_replica_grouping *grouping)
{
    free(grouping->first);
    free(grouping->member);
}

void ditto_placement_destroy(ditto_placement *placement)
{
    if (placement == NULL)
        return;
    for (int level = 0; level < DITTO_LEVELS; level++)
        free_grouping(&placement->level[level]);
    free_grouping(&placement->by_numa_node);
    free(placement->blocks);
    free(placement->list);
    free(placement->pus);
    free(placement->sharers);
    free(placement);
}

uint32_t ditto_placement_replicas(const ditto_placement *placement)
{
    return placement != NULL ? placement->replicas : 0;
}

uint32_t ditto_placement_devices(const ditto_placement *placement, uint32_t replica)
{
    return placement != NULL && replica < placement->replicas ? placement->blocks[replica].count : 0;
}

ditto_status ditto_placement_get(const ditto_placement *placement, uint32_t replica, uint32_t device,
                                 ditto_place *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(placement, "placement"));
    DTI_TRY(dti_not_null(out, "out"));
    if (replica >= placement->replicas)
        return DTI_FAIL(DITTO_ERR_RANGE, "replica %u: the placement has %u", replica, placement->replicas);
    if (device >= placement->blocks[replica].count)
        return DTI_FAIL(DITTO_ERR_RANGE, "logical device %u: replica %u has %u", device, replica,
                        placement->blocks[replica].count);
    const struct dti_pu *pu = dti_placement_pu(placement, replica, device);
    *out = (ditto_place){
        .replica = replica, .device = device, .sharers = placement->sharers[pu - placement->pus], .pu = pu->is
    };
    return DITTO_OK;
}

static void give_group(const struct dti_replica_grouping *grouping, uint32_t group, const uint32_t **replicas,
                       uint32_t *count)
{
    *replicas = grouping->member + grouping->first[group];
    *count = grouping->first[group + 1] - grouping->first[group];
}

ditto_status ditto_placement_lookup_replicas(const ditto_placement *placement, uint32_t numa_node,
                                             const uint32_t **replicas, uint32_t *count)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(placement, "placement"));
    DTI_TRY(dti_not_null(replicas, "replicas"));
    DTI_TRY(dti_not_null(count, "count"));
    const struct dti_replica_grouping *by_numa_node = &placement->by_numa_node;
    for (uint32_t group = 0; group < by_numa_node->groups; group++)
        if (dti_placement_leader(placement, by_numa_node->member[by_numa_node->first[group]])->is.numa_node ==
            numa_node) {
            give_group(by_numa_node, group, replicas, count);
            return DITTO_OK;
        }
    return DTI_FAIL(DITTO_ERR_NOT_FOUND, "no replica has its leader on NUMA node %u", numa_node);
}

static bool is_level(ditto_level level)
{
    return (int)level >= 0 && level < DITTO_LEVELS;
}

uint32_t ditto_placement_groups(const ditto_placement *placement, ditto_level level)
{
    return placement != NULL && is_level(level) ? placement->level[level].groups : 0;
}

ditto_status ditto_placement_members(const ditto_placement *placement, ditto_level level, uint32_t group,
                                     const uint32_t **replicas, uint32_t *count)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(placement, "placement"));
    DTI_TRY(dti_not_null(replicas, "replicas"));
    DTI_TRY(dti_not_null(count, "count"));
    if (!is_level(level))
        return DTI_FAIL(DITTO_ERR_RANGE, "level = %d is not a level of the machine", (int)level);
    if (group >= placement->level[level].groups)
        return DTI_FAIL(DITTO_ERR_RANGE, "group %u: the placement has %u at this level", group,
                        placement->level[level].groups);
    give_group(&placement->level[level], group, replicas, count);
    return DITTO_OK;
}

ditto_status ditto_placement_write(const ditto_placement *placement, char *buffer, size_t size,
                                   size_t *length)
{
    struct dti_text text = { buffer, size, 0 };
    DTI_ENTER();
    DTI_TRY(dti_not_null(placement, "placement"));
    if (size > 0)
        DTI_TRY(dti_not_null(buffer, "buffer"));
    dti_placement_write(placement, &text);
    if (length != NULL)
        *length = text.length;
    return DITTO_OK;
}

ditto_status ditto_placement_read(const ditto_topology *topology, const char *text, size_t length,
                                  ditto_placement **out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(topology, "topology"));
    DTI_TRY(dti_not_null(text, "text"));
    DTI_TRY(dti_not_null(out, "out"));
    return dti_placement_read(topology, text, length, out);
}
