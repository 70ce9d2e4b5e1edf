/* src/vars/variables/slices.h - variables that are sliced over replicas (DITTO_PARTITION_BY_REPLICA).
 *
 * A slice is a piece of the variable, with a copy for each NUMA node of the replicas that mirror it. In
 * memory it lies like a tensor of its own, which has fewer indices in the sliced dimension. If that is not
 * the first dimension, the elements of a slice are no contiguous range of the variable. So elements have a
 * second order: that of the pieces, one slice after the other. */
#ifndef DTI_SLICES_H
#define DTI_SLICES_H

#include "vars/vars.h"

/* -- Cross context, between dti_cross_enter and dti_cross_leave -- */

/* Finds out how the variable is sliced, and keeps the groupings that it needs from being destroyed. Fails
 * with the errors of ditto_variable_create, and with CONTEXT if a grouping would have to be made in a run. */
ditto_status dti_slicing_make(ditto_variable *v, const ditto_variable_options *o);

/* Called when the copies have their addresses. */
void dti_slicing_see_copies(ditto_variable *v);

/* Gives up the groupings. Does nothing if the variable is not sliced. */
void dti_slicing_leave(ditto_variable *v);

/* -- Any thread -- */

void dti_slicing_free(struct dti_slicing *slicing);

/* Returns how many elements from `first` on, before `end`, lie contiguously, and in *at where they are in the
 * order of the pieces. */
size_t dti_slice_run_of(const ditto_variable *v, size_t first, size_t end, size_t *at);
static inline size_t dti_slice_run(const ditto_variable *v, size_t first, size_t end, size_t *at)
{
    *at = first;
    return v->order.slices == 0 || v->order.axis == 0 ? end - first : dti_slice_run_of(v, first, end, at);
}

#endif
