/* tests/input/readers.h - helper functions for tests of file sources. They write files, read the rows of a
 * dataset, and check saved cursors and shards. */
#ifndef READERS_H
#define READERS_H

#include "support/support.h"

#include <fcntl.h>
#include <unistd.h>
#include <sys/stat.h>

#include <ditto/source.h>
#include <ditto/transform.h>

#include "input/dataset.h"

#ifdef DTI_HAVE_ZLIB
#include <zlib.h>
#endif

/* -- files -- */

/* The bytes of a file that a test makes. */
struct made {
    unsigned char bytes[1 << 21];
    size_t length;
};
static inline void add(struct made *made, const void *bytes, size_t count)
{
    assert_true(count <= sizeof made->bytes - made->length);
    memcpy(made->bytes + made->length, bytes, count);
    made->length += count;
}
static inline void add_number(struct made *made, uint64_t number, size_t bytes) /* little endian */
{
    for (size_t i = 0; i < bytes; i++)
        add(made, &(unsigned char){ (unsigned char)(number >> 8 * i) }, 1);
}

#ifdef DTI_HAVE_ZLIB
/* Appends a gzip member with these bytes. */
static inline void add_member(struct made *to, const void *bytes, size_t length)
{
    z_stream z = { 0 };
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)bytes;
    z.avail_in = (uInt)length;
    z.next_out = to->bytes + to->length;
    z.avail_out = (uInt)(sizeof to->bytes - to->length);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    to->length += z.total_out;
    deflateEnd(&z);
}
#endif

/* Writes a file in own_folder and returns its path (own_path). */
static inline const char *write_bytes(const char *name, const void *bytes, size_t length)
{
    const char *path = own_path(name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, length), (ssize_t)length);
    close(file);
    return path;
}

/* -- rows -- */

struct taken {
    uint32_t components;
    size_t rows, length, room;
    unsigned char *bytes; /* of all components of all rows, one after the other */

    /* If it is not NULL, take_row empties this file. */
    const char *shorten;
};

static inline ditto_status take_row(const ditto_tensor *row, void *state)
{
    struct taken *t = state;
    for (uint32_t k = 0; k < t->components; k++) {
        size_t bytes = ditto_tensor_bytes(&row[k]);
        if (t->length + bytes > t->room) {
            t->room = 2 * (t->length + bytes);
            t->bytes = realloc(t->bytes, t->room);
        }
        if (bytes > 0)
            memcpy(t->bytes + t->length, row[k].data, bytes);
        t->length += bytes;
    }
    t->rows++;
    if (t->shorten != NULL && truncate(t->shorten, 0) != 0)
        return DITTO_ERR_USER;
    return DITTO_OK;
}
static inline struct taken nothing_taken(const ditto_dataset *d)
{
    ditto_element_spec spec;
    assert_ok(ditto_dataset_spec(d, &spec));
    return (struct taken){ .components = spec.num_components };
}
/* Returns all rows, which must be readable. The caller frees `bytes`. */
static inline struct taken take_all(ditto_dataset *d)
{
    struct taken t = nothing_taken(d);
    assert_ok(ditto_dataset_reduce(d, take_row, &t, 0));
    return t;
}

/* Reads up to `want` rows with the cursor and compares them with the rows of `all` from row `from` on.
 * Returns their number. */
static inline size_t read_some(ditto_dataset *d, struct dti_cursor *cursor, const struct taken *all,
                               size_t from, size_t want)
{
    struct dti_reader reader = { 0 };
    size_t row_bytes = all->length / all->rows, got = 0, one;
    unsigned char *values = calloc(1, d->row_bytes + 64);
    uint64_t *words = calloc(d->row_words, sizeof *words);
    for (; got < want; got++) {
        void *at[DITTO_MAX_COMPONENTS];
        size_t used = 0;
        for (uint32_t k = 0; k < d->components; k++) {
            at[k] = values + used;
            used += d->component[k].bytes;
        }
        ditto_status status = dti_cursor_next(cursor, (struct dti_rows){ words, d->row_words }, 1, &one);
        assert_true(status == DITTO_OK || status == DITTO_END_OF_INPUT);
        if (one == 0)
            break;
        assert_ok(dti_dataset_fill(d, &reader, (struct dti_rows){ words, d->row_words }, 1, at));
        assert_true(from + got < all->rows);
        assert_memory_equal(values, all->bytes + (from + got) * row_bytes, row_bytes);
        dti_rows_drop(d, (struct dti_rows){ words, d->row_words }, 1);
    }
    free(words);
    free(values);
    dti_reader_free(&reader);
    return got;
}

/* Saves a cursor before the first row and behind each row. A restored cursor must continue with the next
 * row. */
static inline void restarts_anywhere(ditto_dataset *d)
{
    struct taken all = take_all(d);
    for (size_t before = 0; before <= all.rows; before++) {
        struct dti_pass pass = { 0 };
        struct dti_cursor *cursor, *again;
        struct dti_bytes state = { 0 };
        assert_ok(dti_cursor_open(d, &pass, &cursor));
        assert_int_equal(read_some(d, cursor, &all, 0, before), before);
        assert_ok(dti_cursor_save(cursor, &state));
        dti_cursor_close(cursor);
        assert_ok(dti_cursor_open(d, &pass, &again));
        struct dti_bytes_reader from = { state.data, state.data + state.length, false };
        assert_ok(dti_cursor_restore(again, &from));
        assert_false(from.failed);
        assert_ptr_equal(from.at, from.end);
        assert_int_equal(read_some(d, again, &all, before, all.rows + 1), all.rows - before);
        dti_cursor_close(again);
        dti_bytes_free(&state);
    }
    free(all.bytes);
}

/* Shard 0 must read the files whose names contain "even", and shard 1 those whose names contain "odd".
 * Together they must read all rows. */
static inline void shards_take_turns(ditto_dataset *d)
{
    struct taken all = take_all(d);
    size_t rows = 0;
    for (uint32_t shard = 0; shard < 2; shard++) {
        struct dti_pass pass = { .shards = 2, .shard = shard };
        struct dti_cursor *cursor;
        uint64_t words[8];
        size_t got;
        assert_ok(dti_cursor_open(d, &pass, &cursor));
        for (; dti_cursor_next(cursor, (struct dti_rows){ words, d->row_words }, 1, &got) == DITTO_OK;
             rows++) {
            char where[256];
            dti_row_where(d, words, &(struct dti_text){ where, sizeof where, 0 });
            assert_non_null(strstr(where, shard == 0 ? "even" : "odd"));
            dti_rows_drop(d, (struct dti_rows){ words, d->row_words }, 1);
        }
        dti_cursor_close(cursor);
    }
    assert_int_equal(rows, all.rows);
    free(all.bytes);
}

#endif
