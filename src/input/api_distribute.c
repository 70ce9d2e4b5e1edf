/* src/input/api_distribute.c - include/ditto/distribute.h: check, then call. */
#include "base/base.h"
#include "input/input.h"

ditto_status ditto_strategy_iterate(ditto_strategy *strategy, ditto_dataset *dataset,
                                    const ditto_input_options *options, ditto_iterator **out)
{
    ditto_input_options known;
    DTI_ENTER();
    DTI_TRY(dti_not_null(strategy, "strategy"));
    DTI_TRY(dti_not_null(dataset, "dataset"));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_input_options"));
    if (dataset->batch_rows == 0 && known.global_batch == 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "the dataset has no batches: batch it first (ditto_dataset_batch), or set "
                                           "global_batch");
    if (dataset->batch_rows != 0 && known.global_batch != 0 && dataset->batch_rows != known.global_batch)
        return DTI_FAIL(DITTO_ERR_INVALID, "the dataset is batched by %llu rows, but global_batch is %llu",
                        (unsigned long long)dataset->batch_rows, (unsigned long long)known.global_batch);
    if ((unsigned)known.partial > DITTO_PARTIAL_EVEN || known.producers > 1024 || known.buffer > 65536)
        return DTI_FAIL(DITTO_ERR_RANGE, "partial = %d, producers = %u, buffer = %u: at most %d, 1024, 65536",
                        (int)known.partial, known.producers, known.buffer, DITTO_PARTIAL_EVEN);
    return dti_iterator_create(dti_team_of(strategy), dataset, &known, out);
}

ditto_status ditto_iterator_destroy(ditto_iterator *iterator)
{
    DTI_ENTER();
    if (iterator == NULL)
        return DITTO_OK;
    DTI_TRY(dti_context_check_outside("iterator"));
    dti_iterator_destroy(iterator);
    return DITTO_OK;
}

static ditto_status check_own(const struct dti_replica *r, const ditto_iterator *iterator, const void *out)
{
    if (r == NULL)
        return dti_error_get()->status;
    DTI_TRY(dti_not_null(iterator, "iterator"));
    DTI_TRY(dti_not_null(out, "out"));
    if (dti_iterator_team(iterator) != r->team)
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "mixing strategies: the iterator belongs to another (or a destroyed) strategy than "
                        "replica %u",
                        r->id);
    return DITTO_OK;
}

ditto_status ditto_next(ditto_replica *self, ditto_iterator *iterator, ditto_batch *out)
{
    DTI_ENTER();
    struct dti_replica *r = dti_self(self);
    DTI_TRY(check_own(r, iterator, out));
    return dti_iterator_next(r, iterator, out);
}

ditto_status ditto_input_wait_ns(ditto_replica *self, const ditto_iterator *iterator, uint64_t *out)
{
    DTI_ENTER();
    const struct dti_replica *r = dti_self(self);
    DTI_TRY(check_own(r, iterator, out));
    *out = dti_iterator_wait_ns(iterator, r->id);
    return DITTO_OK;
}
