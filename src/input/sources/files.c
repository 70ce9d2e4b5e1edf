/* src/input/sources/files.c - lists of files. */
#include "input/sources/files.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- making -- */

/* What may be waited for, or has no size, is not opened: a FIFO, a folder, a device. */
static ditto_status look_at(struct dti_file *file)
{
    struct stat about;
    if (stat(file->name, &about) != 0)
        return DTI_FAIL_ERRNO(errno == ENOENT || errno == ENOTDIR ? DITTO_ERR_NOT_FOUND : DITTO_ERR_IO, errno, "%s",
                              file->name);
    if (!S_ISREG(about.st_mode))
        return DTI_FAIL(DITTO_ERR_IO, "%s is not a regular file: it is read at several places, and more than once",
                        file->name);
    if (access(file->name, R_OK) != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "%s", file->name);
    file->bytes = (uint64_t)about.st_size;
    return DITTO_OK;
}

static ditto_status add(struct dti_files *files, const char *name)
{
    if ((files->count & (files->count - 1)) == 0) { /* room doubles */
        size_t room = files->count != 0 ? 2 * (size_t)files->count : 1;
        struct dti_file *grown = realloc(files->file, room * sizeof *grown);
        if (grown == NULL)
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a list of files");
        files->file = grown;
    }
    struct dti_file *file = &files->file[files->count];
    *file = (struct dti_file){ .name = strdup(name), .descriptor = -1 };
    if (file->name == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a file name");
    files->count++;
    return look_at(file);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct dti_file *)left)->name, ((const struct dti_file *)right)->name);
}

static ditto_status add_matches(struct dti_files *files, const char *pattern)
{
    glob_t found = { 0 };
    int failed = glob(pattern, GLOB_NOSORT, NULL, &found);
    ditto_status status = DITTO_OK;
    if (failed == GLOB_NOMATCH)
        status = DTI_FAIL(DITTO_ERR_NOT_FOUND, "no file matches %s", pattern);
    else if (failed != 0)
        status = DTI_FAIL(failed == GLOB_NOSPACE ? DITTO_ERR_NO_MEMORY : DITTO_ERR_IO,
                          "%s: its folders can't be searched", pattern);
    uint32_t first = files->count;
    for (size_t i = 0; failed == 0 && i < found.gl_pathc && status == DITTO_OK; i++)
        status = add(files, found.gl_pathv[i]);
    globfree(&found);
    if (files->count >
        first) /* by bytes, not by the locale: the order of rows must not depend on the user's language */
        qsort(files->file + first, files->count - first, sizeof *files->file, by_name);
    return status;
}

ditto_status dti_files_create(struct dti_files *files, const ditto_files *names)
{
    *files = (struct dti_files){ .made = true };
    pthread_mutex_init(&files->lock, NULL);
    for (uint32_t i = 0; i < names->count; i++) {
        if (names->names[i] == NULL || names->names[i][0] == '\0')
            return DTI_FAIL(DITTO_ERR_INVALID, "files->names[%u] is NULL or empty", i);
        DTI_TRY(names->flags & DITTO_FILES_GLOB ? add_matches(files, names->names[i]) : add(files, names->names[i]));
    }
    return DITTO_OK;
}

void dti_files_free(struct dti_files *files)
{
    if (!files->made)
        return;
    for (uint32_t i = 0; i < files->count; i++) {
        if (files->file[i].descriptor >= 0)
            close(files->file[i].descriptor);
        free(files->file[i].name);
    }
    free(files->file);
    pthread_mutex_destroy(&files->lock);
}

/* -- reading -- */

/* Under the lock: closes one that nobody reads from. There may be none: then there are more threads than files that may be open. */
static void close_one(struct dti_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        struct dti_file *file = &files->file[files->hand];
        files->hand = files->hand + 1 < files->count ? files->hand + 1 : 0;
        if (file->descriptor >= 0 && file->pins == 0) {
            close(file->descriptor);
            file->descriptor = -1;
            files->open--;
            return;
        }
    }
}

static ditto_status pin(struct dti_files *files, uint32_t number, int *descriptor)
{
    struct dti_file *file = &files->file[number];
    int failed = 0;
    pthread_mutex_lock(&files->lock);
    if (file->descriptor < 0) {
        if (files->open >= DTI_FILES_OPEN)
            close_one(files);
        file->descriptor = open(file->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it may have become a FIFO */
        failed = file->descriptor < 0 ? errno : 0;
        files->open += failed == 0;
    }
    file->pins += failed == 0;
    *descriptor = file->descriptor;
    pthread_mutex_unlock(&files->lock);
    if (failed != 0)
        return DTI_FAIL_ERRNO(failed == ENOENT ? DITTO_ERR_NOT_FOUND : DITTO_ERR_IO, failed, "%s", file->name);
    return DITTO_OK;
}

static void unpin(struct dti_files *files, uint32_t number)
{
    pthread_mutex_lock(&files->lock);
    files->file[number].pins--;
    pthread_mutex_unlock(&files->lock);
}

ditto_status dti_files_read(struct dti_files *files, uint32_t file, uint64_t offset, void *to, size_t bytes,
                            size_t *got)
{
    int descriptor;
    *got = 0;
    DTI_TRY(pin(files, file, &descriptor));
    ssize_t more = 1;
    while (*got < bytes && more != 0) {
        more = pread(descriptor, (char *)to + *got, bytes - *got, (off_t)(offset + *got));
        if (more < 0 && errno != EINTR)
            break;
        *got += more > 0 ? (size_t)more : 0;
    }
    int failed = more < 0 ? errno : 0;
    unpin(files, file);
    if (more < 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, failed, "%s: reading at offset %llu", files->file[file].name,
                              (unsigned long long)(offset + *got));
    return DITTO_OK;
}

ditto_status dti_files_read_all(struct dti_files *files, uint32_t file, uint64_t offset, void *to, size_t bytes,
                                const char *record)
{
    size_t got;
    DTI_TRY(dti_files_read(files, file, offset, to, bytes, &got));
    if (got < bytes)
        return DTI_FAIL(DITTO_ERR_IO, "%s: %s%sthe file ends at offset %llu: it became shorter while it was read",
                        files->file[file].name, record != NULL ? record : "", record != NULL ? ": " : "",
                        (unsigned long long)(offset + got));
    return DITTO_OK;
}

void dti_files_want(struct dti_files *files, uint32_t file, uint64_t offset, uint64_t bytes)
{
    int descriptor;
    if (pin(files, file, &descriptor) != DITTO_OK)
        return;
    posix_fadvise(descriptor, (off_t)offset, (off_t)bytes, POSIX_FADV_WILLNEED);
    unpin(files, file);
}

uint32_t dti_files_next(const struct dti_files *files, uint32_t first, uint32_t number_of_first, uint32_t shards,
                        uint32_t shard)
{
    while (first < files->count && shards > 1 && (number_of_first + first) % shards != shard)
        first++;
    return first;
}
