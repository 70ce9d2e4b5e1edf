/* src/vars/checkpoint/partial.h - the temporary file that a checkpoint is written to before it takes its
 * name.
 *
 * It stands beside the checkpoint and is called <name>.<16 hexadecimal digits>.partial (of a name of more
 * than 200 bytes, the first 200). Every save has one of its own, which it creates (O_EXCL, O_NOFOLLOW) and
 * keeps locked (flock) until it has been renamed or removed. One that is not locked was left by a process
 * that was killed, and may be removed by anybody. Where the file system refuses locks, saves work as ever,
 * and nothing is taken for left: such files stay until the user removes them. A child process that was
 * forked during a save shares the lock, so that a file may stay locked until the child ends. */
#ifndef DTI_PARTIAL_H
#define DTI_PARTIAL_H

#include <ditto/status.h>

#include <stdbool.h>
#include <stddef.h>

struct dti_partial {
    char *name;
    int fd;
};

/* Creates one for the checkpoint `path`, after it has removed those that killed processes have left of
 * this path. IO: also when something stands at `path` that is no regular file, and must not be replaced.
 * NO_MEMORY. */
ditto_status dti_partial_create(const char *path, struct dti_partial *out);

/* Each of the two ends it. */
/* The file takes the name `path`, and the folder is flushed. IO, NO_MEMORY. */
ditto_status dti_partial_publish(struct dti_partial *partial, const char *path);
void dti_partial_discard(struct dti_partial *partial);

/* How many bytes of `name` are the checkpoint's name, if `name` is that of a temporary file; 0: it is
 * none. */
size_t dti_partial_base(const char *name);

/* Removes a temporary file that nobody is writing. */
void dti_partial_remove_left(const char *path);

#endif
