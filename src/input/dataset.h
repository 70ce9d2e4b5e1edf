/* src/input/dataset.h - datasets, which describe rows, and cursors, which choose them.
 *
 * A dataset is immutable. It has its inputs below it, as in a tree.
 *
 * A dataset has two tasks. First, a cursor *chooses* rows one after the other. Only the sequencer of a
 * pipeline uses the pipeline's cursor. A chosen row is a few words that say where the row lies. It has no
 * values, so it is cheap to shuffle, to keep and to save. Later many threads *fill* batches from chosen rows
 * at the same time. They read and parse files, call map functions and copy values.
 *
 * Some sources cannot be read twice (generators, compressed streams). Their rows hold their values, and a
 * word points to them. Each such row has one owner at a time. The owner passes the row on or gives it to
 * dti_rows_drop. */
#ifndef DTI_DATASET_H
#define DTI_DATASET_H

#include <ditto/dataset.h>

#include "base/text/text.h"
#include "input/bytes.h"

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

    /* This pass reads the files whose number mod `shards` is `shard`. 0 shards means all files. */
    uint32_t shards;
    uint32_t shard;

    /* The number of this dataset's first file among all files in the tree. */
    uint32_t first_file;
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

/* The state of a thread that fills batches. */
struct dti_reader {
    const _Atomic uint32_t *closing; /* as in struct dti_pass */

    /* A buffer for the source that is being read, see dti_reader_buffer. */
    char *buffer;
    size_t capacity;
};

/* The functions of a kind of dataset. Transformations that only choose rows have no fill, where and row
 * functions, because the rows are read by the input. */
struct dti_dataset_kind {
    const char *name;

    /* The size of the kind's cursor. 0 for a kind that only marks a dataset: the cursor of its input is used,
     * and there are no functions for cursors. */
    size_t cursor_bytes;

    /* Completes a cursor that is zero except for its dataset. If it fails, the cursor is closed. */
    ditto_status (*open)(struct dti_cursor *cursor, const struct dti_pass *pass);

    /* Chooses up to `want` rows. The first *got rows are valid for every returned status. After
     * DITTO_END_OF_INPUT every later call returns it again. After an error the cursor may only be closed. */
    ditto_status (*next)(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got);

    /* Frees what the cursor owns, except `from` and the cursor itself. NULL if there is nothing. */
    void (*close)(struct dti_cursor *cursor);

    /* save writes the cursor's position as bytes, without that of `from`, which dti_cursor_save appends.
     * restore moves a new cursor of the same pass to a saved position. Both are NULL if the cursor has no
     * position of its own. */
    ditto_status (*save)(struct dti_cursor *cursor, struct dti_bytes *to);
    ditto_status (*restore)(struct dti_cursor *cursor, struct dti_bytes_reader *from);

    /* Writes the values of `count` rows. destination[k] is the first of `count` consecutive values of
     * component k. Thread-safe. */
    ditto_status (*fill)(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                         size_t count, void *const *destination);

    /* Describes where a row comes from, for messages. */
    void (*where)(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text);

    /* drop frees one row. It is called only if `holds` is true. save_row and load_row write and read one row.
     * NULL means that the words of the row are written and read as they are. */
    void (*drop)(const ditto_dataset *dataset, const uint64_t *row);
    ditto_status (*save_row)(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to);
    ditto_status (*load_row)(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from);

    /* Writes the arguments that the dataset was made with, except the paths of its files. NULL if there are
     * none. */
    void (*digest)(const ditto_dataset *dataset, struct dti_bytes *to);

    /* Frees the memory that the constructor allocated, but not the dataset itself. NULL if there is none. */
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
    uint64_t batch_rows; /* G, or 0 if it is not batched */
    uint64_t prefetch;   /* batches, or 0 if not set */

    /* The number of files that its sources read. Shards count files in this numbering. */
    uint32_t files;
    bool drop_remainder;
    bool infinite;
    bool holds; /* rows hold their values */

    /* True if the result for the rows of one file does not depend on other files. The files can then be
     * divided among pipelines. */
    bool by_file;
};

/* -- Making: any thread -- */

/* The largest depth of a dataset. There is a limit because cursors use recursion. */
#define DTI_MOST_DEPTH_OF_DATASETS 1000u

/* Allocates `bytes`, all zero, for a struct that begins with ditto_dataset. The dataset has one reference,
 * and the components and flags of input[0]. If `inputs` is 0, it is a source. A caller that sets components
 * calls dti_dataset_finish afterwards. Returns DITTO_ERR_NO_MEMORY, or DITTO_ERR_RANGE if the
 * depth exceeds DTI_MOST_DEPTH_OF_DATASETS. */
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

/* Returns DITTO_ERR_INVALID if the rows of `own` and of `first` have different components. The message
 * uses the two names. */
ditto_status dti_dataset_check_alike(const ditto_dataset *first, const char *first_name,
                                     const ditto_dataset *own, const char *own_name);

/* Computes a number that differs between datasets that give different rows, as far as that can be decided
 * without reading files. Returns DITTO_ERR_NO_MEMORY. */
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

/* Returns DITTO_ERR_CLOSED while the iterator is being destroyed. */
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

/* dti_rows_save writes `count` and then the rows. dti_rows_saved reads the count, and the reader fails if it
 * is above `most`. dti_rows_load reads that many rows. Even if it fails, the caller owns the first *loaded
 * rows. */
ditto_status dti_rows_save(const ditto_dataset *dataset, struct dti_rows rows, size_t count,
                           struct dti_bytes *to);
size_t dti_rows_saved(struct dti_bytes_reader *from, uint64_t most);
ditto_status dti_rows_load(const ditto_dataset *dataset, struct dti_rows rows, size_t count, size_t *loaded,
                           struct dti_bytes_reader *from);

/* Lays out `rows` values of each component in one block of *bytes bytes. offset[k] is where component k
 * begins. No two components share a cache line. Returns false if the block has more bytes than size_t can
 * count. */
bool dti_dataset_layout(const ditto_dataset *dataset, uint64_t rows, size_t *offset, size_t *bytes);

/* Sets out[k] to a view of component k of one row, whose values are at component[k]. */
void dti_row_tensors(const ditto_dataset *dataset, void *const *component, ditto_tensor *out);

/* Records that the user's function failed on a row. The message names the function and the row, and includes
 * the message that the function has recorded since `serial_before`, if there is one. */
ditto_status dti_fail_user(ditto_status status, uint32_t serial_before, const char *what,
                           const ditto_dataset *dataset, const uint64_t *row);

/* -- Readers -- */

/* Returns a buffer of at least `bytes`, valid until the next call. Returns NULL and records
 * DITTO_ERR_NO_MEMORY if there is no memory. */
char *dti_reader_buffer(struct dti_reader *reader, size_t bytes);
void dti_reader_free(struct dti_reader *reader);

/* -- Reduction on the calling thread -- */

/* Calls the function with each row of a pass, in order (ditto_dataset_reduce). */
ditto_status dti_reduce(ditto_dataset *dataset, ditto_reduce_fn function, void *state, uint64_t pass);

#endif
