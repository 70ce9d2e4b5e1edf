/* src/input/sources/records/tfrecord_plain.c - records of plain files. The cursor goes from header to
 * header, and a row is the position of its record's first byte. */
#include "base/errors/status.h"
#include "input/sources/files/file_row.h"
#include "input/sources/files/window.h"
#include "input/sources/records/tfrecord.h"

#include <string.h>

/* -- choosing -- */

struct plain_cursor {
    struct dti_cursor base; /* first */
    const struct dti_tfrecord *tfrecord;
    struct dti_window window;
    uint64_t records; /* returned from the current file */
};

static ditto_status open_plain(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct plain_cursor *c = (struct plain_cursor *)cursor;
    /* The cast is safe because only descriptors change, and a lock protects them. */
    struct dti_tfrecord *t = (struct dti_tfrecord *)cursor->dataset;
    c->tfrecord = t;
    return dti_window_open(&c->window, &t->files, false, pass);
}

/* Checks the header of the next record, sets `row` and moves past the record. `header` has the first
 * `length` bytes of the record. */
static ditto_status walk(struct plain_cursor *c, const char *header, size_t length, uint64_t *row)
{
    struct dti_window *w = &c->window;
    const struct dti_tfrecord *t = c->tfrecord;
    struct dti_record record = { w->file, c->records + 1, w->at };
    uint64_t bytes;
    bool whole;
    if (length < DTI_TFRECORD_HEADER_BYTES)
        return dti_record_fail_cut(t, record, "header", w->at + length);
    DTI_TRY(dti_record_check_header(t, record, header, &bytes));
    DTI_TRY(dti_window_skip(w, DTI_TFRECORD_HEADER_BYTES + bytes + DTI_TFRECORD_FOOTER_BYTES, &whole));
    if (!whole)
        return dti_record_fail_cut(
            t, record, w->at < record.offset + DTI_TFRECORD_HEADER_BYTES + bytes ? "data" : "footer", w->at);
    dti_file_row_put(row,
                     (struct dti_file_row){ record.offset, record.file, (uint32_t)bytes, record.number });
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
        DTI_TRY(dti_window_need(w, DTI_TFRECORD_HEADER_BYTES, &data, &length));
        if (length > 0) {
            DTI_TRY(walk(c, data, length, rows.word + *got * rows.stride));
            ++*got;
            continue;
        }
        dti_window_next_file(w);
        c->records = 0;
    }
    return *got < want ? DITTO_END_OF_INPUT : DITTO_OK;
}

static void close_plain(struct dti_cursor *cursor)
{
    dti_window_close(&((struct plain_cursor *)cursor)->window);
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
    DTI_TRY(dti_window_restore(&c->window, from));
    c->records = dti_bytes_get_u64(from);
    return DITTO_OK;
}

/* -- reading -- */

static ditto_status parse_plain(const ditto_dataset *dataset, struct dti_file_row file_row, const char *bytes,
                                size_t index, void *const *destination, void *scratch)
{
    struct dti_record record = { file_row.file, file_row.number, file_row.offset };
    const char *data = bytes + DTI_TFRECORD_HEADER_BYTES;
    (void)scratch;
    DTI_TRY(dti_record_check_data((const struct dti_tfrecord *)dataset, record, data, file_row.bytes,
                                  data + file_row.bytes));
    size_t capacity = dataset->component[0].bytes;
    char *to = (char *)destination[0] + index * capacity;
    memcpy(to, data, file_row.bytes);
    memset(to + file_row.bytes, 0, capacity - file_row.bytes);
    ((int64_t *)destination[1])[index] = (int64_t)file_row.bytes;
    return DITTO_OK;
}

static ditto_status fill_plain(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                               size_t count, void *const *destination)
{
    struct dti_tfrecord *t = (struct dti_tfrecord *)dataset;
    return dti_file_rows_fill(dataset, &t->files, reader, rows, count,
                              DTI_TFRECORD_HEADER_BYTES + DTI_TFRECORD_FOOTER_BYTES, "record", parse_plain,
                              destination, NULL);
}

static ditto_status load_row_plain(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from)
{
    return dti_file_row_load(&((const struct dti_tfrecord *)dataset)->files, dataset->component[0].bytes, row,
                             from);
}

static void where_plain(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    dti_file_row_where(&((const struct dti_tfrecord *)dataset)->files, dti_file_row_get(row), "record", text);
}

const struct dti_dataset_kind dti_tfrecord_plain_kind = {
    .name = "tfrecord",
    .cursor_bytes = sizeof(struct plain_cursor),
    .open = open_plain,
    .next = next_plain,
    .close = close_plain,
    .save = save_plain,
    .restore = restore_plain,
    .fill = fill_plain,
    .where = where_plain,
    .load_row = load_row_plain,
    .digest = dti_tfrecord_digest,
    .free = dti_tfrecord_free,
};
