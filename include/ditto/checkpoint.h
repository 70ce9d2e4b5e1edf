/* include/ditto/checkpoint.h - saves variables to files and restores them, with any number of replicas.
 *
 * These functions are in the library libditto-hdf5 (`pkg-config ditto-hdf5`), and ditto.h does not include
 * this header. A checkpoint is an HDF5 file, so h5dump, h5py and similar tools can read it. Each variable is
 * a plain dataset under its own name, where "/" makes groups. The dataset holds the value that
 * ditto_variable_read returns. Before the HDF5 part there is a user block of 4096 bytes with the length of
 * the file and a checksum of the whole file (XXH3, 128 bits). The checksum is checked before the HDF5 part is
 * used. The library writes and reads the files itself and does not need the HDF5 library. docs/semantics.md
 * has the rules. */
#ifndef DITTO_CHECKPOINT_H
#define DITTO_CHECKPOINT_H

#include <ditto/variable.h>

DITTO_BEGIN

/* -- Rules for all functions of this header --
 *
 * Functions that save or restore, and ditto_checkpointer_create, need cross-replica context and return
 * DITTO_ERR_CONTEXT elsewhere. They return DITTO_ERR_FORKED if the strategy was created before fork, and
 * DITTO_ERR_POISONED if a replica never returned from an earlier run. The others may be called in any
 * context, but ditto_checkpointer_wait and ditto_checkpointer_destroy return DITTO_ERR_CONTEXT in a function
 * of a dataset, and ditto_checkpointer_destroy also on the thread of a replica.
 *
 * The strategy must not run during a call that saves or restores. Workers of a parameter server strategy may
 * push meanwhile: the elements of a shard, those of its slots and its version are copied between two updates.
 * The versions of parameter NAME are the data "ditto_versions/NAME", u64 for each shard. A restore sets them,
 * or gives each shard the largest one if their number has changed.
 *
 * Meanwhile, other threads get DITTO_ERR_BUSY if they destroy one of the variables, or the optimizer to which
 * it belongs.
 *
 * A NULL pointer is DITTO_ERR_INVALID, unless a comment gives NULL a meaning. DITTO_ERR_CORRUPT means that a
 * file fails a check. If a system call failed, the error is DITTO_ERR_NOT_FOUND, DITTO_ERR_IO or
 * DITTO_ERR_NO_MEMORY with its errno, and the call may be repeated. */

/** The type of an attribute's value. */
typedef enum ditto_attribute_kind {
    DITTO_ATTRIBUTE_TEXT = 1,    /**< ditto_attribute.text */
    DITTO_ATTRIBUTE_INTEGER = 2, /**< ditto_attribute.integer */
    DITTO_ATTRIBUTE_REAL = 3,    /**< ditto_attribute.real */
} ditto_attribute_kind;

/** Largest length of a text attribute in bytes. HDF5 limits the name and the value of an attribute together,
 *  to about 65500 bytes. */
#define DITTO_MAX_ATTRIBUTE_BYTES 60000

/** Largest number of "/" in the name of a variable or of data that is saved. Each "/" makes a group. For a
 *  parameter it is one less, because its versions are saved as "ditto_versions/NAME". */
#define DITTO_MAX_CHECKPOINT_GROUPS 256

/** Largest length of such a name in bytes, with its "/" and without the terminating zero. For a parameter it
 *  is 15 less, the length of "ditto_versions/". */
#define DITTO_MAX_CHECKPOINT_NAME_BYTES 4096

/** A named text or number that is saved with the variables. */
typedef struct ditto_attribute {
    /** The name. It is not empty, does not begin with "ditto_", and contains no "/". Two attributes of a
     *  checkpoint have different names. */
    const char *name;

    ditto_attribute_kind kind; /**< selects one of the next three fields */
    const char *text;          /**< with DITTO_ATTRIBUTE_TEXT */
    int64_t integer;           /**< with DITTO_ATTRIBUTE_INTEGER */
    double real;               /**< with DITTO_ATTRIBUTE_REAL */
} ditto_attribute;

/** An array of the program that is saved unchanged, for example the state of an iterator or a table. */
typedef struct ditto_checkpoint_data {
    /** The name. No variable and no other array that is saved with it has the same name. It does not begin
     *  with "ditto_versions/", the folder of the versions of parameters. */
    const char *name;

    ditto_tensor tensor; /**< the array */
} ditto_checkpoint_data;

/** What a checkpoint contains. */
typedef struct ditto_checkpoint_options {
    size_t struct_size; /**< set by DITTO_CHECKPOINT_OPTIONS_INIT */

    /** Array of num_variables variables. NULL means all variables of the strategy, with the slots of
     *  optimizers. */
    ditto_variable *const *variables;

    size_t num_variables;              /**< length of `variables` */
    int64_t step;                      /**< saved unchanged */
    const ditto_attribute *attributes; /**< array of num_attributes attributes */
    size_t num_attributes;             /**< length of `attributes`, at most 65532 */

    /** Array of num_data arrays. They are read with ditto_checkpoint_read. ditto_checkpoint_restore ignores
     *  them. */
    const ditto_checkpoint_data *data;

    size_t num_data; /**< length of `data` */
} ditto_checkpoint_options;

/** Initial value of ditto_checkpoint_options. */
#define DITTO_CHECKPOINT_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_checkpoint_options)

/* -- Over several hosts --
 *
 * Only the first host reads and writes files, so the other hosts need no file system with checkpoints in it.
 * Calls with a strategy of several hosts, and those on a checkpointer, are collective cross calls: every host
 * makes them, and if one fails, all return the error of the lowest host that has failed (DITTO_ERR_DIVERGED
 * if a host makes another call, DITTO_ERR_TIMED_OUT if one does not answer). While a file is restored, each
 * host has the whole file in memory. A path that ditto_checkpoint_latest finds for several hosts has at most
 * 3071 bytes (DITTO_ERR_RANGE). */

/* -- Saving --
 *
 * A save writes a temporary file beside the path, flushes it, and reads it back to check its checksum and its
 * list of contents. Then it renames the file. So the path always names either the complete new checkpoint or
 * the one before. Each save has its own temporary file, <name>.<16 hexadecimal digits>.partial, and keeps it
 * locked (flock). Several processes may therefore save to one path, and the last rename wins. An unlocked
 * file with such a name was left by a process that was killed. The next save to the same path removes it. On
 * file systems that refuse flock nothing is removed, because another process may be writing the file. */

/** Writes a checkpoint. It is on the disk when the call returns.
 *
 *  @param strategy  the strategy whose variables are saved
 *  @param path      path of the file
 *  @param options   what to save. NULL means all variables, with step 0
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID    one of these. The message names the item, and nothing is written:
 *      - There are neither variables nor data to save.
 *      - Two variables or arrays have the same name, or one name is a folder of the other ("a" and "a/b").
 *      - A name has an empty part, a part ".", more than DITTO_MAX_CHECKPOINT_GROUPS "/", or more than
 *        DITTO_MAX_CHECKPOINT_NAME_BYTES bytes.
 *      - A sync-on-read variable has no aggregation.
 *      - The name of an array begins with "ditto_versions/".
 *      - An array has an unknown dtype or a rank above DITTO_MAX_RANK, or its data is NULL or misaligned.
 *      - An attribute breaks the rules of ditto_attribute or is too long, or there are too many.
 *  @retval DITTO_ERR_RANGE      the kind of an attribute is not a value of its enum, or the size of an
 *                               array overflows
 *  @retval DITTO_ERR_CONTEXT    a variable belongs to another strategy
 *  @retval DITTO_ERR_IO         one of these:
 *      - The file cannot be written (errno), or reading it back gives other bytes. The file that was at
 *        `path` before is unchanged.
 *      - `path` names something that is not a regular file (a directory, a FIFO, a device, a link). It is not
 *        replaced.
 *      - The folder cannot be flushed. The new file exists, but a loss of power may remove it.
 *  @retval DITTO_ERR_NO_MEMORY  memory was refused
 *  @par Signals
 *  SIGXFSZ is blocked in the thread that writes, so a file that is larger than RLIMIT_FSIZE is DITTO_ERR_IO.
 *  @par Cost
 *  The values are written once, and the checksum is computed while they are in the cache. Then the file is
 *  read once, mostly from the page cache. Only the values of sync-on-read variables, of variables in
 *  several shards and of parameters are copied in memory first. An update of a shard waits while the shard
 *  and its slots are copied. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_save(ditto_strategy *strategy, const char *path,
                                                             const ditto_checkpoint_options *options);

/* -- Reading a file --
 *
 * Several threads may use one open checkpoint at the same time, but not while it is closed. */

/** An open checkpoint file. */
typedef struct ditto_checkpoint ditto_checkpoint;

/** Checks a file and opens it. If another file replaces it later, the handle still reads the opened one.
 *
 *  @param strategy  NULL to open a file of this process. With a strategy over several hosts, all hosts open
 *                   the file of the first one
 *  @param path      path of a regular file, or of a link to one
 *  @param out       [out] the open checkpoint
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_NOT_FOUND    the file or its folder does not exist
 *  @retval DITTO_ERR_IO           the file cannot be read (errno)
 *  @retval DITTO_ERR_CORRUPT      the file is not a regular file or not a checkpoint, is truncated, or has a
 *                                 wrong byte
 *  @retval DITTO_ERR_UNSUPPORTED  the file was written by a newer version
 *  @retval DITTO_ERR_NO_MEMORY    memory was refused
 *  @par Ownership
 *  The caller closes the checkpoint with ditto_checkpoint_close. Pointers that the functions below return are
 *  valid until then.
 *  @par Cost
 *  The file is read once. Other hosts keep the whole file in memory until it is closed. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_open(ditto_strategy *strategy, const char *path,
                                                             ditto_checkpoint **out);

/** Closes a checkpoint.
 *
 *  @param checkpoint  the checkpoint, or NULL
 *  @return DITTO_OK
 *  @par Cost
 *  Frees the table of contents. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_close(ditto_checkpoint *checkpoint);

/** What a checkpoint contains, apart from its entries. */
typedef struct ditto_checkpoint_properties {
    size_t struct_size;                /**< set by DITTO_CHECKPOINT_PROPERTIES_INIT */
    int64_t step;                      /**< ditto_checkpoint_options.step of the save */
    const char *version;               /**< version of the library that wrote the file, such as "0.1.0" */
    size_t num_entries;                /**< number of entries */
    const ditto_attribute *attributes; /**< array of num_attributes attributes */
    size_t num_attributes;             /**< length of `attributes` */
} ditto_checkpoint_properties;

/** Initial value of ditto_checkpoint_properties. */
#define DITTO_CHECKPOINT_PROPERTIES_INIT DITTO_OPTIONS_INIT(ditto_checkpoint_properties)

/** Says what a checkpoint contains.
 *
 *  @param checkpoint  the checkpoint
 *  @param out         [out] start from DITTO_CHECKPOINT_PROPERTIES_INIT
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_INVALID  a NULL pointer, or struct_size is not set */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_info(const ditto_checkpoint *checkpoint,
                                                             ditto_checkpoint_properties *out);

/** One variable or one array of the program in a checkpoint. */
typedef struct ditto_checkpoint_entry {
    const char *name;  /**< the name under which it was saved */
    ditto_tensor spec; /**< dtype and shape. Its data is NULL */

    /** Synchronization of the variable. This and the next two fields have no meaning if is_data is 1. */
    ditto_synchronization synchronization;

    ditto_aggregation aggregation; /**< aggregation of the variable */
    int trainable;                 /**< 1 if the variable is trainable */
    int is_data;                   /**< 1 for an array of the program */
} ditto_checkpoint_entry;

/** Describes one entry.
 *
 *  @param checkpoint  the checkpoint
 *  @param entry       index of the entry, from 0
 *  @param out         [out] the entry
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_RANGE  there is no entry with this index */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_get(const ditto_checkpoint *checkpoint, size_t entry,
                                                            ditto_checkpoint_entry *out);

/** Reads the value of an entry.
 *
 *  @param checkpoint  the checkpoint
 *  @param name        name of the entry
 *  @param dst         [out] memory for the value
 *  @param bytes       length of `dst`. It must be the size of the entry
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_NOT_FOUND  there is no entry with this name
 *  @retval DITTO_ERR_SHAPE      `bytes` is not the size of the entry
 *  @retval DITTO_ERR_INVALID    `dst` is NULL, or misaligned for the dtype
 *  @retval DITTO_ERR_IO         the file cannot be read (errno)
 *  @retval DITTO_ERR_CORRUPT    the file was truncated after it was opened
 *  @retval DITTO_ERR_NO_MEMORY  memory was refused
 *  @par Cost
 *  The value is read from the file. Its checksum is not checked again. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_read(ditto_checkpoint *checkpoint, const char *name,
                                                             void *dst, size_t bytes);

/* -- Restoring -- */

/** Which variables are restored. */
typedef struct ditto_restore_options {
    size_t struct_size; /**< set by DITTO_RESTORE_OPTIONS_INIT */

    /** Array of num_variables variables. Only these are restored, and no values are held. NULL means all
     *  variables of the strategy, and all entries of the file. */
    ditto_variable *const *variables;

    size_t num_variables; /**< length of `variables` */

    /** 1: variables that are not in the file keep their values. 0: such a variable is an error. */
    int partial;
} ditto_restore_options;

/** Initial value of ditto_restore_options. */
#define DITTO_RESTORE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_restore_options)

/** What a restore did. */
typedef struct ditto_restore_status {
    size_t num_restored; /**< variables that got their value */

    /** Entries of variables that do not exist. Their values are held until a variable of the name is
     *  created. ditto_strategy_held_values lists them. */
    size_t num_held;

    size_t num_missing; /**< variables without an entry */
} ditto_restore_status;

/** Writes the values of a checkpoint to the variables of the same names, as ditto_variable_assign does. So a
 *  floating-point sync-on-read variable with SUM may differ from its saved value in its last bits.
 *
 *  Everything is checked, and all values are read, before a variable is written. So after an error every
 *  variable has the value that it had before, and the same values are held as before.
 *
 *  @param strategy  the strategy whose variables are restored
 *  @param path      path of the file
 *  @param options   which variables. NULL means all, and each of them must be in the file
 *  @param status    [out] what was done; may be NULL
 *  @return DITTO_OK, an error of ditto_checkpoint_open, or one of:
 *  @retval DITTO_ERR_NOT_FOUND  the file lacks variables, and options->partial is 0. The message has their
 *                               number and the first names
 *  @retval DITTO_ERR_INVALID    a dtype differs from the variable's, two variables have the name of one
 *                               entry, or the variable of an entry is sync-on-read without aggregation
 *  @retval DITTO_ERR_SHAPE      a shape differs from the variable's
 *  @retval DITTO_ERR_CONTEXT    a variable belongs to another strategy
 *  @par Cost
 *  The file is read twice, the second time mostly from the page cache. During the call, all restored values
 *  are in memory a second time. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_restore(ditto_strategy *strategy, const char *path,
                                                                const ditto_restore_options *options,
                                                                ditto_restore_status *status);

/* -- A folder of checkpoints --
 *
 * The program must not use one prefix in one folder with two checkpointers, or in two processes, at a time.
 * Threads may share a checkpointer, and its calls are executed one after another. In a child process after
 * fork, only ditto_checkpointer_destroy works. The other calls return DITTO_ERR_FORKED. */

/** Saves checkpoints to a folder and keeps the newest ones. */
typedef struct ditto_checkpointer ditto_checkpointer;

/** Value of ditto_checkpointer_options.keep: no checkpoint is removed. */
#define DITTO_KEEP_ALL UINT32_MAX

/** Options of a checkpointer. */
typedef struct ditto_checkpointer_options {
    size_t struct_size; /**< set by DITTO_CHECKPOINTER_OPTIONS_INIT */

    /** The prefix of the names. NULL means "checkpoint", so step 20 is saved to "checkpoint-20.h5". The
     *  prefix is copied. It is not empty and contains no "/". */
    const char *prefix;

    /** How many checkpoints are kept, those with the highest steps. 0 means 5. DITTO_KEEP_ALL means all. */
    uint32_t keep;

    /** 1: ditto_checkpointer_save copies the values and data, and another thread writes the file. */
    int background;
} ditto_checkpointer_options;

/** Initial value of ditto_checkpointer_options. */
#define DITTO_CHECKPOINTER_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_checkpointer_options)

/** Creates a checkpointer, and removes the temporary files of this prefix that killed processes have left.
 *
 *  @param strategy  the strategy whose variables are saved
 *  @param folder    the folder. It is created if it does not exist, but its parents are not. A relative name
 *                   keeps its meaning after a chdir
 *  @param options   the options, or NULL for the defaults
 *  @param out       [out] the checkpointer
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID    the prefix is empty or contains "/"
 *  @retval DITTO_ERR_IO         `folder` is not a folder, or cannot be created and flushed (errno)
 *  @retval DITTO_ERR_NO_MEMORY  memory was refused
 *  @par Ownership
 *  The caller destroys the checkpointer with ditto_checkpointer_destroy.
 *  @par Cost
 *  Reads the folder once. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpointer_create(ditto_strategy *strategy, const char *folder,
                                                                 const ditto_checkpointer_options *options,
                                                                 ditto_checkpointer **out);

/** Waits until the file that is being written is on the disk, and frees the checkpointer.
 *
 *  The checkpointer is freed even if the call returns the error of the last save. In a child process after
 *  fork the call frees it without waiting, because the parent writes the file.
 *
 *  @param checkpointer  the checkpointer, or NULL
 *  @return DITTO_OK, the error of the last save if no call has returned it yet, or:
 *  @retval DITTO_ERR_BUSY     a call on this checkpointer has not returned. Nothing was done
 *  @retval DITTO_ERR_CONTEXT  called on the thread of a replica, or in a function of a dataset. Nothing was
 *                             done
 *  @par Cost
 *  Waits for the file that is being written. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpointer_destroy(ditto_checkpointer *checkpointer);

/** Saves to the file of options->step, as ditto_checkpoint_save does, and removes old files.
 *
 *  Of the files of this prefix, those with the highest steps stay (ditto_checkpointer_options.keep), and the
 *  new file stays even if others have higher steps. Only regular files and links to them are counted and
 *  removed. Temporary files are not. A file that cannot be removed stays, which is not an error.
 *
 *  With ditto_checkpointer_options.background, the replicas copy the values together. As soon as the call
 *  returns, the strategy may run again or be destroyed. One save is in progress at a time, so the call first
 *  waits for the one before. An error of a background save is returned by the next save, wait or destroy.
 *  ditto_error.function names that call, and the message names the file. A save that returns such an error
 *  saves nothing, and may be repeated. The memory for the copy is kept between saves.
 *
 *  @param checkpointer  the checkpointer
 *  @param options       what to save. NULL means all variables, with step 0
 *  @return DITTO_OK, an error of ditto_checkpoint_save, the error of the background save before, or one of:
 *  @retval DITTO_ERR_RANGE    options->step is negative
 *  @retval DITTO_ERR_CONTEXT  the strategy was destroyed
 *  @retval DITTO_ERR_SYSTEM   the thread that writes cannot be started
 *  @par Cost
 *  That of ditto_checkpoint_save, and the folder is read once. In the background the call only copies the
 *  values, after it has waited for the save before. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpointer_save(ditto_checkpointer *checkpointer,
                                                               const ditto_checkpoint_options *options);

/** Waits until no file is being written.
 *
 *  @param checkpointer  the checkpointer
 *  @return DITTO_OK, or the error of the last save if no call has returned it yet
 *  @par Cost
 *  Waits for the file that is being written. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpointer_wait(ditto_checkpointer *checkpointer);

/** Finds the checkpoint with the highest step in a folder. Regular files of the prefix count, and links to
 *  such files. They are not opened.
 *
 *  @param strategy  NULL to look into a folder of this process. With a strategy over several hosts, all hosts
 *                   get the path and the step of the first one
 *  @param folder    the folder
 *  @param prefix    the prefix of the files. NULL means "checkpoint"
 *  @param path      [out] the path, terminated, and cut if it is too long; may be NULL if `capacity` is 0
 *  @param capacity  length of `path` in bytes
 *  @param length    [out] length of the whole path without its terminator; may be NULL
 *  @param step      [out] the step; may be NULL
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID    the prefix is empty or contains "/"
 *  @retval DITTO_ERR_NOT_FOUND  there is no such checkpoint, or no such folder
 *  @retval DITTO_ERR_IO         the folder cannot be listed (errno)
 *  @retval DITTO_ERR_NO_MEMORY  memory was refused
 *  @par Cost
 *  Reads the folder once. No file is opened. */
DITTO_API DITTO_NODISCARD ditto_status ditto_checkpoint_latest(ditto_strategy *strategy, const char *folder,
                                                               const char *prefix, char *path,
                                                               size_t capacity, size_t *length,
                                                               int64_t *step);

DITTO_END
#endif
