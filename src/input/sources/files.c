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

/* -- what is open -- */

/* Lists that have files open, of the whole process; the first has waited longest to give one up. */
static struct {
    pthread_mutex_t lock;
    struct dti_files *first, *last;
    uint32_t count; /* of open files */
} opened = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void enter(struct dti_files *files)
{
    files->before = opened.last;
    files->next = NULL;
    *(opened.last != NULL ? &opened.last->next : &opened.first) = files;
    opened.last = files;
}

static void leave(struct dti_files *files)
{
    *(files->before != NULL ? &files->before->next : &opened.first) = files->next;
    *(files->next != NULL ? &files->next->before : &opened.last) = files->before;
}

/* Closes one that nobody reads from, if there is one; both locks are held. */
static bool close_idle(struct dti_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        struct dti_file *file = &files->file[files->hand];
        files->hand = files->hand + 1 < files->count ? files->hand + 1 : 0;
        if (file->descriptor < 0 || file->pins > 0)
            continue;
        close(file->descriptor);
        file->descriptor = -1;
        opened.count--;
        leave(files); /* behind the others */
        if (--files->open > 0)
            enter(files);
        return true;
    }
    return false;
}

/* Before one more is opened, by who holds the list's lock. If all are being read from, there are more threads than files that may be
 * open, and one more does no harm. */
static void make_way(struct dti_files *files)
{
    pthread_mutex_lock(&opened.lock);
    bool enough = opened.count < DTI_FILES_OPEN || close_idle(files);
    for (struct dti_files *other = opened.first, *next; other != NULL && !enough; other = next) {
        next = other->next;
        if (other != files && pthread_mutex_trylock(&other->lock) == 0) {
            enough = close_idle(other);
            pthread_mutex_unlock(&other->lock);
        }
    }
    pthread_mutex_unlock(&opened.lock);
}

void dti_files_free(struct dti_files *files)
{
    if (!files->made)
        return;
    pthread_mutex_lock(&opened.lock); /* nobody finds the list afterwards */
    while (files->open > 0 && close_idle(files))
        ;
    pthread_mutex_unlock(&opened.lock);
    for (uint32_t i = 0; i < files->count; i++)
        free(files->file[i].name);
    free(files->file);
    pthread_mutex_destroy(&files->lock);
}

/* -- reading -- */

/* Opens a file of a list whose lock is held. 0, or errno. */
static int open_file(struct dti_files *files, struct dti_file *file)
{
    make_way(files);
    file->descriptor = open(file->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it may have become a FIFO */
    if (file->descriptor < 0)
        return errno;
    pthread_mutex_lock(&opened.lock);
    opened.count++;
    if (files->open++ == 0)
        enter(files);
    pthread_mutex_unlock(&opened.lock);
    return 0;
}

static ditto_status pin(struct dti_files *files, uint32_t number, int *descriptor)
{
    struct dti_file *file = &files->file[number];
    int failed = 0;
    pthread_mutex_lock(&files->lock);
    if (file->descriptor < 0)
        failed = open_file(files, file);
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
                                const char *what, uint64_t number)
{
    size_t got;
    DTI_TRY(dti_files_read(files, file, offset, to, bytes, &got));
    if (got < bytes)
        return DTI_FAIL(DITTO_ERR_IO, "%s: %s %llu: the file ends at offset %llu: it became shorter while it was read",
                        files->file[file].name, what, (unsigned long long)number, (unsigned long long)(offset + got));
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
