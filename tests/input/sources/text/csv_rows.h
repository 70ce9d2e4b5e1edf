/* tests/input/sources/text/csv_rows.h - reads CSV text, and compares its rows, or the error, with expected
 * ones. */
#ifndef CSV_ROWS_H
#define CSV_ROWS_H

#include "support/support.h"

#include <ditto/source.h>

/* A string literal as two arguments: its bytes and their number. */
#define BYTES(literal) literal, sizeof literal - 1

/* The rows as text: one line for each row, '|' behind each value, text without its padding of zeros. */
struct rows {
    char *text;
    size_t used, room, rows;
};

/* Appends bytes to the text. */
void add(struct rows *r, const void *bytes, size_t length);

/* Appends a row to the text. The row ends at its first component without a dtype. */
ditto_status collect(const ditto_tensor *row, void *state);

/* The components and the options with which a file is read. */
struct table {
    ditto_csv_component component[4];
    uint32_t components;
    ditto_csv_options options;
};

/* A component of one column with text of at most 24 bytes. */
#define TEXT_COLUMN(column)           \
    {                                 \
        column, 1, DITTO_U8, 24, 0, 0 \
    }

/* Columns 0 and 1 as DITTO_F32, and column 2 as DITTO_I32. */
extern const struct table numbers;

/* Columns 0 and 1 as text. */
extern const struct table texts;

/* Where collect_row appends its rows, and how many components they have. */
struct seen {
    struct rows *rows;
    uint32_t components;
};

/* Copies the row into an array with all components, so that `collect` sees where they end. The state is a
 * `seen`. */
ditto_status collect_row(const ditto_tensor *row, void *state);

/* Creates the dataset of a file. */
ditto_dataset *csv_of(const char *name, const struct table *t);

/* Expects these rows, as text. */
void expect_rows(const struct table *t, const char *bytes, size_t length, const char *expected);

/* Expects `rows` rows and then an error. `message` is the part of its message behind the file's name. */
void expect_error(const struct table *t, const char *bytes, size_t length, size_t rows, const char *message);

#endif
