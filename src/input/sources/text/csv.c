/* src/input/sources/text/csv.c - rows of CSV files.
 *
 * A cursor finds rows (text_lines.h). When batches are filled, rows are read and parsed in one pass over each
 * row, field by field, and a table says where each field is stored. Files are neither kept in memory nor
 * mapped. They may therefore be larger than memory, and a file that becomes shorter gives an error. */
#include "base/errors/status.h"
#include "base/types/convert.h"
#include "base/types/types.h"
#include "input/sources/owned_row.h"
#include "input/sources/sources.h"
#include "input/sources/text/csv_field.h"
#include "input/sources/text/text_lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COLUMNS 1000000u

enum field_kind { SKIPPED, NUMBER, BOOLEAN, TEXT };

/* One use of a field. A column has one use for each component that contains it, or one with kind SKIPPED. */
struct use {
    uint32_t offset; /* in the component's row */
    uint8_t component, kind, dtype;
    bool again; /* the next use is for the same column */
};

struct csv_dataset {
    struct dti_text_lines lines; /* first */
    uint32_t columns;
    bool columns_are_given; /* by the options, and not by the components */
    size_t uses;
    struct use *use; /* [uses], by column */
    ditto_csv_component component[DITTO_MAX_COMPONENTS];
};

/* A row that is being parsed. */
struct csv_row {
    const struct csv_dataset *csv;
    struct dti_file_row file_row;
    uint32_t column; /* from 0 */
    char delimiter;
    const char *end;
    char *to[DITTO_MAX_COMPONENTS]; /* the destination of the row in each component */
};

/* -- errors of a row -- */

#define FIELD "%s:%llu: column %u: "
#define FIELD_OF(r)                                                                                \
    (r)->csv->lines.files.file[(r)->file_row.file].name, (unsigned long long)(r)->file_row.number, \
        (r)->column + 1

static ditto_status refuse_field(const struct csv_row *r, const char *fault)
{
    return DTI_FAIL(DITTO_ERR_CORRUPT, FIELD "%s", FIELD_OF(r), fault);
}

/* The field may contain any bytes. Unprintable ones are replaced, so that a message cannot send them to a
 * terminal. */
static ditto_status refuse_value(const struct csv_row *r, const struct use *use,
                                 const struct dti_csv_field *field)
{
    char shown[41];
    size_t kept = field->length < sizeof shown - 1 ? field->length : sizeof shown - 1;
    for (size_t i = 0; i < kept; i++)
        shown[i] = field->text[i] >= ' ' && field->text[i] <= '~' ? field->text[i] : '?';
    shown[kept] = '\0';
    const char *advice = dti_csv_is_missing(field)
                             ? ": the option `missing` of the component can give it a value"
                             : "";
    if (use->kind == BOOLEAN)
        return DTI_FAIL(DITTO_ERR_CORRUPT, FIELD "\"%s\" is none of 0, 1, true and false%s", FIELD_OF(r),
                        shown, advice);
    return DTI_FAIL(DITTO_ERR_CORRUPT, FIELD "\"%s\" is not a number of type %s%s", FIELD_OF(r), shown,
                    ditto_dtype_name((ditto_dtype)use->dtype), advice);
}

/* Refuses a row that ends at `at`, before the last column, or that continues at `at`, after the last
 * column. */
static ditto_status refuse_columns(struct csv_row *r, const char *at)
{
    const struct csv_dataset *csv = r->csv;
    uint32_t found = r->column + 1;
    while (at != NULL && at < r->end) { /* counts the rest, up to and including the first invalid field */
        struct dti_csv_field field;
        const char *fault;
        at = dti_csv_cut(at + 1, r->end, csv->lines.delimiter, csv->lines.quotes, &field, &fault);
        found++;
    }
    r->column = (found < csv->columns ? found : csv->columns);
    char advice[80] = "";
    struct dti_text text = { advice, sizeof advice, 0 };
    if (found > csv->columns && !csv->columns_are_given)
        dti_text_add(&text, ": options->num_columns = %u skips those that no component has", found);
    else if (found == 1 && csv->lines.delimiter == '\t')
        dti_text_add(&text, ", separated by tabs");
    else if (found == 1)
        dti_text_add(&text, ", separated by '%c'", csv->lines.delimiter);
    return DTI_FAIL(DITTO_ERR_CORRUPT, FIELD "the line has %u columns, expected %u%s", FIELD_OF(r), found,
                    csv->columns, advice);
}

/* -- fields -- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static ditto_status store_value(const struct csv_row *r, const struct use *use, struct dti_csv_field field,
                                void *to)
{
    const ditto_csv_component *c = &r->csv->component[use->component];
    struct dti_csv_number number;
    bool good;
    for (; field.length > 0 && is_space(field.text[0]); field.length--)
        field.text++;
    while (field.length > 0 && is_space(field.text[field.length - 1]))
        field.length--;
    if (c->missing == DITTO_CSV_MISSING_VALUE && dti_csv_is_missing(&field)) {
        dti_number_store(c->dtype, to, c->missing_value);
        return DITTO_OK;
    }
    const char *end = field.text + field.length;
    if (use->kind == BOOLEAN)
        good = dti_csv_store_bool(field.text, field.length, to);
    else
        good = dti_csv_scan(field.text, end, &number) == end && number.digits > 0 &&
               dti_csv_store(&number, field.text, field.length, c->dtype, to);
    return good ? DITTO_OK : refuse_value(r, use, &field);
}

/* Parses any field and sets *next to its end. */
static ditto_status parse_field(const struct csv_row *r, const struct use *use, const char *at,
                                const char **next)
{
    const struct dti_text_lines *lines = &r->csv->lines;
    struct dti_csv_field field;
    const char *fault;
    char *to = r->to[use->component] + use->offset;
    *next = dti_csv_cut(at, r->end, lines->delimiter, lines->quotes, &field, &fault);
    if (*next == NULL)
        return refuse_field(r, fault);
    if (use->kind == SKIPPED)
        return DITTO_OK;
    if (use->kind != TEXT)
        return store_value(r, use, field, to);
    uint32_t capacity = r->csv->component[use->component].text_bytes;
    size_t length;
    if (!dti_csv_copy(&field, to, capacity, &length))
        return DTI_FAIL(DITTO_ERR_CORRUPT, FIELD "the text has more than %u bytes", FIELD_OF(r), capacity);
    return dti_utf8_valid(to, length) ? DITTO_OK : refuse_field(r, "the text is not UTF-8");
}

/* Parses an integer of a few digits, the most frequent kind of field. Returns its end, or NULL if
 * parse_number must parse the field. */
static inline const char *parse_short(const struct csv_row *r, const struct use *use, const char *at)
{
    uint32_t magnitude;
    if (r->end - at <= DTI_CSV_SHORT_BYTES)
        return NULL;
    bool negative = *at == '-';
    unsigned digits = dti_csv_short(at + negative, &magnitude);
    const char *next = at + negative + digits;
    if (digits == 0 || *next != r->delimiter)
        return NULL;
    void *to = r->to[use->component] + use->offset;
    int32_t value = negative ? -(int32_t)magnitude : (int32_t)magnitude;
    switch (use->dtype) {
    case DITTO_F32:
        *(float *)to = negative ? -(float)magnitude : (float)magnitude; /* the sign of -0 is kept */
        return next;
    case DITTO_F64:
        *(double *)to = negative ? -(double)magnitude : (double)magnitude;
        return next;
    case DITTO_I32:
        *(int32_t *)to = value;
        return next;
    case DITTO_I64:
        *(int64_t *)to = value;
        return next;
    case DITTO_U8:
        *(uint8_t *)to = (uint8_t)value;
        return value >= 0 && value <= UINT8_MAX ? next : NULL;
    default:
        return NULL;
    }
}

/* Parses a field that is only a number, with or without quotes. Returns the end of the field, or NULL if it
 * is something else or the dtype cannot hold the number. */
static inline const char *parse_number(const struct csv_row *r, const struct use *use, const char *at)
{
    struct dti_csv_number number;
    bool quoted = at < r->end && *at == '"' && r->csv->lines.quotes;
    const char *first = at + quoted, *behind = dti_csv_scan(first, r->end, &number), *next = behind;
    if (number.digits == 0 || (quoted && (next == r->end || *next++ != '"')) ||
        (next < r->end && *next != r->delimiter))
        return NULL;
    void *to = r->to[use->component] + use->offset;
    return dti_csv_store(&number, first, (size_t)(behind - first), (ditto_dtype)use->dtype, to) ? next : NULL;
}

static ditto_status parse_fields(const ditto_dataset *dataset, struct dti_file_row file_row, const char *at,
                                 size_t index, void *const *destination)
{
    const struct csv_dataset *csv = (const struct csv_dataset *)dataset;
    struct csv_row r = {
        .csv = csv, .file_row = file_row, .delimiter = csv->lines.delimiter, .end = at + file_row.bytes
    };
    const struct use *use = csv->use, *end_use = use + csv->uses;
    const char *next = at;
    for (uint32_t k = 0; k < dataset->components; k++)
        r.to[k] = (char *)destination[k] + index * dataset->component[k].bytes;
    for (;; use++) {
        next = use->kind == NUMBER ? parse_short(&r, use, at) : NULL;
        if (next == NULL && use->kind == NUMBER)
            next = parse_number(&r, use, at);
        if (next == NULL)
            DTI_TRY(parse_field(&r, use, at, &next));
        if (use->again)
            continue;
        if (next == r.end || use + 1 == end_use)
            break;
        at = next + 1;
        r.column++;
    }
    return next == r.end && use + 1 == end_use ? DITTO_OK : refuse_columns(&r, next);
}

static ditto_status parse_row(const ditto_dataset *dataset, struct dti_file_row file_row, const char *at,
                              size_t index, void *const *destination, void *scratch)
{
    (void)scratch;
    ditto_status status = parse_fields(dataset, file_row, at, index, destination);
    return dti_text_lines_explain(dataset, file_row.file, at, file_row.bytes, status);
}

/* -- making the dataset -- */

static void free_csv(ditto_dataset *dataset)
{
    free(((struct csv_dataset *)dataset)->use);
    dti_text_lines_free(dataset);
}

static void digest_csv(const ditto_dataset *dataset, struct dti_bytes *to)
{
    const struct csv_dataset *csv = (const struct csv_dataset *)dataset;
    dti_text_lines_digest(dataset, to);
    dti_bytes_put_u64(to, csv->columns);
    dti_bytes_put_u64(to, (unsigned char)csv->lines.delimiter);
    dti_bytes_put_u64(to, csv->lines.quotes);
    for (uint32_t k = 0; k < dataset->components; k++) {
        dti_bytes_put_u64(to, csv->component[k].first_column);
        dti_bytes_put_u64(to, csv->component[k].num_columns);
        dti_bytes_put_u64(to, csv->component[k].text_bytes);
        dti_bytes_put_u64(to, (uint64_t)csv->component[k].missing);
        dti_bytes_put(to, &csv->component[k].missing_value, sizeof(double));
    }
}

static const struct dti_dataset_kind csv_kind = {
    .name = "csv",
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
    .digest = digest_csv,
    .free = free_csv,
};

/* Returns true if an element of this dtype can have the value. */
static bool holds(ditto_dtype dtype, double value)
{
    if (dtype == DITTO_F64)
        return true;
    if (dtype == DITTO_F32)
        return isinf(value) || !isinf((float)value);
    if (dtype == DITTO_BOOL)
        return value == 0 || value == 1;
    bool is_signed = dti_dtype_class_of(dtype) == DTI_CLASS_SIGNED;
    int bits = (int)ditto_dtype_bytes(dtype) * 8 - is_signed;
    return value == trunc(value) && value < ldexp(1, bits) &&
           value >= (is_signed ? -ldexp(1, bits) : 0); /* false for nan */
}

static ditto_status check_component(const struct csv_dataset *csv, const ditto_csv_component *c, uint32_t k)
{
    uint64_t end = (uint64_t)c->first_column + c->num_columns,
             most = csv->columns != 0 ? csv->columns : MOST_COLUMNS;
    enum dti_dtype_class class = dti_dtype_class_of(c->dtype);
    bool is_number = class == DTI_CLASS_REAL || class == DTI_CLASS_SIGNED || class == DTI_CLASS_UNSIGNED ||
                     class == DTI_CLASS_BOOL;
    if (c->text_bytes != 0 ? c->dtype != DITTO_U8 : !is_number)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "components[%u].dtype = %d (%s): numbers are read as f32, f64, bool or an integer, text as u8", k,
            (int)c->dtype, ditto_dtype_name(c->dtype));
    if (c->num_columns == 0 || end > most)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "components[%u] has %u columns from %u on: it needs at least one, and a row has %s%llu", k,
            c->num_columns, c->first_column, csv->columns != 0 ? "" : "at most ", (unsigned long long)most);
    if (c->text_bytes != 0 && c->num_columns != 1)
        return DTI_FAIL(DITTO_ERR_INVALID, "components[%u] has %u columns of text: a component has one", k,
                        c->num_columns);
    if ((unsigned)c->missing > DITTO_CSV_MISSING_VALUE)
        return DTI_FAIL(DITTO_ERR_RANGE, "components[%u].missing = %d is not a value of its enum", k,
                        (int)c->missing);
    if (c->missing == DITTO_CSV_MISSING_VALUE && c->text_bytes == 0 && !holds(c->dtype, c->missing_value))
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "components[%u].missing_value is %g: its dtype, %s, can't hold that", k,
                        c->missing_value, ditto_dtype_name(c->dtype));
    return DITTO_OK;
}

/* Returns the number of uses of a column, and writes them to `use` unless it is NULL. */
static size_t uses_of(const struct csv_dataset *csv, uint32_t column, struct use *use)
{
    size_t uses = 0;
    for (uint32_t k = 0; k < csv->lines.base.components; k++) {
        const ditto_csv_component *c = &csv->component[k];
        if (column < c->first_column || column - c->first_column >= c->num_columns)
            continue;
        if (use != NULL) {
            use[uses] = (struct use){ .component = (uint8_t)k, .dtype = (uint8_t)c->dtype, .again = true };
            use[uses].kind = c->text_bytes != 0 ? TEXT : c->dtype == DITTO_BOOL ? BOOLEAN : NUMBER;
            use[uses].offset = (column - c->first_column) * (uint32_t)ditto_dtype_bytes(c->dtype);
        }
        uses++;
    }
    if (use != NULL && uses == 0)
        use[0] = (struct use){ .kind = SKIPPED };
    uses += uses == 0;
    if (use != NULL)
        use[uses - 1].again = false;
    return uses;
}

static ditto_status prepare(struct csv_dataset *csv, const ditto_files *files,
                            const ditto_csv_component *components, uint32_t count,
                            const ditto_csv_options *options)
{
    char delimiter = options->delimiter != 0 ? options->delimiter : ',';
    if (strchr("\n\r.+-eE\"0123456789", delimiter) != NULL)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "options->delimiter (character %d) can be part of a number, is a quote or ends a line",
            delimiter);
    if (options->num_columns > MOST_COLUMNS)
        return DTI_FAIL(DITTO_ERR_INVALID, "options->num_columns is %u: at most %u", options->num_columns,
                        MOST_COLUMNS);
    csv->lines.skip_lines = options->skip_lines;
    csv->lines.most_bytes = DTI_TEXT_LINE_MOST_BYTES;
    csv->lines.row_word = "row";
    csv->lines.parse = parse_row;
    csv->lines.quotes = !options->no_quotes;
    csv->lines.passes_blank = true;
    csv->lines.delimiter = delimiter;
    csv->columns = options->num_columns;
    csv->columns_are_given = options->num_columns != 0;
    uint32_t used = 0;
    csv->lines.base.components = count;
    for (uint32_t k = 0; k < count; k++) {
        ditto_csv_component *c = &csv->component[k];
        *c = components[k];
        DTI_TRY(check_component(csv, c, k));
        size_t elements = c->text_bytes != 0 ? c->text_bytes : c->num_columns;
        bool many = c->text_bytes != 0 || c->num_columns > 1;
        ditto_tensor spec = { .dtype = c->dtype, .rank = many, .shape = { many ? elements : 0 } };
        DTI_TRY(dti_dataset_set_component(&csv->lines.base, k, &spec));
        used = c->first_column + c->num_columns > used ? c->first_column + c->num_columns : used;
    }
    csv->columns = csv->columns != 0 ? csv->columns : used;
    for (uint32_t column = 0; column < csv->columns; column++)
        csv->uses += uses_of(csv, column, NULL);
    csv->use = malloc(csv->uses * sizeof *csv->use);
    if (csv->use == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u columns", csv->columns);
    struct use *use = csv->use;
    for (uint32_t column = 0; column < csv->columns; column++)
        use += uses_of(csv, column, use);
    return dti_text_lines_finish(&csv->lines, files, options->compression);
}

ditto_status dti_csv_create(const ditto_files *files, const ditto_csv_component *components, uint32_t count,
                            const ditto_csv_options *options, ditto_dataset **out)
{
    ditto_dataset *base;
    DTI_TRY(dti_dataset_new(sizeof(struct csv_dataset), &csv_kind, NULL, 0, &base));
    struct csv_dataset *csv = (struct csv_dataset *)base;
    return dti_dataset_out(base, prepare(csv, files, components, count, options), out);
}
