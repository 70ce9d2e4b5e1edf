/* src/values/reductions/reductions.h - distributed values combined into one. The values are checked to be of the strategy,
 * and their variables are held. */
#ifndef DTI_REDUCTIONS_H
#define DTI_REDUCTIONS_H

#include <ditto/reduce.h>
#include <ditto/tensor.h>

#include "strategy/strategy.h"

/* -- Cross context -- */
/* axes NULL: none. */
ditto_status dti_reduce_value(ditto_strategy *strategy, ditto_op op, const ditto_value *value,
                              const int32_t *axes, uint32_t num_axes, ditto_value **out);
ditto_status dti_gather_value(ditto_strategy *strategy, const ditto_value *value, uint32_t axis,
                              ditto_value **out);
ditto_status dti_merge_slices(const ditto_value *slices, ditto_value **out);
/* All pairs in one meeting. Places are checked. On failure nothing is set. */
ditto_status dti_reduce_to_destinations(ditto_strategy *strategy, ditto_op op,
                                        const ditto_value *const *values, const ditto_places *destinations,
                                        uint32_t count, ditto_value **out);

ditto_status dti_broadcast_to_destinations(ditto_strategy *strategy, const ditto_tensor *tensor,
                                           const ditto_places *destinations, ditto_value **out);

/* -- The replica's own thread -- */
ditto_status dti_all_gather_tensor(ditto_replica *self, struct dti_replica *r, const ditto_tensor *in,
                                   uint32_t axis, ditto_tensor *out);

/* -- Pure, and what they share -- */
/* Is this value one that is the same for all replicas? */
bool dti_is_one_value(const ditto_value *value);
/* SUM, MEAN, MIN, MAX, PROD of this dtype; else RANGE, UNSUPPORTED, INVALID. */
ditto_status dti_reduce_check(ditto_op op, ditto_dtype dtype);
/* INVALID: a value that is the same for all would count N times. */
ditto_status dti_reduce_check_once(const ditto_strategy *strategy, ditto_op op);
ditto_dtype dti_reduce_dtype(ditto_op op, ditto_dtype dtype); /* of the result: f64 of a mean of integers */
/* SHAPE: parts differ in shape. */
ditto_status dti_reduce_check_shapes(const ditto_tensor *part, uint32_t n);
/* Elements [first, end) of the reduction of `n` parts of one shape, into dst + first. NO_MEMORY. */
ditto_status dti_reduce_range(ditto_op op, const ditto_tensor *part, uint32_t n, size_t first, size_t end,
                              void *dst);
/* The slices of all replicas, in order, as one value. */
ditto_status dti_concatenate_slices(const ditto_value *value, ditto_op op, ditto_value **out);
/* Their sum, as a dense array of zeros and their rows: into `dst`, of [rows, row_count]. RANGE, NO_MEMORY. */
ditto_status dti_slices_to_dense(const ditto_value *value, ditto_op op, size_t rows, void *dst);

/* Components laid side by side along an axis. Pure. */

/* In this order: SHAPE scalars, SHAPE ranks, RANGE axis, SHAPE another dimension. Data is not looked at. */
ditto_status dti_gather_check(const ditto_tensor *part, uint32_t n, uint32_t axis);
/* What comes out, without data. RANGE: more than memory has. */
ditto_status dti_gather_shape(const ditto_tensor *part, uint32_t n, uint32_t axis, ditto_tensor *whole);
/* One part, after `before` entries along the axis. */
void dti_gather_copy(const ditto_tensor *part, uint32_t axis, size_t before, const ditto_tensor *whole);

#endif
