/* include/ditto/dataset.h - where rows come from and in which order: a lazy, immutable description.
 *
 * A dataset is a list of rows; a row has one or more components (an image and its label), each a tensor of a fixed shape. Sources
 * (source.h) make rows, transformations (transform.h) change them, their order or their number, and one of them, batch, says how many make
 * one global batch. Nothing is read until somebody asks: an iterator (distribute.h), which hands batches to replicas, or a reduction
 * (below). A dataset can be iterated many times, and by several iterators at once.
 *
 * Order   Rows have one order, which depends on the dataset's description, its seeds and the pass alone, never on threads. Choosing rows
 *         is done by one thread per iterator, one row after the other: shuffle, filter, generators, and finding where lines and records
 *         begin. Reading, parsing, maps and copying are done by as many threads as there are producers.
 * Functions of the program's that are part of a dataset (maps, filters, generators) are called on the threads that make batches, in a
 *         context of their own: calls of a strategy are DITTO_ERR_CONTEXT there, because the strategy may be waiting for that thread. What a
 *         function needs of a variable, say, is read before the iterator is made and handed in by its user pointer. They run in the
 *         floating-point environment of replicas (strategy.h), whichever the program's threads have.
 * Errors  that reading meets come to whoever takes the batch in which the row would be, after all rows before it, and name file and
 *         place.
 *
 * All functions here, in source.h and in transform.h: any thread, any context. A transformation keeps its inputs alive: destroy each handle
 * when it is no longer needed by you. Outputs are set only on DITTO_OK. All can fail with DITTO_ERR_NO_MEMORY and, for NULL arguments,
 * DITTO_ERR_INVALID; transformations with DITTO_ERR_RANGE when more than 1000 datasets would stand one upon the other. Rules: docs/semantics.md, "Datasets"; how to use it: docs/input.md. */
#ifndef DITTO_DATASET_H
#define DITTO_DATASET_H

#include <ditto/tensor.h>

DITTO_BEGIN

typedef struct ditto_dataset ditto_dataset;

#define DITTO_MAX_COMPONENTS 16 /* of a row */

/** What the rows of a dataset are. */
typedef struct ditto_dataset_spec {
    uint32_t components;
    ditto_tensor component[DITTO_MAX_COMPONENTS]; /**< dtype and shape of one row's; data is NULL */
    uint64_t batch;                               /**< rows of a global batch; 0: not batched */

    /** 1: it has no end, because it is repeated for ever, or made of a dataset that is and not cut by take. A
     *  dataset from a generator counts as finite. */
    int infinite;
} ditto_dataset_spec;
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_get_spec(const ditto_dataset *dataset,
                                                              ditto_dataset_spec *out);

/** Looks at one row.
 *  @param row    [components], good during the call
 *  @param state  what was given to ditto_dataset_reduce
 *  @return DITTO_OK; DITTO_END_OF_INPUT: enough, no error; an error ends the reduction with it */
typedef ditto_status (*ditto_reduce_fn)(const ditto_tensor *row, void *state);
/** Goes through the rows on the calling thread, in order: a fold, whose state is the caller's. Batches do not matter. Functions are
 *  called in the caller's context, and in the floating-point environment of replicas; the caller's own is restored at the end.
 *  @param pass  as in ditto_input_options
 *  @retval DITTO_ERR_USER  the function failed (or the status that it returned)
 *  @retval what reading the dataset can fail with: DITTO_ERR_CORRUPT, DITTO_ERR_IO, ... */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_reduce(ditto_dataset *dataset, ditto_reduce_fn function,
                                                            void *state, uint64_t pass);

/** Gives up the caller's handle; the dataset goes when nothing made from it needs it. NULL is allowed. */
DITTO_API void ditto_dataset_destroy(ditto_dataset *dataset);

DITTO_END
#endif
