/* src/input/api_dataset.c - include/ditto/dataset.h: check, then call. */
#include "base/base.h"
#include "input/input.h"

static ditto_status check_components(const void *list, uint32_t count, ditto_dataset *const *out)
{
    DTI_TRY(dti_not_null(out, "out"));
    if (list == NULL || count == 0 || count > DITTO_MAX_COMPONENTS)
        return DTI_FAIL(DITTO_ERR_INVALID, "%u components at %p: a row has 1 to %d", count, list, DITTO_MAX_COMPONENTS);
    return DITTO_OK;
}

ditto_status ditto_dataset_from_arrays(const ditto_tensor *arrays, uint32_t components, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_components(arrays, components, out));
    return dti_array_create(arrays, components, out);
}

ditto_status ditto_dataset_from_csv(const char *path, const ditto_csv_component *components, uint32_t num_components,
                                    const ditto_csv_options *options, ditto_dataset **out)
{
    ditto_csv_options known;
    DTI_ENTER();
    DTI_TRY(dti_not_null(path, "path"));
    DTI_TRY(check_components(components, num_components, out));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_csv_options"));
    return dti_csv_create(path, components, num_components, &known, out);
}

/* A transformation of rows comes before they are batched. */
static ditto_status check_rows(const ditto_dataset *input, ditto_dataset *const *out, const char *what)
{
    DTI_TRY(dti_not_null(input, "input"));
    DTI_TRY(dti_not_null(out, "out"));
    if (input->batch_rows != 0)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "%s after batch: %s rows first, then batch them", what, what);
    return DITTO_OK;
}

ditto_status ditto_dataset_shuffle(ditto_dataset *input, const ditto_shuffle_options *options, ditto_dataset **out)
{
    ditto_shuffle_options known;
    DTI_ENTER();
    DTI_TRY(check_rows(input, out, "shuffle"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_shuffle_options"));
    if ((unsigned)known.reshuffle > DITTO_RESHUFFLE_NEVER)
        return DTI_FAIL(DITTO_ERR_RANGE, "reshuffle = %d is not a value of its enum", (int)known.reshuffle);
    if (known.buffer_rows == 0 && input->infinite)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "shuffling all rows of a dataset without end: set buffer_rows, or shuffle before "
                        "repeat");
    return dti_shuffle_create(input, &known, out);
}

ditto_status ditto_dataset_repeat(ditto_dataset *input, uint64_t count, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(input, "input"));
    DTI_TRY(dti_not_null(out, "out"));
    if (count == 0)
        return DTI_FAIL(DITTO_ERR_RANGE, "repeat 0 times: leaves no row; at least 1, or DITTO_REPEAT_FOREVER");
    return dti_repeat_create(input, count, out);
}

ditto_status ditto_dataset_take(ditto_dataset *input, uint64_t rows, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_rows(input, out, "take"));
    if (rows == 0)
        return DTI_FAIL(DITTO_ERR_RANGE, "take 0 rows: leaves no row");
    return dti_window_create(input, 0, rows, out);
}

ditto_status ditto_dataset_skip(ditto_dataset *input, uint64_t rows, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_rows(input, out, "skip"));
    return dti_window_create(input, rows, UINT64_MAX, out);
}

ditto_status ditto_dataset_batch(ditto_dataset *input, uint64_t rows, uint32_t flags, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(input, "input"));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_flags_check(flags, DITTO_BATCH_DROP_REMAINDER, "flags"));
    if (rows == 0)
        return DTI_FAIL(DITTO_ERR_RANGE, "a batch of 0 rows: at least 1");
    if (input->batch_rows != 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "the dataset is batched already, by %llu rows",
                        (unsigned long long)input->batch_rows);
    return dti_batch_create(input, rows, (flags & DITTO_BATCH_DROP_REMAINDER) != 0, out);
}

void ditto_dataset_destroy(ditto_dataset *dataset)
{
    dti_dataset_release(dataset);
}
