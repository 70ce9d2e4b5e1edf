/* src/replicas/helpers/loop_range.h - cuts a loop into pieces. All functions are pure. */
#ifndef DTI_LOOP_RANGE_H
#define DTI_LOOP_RANGE_H

#include <stddef.h>
#include <stdint.h>

struct dti_loop_range {
    size_t begin;
    size_t end;   /* begin <= end */
    size_t grain; /* the number of indices in a piece, at least 1 */
};

/* Returns the number of pieces in a range. The last piece may be shorter than `grain`. */
static inline size_t dti_loop_range_pieces(const struct dti_loop_range *range)
{
    size_t length = range->end - range->begin;
    return length / range->grain + (length % range->grain != 0);
}

/* Returns the index at which piece number `piece` starts, or the end of the range if there are fewer
 * pieces. */
static inline size_t dti_loop_range_start(const struct dti_loop_range *range, size_t piece)
{
    return piece >= dti_loop_range_pieces(range) ? range->end : range->begin + piece * range->grain;
}

/* Returns the first piece of part `part` of `parts`. Parts are contiguous. Their numbers of pieces differ by
 * at most one. */
static inline size_t dti_loop_range_part(const struct dti_loop_range *range, uint32_t part, uint32_t parts)
{
    size_t pieces = dti_loop_range_pieces(range), each = pieces / parts, more = pieces % parts;
    return part * each + (part < more ? part : more);
}

#endif
