/* include/ditto/tensor.h - a view of a dense, row-major array. */
#ifndef DITTO_TENSOR_H
#define DITTO_TENSOR_H

#include <ditto/dtype.h>

DITTO_BEGIN

#define DITTO_MAX_RANK 8

/** A view: it owns nothing, copying it is cheap, its memory's owner is told where the view is handed out. */
typedef struct ditto_tensor {
    void *data; /**< row-major, aligned for its dtype; may be NULL when a dimension is 0 */
    ditto_dtype dtype;
    uint32_t rank; /**< 0: a scalar; at most DITTO_MAX_RANK */
    /** In elements. Entries from `rank` on are not looked at, but for the first: a scalar with shape[0]
     *  other than 0 is INVALID wherever a tensor is taken, because its rank was forgotten. */
    size_t shape[DITTO_MAX_RANK];
    uint32_t device; /**< logical device of its replica that it was assigned to; 0: the leader's, or none */
} ditto_tensor;

/** Elements of a tensor: the product of its dimensions (1 for a scalar).
 *  @return 0 also when the product overflows or the rank is above DITTO_MAX_RANK: no such array can exist. */
DITTO_API size_t ditto_tensor_count(const ditto_tensor *tensor);
/** Bytes of a tensor's elements; 0 as ditto_tensor_count. */
DITTO_API size_t ditto_tensor_bytes(const ditto_tensor *tensor);

DITTO_END
#endif
