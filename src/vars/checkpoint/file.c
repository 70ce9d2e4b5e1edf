/* src/vars/checkpoint/file.c - see file.h. */
#include "vars/checkpoint/file.h"
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define CHUNK ((size_t)1 << 20) /* summed while it is still in the cache */

static const char magic[8] = "DITTOCKP";
static const char words[] = "\na checkpoint of ditto: HDF5 after this block of 4096 bytes\n";

/* Offsets in the user block. */
enum { AT_MAGIC = 0, AT_FORMAT = 8, AT_BLOCK = 12, AT_LENGTH = 16, AT_SUM = 24, AT_WORDS = 40 };

static void put(unsigned char *at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(number >> 8 * i);
}

static uint64_t get(const unsigned char *at, int bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++)
        number |= (uint64_t)at[i] << 8 * i;
    return number;
}

static void fill_block(unsigned char block[DTI_USER_BLOCK], uint64_t length)
{
    memset(block, 0, DTI_USER_BLOCK);
    memcpy(block + AT_MAGIC, magic, sizeof magic);
    put(block + AT_FORMAT, DTI_FORMAT, 4);
    put(block + AT_BLOCK, DTI_USER_BLOCK, 4);
    put(block + AT_LENGTH, length, 8);
    memcpy(block + AT_WORDS, words, sizeof words - 1);
}

char *dti_partial_name(const char *path)
{
    size_t length = strlen(path) + sizeof ".partial";
    char *name = malloc(length);
    if (name != NULL)
        snprintf(name, length, "%s.partial", path);
    return name;
}

/* -- reading and writing -- */

static ditto_status read_all(int fd, void *to, size_t bytes, uint64_t offset, const char *path)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, (char *)to + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "reading %s at byte %llu", path,
                                  (unsigned long long)(offset + done));
        if (got == 0)
            return DTI_FAIL(DITTO_ERR_CORRUPT, "%s ends at byte %llu: it is being cut while it is read", path,
                            (unsigned long long)(offset + done));
        done += (size_t)got;
    }
    return DITTO_OK;
}

static ditto_status write_all(int fd, const void *from, size_t bytes, uint64_t offset, const char *path)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t put = pwrite(fd, (const char *)from + done, bytes - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return DTI_FAIL_ERRNO(DITTO_ERR_IO, put < 0 ? errno : ENOSPC,
                                  "writing %s at byte %llu; the checkpoint before it is as it was", path,
                                  (unsigned long long)(offset + done));
        done += (size_t)put;
    }
    return DITTO_OK;
}

/* Bytes [first, end) that are in the file, into the sum. */
static ditto_status sum_file(int fd, uint64_t first, uint64_t end, XXH3_state_t *sum, unsigned char *chunk,
                             const char *path)
{
    for (uint64_t at = first; at < end;) {
        size_t bytes = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        DTI_TRY(read_all(fd, chunk, bytes, at, path));
        XXH3_128bits_update(sum, chunk, bytes);
        at += bytes;
    }
    return DITTO_OK;
}

/* An extent from memory to the file, and into the sum, in one go. The disk is not hurried (sync_file_range): 0.50 of the speed of dd
 * with it, 0.78 without. */
static ditto_status write_extent(int fd, const struct dti_extent *e, XXH3_state_t *sum, const char *path)
{
    for (size_t at = 0; at < e->bytes;) {
        size_t bytes = e->bytes - at < CHUNK ? e->bytes - at : CHUNK;
        DTI_TRY(write_all(fd, (const char *)e->data + at, bytes, e->offset + at, path));
        XXH3_128bits_update(sum, (const char *)e->data + at, bytes);
        at += bytes;
    }
    return DITTO_OK;
}

/* -- completing -- */

ditto_status dti_file_has_room(const char *path, uint64_t bytes)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "creating %s", path);
    int failed = fallocate(fd, 0, 0, (off_t)bytes) != 0 ? errno : 0;
    close(fd);
    if (failed == ENOSPC || failed == EFBIG || failed == EDQUOT)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, failed, "%s needs %llu bytes; the checkpoint before it is as it was", path,
                              (unsigned long long)bytes);
    return DITTO_OK;
}

/* Everything but the user block, in the order of the file; the block's own sum at last. */
static ditto_status write_parts(int fd, const struct dti_extent *extent, size_t extents, unsigned char *chunk,
                                const char *path)
{
    unsigned char block[DTI_USER_BLOCK];
    struct stat st;
    XXH3_state_t sum;
    if (fstat(fd, &st) != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "%s", path);
    fill_block(block, (uint64_t)st.st_size);
    XXH3_128bits_reset(&sum);
    XXH3_128bits_update(&sum, block, sizeof block);
    uint64_t at = DTI_USER_BLOCK;
    for (size_t i = 0; i < extents; i++) {
        DTI_TRY(sum_file(fd, at, extent[i].offset, &sum, chunk, path));
        DTI_TRY(write_extent(fd, &extent[i], &sum, path));
        at = extent[i].offset + extent[i].bytes;
    }
    DTI_TRY(sum_file(fd, at, (uint64_t)st.st_size, &sum, chunk, path));
    XXH128_canonicalFromHash((XXH128_canonical_t *)(void *)(block + AT_SUM), XXH3_128bits_digest(&sum));
    DTI_TRY(write_all(fd, block, sizeof block, 0, path));
    if (fsync(fd) != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "flushing %s; the checkpoint before it is as it was", path);
    return DITTO_OK;
}

/* A name is on the disk when its folder is. */
ditto_status dti_file_flush_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (folder == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a path");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    ditto_status status = failed == 0 || failed == EINVAL /* a file system that has no such thing */
                              ? DITTO_OK
                              : DTI_FAIL_ERRNO(DITTO_ERR_IO, failed, "flushing the folder %s", folder);
    free(folder);
    return status;
}

ditto_status dti_file_complete(const char *partial, const char *path, const struct dti_extent *extent, size_t extents)
{
    unsigned char *chunk = malloc(CHUNK);
    int fd = open(partial, O_RDWR | O_CLOEXEC);
    ditto_status status = chunk == NULL ? DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to write %s", path)
                          : fd < 0      ? DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "opening %s", partial)
                                        : write_parts(fd, extent, extents, chunk, partial);
    free(chunk);
    if (fd >= 0 && close(fd) != 0 && status == DITTO_OK)
        status = DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "closing %s", partial);
    if (status == DITTO_OK && rename(partial, path) != 0)
        status = DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "renaming %s to %s", partial, path);
    return status == DITTO_OK ? dti_file_flush_folder(path) : status;
}

/* -- checking -- */

static ditto_status check_block(const unsigned char *block, uint64_t length, const char *path)
{
    if (memcmp(block + AT_MAGIC, magic, sizeof magic) != 0)
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s is no checkpoint of ditto: its first bytes are others", path);
    if (get(block + AT_FORMAT, 4) > DTI_FORMAT)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "%s has format %llu, and this version reads up to %u: read it with the version that wrote it, "
                        "or a newer one",
                        path, (unsigned long long)get(block + AT_FORMAT, 4), DTI_FORMAT);
    if (get(block + AT_LENGTH, 8) != length)
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s has %llu bytes and should have %llu: it has been cut, or added to", path,
                        (unsigned long long)length, (unsigned long long)get(block + AT_LENGTH, 8));
    return DITTO_OK;
}

static ditto_status check_sum(int fd, unsigned char *block, uint64_t length, unsigned char *chunk, const char *path)
{
    XXH128_canonical_t found, written;
    XXH3_state_t sum;
    memcpy(&written, block + AT_SUM, sizeof written);
    memset(block + AT_SUM, 0, sizeof written);
    XXH3_128bits_reset(&sum);
    XXH3_128bits_update(&sum, block, DTI_USER_BLOCK);
    DTI_TRY(sum_file(fd, DTI_USER_BLOCK, length, &sum, chunk, path));
    XXH128_canonicalFromHash(&found, XXH3_128bits_digest(&sum));
    if (memcmp(&found, &written, sizeof found) != 0)
        return DTI_FAIL(DITTO_ERR_CORRUPT,
                        "%s: its checksum does not fit its contents; some byte is not what was written", path);
    return DITTO_OK;
}

static ditto_status check_file(int fd, const char *path, unsigned char *chunk)
{
    unsigned char block[DTI_USER_BLOCK];
    struct stat st;
    if (fstat(fd, &st) != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "%s", path);
    if (!S_ISREG(st.st_mode))
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s is no file", path);
    if ((uint64_t)st.st_size < DTI_USER_BLOCK)
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s has %llu bytes: a checkpoint has more than %u", path,
                        (unsigned long long)st.st_size, DTI_USER_BLOCK);
    DTI_TRY(read_all(fd, block, sizeof block, 0, path));
    DTI_TRY(check_block(block, (uint64_t)st.st_size, path));
    return check_sum(fd, block, (uint64_t)st.st_size, chunk, path);
}

ditto_status dti_file_open(const char *path, int *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO does not keep us */
    if (fd < 0)
        return DTI_FAIL_ERRNO(errno == ENOENT || errno == ENOTDIR ? DITTO_ERR_NOT_FOUND : DITTO_ERR_IO, errno,
                              "opening %s", path);
    unsigned char *chunk = malloc(CHUNK);
    ditto_status status =
        chunk == NULL ? DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to read %s", path) : check_file(fd, path, chunk);
    free(chunk);
    if (status != DITTO_OK)
        close(fd);
    else
        *out = fd;
    return status;
}
