/* src/input/transforms/api_transform.c - the functions of include/ditto/transform.h, which check their
 * arguments. */
#include "base/errors/status.h"
#include "base/types/types.h"
#include "input/dataset.h"
#include "input/transforms/transforms.h"

static ditto_status check_input(const ditto_dataset *input, ditto_dataset *const *out)
{
    DTI_TRY(dti_not_null(input, "input"));
    return dti_not_null(out, "out");
}

/* Checks the input of a transformation that works on single rows and must therefore come before batch. */
static ditto_status check_row_input(const ditto_dataset *input, ditto_dataset *const *out, const char *what)
{
    DTI_TRY(check_input(input, out));
    if (input->batch_rows != 0)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "%s after batch: %s rows first, then batch them", what, what);
    return DITTO_OK;
}

/* Returns the number of rows that `count` stands for. If the input is batched, `count` is a number of
 * batches. If the number does not fit, the result is UINT64_MAX, which is more than the rows of any input. */
static uint64_t num_rows_of(const ditto_dataset *input, uint64_t count)
{
    uint64_t rows, each = input->batch_rows != 0 ? input->batch_rows : 1;
    return __builtin_mul_overflow(count, each, &rows) ? UINT64_MAX : rows;
}

ditto_status ditto_dataset_map(ditto_dataset *input, ditto_map_fn function, void *user,
                               const ditto_map_options *options, ditto_dataset **out)
{
    ditto_map_options known;
    DTI_ENTER();
    DTI_TRY(check_input(input, out));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_map_options"));
    if (function == NULL)
        return dti_fail_null("function");
    if (known.row != NULL ? known.num_components == 0 || known.num_components > DITTO_MAX_COMPONENTS
                          : known.num_components != 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "a map whose rows have %u components at %p: a row has 1 to %d components",
                        known.num_components, (const void *)known.row, DITTO_MAX_COMPONENTS);
    return dti_map_create(input, function, user, &known, out);
}

ditto_status ditto_dataset_filter(ditto_dataset *input, ditto_filter_fn function, void *user,
                                  ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_row_input(input, out, "filter"));
    if (function == NULL)
        return dti_fail_null("function");
    return dti_filter_create(input, function, user, out);
}

ditto_status ditto_dataset_shuffle(ditto_dataset *input, const ditto_shuffle_options *options,
                                   ditto_dataset **out)
{
    ditto_shuffle_options known;
    DTI_ENTER();
    DTI_TRY(check_row_input(input, out, "shuffle"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_shuffle_options"));
    if ((unsigned)known.reshuffle > DITTO_RESHUFFLE_NEVER)
        return DTI_FAIL(DITTO_ERR_RANGE, "reshuffle = %d is not a value of its enum", (int)known.reshuffle);
    if (known.buffer_rows == 0 && input->infinite)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "shuffling all rows of a dataset without end: set buffer_rows, or shuffle before repeat");
    return dti_shuffle_create(input, &known, out);
}

ditto_status ditto_dataset_repeat(ditto_dataset *input, uint64_t count, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_input(input, out));
    if (count == 0)
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "repeat 0 times would leave no rows: give at least 1, or DITTO_REPEAT_FOREVER");
    return dti_repeat_create(input, count, out);
}

ditto_status ditto_dataset_take(ditto_dataset *input, uint64_t count, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_input(input, out));
    if (count == 0)
        return DTI_FAIL(DITTO_ERR_RANGE, "take 0 would leave no rows: give at least 1");
    return dti_skip_take_create(input, 0, num_rows_of(input, count), out);
}

ditto_status ditto_dataset_skip(ditto_dataset *input, uint64_t count, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_input(input, out));
    return dti_skip_take_create(input, num_rows_of(input, count), UINT64_MAX, out);
}

ditto_status ditto_dataset_shard(ditto_dataset *input, uint64_t num_shards, uint64_t index,
                                 ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_input(input, out));
    if (num_shards == 0)
        return DTI_FAIL(DITTO_ERR_RANGE, "num_shards is 0: give at least 1");
    if (index >= num_shards)
        return DTI_FAIL(
            DITTO_ERR_RANGE, "index is %llu, but with num_shards = %llu they are numbered from 0 to %llu",
            (unsigned long long)index, (unsigned long long)num_shards, (unsigned long long)num_shards - 1);
    return dti_shard_create(input, num_shards, index, num_rows_of(input, 1), out);
}

static ditto_status check_inputs(ditto_dataset *const *inputs, uint32_t count, ditto_dataset *const *out)
{
    DTI_TRY(dti_not_null((const void *)inputs, "inputs"));
    DTI_TRY(dti_not_null(out, "out"));
    if (count == 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "the number of inputs is 0: give at least one dataset");
    for (uint32_t i = 0; i < count; i++)
        if (inputs[i] == NULL)
            return DTI_FAIL(DITTO_ERR_INVALID, "inputs[%u] is NULL", i);
    return DITTO_OK;
}

ditto_status ditto_dataset_zip(ditto_dataset *const *inputs, uint32_t num_inputs, ditto_dataset **out)
{
    uint64_t components = 0;
    DTI_ENTER();
    DTI_TRY(check_inputs(inputs, num_inputs, out));
    for (uint32_t i = 0; i < num_inputs; i++) {
        components += inputs[i]->components;
        if (inputs[i]->batch_rows != inputs[0]->batch_rows)
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "inputs[%u] is batched by %llu rows, but inputs[0] by %llu: zip rows, then batch",
                            i, (unsigned long long)inputs[i]->batch_rows,
                            (unsigned long long)inputs[0]->batch_rows);
    }
    if (components > DITTO_MAX_COMPONENTS)
        return DTI_FAIL(DITTO_ERR_INVALID, "a row of %llu components: a row has at most %d",
                        (unsigned long long)components, DITTO_MAX_COMPONENTS);
    return dti_zip_create(inputs, num_inputs, out);
}

/* Checks that no input is batched, and that the rows of all inputs have the same components. */
static ditto_status check_alike(ditto_dataset *const *inputs, uint32_t count, ditto_dataset *const *out,
                                const char *what)
{
    DTI_TRY(check_inputs(inputs, count, out));
    for (uint32_t i = 0; i < count; i++) {
        char name[32];
        dti_text_add(&(struct dti_text){ name, sizeof name, 0 }, "inputs[%u]", i);
        DTI_TRY(check_row_input(inputs[i], out, what));
        DTI_TRY(dti_dataset_check_alike(inputs[0], "inputs[0]", inputs[i], name));
    }
    return DITTO_OK;
}

ditto_status ditto_dataset_concatenate(ditto_dataset *const *inputs, uint32_t num_inputs, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_alike(inputs, num_inputs, out, "concatenate"));
    return dti_join_create(inputs, num_inputs, 1, UINT64_MAX, out);
}

ditto_status ditto_dataset_interleave(ditto_dataset *const *inputs, uint32_t num_inputs, uint32_t cycle,
                                      uint64_t block, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_alike(inputs, num_inputs, out, "interleave"));
    return dti_join_create(inputs, num_inputs, cycle != 0 ? cycle : num_inputs, block != 0 ? block : 1, out);
}

ditto_status ditto_dataset_batch(ditto_dataset *input, uint64_t rows, uint32_t flags, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_input(input, out));
    DTI_TRY(dti_flags_check(flags, DITTO_BATCH_DROP_REMAINDER, "flags"));
    if (rows == 0)
        return DTI_FAIL(DITTO_ERR_RANGE, "a batch of 0 rows: give at least 1");
    if (input->batch_rows != 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "the dataset is batched already, by %llu rows",
                        (unsigned long long)input->batch_rows);
    return dti_batch_create(input, rows, (flags & DITTO_BATCH_DROP_REMAINDER) != 0, out);
}

ditto_status ditto_dataset_unbatch(ditto_dataset *input, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_input(input, out));
    if (input->batch_rows == 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "unbatch of a dataset that is not batched");
    return dti_unbatch_create(input, out);
}

ditto_status ditto_dataset_prefetch(ditto_dataset *input, uint64_t num_batches, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_input(input, out));
    if (num_batches == 0 || num_batches > 65536)
        return DTI_FAIL(DITTO_ERR_RANGE, "prefetch of %llu batches: give 1 to 65536",
                        (unsigned long long)num_batches);
    return dti_prefetch_create(input, num_batches, out);
}
