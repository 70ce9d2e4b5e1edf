/* include/ditto/checkpoint.h - variables saved to files, and restored, with any number of replicas. Library
 * libditto-hdf5.
 *
 * A checkpoint is an HDF5 file: h5dump, h5py and every tool of that kind read it. Each variable is a plain
 * dataset under its own name ("/" in a name makes groups), which holds what reading the variable across
 * replicas gives. Before the HDF5 part stands a user block of 4096 bytes with the length of the file and a
 * checksum (XXH3, 128 bits) over all of it, which is checked before anything else is read. The library
 * writes and reads the files itself and does not need the HDF5 library. docs/semantics.md.
 *
 * A file is written under a temporary name beside its path, flushed, read back and compared with its
 * checksum and its contents, and then renamed: at any time the path names a whole checkpoint or the one
 * before. The temporary file is called <name>.<16 hexadecimal digits>.partial, and every save has one of its
 * own, which it keeps locked (flock). Several processes may therefore save to one path; the last to be
 * renamed stays. A file of such a name that is not locked was left by a process that was killed. The next
 * save to the same path removes it, and a checkpointer that is created removes those of its prefix. On file
 * systems that refuse flock nothing is removed, because it can't be told whether somebody writes it.
 *
 * All functions: cross-replica context; a strategy is not run while it is saved or restored, but for what is
 * said of background saves. Until the call returns, destroying a variable that it saves or restores, or the
 * optimizer of such a slot, is DITTO_ERR_BUSY on other threads.
 *
 * An error that a file is DITTO_ERR_CORRUPT means that its bytes fail a check. A call that failed (errno) gives
 * DITTO_ERR_IO or DITTO_ERR_NO_MEMORY, and may be tried again. */
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

/** A name to be saved has at most so many "/", each of which makes a group. */
#define DITTO_CHECKPOINT_GROUPS 256

/** A name to be saved has at most so many bytes, its "/" included and the zero at its end not. */
#define DITTO_CHECKPOINT_NAME_BYTES 4096

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
    size_t struct_size; /**< set by DITTO_CHECKPOINT_OPTIONS_INIT */
    ditto_variable *const
        *variables; /**< [num_variables]; NULL: all of the strategy's, optimizers' slots among them */
    size_t num_variables;
    int64_t step; /**< kept as it is */
    const ditto_attribute *attributes;
    size_t num_attributes;
    const ditto_checkpoint_data
        *data; /**< [num_data], read with ditto_checkpoint_read; a restore passes them over */
    size_t num_data;
} ditto_checkpoint_options;
#define DITTO_CHECKPOINT_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_checkpoint_options)

/* -- Saving -- */

/** Writes a checkpoint to `path`; returns when it is on the disk.
 *
 *  @param options  NULL: all variables, step 0
 *  @retval DITTO_ERR_INVALID  NULL; nothing to save; two of one name, or of names of which one is a folder of
 *                             the other ("a" and "a/b"); a name that HDF5 can't hold (empty parts, ".", more
 *                             than DITTO_CHECKPOINT_GROUPS "/"), or of more than
 *                             DITTO_CHECKPOINT_NAME_BYTES bytes; a sync-on-read variable without
 *                             aggregation; a bad attribute. It is named, and nothing is written
 *  @retval DITTO_ERR_CONTEXT  a variable of another strategy
 *  @retval DITTO_ERR_FORKED   the strategy was made before fork
 *  @retval DITTO_ERR_IO       the file can't be written (errno), or what was written reads back otherwise.
 *                             What was at `path` before is still there. Also when that is no regular file (a
 *                             directory, a FIFO, a device, a link), which is never replaced. Or, at the very
 *                             last, the folder can't be flushed: then the new file is there, and may not be
 *                             after a loss of power
 *  @retval DITTO_ERR_NO_MEMORY
 *  @par Signals  SIGXFSZ is blocked during the call: a file that is too large for RLIMIT_FSIZE is an error.
 *  @par Cost  The values are written once, and summed while they are in the cache; then the file is read
 *             once, mostly from the page cache. Nothing is copied but the values of variables that do not lie
 *             in one row. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_save(ditto_strategy *strategy, const char *path,
                                                             const ditto_checkpoint_options *options);

/* -- Looking into a file -- */

typedef struct ditto_checkpoint ditto_checkpoint;

/** Checks and opens a file. The file may be replaced meanwhile; what was opened is read on.
 *
 *  @param path  a regular file, or a link to one. Anything else is not opened
 *  @param out   the caller's, to be given to ditto_checkpoint_close
 *  @retval DITTO_ERR_NOT_FOUND    there is no such file
 *  @retval DITTO_ERR_IO           it can't be read (errno)
 *  @retval DITTO_ERR_CORRUPT      it is no checkpoint (nor a regular file), has been cut, or a byte is wrong
 *  @retval DITTO_ERR_UNSUPPORTED  it comes from a newer version
 *  @retval DITTO_ERR_NO_MEMORY
 *  @par Cost  The file is read once. */
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
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_attribute(const ditto_checkpoint *checkpoint,
                                                                  const char *name, ditto_attribute *out);
/** An entry's value.
 *  @param bytes  of dst: the entry's own
 *  @retval DITTO_ERR_NOT_FOUND  no such entry
 *  @retval DITTO_ERR_SHAPE      `bytes` is not the entry's
 *  @retval DITTO_ERR_IO         it can't be read (errno)
 *  @retval DITTO_ERR_CORRUPT    the file has been cut since it was opened */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_read(ditto_checkpoint *checkpoint, const char *name,
                                                             void *dst, size_t bytes);

/* -- Restoring -- */

typedef struct ditto_restore_options {
    size_t struct_size; /**< set by DITTO_RESTORE_OPTIONS_INIT */
    ditto_variable *const
        *variables; /**< [num_variables], and nothing else; NULL: all that there is on either side */
    size_t num_variables;
    int partial; /**< 1: variables that the file does not have stay as they are; 0: that is an error */
} ditto_restore_options;
#define DITTO_RESTORE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_restore_options)

/** What a restore found. */
typedef struct ditto_restore_status {
    size_t restored; /**< variables that have their value */
    size_t
        held; /**< entries without a variable: kept until it is created; ditto_strategy_held_values lists them */
    size_t missing; /**< variables without an entry */
} ditto_restore_status;

/** Gives variables the values of the entries of their names, as ditto_variable_assign writes them. All is
 *  checked, and all values are read, before the first is written: after an error every variable has the value
 *  that it had.
 *
 *  @param options  NULL: everything, and every variable must be there
 *  @param status   may be NULL
 *  @retval as ditto_checkpoint_open
 *  @retval DITTO_ERR_NOT_FOUND  also: variables that the file does not have; how many, and the first names
 *  @retval DITTO_ERR_INVALID    another dtype than the variable's; two variables of one name; a sync-on-read
 *                               one without aggregation
 *  @retval DITTO_ERR_SHAPE      another shape
 *  @retval DITTO_ERR_FORKED     the strategy was made before fork
 *  @par Cost  A second copy of all values while it runs. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_restore(ditto_strategy *strategy, const char *path,
                                                                const ditto_restore_options *options,
                                                                ditto_restore_status *status);

/* -- A folder of checkpoints --
 * One checkpointer at a time has a prefix in a folder, in one process. Threads may share a checkpointer: its
 * calls take turns. In a child process after fork only ditto_checkpointer_destroy may be called. */

typedef struct ditto_checkpointer ditto_checkpointer;

typedef struct ditto_checkpointer_options {
    size_t struct_size; /**< set by DITTO_CHECKPOINTER_OPTIONS_INIT */
    const char *prefix; /**< files are <prefix>-<step>.h5; NULL: "checkpoint". Copied; without "/" */
    uint32_t keep;      /**< the newest ones, by step, that stay; 0: 5. UINT32_MAX: all */
    int background;     /**< 1: save returns when the values are copied, and a thread writes them */
} ditto_checkpointer_options;
#define DITTO_CHECKPOINTER_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_checkpointer_options)

/** Also removes the temporary files of this prefix that killed processes have left in the folder.
 *
 *  @param folder  is made if it is not there (not its parents)
 *  @retval DITTO_ERR_INVALID  NULL, an empty prefix, or one with "/"
 *  @retval DITTO_ERR_IO       it is no folder, or can't be made
 *  @retval DITTO_ERR_NO_MEMORY */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpointer_create(ditto_strategy *strategy, const char *folder,
                                                                 const ditto_checkpointer_options *options,
                                                                 ditto_checkpointer **out);
/** Waits until what is being written is on the disk, and frees the checkpointer, also when it returns an
 *  error of the last save. In a child process after fork it frees, and waits for nothing: the parent writes.
 *  NULL is allowed.
 *
 *  @retval DITTO_ERR_BUSY  another thread is in a call of this checkpointer; nothing was done
 *  @return what the last save came to, if no call has returned it yet; else DITTO_OK */
DITTO_API ditto_status ditto_checkpointer_destroy(ditto_checkpointer *checkpointer);

/** As ditto_checkpoint_save, to the file of options->step. Then all but the `keep` newest by step are
 *  removed, but for this one, also where files of later steps are there. Only regular files of the prefix
 *  count, never temporary ones.
 *
 *  In the background, the replicas copy the values together, and the strategy may run on, or be destroyed, as
 *  soon as this returns. One save is under way at a time: this waits for the one before. Its error is
 *  returned by the next save, wait or destroy: ditto_error.function names that call, and the message the file.
 *  Memory for the copy is kept between saves.
 *
 *  @retval as ditto_checkpoint_save, of this save or, in the background, of the one before
 *  @retval DITTO_ERR_RANGE    options->step is negative
 *  @retval DITTO_ERR_CONTEXT  also: the strategy has been destroyed
 *  @retval DITTO_ERR_FORKED   the checkpointer was made before fork
 *  @retval DITTO_ERR_SYSTEM   no thread can be started */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpointer_save(ditto_checkpointer *checkpointer,
                                                               const ditto_checkpoint_options *options);
/** Waits until nothing is being written.
 *  @retval DITTO_ERR_FORKED  the checkpointer was made before fork
 *  @return what the last save came to, if no call has returned it yet; else DITTO_OK */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpointer_wait(ditto_checkpointer *checkpointer);

/** The newest checkpoint of a folder, by its step: regular files, and links to such, of the prefix.
 *  @param path, size, length  its path, as ditto_strategy_describe
 *  @param step                may be NULL
 *  @retval DITTO_ERR_NOT_FOUND  there is none, or no folder
 *  @retval DITTO_ERR_IO         the folder can't be listed (errno)
 *  @retval DITTO_ERR_NO_MEMORY */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_latest(const char *folder, const char *prefix,
                                                               char *path, size_t size, size_t *length,
                                                               int64_t *step);

DITTO_END
#endif
