/* src/input/sources/records/tfrecord_packed.c - records of compressed files. The cursor reads them, and a row
 * holds one record. The row's number is file << 32 | the number of the record in the file, from 1, at most
 * UINT32_MAX. */
#include "base/errors/status.h"
#include "input/sources/files/gzip.h"
#include "input/sources/owned_row.h"
#include "input/sources/records/tfrecord.h"

#include <string.h>

struct packed_cursor {
    struct dti_cursor base; /* first */
    const struct dti_tfrecord *tfrecord;
    struct dti_pass pass;
    struct dti_gzip *gzip;
    uint32_t file;    /* files.count when all have been read */
    uint64_t records; /* read from the current file */
};

static void start_file(struct packed_cursor *c, uint32_t from)
{
    const struct dti_files *files = &c->tfrecord->files;
    c->file = dti_files_next(files, from, c->pass.first_file, c->pass.shards, c->pass.shard);
    c->records = 0;
    if (c->file < files->count)
        dti_gzip_start(c->gzip, c->file);
}

static ditto_status open_packed(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct packed_cursor *c = (struct packed_cursor *)cursor;
    struct dti_tfrecord *t = (struct dti_tfrecord *)cursor->dataset;
    c->tfrecord = t;
    c->pass = *pass;
    DTI_TRY(dti_gzip_open(&t->files, pass->closing, &c->gzip));
    start_file(c, 0);
    return DITTO_OK;
}

/* Reads the record at the current position into component[0] and [1]. Returns DITTO_END_OF_INPUT if the file
 * has no more records. */
static ditto_status unpack_record(struct packed_cursor *c, void *const *component)
{
    const struct dti_tfrecord *t = c->tfrecord;
    struct dti_record record = { c->file, c->records + 1, dti_gzip_offset(c->gzip) };
    char header[DTI_TFRECORD_HEADER_BYTES], footer[DTI_TFRECORD_FOOTER_BYTES];
    uint64_t bytes;
    size_t got;
    DTI_TRY(dti_gzip_read(c->gzip, header, DTI_TFRECORD_HEADER_BYTES, &got));
    if (got == 0)
        return DITTO_END_OF_INPUT;
    if (got < DTI_TFRECORD_HEADER_BYTES)
        return dti_record_fail_cut(t, record, "header", dti_gzip_offset(c->gzip));
    DTI_TRY(dti_record_check_header(t, record, header, &bytes));
    DTI_TRY(dti_gzip_read(c->gzip, component[0], (size_t)bytes, &got));
    if (got < bytes)
        return dti_record_fail_cut(t, record, "data", dti_gzip_offset(c->gzip));
    DTI_TRY(dti_gzip_read(c->gzip, footer, DTI_TFRECORD_FOOTER_BYTES, &got));
    if (got < DTI_TFRECORD_FOOTER_BYTES)
        return dti_record_fail_cut(t, record, "footer", dti_gzip_offset(c->gzip));
    DTI_TRY(dti_record_check_data(t, record, component[0], (size_t)bytes, footer));
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
        DTI_TRY(dti_owned_row_new(dataset, (uint64_t)c->file << 32 | number, row));
        dti_owned_row_components(dataset, row, component);
        ditto_status status = unpack_record(c, component);
        if (status != DITTO_OK)
            dti_owned_row_drop(dataset, row);
        if (status == DITTO_END_OF_INPUT)
            start_file(c, c->file + 1);
        else
            DTI_TRY(status);
        *got += status == DITTO_OK;
    }
    return *got < want ? DITTO_END_OF_INPUT : DITTO_OK;
}

static void close_packed(struct dti_cursor *cursor)
{
    dti_gzip_close(((struct packed_cursor *)cursor)->gzip);
}

static ditto_status save_packed(struct dti_cursor *cursor, struct dti_bytes *to)
{
    const struct packed_cursor *c = (const struct packed_cursor *)cursor;
    dti_bytes_put_u64(to, c->file);
    dti_bytes_put_u64(to, c->records);
    return DITTO_OK;
}

/* Unpacks the file's records before the position again, because they cannot be skipped in a compressed
 * file. */
static ditto_status restore_packed(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    struct packed_cursor *c = (struct packed_cursor *)cursor;
    const ditto_dataset *dataset = &c->tfrecord->base;
    uint32_t file = (uint32_t)dti_bytes_get_at_most(from, c->tfrecord->files.count);
    uint64_t records = dti_bytes_get_u64(from), row;
    void *component[DITTO_MAX_COMPONENTS];
    DTI_TRY(dti_bytes_reader_status(from));
    c->file = file;
    c->records = 0;
    if (file == c->tfrecord->files.count)
        return DITTO_OK;
    dti_gzip_start(c->gzip, file);
    DTI_TRY(dti_owned_row_new(dataset, 0, &row));
    dti_owned_row_components(dataset, &row, component);
    ditto_status status = DITTO_OK;
    while (status == DITTO_OK && c->records < records)
        status = unpack_record(c, component);
    dti_owned_row_drop(dataset, &row);
    if (status == DITTO_END_OF_INPUT)
        return DTI_FAIL(
            DITTO_ERR_CORRUPT,
            "%s has %llu records, but %llu were read before the state was saved: the file has changed",
            c->tfrecord->files.file[file].name, (unsigned long long)c->records, (unsigned long long)records);
    return status;
}

static void where_packed(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    const struct dti_files *files = &((const struct dti_tfrecord *)dataset)->files;
    uint64_t number = dti_owned_row_block(row)->number, file = number >> 32;
    dti_text_add(text, "%s: record %llu",
                 /* A damaged state may contain any number. */
                 file < files->count ? files->file[file].name : "another file",
                 (unsigned long long)(number & UINT32_MAX));
}

const struct dti_dataset_kind dti_tfrecord_packed_kind = {
    .name = "tfrecord, compressed",
    .cursor_bytes = sizeof(struct packed_cursor),
    .open = open_packed,
    .next = next_packed,
    .close = close_packed,
    .save = save_packed,
    .restore = restore_packed,
    .fill = dti_owned_row_fill,
    .where = where_packed,
    .drop = dti_owned_row_drop,
    .save_row = dti_owned_row_save,
    .load_row = dti_owned_row_load,
    .digest = dti_tfrecord_digest,
    .free = dti_tfrecord_free,
};
