/* include/ditto/dataset.h - datasets: lazy, immutable descriptions of ordered lists of rows.
 *
 * A row has one or more components (for example an image and its label), each a tensor of a fixed shape.
 * Sources (source.h) make rows. Transformations (transform.h) change rows, their order or their number. One
 * of them, batch, says how many rows make one global batch. Making a dataset opens its files, and may read
 * the first row as a check. All other rows are read when an iterator (distribute.h), which delivers batches
 * to replicas, or ditto_dataset_reduce asks for them. A dataset can be iterated many times, and by several
 * iterators at once. docs/input.md describes how to use datasets. docs/semantics.md, "Datasets", has the
 * rules. */
#ifndef DITTO_DATASET_H
#define DITTO_DATASET_H

#include <ditto/tensor.h>

DITTO_BEGIN

/* -- Rules for this header, source.h and transform.h --
 *
 * Any thread may call the functions, in any context. A transformation keeps its inputs alive. The caller
 * destroys each handle when the program no longer needs it. Outputs are set only on DITTO_OK. Every function
 * that makes a dataset may return DITTO_ERR_NO_MEMORY, and DITTO_ERR_INVALID if a pointer is NULL and NULL
 * has no meaning. If it has options, it returns DITTO_ERR_UNSUPPORTED if they are of a newer version and have
 * a field set that this version lacks. A transformation returns DITTO_ERR_RANGE if a chain of more than 1000
 * datasets, each made from the one before it, would result.
 *
 * If a row cannot be read, an iterator returns the error when all rows before it have been delivered
 * (ditto_next), and ditto_dataset_reduce returns it when all rows before it have been processed. */

/* -- Functions of the program in a dataset (maps, filters, generators) --
 *
 * In an iterator they run on the threads that make batches. The functions of a generator other than `next`
 * may also run on the threads that make, save and destroy the iterator. There, all of these functions run in
 * a context of their own, in which calls on a strategy return DITTO_ERR_CONTEXT, because the strategy may be
 * waiting for that thread. If a function needs, for example, the value of a variable, the program reads it
 * before it makes the iterator, and passes it with the `user` pointer. What `user` points to must be valid as
 * long as a dataset or an iterator that calls the function exists.
 *
 * ditto_dataset_reduce calls the functions on the calling thread, in the context that this thread is in. Both
 * there and in iterators, the floating-point environment is DITTO_FLOATING_STANDARD (strategy.h). */

/** A dataset.
 *
 *  The order of its rows depends only on the description of the dataset, on its seeds and on the pass, never
 *  on threads. In each pipeline of an iterator, one thread at a time chooses rows, one after another.
 *  This thread shuffles, filters, calls generators, decompresses files, and finds where lines and records
 *  begin. It also reads and maps the rows that a filter has to see. All producers do the rest in parallel:
 *  reading, parsing, mapping and copying rows. */
typedef struct ditto_dataset ditto_dataset;

/** Largest number of components of a row. */
#define DITTO_MAX_COMPONENTS 16

/** Describes the rows of a dataset. */
typedef struct ditto_element_spec {
    uint32_t num_components; /**< number of components of a row */

    /** Dtypes and shapes of the components of one row. Their data is NULL. */
    ditto_tensor component[DITTO_MAX_COMPONENTS];

    uint64_t batch; /**< rows of a global batch, or 0 if not batched */

    /** 1 if the dataset has no end. It has none if it, or a dataset that it is made of, is repeated for ever.
     *  A later take, or a zip with a finite dataset, gives it an end. A dataset from a generator counts as
     *  finite. */
    int infinite;
} ditto_element_spec;

/** Describes the rows of a dataset.
 *
 *  @param dataset  the dataset
 *  @param out      [out] the description
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_INVALID  an argument is NULL */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_spec(const ditto_dataset *dataset,
                                                          ditto_element_spec *out);

/** Processes one row for ditto_dataset_reduce.
 *
 *  @param row   array of the components of the row. It is valid during the call
 *  @param user  the pointer that was given to ditto_dataset_reduce
 *  @return DITTO_OK to continue, DITTO_END_OF_INPUT to stop without an error, or an error, which ends the
 *          reduction */
typedef ditto_status (*ditto_reduce_fn)(const ditto_tensor *row, void *user);

/** Calls a function for all rows, in order, on the calling thread. It makes no difference whether the dataset
 *  is batched, except that DITTO_BATCH_DROP_REMAINDER drops the rows that are left over at the end.
 *
 *  For a dataset without end it returns only when the function ends the reduction, or a row cannot be read.
 *
 *  @param dataset   the dataset
 *  @param function  the function. It runs in the same floating-point environment as functions of datasets
 *  @param user      given to the function. It holds the result
 *  @param pass      number of the pass, as in ditto_input_options
 *  @return DITTO_OK, an error of reading the dataset, such as DITTO_ERR_CORRUPT and DITTO_ERR_IO, or one of:
 *  @retval DITTO_ERR_INVALID    dataset or function is NULL
 *  @retval DITTO_ERR_NO_MEMORY  memory was refused
 *  @retval DITTO_ERR_USER       the function, or a function of the dataset, returned DITTO_ERR_USER, or a
 *                               positive status that it must not return. Its other errors are returned as
 *                               they are
 *  @par Cost
 *  Reads and computes all rows, one after another. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_reduce(ditto_dataset *dataset, ditto_reduce_fn function,
                                                            void *user, uint64_t pass);

/** Destroys the caller's handle. The dataset is freed when nothing that was made from it needs it.
 *
 *  @param dataset  the dataset, or NULL
 *  @return DITTO_OK
 *  @par Cost
 *  The last handle closes the files and frees the memory of the dataset. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_destroy(ditto_dataset *dataset);

DITTO_END
#endif
