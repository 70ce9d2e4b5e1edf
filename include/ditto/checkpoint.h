/* include/ditto/checkpoint.h - variables saved to files, and restored, with any number of replicas. Library libditto-hdf5.
 *
 * A checkpoint is an HDF5 file: h5dump, h5py and every tool of that kind read it. Each variable is a plain dataset under its own
 * name ("/" in a name makes groups), which holds what reading the variable across replicas gives. Before the HDF5 part stands a
 * user block of 4096 bytes with the length of the file and a checksum (XXH3, 128 bits) over all of it, which is checked before the
 * HDF5 library sees a byte. A file is written under a temporary name, flushed, and then renamed: whatever happens meanwhile, a path
 * names a whole checkpoint or the one before. docs/semantics.md.
 *
 * All functions: cross-replica context; a strategy is not run while it is saved or restored, but for what is said of background
 * saves. One process writes to a path, or with one prefix in a folder, at a time. Calls of this library into HDF5 are serialized
 * among themselves; a program that uses an HDF5 which is not thread-safe keeps its own calls apart from these. */
#ifndef DITTO_CHECKPOINT_H
#define DITTO_CHECKPOINT_H

#include <ditto/variable.h>

DITTO_BEGIN

/** Something of the user's that is saved too: one of the three. */
typedef enum ditto_attribute_kind {
    DITTO_ATTRIBUTE_TEXT = 1,
    DITTO_ATTRIBUTE_INTEGER = 2,
    DITTO_ATTRIBUTE_REAL = 3,
} ditto_attribute_kind;

#define DITTO_ATTRIBUTE_BYTES 60000 /**< of a text, at most: HDF5's own limit is a little above */

typedef struct ditto_attribute {
    const char *name; /**< not empty, not beginning with "ditto_", without "/" */
    ditto_attribute_kind kind;
    const char *text;
    int64_t integer;
    double real;
} ditto_attribute;

/** Data of the program's own, saved as it is: the state of an iterator, a table. */
typedef struct ditto_checkpoint_data {
    const char *name; /**< as a variable's: no variable or other data may have it */
    ditto_tensor tensor;
} ditto_checkpoint_data;

typedef struct ditto_checkpoint_options {
    size_t struct_size;               /**< set by DITTO_CHECKPOINT_OPTIONS_INIT */
    ditto_variable *const *variables; /**< [num_variables]; NULL: all of the strategy's, optimizers' slots among them */
    size_t num_variables;
    int64_t step; /**< kept as it is */
    const ditto_attribute *attributes;
    size_t num_attributes;
    const ditto_checkpoint_data *data; /**< [num_data], read with ditto_checkpoint_read; a restore passes them over */
    size_t num_data;
} ditto_checkpoint_options;
#define DITTO_CHECKPOINT_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_checkpoint_options)

/* -- Saving -- */

/** Writes a checkpoint to `path`; returns when it is on the disk.
 *  @param options  NULL: all variables, step 0
 *  @retval DITTO_ERR_INVALID  NULL; nothing to save; two of one name, or of names of which one is a folder of the other ("a" and "a/b");
 *                             a name that HDF5 can't hold (empty parts, "."); a sync-on-read variable without aggregation; a
 *                             bad attribute. Named, and nothing is written
 *  @retval DITTO_ERR_CONTEXT  a variable of another strategy
 *  @retval DITTO_ERR_IO       the file can't be written (errno): what was at `path` before is still there. Or, at the very last,
 *                             its folder can't be flushed: then the new file is there, and may not be after a loss of power
 *  @retval DITTO_ERR_NO_MEMORY
 *  Cost  the values are written once, and summed while they are in the cache; nothing is copied but the values of variables that do
 *        not lie in one row. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_save(ditto_strategy *strategy, const char *path,
                                                             const ditto_checkpoint_options *options);

/* -- Looking into a file -- */

typedef struct ditto_checkpoint ditto_checkpoint;

/** Checks and opens a file. The file may be replaced meanwhile; what was opened is read on.
 *  @param out  the caller's, to be given to ditto_checkpoint_close
 *  @retval DITTO_ERR_NOT_FOUND    there is no such file
 *  @retval DITTO_ERR_IO           it can't be read (errno)
 *  @retval DITTO_ERR_CORRUPT      it is no checkpoint, has been cut, or a byte of it is wrong
 *  @retval DITTO_ERR_UNSUPPORTED  it comes from a newer version
 *  Cost  the file is read once. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_open(const char *path, ditto_checkpoint **out);
DITTO_API void ditto_checkpoint_close(ditto_checkpoint *checkpoint); /**< NULL is allowed */

DITTO_API int64_t ditto_checkpoint_step(const ditto_checkpoint *checkpoint);
/** Of the library that wrote it: "0.1.0". Valid until close, as all that is handed out here. */
DITTO_API const char *ditto_checkpoint_version(const ditto_checkpoint *checkpoint);

typedef struct ditto_checkpoint_entry {
    const char *name;
    ditto_tensor spec; /**< dtype and shape; data is NULL */
    ditto_synchronization synchronization;
    ditto_aggregation aggregation;
    int trainable;
    int is_data; /**< 1: the program's own data; the three above mean nothing */
} ditto_checkpoint_entry;
DITTO_API size_t ditto_checkpoint_num_entries(const ditto_checkpoint *checkpoint);
/** @retval DITTO_ERR_RANGE  no such entry */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_get(const ditto_checkpoint *checkpoint, size_t entry,
                                                            ditto_checkpoint_entry *out);
/** @retval DITTO_ERR_NOT_FOUND  no such attribute */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_attribute(const ditto_checkpoint *checkpoint, const char *name,
                                                                  ditto_attribute *out);
/** An entry's value. @param bytes  of dst: the entry's own (SHAPE). @retval DITTO_ERR_NOT_FOUND  no such entry. CORRUPT, IO: it can't
 *  be read after all */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_read(ditto_checkpoint *checkpoint, const char *name, void *dst,
                                                             size_t bytes);

/* -- Restoring -- */

typedef struct ditto_restore_options {
    size_t struct_size;               /**< set by DITTO_RESTORE_OPTIONS_INIT */
    ditto_variable *const *variables; /**< [num_variables], and nothing else; NULL: all that there is on either side */
    size_t num_variables;
    int partial; /**< 1: variables that the file does not have stay as they are; 0: that is an error */
} ditto_restore_options;
#define DITTO_RESTORE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_restore_options)

/** What a restore found. */
typedef struct ditto_restore_status {
    size_t restored; /**< variables that have their value */
    size_t held;     /**< entries without a variable: kept until it is created; ditto_strategy_held_values lists them */
    size_t missing;  /**< variables without an entry */
} ditto_restore_status;

/** Gives variables the values of the entries of their names, as ditto_variable_assign writes them. All is checked, and all values are
 *  read, before the first is written: after an error every variable has the value that it had.
 *  @param options  NULL: everything, and every variable must be there
 *  @param status   may be NULL
 *  @retval as ditto_checkpoint_open
 *  @retval DITTO_ERR_NOT_FOUND  also: variables that the file does not have, named
 *  @retval DITTO_ERR_INVALID    another dtype than the variable's; two variables of one name; a sync-on-read one without aggregation
 *  @retval DITTO_ERR_SHAPE      another shape
 *  @retval DITTO_ERR_NO_MEMORY  Cost: a second copy of all values while it runs */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_restore(ditto_strategy *strategy, const char *path,
                                                                const ditto_restore_options *options,
                                                                ditto_restore_status *status);

/* -- A folder of checkpoints -- */

typedef struct ditto_checkpointer ditto_checkpointer;

typedef struct ditto_checkpointer_options {
    size_t struct_size; /**< set by DITTO_CHECKPOINTER_OPTIONS_INIT */
    const char *prefix; /**< files are <prefix>-<step>.h5; NULL: "checkpoint". Copied; without "/" */
    uint32_t keep;      /**< the newest ones, by step, that stay; 0: 5. UINT32_MAX: all */
    int background;     /**< 1: save returns when the values are copied, and a thread writes them */
} ditto_checkpointer_options;
#define DITTO_CHECKPOINTER_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_checkpointer_options)

/** @param folder  is made if it is not there (not its parents)
 *  @retval DITTO_ERR_INVALID  NULL, an empty prefix, or one with "/"
 *  @retval DITTO_ERR_IO       it is no folder, or can't be made
 *  @retval DITTO_ERR_NO_MEMORY */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpointer_create(ditto_strategy *strategy, const char *folder,
                                                                 const ditto_checkpointer_options *options,
                                                                 ditto_checkpointer **out);
/** Waits for what is being written. @return what the last save came to, if nobody has heard yet. NULL is allowed. */
DITTO_API ditto_status ditto_checkpointer_destroy(ditto_checkpointer *checkpointer);

/** As ditto_checkpoint_save, to the file of options->step (not negative: RANGE); then all but the `keep` newest by step are
 *  removed, but for this one, also where files of later steps are there.
 *  In the background: the replicas copy the values together, and the strategy may run on as soon as this returns. One save is under
 *  way at a time: this waits for the one before. Its error is returned by the next save, wait or destroy. Memory for the copy is
 *  kept between saves. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpointer_save(ditto_checkpointer *checkpointer,
                                                               const ditto_checkpoint_options *options);
/** Until nothing is being written. @return what the last save came to, if nobody has heard yet; else DITTO_OK */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpointer_wait(ditto_checkpointer *checkpointer);

/** The newest checkpoint of a folder, by its step.
 *  @param path, size, length  its path, as ditto_strategy_describe
 *  @param step                may be NULL
 *  @retval DITTO_ERR_NOT_FOUND  there is none, or no folder */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_latest(const char *folder, const char *prefix, char *path,
                                                               size_t size, size_t *length, int64_t *step);

DITTO_END
#endif
