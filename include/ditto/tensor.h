/* include/ditto/tensor.h - a view of a dense, row-major array. */
#ifndef DITTO_TENSOR_H
#define DITTO_TENSOR_H

#include <ditto/dtype.h>

DITTO_BEGIN

/** @defgroup ditto_tensors Tensors
 *  Views of arrays, and their sizes.
 *  @{ */

/** Largest number of dimensions of a tensor. */
#define DITTO_MAX_RANK 8

/** A view of a dense, row-major array. It owns no memory, and copying it is cheap. The function that returns
 *  a view says who owns its memory.
 *
 *      static ditto_tensor view_of(double *x, size_t n)
 *      {
 *          return (ditto_tensor){ .data = x, .dtype = DITTO_F64, .rank = 1, .shape = { n } };
 *      } */
typedef struct ditto_tensor {
    /** The elements, row-major, aligned for their dtype. It may be NULL if a dimension is 0. */
    void *data;

    ditto_dtype dtype; /**< dtype of the elements */
    uint32_t rank;     /**< number of dimensions, at most DITTO_MAX_RANK; 0: a scalar */

    /** [rank] the dimensions, in elements. The entries from `rank` on are ignored. But if rank is 0, shape[0]
     *  must be 0. Functions that take a tensor return DITTO_ERR_INVALID otherwise, because the program may
     *  have forgotten to set rank. They do the same if rank is larger than DITTO_MAX_RANK. */
    size_t shape[DITTO_MAX_RANK];

    /** Number of the logical device (ditto/device.h) to which the tensor was assigned. 0 means the leader of
     *  its replica, or no device. */
    uint32_t device;
} ditto_tensor;

/** Returns the number of bytes of a tensor's elements.
 *
 *  @param tensor  the tensor
 *  @return the number. It is also 0 if it overflows, the rank is above DITTO_MAX_RANK, or dtype is not a
 *          value of the enum
 *  @par Thread safety
 *  Any thread may call it. */
DITTO_API size_t ditto_tensor_bytes(const ditto_tensor *tensor);

/** @} */

DITTO_END
#endif
