/* src/input/sources/records/fixed.c - files of records of equal length. */
#include "base/errors/status.h"
#include "base/types/convert.h"
#include "input/sources/files/file_row.h"
#include "input/sources/files/signature.h"
#include "input/sources/sources.h"

#include <stdlib.h>
#include <string.h>

/* Shorter records are read as a whole and then copied. Records from this size on are read component by
 * component. Records that fill_runs can read are read directly, whatever their size. */
#define LONG_BYTES ((size_t)256 << 10)

struct fixed_dataset {
    ditto_dataset base; /* first */
    struct dti_files files;
    ditto_fixed_options options;
    uint64_t stride;   /* bytes from the start of one record to the next */
    uint64_t *records; /* [files.count] numbers of records */
    bool swap;
};

struct fixed_cursor {
    struct dti_cursor base; /* first */
    const struct fixed_dataset *fixed;
    struct dti_pass pass;
    uint32_t file;   /* files.count when all have been returned */
    uint64_t record; /* index in the file of the next record */
};

/* -- choosing -- */

/* Returns what next_fixed writes as the length of a row: the bytes of a record, or 0 for long records, which
 * fill_long reads. */
static uint32_t bytes_of_row(const struct fixed_dataset *f)
{
    return f->base.row_bytes < LONG_BYTES ? (uint32_t)f->base.row_bytes : 0;
}

static void start_file(struct fixed_cursor *c, uint32_t from)
{
    c->file = dti_files_next(&c->fixed->files, from, c->pass.first_file, c->pass.shards, c->pass.shard);
    c->record = 0;
}

static ditto_status open_fixed(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct fixed_cursor *c = (struct fixed_cursor *)cursor;
    c->fixed = (const struct fixed_dataset *)cursor->dataset;
    c->pass = *pass;
    start_file(c, 0);
    return DITTO_OK;
}

static ditto_status next_fixed(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    struct fixed_cursor *c = (struct fixed_cursor *)cursor;
    const struct fixed_dataset *f = c->fixed;
    while (*got < want && c->file < f->files.count) {
        if (c->record == f->records[c->file]) {
            start_file(c, c->file + 1);
            continue;
        }
        uint64_t offset = f->options.header_bytes + c->record * f->stride;
        struct dti_file_row file_row = { offset, c->file, bytes_of_row(f), c->record + 1 };
        dti_file_row_put(rows.word + *got * rows.stride, file_row);
        c->record++;
        ++*got;
    }
    return *got < want ? DITTO_END_OF_INPUT : DITTO_OK;
}

static ditto_status save_fixed(struct dti_cursor *cursor, struct dti_bytes *to)
{
    const struct fixed_cursor *c = (const struct fixed_cursor *)cursor;
    dti_bytes_put_u64(to, c->file);
    dti_bytes_put_u64(to, c->record);
    return DITTO_OK;
}

static ditto_status restore_fixed(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    struct fixed_cursor *c = (struct fixed_cursor *)cursor;
    c->file = (uint32_t)dti_bytes_get_at_most(from, c->fixed->files.count);
    c->record = dti_bytes_get_at_most(from, c->file < c->fixed->files.count ? c->fixed->records[c->file] : 0);
    return DITTO_OK;
}

/* -- reading -- */

/* Reads bytes of component k, of one record or of neighbouring ones, directly to their destination. */
static ditto_status read_into(const ditto_dataset *dataset, uint32_t k, struct dti_file_row file_row,
                              uint64_t offset, void *to, size_t bytes)
{
    /* The cast is safe because only descriptors change, and a lock protects them. */
    struct fixed_dataset *f = (struct fixed_dataset *)dataset;
    DTI_TRY(dti_files_read_all(&f->files, file_row.file, offset, to, bytes, "record", file_row.number));
    dti_elements_arrange(to, bytes, dataset->component[k].dtype, f->swap);
    return DITTO_OK;
}

/* Fills batches of a dataset of one component whose records follow one another in the file. Neighbouring
 * records are read together. */
static ditto_status fill_runs(const ditto_dataset *dataset, struct dti_rows rows, size_t count,
                              void *const *destination)
{
    size_t bytes = dataset->row_bytes;
    for (size_t i = 0, run; i < count; i += run) {
        struct dti_file_row first = dti_file_row_get(dti_rows_from(rows, i).word), next;
        for (run = 1; i + run < count; run++) {
            next = dti_file_row_get(dti_rows_from(rows, i + run).word);
            if (next.file != first.file || next.offset != first.offset + run * bytes)
                break;
        }
        DTI_TRY(read_into(dataset, 0, first, first.offset, (char *)destination[0] + i * bytes, run * bytes));
    }
    return DITTO_OK;
}

/* Fills batches of long records, with one read for each component of each record. */
static ditto_status fill_long(const ditto_dataset *dataset, struct dti_rows rows, size_t count,
                              void *const *destination)
{
    for (size_t i = 0; i < count; i++) {
        struct dti_file_row file_row = dti_file_row_get(dti_rows_from(rows, i).word);
        uint64_t at = file_row.offset;
        for (uint32_t k = 0; k < dataset->components; k++) {
            size_t bytes = dataset->component[k].bytes;
            DTI_TRY(read_into(dataset, k, file_row, at, (char *)destination[k] + i * bytes, bytes));
            at += bytes;
        }
    }
    return DITTO_OK;
}

static ditto_status parse_fixed(const ditto_dataset *dataset, struct dti_file_row file_row, const char *bytes,
                                size_t index, void *const *destination, void *scratch)
{
    (void)file_row, (void)scratch;
    for (uint32_t k = 0; k < dataset->components; k++) {
        size_t component_bytes = dataset->component[k].bytes;
        char *to = (char *)destination[k] + index * component_bytes;
        memcpy(to, bytes, component_bytes);
        dti_elements_arrange(to, component_bytes, dataset->component[k].dtype,
                             ((const struct fixed_dataset *)dataset)->swap);
        bytes += component_bytes;
    }
    return DITTO_OK;
}

static ditto_status fill_fixed(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                               size_t count, void *const *destination)
{
    struct fixed_dataset *f = (struct fixed_dataset *)dataset;
    if (dataset->components == 1 && f->stride == dataset->row_bytes)
        return fill_runs(dataset, rows, count, destination);
    if (dataset->row_bytes >= LONG_BYTES)
        return fill_long(dataset, rows, count, destination);
    return dti_file_rows_fill(dataset, &f->files, reader, rows, count, 0, "record", parse_fixed, destination,
                              NULL);
}

static ditto_status load_row_fixed(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from)
{
    const struct fixed_dataset *f = (const struct fixed_dataset *)dataset;
    DTI_TRY(dti_file_row_load(&f->files, bytes_of_row(f), row, from));
    struct dti_file_row r = dti_file_row_get(row);
    return r.bytes == bytes_of_row(f) && r.number - 1 < f->records[r.file] &&
                   r.offset == f->options.header_bytes + (r.number - 1) * f->stride
               ? DITTO_OK
               : dti_file_row_refuse(&f->files, r);
}

static void where_fixed(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    dti_file_row_where(&((const struct fixed_dataset *)dataset)->files, dti_file_row_get(row), "record",
                       text);
}

/* -- making -- */

static void digest_fixed(const ditto_dataset *dataset, struct dti_bytes *to)
{
    const struct fixed_dataset *f = (const struct fixed_dataset *)dataset;
    dti_bytes_put_u64(to, f->options.header_bytes);
    dti_bytes_put_u64(to, f->options.footer_bytes);
    dti_bytes_put_u64(to, f->options.big_endian != 0);
    dti_bytes_put_u64(to, f->files.count);
    for (uint32_t i = 0; i < f->files.count; i++)
        dti_bytes_put_u64(to, f->records[i]);
    /* A stride of one record is left out, so that states of earlier versions without strides stay valid. */
    if (f->stride != dataset->row_bytes)
        dti_bytes_put_u64(to, f->stride);
}

static void free_fixed(ditto_dataset *dataset)
{
    struct fixed_dataset *f = (struct fixed_dataset *)dataset;
    free(f->records);
    dti_files_free(&f->files);
}

static const struct dti_dataset_kind fixed_kind = {
    .name = "fixed",
    .cursor_bytes = sizeof(struct fixed_cursor),
    .open = open_fixed,
    .next = next_fixed,
    .save = save_fixed,
    .restore = restore_fixed,
    .fill = fill_fixed,
    .where = where_fixed,
    .load_row = load_row_fixed,
    .digest = digest_fixed,
    .free = free_fixed,
};

/* Computes the number of records in file i. */
static ditto_status count_records(struct fixed_dataset *f, uint32_t i, uint64_t *records)
{
    const struct dti_file *file = &f->files.file[i];
    uint64_t header = f->options.header_bytes, footer = f->options.footer_bytes, record = f->base.row_bytes;
    if (file->bytes < header || file->bytes - header < footer)
        return DTI_FAIL(DITTO_ERR_CORRUPT,
                        "%s ends at offset %llu: shorter than its header of %llu and footer of %llu bytes",
                        file->name, (unsigned long long)file->bytes, (unsigned long long)header,
                        (unsigned long long)footer);
    uint64_t left = file->bytes - header - footer;
    *records = left < record ? 0 : (left - record) / f->stride + 1;
    if (f->stride == record && left % record != 0) {
        const char *format = dti_signature_of_file(&f->files, i);
        return DTI_FAIL(DITTO_ERR_CORRUPT,
                        "%s: from offset %llu to %llu there are %llu records of %llu bytes, and %llu bytes "
                        "more from offset %llu on%s%s",
                        file->name, (unsigned long long)header, (unsigned long long)(header + left),
                        (unsigned long long)*records, (unsigned long long)record,
                        (unsigned long long)(left % record), (unsigned long long)(header + *records * record),
                        format != NULL ? ": the file is " : "", format != NULL ? format : "");
    }
    return DITTO_OK;
}

/* If all elements have the same size, a record that begins within an element of another record is a mistake,
 * for example a stride that was given in elements. */
static ditto_status check_stride(const struct fixed_dataset *f)
{
    size_t element = ditto_dtype_bytes(f->base.component[0].dtype);
    for (uint32_t k = 1; k < f->base.components; k++)
        if (ditto_dtype_bytes(f->base.component[k].dtype) != element)
            return DITTO_OK;
    if (f->stride < f->base.row_bytes && f->stride % element != 0)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "stride_bytes is %llu, but elements have %zu bytes: records would begin within an element",
            (unsigned long long)f->stride, element);
    return DITTO_OK;
}

static ditto_status prepare(struct fixed_dataset *f, const ditto_files *files, const ditto_tensor *row,
                            uint32_t components)
{
    f->base.row_words = DTI_FILE_ROW_WORDS;
    f->base.components = components;
    for (uint32_t k = 0; k < components; k++)
        DTI_TRY(dti_dataset_set_component(&f->base, k, &row[k]));
    DTI_TRY(dti_dataset_finish(&f->base)); /* already here, because counting records needs row_bytes */
    if (f->base.row_bytes == 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "a record has 0 bytes, so a file could hold any number of them");
    f->stride = f->options.stride_bytes != 0 ? f->options.stride_bytes : f->base.row_bytes;
    DTI_TRY(check_stride(f));
    DTI_TRY(dti_files_create(&f->files, files));
    f->base.files = f->files.count;
    f->base.by_file = true;
    f->records = calloc(f->files.count, sizeof *f->records);
    if (f->records == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a list of files");
    bool has_records = false;
    for (uint32_t i = 0; i < f->files.count; i++) {
        DTI_TRY(count_records(f, i, &f->records[i]));
        has_records |= f->records[i] > 0;
    }
    if (!has_records)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s%s: there are no records to iterate", f->files.file[0].name,
                        f->files.count > 1 ? " and all other files" : "");
    return DITTO_OK;
}

ditto_status dti_fixed_create(const ditto_files *files, const ditto_tensor *row, uint32_t components,
                              const ditto_fixed_options *options, ditto_dataset **out)
{
    ditto_dataset *base;
    DTI_TRY(dti_dataset_new(sizeof(struct fixed_dataset), &fixed_kind, NULL, 0, &base));
    struct fixed_dataset *f = (struct fixed_dataset *)base;
    f->options = *options;
    f->swap = dti_elements_differ(options->big_endian != 0);
    return dti_dataset_out(base, prepare(f, files, row, components), out);
}
