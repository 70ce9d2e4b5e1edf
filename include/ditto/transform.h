/* include/ditto/transform.h - datasets made from datasets.
 *
 * Threads, ownership and common errors: ditto/dataset.h. A batched dataset is still a list of rows, with a mark that says how many make
 * a global batch; transformations see rows. Behind batch, take, skip and shard count in batches; map and zip keep the mark; shuffle,
 * filter, concatenate and interleave of batches are DITTO_ERR_UNSUPPORTED: do that to rows, then batch them. */
#ifndef DITTO_TRANSFORM_H
#define DITTO_TRANSFORM_H

#include <ditto/dataset.h>
#include <ditto/random.h>

DITTO_BEGIN

/* -- Values -- */

/** Computes one row from another.
 *  @param in      [components of the input]: views that are good during the call
 *  @param out     [components of the result]: views of where to write; all of it
 *  @param random  a stream of this row of this pass: the same whoever computes the row, and however often
 *  @return DITTO_OK or an error, which is the iterator's then. ditto_random and other threads' maps run at the same time */
typedef ditto_status (*ditto_map_fn)(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                     void *user);

typedef struct ditto_map_options {
    size_t struct_size;      /**< set by DITTO_MAP_OPTIONS_INIT */
    const ditto_tensor *row; /**< [components] dtype and shape of the result; NULL: as the input. Copied */
    uint32_t components;
    uint64_t seed; /**< of the streams of random numbers */
} ditto_map_options;
#define DITTO_MAP_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_map_options)

/** A function of each row, computed by the producers, in parallel; the order of rows stays.
 *  @param function  depends on its arguments alone: a row in front of a filter is computed twice
 *  @param options   NULL: rows as the input's, seed 0
 *  @retval DITTO_ERR_INVALID  no component or more than DITTO_MAX_COMPONENTS; a rank above DITTO_MAX_RANK - 1 */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_map(ditto_dataset *input, ditto_map_fn function,
                                                         void *user, const ditto_map_options *options,
                                                         ditto_dataset **out);

/** Says whether a row stays. @param keep  set to 0 or 1; 0 when called. @return DITTO_OK or an error, which is the iterator's then */
typedef ditto_status (*ditto_filter_fn)(const ditto_tensor *row, int *keep, void *user);
/** The rows that the function keeps.
 *  Cost  which rows there are must be known before they are shared out: rows are read, and maps before the filter computed, one after the
 *        other by one thread, and again by the producers for the rows that stay. Filter first, map behind.
 *  @retval DITTO_ERR_UNSUPPORTED  after batch */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_filter(ditto_dataset *input, ditto_filter_fn function,
                                                            void *user, ditto_dataset **out);

/* -- Order -- */

typedef enum ditto_reshuffle {
    DITTO_RESHUFFLE_DEFAULT = 0,   /**< EACH_PASS */
    DITTO_RESHUFFLE_EACH_PASS = 1, /**< each pass (of repeat, or of an iterator) has an order of its own */
    DITTO_RESHUFFLE_NEVER = 2,     /**< the same order in every pass: a fixed split by take and skip */
} ditto_reshuffle;

typedef struct ditto_shuffle_options {
    size_t struct_size; /**< set by DITTO_SHUFFLE_OPTIONS_INIT */
    uint64_t seed;      /**< the order depends on it and the pass alone */
    uint64_t
        buffer_rows; /**< each row is drawn from the next so many; 0: from all (uniform over all orders) */
    ditto_reshuffle reshuffle;
} ditto_shuffle_options;
#define DITTO_SHUFFLE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_shuffle_options)

/** Rows in a random order.
 *  @param options  NULL: seed 0, all rows
 *  @retval DITTO_ERR_UNSUPPORTED  after batch: shuffle rows, then batch them
 *  @retval DITTO_ERR_INVALID      all rows (buffer_rows 0) of a dataset that is repeated for ever
 *  Cost    for each row of the buffer, 8 bytes from arrays and ranges, 24 from files; from generators and compressed files the whole row.
 *  Source  D. E. Knuth, The Art of Computer Programming 2, 3.4.2, algorithm P; SplitMix64: Steele, Lea, Flood, OOPSLA 2014. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_shuffle(ditto_dataset *input,
                                                             const ditto_shuffle_options *options,
                                                             ditto_dataset **out);

/* -- Number -- */

#define DITTO_REPEAT_FOREVER UINT64_MAX
/** The rows `count` times over. @retval DITTO_ERR_RANGE  count is 0 */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_repeat(ditto_dataset *input, uint64_t count,
                                                            ditto_dataset **out);
/** The first `count` rows, or batches behind batch. @retval DITTO_ERR_RANGE  count is 0 */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_take(ditto_dataset *input, uint64_t count,
                                                          ditto_dataset **out);
/** All but the first `count` rows, or batches behind batch. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_skip(ditto_dataset *input, uint64_t count,
                                                          ditto_dataset **out);
/** The rows, or batches behind batch, whose number mod `shards` is `index`.
 *  @retval DITTO_ERR_RANGE  shards is 0, or index not below it */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_shard(ditto_dataset *input, uint64_t shards,
                                                           uint64_t index, ditto_dataset **out);

/* -- Several datasets -- */

/** Rows made of one row of each input, the components one after the other. Ends with the shortest.
 *  @param inputs  [count]
 *  @retval DITTO_ERR_INVALID  no input; more than DITTO_MAX_COMPONENTS components; inputs batched differently */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_zip(ditto_dataset *const *inputs, uint32_t count,
                                                         ditto_dataset **out);
/** The rows of the inputs, one input after the other.
 *  @retval DITTO_ERR_INVALID      no input, or their rows differ in dtypes or shapes
 *  @retval DITTO_ERR_UNSUPPORTED  after batch */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_concatenate(ditto_dataset *const *inputs, uint32_t count,
                                                                 ditto_dataset **out);
/** Rows of `cycle` inputs in turn, `block` of each; an input that ends gives its place to the next that was not begun.
 *  @param cycle  0: all of them.  @param block  0: 1
 *  @retval as ditto_dataset_concatenate */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_interleave(ditto_dataset *const *inputs, uint32_t count,
                                                                uint32_t cycle, uint64_t block,
                                                                ditto_dataset **out);

/* -- Batches -- */

#define DITTO_BATCH_DROP_REMAINDER \
    1u /**< rows left over at the end of all input, fewer than `rows`, are dropped */
/** Says that `rows` rows make one global batch, of all replicas together. The last one may be smaller.
 *  @retval DITTO_ERR_RANGE    rows is 0
 *  @retval DITTO_ERR_INVALID  the input is batched already; an unknown flag */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_batch(ditto_dataset *input, uint64_t rows,
                                                           uint32_t flags, ditto_dataset **out);
/** Takes the mark of batch away. What batch dropped stays dropped. @retval DITTO_ERR_INVALID  the input is not batched */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_unbatch(ditto_dataset *input, ditto_dataset **out);
/** How many batches wait ready for each replica, unless ditto_input_options.buffer says so.
 *  @retval DITTO_ERR_RANGE  0, or more than 65536 */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_prefetch(ditto_dataset *input, uint64_t batches,
                                                              ditto_dataset **out);

DITTO_END
#endif
