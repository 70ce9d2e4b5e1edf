/* tests/input/sources/text/csv_rows.c - see csv_rows.h. */
#include "input/sources/text/csv_rows.h"

#include <ditto/transform.h>

#include <inttypes.h>

void add(struct rows *r, const void *bytes, size_t length)
{
    while (r->room - r->used <= length)
        r->text = realloc(r->text, r->room = 2 * r->room + 4096);
    memcpy(r->text + r->used, bytes, length);
    r->used += length;
}

static int print_value(char *to, size_t room, const ditto_tensor *t, size_t i)
{
    switch (t->dtype) {
    case DITTO_F32:
        return snprintf(to, room, "%.9g", (double)((const float *)t->data)[i]);
    case DITTO_F64:
        return snprintf(to, room, "%.17g", ((const double *)t->data)[i]);
    case DITTO_I8:
        return snprintf(to, room, "%d", ((const int8_t *)t->data)[i]);
    case DITTO_I16:
        return snprintf(to, room, "%d", ((const int16_t *)t->data)[i]);
    case DITTO_I32:
        return snprintf(to, room, "%" PRId32, ((const int32_t *)t->data)[i]);
    case DITTO_I64:
        return snprintf(to, room, "%" PRId64, ((const int64_t *)t->data)[i]);
    case DITTO_U8:
    case DITTO_BOOL:
        return snprintf(to, room, "%d", ((const uint8_t *)t->data)[i]);
    case DITTO_U16:
        return snprintf(to, room, "%d", ((const uint16_t *)t->data)[i]);
    case DITTO_U32:
        return snprintf(to, room, "%" PRIu32, ((const uint32_t *)t->data)[i]);
    default:
        return snprintf(to, room, "%" PRIu64, ((const uint64_t *)t->data)[i]);
    }
}

ditto_status collect(const ditto_tensor *row, void *state)
{
    struct rows *r = state;
    for (uint32_t k = 0; k < DITTO_MAX_COMPONENTS && row[k].dtype != 0; k++) {
        if (row[k].dtype == DITTO_U8 && row[k].rank == 1) { /* text */
            size_t length = row[k].shape[0];
            while (length > 0 && ((const char *)row[k].data)[length - 1] == 0)
                length--;
            add(r, row[k].data, length);
            add(r, "|", 1);
            continue;
        }
        for (size_t i = 0; i < elements_in(&row[k]); i++) {
            char value[64];
            add(r, value, (size_t)print_value(value, sizeof value, &row[k], i));
            add(r, "|", 1);
        }
    }
    add(r, "\n", 1);
    r->rows++;
    return DITTO_OK;
}

const struct table numbers = { { { 0, 2, DITTO_F32, 0, 0, 0 }, { 2, 1, DITTO_I32, 0, 0, 0 } },
                               2,
                               DITTO_CSV_OPTIONS_INIT };
const struct table texts = { { TEXT_COLUMN(0), TEXT_COLUMN(1) }, 2, DITTO_CSV_OPTIONS_INIT };

ditto_status collect_row(const ditto_tensor *row, void *state)
{
    struct seen *seen = state;
    ditto_tensor own[DITTO_MAX_COMPONENTS] = { 0 };
    memcpy(own, row, seen->components * sizeof *row);
    return collect(own, seen->rows);
}

ditto_dataset *csv_of(const char *name, const struct table *t)
{
    ditto_dataset *d;
    assert_ok(
        ditto_dataset_from_csv(&(ditto_files){ &name, 1, 0 }, t->component, t->components, &t->options, &d));
    return d;
}

void expect_rows(const struct table *t, const char *bytes, size_t length, const char *expected)
{
    char *name = temporary_bytes(bytes, length);
    struct rows r = { 0 };
    ditto_dataset *d = csv_of(name, t);
    assert_ok(ditto_dataset_reduce(d, collect_row, &(struct seen){ &r, t->components }, 0));
    add(&r, "", 1);
    assert_string_equal(r.text, expected);
    free(r.text);
    assert_ok(ditto_dataset_destroy(d));
    forget_file(name);
}

void expect_error(const struct table *t, const char *bytes, size_t length, size_t rows, const char *message)
{
    char *name = temporary_bytes(bytes, length), wanted[300];
    struct rows r = { 0 };
    ditto_dataset *d = csv_of(name, t);
    snprintf(wanted, sizeof wanted, "%s%s", name, message);
    assert_status(ditto_dataset_reduce(d, collect_row, &(struct seen){ &r, t->components }, 0),
                  DITTO_ERR_CORRUPT);
    assert_message(wanted);
    assert_int_equal(r.rows, rows);
    free(r.text);
    assert_ok(ditto_dataset_destroy(d));
    forget_file(name);
}
