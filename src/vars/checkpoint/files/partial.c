/* src/vars/checkpoint/files/partial.c - the temporary files that checkpoints are written to; see
 * checkpoint_files.h. */
#include "base/errors/status.h"
#include "vars/checkpoint/files/checkpoint_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ENDING    ".partial"
#define DIGITS    16
#define MOST_BASE 200 /* bytes; the whole name is shorter than NAME_MAX */
#define ATTEMPTS  100

/* -- Names -- */

/* Returns the offset of the last component of a path. */
static size_t base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

size_t dti_partial_base(const char *name)
{
    size_t length = strlen(name), tail = 1 + DIGITS + sizeof ENDING - 1;
    if (length <= tail || strcmp(name + length - (sizeof ENDING - 1), ENDING) != 0 ||
        name[length - tail] != '.' || strspn(name + length - tail + 1, "0123456789abcdef") != DIGITS)
        return 0;
    return length - tail;
}

/* Returns a number for a new name. Names must differ but need not be secret, because O_EXCL detects an
 * existing file. */
static uint64_t draw(void)
{
    static _Atomic uint64_t count;
    struct timespec now = { .tv_nsec = 0 };
    (void)clock_gettime(CLOCK_REALTIME, &now); /* if it fails, pid and count still make the name unique */
    /* relaxed: it is only important that no two calls in this process get the same number. */
    uint64_t mixed = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) +
                     (uint64_t)now.tv_nsec * 1000003u + ((uint64_t)now.tv_sec << 20) +
                     ((uint64_t)getpid() << 40);
    mixed ^= mixed >> 31;
    mixed *= 0x9e3779b97f4a7c15u;
    return mixed ^ mixed >> 29;
}

/* -- Locks -- */

enum lock { LOCKED, TAKEN, NO_LOCKS };

static enum lock try_lock(int fd)
{
    int failed;
    do
        failed = flock(fd, LOCK_EX | LOCK_NB) != 0 ? errno : 0;
    while (failed == EINTR);
    return failed == 0 ? LOCKED : failed == EWOULDBLOCK ? TAKEN : NO_LOCKS;
}

/* -- Files that killed processes have left -- */

void dti_partial_remove_left(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    if (try_lock(fd) == LOCKED)
        (void)unlink(path); /* a file that cannot be removed stays and does no harm */
    close(fd);
}

/* Removes all temporary files that were left for this path, so that a program that is killed in each of its
 * runs does not fill the disk. */
static void remove_all_left(const char *path)
{
    size_t base = base_of(path), length = strlen(path + base);
    size_t kept = length < MOST_BASE ? length : MOST_BASE;
    char *folder = base != 0 ? strndup(path, base) : strdup(".");
    DIR *dir = folder != NULL ? opendir(folder) : NULL;
    free(folder);
    if (dir == NULL)
        return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (dti_partial_base(e->d_name) != kept || strncmp(e->d_name, path + base, kept) != 0)
            continue;
        size_t capacity = base + strlen(e->d_name) + 1;
        char *left = malloc(capacity);
        if (left != NULL) {
            snprintf(left, capacity, "%.*s%s", (int)base, path, e->d_name);
            dti_partial_remove_left(left);
        }
        free(left);
    }
    closedir(dir);
}

/* -- The file of this save -- */

/* Refuses a path at which there is something other than a regular file. Renaming would replace a device, a
 * FIFO or a link by a regular file. */
static ditto_status check_target(const char *path)
{
    struct stat st;
    if (path[base_of(path)] == '\0')
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, EISDIR, "\"%s\" names a folder, and a checkpoint is a file",
                              DTI_SHOWN(path));
    if (lstat(path, &st) != 0) {
        if (errno == ENOENT)
            return DITTO_OK;
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "examining %s", DTI_SHOWN(path));
    }
    if (S_ISREG(st.st_mode))
        return DITTO_OK;
    return DTI_FAIL_ERRNO(
        DITTO_ERR_IO,
        S_ISDIR(st.st_mode)   ? EISDIR
        : S_ISLNK(st.st_mode) ? ELOOP
                              : EEXIST,
        "%s is %s, and a save replaces regular files only: remove it, or save to another path",
        DTI_SHOWN(path), dti_checkpoint_file_kind(st.st_mode));
}

/* Creates and locks the file p->name. If it fails, *again says whether another name may succeed. That is so
 * if a file of that name exists, if a signal interrupted the call, or if another process locked or removed
 * the new file before it was locked here. */
static ditto_status open_new(const char *path, struct dti_partial *p, bool *again)
{
    struct stat st;
    *again = false;
    p->fd = open(p->name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (p->fd < 0) {
        *again = errno == EEXIST || errno == EINTR;
        return DTI_FAIL_ERRNO(errno == ENOMEM ? DITTO_ERR_NO_MEMORY : DITTO_ERR_IO, errno,
                              "creating a temporary file beside %s", DTI_SHOWN(path));
    }
    enum lock lock = try_lock(p->fd);
    int failed = fstat(p->fd, &st) != 0 ? errno : 0;
    if (failed == 0 && lock != TAKEN && st.st_nlink != 0)
        return DITTO_OK;
    *again = failed == 0;
    (void)unlink(p->name);
    close(p->fd); /* errors are ignored, because the file is empty */
    p->fd = -1;
    return DTI_FAIL_ERRNO(DITTO_ERR_IO, failed != 0 ? failed : EAGAIN, "creating a temporary file beside %s",
                          DTI_SHOWN(path));
}

ditto_status dti_partial_create(const char *path, struct dti_partial *out)
{
    bool again = true;
    ditto_status status = DITTO_ERR_IO;
    *out = (struct dti_partial){ .fd = -1 };
    DTI_TRY(check_target(path));
    remove_all_left(path);
    size_t base = base_of(path), kept = strlen(path + base) < MOST_BASE ? strlen(path + base) : MOST_BASE;
    size_t capacity = base + kept + 1 + DIGITS + sizeof ENDING;
    for (int i = 0; again && i < ATTEMPTS; i++) {
        free(out->name);
        out->name = malloc(capacity);
        if (out->name == NULL)
            return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory for a path");
        snprintf(out->name, capacity, "%.*s.%016llx" ENDING, (int)(base + kept), path,
                 (unsigned long long)draw());
        status = open_new(path, out, &again);
    }
    if (status != DITTO_OK)
        free(out->name);
    return status;
}

ditto_status dti_partial_publish(struct dti_partial *p, const char *path)
{
    ditto_status status = DITTO_OK;
    if (rename(p->name, path) != 0) { /* it is still locked, so no other process removes it */
        status = DTI_FAIL_ERRNO(DITTO_ERR_IO, errno,
                                "renaming a temporary file to %s; the previous checkpoint is unchanged",
                                DTI_SHOWN(path));
        dti_partial_discard(p);
        return status;
    }
    if (close(p->fd) != 0 && errno != EINTR)
        status = DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "closing %s, which was flushed before", DTI_SHOWN(path));
    free(p->name);
    return status == DITTO_OK ? dti_checkpoint_flush_folder(path) : status;
}

void dti_partial_discard(struct dti_partial *p)
{
    (void)unlink(p->name); /* if this fails, a later save removes the file, which is not locked then */
    close(p->fd);
    free(p->name);
}
