/* src/input/distribute/rebatch.c - decides which steps exist, and the sizes of per-replica batches. */
#include "input/distribute/rebatch.h"

uint64_t dti_rebatch_full(uint64_t global, uint32_t n, uint32_t r)
{
    return global / n + (r < global % n);
}

static uint32_t all_replicas(const struct dti_cut *cut)
{
    return cut->pipelines * cut->replicas;
}

/* Returns the sum of the first `shares` of the N sizes. The first G mod N sizes are larger by one. */
static uint64_t first_sizes(const struct dti_cut *cut, uint64_t shares)
{
    uint64_t n = all_replicas(cut), larger = cut->global % n;
    return cut->global / n * shares + (shares < larger ? shares : larger);
}

/* num_shares returns the number of shares that the rows of a step of this pipeline are divided into. share_of
 * returns the share of its own replica j. */
static uint32_t num_shares(const struct dti_cut *cut)
{
    return cut->arrangement == DTI_CUT_SHARED ? all_replicas(cut) : cut->replicas;
}

static uint32_t share_of(const struct dti_cut *cut, uint32_t j)
{
    return cut->arrangement == DTI_CUT_SHARED ? cut->pipeline * cut->replicas + j : j;
}

/* Returns the rows of the shares below `share` in a full step. */
static uint64_t full_before(const struct dti_cut *cut, uint64_t step, uint32_t share)
{
    uint64_t rows, first;
    switch (cut->arrangement) {
    case DTI_CUT_SHARED:
        return first_sizes(cut, share);
    case DTI_CUT_OWN:
        first = (cut->pipeline + step) % cut->pipelines * cut->replicas;
        return first_sizes(cut, first + share) - first_sizes(cut, first);
    case DTI_CUT_EACH:
    default:
        return __builtin_mul_overflow(cut->global, share, &rows) ? UINT64_MAX : rows;
    }
}

uint64_t dti_cut_full(const struct dti_cut *cut, uint64_t step, uint32_t j)
{
    uint32_t share = share_of(cut, j);
    return full_before(cut, step, share + 1) - full_before(cut, step, share);
}

uint64_t dti_cut_step(const struct dti_cut *cut, uint64_t step)
{
    return full_before(cut, step, num_shares(cut));
}

uint64_t dti_cut_most_of_step(const struct dti_cut *cut)
{
    /* Sizes never increase along the list, so the first R of them have the largest sum. */
    struct dti_cut first_pipeline = *cut;
    first_pipeline.pipeline = 0;
    return dti_cut_step(&first_pipeline, 0);
}

uint64_t dti_cut_most_of_batch(const struct dti_cut *cut)
{
    return cut->arrangement == DTI_CUT_EACH ? cut->global
                                            : dti_rebatch_full(cut->global, all_replicas(cut), 0);
}

uint64_t dti_cut_before(const struct dti_cut *cut, uint64_t step, uint64_t rows, uint32_t j)
{
    uint32_t share = share_of(cut, j);
    if (cut->even && rows < dti_cut_step(cut, step)) {
        uint64_t shares = num_shares(cut), larger = rows % shares;
        return rows / shares * share + (share < larger ? share : larger);
    }
    uint64_t before = full_before(cut, step, share);
    return before < rows ? before : rows;
}

bool dti_cut_exists(const struct dti_cut *cut, uint64_t want, uint64_t got, bool failed, bool more)
{
    if (want == 0) /* no row is missing, which is enough with DTI_SHORT_NEVER */
        return cut->shorts == DTI_SHORT_NEVER || more;
    if (got < want && (cut->shorts == DTI_SHORT_NEVER || (cut->shorts == DTI_SHORT_DROPPED && !failed)))
        return false;
    return got > 0;
}

enum dti_step_existence dti_cut_existence(bool all_or_none, uint32_t pipelines, uint32_t with,
                                          uint32_t without, bool own)
{
    if (all_or_none)
        return with + without < pipelines ? DTI_STEP_EXISTENCE_UNKNOWN
               : without > 0              ? DTI_STEP_EXISTS_NOT
                                          : DTI_STEP_EXISTS_WITH_ROWS;
    if (own)
        return DTI_STEP_EXISTS_WITH_ROWS;
    return with > 0               ? DTI_STEP_EXISTS_EMPTY
           : without == pipelines ? DTI_STEP_EXISTS_NOT
                                  : DTI_STEP_EXISTENCE_UNKNOWN;
}
