/* src/input/sources/range.c - a source whose rows are the numbers from start to stop, `step` apart, without
 * stop itself. */
#include "base/errors/status.h"
#include "input/sources/counted.h"
#include "input/sources/sources.h"

struct range_dataset {
    struct dti_counted counted; /* first */
    int64_t start, step;
};

static ditto_status fill_range(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                               size_t count, void *const *destination)
{
    const struct range_dataset *r = (const struct range_dataset *)dataset;
    int64_t *to = destination[0];
    (void)reader;
    for (size_t i = 0; i < count; i++) /* modulo 2^64, because the product may not fit into an int64_t */
        to[i] = (int64_t)((uint64_t)r->start + (uint64_t)r->step * rows.word[i * rows.stride]);
    return DITTO_OK;
}

static void where_range(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    (void)dataset;
    dti_text_add(text, "row %llu of a range", (unsigned long long)*row);
}

static void digest_range(const ditto_dataset *dataset, struct dti_bytes *to)
{
    const struct range_dataset *r = (const struct range_dataset *)dataset;
    dti_bytes_put_u64(to, (uint64_t)r->start);
    dti_bytes_put_u64(to, (uint64_t)r->step);
    dti_bytes_put_u64(to, r->counted.rows);
}

static const struct dti_dataset_kind range_kind = {
    .name = "range",
    .cursor_bytes = sizeof(struct dti_counted_cursor),
    .open = dti_counted_open,
    .next = dti_counted_next,
    .save = dti_counted_save,
    .restore = dti_counted_restore,
    .fill = fill_range,
    .where = where_range,
    .load_row = dti_counted_load_row,
    .digest = digest_range,
};

ditto_status dti_range_create(int64_t start, int64_t stop, int64_t step, ditto_dataset **out)
{
    if (step == 0)
        return DTI_FAIL(DITTO_ERR_RANGE, "a range with step 0 has no end");
    if (step > 0 ? start >= stop : start <= stop)
        return DTI_FAIL(DITTO_ERR_INVALID, "the range from %lld to %lld in steps of %lld has no number",
                        (long long)start, (long long)stop, (long long)step);
    ditto_dataset *base;
    DTI_TRY(dti_dataset_new(sizeof(struct range_dataset), &range_kind, NULL, 0, &base));
    struct range_dataset *r = (struct range_dataset *)base;
    bool up = step > 0;
    uint64_t distance = up ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    r->start = start;
    r->step = step;
    r->counted.rows = (distance - 1) / (up ? (uint64_t)step : 0 - (uint64_t)step) + 1;
    base->row_words = 1;
    base->components = 1;
    return dti_dataset_out(base, dti_dataset_set_component(base, 0, &(ditto_tensor){ .dtype = DITTO_I64 }),
                           out);
}
