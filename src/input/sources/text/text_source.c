/* src/input/sources/text/text_source.c - a source whose rows are the unchanged lines of text files. */
#include "base/errors/status.h"
#include "input/sources/owned_row.h"
#include "input/sources/sources.h"
#include "input/sources/text/text_lines.h"

#include <string.h>

#define DEFAULT_BYTES 1024u
#define MOST_BYTES    ((uint64_t)1 << 30)

static ditto_status copy_line(const ditto_dataset *dataset, struct dti_file_row file_row, const char *line,
                              size_t index, void *const *destination, void *scratch)
{
    const struct dti_text_lines *text = (const struct dti_text_lines *)dataset;
    size_t capacity = dataset->component[0].bytes;
    char *to = (char *)destination[0] + index * capacity;
    (void)scratch;
    if (file_row.bytes > capacity)
        return dti_text_lines_explain(dataset, file_row.file, line, file_row.bytes,
                                      DTI_FAIL(DITTO_ERR_CORRUPT, "%s:%llu: the line has more than %zu bytes",
                                               text->files.file[file_row.file].name,
                                               (unsigned long long)file_row.number, capacity));
    memcpy(to, line, file_row.bytes);
    memset(to + file_row.bytes, 0, capacity - file_row.bytes);
    ((int64_t *)destination[1])[index] = file_row.bytes;
    return DITTO_OK;
}

static const struct dti_dataset_kind text_kind = {
    .name = "text",
    .cursor_bytes = sizeof(struct dti_text_lines_cursor),
    .open = dti_text_lines_open,
    .next = dti_text_lines_next,
    .close = dti_text_lines_close,
    .save = dti_text_lines_save,
    .restore = dti_text_lines_restore,
    .fill = dti_text_lines_fill,
    .where = dti_text_lines_where,
    .drop = dti_owned_row_drop,
    .save_row = dti_text_lines_save_row,
    .load_row = dti_text_lines_load_row,
    .digest = dti_text_lines_digest,
    .free = dti_text_lines_free,
};

static ditto_status prepare(struct dti_text_lines *text, const ditto_files *files,
                            const ditto_text_options *options)
{
    text->skip_lines = options->skip_lines;
    text->most_bytes = options->max_bytes != 0 ? options->max_bytes : DEFAULT_BYTES;
    text->row_word = "line";
    text->parse = copy_line;
    if (text->most_bytes > MOST_BYTES)
        return DTI_FAIL(DITTO_ERR_RANGE, "options->max_bytes is %llu: a line has at most %llu",
                        (unsigned long long)text->most_bytes, (unsigned long long)MOST_BYTES);
    text->base.components = 2;
    DTI_TRY(dti_dataset_set_component(
        &text->base, 0,
        &(ditto_tensor){ .dtype = DITTO_U8, .rank = 1, .shape = { (size_t)text->most_bytes } }));
    DTI_TRY(dti_dataset_set_component(&text->base, 1, &(ditto_tensor){ .dtype = DITTO_I64 }));
    return dti_text_lines_finish(text, files, options->compression);
}

ditto_status dti_text_create(const ditto_files *files, const ditto_text_options *options, ditto_dataset **out)
{
    ditto_dataset *base;
    DTI_TRY(dti_dataset_new(sizeof(struct dti_text_lines), &text_kind, NULL, 0, &base));
    struct dti_text_lines *text = (struct dti_text_lines *)base;
    return dti_dataset_out(base, prepare(text, files, options), out);
}
