/* src/input/distribute/rebatch.c - sizes of per-replica batches. Pure. */
#include "input/distribute/rebatch.h"

uint64_t dti_rebatch_full(uint64_t global, uint32_t n, uint32_t r)
{
    return global / n + (r < global % n);
}

/* Rows of the first `places` of the W * R sizes. */
static uint64_t first_sizes(const struct dti_cut *cut, uint64_t places)
{
    uint64_t n = (uint64_t)cut->pipelines * cut->replicas, more = cut->global % n;
    return cut->global / n * places + (places < more ? places : more);
}

/* Rows of replicas below j in a full step. */
static uint64_t full_before(const struct dti_cut *cut, uint64_t step, uint32_t j)
{
    if (cut->each) {
        uint64_t rows;
        return __builtin_mul_overflow(cut->global, j, &rows) ? UINT64_MAX : rows;
    }
    uint64_t first = (cut->pipeline + step) % cut->pipelines * cut->replicas;
    return first_sizes(cut, first + j) - first_sizes(cut, first);
}

uint64_t dti_cut_full(const struct dti_cut *cut, uint64_t step, uint32_t j)
{
    return full_before(cut, step, j + 1) - full_before(cut, step, j);
}

uint64_t dti_cut_step(const struct dti_cut *cut, uint64_t step)
{
    return full_before(cut, step, cut->replicas);
}

uint64_t dti_cut_most_of_step(const struct dti_cut *cut)
{
    struct dti_cut first = *cut; /* sizes fall: the first R places have most */
    first.pipeline = 0;
    return dti_cut_step(&first, 0);
}

uint64_t dti_cut_most_of_batch(const struct dti_cut *cut)
{
    return cut->each ? cut->global : dti_rebatch_full(cut->global, cut->pipelines * cut->replicas, 0);
}

uint64_t dti_cut_before(const struct dti_cut *cut, uint64_t step, uint64_t rows, uint32_t j)
{
    if (cut->even && rows < dti_cut_step(cut, step)) {
        uint64_t more = rows % cut->replicas;
        return rows / cut->replicas * j + (j < more ? j : more);
    }
    uint64_t before = full_before(cut, step, j);
    return before < rows ? before : rows;
}
