/* include/ditto/source.h - datasets whose rows come from memory, from a function, or from files.
 *
 * Threads, ownership and common errors: ditto/dataset.h. Files are taken as they come from anywhere: whatever a file holds, reading it gives
 * rows or an error that names file and place (line, record, offset), never anything else. What is found wrong while rows are read comes
 * from whoever reads (ditto_next): DITTO_ERR_CORRUPT for contents, DITTO_ERR_IO for what the system refuses, and for files that became
 * shorter meanwhile. Files are read in large pieces and not mapped, and no more of them is kept than is being worked on. */
#ifndef DITTO_SOURCE_H
#define DITTO_SOURCE_H

#include <ditto/dataset.h>

DITTO_BEGIN

/* -- Memory -- */

/** Numbers start, start + step, ... below stop (above it, where step is negative): one component, an i64 scalar.
 *  @retval DITTO_ERR_RANGE    step is 0
 *  @retval DITTO_ERR_INVALID  there is no such number */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_range(int64_t start, int64_t stop, int64_t step,
                                                                ditto_dataset **out);

/** Rows from arrays in memory, without copying them now: row i has component k = arrays[k][i], of shape
 *  arrays[k].shape[1..]. The arrays must stay unchanged while the dataset or one made from it exists.
 *  @param arrays  [components]; each of rank >= 1, all with the same first dimension
 *  @retval DITTO_ERR_INVALID  no component or more than DITTO_MAX_COMPONENTS; rank 0; no row; NULL or misaligned data
 *  @retval DITTO_ERR_SHAPE    first dimensions differ */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_arrays(const ditto_tensor *arrays,
                                                                 uint32_t components, ditto_dataset **out);

/* -- A function -- */

/** Rows that a program makes one after the other. Functions return DITTO_OK or an error, which is the iterator's then. Those of one
 *  position are called by one thread at a time; several positions may be open at once. */
typedef struct ditto_generator {
    size_t struct_size; /**< set by DITTO_GENERATOR_INIT */
    void *user;         /**< handed to each function; lives as long as the dataset */
    /** Begins a pass. NULL: there is nothing to begin, *position is NULL. */
    ditto_status (*open)(void *user, uint64_t pass, void **position);
    /** Writes the next row, all of every component, or returns DITTO_END_OF_INPUT. */
    ditto_status (*next)(void *user, void *position, const ditto_tensor *row);
    /** Ends a pass, also in its middle. NULL: there is nothing to end. */
    void (*close)(void *user, void *position);
    /** Writes the position as bytes: all that fits into `size`; *length: how many there are. Called twice, first with size 0. NULL: an
     *  iterator over this generator can't be saved (DITTO_ERR_UNSUPPORTED). */
    ditto_status (*save)(void *user, void *position, void *bytes, size_t size, size_t *length);
    /** Moves a position that was just opened to where it was saved. */
    ditto_status (*restore)(void *user, void *position, const void *bytes, size_t length);
} ditto_generator;
#define DITTO_GENERATOR_INIT DITTO_OPTIONS_INIT(ditto_generator)

/** Rows of a generator. They can't be read twice, so each is kept as a whole until its batch has been taken.
 *  @param row  [components] dtype and shape; copied
 *  @retval DITTO_ERR_INVALID  next is NULL; no component or more than DITTO_MAX_COMPONENTS; a rank above DITTO_MAX_RANK - 1 */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_generator(const ditto_generator *generator,
                                                                    const ditto_tensor *row,
                                                                    uint32_t components, ditto_dataset **out);

/* -- Files -- */

#define DITTO_FILES_GLOB \
    1u /**< names are patterns as in glob(7); each stands for the files that match it, sorted by bytes */

/** Files that are read one after the other, as one list of rows. */
typedef struct ditto_files {
    const char *const *names; /**< [count], copied */
    uint32_t count;
    uint32_t flags;
} ditto_files;

/* For every source of files:
 *   DITTO_ERR_NOT_FOUND  a file is not there; a pattern matches none
 *   DITTO_ERR_IO         a file can't be read (errno); it is no regular file
 *   DITTO_ERR_INVALID    no name; an unknown flag; there is no row in any of the files, where that can be told without reading them all
 * Files may be as many as there is memory for their names: at most 64 of all datasets are open at a time. */

typedef struct ditto_text_options {
    size_t struct_size;  /**< set by DITTO_TEXT_OPTIONS_INIT */
    uint64_t max_bytes;  /**< of a line; 0: 1024. A longer one is DITTO_ERR_CORRUPT */
    uint64_t skip_lines; /**< at the start of each file */
} ditto_text_options;
#define DITTO_TEXT_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_text_options)

/** The lines of text files, empty ones too, without their ends ("\n" or "\r\n"). Two components: u8 [max_bytes], the line's bytes with
 *  zeros behind them, and their number, an i64 scalar. Bytes are not looked at: any encoding, NUL bytes too. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_text(const ditto_files *files,
                                                               const ditto_text_options *options,
                                                               ditto_dataset **out);

typedef enum ditto_csv_missing {
    DITTO_CSV_MISSING_DEFAULT = 0, /**< ERROR */
    DITTO_CSV_MISSING_ERROR = 1,   /**< an empty field is DITTO_ERR_CORRUPT */
    DITTO_CSV_MISSING_VALUE = 2,   /**< it is missing_value */
} ditto_csv_missing;

/** Some neighbouring columns that make one component. */
typedef struct ditto_csv_component {
    uint32_t first_column; /**< from 0 */
    uint32_t count;        /**< columns: shape [count], for 1 a scalar. Of text: 1 */
    ditto_dtype dtype;     /**< of numbers: f32, f64, or any integer. BOOL: 0, 1, true, false */
    uint32_t
        text_bytes; /**< not 0: a column of text, dtype U8: shape [text_bytes], zeros behind it. Longer, or not UTF-8: CORRUPT */
    ditto_csv_missing missing;
    double
        missing_value; /**< of numbers; an integer's must be whole and fit. Text that is missing is empty, never an error */
} ditto_csv_component;

typedef struct ditto_csv_options {
    size_t struct_size;  /**< set by DITTO_CSV_OPTIONS_INIT */
    uint32_t columns;    /**< that every row must have; 0: up to the last one that a component uses */
    uint32_t skip_lines; /**< at the start of each file, such as a heading */
    char delimiter;      /**< 0: comma */
    int no_quotes;       /**< 1: a quote is a character as any other */
} ditto_csv_options;
#define DITTO_CSV_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_csv_options)

/** Rows of CSV files as RFC 4180 has them: fields may stand in double quotes, and then hold delimiters, line ends, and quotes that are
 *  doubled. Also: lines may end with "\n" alone, blank lines are passed over, spaces and tabs around a number are allowed. A row that
 *  is ragged, a quote in the middle of a field, text behind a closing quote, a number that is none or that its dtype can't hold, nan and inf
 *  are DITTO_ERR_CORRUPT, naming file, line and column. Numbers are [+-] digits [. digits] [e [+-] digits], read without locale; an f32 is rounded
 *  from the nearest f64.
 *  A row has 16 MiB at most.
 *  @retval DITTO_ERR_INVALID      a component without columns or beyond options->columns; more than 1000000 columns; a delimiter that can be
 *                                 part of a number, is a quote or ends lines; a missing_value that its dtype can't hold
 *  @retval DITTO_ERR_UNSUPPORTED  another dtype */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_csv(const ditto_files *files,
                                                              const ditto_csv_component *components,
                                                              uint32_t num_components,
                                                              const ditto_csv_options *options,
                                                              ditto_dataset **out);

typedef enum ditto_compression {
    DITTO_COMPRESSION_NONE = 0,
    DITTO_COMPRESSION_GZIP = 1, /**< of each file as a whole */
} ditto_compression;

typedef struct ditto_tfrecord_options {
    size_t struct_size; /**< set by DITTO_TFRECORD_OPTIONS_INIT */
    uint64_t max_bytes; /**< of a record; 0: 65536. A longer one is DITTO_ERR_CORRUPT */
    ditto_compression compression;
    int trust; /**< 1: checksums of the data are not looked at; those of lengths always are */
} ditto_tfrecord_options;
#define DITTO_TFRECORD_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_tfrecord_options)

/** Records of TFRecord files: [length u64][masked CRC32C of it u32][data][masked CRC32C of the data u32], little endian (format:
 *  TensorFlow, "TFRecord and tf.train.Example"). Two components: u8 [max_bytes], the data with zeros behind it, and its length, an i64 scalar.
 *  Compressed files are read by one thread, row after row, and their rows kept as a whole until their batch has been taken; when an iterator
 *  is restored, they are read again from their start.
 *  @retval DITTO_ERR_UNSUPPORTED  compressed files, where ditto was built without zlib */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_tfrecord(const ditto_files *files,
                                                                   const ditto_tfrecord_options *options,
                                                                   ditto_dataset **out);

typedef struct ditto_fixed_options {
    size_t struct_size;    /**< set by DITTO_FIXED_OPTIONS_INIT */
    uint64_t header_bytes; /**< at the start of each file, passed over */
    uint64_t footer_bytes; /**< at its end */
    int big_endian;        /**< 1: elements lie that way in the file */

    /** Bytes from the start of one record to the start of the next. 0: the length of a record. With less than
     *  that, records overlap. With more, there are bytes between them, which are passed over. */
    uint64_t stride_bytes;
} ditto_fixed_options;
#define DITTO_FIXED_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_fixed_options)

/** Records of equal length: the components of a row lie one after the other in the file, without gaps.
 *  Elements of BOOL that are not 0 become 1.
 *
 *  Without a stride, or with the length of a record as stride, a file must hold a whole number of records.
 *  With any other stride, record i begins stride_bytes * i bytes behind the header, and the last record is
 *  the last one that lies whole in front of the footer. What remains behind it is passed over, also if the
 *  file is shorter than one record. No record crosses from one file to the next. So the rows of a language
 *  model, T tokens and the token that follows each, come from a file of tokens: a record of T + 1 tokens, and
 *  a stride of T.
 *  @param row  [components] dtype and shape; copied
 *  @retval DITTO_ERR_INVALID  also: a record of 0 bytes; no component or too many; no file has a record; a
 *                             stride at which records overlap by a part of an element, where all components
 *                             have elements of one size
 *  @retval DITTO_ERR_CORRUPT  a file is shorter than its header and footer; records do not overlap and have
 *                             no gaps, and a file, without header and footer, is not a whole number of
 *  them */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_fixed(const ditto_files *files,
                                                                const ditto_tensor *row, uint32_t components,
                                                                const ditto_fixed_options *options,
                                                                ditto_dataset **out);

/** Arrays in .npy files (NumPy's format 1.0, 2.0 and 3.0), of either byte order: row i has component k = array k [i], as with
 *  ditto_dataset_from_arrays.
 *  @param names  [components]
 *  @retval DITTO_ERR_NOT_FOUND, DITTO_ERR_IO  as for other files
 *  @retval DITTO_ERR_CORRUPT      no .npy file; a header that can't be understood; a file that is shorter than its array
 *  @retval DITTO_ERR_UNSUPPORTED  an element type that ditto does not have; Fortran order of an array with more than one dimension;
 *                                 another version of the format
 *  @retval DITTO_ERR_SHAPE        first dimensions differ
 *  @retval DITTO_ERR_INVALID      an array of rank 0, or without rows */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_npy(const char *const *names, uint32_t components,
                                                              ditto_dataset **out);

DITTO_END
#endif
