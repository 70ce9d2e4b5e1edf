/* src/replicas/helpers/device_tensor.h - copies of a tensor, or of its blocks, for devices. */
#ifndef DTI_DEVICE_TENSOR_H
#define DTI_DEVICE_TENSOR_H

#include <ditto/tensor.h>

#include "replicas/team/replica.h"

/* -- The leader, in its function -- */

/* Makes one copy for each of `count` devices. out[i] is for device first_device + i, which copies it into
 * memory on its node. It is block i of `from` (see dti_split_check), or all of `from` if parts is NULL. `out`
 * is written only on DITTO_OK. The caller frees the data of each copy with dti_replica_free. The call waits
 * for functions that these devices were given before. Errors: those of dti_device_alloc, FORKED, and the
 * status of a stopped run. */
ditto_status dti_devices_copy(struct dti_replica *replica, const ditto_tensor *from, const uint32_t *parts,
                              uint32_t first_device, uint32_t count, ditto_tensor *out);

/* -- Any thread: cutting a tensor into equal blocks. These functions are pure, except that dti_split_copy
 * writes the block -- */

/* Returns SHAPE if parts [num_parts] does not cut `tensor` into `devices` equal blocks. See ditto_split. */
ditto_status dti_split_check(const ditto_tensor *tensor, const uint32_t *parts, uint32_t num_parts,
                             uint32_t devices);

/* Returns block `index` (in row-major order) of a tensor that passed the check. Its data is NULL. */
ditto_tensor dti_split_block(const ditto_tensor *tensor, const uint32_t *parts, uint32_t index);
/* Copies the elements of such a block into block->data. */
void dti_split_copy(const ditto_tensor *tensor, const uint32_t *parts, const ditto_tensor *block);

#endif
