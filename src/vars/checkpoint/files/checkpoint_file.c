/* src/vars/checkpoint/files/checkpoint_file.c - writes, reads and checks a checkpoint's file; see
 * checkpoint_files.h. */
#include "base/errors/status.h"
#include "vars/checkpoint/files/checkpoint_files.h"
#include "vars/checkpoint/files/little_endian.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define CHUNK ((size_t)1 << 20) /* bytes that are read or written, and summed while they are in the cache */

static const char magic[8] = "DITTOCKP";
static const char text[] = "\na checkpoint of ditto: HDF5 after this block of 4096 bytes\n";

/* Offsets in the user block. */
enum { AT_MAGIC = 0, AT_FORMAT = 8, AT_BLOCK = 12, AT_LENGTH = 16, AT_SUM = 24, AT_TEXT = 40 };

static const unsigned char zeros[4096];

/* -- Complete reads and writes -- */

ditto_status dti_checkpoint_file_read(int fd, void *to, size_t bytes, uint64_t offset, const char *path)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, (char *)to + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return DTI_FAIL_ERRNO(errno == ENOMEM ? DITTO_ERR_NO_MEMORY : DITTO_ERR_IO, errno,
                                  "reading %s at byte %llu", path, (unsigned long long)(offset + done));
        if (got == 0)
            return DTI_FAIL(DITTO_ERR_CORRUPT, "%s ends at byte %llu: it was truncated while it was read",
                            path, (unsigned long long)(offset + done));
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
                                  "writing %s at byte %llu; the previous checkpoint is unchanged", path,
                                  (unsigned long long)(offset + done));
        done += (size_t)put;
    }
    return DITTO_OK;
}

/* -- The checksum -- */

/* Adds bytes to the checksum. XXH3 fails only for NULL, but its result is checked all the same. */
static ditto_status sum_up(XXH3_state_t *sum, const void *bytes, size_t count, const char *path)
{
    if (XXH3_128bits_update(sum, bytes, count) != XXH_OK)
        return DTI_FAIL(DITTO_ERR_SYSTEM, "%s: xxHash refuses to sum %zu bytes", path, count);
    return DITTO_OK;
}

/* Begins the checksum with the user block, in which the checksum itself is zeros. */
static ditto_status begin_sum(XXH3_state_t *sum, const unsigned char *block, const char *path)
{
    if (XXH3_128bits_reset(sum) != XXH_OK)
        return DTI_FAIL(DITTO_ERR_SYSTEM, "%s: xxHash refuses to begin a sum", path);
    return sum_up(sum, block, DTI_USER_BLOCK, path);
}

static void end_sum(const XXH3_state_t *sum, XXH128_canonical_t *out)
{
    XXH128_canonicalFromHash(out, XXH3_128bits_digest(sum));
}

/* -- Writing -- */

/* Reserves disk space, so that a full disk is noticed before the first value is written. If the file system
 * cannot reserve space, only the length of the file is set. The same is done if a signal has interrupted the
 * call. tmpfs then undoes its reservation, and periodic signals would interrupt every further attempt. */
static ditto_status reserve(int fd, const char *path, uint64_t bytes)
{
    int failed = fallocate(fd, 0, 0, (off_t)bytes) != 0 ? errno : 0;
    if (failed == EOPNOTSUPP || failed == ENOSYS || failed == EPERM || failed == EINVAL || failed == ENODEV ||
        failed == EINTR)
        failed = ftruncate(fd, (off_t)bytes) != 0 ? errno : 0;
    if (failed != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, failed,
                              "%s needs %llu bytes; the previous checkpoint is unchanged", path,
                              (unsigned long long)bytes);
    return DITTO_OK;
}

static ditto_status sum_zeros(XXH3_state_t *sum, uint64_t count, const char *path)
{
    for (uint64_t done = 0; done < count;) {
        size_t bytes = count - done < sizeof zeros ? (size_t)(count - done) : sizeof zeros;
        DTI_TRY(sum_up(sum, zeros, bytes, path));
        done += bytes;
    }
    return DITTO_OK;
}

/* Writes an extent to the file and adds it to the checksum in one pass. It does not call sync_file_range,
 * because that made it slower, at 0.50 of the speed of dd instead of 0.78. */
static ditto_status write_extent(int fd, const struct dti_file_extent *e, XXH3_state_t *sum, const char *path)
{
    for (size_t at = 0; at < e->bytes;) {
        size_t bytes = e->bytes - at < CHUNK ? e->bytes - at : CHUNK;
        DTI_TRY(write_all(fd, (const char *)e->data + at, bytes, e->offset + at, path));
        DTI_TRY(sum_up(sum, (const char *)e->data + at, bytes, path));
        at += bytes;
    }
    return DITTO_OK;
}

ditto_status dti_checkpoint_file_fill(int fd, const char *path, uint64_t file_bytes,
                                      const struct dti_file_extent *extent, size_t extents)
{
    unsigned char block[DTI_USER_BLOCK];
    XXH128_canonical_t checksum;
    XXH3_state_t sum;
    uint64_t at = DTI_USER_BLOCK;
    DTI_TRY(reserve(fd, path, file_bytes));
    memset(block, 0, DTI_USER_BLOCK);
    memcpy(block + AT_MAGIC, magic, sizeof magic);
    dti_put_number(block + AT_FORMAT, DTI_CHECKPOINT_FORMAT, 4);
    dti_put_number(block + AT_BLOCK, DTI_USER_BLOCK, 4);
    dti_put_number(block + AT_LENGTH, file_bytes, 8);
    memcpy(block + AT_TEXT, text, sizeof text - 1);
    DTI_TRY(begin_sum(&sum, block, path));
    for (size_t i = 0; i < extents; i++) {
        DTI_TRY(sum_zeros(&sum, extent[i].offset - at, path));
        DTI_TRY(write_extent(fd, &extent[i], &sum, path));
        at = extent[i].offset + extent[i].bytes;
    }
    DTI_TRY(sum_zeros(&sum, file_bytes - at, path));
    end_sum(&sum, &checksum);
    memcpy(block + AT_SUM, &checksum, sizeof checksum);
    DTI_TRY(write_all(fd, block, sizeof block, 0, path));
    int failed;
    do
        failed = fsync(fd) != 0 ? errno : 0;
    while (failed == EINTR);
    if (failed != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, failed, "flushing %s; the previous checkpoint is unchanged",
                              path);
    return DITTO_OK;
}

/* A file's name is on the disk when its folder has been flushed. */
ditto_status dti_checkpoint_flush_folder(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') /* "a/" is the folder "a" in the folder "." */
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    char *folder = length == 0 ? strdup(".") : strndup(path, length);
    if (folder == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory for a path");
    int fd, failed;
    do
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    do
        failed = fd < 0 || fsync(fd) != 0 ? errno : 0;
    while (fd >= 0 && failed == EINTR);
    if (fd >= 0)
        close(fd);
    ditto_status status = failed == 0 || failed == EINVAL /* EINVAL: the file system cannot flush folders */
                              ? DITTO_OK
                              : DTI_FAIL_ERRNO(DITTO_ERR_IO, failed, "flushing the folder %s",
                                               DTI_SHOWN(folder));
    free(folder);
    return status;
}

/* -- Checking -- */

static ditto_status check_block(const unsigned char *block, uint64_t length, const char *path)
{
    if (memcmp(block + AT_MAGIC, magic, sizeof magic) != 0)
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s is not a checkpoint of ditto: its first bytes are different",
                        path);
    if (dti_get_number(block + AT_FORMAT, 4) > DTI_CHECKPOINT_FORMAT)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "%s has format %llu, and this version reads up to %u: read it with the version that wrote it, "
            "or a newer one",
            path, (unsigned long long)dti_get_number(block + AT_FORMAT, 4), DTI_CHECKPOINT_FORMAT);
    if (dti_get_number(block + AT_LENGTH, 8) != length)
        return DTI_FAIL(DITTO_ERR_CORRUPT,
                        "%s has %llu bytes and should have %llu: it was truncated or extended", path,
                        (unsigned long long)length, (unsigned long long)dti_get_number(block + AT_LENGTH, 8));
    return DITTO_OK;
}

/* Adds all bytes after the user block to the checksum. */
static ditto_status sum_file(int fd, uint64_t length, XXH3_state_t *sum, unsigned char *chunk,
                             const char *path)
{
    for (uint64_t at = DTI_USER_BLOCK; at < length;) {
        size_t bytes = length - at < CHUNK ? (size_t)(length - at) : CHUNK;
        DTI_TRY(dti_checkpoint_file_read(fd, chunk, bytes, at, path));
        DTI_TRY(sum_up(sum, chunk, bytes, path));
        at += bytes;
    }
    return DITTO_OK;
}

static ditto_status check_sum(int fd, unsigned char *block, uint64_t length, const char *path)
{
    XXH128_canonical_t found, written;
    XXH3_state_t sum;
    unsigned char *chunk = malloc(CHUNK);
    if (chunk == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory to read %s", path);
    memcpy(&written, block + AT_SUM, sizeof written);
    memset(block + AT_SUM, 0, sizeof written);
    ditto_status status = begin_sum(&sum, block, path);
    if (status == DITTO_OK)
        status = sum_file(fd, length, &sum, chunk, path);
    free(chunk);
    DTI_TRY(status);
    end_sum(&sum, &found);
    if (memcmp(&found, &written, sizeof found) != 0)
        return DTI_FAIL(DITTO_ERR_CORRUPT,
                        "%s: its checksum does not fit its contents, so the file is damaged", path);
    return DITTO_OK;
}

const char *dti_checkpoint_file_kind(unsigned mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "a regular file";
    case S_IFDIR:
        return "a directory";
    case S_IFIFO:
        return "a FIFO";
    case S_IFLNK:
        return "a symbolic link";
    case S_IFSOCK:
        return "a socket";
    default:
        return "a device";
    }
}

const char *dti_path_shown(const char *path, char *buffer)
{
    size_t length = strlen(path);
    if (length < DTI_SHOWN_BYTES)
        snprintf(buffer, DTI_SHOWN_BYTES, "%s", path);
    else
        snprintf(buffer, DTI_SHOWN_BYTES, "...%s", path + length - (DTI_SHOWN_BYTES - 4));
    return buffer;
}

static ditto_status check_regular(const struct stat *st, const char *path)
{
    if (!S_ISREG(st->st_mode))
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s is %s: a checkpoint is a regular file", path,
                        dti_checkpoint_file_kind(st->st_mode));
    return DITTO_OK;
}

ditto_status dti_checkpoint_file_check(int fd, const char *path, uint64_t *file_bytes)
{
    unsigned char block[DTI_USER_BLOCK];
    struct stat st;
    if (fstat(fd, &st) != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "reading the length of %s", path);
    DTI_TRY(check_regular(&st, path));
    if ((uint64_t)st.st_size < DTI_USER_BLOCK)
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s has %llu bytes: a checkpoint has more than %u", path,
                        (unsigned long long)st.st_size, DTI_USER_BLOCK);
    DTI_TRY(dti_checkpoint_file_read(fd, block, sizeof block, 0, path));
    DTI_TRY(check_block(block, (uint64_t)st.st_size, path));
    DTI_TRY(check_sum(fd, block, (uint64_t)st.st_size, path));
    *file_bytes = (uint64_t)st.st_size;
    return DITTO_OK;
}

static ditto_status fail_open(const char *path, int failed)
{
    ditto_status status = failed == ENOENT || failed == ENOTDIR ? DITTO_ERR_NOT_FOUND
                          : failed == ENOMEM                    ? DITTO_ERR_NO_MEMORY
                                                                : DITTO_ERR_IO;
    return DTI_FAIL_ERRNO(status, failed, "opening %s", DTI_SHOWN(path));
}

ditto_status dti_checkpoint_file_open(const char *path, int *out, uint64_t *file_bytes)
{
    struct stat st;
    int fd;
    if (stat(path, &st) != 0)
        return fail_open(path, errno);
    DTI_TRY(check_regular(&st, DTI_SHOWN(path))); /* checked first, because opening a device may affect it */
    do
        /* O_NONBLOCK: open does not wait if the file has been replaced by a FIFO. */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return fail_open(path, errno);
    ditto_status status = dti_checkpoint_file_check(fd, DTI_SHOWN(path), file_bytes);
    if (status != DITTO_OK)
        close(fd); /* errors are ignored, because the file was only read */
    else
        *out = fd;
    return status;
}
