/* src/input/rebatch.c - sizes of per-replica batches. Pure. */
#include "input/rebatch.h"

uint64_t dti_rebatch_full(uint64_t global, uint32_t n, uint32_t r)
{
    return global / n + (r < global % n);
}

uint64_t dti_rebatch_share(uint64_t rows, uint64_t global, uint32_t n, uint32_t r, bool even)
{
    if (even)
        return dti_rebatch_full(rows, n, r);
    uint64_t more = global % n, before = global / n * r + (r < more ? r : more); /* rows of the replicas below r */
    uint64_t left = rows > before ? rows - before : 0, full = dti_rebatch_full(global, n, r);
    return left < full ? left : full;
}
