/* src/replicas/helpers/device_tensor.h - copies of a tensor, or of its blocks, on the nodes of a replica's devices. */
#ifndef DTI_DEVICE_TENSOR_H
#define DTI_DEVICE_TENSOR_H

#include "replicas/team/team.h"

#include <ditto/tensor.h>

/* -- The leader, in its function -- */

/* out[i], i < count: for device first_device + i, in memory on its node, copied by it; block i of `from` (see dti_split_check),
 * or, without parts, all of it. Each one's data is freed with dti_replica_free; out is written on DITTO_OK alone. Waits for
 * functions given to these devices before. Errors: as dti_device_alloc. */
ditto_status dti_devices_copy(struct dti_replica *replica, const ditto_tensor *from, const uint32_t *parts,
                              uint32_t first_device, uint32_t count, ditto_tensor *out);

/* Cutting a tensor into equal blocks. Pure. */

/* SHAPE: parts [num_parts] does not cut `tensor` into `devices` equal blocks; see ditto_split. */
ditto_status dti_split_check(const ditto_tensor *tensor, const uint32_t *parts, uint32_t num_parts,
                             uint32_t devices);

/* Block `index` (row-major) of a tensor that passed the check: its shape, with data NULL. */
ditto_tensor dti_split_block(const ditto_tensor *tensor, const uint32_t *parts, uint32_t index);
/* Copies that block into block->data. */
void dti_split_copy(const ditto_tensor *tensor, const uint32_t *parts, const ditto_tensor *block);

#endif
