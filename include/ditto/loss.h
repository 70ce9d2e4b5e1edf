/* include/ditto/loss.h - losses scaled so that their SUM over replicas is the mean over the global batch.
 *
 * Replica context, no meeting; CONTEXT elsewhere. */
#ifndef DITTO_LOSS_H
#define DITTO_LOSS_H

#include <ditto/replica.h>
#include <ditto/tensor.h>

DITTO_BEGIN

/** The sum of a replica's per-example losses, divided by the global batch size.
 *      *out = sum over i of losses[i] * weights[i] / G
 *
 *  @param losses        of rank 1 or more, a real floating dtype; the first dimension is the batch
 *  @param weights       NULL: 1. Else of the same dtype, and a shape that is the losses' or, of rank 1, their
 *                       first dimension, or a scalar: one weight for all. They do not change what is divided
 *                       by
 *  @param global_batch  G; 0: the replica's rows x the number of replicas (right where all replicas have as many)
 *  @retval DITTO_ERR_SHAPE        losses of rank 0; weights of another shape
 *  @retval DITTO_ERR_UNSUPPORTED  integers or complex numbers
 *  @retval DITTO_ERR_INVALID      a NULL; weights of another dtype
 *  The sum is one of f64, by the blocks of ditto_block_sum. No losses: 0. */
DITTO_API DITTO_NODISCARD ditto_status ditto_average_loss(ditto_replica *self, const ditto_tensor *losses,
                                                          const ditto_tensor *weights, uint64_t global_batch,
                                                          double *out);

/** A loss that every replica adds in full, such as a penalty on weights, divided by the number of replicas. */
DITTO_API DITTO_NODISCARD ditto_status ditto_scale_regularization(ditto_replica *self, double loss,
                                                                  double *out);

DITTO_END
#endif
