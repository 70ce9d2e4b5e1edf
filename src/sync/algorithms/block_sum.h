/* src/sync/algorithms/block_sum.h - sums over fixed blocks of a global row, as one replica sees them. */
#ifndef DTI_BLOCK_SUM_H
#define DTI_BLOCK_SUM_H

#include "sync/kernels/reduction.h"

#include <ditto/collective.h>

#include <stdalign.h>

struct dti_replica;

/* The largest number of subtrees of a span of blocks, which is two for each bit of a size_t. */
#define DTI_BLOCK_PARTS 128

/* The number of bytes of the largest accumulator. */
#define DTI_BLOCK_SUM_BYTES 16

struct dti_block_row;

/* Writes elements of the replica's own, `count` of them from number `first` on. Returns OK, or an error of
 * the user's function. */
typedef ditto_status dti_compute_elements(const struct dti_block_row *r, size_t first, size_t count,
                                          void *out);

struct dti_block_row {
    /* The replica's elements, or the first DITTO_BLOCK_ELEMENTS - 1 of them if they are computed. Other
     * replicas read these two members. No block of theirs has more elements of this replica. */
    const char *values;
    size_t count;

    /* NULL if the elements are in memory. */
    dti_compute_elements *compute;

    /* The two factors of a dot product, whose products are the elements. */
    const char *factor[2];

    /* The user's function that computes elements, and its argument. */
    ditto_elements_fn function;
    void *user;

    /* The first error of the function, or OK. After an error no more elements are computed. */
    ditto_status status;

    struct dti_reduction reduction;
    uint8_t dtype;
    struct dti_replica *self;
    uint32_t n; /* replicas */

    /* [n + 1] Where each replica's elements begin in the row. */
    const size_t *start;

    /* [n] The elements of each replica. Of a replica of another host only those are there that the first
     * DITTO_BLOCK_ELEMENTS - 1 elements of that host contain. */
    const char *const *data;

    /* The number of this replica's subtrees of blocks, and their sums. Other replicas read the sums. */
    uint32_t parts;
    alignas(DTI_BLOCK_SUM_BYTES) unsigned char part[DTI_BLOCK_PARTS * DTI_BLOCK_SUM_BYTES];
};

/* Sets where the elements of the next replica begin, if `replica` has `count`. Fails with RANGE if their
 * number overflows, which all replicas find alike. */
ditto_status dti_block_row_append(size_t *start, uint32_t replica, size_t count);

/* Finds the subtrees of the blocks that belong to a replica. Returns their number. */
uint32_t dti_block_row_subtrees(const struct dti_block_row *r, uint32_t replica, struct dti_span *part);

/* Sums the blocks of this replica. `start` and `data` are set. Returns OK, or an error of the user's
 * function. */
ditto_status dti_block_row_sum_own(struct dti_block_row *r);

/* Returns the sums of the subtrees of a replica, which has `parts` of them. */
typedef const unsigned char *dti_block_sums_of(void *context, const struct dti_block_row *r, uint32_t replica,
                                               uint32_t parts);

/* Combines the sums of all replicas, and writes the result. */
void dti_block_row_finish(const struct dti_block_row *r, dti_block_sums_of *sums_of, void *context,
                          void *dst);

#endif
