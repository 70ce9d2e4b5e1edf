/* src/replicas/split.h - cutting a tensor into equal blocks. Pure. */
#ifndef DTI_SPLIT_H
#define DTI_SPLIT_H

#include <ditto/tensor.h>

/* SHAPE: parts [num_parts] does not cut `tensor` into `devices` equal blocks; see ditto_split. */
ditto_status dti_split_check(const ditto_tensor *tensor, const uint32_t *parts, uint32_t num_parts, uint32_t devices);

/* Block `index` (row-major) of a tensor that passed the check: its shape, with data NULL. */
ditto_tensor dti_split_block(const ditto_tensor *tensor, const uint32_t *parts, uint32_t index);
/* Copies that block into block->data. */
void dti_split_copy(const ditto_tensor *tensor, const uint32_t *parts, const ditto_tensor *block);

#endif
