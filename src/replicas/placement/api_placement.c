/* src/replicas/placement/api_placement.c - the functions of include/ditto/placement.h. */
#include "base/errors/status.h"
#include "base/types/types.h"
#include "replicas/placement/placement.h"

#include <stdlib.h>

ditto_status ditto_placement_create(const ditto_topology *topology, const ditto_placement_options *options,
                                    ditto_placement **out)
{
    ditto_placement_options known;
    DTI_ENTER();
    DTI_TRY(dti_not_null(topology, "topology"));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_placement_options"));
    return dti_placement_make(topology, &known, out);
}

ditto_status ditto_placement_destroy(ditto_placement *placement)
{
    DTI_UNCANCELLED();
    dti_placement_destroy(placement);
    return DITTO_OK;
}

uint32_t ditto_placement_num_replicas(const ditto_placement *placement)
{
    return placement != NULL ? placement->replicas : 0;
}

uint32_t ditto_placement_num_devices(const ditto_placement *placement, uint32_t replica)
{
    return placement != NULL && replica < placement->replicas ? placement->blocks[replica].count : 0;
}

ditto_status ditto_placement_get(const ditto_placement *placement, uint32_t replica, uint32_t device,
                                 ditto_placed_device *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(placement, "placement"));
    DTI_TRY(dti_not_null(out, "out"));
    if (replica >= placement->replicas)
        return DTI_FAIL(DITTO_ERR_RANGE, "replica %u does not exist: the placement has %u", replica,
                        placement->replicas);
    if (device >= placement->blocks[replica].count)
        return DTI_FAIL(DITTO_ERR_RANGE, "logical device %u does not exist: replica %u has %u", device,
                        replica, placement->blocks[replica].count);
    const struct dti_pu *pu = dti_placement_pu(placement, replica, device);
    *out = (ditto_placed_device){ .replica = replica,
                                  .device = device,
                                  .num_sharers = placement->sharers[pu - placement->pus],
                                  .pu = pu->is };
    return DITTO_OK;
}

ditto_status ditto_placement_write(const ditto_placement *placement, char *buffer, size_t capacity,
                                   size_t *length)
{
    struct dti_text text = { buffer, capacity, 0 };
    DTI_ENTER();
    DTI_TRY(dti_not_null(placement, "placement"));
    if (capacity > 0)
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
