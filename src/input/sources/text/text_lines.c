/* src/input/sources/text/text_lines.c - finds lines, and rows that span lines. */
#include "input/sources/text/text_lines.h"
#include "base/errors/status.h"
#include "input/sources/files/file_row.h"

#include <string.h>

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

static ditto_status refuse_length(const struct dti_text_lines_cursor *c, const struct line_search *s)
{
    const struct dti_text_lines *l = c->lines;
    return DTI_FAIL(DITTO_ERR_CORRUPT, "%s:%llu: the %s has more than %llu bytes%s",
                    l->files.file[c->window.file].name, (unsigned long long)c->line, l->row_word,
                    (unsigned long long)l->most_bytes, s->inside ? ": a quote in it is not closed" : "");
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
            return refuse_length(c, &s);
        before = have;
        DTI_TRY(dti_window_need(&c->window, have + 1, &f->data, &have));
    }
    f->bytes = ended ? s.newline : have;
    f->taken = f->bytes + ended;
    f->lines = s.crossed ? count_lines(f->data, f->taken) : 1;
    f->bytes -= ended && f->bytes > 0 && f->data[f->bytes - 1] == '\r';
    return f->bytes > most ? refuse_length(c, &s) : DITTO_OK;
}

static bool is_blank(const struct found_row *f, char delimiter)
{
    size_t i = 0;
    while (i < f->bytes && (f->data[i] == ' ' || f->data[i] == '\t') && f->data[i] != delimiter)
        i++;
    return i == f->bytes;
}

/* Skips the byte order mark of UTF-8, which some programs write at the start of files. */
static ditto_status skip_mark(struct dti_window *window)
{
    const char *data;
    size_t have;
    DTI_TRY(dti_window_need(window, 3, &data, &have));
    if (have >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
        dti_window_take(window, 3);
    return DITTO_OK;
}

static ditto_status next_row(struct dti_text_lines_cursor *c, uint64_t *row)
{
    const struct dti_text_lines *l = c->lines;
    struct dti_window *w = &c->window;
    while (!dti_window_ended(w)) {
        struct found_row f;
        if (w->at == 0)
            DTI_TRY(skip_mark(w));
        bool skipped = c->line <= l->skip_lines;
        DTI_TRY(find_row(c, l->quotes && !skipped, &f));
        if (f.taken == 0) {
            dti_window_next_file(w);
            c->line = 1;
            continue;
        }
        skipped = skipped || (l->passes_blank && is_blank(&f, l->delimiter));
        if (!skipped)
            dti_file_row_put(row, (struct dti_file_row){ w->at, w->file, (uint32_t)f.bytes, c->line });
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
    return dti_window_open(&c->window, dti_text_lines_files(cursor->dataset), pass);
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
    dti_window_restore(&c->window, from);
    c->line = dti_bytes_get_u64(from);
    return DITTO_OK;
}

/* -- datasets -- */

struct dti_files *dti_text_lines_files(const ditto_dataset *dataset)
{
    /* The cast is valid because no dataset is defined as const. */
    return (struct dti_files *)&((const struct dti_text_lines *)dataset)->files;
}

ditto_status dti_text_lines_load_row(const ditto_dataset *dataset, uint64_t *row,
                                     struct dti_bytes_reader *from)
{
    const struct dti_text_lines *l = (const struct dti_text_lines *)dataset;
    return dti_file_row_load(&l->files, longest_row(l), row, from);
}

void dti_text_lines_where(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    dti_file_row_where(&((const struct dti_text_lines *)dataset)->files, dti_file_row_get(row), "line", text);
}

void dti_text_lines_digest(const ditto_dataset *dataset, struct dti_bytes *to)
{
    const struct dti_text_lines *l = (const struct dti_text_lines *)dataset;
    dti_bytes_put_u64(to, l->files.count);
    dti_bytes_put_u64(to, l->skip_lines);
    dti_bytes_put_u64(to, l->most_bytes);
}

void dti_text_lines_free(ditto_dataset *dataset)
{
    dti_files_free(&((struct dti_text_lines *)dataset)->files);
}

ditto_status dti_text_lines_finish(struct dti_text_lines *l)
{
    struct dti_cursor *cursor = NULL;
    uint64_t row[DTI_FILE_ROW_WORDS];
    size_t got;
    l->base.row_words = DTI_FILE_ROW_WORDS;
    l->base.files = l->files.count;
    l->base.by_file = true;
    DTI_TRY(dti_cursor_open(&l->base, &(struct dti_pass){ 0 }, &cursor));
    ditto_status status = dti_cursor_next(cursor, (struct dti_rows){ row, DTI_FILE_ROW_WORDS }, 1, &got);
    dti_cursor_close(cursor);
    if (status != DITTO_END_OF_INPUT)
        return status;
    return DTI_FAIL(DITTO_ERR_INVALID, "%s%s: there is no row after the %llu lines that are skipped",
                    l->files.file[0].name, l->files.count > 1 ? " and the files after it" : "",
                    (unsigned long long)l->skip_lines);
}
