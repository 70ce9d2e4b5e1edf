/* src/input/csv.c - rows from the lines of a file of numbers.
 *
 * The sequencer only looks for line ends, in large sequential reads; a row is the place of its line. The producers read
 * (pread: no shared position) and parse the lines of their batch, in parallel. Nothing is mapped, so a file that shrinks
 * meanwhile gives an error, not a fault; and nothing is kept, so a file may be larger than memory. */
#include "input/input.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES     ((size_t)256 << 10) /* per sequential read */
#define MOST_COLUMNS   1000000u
#define LINE_MAX_BYTES ((size_t)16 << 20) /* longer: surely not a table of numbers */

struct csv_dataset {
    ditto_dataset base; /* first */
    int file;
    char *path, delimiter;
    uint32_t columns, skip_lines;
    struct {
        uint32_t first, count;
    } range[DITTO_MAX_COMPONENTS];
};

/* -- finding lines -- */

struct csv_cursor {
    const struct csv_dataset *csv;
    uint64_t offset; /* in the file, of the next byte in buffer[used..] */
    uint64_t line;   /* number of the next line, from 1 */
    size_t used, filled;
    bool end; /* of the file has been read */
    char *buffer;
    size_t room;
};

/* Makes room, keeps the unfinished line, and reads on. */
static ditto_status read_more(struct csv_cursor *c)
{
    memmove(c->buffer, c->buffer + c->used, c->filled - c->used);
    c->filled -= c->used;
    c->used = 0;
    if (c->filled == c->room) {
        if (c->room >= LINE_MAX_BYTES)
            return DTI_FAIL(DITTO_ERR_CORRUPT, "%s:%llu: the line is longer than %zu bytes", c->csv->path,
                            (unsigned long long)c->line, LINE_MAX_BYTES);
        char *grown = realloc(c->buffer, 2 * c->room);
        if (grown == NULL)
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for line %llu of %s", (unsigned long long)c->line,
                            c->csv->path);
        c->buffer = grown;
        c->room *= 2;
    }
    ssize_t got;
    do
        got = pread(c->csv->file, c->buffer + c->filled, c->room - c->filled, (off_t)(c->offset + c->filled));
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "%s: reading line %llu", c->csv->path, (unsigned long long)c->line);
    c->filled += (size_t)got;
    c->end = got == 0;
    return DITTO_OK;
}

/* The next line, blank or not; without its end. */
static ditto_status next_line(struct csv_cursor *c, struct dti_row *out)
{
    size_t searched = 0;
    for (;;) {
        char *start = c->buffer + c->used, *stop = c->filled - c->used > searched
                                                       ? memchr(start + searched, '\n', c->filled - c->used - searched)
                                                       : NULL;
        size_t length = stop != NULL ? (size_t)(stop - start) : c->filled - c->used;
        if (stop == NULL && !c->end) {
            searched = length;
            DTI_TRY(read_more(c));
            continue;
        }
        if (stop == NULL && length == 0)
            return DITTO_END_OF_INPUT;
        size_t taken = length + (stop != NULL);
        size_t mark =
            c->offset == 0 && length >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* UTF-8 byte order */
        while (length > mark && (start[length - 1] == '\r' || start[length - 1] == ' ' || start[length - 1] == '\t'))
            length--;
        *out = (struct dti_row){ c->offset + mark, length - mark, c->line++ };
        c->used += taken;
        c->offset += taken;
        return DITTO_OK;
    }
}

static ditto_status next_csv(struct dti_cursor *cursor, struct dti_row *out)
{
    struct csv_cursor *c = (struct csv_cursor *)cursor;
    do
        DTI_TRY(next_line(c, out));
    while (out->length == 0 || out->line <= c->csv->skip_lines);
    return DITTO_OK;
}

static void close_csv(struct dti_cursor *cursor)
{
    free(((struct csv_cursor *)cursor)->buffer);
    free(cursor);
}

static ditto_status open_csv(const ditto_dataset *dataset, const struct dti_pass *pass, struct dti_cursor **out)
{
    struct csv_cursor *c = calloc(1, sizeof *c);
    (void)pass;
    if (c != NULL)
        c->buffer = malloc(READ_BYTES);
    if (c == NULL || c->buffer == NULL) {
        free(c);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to read a CSV file");
    }
    c->csv = (const struct csv_dataset *)dataset;
    c->room = READ_BYTES;
    c->line = 1;
    *out = (struct dti_cursor *)c;
    return DITTO_OK;
}

/* -- reading rows -- */

/* What stands there may be anything: unprintable bytes do not reach a terminal through a message. */
static ditto_status refuse_number(const struct csv_dataset *csv, const struct dti_row *row, uint32_t column,
                                  const char *text, size_t length, ditto_dtype dtype)
{
    char shown[41];
    size_t kept = length < sizeof shown - 1 ? length : sizeof shown - 1;
    for (size_t i = 0; i < kept; i++)
        shown[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    shown[kept] = '\0';
    return DTI_FAIL(DITTO_ERR_CORRUPT, "%s:%llu: column %u: \"%s\" is not a number of type %s", csv->path,
                    (unsigned long long)row->line, column + 1, shown, ditto_dtype_name(dtype));
}

static ditto_status store(const struct csv_dataset *csv, const struct dti_row *row, uint32_t column, const char *text,
                          size_t length, ditto_dtype dtype, void *to)
{
    double real = 0;
    int64_t whole = 0;
    bool integer = dtype == DITTO_I32 || dtype == DITTO_I64;
    bool fits = integer ? dti_parse_i64(text, length, &whole) : dti_parse_f64(text, length, &real);
    fits = fits && !(dtype == DITTO_F32 && isinf((float)real)); /* 1e39 is a number, but not an f32 */
    if (!fits || (dtype == DITTO_I32 && (whole < INT32_MIN || whole > INT32_MAX)))
        return refuse_number(csv, row, column, text, length, dtype);
    switch (dtype) {
    case DITTO_F32:
        *(float *)to = (float)real;
        break;
    case DITTO_F64:
        *(double *)to = real;
        break;
    case DITTO_I32:
        *(int32_t *)to = (int32_t)whole;
        break;
    default:
        *(int64_t *)to = whole;
    }
    return DITTO_OK;
}

/* Cuts the line at its delimiters: start[i] .. start[i + 1] - 2 is column i. */
static ditto_status split(const struct csv_dataset *csv, const struct dti_row *row, const char *line,
                          const char **start)
{
    const char *end = line + row->length, *at = line;
    uint32_t found = 1;
    start[0] = line;
    while ((at = memchr(at, csv->delimiter, (size_t)(end - at))) != NULL) {
        at++;
        if (found < csv->columns)
            start[found] = at;
        found++;
    }
    if (found != csv->columns)
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s:%llu: column %u: the line has %u columns, expected %u", csv->path,
                        (unsigned long long)row->line, (found < csv->columns ? found : csv->columns) + 1, found,
                        csv->columns);
    start[found] = end + 1;
    return DITTO_OK;
}

static ditto_status parse_row(const struct csv_dataset *csv, const struct dti_row *row, const char *line,
                              const char **start, size_t index, void *const *destination)
{
    DTI_TRY(split(csv, row, line, start));
    for (uint32_t k = 0; k < csv->base.components; k++) {
        const struct dti_component_spec *spec = &csv->base.component[k];
        char *to = (char *)destination[k] + index * spec->bytes;
        for (uint32_t i = 0; i < csv->range[k].count; i++) {
            uint32_t column = csv->range[k].first + i;
            DTI_TRY(store(csv, row, column, start[column], (size_t)(start[column + 1] - 1 - start[column]), spec->dtype,
                          to + i * ditto_dtype_bytes(spec->dtype)));
        }
    }
    return DITTO_OK;
}

static ditto_status read_line(const struct csv_dataset *csv, const struct dti_row *row, char *line)
{
    for (size_t have = 0; have < row->length;) {
        ssize_t got = pread(csv->file, line + have, row->length - have, (off_t)(row->at + have));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "%s:%llu", csv->path, (unsigned long long)row->line);
        if (got == 0)
            return DTI_FAIL(DITTO_ERR_IO, "%s:%llu: the file became shorter while it was read", csv->path,
                            (unsigned long long)row->line);
        have += (size_t)got;
    }
    return DITTO_OK;
}

static ditto_status fill_csv(const ditto_dataset *source, const struct dti_row *rows, size_t count,
                             void *const *destination)
{
    const struct csv_dataset *csv = (const struct csv_dataset *)source;
    size_t longest = 1;
    for (size_t i = 0; i < count; i++)
        longest = rows[i].length > longest ? rows[i].length : longest;
    char *line = malloc(longest);
    const char **start = malloc(((size_t)csv->columns + 1) * sizeof *start);
    ditto_status status =
        line != NULL && start != NULL ? DITTO_OK : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to parse %s", csv->path);
    for (size_t i = 0; i < count && status == DITTO_OK; i++) {
        status = read_line(csv, &rows[i], line);
        if (status == DITTO_OK)
            status = parse_row(csv, &rows[i], line, start, i, destination);
    }
    free(line);
    free(start);
    return status;
}

/* -- making the dataset -- */

static void free_csv(ditto_dataset *dataset)
{
    struct csv_dataset *csv = (struct csv_dataset *)dataset;
    if (csv->file >= 0)
        close(csv->file);
    free(csv->path);
}

static const struct dti_dataset_kind csv_kind = {
    .open = open_csv, .next = next_csv, .close = close_csv, .fill = fill_csv, .free = free_csv
};

static ditto_status set_components(struct csv_dataset *csv, const ditto_csv_component *c, uint32_t count)
{
    uint32_t used = 0;
    if (csv->columns > MOST_COLUMNS)
        return DTI_FAIL(DITTO_ERR_INVALID, "options->columns is %u: at most %u", csv->columns, MOST_COLUMNS);
    if (strchr("\n\r.+-eE", csv->delimiter) != NULL || (csv->delimiter >= '0' && csv->delimiter <= '9'))
        return DTI_FAIL(DITTO_ERR_INVALID, "options->delimiter (character %d) can be part of a number or ends a line",
                        csv->delimiter);
    for (uint32_t k = 0; k < count; k++) {
        if (c[k].dtype != DITTO_F32 && c[k].dtype != DITTO_F64 && c[k].dtype != DITTO_I32 && c[k].dtype != DITTO_I64)
            return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                            "components[%u] has dtype %s: columns are read as f32, f64, i32 or i64", k,
                            ditto_dtype_name(c[k].dtype));
        uint64_t end = (uint64_t)c[k].first_column + c[k].count;
        if (c[k].count == 0 || end > MOST_COLUMNS || (csv->columns != 0 && end > csv->columns))
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "components[%u] has %u columns from %u on: it needs at least one, and the file "
                            "has %u",
                            k, c[k].count, c[k].first_column, csv->columns);
        used = end > used ? (uint32_t)end : used;
        csv->range[k].first = c[k].first_column;
        csv->range[k].count = c[k].count;
        csv->base.component[k] = (struct dti_component_spec){ .dtype = c[k].dtype,
                                                              .rank = c[k].count > 1,
                                                              .shape = { c[k].count > 1 ? c[k].count : 0 },
                                                              .bytes = c[k].count * ditto_dtype_bytes(c[k].dtype) };
    }
    csv->base.components = count;
    csv->columns = csv->columns != 0 ? csv->columns : used;
    return DITTO_OK;
}

static ditto_status open_file(struct csv_dataset *csv)
{
    struct stat about;
    csv->file = open(csv->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (csv->file < 0)
        return DTI_FAIL_ERRNO(errno == ENOENT ? DITTO_ERR_NOT_FOUND : DITTO_ERR_IO, errno, "CSV file %s", csv->path);
    if (fstat(csv->file, &about) != 0 || !S_ISREG(about.st_mode))
        return DTI_FAIL(DITTO_ERR_IO, "%s is not a regular file: its lines are read more than once", csv->path);
    return DITTO_OK;
}

static ditto_status require_row(const struct csv_dataset *csv)
{
    struct dti_cursor *cursor = NULL;
    struct dti_row row;
    DTI_TRY(open_csv(&csv->base, &(struct dti_pass){ 0 }, &cursor));
    ditto_status status = next_csv(cursor, &row);
    close_csv(cursor);
    return status == DITTO_END_OF_INPUT
               ? DTI_FAIL(DITTO_ERR_INVALID, "%s has no row after %u skipped lines", csv->path, csv->skip_lines)
               : status;
}

ditto_status dti_csv_create(const char *path, const ditto_csv_component *components, uint32_t count,
                            const ditto_csv_options *options, ditto_dataset **out)
{
    struct csv_dataset *csv = dti_dataset_new(sizeof *csv, &csv_kind, NULL);
    if (csv == NULL)
        return DITTO_ERR_NO_MEMORY;
    csv->file = -1;
    csv->columns = options->columns;
    csv->skip_lines = options->skip_lines;
    csv->delimiter = options->delimiter != 0 ? options->delimiter : ',';
    csv->path = strdup(path);
    ditto_status status = csv->path != NULL ? set_components(csv, components, count)
                                            : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a file name");
    if (status == DITTO_OK)
        status = open_file(csv);
    if (status == DITTO_OK)
        status = require_row(csv);
    if (status != DITTO_OK) {
        dti_dataset_release(&csv->base);
        return status;
    }
    *out = &csv->base;
    return DITTO_OK;
}
