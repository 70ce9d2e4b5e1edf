/* src/vars/checkpoint/open.h - a file that is open, and what is done with it. */
#ifndef DTI_OPEN_H
#define DTI_OPEN_H

#include "vars/checkpoint/contents.h"
#include "vars/checkpoint/file.h"

struct ditto_checkpoint {
    char path[DTI_SHOWN_BYTES]; /* for messages */
    int fd;
    struct dti_contents contents;
};

ditto_status dti_restore(ditto_strategy *strategy, ditto_checkpoint *file, const ditto_restore_options *options,
                         ditto_restore_status *status);

#endif
