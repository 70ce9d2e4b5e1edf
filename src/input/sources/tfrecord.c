/* src/input/sources/tfrecord.c - records of TFRecord files. Of plain files the cursor walks from header to header, and a row is a place,
 * from its record's first byte on; records of compressed files are read by the cursor, and a row holds one. */
#include "base/base.h"
#include "input/sources/gzip.h"
#include "input/sources/held.h"
#include "input/sources/place.h"
#include "input/sources/sources.h"
#include "input/sources/window.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES      12 /* length u64, its checksum u32 */
#define FOOTER_BYTES      4  /* checksum of the data */
#define DEFAULT_MAX_BYTES 65536
#define MOST_BYTES        (((uint64_t)1 << 32) - 64 - 1) /* a place counts in 32 bits, with header and footer */

struct tfrecord_dataset {
    ditto_dataset base; /* first */
    struct dti_files files;
    ditto_tfrecord_options options;
};

/* Which record: for messages. */
struct record {
    uint32_t file;
    uint64_t number, offset; /* from 1; of its header in the file, or in the contents of a compressed one */
};

/* -- what a record is -- */

static uint32_t u32_at(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t u64_at(const char *bytes)
{
    return u32_at(bytes) | (uint64_t)u32_at(bytes + 4) << 32;
}

/* "data.tfrecord: record 7 at offset 1234" and what is wrong with it. */
static ditto_status fail(const struct tfrecord_dataset *t, ditto_status status, struct record record, const char *what)
{
    return DTI_FAIL(status, "%s: record %llu at offset %llu%s: %s", t->files.file[record.file].name,
                    (unsigned long long)record.number, (unsigned long long)record.offset,
                    t->options.compression == DITTO_COMPRESSION_GZIP ? " of the contents" : "", what);
}

static ditto_status check_header(const struct tfrecord_dataset *t, struct record record, const char *header,
                                 uint64_t *length)
{
    char what[96];
    uint32_t found = u32_at(header + 8), computed = dti_crc32c_masked(dti_crc32c(header, 8));
    struct dti_text text = { what, sizeof what, 0 };
    *length = u64_at(header);
    if (found == computed && *length <= t->options.max_bytes)
        return DITTO_OK;
    if (found != computed)
        dti_text_add(&text, "the checksum of its length is %08x, but should be %08x", found, computed);
    else
        dti_text_add(&text, "it has %llu bytes, max_bytes is %llu", (unsigned long long)*length,
                     (unsigned long long)t->options.max_bytes);
    return fail(t, DITTO_ERR_CORRUPT, record, what);
}

static ditto_status check_data(const struct tfrecord_dataset *t, struct record record, const char *data, size_t length,
                               const char *footer)
{
    char what[96];
    uint32_t found = u32_at(footer), computed;
    if (t->options.trust || found == (computed = dti_crc32c_masked(dti_crc32c(data, length))))
        return DITTO_OK;
    dti_text_add(&(struct dti_text){ what, sizeof what, 0 }, "the checksum of its data is %08x, but should be %08x",
                 found, computed);
    return fail(t, DITTO_ERR_CORRUPT, record, what);
}

/* The file ended in a record, at `end`. */
static ditto_status fail_cut(const struct tfrecord_dataset *t, struct record record, const char *in, uint64_t end,
                             bool shorter)
{
    char what[128];
    dti_text_add(&(struct dti_text){ what, sizeof what, 0 }, "%s ends in its %s, at offset %llu%s",
                 t->options.compression == DITTO_COMPRESSION_GZIP ? "the contents" : "the file", in,
                 (unsigned long long)end, shorter ? ": it became shorter while it was read" : "");
    return fail(t, shorter ? DITTO_ERR_IO : DITTO_ERR_CORRUPT, record, what);
}

/* -- plain files: choosing -- */

struct plain_cursor {
    struct dti_cursor base; /* first */
    const struct tfrecord_dataset *tfrecord;
    struct dti_window window;
    uint64_t records; /* that were taken from the present file */
};

static ditto_status open_plain(const ditto_dataset *dataset, const struct dti_pass *pass, struct dti_cursor **out)
{
    struct tfrecord_dataset *t = (struct tfrecord_dataset *)dataset; /* its files have a lock of their own */
    struct plain_cursor *c = calloc(1, sizeof *c);
    if (c == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to iterate a dataset");
    c->tfrecord = t;
    ditto_status status = dti_window_open(&c->window, &t->files, pass);
    if (status != DITTO_OK) {
        free(c);
        return status;
    }
    *out = &c->base;
    return DITTO_OK;
}

/* Goes past one record, which begins with these `length` bytes. */
static ditto_status walk(struct plain_cursor *c, const char *header, size_t length, uint64_t *row)
{
    struct dti_window *w = &c->window;
    const struct tfrecord_dataset *t = c->tfrecord;
    struct record record = { w->file, c->records + 1, w->at };
    uint64_t known = t->files.file[w->file].bytes, bytes;
    bool whole;
    if (length < HEADER_BYTES)
        return fail_cut(t, record, "header", w->at + length, w->at + length < known);
    DTI_TRY(check_header(t, record, header, &bytes));
    DTI_TRY(dti_window_skip(w, HEADER_BYTES + bytes + FOOTER_BYTES, &whole));
    if (!whole)
        return fail_cut(t, record, w->at < record.offset + HEADER_BYTES + bytes ? "data" : "footer", w->at,
                        w->at < known);
    dti_place_put(row, (struct dti_place){ record.offset, record.file, (uint32_t)bytes, record.number });
    c->records++;
    return DITTO_OK;
}

static ditto_status next_plain(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    struct plain_cursor *c = (struct plain_cursor *)cursor;
    struct dti_window *w = &c->window;
    while (*got < want && !dti_window_ended(w)) {
        const char *data;
        size_t length;
        DTI_TRY(dti_window_need(w, HEADER_BYTES, &data, &length));
        if (length > 0) {
            DTI_TRY(walk(c, data, length, rows.word + *got * rows.stride));
            ++*got;
            continue;
        }
        if (w->at < w->files->file[w->file].bytes)
            return DTI_FAIL(DITTO_ERR_IO,
                            "%s ends at offset %llu, behind record %llu: it became shorter while it was read",
                            w->files->file[w->file].name, (unsigned long long)w->at, (unsigned long long)c->records);
        dti_window_next_file(w);
        c->records = 0;
    }
    return *got < want ? DITTO_END_OF_INPUT : DITTO_OK;
}

static void close_plain(struct dti_cursor *cursor)
{
    dti_window_close(&((struct plain_cursor *)cursor)->window);
    free(cursor);
}

static ditto_status save_plain(struct dti_cursor *cursor, struct dti_bytes *to)
{
    const struct plain_cursor *c = (const struct plain_cursor *)cursor;
    dti_window_save(&c->window, to);
    dti_bytes_put_u64(to, c->records);
    return DITTO_OK;
}

static ditto_status restore_plain(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    struct plain_cursor *c = (struct plain_cursor *)cursor;
    dti_window_restore(&c->window, from);
    c->records = dti_bytes_get_u64(from);
    return DITTO_OK;
}

/* -- plain files: reading -- */

static void put_row(const ditto_dataset *dataset, const char *data, size_t length, size_t index,
                    void *const *destination)
{
    size_t room = dataset->component[0].bytes;
    char *to = (char *)destination[0] + index * room;
    memcpy(to, data, length);
    memset(to + length, 0, room - length);
    ((int64_t *)destination[1])[index] = (int64_t)length;
}

static ditto_status parse_plain(const ditto_dataset *dataset, struct dti_place place, const char *bytes, size_t index,
                                void *const *destination, void *scratch)
{
    struct record record = { place.file, place.number, place.offset };
    const char *data = bytes + HEADER_BYTES;
    (void)scratch;
    DTI_TRY(check_data((const struct tfrecord_dataset *)dataset, record, data, place.bytes, data + place.bytes));
    put_row(dataset, data, place.bytes, index, destination);
    return DITTO_OK;
}

static ditto_status fill_plain(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                               size_t count, void *const *destination)
{
    struct tfrecord_dataset *t = (struct tfrecord_dataset *)dataset;
    return dti_places_fill(dataset, &t->files, reader, rows, count, 0, HEADER_BYTES + FOOTER_BYTES, "record",
                           parse_plain, destination, NULL);
}

static void where_plain(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    dti_place_where(&((const struct tfrecord_dataset *)dataset)->files, dti_place_get(row), "record", text);
}

/* -- compressed files. A held row's number is its file << 32 | its record, from 1, in the file -- */

struct packed_cursor {
    struct dti_cursor base; /* first */
    const struct tfrecord_dataset *tfrecord;
    struct dti_pass pass;
    struct dti_gzip *gzip;
    uint32_t file; /* count: all have been read */
    uint64_t records;
};

static void stand(struct packed_cursor *c, uint32_t from)
{
    const struct dti_files *files = &c->tfrecord->files;
    c->file = dti_files_next(files, from, c->pass.first_file, c->pass.shards, c->pass.shard);
    c->records = 0;
    if (c->file < files->count)
        dti_gzip_start(c->gzip, c->file);
}

static ditto_status open_packed(const ditto_dataset *dataset, const struct dti_pass *pass, struct dti_cursor **out)
{
    struct tfrecord_dataset *t = (struct tfrecord_dataset *)dataset;
    struct packed_cursor *c = calloc(1, sizeof *c);
    if (c == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to iterate a dataset");
    c->tfrecord = t;
    c->pass = *pass;
    ditto_status status = dti_gzip_open(&t->files, pass->closing, &c->gzip);
    if (status != DITTO_OK) {
        free(c);
        return status;
    }
    stand(c, 0);
    *out = &c->base;
    return DITTO_OK;
}

/* The record at the present place, into component[0] and [1]. END_OF_INPUT: the file has no more. */
static ditto_status unpack_record(struct packed_cursor *c, void *const *component)
{
    const struct tfrecord_dataset *t = c->tfrecord;
    struct record record = { c->file, c->records + 1, dti_gzip_offset(c->gzip) };
    char header[HEADER_BYTES], footer[FOOTER_BYTES];
    uint64_t bytes;
    size_t got;
    DTI_TRY(dti_gzip_read(c->gzip, header, HEADER_BYTES, &got));
    if (got == 0)
        return DITTO_END_OF_INPUT;
    if (got < HEADER_BYTES)
        return fail_cut(t, record, "header", dti_gzip_offset(c->gzip), false);
    DTI_TRY(check_header(t, record, header, &bytes));
    DTI_TRY(dti_gzip_read(c->gzip, component[0], (size_t)bytes, &got));
    if (got < bytes)
        return fail_cut(t, record, "data", dti_gzip_offset(c->gzip), false);
    DTI_TRY(dti_gzip_read(c->gzip, footer, FOOTER_BYTES, &got));
    if (got < FOOTER_BYTES)
        return fail_cut(t, record, "footer", dti_gzip_offset(c->gzip), false);
    DTI_TRY(check_data(t, record, component[0], (size_t)bytes, footer));
    memset((char *)component[0] + bytes, 0, t->base.component[0].bytes - (size_t)bytes);
    *(int64_t *)component[1] = (int64_t)bytes;
    c->records++;
    return DITTO_OK;
}

static ditto_status next_packed(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    struct packed_cursor *c = (struct packed_cursor *)cursor;
    const ditto_dataset *dataset = &c->tfrecord->base;
    while (*got < want && c->file < c->tfrecord->files.count) {
        uint64_t *row = rows.word + *got * rows.stride;
        uint64_t number = c->records < UINT32_MAX ? c->records + 1 : UINT32_MAX;
        void *component[DITTO_MAX_COMPONENTS];
        DTI_TRY(dti_held_row_new(dataset, (uint64_t)c->file << 32 | number, row));
        dti_held_row_components(dataset, row, component);
        ditto_status status = unpack_record(c, component);
        if (status != DITTO_OK)
            dti_held_row_drop(dataset, row);
        if (status == DITTO_END_OF_INPUT)
            stand(c, c->file + 1);
        else
            DTI_TRY(status);
        *got += status == DITTO_OK;
    }
    return *got < want ? DITTO_END_OF_INPUT : DITTO_OK;
}

static void close_packed(struct dti_cursor *cursor)
{
    dti_gzip_close(((struct packed_cursor *)cursor)->gzip);
    free(cursor);
}

static ditto_status save_packed(struct dti_cursor *cursor, struct dti_bytes *to)
{
    const struct packed_cursor *c = (const struct packed_cursor *)cursor;
    dti_bytes_put_u64(to, c->file);
    dti_bytes_put_u64(to, c->records);
    return DITTO_OK;
}

/* What lies before the place can't be passed over without being unpacked. */
static ditto_status restore_packed(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    struct packed_cursor *c = (struct packed_cursor *)cursor;
    const ditto_dataset *dataset = &c->tfrecord->base;
    uint32_t file = (uint32_t)dti_bytes_get_below(from, c->tfrecord->files.count);
    uint64_t records = dti_bytes_get_u64(from), row;
    void *component[DITTO_MAX_COMPONENTS];
    DTI_TRY(dti_bytes_reader_status(from));
    c->file = file;
    c->records = 0;
    if (file == c->tfrecord->files.count)
        return DITTO_OK;
    dti_gzip_start(c->gzip, file);
    DTI_TRY(dti_held_row_new(dataset, 0, &row));
    dti_held_row_components(dataset, &row, component);
    ditto_status status = DITTO_OK;
    while (status == DITTO_OK && c->records < records)
        status = unpack_record(c, component);
    dti_held_row_drop(dataset, &row);
    if (status == DITTO_END_OF_INPUT)
        return DTI_FAIL(DITTO_ERR_CORRUPT,
                        "%s has %llu records, but %llu were read before the state was saved: it is another file now",
                        c->tfrecord->files.file[file].name, (unsigned long long)c->records,
                        (unsigned long long)records);
    return status;
}

static void where_packed(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    const struct dti_files *files = &((const struct tfrecord_dataset *)dataset)->files;
    uint64_t number = dti_held_row_of(row)->number, file = number >> 32;
    dti_text_add(text, "%s: record %llu",
                 file < files->count ? files->file[file].name : "another file", /* of a state that is not ours */
                 (unsigned long long)(number & UINT32_MAX));
}

/* -- making -- */

static void digest_tfrecord(const ditto_dataset *dataset, struct dti_bytes *to)
{
    const struct tfrecord_dataset *t = (const struct tfrecord_dataset *)dataset;
    dti_bytes_put_u64(to, t->options.max_bytes);
    dti_bytes_put_u64(to, t->options.trust != 0);
    dti_bytes_put_u64(to, t->files.count);
}

static void free_tfrecord(ditto_dataset *dataset)
{
    dti_files_free(&((struct tfrecord_dataset *)dataset)->files);
}

static const struct dti_dataset_kind plain_kind = {
    .name = "tfrecord",
    .open = open_plain,
    .next = next_plain,
    .close = close_plain,
    .save = save_plain,
    .restore = restore_plain,
    .fill = fill_plain,
    .where = where_plain,
    .digest = digest_tfrecord,
    .free = free_tfrecord,
};
static const struct dti_dataset_kind packed_kind = {
    .name = "tfrecord, compressed",
    .open = open_packed,
    .next = next_packed,
    .close = close_packed,
    .save = save_packed,
    .restore = restore_packed,
    .fill = dti_held_row_fill,
    .where = where_packed,
    .drop = dti_held_row_drop,
    .save_row = dti_held_row_save,
    .load_row = dti_held_row_load,
    .digest = digest_tfrecord,
    .free = free_tfrecord,
};

static ditto_status check_not_empty(const struct dti_files *files)
{
    for (uint32_t i = 0; i < files->count; i++)
        if (files->file[i].bytes > 0)
            return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_INVALID, "%s%s: empty: there is no record to iterate", files->file[0].name,
                    files->count > 1 ? " and all other files" : "");
}

static ditto_status prepare(struct tfrecord_dataset *t, const ditto_files *files)
{
    bool packed = t->options.compression == DITTO_COMPRESSION_GZIP;
    t->base.row_words = packed ? 1 : DTI_PLACE_WORDS;
    t->base.holds = packed;
    t->base.components = 2;
    DTI_TRY(dti_files_create(&t->files, files));
    DTI_TRY(check_not_empty(&t->files));
    t->base.files = t->files.count;
    t->base.by_file = true;
    DTI_TRY(dti_dataset_set_component(
        &t->base, 0, &(ditto_tensor){ .dtype = DITTO_U8, .rank = 1, .shape = { (size_t)t->options.max_bytes } }));
    return dti_dataset_set_component(&t->base, 1, &(ditto_tensor){ .dtype = DITTO_I64 });
}

ditto_status dti_tfrecord_create(const ditto_files *files, const ditto_tfrecord_options *options, ditto_dataset **out)
{
    bool packed = options->compression == DITTO_COMPRESSION_GZIP;
    if (options->max_bytes > MOST_BYTES)
        return DTI_FAIL(DITTO_ERR_RANGE, "max_bytes = %llu: at most %llu", (unsigned long long)options->max_bytes,
                        (unsigned long long)MOST_BYTES);
    if (packed)
        DTI_TRY(dti_gzip_check());
    struct tfrecord_dataset *t = dti_dataset_new(sizeof *t, packed ? &packed_kind : &plain_kind, NULL, 0);
    if (t == NULL)
        return DITTO_ERR_NO_MEMORY;
    t->options = *options;
    if (t->options.max_bytes == 0)
        t->options.max_bytes = DEFAULT_MAX_BYTES;
    return dti_dataset_out(&t->base, prepare(t, files), out);
}
