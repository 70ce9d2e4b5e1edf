/* src/vars/checkpoint/checkpoint.h - from variables to a file: first what is to be saved, then its values, then the file. */
#ifndef DTI_CHECKPOINT_H
#define DTI_CHECKPOINT_H

#include "base/base.h"
#include "vars/checkpoint/contents.h"
#include "vars/checkpoint/files/checkpoint_files.h"

/* What is to be saved, checked; no values yet. INVALID, CONTEXT, NO_MEMORY. `variable` [entries]: free it.
 * The variables stay until the gates are left, which is when their values have been copied or written. */
ditto_status dti_save_plan(ditto_strategy *strategy, const ditto_checkpoint_options *options,
                           struct dti_contents *contents, ditto_variable ***variable, struct dti_gates *held);

/* Memory for values, kept from one save to the next. */
struct dti_snapshot {
    unsigned char *memory;
    size_t bytes;
};
/* Values as they are now, in the snapshot. `where_they_lie`: those that lie in one row are left there. NO_MEMORY. */
ditto_status dti_save_copy(struct dti_contents *contents, ditto_variable *const *variable,
                           struct dti_snapshot *snapshot, bool where_they_lie);
void dti_snapshot_free(struct dti_snapshot *snapshot);

/* Any thread: writes, flushes, reads back, renames. IO, NO_MEMORY; INVALID: attributes that do not fit. */
ditto_status dti_save_write(struct dti_contents *contents, const char *path);

/* A file that is open, and what is done with it. */

struct ditto_checkpoint {
    char path[DTI_SHOWN_BYTES]; /* for messages */
    int fd;
    struct dti_contents contents;
};

ditto_status dti_restore(ditto_strategy *strategy, ditto_checkpoint *file,
                         const ditto_restore_options *options, ditto_restore_status *status);

#endif
