/* include/ditto/source.h - datasets whose rows come from memory, from a function, or from files.
 *
 * Thread safety, ownership and common errors are those of ditto/dataset.h. A row has 1 to
 * DITTO_MAX_COMPONENTS components, each with a dtype and a rank of at most DITTO_MAX_RANK - 1. Functions that
 * are given components return DITTO_ERR_INVALID otherwise, and DITTO_ERR_RANGE if a size overflows. */
#ifndef DITTO_SOURCE_H
#define DITTO_SOURCE_H

#include <ditto/dataset.h>

DITTO_BEGIN

/* -- Memory -- */

/** Makes a dataset of the numbers start, start + step, ... that are below stop, or above stop if step is
 *  negative. A row has one component, an i64 scalar.
 *
 *  @param start  the first number
 *  @param stop   the end, which is not included
 *  @param step   the difference between two numbers
 *  @param out    [out] the dataset
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_RANGE    `step` is 0
 *  @retval DITTO_ERR_INVALID  the range has no number
 *  @par Cost
 *  A small allocation. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_range(int64_t start, int64_t stop, int64_t step,
                                                                ditto_dataset **out);

/** Makes a dataset of the rows of arrays in memory. Component k of row i is arrays[k][i], with the shape
 *  arrays[k].shape[1..].
 *
 *  @param arrays          array of `num_components` tensors of rank 1 or more, with equal first dimensions
 *  @param num_components  number of components of a row
 *  @param out             [out] the dataset
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID  an array has rank 0, there is no row, or data is NULL or misaligned
 *  @retval DITTO_ERR_SHAPE    the first dimensions differ
 *  @par Ownership
 *  The arrays are not copied. They must stay unchanged as long as the dataset, or one made from it,
 *  exists.
 *  @par Cost
 *  A few small allocations. Nothing is copied. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_arrays(const ditto_tensor *arrays,
                                                                 uint32_t num_components,
                                                                 ditto_dataset **out);

/* -- A function -- */

/** Functions of the program that make rows one after another. If one returns an error, the iterator returns
 *  it too. The functions of one position are called by one thread at a time. Several positions may be open at
 *  once. */
typedef struct ditto_generator {
    size_t struct_size; /**< set by DITTO_GENERATOR_INIT */

    /** Given to each function. It must be valid as long as the dataset, or one made from it, exists. */
    void *user;

    /** Begins a pass and sets *position. If this field is NULL, the position is NULL. */
    ditto_status (*open)(void *user, uint64_t pass, void **position);

    /** Writes all elements of all components of the next row, or returns DITTO_END_OF_INPUT. Elements that it
     *  leaves are not defined, and over several hosts the rows of two hosts may then differ. */
    ditto_status (*next)(void *user, void *position, const ditto_tensor *row);

    /** Ends a pass, also if rows are left. This field may be NULL. */
    void (*close)(void *user, void *position);

    /** Writes the position as bytes, and sets *length to their number. It is called twice. The first call has
     *  capacity 0 and only sets *length. If the second call sets *length to more than the first, that is
     *  DITTO_ERR_INVALID. If this field or restore is NULL, an iterator over this generator cannot be saved
     *  (DITTO_ERR_UNSUPPORTED) until `next` has returned DITTO_END_OF_INPUT. */
    ditto_status (*save)(void *user, void *position, void *bytes, size_t capacity, size_t *length);

    /** Moves a newly opened position to the one that was saved. */
    ditto_status (*restore)(void *user, void *position, const void *bytes, size_t length);
} ditto_generator;

/** Initial value of ditto_generator. */
#define DITTO_GENERATOR_INIT DITTO_OPTIONS_INIT(ditto_generator)

/** Makes a dataset of the rows of a generator. The rows cannot be read twice, so each is kept in memory until
 *  its batch has been taken.
 *
 *  @param generator       the functions. The struct is copied
 *  @param row             array of `num_components` tensors: dtypes and shapes of a row. It is copied
 *  @param num_components  number of components of a row
 *  @param out             [out] the dataset
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_INVALID  `next` is NULL
 *  @par Cost
 *  No function is called before an iterator asks for rows. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_generator(const ditto_generator *generator,
                                                                    const ditto_tensor *row,
                                                                    uint32_t num_components,
                                                                    ditto_dataset **out);

/* -- Files --
 *
 * Files need not be trusted. Whatever a file contains, reading it gives rows, or an error that names the file
 * and the position in it (line, record, offset). An error of a row is returned by the call that reads the
 * row, for example ditto_next. It is DITTO_ERR_CORRUPT for wrong contents, DITTO_ERR_IO if the system refuses
 * to read or the file is not what it was when the dataset was made, and DITTO_ERR_NOT_FOUND if it was
 * removed.
 *
 * A relative name stands for the file that it names when the dataset is made, also after a chdir. Each read
 * compares the size of the file, the time of its last write, and the number of its inode. A file that was
 * written or touched since gives no rows. One that was replaced or removed gives the rows that it had while
 * it is open, and none afterwards. A saved position has nothing of this: it is restored with a dataset that
 * is made anew, also of copies of the files.
 *
 * Files are read in large pieces and not mapped, and only the parts that are in use are kept in memory. All
 * datasets together have at most 64 files open, or one for each thread that reads if these are more. */

/** Flag of ditto_files: names are patterns (glob(7)). Each stands for the files that match it, in the order
 *  of the bytes of their names. */
#define DITTO_FILES_GLOB 1u

/** Files that are read one after another as one list of rows. Their number is limited by memory alone.
 *
 *  Every source of files returns these errors:
 *  - DITTO_ERR_NOT_FOUND if a file does not exist or a pattern matches none.
 *  - DITTO_ERR_IO if a file cannot be read (errno) or is not a regular file.
 *  - DITTO_ERR_INVALID if there is no name, a name is NULL or empty, a flag is unknown, or the files have no
 *    row. A compressed file of at least one byte counts as one with rows. */
typedef struct ditto_files {
    const char *const *names; /**< array of `num_names` names. They are copied */
    uint32_t num_names;       /**< length of `names` */
    uint32_t flags;           /**< DITTO_FILES_GLOB or 0 */
} ditto_files;

/** How files are compressed. A compressed file is read by one thread, one row after another, and each row is
 *  kept in memory until its batch has been taken. When an iterator is restored, the file in which it was is
 *  read again from its start. A row that cannot be read is an error also if skip or shard leave it out. */
typedef enum ditto_compression {
    DITTO_COMPRESSION_DEFAULT = 0, /**< files are not compressed */
    DITTO_COMPRESSION_GZIP = 1,    /**< each file as a whole is a gzip file */
} ditto_compression;

/** Options of ditto_dataset_from_text. A field that is 0 has its default. */
typedef struct ditto_text_options {
    size_t struct_size; /**< set by DITTO_TEXT_OPTIONS_INIT */

    /** Largest length of a line in bytes. 0 means 1024. A longer line is DITTO_ERR_CORRUPT. */
    uint64_t max_bytes;

    uint64_t skip_lines; /**< lines to skip at the start of each file */

    ditto_compression compression; /**< how the files are compressed */
} ditto_text_options;

/** Initial value of ditto_text_options. */
#define DITTO_TEXT_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_text_options)

/** Makes a dataset of the lines of text files, including empty lines, without their ends ("\n" or "\r\n").
 *
 *  A row has two components: u8 [max_bytes], the bytes of the line followed by zeros, and an i64 scalar, the
 *  number of bytes of the line. The bytes are not interpreted, so any encoding with the line ends of ASCII,
 *  and NUL bytes, are allowed. Only a byte order mark of UTF-8 at the start of a file is skipped. A file that
 *  begins as UTF-16 text, an archive or a compressed file does is refused (DITTO_ERR_CORRUPT).
 *
 *  @param files    the files
 *  @param options  the options, or NULL for the defaults
 *  @param out      [out] the dataset
 *  @return DITTO_OK, an error that all sources of files have, or one of:
 *  @retval DITTO_ERR_RANGE        options->max_bytes is above 2^30, or options->compression is not a value of
 *                                 its enum
 *  @retval DITTO_ERR_CORRUPT      the first line, or one that is skipped before it, has more than max_bytes
 *                                 and more than 16 MiB, or the first file is not text, or is compressed and
 *                                 its first row cannot be read
 *  @retval DITTO_ERR_UNSUPPORTED  the files are compressed, and the library was built without zlib
 *  @par Cost
 *  Every file is opened once, and read up to its first row. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_text(const ditto_files *files,
                                                               const ditto_text_options *options,
                                                               ditto_dataset **out);

/** What a field of numbers of a CSV file means that has no value. It is empty or has only spaces and tabs, or
 *  is nan, NaN or NA. */
typedef enum ditto_csv_missing {
    DITTO_CSV_MISSING_DEFAULT = 0, /**< the same as DITTO_CSV_MISSING_ERROR */
    DITTO_CSV_MISSING_ERROR = 1,   /**< the field is DITTO_ERR_CORRUPT */
    DITTO_CSV_MISSING_VALUE = 2,   /**< the field has missing_value */
} ditto_csv_missing;

/** Consecutive columns of a CSV file that make one component of a row. */
typedef struct ditto_csv_component {
    uint32_t first_column; /**< number of the first column, from 0 */

    /** Number of columns. The component has the shape [num_columns], or is a scalar if num_columns is 1. Text
     *  has one column. */
    uint32_t num_columns;

    /** Dtype of numbers: f32, f64, any integer, or bool. A field of a bool is 0, 1, true, True, TRUE, false,
     *  False or FALSE. */
    ditto_dtype dtype;

    /** If this is not 0, the column is text. The component is then u8 [text_bytes], the text followed by
     *  zeros. A text that is longer or is not UTF-8 is DITTO_ERR_CORRUPT. `dtype` must be DITTO_U8. */
    uint32_t text_bytes;

    /** What a field of numbers means that has no value. A text may always be empty. */
    ditto_csv_missing missing;

    /** The number for fields without a value. The dtype must be able to represent it. An f32 is rounded. */
    double missing_value;
} ditto_csv_component;

/** Options of ditto_dataset_from_csv. A field that is 0 has its default. */
typedef struct ditto_csv_options {
    size_t struct_size; /**< set by DITTO_CSV_OPTIONS_INIT */

    /** Number of columns that every row must have. 0 means up to the last column that a component uses. */
    uint32_t num_columns;

    uint32_t skip_lines; /**< lines to skip at the start of each file */
    char delimiter;      /**< the separator of fields. 0 means a comma */
    int no_quotes;       /**< 1: a quote is an ordinary character */

    ditto_compression compression; /**< how the files are compressed */
} ditto_csv_options;

/** Initial value of ditto_csv_options. */
#define DITTO_CSV_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_csv_options)

/** Makes a dataset of the rows of CSV files in the format of RFC 4180.
 *
 *  A field may be in double quotes, and then may contain delimiters, line ends, and quotes, which are
 *  doubled. Beyond the RFC, lines may end with "\n" alone, and spaces and tabs around a number are allowed.
 *  Blank lines are skipped, and so is a byte order mark of UTF-8 at the start of a file. A row has at most
 *  16 MiB. A file that begins as UTF-16 text, an archive or a compressed file does is refused.
 *
 *  A number is [+-] digits [. digits] [e [+-] digits], where the digits on one side of the point may be
 *  missing. It has at most 399 characters. The locale has no effect. An f32 is rounded from the nearest f64.
 *  An integer may be written with a point or an exponent if it is whole and has at most 19 digits, as in 31.0
 *  and 1e+05.
 *
 *  These are DITTO_ERR_CORRUPT: a row that is too long, or has too few or too many fields, a quote that is
 *  not closed or in the middle of a field, text after a closing quote, a field that is not a number, a number
 *  outside the range of its dtype, a missing value unless ditto_csv_component.missing allows it, and inf. The
 *  message names the file, the line and, unless the row is too long, the column, both counted from 1.
 *
 *  @param files           the files
 *  @param components      array of num_components components
 *  @param num_components  number of components of a row
 *  @param options         the options, or NULL for the defaults
 *  @param out             [out] the dataset
 *  @return DITTO_OK, an error that all sources of files have, or one of:
 *  @retval DITTO_ERR_INVALID      one of these:
 *      - A component has no columns, or columns beyond options->num_columns, or several columns of text.
 *      - There are more than 1000000 columns.
 *      - The delimiter can be part of a number, is a quote, or ends lines.
 *      - The dtype of a component cannot represent its missing_value.
 *  @retval DITTO_ERR_RANGE        ditto_csv_component.missing or options->compression is not a value of its
 *                                 enum
 *  @retval DITTO_ERR_UNSUPPORTED  a component has a dtype that ditto_csv_component does not allow, or the
 *                                 files are compressed, and the library was built without zlib
 *  @retval DITTO_ERR_CORRUPT      the first row, or a line that is skipped before it, has more than 16 MiB,
 *                                 or the first file is not text, or is compressed and its first row cannot
 *                                 be read
 *  @par Cost
 *  Every file is opened once, and read up to its first row. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_csv(const ditto_files *files,
                                                              const ditto_csv_component *components,
                                                              uint32_t num_components,
                                                              const ditto_csv_options *options,
                                                              ditto_dataset **out);

/** Options of ditto_dataset_from_tfrecord. A field that is 0 has its default. */
typedef struct ditto_tfrecord_options {
    size_t struct_size; /**< set by DITTO_TFRECORD_OPTIONS_INIT */

    /** Largest length of a record in bytes. 0 means 65536. A longer record is DITTO_ERR_CORRUPT. */
    uint64_t max_bytes;

    ditto_compression compression; /**< how the files are compressed */

    /** 1: the checksums of data are not verified. The checksums of lengths are always verified. */
    int trust;
} ditto_tfrecord_options;

/** Initial value of ditto_tfrecord_options. */
#define DITTO_TFRECORD_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_tfrecord_options)

/** Makes a dataset of the records of TFRecord files.
 *
 *  A record is [length u64][masked CRC32C of the length u32][data][masked CRC32C of the data u32], little
 *  endian. A row has two components: u8 [max_bytes], the data followed by zeros, and an i64 scalar, the
 *  length of the data.
 *
 *  @param files    the files
 *  @param options  the options, or NULL for the defaults
 *  @param out      [out] the dataset
 *  @return DITTO_OK, an error that all sources of files have, or one of:
 *  @retval DITTO_ERR_RANGE        options->max_bytes is above 2^32 - 65, or options->compression is not a
 *                                 value of its enum
 *  @retval DITTO_ERR_UNSUPPORTED  the files are compressed, and the library was built without zlib
 *  @par Source
 *  The format is described in TensorFlow, "TFRecord and tf.train.Example".
 *  @par Cost
 *  Every file is opened once, and read up to its first record. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_tfrecord(const ditto_files *files,
                                                                   const ditto_tfrecord_options *options,
                                                                   ditto_dataset **out);

/** Options of ditto_dataset_from_fixed. A field that is 0 has its default. */
typedef struct ditto_fixed_options {
    size_t struct_size;    /**< set by DITTO_FIXED_OPTIONS_INIT */
    uint64_t header_bytes; /**< bytes to skip at the start of each file */
    uint64_t footer_bytes; /**< bytes to skip at the end of each file */
    int big_endian;        /**< 1: elements in the file are big endian */

    /** Bytes from the start of one record to the start of the next. 0 means the length of a record. With
     *  fewer bytes records overlap. With more, the bytes between records are skipped. */
    uint64_t stride_bytes;
} ditto_fixed_options;

/** Initial value of ditto_fixed_options. */
#define DITTO_FIXED_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_fixed_options)

/** Makes a dataset of records of equal length. The components of a row follow one another in the file without
 *  gaps.
 *
 *  Without a stride, or with the length of a record as stride, a file must contain a whole number of records.
 *  With another stride, record i begins stride_bytes * i bytes after the header. The last record is the last
 *  one that fits completely before the footer. The rest of the file is skipped, and a file that is too short
 *  for one record has none. No record continues in the next file. Elements of a bool component that are not 0
 *  become 1.
 *
 *  Example: a language model is trained with T tokens and the token that follows each of them. From a file of
 *  tokens, records of T + 1 tokens with a stride of T tokens give such rows.
 *
 *  @param files           the files
 *  @param row             array of `num_components` tensors: dtypes and shapes of a row. It is copied
 *  @param num_components  number of components of a row
 *  @param options         the options, or NULL for the defaults
 *  @param out             [out] the dataset
 *  @return DITTO_OK, an error that all sources of files have, or one of:
 *  @retval DITTO_ERR_INVALID  one of these:
 *      - A record has 0 bytes.
 *      - All elements have one size, records overlap, and the stride is not a multiple of that size.
 *  @retval DITTO_ERR_CORRUPT  a file is shorter than its header and footer together, or does not contain the
 *                             whole number of records that it must contain
 *  @par Cost
 *  Asks for the size of every file. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_fixed(const ditto_files *files,
                                                                const ditto_tensor *row,
                                                                uint32_t num_components,
                                                                const ditto_fixed_options *options,
                                                                ditto_dataset **out);

/** Makes a dataset of arrays in .npy files of either byte order (NumPy's formats 1.0, 2.0 and 3.0). The rows
 *  are those that ditto_dataset_from_arrays makes of the arrays, but elements of a bool array that are not 0
 *  become 1. The element types bfloat16 and V2, as which NumPy writes the bfloat16 of ml_dtypes, are bf16.
 *
 *  @param names           array of `num_components` file names
 *  @param num_components  number of components of a row
 *  @param out             [out] the dataset
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_NOT_FOUND    a file does not exist
 *  @retval DITTO_ERR_IO           a file cannot be read (errno), or is not a regular file
 *  @retval DITTO_ERR_CORRUPT      a file is not a .npy file, its header is wrong, or it is shorter than its
 *                                 array
 *  @retval DITTO_ERR_UNSUPPORTED  ditto does not have the element type, a rank is above DITTO_MAX_RANK, an
 *                                 array with more than one dimension that is not 1 is in Fortran order, or
 *                                 the format has another version
 *  @retval DITTO_ERR_SHAPE        the first dimensions differ
 *  @retval DITTO_ERR_INVALID      an array has rank 0 or no rows, or a name is NULL or empty
 *  @par Cost
 *  Reads the header of every file. */
DITTO_API DITTO_NODISCARD ditto_status ditto_dataset_from_npy(const char *const *names,
                                                              uint32_t num_components, ditto_dataset **out);

DITTO_END
#endif
