/* src/values/make_value.h - functions that fill a new distributed value. The caller of a function with a
 * parameter `value` or `nest` has made it of the right kind, and drops it if the function fails. */
#ifndef DTI_MAKE_VALUE_H
#define DTI_MAKE_VALUE_H

#include "values/buffer_pool.h"

/* -- Cross-replica context -- */
/* Calls the function once for each replica, on the calling thread. Each replica copies its component. */
ditto_status dti_make_from_function(ditto_value *value, ditto_value_fn function, void *user);
/* Copies `each` tensors to each replica. If `each` is above 1, they are stacked along a new first axis. */
ditto_status dti_make_from_tensors(ditto_value *value, const ditto_tensor *tensors, uint32_t each);
/* Copies slices[i] to replica i. */
ditto_status dti_make_from_slices(ditto_value *value, const ditto_slices *slices, size_t dense_rows);
/* Adds the members to the nest, which takes a reference to each. If names is NULL, they are numbered. */
ditto_status dti_make_nest(ditto_value *nest, const char *const *names, const ditto_value *const *members,
                           uint32_t count);
/* Makes one value of values[replicas], where values[i] is for replica i (ditto_strategy_regroup). */
ditto_status dti_regroup(ditto_strategy *strategy, const ditto_value *const *values, bool wrap,
                         ditto_value **out);

/* -- The replica's own thread -- */
/* Copies slices to a buffer of the pool, which is stored in *component. Sets *part to the copy of the
 * elements, and *index to that of the row numbers. */
ditto_status dti_slices_copy(struct dti_buffer_pool *pool, const ditto_slices *from,
                             struct dti_value_buffer **component, ditto_tensor *part, int64_t **index);

/* -- Pure. `replica` is the replica that the message names. -- */
/* Checks the buffers, and that all row numbers are below dense_rows, unless that is 0. */
ditto_status dti_slices_check(const ditto_slices *slices, size_t dense_rows, uint32_t replica);
/* Returns DITTO_ERR_INVALID if the tensors of two replicas differ in dtype or rank. */
ditto_status dti_check_alike(const ditto_tensor *first, uint32_t first_replica, const ditto_tensor *t,
                             uint32_t replica);

#endif
