/* src/sync/meeting/call.h - what a replica calls: compared between replicas, and told in messages. */
#ifndef DTI_CALL_H
#define DTI_CALL_H

#include <ditto/collective.h>
#include <ditto/slices.h>

#include "base/base.h"

#define DTI_NO_ROOT UINT32_MAX

/* Which part of the data a collective moves where (flow.h). */
enum dti_pattern {
    DTI_PATTERN_NOTHING, /* a barrier */
    DTI_PATTERN_ALL_REDUCE,
    DTI_PATTERN_LIST,
    DTI_PATTERN_REDUCE,
    DTI_PATTERN_BROADCAST,
    DTI_PATTERN_REDUCE_SCATTER,
    DTI_PATTERN_ALL_GATHER,
    DTI_PATTERN_TARGET, /* an all-reduce into copies that are nobody's own (variables) */
    DTI_PATTERN_SLICES,
    DTI_PATTERN_BLOCKS,
};

/* The fields up to `hash` are the same on all replicas, or they have diverged. */
struct dti_call {
    const char *name;   /* constant text, the public function's: "ditto_all_reduce" */
    const char *object; /* the variable's own name, or NULL; its address tells variables of one name apart */
    /* The number of elements, or of the largest part if parts differ; of a list the number of its items; of a
     * merge_call the number of its arguments. */
    size_t count;
    size_t element_bytes;
    size_t whole; /* items of the whole list, of which this call is a pack */
    uint32_t root;
    uint8_t pattern, dtype, op, implementation; /* dtype and op 0 where there is none */
    uint64_t hash; /* of all else that must agree: counts, a list's items, a function */
    /* this replica's own */
    const void *src;
    void *dst;
    const ditto_list_item *
        list; /* [count], of a list: items `before` and following of the whole one; of an update of several */
    size_t before;
    const size_t *counts; /* [n], of parts that differ; NULL: all have `count` */
    /* What else the pattern needs (dti_combine_call, slices.c, block_sum.c). ditto_all_reduce_tensor: the tensor. */
    const void *more;
    bool is_internal; /* it moves data of the library's own, so messages leave the size out */
};

/* Any thread, any moment. */
static inline bool dti_call_has_items(
    const struct dti_call *call) /* elements are its items', and so is their dtype */
{
    return call->pattern == DTI_PATTERN_LIST || (call->pattern == DTI_PATTERN_TARGET && call->list != NULL);
}
bool dti_call_same(const struct dti_call *a, const struct dti_call *b);
bool dti_call_identical(const struct dti_call *a, const struct dti_call *b); /* its own fields too */
uint32_t dti_call_digest(const struct dti_call *call); /* 32 bits of all that must be the same */
uint64_t dti_hash(uint64_t seed, uint64_t value);      /* to build `hash`: one word more */
/* "ditto_all_reduce #3 (100 x f32, SUM)" */
void dti_call_describe(const struct dti_call *call, uint64_t number, struct dti_text *text);
/* The callers' lists or counts are different: where. They can be read. */
void dti_call_difference(const struct dti_call *a, const struct dti_call *b, uint32_t n,
                         struct dti_text *text);

#endif
