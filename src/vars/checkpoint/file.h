/* src/vars/checkpoint/file.h - a checkpoint's file: the user block before its HDF5 part, the checksum, and how it comes to its name.
 *
 * User block, 4096 bytes, numbers little-endian: magic [8], format (u32), bytes of the block (u32), bytes of the file (u64), XXH3
 * of 128 bits, canonical, over the whole file with these 16 bytes as zeros; then a line of text, and zeros. */
#ifndef DTI_FILE_H
#define DTI_FILE_H

#include <ditto/status.h>

#include <stdint.h>

#define DTI_USER_BLOCK 4096u
#define DTI_FORMAT     1u

/* Bytes of the file that come from memory; ascending, apart. The rest of the file is there already. */
struct dti_extent {
    uint64_t offset;
    const void *data;
    size_t bytes;
};

/* The temporary name of a path: free it. NULL: no memory. */
char *dti_partial_name(const char *path);
/* Is there room for so many bytes more at `path`? IO. What can't tell says yes. */
ditto_status dti_file_has_room(const char *path, uint64_t bytes);
/* The file `partial` has its HDF5 part, but for the extents: they are written, then the user block; all is flushed and takes the
 * name `path`. IO. The caller removes `partial` after an error. */
ditto_status dti_file_complete(const char *partial, const char *path, const struct dti_extent *extent, size_t extents);

/* The folder that a path is in: its names are on the disk then. IO. */
ditto_status dti_file_flush_folder(const char *path);

/* Opens for reading and checks everything. NOT_FOUND, IO, CORRUPT, UNSUPPORTED. */
ditto_status dti_file_open(const char *path, int *fd);

#endif
