/* src/input/sources/text/text_lines.c - finds lines, and rows that span lines. */
#include "input/sources/text/text_lines.h"
#include "base/errors/status.h"
#include "input/sources/files/signature.h"
#include "input/sources/owned_row.h"

#include <string.h>

/* -- what is wrong with a file -- */

/* Returns the files for reading. The dataset is constant, but reading opens and closes its files. */
static struct dti_files *files_of(const ditto_dataset *dataset)
{
    /* The cast is valid because no dataset is defined as const. */
    return (struct dti_files *)&((const struct dti_text_lines *)dataset)->files;
}

/* Returns true if a carriage return is not followed by a line feed. The one that ends the row may be. */
static bool has_lone_return(const char *row, size_t bytes)
{
    for (const char *at = row; (at = memchr(at, '\r', bytes - (size_t)(at - row))) != NULL; at++)
        if (at + 1 < row + bytes && at[1] != '\n')
            return true;
    return false;
}

ditto_status dti_text_lines_explain(const ditto_dataset *dataset, uint32_t file, const char *row,
                                    size_t bytes, ditto_status status)
{
    if (status != DITTO_ERR_CORRUPT)
        return status;
    const struct dti_text_lines *l = (const struct dti_text_lines *)dataset;
    const char *format = l->packed ? NULL : dti_signature_of_file(files_of(dataset), file);
    if (format != NULL)
        return DTI_FAIL(status, "%s: the file is %s", dti_error_get()->message, format);
    if (memchr(row, '\0', bytes) != NULL)
        return DTI_FAIL(status, "%s: the %s has NUL bytes, so it is not text, or it was never written",
                        dti_error_get()->message, l->row_word);
    if (has_lone_return(row, bytes))
        return DTI_FAIL(status, "%s: a carriage return in the %s has no line feed after it, and ends no line",
                        dti_error_get()->message, l->row_word);
    return status;
}

/* -- one row -- */

/* The search for a row's end. It assumes that every quote opens or closes a quoted part. A quote in the
 * middle of a field is invalid and would mislead it. Such a row is refused when it is parsed, and no replica
 * of the pipeline gets a row after it. */
struct line_search {
    /* The bytes before `at` have been searched, and the row does not end there. */
    size_t at;

    /* There is no line end in [at, newline). These bytes are not searched twice, even if there are many
     * quotes. */
    size_t newline;
    bool quotes;  /* quotes have a meaning */
    bool inside;  /* `at` is inside quotes */
    bool crossed; /* a line end was inside quotes */
};

static size_t find(const char *data, size_t from, size_t to, char byte)
{
    const char *found = from < to ? memchr(data + from, byte, to - from) : NULL;
    return found != NULL ? (size_t)(found - data) : to;
}

/* Returns true if the row ends at s->newline, and false if it does not end in the first `have` bytes. */
static bool search_end(struct line_search *s, const char *data, size_t have)
{
    for (;;) {
        if (s->inside) {
            s->at = find(data, s->at, have, '"') + 1;
            if (s->at > have)
                break;
            s->inside = false;
        }
        s->crossed |= s->newline < s->at;
        if (s->newline < s->at || (s->newline < have && data[s->newline] != '\n'))
            s->newline = find(data, s->newline < s->at ? s->at : s->newline, have, '\n');
        s->at = (s->quotes ? find(data, s->at, s->newline, '"') : s->newline) + 1;
        if (s->at > s->newline)
            break;
        s->inside = true;
    }
    if (!s->inside && s->newline < have)
        return true;
    s->at = have;
    return false;
}

static uint64_t count_lines(const char *data, size_t bytes)
{
    uint64_t lines = 0;
    for (size_t at = find(data, 0, bytes, '\n'); at < bytes; at = find(data, at + 1, bytes, '\n'))
        lines++;
    return lines;
}

struct found_row {
    const char *data;
    size_t bytes; /* of the row without its line end */
    size_t taken; /* of the row with its line end, or 0 if the file has ended */
    uint64_t lines;
};

static ditto_status refuse_length(const struct dti_text_lines_cursor *c, const struct line_search *s,
                                  const struct found_row *f)
{
    const struct dti_text_lines *l = c->lines;
    ditto_status status = DTI_FAIL(DITTO_ERR_CORRUPT, "%s:%llu: the %s has more than %llu bytes%s",
                                   l->files.file[c->window.file].name, (unsigned long long)c->line,
                                   l->row_word, (unsigned long long)l->most_bytes,
                                   s->inside ? ": a quote in it is not closed" : "");
    return dti_text_lines_explain(&l->base, c->window.file, f->data, (size_t)l->most_bytes, status);
}

static uint64_t longest_row(const struct dti_text_lines *l)
{
    return l->most_bytes > DTI_TEXT_LINE_MOST_BYTES ? l->most_bytes : DTI_TEXT_LINE_MOST_BYTES;
}

static ditto_status find_row(struct dti_text_lines_cursor *c, bool quotes, struct found_row *f)
{
    struct line_search s = { .quotes = quotes };
    uint64_t most = longest_row(c->lines);
    size_t have, before = 0;
    bool ended;
    DTI_TRY(dti_window_need(&c->window, 1, &f->data, &have));
    while (!(ended = search_end(&s, f->data, have)) && have > before) {
        if (have > most + 1) /* the last byte may be the '\r' of a line end */
            return refuse_length(c, &s, f);
        before = have;
        DTI_TRY(dti_window_need(&c->window, have + 1, &f->data, &have));
    }
    f->bytes = ended ? s.newline : have;
    f->taken = f->bytes + ended;
    f->lines = s.crossed ? count_lines(f->data, f->taken) : 1;
    f->bytes -= ended && f->bytes > 0 && f->data[f->bytes - 1] == '\r';
    return f->bytes > most ? refuse_length(c, &s, f) : DITTO_OK;
}

static bool is_blank(const struct found_row *f, char delimiter)
{
    size_t i = 0;
    while (i < f->bytes && (f->data[i] == ' ' || f->data[i] == '\t') && f->data[i] != delimiter)
        i++;
    return i == f->bytes;
}

/* Refuses a file that is not text, whose bytes would also make rows. Skips the byte order mark of UTF-8,
 * which some programs write at the start of files. */
static ditto_status begin_file(struct dti_window *window)
{
    const char *data;
    size_t have;
    DTI_TRY(dti_window_need(window, 3, &data, &have)); /* this reads more */
    const char *format = dti_signature_find(data, have < DTI_SIGNATURE_BYTES ? have : DTI_SIGNATURE_BYTES,
                                            true);
    if (format != NULL)
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s%s is %s", window->gzip != NULL ? "the contents of " : "",
                        window->files->file[window->file].name, format);
    if (have >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
        dti_window_take(window, 3);
    return DITTO_OK;
}

/* Describes a row that was found. The rows of compressed files are parsed here, because their bytes cannot be
 * read a second time. The number of such a row is file << 32 | line, at most UINT32_MAX. */
static ditto_status put_row(const struct dti_text_lines_cursor *c, const struct found_row *f, uint64_t *row)
{
    const struct dti_text_lines *l = c->lines;
    struct dti_file_row found = { c->window.at, c->window.file, (uint32_t)f->bytes, c->line };
    void *component[DITTO_MAX_COMPONENTS];
    if (!l->packed) {
        dti_file_row_put(row, found);
        return DITTO_OK;
    }
    uint64_t number = c->line < UINT32_MAX ? c->line : UINT32_MAX;
    DTI_TRY(dti_owned_row_new(&l->base, (uint64_t)found.file << 32 | number, row));
    dti_owned_row_components(&l->base, row, component);
    ditto_status status = l->parse(&l->base, found, f->data, 0, component, NULL);
    if (status != DITTO_OK)
        dti_owned_row_drop(&l->base, row);
    return status;
}

static ditto_status next_row(struct dti_text_lines_cursor *c, uint64_t *row)
{
    const struct dti_text_lines *l = c->lines;
    struct dti_window *w = &c->window;
    while (!dti_window_ended(w)) {
        struct found_row f;
        if (w->at == 0)
            DTI_TRY(begin_file(w));
        bool skipped = c->line <= l->skip_lines;
        DTI_TRY(find_row(c, l->quotes && !skipped, &f));
        if (f.taken == 0) {
            dti_window_next_file(w);
            c->line = 1;
            continue;
        }
        skipped = skipped || (l->passes_blank && is_blank(&f, l->delimiter));
        if (!skipped)
            DTI_TRY(put_row(c, &f, row));
        dti_window_take(w, f.taken);
        c->line += f.lines;
        if (!skipped)
            return DITTO_OK;
    }
    return DITTO_END_OF_INPUT;
}

/* -- cursors -- */

ditto_status dti_text_lines_open(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct dti_text_lines_cursor *c = (struct dti_text_lines_cursor *)cursor;
    c->lines = (const struct dti_text_lines *)cursor->dataset;
    c->line = 1;
    return dti_window_open(&c->window, files_of(cursor->dataset), c->lines->packed, pass);
}

ditto_status dti_text_lines_next(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    while (*got < want) {
        ditto_status status = next_row((struct dti_text_lines_cursor *)cursor,
                                       rows.word + *got * rows.stride);
        if (status != DITTO_OK)
            return status;
        ++*got;
    }
    return DITTO_OK;
}

void dti_text_lines_close(struct dti_cursor *cursor)
{
    dti_window_close(&((struct dti_text_lines_cursor *)cursor)->window);
}

ditto_status dti_text_lines_save(struct dti_cursor *cursor, struct dti_bytes *to)
{
    const struct dti_text_lines_cursor *c = (const struct dti_text_lines_cursor *)cursor;
    dti_window_save(&c->window, to);
    dti_bytes_put_u64(to, c->line);
    return DITTO_OK;
}

ditto_status dti_text_lines_restore(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    struct dti_text_lines_cursor *c = (struct dti_text_lines_cursor *)cursor;
    DTI_TRY(dti_window_restore(&c->window, from));
    c->line = dti_bytes_get_u64(from);
    return DITTO_OK;
}

/* -- datasets -- */

ditto_status dti_text_lines_fill(const ditto_dataset *dataset, struct dti_reader *reader,
                                 struct dti_rows rows, size_t count, void *const *destination)
{
    const struct dti_text_lines *l = (const struct dti_text_lines *)dataset;
    if (l->packed)
        return dti_owned_row_fill(dataset, reader, rows, count, destination);
    return dti_file_rows_fill(dataset, files_of(dataset), reader, rows, count, 0, "line", l->parse,
                              destination, NULL);
}

ditto_status dti_text_lines_save_row(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to)
{
    if (dataset->holds)
        return dti_owned_row_save(dataset, row, to);
    for (int i = 0; i < DTI_FILE_ROW_WORDS; i++)
        dti_bytes_put_u64(to, row[i]);
    return DITTO_OK;
}

ditto_status dti_text_lines_load_row(const ditto_dataset *dataset, uint64_t *row,
                                     struct dti_bytes_reader *from)
{
    const struct dti_text_lines *l = (const struct dti_text_lines *)dataset;
    if (l->packed)
        return dti_owned_row_load(dataset, row, from);
    return dti_file_row_load(&l->files, longest_row(l), row, from);
}

void dti_text_lines_where(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    const struct dti_text_lines *l = (const struct dti_text_lines *)dataset;
    if (!l->packed) {
        dti_file_row_where(&l->files, dti_file_row_get(row), "line", text);
        return;
    }
    uint64_t number = dti_owned_row_block(row)->number, file = number >> 32;
    dti_text_add(text, "%s:%llu", file < l->files.count ? l->files.file[file].name : "another file",
                 (unsigned long long)(number & UINT32_MAX)); /* a damaged state may contain any number */
}

void dti_text_lines_digest(const ditto_dataset *dataset, struct dti_bytes *to)
{
    const struct dti_text_lines *l = (const struct dti_text_lines *)dataset;
    dti_bytes_put_u64(to, l->files.count);
    dti_bytes_put_u64(to, l->skip_lines);
    dti_bytes_put_u64(to, l->most_bytes);
    if (l->packed) /* left out for plain files, so that states of earlier versions stay valid */
        dti_bytes_put_u64(to, l->packed);
}

void dti_text_lines_free(ditto_dataset *dataset)
{
    dti_files_free(&((struct dti_text_lines *)dataset)->files);
}

ditto_status dti_text_lines_finish(struct dti_text_lines *l, const ditto_files *files,
                                   ditto_compression compression)
{
    struct dti_cursor *cursor = NULL;
    uint64_t word[DTI_FILE_ROW_WORDS];
    struct dti_rows row = { word, DTI_FILE_ROW_WORDS };
    size_t got;
    DTI_TRY(dti_dataset_finish(&l->base)); /* already here, because a compressed row is parsed */
    DTI_TRY(dti_files_create(&l->files, files));
    l->packed = compression == DITTO_COMPRESSION_GZIP;
    l->base.holds = l->packed;
    l->base.row_words = l->packed ? 1 : DTI_FILE_ROW_WORDS;
    l->base.files = l->files.count;
    l->base.by_file = true;
    DTI_TRY(dti_cursor_open(&l->base, &(struct dti_pass){ 0 }, &cursor));
    ditto_status status = dti_cursor_next(cursor, row, 1, &got);
    dti_rows_drop(&l->base, row, got);
    dti_cursor_close(cursor);
    if (status != DITTO_END_OF_INPUT)
        return status;
    return DTI_FAIL(DITTO_ERR_INVALID, "%s%s: there is no row after the %llu lines that are skipped",
                    l->files.file[0].name, l->files.count > 1 ? " and the files after it" : "",
                    (unsigned long long)l->skip_lines);
}
