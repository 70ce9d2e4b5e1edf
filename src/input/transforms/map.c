/* src/input/transforms/map.c - calls a function of the user with every row. It is called when rows are
 * filled, by many producers in parallel, and the order of rows is kept.
 *
 * A row has one more word, a number that depends only on the pass, on the row's number in the pass, and on
 * the shard if pipelines read different files. Random maps use it as the stream of their random numbers.
 * Their results therefore do not depend on the thread that computes them or on how often they are
 * computed. */
#include "base/errors/user_call.h"
#include "input/chunk.h"
#include "input/transforms/transforms.h"

#include <string.h>

struct map_dataset {
    ditto_dataset base; /* first */
    ditto_map_fn function;
    void *user;
    uint64_t seed;
};

struct map_cursor {
    struct dti_cursor base; /* first */
    uint64_t pass;          /* the number of the pass and the shard, as one number */
    uint64_t row;           /* the number of the next row in the pass */
};

static ditto_status open_map(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct map_cursor *c = (struct map_cursor *)cursor;
    /* Pipelines that read different files number their rows separately. */
    uint32_t shards = pass->shards > 1 ? pass->shards : 1;
    c->pass = pass->number * shards + (shards > 1 ? pass->shard : 0);
    /* Workers begin with different streams: in the last 10 of the 24 bits that c->pass has in the number of a
     * row. */
    if (((const struct map_dataset *)cursor->dataset)->seed == 0)
        c->pass += (uint64_t)pass->first_stream << 14;
    return dti_cursor_open(cursor->dataset->input[0], pass, &cursor->from);
}

static ditto_status next_map(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    struct map_cursor *c = (struct map_cursor *)cursor;
    ditto_status status = dti_cursor_next(cursor->from, dti_rows_words_from(rows, 1), want, got);
    for (size_t i = 0; i < *got; i++) /* numbers are distinct for 2^40 rows and 2^24 values of c->pass */
        rows.word[i * rows.stride] = (c->pass << 40) + c->row++;
    return status;
}

static ditto_status save_map(struct dti_cursor *cursor, struct dti_bytes *to)
{
    dti_bytes_put_u64(to, ((struct map_cursor *)cursor)->row);
    return DITTO_OK;
}

static ditto_status restore_map(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    ((struct map_cursor *)cursor)->row = dti_bytes_get_u64(from);
    return DITTO_OK;
}

static void advance(const ditto_dataset *dataset, ditto_tensor *row)
{
    for (uint32_t k = 0; k < dataset->components; k++)
        row[k].data = (char *)row[k].data + dataset->component[k].bytes;
}

/* Calls the function with each of `count` rows. Component k of the rows is at in[k], and that of the results
 * at out[k]. */
static DTI_GUARDED ditto_status map_rows(const struct map_dataset *map, const struct dti_reader *reader,
                                         struct dti_rows rows, size_t count, void *const *in,
                                         void *const *out)
{
    const ditto_dataset *input = map->base.input[0];
    ditto_tensor from[DITTO_MAX_COMPONENTS], to[DITTO_MAX_COMPONENTS];
    dti_row_tensors(input, in, from);
    dti_row_tensors(&map->base, out, to);
    for (size_t i = 0; i < count; i++, advance(input, from), advance(&map->base, to)) {
        uint64_t *row = dti_rows_from(rows, i).word;
        if (i % 16 == 0) /* the function may be slow */
            DTI_TRY(dti_closing_check(reader->closing));
        ditto_random random = ditto_random_make(map->seed, *row);
        uint32_t serial_before = dti_this_thread()->errors;
        DTI_GUARD("the function of a map (ditto_dataset_map)");
        ditto_status status = map->function(from, to, &random, map->user);
        DTI_GUARD_END();
        if (__builtin_expect(status != DITTO_OK, 0))
            return dti_fail_user(status, serial_before, "a map", input, row + 1);
    }
    return DITTO_OK;
}

static ditto_status fill_map(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                             size_t count, void *const *destination)
{
    const struct map_dataset *map = (const struct map_dataset *)dataset;
    void *out[DITTO_MAX_COMPONENTS];
    struct dti_chunk chunk;
    DTI_TRY(dti_chunk_make(&chunk, dataset->input[0], count));
    ditto_status status = DITTO_OK;
    for (size_t done = 0; done < count && status == DITTO_OK; done += chunk.most) {
        struct dti_rows some = dti_rows_from(rows, done);
        size_t chunk_rows = count - done < chunk.most ? count - done : chunk.most;
        for (uint32_t k = 0; k < dataset->components; k++)
            out[k] = (char *)destination[k] + done * dataset->component[k].bytes;
        status = dti_dataset_fill(dataset->input[0], reader, dti_rows_words_from(some, 1), chunk_rows,
                                  chunk.component);
        if (status == DITTO_OK)
            status = map_rows(map, reader, some, chunk_rows, chunk.component, out);
    }
    dti_chunk_free(&chunk);
    return status;
}

static void where_map(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    dti_row_where(dataset->input[0], row + 1, text);
}

static void drop_map(const ditto_dataset *dataset, const uint64_t *row)
{
    dti_rows_drop(dataset->input[0], (struct dti_rows){ (uint64_t *)(uintptr_t)(row + 1), 0 }, 1);
}

static ditto_status save_row_map(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to)
{
    dti_bytes_put_u64(to, row[0]);
    return dti_row_save(dataset->input[0], row + 1, to);
}

static ditto_status load_row_map(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from)
{
    row[0] = dti_bytes_get_u64(from);
    return dti_row_load(dataset->input[0], row + 1, from);
}

static void digest_map(const ditto_dataset *dataset, struct dti_bytes *to)
{
    dti_bytes_put_u64(to, ((const struct map_dataset *)dataset)->seed);
}

static const struct dti_dataset_kind map_kind = {
    .name = "map",
    .cursor_bytes = sizeof(struct map_cursor),
    .open = open_map,
    .next = next_map,
    .save = save_map,
    .restore = restore_map,
    .fill = fill_map,
    .where = where_map,
    .drop = drop_map,
    .save_row = save_row_map,
    .load_row = load_row_map,
    .digest = digest_map,
};

ditto_status dti_map_create(ditto_dataset *input, ditto_map_fn function, void *user,
                            const ditto_map_options *options, ditto_dataset **out)
{
    ditto_dataset *base;
    DTI_TRY(dti_dataset_new(sizeof(struct map_dataset), &map_kind, &input, 1, &base));
    struct map_dataset *map = (struct map_dataset *)base;
    ditto_status status = DITTO_OK;
    map->function = function;
    map->user = user;
    map->seed = options->seed;
    base->row_words = input->row_words + 1;
    if (options->row != NULL)
        base->components = options->num_components;
    for (uint32_t k = 0; options->row != NULL && k < options->num_components && status == DITTO_OK; k++)
        status = dti_dataset_set_component(base, k, &options->row[k]);
    return dti_dataset_out(base, status, out);
}
