/* src/values/reductions/reductions.h - reduces and gathers distributed values. The caller has checked that
 * the values belong to the strategy, and holds their variables. */
#ifndef DTI_REDUCTIONS_H
#define DTI_REDUCTIONS_H

#include <ditto/reduce.h>

#include "replicas/team/replica.h"
#include "sync/kernels/tree.h"
#include "values/values.h"

/* -- Cross-replica context -- */
/* Reduces a value over replicas. If axes is not NULL, reduces also along these axes. A plain value without
 * axes is returned as it is, with a further reference. */
ditto_status dti_reduce_value(ditto_strategy *strategy, ditto_op op, const ditto_value *value,
                              const int32_t *axes, uint32_t num_axes, ditto_value **out);
ditto_status dti_gather_value(ditto_strategy *strategy, const ditto_value *value, uint32_t axis,
                              ditto_value **out);
/* Makes slices in which each row number occurs once. Slices that have the same row number are added up. */
ditto_status dti_merge_slices(const ditto_value *slices, ditto_value **out);
/* Reduces values[i] to destinations[i], all of them in one job with one meeting. The destinations have been
 * checked. After an error no output is set. */
ditto_status dti_reduce_to_destinations(ditto_strategy *strategy, ditto_op op,
                                        const ditto_value *const *values,
                                        const ditto_destination *destinations, uint32_t count,
                                        ditto_value **out);

/* Returns a hash of destinations that is equal on all hosts. */
uint64_t dti_destination_hash(const ditto_destination *destinations);

ditto_status dti_broadcast_to_destinations(ditto_strategy *strategy, const ditto_tensor *tensor,
                                           const ditto_destination *destinations, ditto_value **out);

/* -- The replica's own thread -- */
ditto_status dti_all_gather_tensor(ditto_replica *self, struct dti_replica *r, const ditto_tensor *in,
                                   uint32_t axis, ditto_tensor *out);
ditto_status dti_all_to_all_tensor(ditto_replica *self, struct dti_replica *r, const ditto_tensor *in,
                                   uint32_t split_axis, uint32_t concat_axis, ditto_tensor *out);
/* Gathers the dtypes and shapes of all replicas' tensors in part[n], without data, and checks that they can
 * be gathered along `axis` and that both axes are equal on all replicas. all_gather.c has the function.
 * `name` is the public one. Returns INVALID, SHAPE or RANGE on all replicas, or an error of a collective. */
ditto_status dti_all_gather_shapes(ditto_replica *self, struct dti_replica *r, const char *name,
                                   const ditto_tensor *in, uint32_t axis, uint32_t split_axis,
                                   ditto_tensor *part);

/* -- Pure functions, which several reductions use -- */
/* Returns true if the value counts as one value for all replicas: it is plain, mirrored, or a mirrored
 * variable, whose components may differ all the same. */
bool dti_is_one_value(const ditto_value *value);
/* Returns true if each host has the value, so that it is read there without the other hosts. */
bool dti_is_read_alone(const ditto_value *value);

/* The parts of the replicas of all hosts, which all hosts open together. The value is a tensor. */
struct dti_all_parts {
    const ditto_tensor *part;
    uint32_t n;
    struct dti_value_parts local;
    void *memory; /* of the parts of all hosts, or NULL */
};
/* Fails with NO_MEMORY, with UNSUPPORTED if there are too many replicas, and as dti_cross_gather does.
 * `digest` is of what the call was given beside the value. A value that each host has is read without the
 * others: each replica of another host has the part of this one's first replica. */
ditto_status dti_all_parts_open(const ditto_value *value, uint64_t digest, struct dti_all_parts *parts);
void dti_all_parts_close(struct dti_all_parts *parts);
/* Checks that op is SUM, MEAN, MIN, MAX or PROD and can reduce the dtype. Returns DITTO_ERR_RANGE,
 * DITTO_ERR_UNSUPPORTED or DITTO_ERR_INVALID. */
ditto_status dti_reduce_check(ditto_op op, ditto_dtype dtype);
/* The operator is to be applied to a value that is the same for all N replicas. Returns DITTO_ERR_INVALID if
 * it would count this value N times. */
ditto_status dti_reduce_check_once(const ditto_strategy *strategy, ditto_op op);
/* Returns the dtype of the result, which is f64 for a mean of integers. */
ditto_dtype dti_reduce_dtype(ditto_op op, ditto_dtype dtype);
/* Returns DITTO_ERR_SHAPE if the parts differ in shape. */
ditto_status dti_reduce_check_shapes(const ditto_tensor *part, uint32_t n);
/* Reduces elements [first, end) of tree->n parts of the same shape into dst, along the tree. The index of an
 * element is the same in all parts and in dst. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_reduce_range(ditto_op op, const ditto_tensor *part, const struct dti_tree *tree,
                              size_t first, size_t end, void *dst);
/* Makes one value of the slices of all replicas, in the order of the replicas. `destination` is compared over
 * hosts, here and below: dti_destination_hash, or 0. */
ditto_status dti_concatenate_slices(const ditto_value *value, ditto_op op, uint64_t destination,
                                    ditto_value **out);
/* Reduces slices into the dense array `dst` of shape [rows, row_count]. Rows without slices are zero. Returns
 * DITTO_ERR_RANGE if a slice has no row in the array, DITTO_ERR_NO_MEMORY, or the error of an operator that
 * slices do not have. */
ditto_status dti_slices_to_dense(const ditto_value *value, ditto_op op, uint64_t destination, size_t rows,
                                 void *dst);

/* Gathering concatenates components along an axis. These functions are pure. */

/* Checks tensors that are to be gathered, without reading their data. In this order, returns DITTO_ERR_SHAPE
 * if they are scalars or their ranks differ, DITTO_ERR_RANGE if there is no such axis, and DITTO_ERR_SHAPE if
 * the size of another axis differs. */
ditto_status dti_gather_check(const ditto_tensor *part, uint32_t n, uint32_t axis);
/* Sets *whole to the dtype and shape of the result, without data. Returns DITTO_ERR_RANGE if size_t cannot
 * hold its size. */
ditto_status dti_gather_shape(const ditto_tensor *part, uint32_t n, uint32_t axis, ditto_tensor *whole);
/* Copies one part into whole->data, after the first `before` entries along the axis. */
void dti_gather_copy(const ditto_tensor *part, uint32_t axis, size_t before, const ditto_tensor *whole);

#endif
