/* src/vars/checkpoint/folder.h - the checkpoints of a folder: <prefix>-<step>.h5. */
#ifndef DTI_FOLDER_H
#define DTI_FOLDER_H

#include <ditto/status.h>

#include <stdint.h>

#define DTI_PREFIX "checkpoint"

char *dti_folder_path(const char *folder, const char *prefix, int64_t step); /* free it. NULL: no memory */
/* The largest step. NOT_FOUND: there is none; IO, NO_MEMORY. */
ditto_status dti_folder_newest(const char *folder, const char *prefix, int64_t *step);
/* Removes all but the `keep` newest, and the one just written. What can't be removed stays. */
void dti_folder_prune(const char *folder, const char *prefix, uint32_t keep, int64_t written);
/* Removes temporary files that killed processes have left; those that are being written stay (partial.h). */
void dti_folder_clear(const char *folder, const char *prefix);

#endif
