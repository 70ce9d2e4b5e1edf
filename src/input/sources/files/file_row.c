/* src/input/sources/files/file_row.c - reads rows that are positions in files. */
#include "input/sources/files/file_row.h"
#include "base/errors/status.h"

#include <string.h>

/* The most bytes of one read, unless a single row has more. */
#define SPAN_BYTES ((uint64_t)256 << 10)

/* A gap between rows of at most this size is read too, because another read would cost more. */
#define GAP_BYTES ((uint64_t)4096)

void dti_file_row_where(const struct dti_files *files, struct dti_file_row file_row, const char *what,
                        struct dti_text *text)
{
    const char *name = files->file[file_row.file].name;
    if (strcmp(what, "line") == 0)
        dti_text_add(text, "%s:%llu", name, (unsigned long long)file_row.number);
    else
        dti_text_add(text, "%s: %s %llu at offset %llu", name, what, (unsigned long long)file_row.number,
                     (unsigned long long)file_row.offset);
}

ditto_status dti_file_row_refuse(const struct dti_files *files, struct dti_file_row file_row)
{
    return DTI_FAIL(DITTO_ERR_CORRUPT,
                    "a row of %u bytes at offset %llu of file %u of %u: the iterator's state is damaged",
                    file_row.bytes, (unsigned long long)file_row.offset, file_row.file, files->count);
}

ditto_status dti_file_row_load(const struct dti_files *files, uint64_t most_bytes, uint64_t *row,
                               struct dti_bytes_reader *from)
{
    for (int i = 0; i < DTI_FILE_ROW_WORDS; i++)
        row[i] = dti_bytes_get_u64(from);
    DTI_TRY(dti_bytes_reader_status(from));
    struct dti_file_row file_row = dti_file_row_get(row);
    return file_row.file < files->count && file_row.offset <= INT64_MAX - UINT32_MAX &&
                   file_row.bytes <= most_bytes
               ? DITTO_OK
               : dti_file_row_refuse(files, file_row);
}

/* Returns how many rows, from the first on, can be read together, and sets *end to the end of the read. */
static size_t span_of(struct dti_rows rows, size_t count, size_t after, uint64_t *end)
{
    struct dti_file_row first = dti_file_row_get(rows.word);
    size_t run = 1;
    *end = first.offset + first.bytes + after;
    for (; run < count; run++) {
        struct dti_file_row next = dti_file_row_get(dti_rows_from(rows, run).word);
        uint64_t next_end = next.offset + next.bytes + after;
        if (next.file != first.file || next.offset < first.offset || next.offset > *end + GAP_BYTES ||
            next_end - first.offset > SPAN_BYTES)
            break;
        *end = next_end > *end ? next_end : *end;
    }
    return run;
}

ditto_status dti_file_rows_fill(const ditto_dataset *dataset, struct dti_files *files,
                                struct dti_reader *reader, struct dti_rows rows, size_t count, size_t after,
                                const char *what, dti_file_row_parse *parse, void *const *destination,
                                void *scratch)
{
    for (size_t done = 0, run; done < count; done += run) {
        struct dti_rows span = dti_rows_from(rows, done);
        struct dti_file_row first = dti_file_row_get(span.word);
        uint64_t end, begin = first.offset;
        run = span_of(span, count - done, after, &end);
        char *bytes = dti_reader_buffer(reader, (size_t)(end - begin) + 1);
        if (bytes == NULL)
            return DITTO_ERR_NO_MEMORY;
        DTI_TRY(
            dti_files_read_all(files, first.file, begin, bytes, (size_t)(end - begin), what, first.number));
        for (size_t i = 0; i < run; i++) {
            struct dti_file_row file_row = dti_file_row_get(dti_rows_from(span, i).word);
            DTI_TRY(
                parse(dataset, file_row, bytes + (file_row.offset - begin), done + i, destination, scratch));
        }
    }
    return DITTO_OK;
}
