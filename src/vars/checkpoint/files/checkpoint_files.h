/* src/vars/checkpoint/files/checkpoint_files.h - the files of checkpoints on the disk. It declares functions
 * for the file and its checksum, for folders of checkpoints, and for temporary files.
 *
 * A file begins with a user block of 4096 bytes. The HDF5 part follows it. All numbers in the user block are
 * little-endian. It contains:
 *
 *     magic                 8 bytes
 *     format                u32
 *     bytes of the block    u32
 *     bytes of the file     u64
 *     checksum              16 bytes
 *     a line of text, and zeros up to the end of the block
 *
 * The checksum is XXH3 of 128 bits in canonical form. It is computed over the whole file, with the 16 bytes
 * of the checksum itself as zeros. */
#ifndef DTI_CHECKPOINT_FILES_H
#define DTI_CHECKPOINT_FILES_H

#include <ditto/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DTI_USER_BLOCK        4096u
#define DTI_CHECKPOINT_FORMAT 1u

/* -- The file and its checksum --
 *
 * In the functions that take `fd`, `path` is the name that the file has or will have. It is only used for
 * messages. */

/* A range of bytes of the file that comes from memory. Extents are sorted by offset and do not overlap. The
 * bytes between them are zeros. */
struct dti_file_extent {
    uint64_t offset;
    const void *data;
    size_t bytes;
};

/* Fills an empty file with `file_bytes` bytes. It reserves disk space, writes the extents, writes the user
 * block, and flushes the file. Returns DITTO_ERR_IO, or DITTO_ERR_SYSTEM if xxHash fails. */
ditto_status dti_checkpoint_file_fill(int fd, const char *path, uint64_t file_bytes,
                                      const struct dti_file_extent *extent, size_t extents);

/* Reads the whole file, compares its checksum, and stores its length. Returns DITTO_ERR_CORRUPT,
 * DITTO_ERR_UNSUPPORTED for a newer format, DITTO_ERR_IO, DITTO_ERR_NO_MEMORY, or DITTO_ERR_SYSTEM if xxHash
 * fails. */
ditto_status dti_checkpoint_file_check(int fd, const char *path, uint64_t *file_bytes);

/* Opens a file for reading and checks it. A path at which there is something other than a regular file is not
 * opened. Returns DITTO_ERR_NOT_FOUND if there is no file, or an error of dti_checkpoint_file_check. */
ditto_status dti_checkpoint_file_open(const char *path, int *fd, uint64_t *file_bytes);

/* Reads `bytes` bytes from `offset` on. Returns DITTO_ERR_IO, DITTO_ERR_NO_MEMORY, or DITTO_ERR_CORRUPT if
 * the file ends before. */
ditto_status dti_checkpoint_file_read(int fd, void *to, size_t bytes, uint64_t offset, const char *path);

/* Flushes the folder that the path is in, so that the names in it are on the disk. The path of a folder may
 * end with "/". Returns DITTO_ERR_IO or DITTO_ERR_NO_MEMORY. */
ditto_status dti_checkpoint_flush_folder(const char *path);

/* Returns the kind of a file for messages, such as "a directory" or "a FIFO". */
const char *dti_checkpoint_file_kind(unsigned mode);

/* Returns a path as messages show it. A long path is shortened to "..." and its end, so that the rest of the
 * message fits. */
#define DTI_SHOWN_BYTES 160
#define DTI_SHOWN(path) dti_path_shown((path), (char[DTI_SHOWN_BYTES]){ "" })
const char *dti_path_shown(const char *path, char *buffer);

/* -- The checkpoints of a folder, which are called <prefix>-<step>.h5 -- */

#define DTI_CHECKPOINT_PREFIX "checkpoint"

/* Returns the path of the checkpoint of a step. The caller frees it. Returns NULL if there is no memory. */
char *dti_folder_path(const char *folder, const char *prefix, int64_t step);

/* Finds the largest step. Returns DITTO_ERR_NOT_FOUND if there is no checkpoint, DITTO_ERR_IO or
 * DITTO_ERR_NO_MEMORY. */
ditto_status dti_folder_newest(const char *folder, const char *prefix, int64_t *step);

/* Removes all checkpoints but the `keep` newest ones and the one of step `written`. Files that cannot be
 * removed stay. */
void dti_folder_prune(const char *folder, const char *prefix, uint32_t keep, int64_t written);

/* Removes the temporary files of these checkpoints that killed processes have left. Files that are being
 * written stay. */
void dti_folder_clear(const char *folder, const char *prefix);

/* -- Temporary files --
 *
 * A checkpoint is written to a temporary file, which is then renamed. The temporary file is in the folder of
 * the checkpoint and is called <name>.<16 hexadecimal digits>.partial, where <name> is the checkpoint's name,
 * cut to 200 bytes. Each save creates its own temporary file (O_EXCL, O_NOFOLLOW), and keeps it locked
 * (flock) until it has renamed or removed it. A file that is not locked was left by a process that was
 * killed, so any process may remove it. If the file system refuses locks, saves work as well, but files that
 * were left stay until the user removes them. A child process that was forked during a save shares the lock,
 * so a file may stay locked until the child ends. */

struct dti_partial {
    char *name;
    int fd;
};

/* Creates a temporary file for the checkpoint `path`. It first removes temporary files that killed processes
 * have left and whose <name> is that of this checkpoint. Returns DITTO_ERR_NO_MEMORY or DITTO_ERR_IO. It also
 * returns DITTO_ERR_IO if there is something at `path` that is not a regular file, because that must not be
 * replaced. After DITTO_OK the caller passes *out to dti_partial_publish or dti_partial_discard. */
ditto_status dti_partial_create(const char *path, struct dti_partial *out);

/* Renames the file to `path` and flushes the folder. If the file cannot be renamed, it is removed. Returns
 * DITTO_ERR_IO or DITTO_ERR_NO_MEMORY. */
ditto_status dti_partial_publish(struct dti_partial *partial, const char *path);

/* Removes the file. */
void dti_partial_discard(struct dti_partial *partial);

/* If `name` is the name of a temporary file, returns the length of the checkpoint's name, with which it
 * begins. Otherwise returns 0. */
size_t dti_partial_base(const char *name);

/* Removes a temporary file, unless a process has locked it or the file system refuses locks. */
void dti_partial_remove_left(const char *path);

#endif
