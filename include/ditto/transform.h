/* include/ditto/transform.h - datasets made from datasets.
 *
 * Thread safety, ownership and common errors are those of ditto/dataset.h. A batched dataset is still a list
 * of rows, for which it is recorded how many make a global batch. After batch, take, skip and shard count in
 * batches, and map, zip, repeat and prefetch keep the batch size. Shuffle, filter, concatenate and interleave
 * of batches are DITTO_ERR_UNSUPPORTED: apply them to rows first, and then batch. */
#ifndef DITTO_TRANSFORM_H
#define DITTO_TRANSFORM_H

#include <ditto/dataset.h>
#include <ditto/random.h>

DITTO_BEGIN

/* -- Values -- */

/** Computes one row from another. Several threads call it at the same time.
 *
 *  @param in      array of the components of the input row. They are valid during the call
 *  @param out     array of the components of the result. The function writes all elements of each
 *  @param random  a stream of random numbers for this row in this pass. It is the same whichever thread
 *                 computes the row, and however often it is computed
 *  @param user    the pointer that was given to ditto_dataset_map
 *  @return DITTO_OK, or an error, which the iterator then returns */
typedef ditto_status (*ditto_map_fn)(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                     void *user);

/** Options of ditto_dataset_map. */
typedef struct ditto_map_options {
    size_t struct_size; /**< set by DITTO_MAP_OPTIONS_INIT */

    /** Array of `num_components` tensors: dtypes and shapes of the resulting rows. NULL means those of the
     *  input. It is copied. */
    const ditto_tensor *row;

    uint32_t num_components; /**< length of `row`; 0 if that is NULL */

    /** Seed of the streams of random numbers. With 0 each worker has streams of its own
     *  (ditto_coordinator_datasets_from_function). */
    uint64_t seed;
} ditto_map_options;

/** Initial value of ditto_map_options. */
#define DITTO_MAP_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_map_options)

/** Applies a function to each row. The producers compute it in parallel. The order of rows is unchanged.
 *
 *  @param input     the input
 *  @param function  the function. Its result must depend on its arguments alone, because it may be called
 *                   more than once for a row, for example if a filter follows
 *  @param user      given to the function
 *  @param options   the options. NULL means rows like those of the input, and seed 0
 *  @param out       [out] the dataset
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID  one of these:
 *      - num_components is 0 or above DITTO_MAX_COMPONENTS, and `row` is not NULL.
 *      - num_components is not 0, and `row` is NULL.
 *      - A rank is above DITTO_MAX_RANK - 1 or was not set, or a dtype is unknown.
 *  @retval DITTO_ERR_RANGE    a component has more than PTRDIFF_MAX bytes, or a row more than SIZE_MAX
 *  @par Cost
 *  A few small allocations. Rows are made when an iterator, or ditto_dataset_reduce, asks for them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_map(ditto_dataset *input, ditto_map_fn function,
                                                         void *user, const ditto_map_options *options,
                                                         ditto_dataset **out);

/** Decides whether a row is kept. Each pipeline of an iterator calls it for one row after another. Several
 *  pipelines, and several iterators, call it at the same time.
 *
 *  @param row   array of the components of the row. They are valid during the call
 *  @param user  the pointer that was given to ditto_dataset_filter
 *  @param keep  [out] set to 1 to keep the row. It is 0 when the function is called
 *  @return DITTO_OK, or an error, which the iterator then returns */
typedef ditto_status (*ditto_filter_fn)(const ditto_tensor *row, void *user, int *keep);

/** Keeps the rows for which a function sets `keep`.
 *
 *  @param input     the input
 *  @param function  the function
 *  @param user      given to the function
 *  @param out       [out] the dataset
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_UNSUPPORTED  the input is batched
 *  @par Cost
 *  One thread of each pipeline reads the rows and computes the maps before the filter, one row after another,
 *  because the rows that are kept must be known before they are divided. The producers read and compute these
 *  rows again. So filter first, and map afterwards. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_filter(ditto_dataset *input, ditto_filter_fn function,
                                                            void *user, ditto_dataset **out);

/* -- Order -- */

/** Whether a shuffle has another order in each pass. A pass is that of an iterator, or one repetition of
 *  ditto_dataset_repeat. */
typedef enum ditto_reshuffle {
    DITTO_RESHUFFLE_DEFAULT = 0,   /**< the same as DITTO_RESHUFFLE_EACH_PASS */
    DITTO_RESHUFFLE_EACH_PASS = 1, /**< each pass has its own order */

    /** All passes have the same order, for example for a fixed split by take and skip. */
    DITTO_RESHUFFLE_NEVER = 2,
} ditto_reshuffle;

/** Options of ditto_dataset_shuffle. */
typedef struct ditto_shuffle_options {
    size_t struct_size; /**< set by DITTO_SHUFFLE_OPTIONS_INIT */

    /** Seed of the random order. With 0 each worker has an order of its own
     *  (ditto_coordinator_datasets_from_function). */
    uint64_t seed;

    /** Each row is drawn from a buffer of this many rows, which the next rows of the input refill. 0 means
     *  all rows, which makes all orders equally likely. */
    uint64_t buffer_rows;

    ditto_reshuffle reshuffle; /**< whether passes differ */
} ditto_shuffle_options;

/** Initial value of ditto_shuffle_options. */
#define DITTO_SHUFFLE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_shuffle_options)

/** Puts rows into a random order.
 *
 *  @param input    the input
 *  @param options  the options. NULL means seed 0 and all rows
 *  @param out      [out] the dataset
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_UNSUPPORTED  the input is batched
 *  @retval DITTO_ERR_INVALID      buffer_rows is 0, and the input is infinite (ditto_element_spec)
 *  @retval DITTO_ERR_RANGE        reshuffle is not a value of its enum
 *  @par Cost
 *  For each row of the buffer: 8 bytes for arrays, ranges and .npy files, 24 for other files, and 8 and the
 *  whole row for generators and compressed files. Each map, concatenate and interleave in front of the
 *  shuffle adds 8 bytes. For zip the bytes of its inputs are added up. As the buffer fills, its memory is
 *  doubled, up to buffer_rows.
 *  @par Source
 *  D. E. Knuth, The Art of Computer Programming 2, 3.4.2, algorithm P. SplitMix64: Steele, Lea, Flood,
 *  OOPSLA 2014. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_shuffle(ditto_dataset *input,
                                                             const ditto_shuffle_options *options,
                                                             ditto_dataset **out);

/* -- Number of rows -- */

/** For ditto_dataset_repeat: without end. */
#define DITTO_REPEAT_FOREVER UINT64_MAX

/** Repeats the rows.
 *
 *  @param input  the input
 *  @param count  how often the rows come in total, or DITTO_REPEAT_FOREVER
 *  @param out    [out] the dataset
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_RANGE  `count` is 0
 *  @par Cost
 *  A few small allocations. Rows are made when an iterator, or ditto_dataset_reduce, asks for them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_repeat(ditto_dataset *input, uint64_t count,
                                                            ditto_dataset **out);

/** Keeps the first rows, or the first batches if the input is batched.
 *
 *  @param input  the input
 *  @param count  how many are kept
 *  @param out    [out] the dataset
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_RANGE  `count` is 0
 *  @par Cost
 *  A few small allocations. Rows are made when an iterator, or ditto_dataset_reduce, asks for them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_take(ditto_dataset *input, uint64_t count,
                                                          ditto_dataset **out);

/** Drops the first rows, or the first batches if the input is batched.
 *
 *  @param input  the input
 *  @param count  how many are dropped
 *  @param out    [out] the dataset
 *  @return DITTO_OK, or an error that all transformations have
 *  @par Cost
 *  A few small allocations. Rows are made when an iterator, or ditto_dataset_reduce, asks for them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_skip(ditto_dataset *input, uint64_t count,
                                                          ditto_dataset **out);

/** Keeps the rows, or the batches if the input is batched, whose number mod `num_shards` is `index`.
 *
 *  @param input       the input
 *  @param num_shards  number of shards
 *  @param index       number of this shard, from 0
 *  @param out         [out] the dataset
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_RANGE  `num_shards` is 0, or `index` is not below it
 *  @par Cost
 *  A few small allocations. Rows are made when an iterator, or ditto_dataset_reduce, asks for them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_shard(ditto_dataset *input, uint64_t num_shards,
                                                           uint64_t index, ditto_dataset **out);

/* -- Several datasets -- */

/** Joins one row of each input to one row, with the components of all inputs one after another. The result
 *  ends with the shortest input.
 *
 *  @param inputs      array of `num_inputs` datasets
 *  @param num_inputs  number of inputs
 *  @param out         [out] the dataset
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID  there is no input, there are more than DITTO_MAX_COMPONENTS components, the
 *                             inputs have different batch sizes, or only some of them are batched
 *  @retval DITTO_ERR_RANGE    a row has more than SIZE_MAX bytes
 *  @par Cost
 *  A few small allocations. Rows are made when an iterator, or ditto_dataset_reduce, asks for them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_zip(ditto_dataset *const *inputs, uint32_t num_inputs,
                                                         ditto_dataset **out);

/** Makes a dataset of the rows of the first input, then those of the second, and so on.
 *
 *  @param inputs      array of `num_inputs` datasets
 *  @param num_inputs  number of inputs
 *  @param out         [out] the dataset
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID      there is no input, or the rows of the inputs differ in dtypes or shapes
 *  @retval DITTO_ERR_UNSUPPORTED  an input is batched
 *  @par Cost
 *  A few small allocations. Rows are made when an iterator, or ditto_dataset_reduce, asks for them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_concatenate(ditto_dataset *const *inputs,
                                                                 uint32_t num_inputs, ditto_dataset **out);

/** Takes `block` rows at a time from each of `cycle` inputs in rotation. When an input ends, the next input
 *  that has not begun replaces it.
 *
 *  @param inputs      array of `num_inputs` datasets
 *  @param num_inputs  number of inputs
 *  @param cycle       how many inputs are open at a time. 0, or more than num_inputs, means all
 *  @param block       how many consecutive rows come from one input. 0 means 1
 *  @param out         [out] the dataset
 *  @return DITTO_OK, or an error of ditto_dataset_concatenate
 *  @par Cost
 *  A few small allocations. Rows are made when an iterator, or ditto_dataset_reduce, asks for them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_interleave(ditto_dataset *const *inputs,
                                                                uint32_t num_inputs, uint32_t cycle,
                                                                uint64_t block, ditto_dataset **out);

/* -- Batches -- */

/** Flag of ditto_dataset_batch: if fewer rows than a batch are left at the end of its input, they are
 *  dropped. If ditto_dataset_repeat follows, they are dropped in each repetition. */
#define DITTO_BATCH_DROP_REMAINDER 1u

/** Groups rows into global batches, each of which serves all replicas together. The last batch may be
 *  smaller.
 *
 *  @param input  the input
 *  @param rows   rows of a batch
 *  @param flags  DITTO_BATCH_DROP_REMAINDER or 0
 *  @param out    [out] the dataset
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_RANGE    `rows` is 0
 *  @retval DITTO_ERR_INVALID  the input is already batched, or a flag is unknown
 *  @par Cost
 *  A few small allocations. Rows are made when an iterator, or ditto_dataset_reduce, asks for them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_batch(ditto_dataset *input, uint64_t rows,
                                                           uint32_t flags, ditto_dataset **out);

/** Undoes ditto_dataset_batch. Rows that it dropped stay dropped.
 *
 *  @param input  the input
 *  @param out    [out] the dataset
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_INVALID  the input is not batched
 *  @par Cost
 *  A few small allocations. Rows are made when an iterator, or ditto_dataset_reduce, asks for them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_unbatch(ditto_dataset *input, ditto_dataset **out);

/** Sets how many batches wait ready for each replica, unless ditto_input_options.buffer is set.
 *
 *  @param input        the input
 *  @param num_batches  number of batches, 1 to 65536
 *  @param out          [out] the dataset
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_RANGE  `num_batches` is 0 or above 65536
 *  @par Cost
 *  A few small allocations. Rows are made when an iterator, or ditto_dataset_reduce, asks for them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_prefetch(ditto_dataset *input, uint64_t num_batches,
                                                              ditto_dataset **out);

DITTO_END
#endif
