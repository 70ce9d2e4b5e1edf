/* src/input/transforms/shard.c - keeps every n-th row, or every n-th block of rows. */
#include "base/errors/status.h"
#include "input/dataset.h"
#include "input/transforms/transforms.h"

#include <string.h>

struct shard_dataset {
    ditto_dataset base; /* first */
    uint64_t shards, shard, block;
};

struct shard_cursor {
    struct dti_cursor base; /* first */
    const _Atomic uint32_t *closing;

    /* The shard that gets the next row, and the row's number in its block. */
    uint64_t next_shard, in_block;
};

static ditto_status open_shard(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct shard_cursor *c = (struct shard_cursor *)cursor;
    c->closing = pass->closing;
    return dti_cursor_open(cursor->dataset->input[0], pass, &cursor->from);
}

static ditto_status next_shard(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    struct shard_cursor *c = (struct shard_cursor *)cursor;
    const struct shard_dataset *d = (const struct shard_dataset *)cursor->dataset;
    while (*got < want) {
        size_t more;
        struct dti_rows some = dti_rows_from(rows, *got);
        DTI_TRY(dti_closing_check(c->closing));
        ditto_status status = dti_cursor_next(cursor->from, some, want - *got, &more);
        for (size_t i = 0; i < more; i++) {
            struct dti_rows row = dti_rows_from(some, i);
            if (c->next_shard != d->shard)
                dti_rows_drop(&d->base, row, 1);
            else
                memmove(dti_rows_from(rows, (*got)++).word, row.word, d->base.row_words * sizeof *row.word);
            if (++c->in_block == d->block) {
                c->in_block = 0;
                c->next_shard = c->next_shard + 1 < d->shards ? c->next_shard + 1 : 0;
            }
        }
        DTI_TRY(status);
    }
    return DITTO_OK;
}

static ditto_status save_shard(struct dti_cursor *cursor, struct dti_bytes *to)
{
    struct shard_cursor *c = (struct shard_cursor *)cursor;
    dti_bytes_put_u64(to, c->next_shard);
    dti_bytes_put_u64(to, c->in_block);
    return DITTO_OK;
}

static ditto_status restore_shard(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    struct shard_cursor *c = (struct shard_cursor *)cursor;
    const struct shard_dataset *d = (const struct shard_dataset *)cursor->dataset;
    c->next_shard = dti_bytes_get_at_most(from, d->shards - 1);
    c->in_block = dti_bytes_get_at_most(from, d->block - 1);
    return DITTO_OK;
}

static void digest_shard(const ditto_dataset *dataset, struct dti_bytes *to)
{
    const struct shard_dataset *d = (const struct shard_dataset *)dataset;
    dti_bytes_put_u64(to, d->shards);
    dti_bytes_put_u64(to, d->shard);
    dti_bytes_put_u64(to, d->block);
}

static const struct dti_dataset_kind shard_kind = {
    .name = "shard",
    .cursor_bytes = sizeof(struct shard_cursor),
    .open = open_shard,
    .next = next_shard,
    .save = save_shard,
    .restore = restore_shard,
    .digest = digest_shard,
};

ditto_status dti_shard_create(ditto_dataset *input, uint64_t shards, uint64_t shard, uint64_t block,
                              ditto_dataset **out)
{
    DTI_TRY(dti_dataset_new(sizeof(struct shard_dataset), &shard_kind, &input, 1, out));
    struct shard_dataset *d = (struct shard_dataset *)*out;
    d->shards = shards;
    d->shard = shard;
    d->block = block;
    d->base.by_file = false;
    return DITTO_OK;
}
