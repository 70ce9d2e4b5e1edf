/* src/sync/meeting/call.h - the call of a replica, its comparison with others, and its description. */
#ifndef DTI_CALL_H
#define DTI_CALL_H

#include <ditto/collective.h>

#include "base/text/text.h"

#define DTI_NO_ROOT UINT32_MAX

/* The room for a label and its end. */
#define DTI_LABEL_BYTES (DITTO_MAX_LABEL_BYTES + 1)

/* Which part of the data a collective moves, and where it moves it (flow.h). */
enum dti_pattern {
    /* Barriers and joint work (sync.h). The collective itself moves no data. */
    DTI_PATTERN_NOTHING,

    DTI_PATTERN_ALL_REDUCE,
    DTI_PATTERN_LIST,
    DTI_PATTERN_REDUCE,
    DTI_PATTERN_BROADCAST,
    DTI_PATTERN_REDUCE_SCATTER,
    DTI_PATTERN_ALL_GATHER,

    /* Parts that are moved from each replica to the root, from the root to each replica, and from each to
     * each. If parts differ in size, neighbours.c moves them. */
    DTI_PATTERN_GATHER,
    DTI_PATTERN_SCATTER,
    DTI_PATTERN_ALL_TO_ALL,

    /* A reduction into a target (sync.h), instead of the callers' own buffers. */
    DTI_PATTERN_TARGET,

    /* slices.c and block_sum.c move the data of these two. */
    DTI_PATTERN_SLICES,
    DTI_PATTERN_BLOCKS,

    /* Each replica receives a combination of the first replicas (scan.c). */
    DTI_PATTERN_SCAN,
    DTI_PATTERN_SCAN_EXCLUSIVE,
};

/* The number of patterns. The assertion stands beside every table that has a row for each of them, and stops
 * the build when a pattern is added. Add the row as docs/recipes.md describes, and then increase the
 * number. */
enum { DTI_NUM_PATTERNS = DTI_PATTERN_SCAN_EXCLUSIVE + 1 };
#define DTI_KNOWS_PATTERNS(number) \
    _Static_assert(DTI_NUM_PATTERNS == (number), "a pattern was added: see docs/recipes.md")

/* The members up to `hash` must be equal on all replicas. Otherwise the replicas have diverged. */
struct dti_call {
    /* The name of the public function, a constant string: "ditto_all_reduce". */
    const char *name;

    /* The name of the object that the call is on, or NULL. Its address distinguishes objects of one name. */
    const char *object;

    /* The number of elements, or of the largest part if parts differ. For a call with items it is their
     * number, for slices the number of elements of a row, and for a merge_call the number of arguments. */
    size_t count;
    size_t element_bytes;

    /* For a call with items: the number of items of the whole list. A long list is split into several calls
     * (packs), and `count` is the number of items in this one. For an all-to-all whose parts may differ in
     * size: the number of parts. */
    size_t whole;
    uint32_t root;
    uint8_t pattern;
    uint8_t dtype; /* 0 if there is none */
    uint8_t op;    /* 0 if there is none */
    uint8_t implementation;

    /* A hash of everything else that must agree: counts, the items of a list, a function, labels. */
    uint64_t hash;

    /* The members from here on may differ between replicas. */
    const void *src;
    void *dst;

    /* [count] The items of a list, or of a reduction into a target. The first is item `before` of the
     * whole list. */
    const ditto_list_item *list;
    size_t before;

    /* [n] The sizes of parts that differ. NULL if all parts have `count` elements. */
    const size_t *counts;

    /* Additional data of the call (dti_combine_call, slices.c, block_sum.c, neighbours.c,
     * dti_do_joint_work). */
    const void *more;

    /* Not 0 if the replica keeps the call for equal calls (known_calls.h). Two calls of one replica that have
     * the same number are identical. */
    uint64_t known_number;

    /* The digest of the call if it is kept or announced. */
    uint32_t digest;

    /* The call moves internal data of the library, so messages leave out the size. */
    bool is_internal;

    /* The label, or NULL. The text may be the caller's. It stays as it is until the replica leaves the call,
     * as the items of a list do. */
    const char *label;
};

/* -- Any thread, at any time -- */
/* Returns true if the elements, and therefore the dtypes, are those of the items of a list. */
static inline bool dti_call_has_items(const struct dti_call *call)
{
    return call->pattern == DTI_PATTERN_LIST || (call->pattern == DTI_PATTERN_TARGET && call->list != NULL);
}
/* Returns true if a part of its own is moved to or from each replica, and no replica receives the parts of
 * another one. */
static inline bool dti_call_moves_parts(const struct dti_call *call)
{
    return call->pattern == DTI_PATTERN_GATHER || call->pattern == DTI_PATTERN_SCATTER ||
           call->pattern == DTI_PATTERN_ALL_TO_ALL;
}

/* Returns true for a scan of either kind. */
static inline bool dti_call_scans(const struct dti_call *call)
{
    return call->pattern == DTI_PATTERN_SCAN || call->pattern == DTI_PATTERN_SCAN_EXCLUSIVE;
}
/* Compares all members that must be equal on all replicas. */
bool dti_call_same(const struct dti_call *a, const struct dti_call *b);
/* Compares the members that may differ between replicas too. */
bool dti_call_identical(const struct dti_call *a, const struct dti_call *b);
/* Returns a digest of 32 bits of the members that must be equal on all replicas. `whole` is left out, because
 * `hash` differs if it does. */
uint32_t dti_call_digest(const struct dti_call *call);
/* Writes for example "ditto_all_reduce #3 (100 x f32, SUM)". */
void dti_call_describe(const struct dti_call *call, uint64_t number, struct dti_text *text);
/* Writes where two different calls differ, if dti_call_describe does not show it, for example in an item of
 * their lists. Their lists, counts and tensors must be readable. */
void dti_call_difference(const struct dti_call *a, const struct dti_call *b, uint32_t n,
                         struct dti_text *text);

#endif
