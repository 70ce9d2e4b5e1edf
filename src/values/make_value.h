/* src/values/make_value.h - functions that fill a new distributed value. The caller has made `value` of the
 * right kind, and drops it if the function fails. */
#ifndef DTI_MAKE_VALUE_H
#define DTI_MAKE_VALUE_H

#include "values/buffer_pool.h"

/* -- Cross-replica context -- */
ditto_status dti_make_from_function(ditto_value *value, ditto_value_fn function, void *user);
ditto_status dti_make_from_tensors(ditto_value *value, const ditto_tensor *tensors, uint32_t each);
ditto_status dti_make_from_slices(ditto_value *value, const ditto_slices *slices, size_t dense_rows);
ditto_status dti_make_nest(ditto_value *nest, const char *const *names, const ditto_value *const *members,
                           uint32_t count);
ditto_status dti_regroup(ditto_strategy *strategy, const ditto_value *const *values, bool wrap,
                         ditto_value **out);

/* -- The replica's own thread -- */
ditto_status dti_slices_copy(struct dti_buffer_pool *pool, const ditto_slices *from,
                             struct dti_value_buffer **component, ditto_tensor *part, int64_t **index);

/* -- Pure -- */
ditto_status dti_slices_check(const ditto_slices *slices, size_t dense_rows, uint32_t replica);
ditto_status dti_check_alike(const ditto_tensor *first, const ditto_tensor *t, uint32_t replica);

#endif
