/* src/sync/call_arguments.h - checking what a collective is called with, and making its call: shared by api_*.c. */
#ifndef DTI_CALL_ARGUMENTS_H
#define DTI_CALL_ARGUMENTS_H

#include "replicas/replicas.h"
#include "sync/meeting/call.h"

struct dti_arguments {
    struct dti_replica *replica;
    ditto_reduce_options options; /* the caller's, where it says nothing the strategy's */
    struct dti_deadline deadline;
    struct dti_call call;
};

/* CONTEXT: the call comes from a function that the user gave to another collective. */
ditto_status dti_not_calling(const struct dti_replica *replica, const char *name);
/* CONTEXT; INVALID, UNSUPPORTED, RANGE: options. `flags` are those that the function knows. */
ditto_status dti_arguments_begin(struct dti_arguments *a, ditto_replica *self, const char *name,
                                 enum dti_pattern pattern, const ditto_reduce_options *options,
                                 uint32_t flags);
/* RANGE. */
ditto_status dti_arguments_root(struct dti_arguments *a, uint32_t root);
/* Buffers with so many elements each. INVALID, RANGE. Where they are equally long they are equal or apart. */
ditto_status dti_arguments_move(struct dti_arguments *a, const void *src, void *dst, size_t src_count,
                                size_t dst_count, ditto_dtype dtype);
/* The same, combined by op. UNSUPPORTED too. */
ditto_status dti_arguments_reduce(struct dti_arguments *a, const void *src, void *dst, size_t src_count,
                                  size_t dst_count, ditto_dtype dtype, ditto_op op);
/* One part for each replica: `count` elements, or counts[i] if counts is not NULL. RANGE too: their sum. */
ditto_status dti_arguments_scatter(struct dti_arguments *a, const void *src, void *dst, size_t count,
                                   const size_t *counts, ditto_dtype dtype, ditto_op op);
ditto_status dti_arguments_gather(struct dti_arguments *a, const void *src, void *dst, size_t count,
                                  const size_t *counts, ditto_dtype dtype);
ditto_status dti_arguments_list(struct dti_arguments *a, const ditto_list_item *list, size_t length,
                                ditto_op op);

#endif
