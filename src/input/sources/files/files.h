/* src/input/sources/files/files.h - a list of files that many threads read, while only a few of them are
 * open. */
#ifndef DTI_FILES_H
#define DTI_FILES_H

#include <ditto/source.h>

#include <sys/types.h>
#include <time.h>

/* The number of files of all lists that stay open. These are the files that were read last. More files are
 * open only while more are being read. */
#define DTI_FILES_OPEN 64u

struct dti_file {
    /* The name that the program has given. It is the end of `path`. */
    const char *name;

    char *path; /* dti_absolute_name */

    /* What the file was when the list was made. Each read compares this. The number of the device is left
     * out, because it changes when an automounter mounts a file system again. */
    uint64_t bytes;
    ino_t inode;
    struct timespec written;

    /* Protected by one lock of the process. */

    /* -1 if the file is not open. A thread that holds a pin reads it without the lock. */
    int descriptor;
    uint32_t pins; /* threads that are reading from it */

    /* The neighbours in the list of files that are open and that no thread is reading. */
    struct dti_file *older, *newer;
};

struct dti_files {
    struct dti_file *file; /* [count] */
    uint32_t count;
};

/* -- Making -- */

/* Makes the list from names, or from the files that match patterns, and checks every file. For the errors see
 * source.h, "For every source of files". */
ditto_status dti_files_create(struct dti_files *files, const ditto_files *names);
void dti_files_free(struct dti_files *files); /* a struct of zeros is allowed */

/* -- Any thread -- */

/* Reads up to `bytes` bytes from `offset` on. *got is less only if the file ends there. Returns DITTO_ERR_IO
 * or DITTO_ERR_NOT_FOUND, with errno, and DITTO_ERR_IO if the file is not what it was when the list was
 * made. */
ditto_status dti_files_read(struct dti_files *files, uint32_t file, uint64_t offset, void *to, size_t bytes,
                            size_t *got);

/* Reads all of the bytes. Also returns DITTO_ERR_IO if the file does not have them, which a damaged state may
 * ask for. The message names the row by `what` and `number`, for example "line" and 7. */
ditto_status dti_files_read_all(struct dti_files *files, uint32_t file, uint64_t offset, void *to,
                                size_t bytes, const char *what, uint64_t number);

/* A hint that the kernel may read these bytes ahead. */
void dti_files_want(struct dti_files *files, uint32_t file, uint64_t offset, uint64_t bytes);

/* Returns the first file, from `first` on, that a pass with these shards reads (struct dti_pass). File 0 of
 * the list has the number number_of_first among all files. Returns files->count if there is none. */
uint32_t dti_files_next(const struct dti_files *files, uint32_t first, uint32_t number_of_first,
                        uint32_t shards, uint32_t shard);

#endif
