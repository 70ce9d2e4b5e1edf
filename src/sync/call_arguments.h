/* src/sync/call_arguments.h - checks the arguments of a collective and fills in its call. */
#ifndef DTI_CALL_ARGUMENTS_H
#define DTI_CALL_ARGUMENTS_H

#include "replicas/team/replica.h"
#include "sync/meeting/call.h"

struct dti_arguments {
    struct dti_replica *replica;

    /* The caller's options. Fields that the caller left at 0 have the strategy's values. */
    ditto_reduce_options options;

    struct dti_deadline deadline;
    struct dti_call call;
};

/* Finds the calling replica, or its copy in the group of the options, and sets the name, pattern and
 * implementation of its call. Checks and copies the options. `flags` are the flags that the function knows.
 * Fails with CONTEXT, or because of the options with INVALID, UNSUPPORTED or RANGE. */
ditto_status dti_arguments_begin(struct dti_arguments *a, ditto_replica *self, const char *name,
                                 enum dti_pattern pattern, const ditto_reduce_options *options,
                                 uint32_t flags);

/* Fails with RANGE if there is no replica `root`. */
ditto_status dti_arguments_root(struct dti_arguments *a, uint32_t root);

/* Checks buffers of src_count and dst_count elements that are moved and not combined. Fails with INVALID or
 * RANGE. In patterns whose two buffers have the same length, they must be the same buffer or not overlap. */
ditto_status dti_arguments_move(struct dti_arguments *a, const void *src, void *dst, size_t src_count,
                                size_t dst_count, ditto_dtype dtype);

/* As dti_arguments_move, for elements that are combined by op. Also fails with UNSUPPORTED. */
ditto_status dti_arguments_reduce(struct dti_arguments *a, const void *src, void *dst, size_t src_count,
                                  size_t dst_count, ditto_dtype dtype, ditto_op op);

/* As dti_arguments_reduce for a reduce-scatter, and dti_arguments_move for an all-gather. Part i has
 * counts[i] elements, or `count` elements if counts is NULL. They also fail with RANGE if the sum of the
 * parts overflows, and with INVALID if the buffers overlap unless the smaller one is this replica's own part
 * of the larger one. */
ditto_status dti_arguments_scatter(struct dti_arguments *a, const void *src, void *dst, size_t count,
                                   const size_t *counts, ditto_dtype dtype, ditto_op op);
ditto_status dti_arguments_gather(struct dti_arguments *a, const void *src, void *dst, size_t count,
                                  const size_t *counts, ditto_dtype dtype);

/* The same for a call that moves equal parts (dti_call_moves_parts), whose root is set. A buffer that this
 * replica has no use for, because it is not the root, is not looked at. */
ditto_status dti_arguments_parts(struct dti_arguments *a, const void *src, void *dst, size_t count,
                                 ditto_dtype dtype);

/* Executes a call that moves parts of different sizes, whose root is set. If there is a root, both sides of
 * `sizes` are equal. api_exchange.c has the function. Fails with INVALID or RANGE because of its arguments,
 * and as a collective does. */
ditto_status dti_move_uneven_parts(struct dti_arguments *a, const void *src, void *dst,
                                   const ditto_all_to_all_parts *sizes, ditto_dtype dtype);

/* Adds the numbers of elements of all parts to a call. Part i has counts[i] elements. Fails with RANGE if
 * their sum overflows. */
ditto_status dti_arguments_counts(struct dti_arguments *a, const size_t *counts);

/* Checks every item of a list, and that no destination overlaps a buffer of another item. Fails with INVALID,
 * RANGE, UNSUPPORTED or NO_MEMORY. */
ditto_status dti_arguments_list(struct dti_arguments *a, const ditto_list_item *list, size_t length,
                                ditto_op op);

#endif
