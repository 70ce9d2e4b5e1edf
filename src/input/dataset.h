/* src/input/dataset.h - datasets, which describe rows, and cursors, which choose them.
 *
 * A dataset is immutable. It has its inputs below it, as in a tree.
 *
 * A dataset has two tasks. First, a cursor *chooses* rows one after the other. In an iterator, the sequencer
 * of each pipeline has a cursor. A chosen row is a few words that say where the row lies. It usually has no
 * values, so it is cheap to shuffle, to keep and to save. Later the values of chosen rows are *filled* in:
 * files are read and parsed, map functions are called, values are copied. In an iterator many producers do
 * this at the same time. ditto_dataset_reduce does both on the calling thread.
 *
 * Some sources cannot be read twice (generators, compressed files). Their rows hold their values, and a word
 * points to them. Each such row has one owner at a time. The owner passes the row on or gives it to
 * dti_rows_drop. */
#ifndef DTI_DATASET_H
#define DTI_DATASET_H

#include <ditto/dataset.h>

#include "base/text/text.h"
#include "base/types/bytes.h"

#include <stdlib.h>

/* One component of a row. */
struct dti_row_component_spec {
    ditto_dtype dtype;
    uint32_t rank; /* of one row */
    size_t shape[DITTO_MAX_RANK];
    size_t bytes; /* of one row */
};

/* One pass over a dataset. */
struct dti_pass {
    uint64_t number;

    /* The pass ends early when this becomes nonzero. NULL means never. Functions that may look at many rows
     * before they deliver one check it (dti_closing_check). */
    const _Atomic uint32_t *closing;

    /* This pass reads the files whose number mod `shards` is `shard`. 0 shards, or 1, means all files. */
    uint32_t shards;
    uint32_t shard;

    /* The number of this dataset's first file among all files of the tree. See `files` below. */
    uint32_t first_file;

    /* Shuffles and maps without a seed differ in passes in which this number differs
     * (dti_team_first_stream). */
    uint32_t first_stream;
};

/* Chosen rows. The words of row i begin at word[i * stride], and a dataset uses the first row_words of
 * them. */
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

/* A position in one pass. The cursor of each kind begins with this struct. One thread at a time uses a
 * cursor. */
struct dti_cursor {
    const ditto_dataset *dataset;

    /* The cursor of the input, for kinds with one input. It is closed, saved and restored with this one. NULL
     * for other kinds. */
    struct dti_cursor *from;
};

/* The state of a thread that reads the values of rows. */
struct dti_reader {
    const _Atomic uint32_t *closing; /* as in struct dti_pass */

    /* A buffer for the source that is being read, see dti_reader_buffer. */
    char *buffer;
    size_t capacity;
};

/* The functions of a kind of dataset. Transformations that only choose rows leave `fill` and all functions on
 * single rows NULL, because the dataset `reader` below them has these functions. */
struct dti_dataset_kind {
    const char *name;

    /* The size of the kind's cursor. 0 for a kind that only marks a dataset: the cursor of its input is used,
     * and there are no functions for cursors. */
    size_t cursor_bytes;

    /* Completes a cursor that is zero except for its dataset. If it fails, the cursor is closed. */
    ditto_status (*open)(struct dti_cursor *cursor, const struct dti_pass *pass);

    /* Chooses up to `want` rows. *got is 0 before the call. The first *got rows are valid for every returned
     * status, and DITTO_OK means that all `want` rows were chosen. After DITTO_END_OF_INPUT every later call
     * with want > 0 returns it again. After an error the cursor may only be closed. */
    ditto_status (*next)(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got);

    /* Frees what the cursor owns, except `from` and the cursor itself. NULL if there is nothing. */
    void (*close)(struct dti_cursor *cursor);

    /* save writes the cursor's position as bytes, without that of `from`, which dti_cursor_save appends.
     * restore moves a new cursor of the same pass to a saved position. Both are NULL if the cursor has no
     * position of its own. */
    ditto_status (*save)(struct dti_cursor *cursor, struct dti_bytes *to);
    ditto_status (*restore)(struct dti_cursor *cursor, struct dti_bytes_reader *from);

    /* Writes the values of `count` chosen rows. destination[k] is the first of `count` consecutive values of
     * component k. Thread-safe. */
    ditto_status (*fill)(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                         size_t count, void *const *destination);

    /* Describes where a row comes from, for messages. */
    void (*where)(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text);

    /* drop frees the values of one row. dti_rows_drop calls it only if `holds` is true. save_row writes a
     * row, and load_row reads it. If one of them is NULL, the words of the row are written or read as they
     * are. */
    void (*drop)(const ditto_dataset *dataset, const uint64_t *row);
    ditto_status (*save_row)(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to);
    ditto_status (*load_row)(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from);

    /* Writes the numbers that the dataset was made with, and some numbers that were found in its files.
     * Paths, functions and data are left out. NULL if there are no such numbers. */
    void (*digest)(const ditto_dataset *dataset, struct dti_bytes *to);

    /* Frees what the kind's own members point to. NULL if there is nothing. */
    void (*free)(ditto_dataset *dataset);
};

struct ditto_dataset {
    _Atomic uint32_t references;
    const struct dti_dataset_kind *kind;
    ditto_dataset **input; /* [inputs], each with a reference */
    uint32_t inputs;       /* 0 for a source */
    uint32_t row_words;

    /* The number of datasets on the longest path down from this one, including it. */
    uint32_t depth;

    /* The dataset that fills the rows: this one or one below it. */
    const ditto_dataset *reader;
    uint32_t components;
    struct dti_row_component_spec component[DITTO_MAX_COMPONENTS];
    size_t row_bytes;    /* of all components */
    uint64_t batch_rows; /* 0 if it is not batched */
    uint64_t prefetch;   /* batches, or 0 if not set */

    /* The number of its files, as shards count them. All files of an .npy source count as one, and so do the
     * k-th files of all inputs of a zip. */
    uint32_t files;
    bool drop_remainder;
    bool infinite;
    bool holds; /* rows may hold values, which dti_rows_drop frees */

    /* True if all rows come from files, and which rows of a file exist does not depend on other files. The
     * files can then be divided among pipelines. */
    bool by_file;
};

/* -- Making: any thread -- */

/* The largest depth of a dataset. There is a limit because cursors use recursion. */
#define DTI_MOST_DEPTH_OF_DATASETS 1000u

/* Allocates `bytes`, all zero, for a struct that begins with ditto_dataset. The dataset has one reference,
 * and the components and flags of input[0]. `holds` is true if it is true for any input. If `inputs` is 0,
 * the dataset is a source. A caller that sets components calls dti_dataset_finish afterwards. Returns
 * DITTO_ERR_NO_MEMORY, or DITTO_ERR_RANGE if the depth exceeds DTI_MOST_DEPTH_OF_DATASETS. */
ditto_status dti_dataset_new(size_t bytes, const struct dti_dataset_kind *kind, ditto_dataset *const *input,
                             uint32_t inputs, ditto_dataset **out);

/* Computes row_bytes. Returns DITTO_ERR_RANGE if a row has more bytes than size_t can count. */
ditto_status dti_dataset_finish(ditto_dataset *dataset);

/* Sets component k. Returns DITTO_ERR_INVALID if the rank is too large, and the errors of dti_tensor_check
 * (DITTO_ERR_RANGE, DITTO_ERR_INVALID). */
ditto_status dti_dataset_set_component(ditto_dataset *dataset, uint32_t k, const ditto_tensor *spec);
void dti_dataset_retain(ditto_dataset *dataset);
void dti_dataset_release(ditto_dataset *dataset); /* NULL is allowed */

/* If `status` is DITTO_OK, calls dti_dataset_finish and sets *out. Otherwise, or if that fails, releases the
 * dataset and returns the error. */
ditto_status dti_dataset_out(ditto_dataset *dataset, ditto_status status, ditto_dataset **out);

/* Returns DITTO_ERR_INVALID if the rows of the two datasets have different components. The message uses the
 * two names. */
ditto_status dti_dataset_check_alike(const ditto_dataset *first, const char *first_name,
                                     const ditto_dataset *other, const char *other_name);

/* Computes a hash of the kinds, the components and the digests of the dataset and of everything below it. It
 * does not show differences in paths, functions and data. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_dataset_fingerprint(const ditto_dataset *dataset, uint64_t *out);

/* -- Choosing: one thread at a time for each cursor -- */
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

/* Returns DITTO_ERR_CLOSED while the iterator is being destroyed. `closing` may be NULL, which means
 * never. */
ditto_status dti_closing_check(const _Atomic uint32_t *closing);

/* -- Rows: any thread -- */
static inline ditto_status dti_dataset_fill(const ditto_dataset *dataset, struct dti_reader *reader,
                                            struct dti_rows rows, size_t count, void *const *destination)
{
    return dataset->reader->kind->fill(dataset->reader, reader, rows, count, destination);
}
void dti_row_where(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text);

/* Frees the values of rows that hold them. Does nothing for other rows. */
void dti_rows_drop(const ditto_dataset *dataset, struct dti_rows rows, size_t count);
ditto_status dti_row_save(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to);
ditto_status dti_row_load(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from);

/* dti_rows_save writes `count` and then the rows. dti_rows_load_count reads the count. The reader fails if
 * the count is above `most`, or above the number of bytes that are left. dti_rows_load reads that many rows.
 * Even if it fails, the caller owns the first *loaded rows. */
ditto_status dti_rows_save(const ditto_dataset *dataset, struct dti_rows rows, size_t count,
                           struct dti_bytes *to);
size_t dti_rows_load_count(struct dti_bytes_reader *from, uint64_t most);
ditto_status dti_rows_load(const ditto_dataset *dataset, struct dti_rows rows, size_t count, size_t *loaded,
                           struct dti_bytes_reader *from);

/* Lays out `rows` values of each component in one block of *bytes bytes. offset[k] is where component k
 * begins. If the block is aligned to DTI_CACHE_LINE_PAIR, no two components share a cache line. Returns false
 * if the block has more bytes than size_t can count. */
bool dti_dataset_layout(const ditto_dataset *dataset, uint64_t rows, size_t *offset, size_t *bytes);

/* Sets out[k] to a view of component k of one row, whose values are at component[k]. `out` has
 * DITTO_MAX_COMPONENTS elements. Those behind the components get the dtype 0, by which ditto/input.hpp knows
 * that they do not exist. */
void dti_row_tensors(const ditto_dataset *dataset, void *const *component, ditto_tensor *out);

/* Records and returns the error that a user's function has failed. A positive status becomes DITTO_ERR_USER.
 * The message says whose function it is (`what`) and on which row it failed, unless `dataset` is NULL. It
 * includes the message that the function has recorded, if dti_this_thread()->errors has changed since
 * `serial_before`. */
ditto_status dti_fail_user(ditto_status status, uint32_t serial_before, const char *what,
                           const ditto_dataset *dataset, const uint64_t *row);

/* -- Readers -- */

/* Returns a buffer of at least `bytes`, valid until the next call with this reader. Returns NULL and records
 * DITTO_ERR_NO_MEMORY if there is no memory. */
char *dti_reader_buffer(struct dti_reader *reader, size_t bytes);
void dti_reader_free(struct dti_reader *reader);

/* -- Reduction on the calling thread -- */

/* Calls the function with the rows of a pass, in order, until it returns anything but DITTO_OK
 * (ditto_dataset_reduce). */
ditto_status dti_reduce(ditto_dataset *dataset, ditto_reduce_fn function, void *state, uint64_t pass);

#endif
