/* src/vars/checkpoint/checkpoint.h - saving variables to a file and restoring them. A save first plans the
 * contents, then copies the values that it cannot write from where they are, and then writes the file. */
#ifndef DTI_CHECKPOINT_H
#define DTI_CHECKPOINT_H

#include "base/waiting/gate.h"
#include "vars/checkpoint/files/checkpoint_files.h"
#include "vars/checkpoint/files/contents.h"

/* Plans a save. Checks the options, and fills `contents` with an entry for each variable and for each piece
 * of the program's own data, without the values. After DITTO_OK the caller frees the contents and *variable,
 * an array with one variable for each entry that is not the program's own data. The variables cannot be
 * destroyed until the caller leaves the gates in `held`, which it does after their values have been copied or
 * written. Returns the errors of dti_select_variables and dti_contents_check, and those of invalid
 * options. */
ditto_status dti_save_plan(ditto_strategy *strategy, const ditto_checkpoint_options *options,
                           struct dti_contents *contents, ditto_variable ***variable, struct dti_gates *held);

/* Memory for copies of values. It is kept from one save to the next. */
struct dti_snapshot {
    unsigned char *memory;
    size_t bytes;
};

/* Copies the present values to the snapshot. If in_place is true, values that are contiguous in memory are
 * not copied, and are later written to the file from where they are. Returns DITTO_ERR_NO_MEMORY, or an error
 * of ditto_variable_read. */
ditto_status dti_save_copy(struct dti_contents *contents, ditto_variable *const *variable,
                           struct dti_snapshot *snapshot, bool in_place);
void dti_snapshot_free(struct dti_snapshot *snapshot);

/* Writes a temporary file, flushes it, reads it back, and renames it to `path`. Any thread may call this.
 * Returns DITTO_ERR_IO, DITTO_ERR_NO_MEMORY, DITTO_ERR_SYSTEM, or DITTO_ERR_INVALID if the attributes do not
 * fit in the file. */
ditto_status dti_save_write(struct dti_contents *contents, const char *path);

/* An open file. */
struct ditto_checkpoint {
    char path[DTI_SHOWN_BYTES]; /* for messages */
    int fd;
    struct dti_contents contents;
};

/* Opens a file, and closes it. `file` may be NULL. */
ditto_status dti_checkpoint_open(const char *path, ditto_checkpoint **out);
void dti_checkpoint_close(ditto_checkpoint *file);

/* Finds the newest checkpoint in a folder, as ditto_checkpoint_latest does without a strategy. */
ditto_status dti_checkpoint_latest(const char *folder, const char *prefix, char *path, size_t capacity,
                                   size_t *length, int64_t *step);

/* Opens the file of the first host on all hosts. */
struct dti_team;
ditto_status dti_checkpoint_open_on_hosts(struct dti_team *team, const char *path, ditto_checkpoint **out);

/* The newest checkpoint in a folder of the first host. */
struct dti_latest {
    int64_t step;
    char path[3072]; /* rides behind a header */
};
ditto_status dti_checkpoint_latest_on_hosts(struct dti_team *team, const char *folder, const char *prefix,
                                            struct dti_latest *out);

/* Restores the variables that the options choose from the file. If it fails before the first value is
 * written, nothing has changed. */
ditto_status dti_restore(ditto_strategy *strategy, ditto_checkpoint *file,
                         const ditto_restore_options *options, ditto_restore_status *result);

#endif
