/* include/ditto/loss.h - scales losses so that their SUM over replicas is the mean over the global batch.
 *
 * The functions are called in replica context. They do not wait for other replicas. */
#ifndef DITTO_LOSS_H
#define DITTO_LOSS_H

#include <ditto/replica.h>
#include <ditto/tensor.h>

DITTO_BEGIN

/** Computes the sum of a replica's per-example losses, divided by the global batch size G.
 *
 *      *out = (sum over i of losses[i] * weights[i]) / G
 *
 *  The sum is computed in f64, in the order of ditto_block_sum. If there are no losses, it is 0.
 *
 *  In a last step with fewer rows, G is the sum of ditto_batch.rows over the replicas, which the program
 *  computes by an all-reduce. If it gives the G of a full step instead, as TensorFlow's guides do, each row
 *  has the same weight in all steps, and the results of the last step add up to less than the mean.
 *
 *  @param self          the calling replica
 *  @param losses        a tensor of rank 1 or more, of a real floating dtype. Its first dimension is the
 *                       batch
 *  @param weights       a tensor of the same dtype: one weight for each loss (the shape of `losses`), for
 *                       each example (rank 1, the first dimension of `losses`), or for all (a scalar). NULL
 *                       means that all weights are 1. The weights do not change G
 *  @param global_batch  G. 0 means the first dimension of `losses` times the number of replicas. This is
 *                       right if all replicas have equally many rows, which is not certain in a last,
 *                       smaller step
 *  @param out           [out] the result
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_SHAPE        `losses` has rank 0, or `weights` has another shape
 *  @retval DITTO_ERR_UNSUPPORTED  the losses or the weights are integers, complex numbers or bool
 *  @retval DITTO_ERR_INVALID      a pointer is NULL or misaligned, the weights have another dtype, or a
 *                                 tensor has an invalid dtype or rank
 *  @retval DITTO_ERR_RANGE        the size of a tensor overflows
 *  @retval DITTO_ERR_CONTEXT      `self` is not the calling thread's own replica
 *  @par Cost
 *  Reads each loss and each weight once. There is no meeting. */
DITTO_API DITTO_NODISCARD ditto_status ditto_average_loss(ditto_replica *self, const ditto_tensor *losses,
                                                          const ditto_tensor *weights, uint64_t global_batch,
                                                          double *out);

DITTO_END
#endif
