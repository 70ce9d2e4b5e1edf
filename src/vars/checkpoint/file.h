/* src/vars/checkpoint/file.h - a checkpoint's file: the user block before its HDF5 part, and the checksum.
 *
 * User block, 4096 bytes, numbers little-endian: magic [8], format (u32), bytes of the block (u32), bytes
 * of the file (u64), XXH3 of 128 bits, canonical, over the whole file with these 16 bytes as zeros; then a
 * line of text, and zeros. */
#ifndef DTI_FILE_H
#define DTI_FILE_H

#include <ditto/status.h>

#include <stddef.h>
#include <stdint.h>

#define DTI_USER_BLOCK 4096u
#define DTI_FORMAT     1u

/* Bytes of the file that come from memory; ascending, apart. The bytes between them are zeros. */
struct dti_extent {
    uint64_t offset;
    const void *data;
    size_t bytes;
};

/* Fills an empty file of `file_bytes` bytes: asks for the room, writes the extents, then the user block,
 * and flushes. `path` is for messages here and below: what the file is called, or will be. IO, NO_MEMORY. */
ditto_status dti_file_fill(int fd, const char *path, uint64_t file_bytes, const struct dti_extent *extent,
                           size_t extents);

/* Reads the whole file and compares its checksum. CORRUPT, UNSUPPORTED, IO, NO_MEMORY. */
ditto_status dti_file_check(int fd, const char *path, uint64_t *file_bytes);

/* Opens for reading and checks. Only a regular file is opened. NOT_FOUND, IO, CORRUPT, UNSUPPORTED,
 * NO_MEMORY. */
ditto_status dti_file_open(const char *path, int *fd, uint64_t *file_bytes);

/* All of the bytes. IO; CORRUPT: the file ends before. */
ditto_status dti_file_read(int fd, void *to, size_t bytes, uint64_t offset, const char *path);

/* The folder that a path is in: its names are on the disk then. IO, NO_MEMORY. */
ditto_status dti_file_flush_folder(const char *path);

/* What a file is, for messages: "a directory", "a FIFO". */
const char *dti_file_kind(unsigned mode);

/* A path as messages show it: of a long one "..." and its end, so that the rest of the message has room. */
#define DTI_SHOWN_BYTES 160
#define DTI_SHOWN(path) dti_path_shown((path), (char[DTI_SHOWN_BYTES]){ "" })
const char *dti_path_shown(const char *path, char *buffer);

#endif
