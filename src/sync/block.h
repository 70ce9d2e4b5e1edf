/* src/sync/block.h - sums over fixed blocks of a global row: bits that do not depend on the number of replicas. */
#ifndef DTI_BLOCK_H
#define DTI_BLOCK_H

#include "sync/call.h"

struct dti_replica;

/* The replica's own thread: the collective behind ditto_block_sum. call: src, dst, dtype. */
ditto_status dti_block_sum(struct dti_replica *self, const struct dti_call *call, size_t count,
                           struct dti_deadline *deadline);

#endif
