/* src/vars/checkpoint/files/checkpoint_files.h - a checkpoint's file: the user block before its HDF5 part, and the checksum.
 *
 * User block, 4096 bytes, numbers little-endian: magic [8], format (u32), bytes of the block (u32), bytes
 * of the file (u64), XXH3 of 128 bits, canonical, over the whole file with these 16 bytes as zeros; then a
 * line of text, and zeros. */
#ifndef DTI_CHECKPOINT_FILES_H
#define DTI_CHECKPOINT_FILES_H

#include <ditto/status.h>

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#define DTI_USER_BLOCK        4096u
#define DTI_CHECKPOINT_FORMAT 1u

/* Bytes of the file that come from memory; ascending, apart. The bytes between them are zeros. */
struct dti_file_extent {
    uint64_t offset;
    const void *data;
    size_t bytes;
};

/* Fills an empty file of `file_bytes` bytes: asks for the room, writes the extents, then the user block,
 * and flushes. `path` is for messages here and below: what the file is called, or will be. IO, NO_MEMORY. */
ditto_status dti_checkpoint_file_fill(int fd, const char *path, uint64_t file_bytes,
                                      const struct dti_file_extent *extent, size_t extents);

/* Reads the whole file and compares its checksum. CORRUPT, UNSUPPORTED, IO, NO_MEMORY. */
ditto_status dti_checkpoint_file_check(int fd, const char *path, uint64_t *file_bytes);

/* Opens for reading and checks. Only a regular file is opened. NOT_FOUND, IO, CORRUPT, UNSUPPORTED,
 * NO_MEMORY. */
ditto_status dti_checkpoint_file_open(const char *path, int *fd, uint64_t *file_bytes);

/* All of the bytes. IO; CORRUPT: the file ends before. */
ditto_status dti_checkpoint_file_read(int fd, void *to, size_t bytes, uint64_t offset, const char *path);

/* The folder that a path is in: its names are on the disk then. IO, NO_MEMORY. */
ditto_status dti_checkpoint_flush_folder(const char *path);

/* What a file is, for messages: "a directory", "a FIFO". */
const char *dti_checkpoint_file_kind(unsigned mode);

/* A path as messages show it: of a long one "..." and its end, so that the rest of the message has room. */
#define DTI_SHOWN_BYTES 160
#define DTI_SHOWN(path) dti_path_shown((path), (char[DTI_SHOWN_BYTES]){ "" })
const char *dti_path_shown(const char *path, char *buffer);

/* The checkpoints of a folder: <prefix>-<step>.h5. */

#define DTI_CHECKPOINT_PREFIX "checkpoint"

char *dti_folder_path(const char *folder, const char *prefix, int64_t step); /* free it. NULL: no memory */
/* The largest step. NOT_FOUND: there is none; IO, NO_MEMORY. */
ditto_status dti_folder_newest(const char *folder, const char *prefix, int64_t *step);
/* Removes all but the `keep` newest, and the one just written. What can't be removed stays. */
void dti_folder_prune(const char *folder, const char *prefix, uint32_t keep, int64_t written);
/* Removes temporary files that killed processes have left; those that are being written stay (checkpoint_files.h). */
void dti_folder_clear(const char *folder, const char *prefix);

/* The temporary file that a checkpoint is written to before it takes its
 * name.
 * 
 * It stands beside the checkpoint and is called <name>.<16 hexadecimal digits>.partial (of a name of more
 * than 200 bytes, the first 200). Every save has one of its own, which it creates (O_EXCL, O_NOFOLLOW) and
 * keeps locked (flock) until it has been renamed or removed. One that is not locked was left by a process
 * that was killed, and may be removed by anybody. Where the file system refuses locks, saves work as ever,
 * and nothing is taken for left: such files stay until the user removes them. A child process that was
 * forked during a save shares the lock, so that a file may stay locked until the child ends. */

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
