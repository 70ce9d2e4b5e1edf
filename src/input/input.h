/* src/input/input.h - the door of input, and what its files share. */
#ifndef DTI_INPUT_H
#define DTI_INPUT_H

#include <ditto/distribute.h>

#include "replicas/replicas.h"

/* A row that has been chosen but not read: what its source needs to find it again. Cheap to shuffle. */
struct dti_row {
    uint64_t at, length, line; /* arrays: index, -, -; text: offset and bytes in the file, line number from 1 */
};

/* One component of a row. */
struct dti_component_spec {
    ditto_dtype dtype;
    uint32_t rank; /* of one row */
    size_t shape[DITTO_MAX_RANK];
    size_t bytes; /* of one row */
};

/* Which pass over a dataset, and the word that ends it early: looked at by what may go through many rows for one. */
struct dti_pass {
    uint64_t number;
    const _Atomic uint32_t *closing;
};

struct dti_cursor; /* a dataset's own: a position in one pass. Used by one thread at a time. */

/* What a dataset is: a table per kind. `next`, in the sequencer, chooses rows; `fill`, of sources alone, reads them. */
struct dti_dataset_kind {
    ditto_status (*open)(const ditto_dataset *dataset, const struct dti_pass *pass, struct dti_cursor **out);
    ditto_status (*next)(struct dti_cursor *cursor, struct dti_row *out); /* DITTO_END_OF_INPUT: no more */
    void (*close)(struct dti_cursor *cursor);
    /* Reads rows into components: destination[k] is the first of `count` consecutive rows of component k. Thread-safe. */
    ditto_status (*fill)(const ditto_dataset *source, const struct dti_row *rows, size_t count,
                         void *const *destination);
    void (*free)(ditto_dataset *dataset); /* what open and the constructor made, but not the dataset itself */
};

struct ditto_dataset {
    _Atomic uint32_t references;
    const struct dti_dataset_kind *kind;
    ditto_dataset *input;        /* referenced; NULL: a source */
    const ditto_dataset *source; /* at the end of the chain of inputs; itself if it is one */
    uint32_t components;
    struct dti_component_spec component[DITTO_MAX_COMPONENTS];
    uint64_t batch_rows; /* G, 0: not batched */
    bool drop_remainder, infinite;
};

/* -- Any thread -- */
/* CLOSED when the iterator is being destroyed. */
static inline ditto_status dti_pass_check(const _Atomic uint32_t *closing)
{
    /* relaxed: only ends a loop early */
    if (closing != NULL && atomic_load_explicit(closing, memory_order_relaxed) != 0)
        return DTI_FAIL(DITTO_ERR_CLOSED, "the iterator is being destroyed");
    return DITTO_OK;
}
/* `bytes` of a struct that begins with ditto_dataset, zeroed, one reference; input may be NULL. NULL: no memory. */
void *dti_dataset_new(size_t bytes, const struct dti_dataset_kind *kind, ditto_dataset *input);
void dti_dataset_release(ditto_dataset *dataset);

ditto_status dti_array_create(const ditto_tensor *arrays, uint32_t components, ditto_dataset **out);
ditto_status dti_csv_create(const char *path, const ditto_csv_component *components, uint32_t count,
                            const ditto_csv_options *options, ditto_dataset **out);
ditto_status dti_shuffle_create(ditto_dataset *input, const ditto_shuffle_options *options, ditto_dataset **out);
ditto_status dti_repeat_create(ditto_dataset *input, uint64_t count, ditto_dataset **out);
ditto_status dti_window_create(ditto_dataset *input, uint64_t skip, uint64_t take, ditto_dataset **out);
ditto_status dti_batch_create(ditto_dataset *input, uint64_t rows, bool drop_remainder, ditto_dataset **out);

/* Iterators: iterator.c */
ditto_status dti_iterator_create(struct dti_team *team, ditto_dataset *dataset, const ditto_input_options *options,
                                 ditto_iterator **out);
void dti_iterator_destroy(ditto_iterator *iterator);
ditto_status dti_iterator_next(struct dti_replica *self, ditto_iterator *iterator, ditto_batch *out);
struct dti_team *dti_iterator_team(const ditto_iterator *iterator);                /* NULL: the strategy is destroyed */
uint64_t dti_iterator_full_rows(const ditto_iterator *iterator, uint32_t replica); /* of a step that lacks none */
uint64_t dti_iterator_wait_ns(const ditto_iterator *iterator, uint32_t replica);

#endif
