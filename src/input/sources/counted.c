/* src/input/sources/counted.c - chooses rows by counting. */
#include "input/sources/counted.h"

ditto_status dti_counted_open(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct dti_counted_cursor *c = (struct dti_counted_cursor *)cursor;
    const ditto_dataset *dataset = cursor->dataset;
    /* True if another pipeline reads the source's only file. */
    bool other_pipeline = dataset->files > 0 && pass->shards > 1 &&
                          pass->first_file % pass->shards != pass->shard;
    c->rows = other_pipeline ? 0 : ((const struct dti_counted *)dataset)->rows;
    return DITTO_OK;
}

ditto_status dti_counted_next(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    struct dti_counted_cursor *c = (struct dti_counted_cursor *)cursor;
    uint64_t left = c->rows - c->next;
    *got = want < left ? want : (size_t)left;
    for (size_t i = 0; i < *got; i++)
        rows.word[i * rows.stride] = c->next++;
    return *got < want ? DITTO_END_OF_INPUT : DITTO_OK;
}

ditto_status dti_counted_save(struct dti_cursor *cursor, struct dti_bytes *to)
{
    dti_bytes_put_u64(to, ((struct dti_counted_cursor *)cursor)->next);
    return DITTO_OK;
}

ditto_status dti_counted_restore(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    struct dti_counted_cursor *c = (struct dti_counted_cursor *)cursor;
    c->next = dti_bytes_get_at_most(from, c->rows);
    return DITTO_OK;
}

ditto_status dti_counted_load_row(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from)
{
    uint64_t rows = ((const struct dti_counted *)dataset)->rows;
    *row = dti_bytes_get_at_most(from, rows > 0 ? rows - 1 : 0);
    return dti_bytes_reader_status(from);
}
