/* src/input/dataset.h - what a dataset is: an immutable description in a tree, walked by cursors.
 *
 * Two things are asked of a dataset. A cursor *chooses* rows, one after the other, in the one sequencer that makes the order. A chosen
 * row is a few words that say where it lies, not its values: cheap to shuffle, to hold back and to save. Later, many threads at once
 * *fill* batches from chosen rows: there files are read and parsed, maps computed, values copied.
 *
 * Rows of sources that can't be read twice (generators, compressed streams) hold their values: a word points to them, and whoever
 * chooses such a row either hands it on or gives it to dti_row_drop. Each has one owner at a time. */
#ifndef DTI_DATASET_H
#define DTI_DATASET_H

#include <ditto/dataset.h>

#include "base/base.h"
#include "input/bytes.h"

/* One component of a row. */
struct dti_row_component_spec {
    ditto_dtype dtype;
    uint32_t rank; /* of one row */
    size_t shape[DITTO_MAX_RANK];
    size_t bytes; /* of one row */
};

/* Which pass over a dataset, and the word that ends it early: looked at by what may go through many rows for one. */
struct dti_pass {
    uint64_t number;
    const _Atomic uint32_t *closing; /* NULL: never */
    uint32_t shards,
        shard; /* of the dataset's files, this pass reads those with number mod shards == shard; shards 0: all */
    uint32_t first_file; /* number of the dataset's first one, among all in the tree */
};

/* Chosen rows: row i is word[i * stride ..]. A dataset uses the first row_words of them. */
struct dti_rows {
    uint64_t *word;
    size_t stride;
};
static inline struct dti_rows dti_rows_from(struct dti_rows rows, size_t row)
{
    return (struct dti_rows){ rows.word + row * rows.stride, rows.stride };
}
static inline struct dti_rows dti_rows_words_from(struct dti_rows rows, size_t word)
{
    return (struct dti_rows){ rows.word + word, rows.stride };
}

/* A position in one pass; a kind's own begins with it. Used by one thread at a time. */
struct dti_cursor {
    const ditto_dataset *dataset;
};

/* A thread that fills batches: what it may use meanwhile. */
struct dti_reader {
    const _Atomic uint32_t *closing; /* NULL: never */
    char *buffer;                    /* of whichever source is being read: see dti_reader_buffer */
    size_t capacity;
};

/* What a dataset does: a table per kind. Transformations that only choose have no fill, where and row functions: what reads their
 * rows is their input. */
struct dti_dataset_kind {
    const char *name;
    ditto_status (*open)(const ditto_dataset *dataset, const struct dti_pass *pass, struct dti_cursor **out);
    /* Chooses up to `want` rows; *got of them are good, whatever is returned. After END_OF_INPUT that comes again and
     * again; after an error a cursor is only closed. */
    ditto_status (*next)(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got);
    void (*close)(struct dti_cursor *cursor);
    /* The position as bytes; and back, of a fresh cursor of the same pass. */
    ditto_status (*save)(struct dti_cursor *cursor, struct dti_bytes *to);
    ditto_status (*restore)(struct dti_cursor *cursor, struct dti_bytes_reader *from);
    /* Values of rows: destination[k] is the first of `count` consecutive rows of component k. Thread-safe. */
    ditto_status (*fill)(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                         size_t count, void *const *destination);
    void (*where)(const ditto_dataset *dataset, const uint64_t *row,
                  struct dti_text *text); /* for messages */
    /* Of rows that hold something; else NULL. */
    void (*drop)(const ditto_dataset *dataset, const uint64_t *row);
    ditto_status (*save_row)(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to);
    ditto_status (*load_row)(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from);
    void (*digest)(const ditto_dataset *dataset,
                   struct dti_bytes *to); /* what it was made with, but not where files lie. NULL: nothing */
    void (*free)(
        ditto_dataset *dataset); /* what the constructor made, but not the dataset itself. NULL: nothing */
};

struct ditto_dataset {
    _Atomic uint32_t references;
    const struct dti_dataset_kind *kind;
    ditto_dataset **input; /* [inputs], referenced */
    uint32_t inputs;       /* 0: a source */
    uint32_t row_words;
    uint32_t depth;              /* datasets below one another, this one included */
    const ditto_dataset *reader; /* that fills its rows: itself, or one below */
    uint32_t components;
    struct dti_row_component_spec component[DITTO_MAX_COMPONENTS];
    size_t row_bytes;    /* of all components */
    uint64_t batch_rows; /* G, 0: not batched */
    uint64_t prefetch;   /* batches; 0: not said */
    uint32_t files;      /* that its sources read, as they are numbered for shards */
    bool drop_remainder, infinite, holds;
    bool
        by_file; /* what it does with the rows of one file does not depend on other files: pipelines may read other ones each */
};

/* -- Making: any thread -- */
/* `bytes` of a struct that begins with ditto_dataset, zeroed, one reference; specs and marks are those of input[0]. inputs 0: a source; then
 * dti_dataset_finish once its components are set. NULL, with a record: NO_MEMORY; RANGE: more than so many below one another (cursors
 * go down by recursion). */
#define DTI_MOST_DEPTH_OF_DATASETS 1000u
void *dti_dataset_new(size_t bytes, const struct dti_dataset_kind *kind, ditto_dataset *const *input,
                      uint32_t inputs);
/* Computes row_bytes. RANGE: a row has more bytes than size_t counts. */
ditto_status dti_dataset_finish(ditto_dataset *dataset);
/* Sets component k. RANGE, INVALID as dti_tensor_check. */
ditto_status dti_dataset_set_component(ditto_dataset *dataset, uint32_t k, const ditto_tensor *spec);
void dti_dataset_retain(ditto_dataset *dataset);
void dti_dataset_release(ditto_dataset *dataset); /* NULL is allowed */
/* Finishes and hands out, or releases and returns `status`. */
ditto_status dti_dataset_out(ditto_dataset *dataset, ditto_status status, ditto_dataset **out);
/* INVALID: rows of `own` have other components than those of `first`; the names are what messages call them. */
ditto_status dti_dataset_check_alike(const ditto_dataset *first, const char *first_name,
                                     const ditto_dataset *own, const char *own_name);
/* A number that differs between datasets that give different rows, as far as can be told without reading files. NO_MEMORY. */
ditto_status dti_dataset_fingerprint(const ditto_dataset *dataset, uint64_t *out);

/* -- Choosing: the cursor's thread -- */
ditto_status dti_cursor_open(const ditto_dataset *dataset, const struct dti_pass *pass,
                             struct dti_cursor **out);
void dti_cursor_close(struct dti_cursor *cursor); /* NULL is allowed */
static inline ditto_status dti_cursor_next(struct dti_cursor *cursor, struct dti_rows rows, size_t want,
                                           size_t *got)
{
    *got = 0;
    return cursor->dataset->kind->next(cursor, rows, want, got);
}
ditto_status dti_cursor_save(struct dti_cursor *cursor, struct dti_bytes *to);
ditto_status dti_cursor_restore(struct dti_cursor *cursor, struct dti_bytes_reader *from);
/* CLOSED when the iterator is being destroyed. */
ditto_status dti_closing_check(const _Atomic uint32_t *closing);

/* -- Rows: any thread -- */
static inline ditto_status dti_dataset_fill(const ditto_dataset *dataset, struct dti_reader *reader,
                                            struct dti_rows rows, size_t count, void *const *destination)
{
    return dataset->reader->kind->fill(dataset->reader, reader, rows, count, destination);
}
void dti_row_where(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text);
void dti_rows_drop(const ditto_dataset *dataset, struct dti_rows rows, size_t count);
ditto_status dti_row_save(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to);
ditto_status dti_row_load(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from);
/* `count` rows; and back: how many there are, at most `most`, and then they. What could be loaded before an error, *loaded rows, is the
 * caller's. */
ditto_status dti_rows_save(const ditto_dataset *dataset, struct dti_rows rows, size_t count,
                           struct dti_bytes *to);
size_t dti_rows_saved(struct dti_bytes_reader *from, uint64_t most);
ditto_status dti_rows_load(const ditto_dataset *dataset, struct dti_rows rows, size_t count, size_t *loaded,
                           struct dti_bytes_reader *from);
/* Where the values of `rows` rows of each component begin in one block, each on cache lines of its own; false: more bytes than size_t
 * counts. */
bool dti_dataset_layout(const ditto_dataset *dataset, uint64_t rows, size_t *offset, size_t *bytes);
/* Views of the row's components at these places. */
void dti_row_tensors(const ditto_dataset *dataset, void *const *component, ditto_tensor *out);
/* The user's function failed on a row: keeps the record it has written, or writes one; names function and row. */
ditto_status dti_fail_user(ditto_status status, uint32_t serial_before, const char *what,
                           const ditto_dataset *dataset, const uint64_t *row);

/* -- Readers -- */
/* At least `bytes`; good until the next call. NULL: no memory, recorded. */
char *dti_reader_buffer(struct dti_reader *reader, size_t bytes);
void dti_reader_free(struct dti_reader *reader);

/* Going through a dataset on the calling thread. */

ditto_status dti_reduce(ditto_dataset *dataset, ditto_reduce_fn function, void *state, uint64_t pass);

#endif
