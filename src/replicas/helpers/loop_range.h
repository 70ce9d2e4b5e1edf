/* src/replicas/helpers/loop_range.h - cutting a loop into pieces. Pure. */
#ifndef DTI_LOOP_RANGE_H
#define DTI_LOOP_RANGE_H

#include <stddef.h>
#include <stdint.h>

struct dti_loop_range {
    size_t begin, end, grain; /* begin <= end, grain >= 1 */
};

/* Pieces of `grain` indices in a range; the last may be shorter. */
static inline size_t dti_loop_range_pieces(const struct dti_loop_range *range)
{
    size_t length = range->end - range->begin;
    return length / range->grain + (length % range->grain != 0);
}

/* Where piece number `piece` starts; the range's end for all numbers behind the last. */
static inline size_t dti_loop_range_start(const struct dti_loop_range *range, size_t piece)
{
    return piece >= dti_loop_range_pieces(range) ? range->end : range->begin + piece * range->grain;
}

/* The first piece of part `part` of `parts`: parts are contiguous, and their numbers of pieces differ by one at most. */
static inline size_t dti_loop_range_part(const struct dti_loop_range *range, uint32_t part, uint32_t parts)
{
    size_t pieces = dti_loop_range_pieces(range), each = pieces / parts, more = pieces % parts;
    return part * each + (part < more ? part : more);
}

#endif
