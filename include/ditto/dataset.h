/* include/ditto/dataset.h - where rows come from and in which order: a lazy, immutable description.
 *
 * A dataset is a list of rows; a row has one or more components (an image and its label). Sources make rows,
 * transformations change their order or number, batch() says how many make one global batch. Nothing is read until an
 * iterator (distribute.h) asks. A dataset can be iterated many times and by several iterators at once.
 *
 * All functions here: any thread, any context. A transformation keeps its input alive: destroy each handle when it is no
 * longer needed by you. Outputs are set only on DITTO_OK. All can fail with DITTO_ERR_NO_MEMORY and, for NULL arguments,
 * DITTO_ERR_INVALID. */
#ifndef DITTO_DATASET_H
#define DITTO_DATASET_H

#include <ditto/tensor.h>

DITTO_BEGIN

typedef struct ditto_dataset ditto_dataset;

#define DITTO_MAX_COMPONENTS 16 /* of a row */

/** Rows from arrays in memory, without copying them now: row i has component k = arrays[k][i], of shape
 *  arrays[k].shape[1..]. The arrays must stay unchanged while the dataset or one made from it exists.
 *  @param arrays  [components]; each of rank >= 1, all with the same first dimension
 *  @retval DITTO_ERR_INVALID  no component or more than DITTO_MAX_COMPONENTS; rank 0; no row; NULL or misaligned data
 *  @retval DITTO_ERR_SHAPE    first dimensions differ */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_arrays(const ditto_tensor *arrays, uint32_t components,
                                                                 ditto_dataset **out);

/** Some neighbouring columns of a CSV file that make one component of shape [count] (a scalar for count 1). */
typedef struct ditto_csv_component {
    uint32_t first_column; /**< from 0 */
    uint32_t count;        /**< columns */
    ditto_dtype dtype;     /**< DITTO_F32, F64, I32 or I64 */
} ditto_csv_component;

typedef struct ditto_csv_options {
    size_t struct_size;  /**< set by DITTO_CSV_OPTIONS_INIT */
    uint32_t columns;    /**< that every line must have; 0: up to the last one that a component uses */
    uint32_t skip_lines; /**< at the start of the file, such as a heading */
    char delimiter;      /**< 0: comma */
} ditto_csv_options;
#define DITTO_CSV_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_csv_options)

/** Rows from the lines of a file of numbers (no quoting). Blank lines are passed over. Lines are read and parsed while the
 *  dataset is iterated; one that is ragged or holds something else than a number is DITTO_ERR_CORRUPT then, naming file,
 *  line and column. Numbers are [+-] digits [. digits] [e [+-] digits], read without locale; one that its dtype cannot hold, nan
 *  and inf are errors.
 *  @retval DITTO_ERR_NOT_FOUND    there is no such file
 *  @retval DITTO_ERR_IO           it cannot be read (errno kept); it is no regular file
 *  @retval DITTO_ERR_INVALID      it holds no row; a component without columns or beyond options->columns; more than
 *                                 1000000 columns; a delimiter that can be part of a number
 *  @retval DITTO_ERR_UNSUPPORTED  another dtype */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_csv(const char *path, const ditto_csv_component *components,
                                                              uint32_t num_components, const ditto_csv_options *options,
                                                              ditto_dataset **out);

typedef enum ditto_reshuffle {
    DITTO_RESHUFFLE_DEFAULT = 0,   /**< EACH_PASS */
    DITTO_RESHUFFLE_EACH_PASS = 1, /**< each pass (of repeat, or of an iterator) has an order of its own */
    DITTO_RESHUFFLE_NEVER = 2,     /**< the same order in every pass: a fixed split by take and skip */
} ditto_reshuffle;

typedef struct ditto_shuffle_options {
    size_t struct_size;   /**< set by DITTO_SHUFFLE_OPTIONS_INIT */
    uint64_t seed;        /**< the order depends on it and the pass alone */
    uint64_t buffer_rows; /**< each row is drawn from the next so many; 0: from all (uniform over all orders) */
    ditto_reshuffle reshuffle;
} ditto_shuffle_options;
#define DITTO_SHUFFLE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_shuffle_options)

/** Rows in a random order.
 *  @param options  NULL: seed 0, all rows
 *  @retval DITTO_ERR_UNSUPPORTED  after batch: shuffle rows, then batch them
 *  @retval DITTO_ERR_INVALID      all rows (buffer_rows 0) of a dataset that is repeated for ever
 *  Cost    24 bytes for each row of the buffer.
 *  Source  D. E. Knuth, The Art of Computer Programming 2, 3.4.2, algorithm P; SplitMix64: Steele, Lea, Flood, OOPSLA 2014. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_shuffle(ditto_dataset *input, const ditto_shuffle_options *options,
                                                             ditto_dataset **out);

#define DITTO_REPEAT_FOREVER UINT64_MAX
/** The rows `count` times over. @retval DITTO_ERR_RANGE  count is 0 */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_repeat(ditto_dataset *input, uint64_t count, ditto_dataset **out);
/** The first `rows` rows. @retval DITTO_ERR_UNSUPPORTED  after batch. @retval DITTO_ERR_RANGE  rows is 0 */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_take(ditto_dataset *input, uint64_t rows, ditto_dataset **out);
/** All but the first `rows` rows. @retval DITTO_ERR_UNSUPPORTED  after batch */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_skip(ditto_dataset *input, uint64_t rows, ditto_dataset **out);

#define DITTO_BATCH_DROP_REMAINDER 1u /**< no step with fewer than `rows` rows */
/** Says that `rows` rows make one global batch, of all replicas together. The last one may be smaller.
 *  @retval DITTO_ERR_RANGE    rows is 0
 *  @retval DITTO_ERR_INVALID  the input is batched already; an unknown flag */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_batch(ditto_dataset *input, uint64_t rows, uint32_t flags,
                                                           ditto_dataset **out);

/** Gives up the caller's handle; the dataset goes when nothing made from it needs it. NULL is allowed. */
DITTO_API void ditto_dataset_destroy(ditto_dataset *dataset);

DITTO_END
#endif
