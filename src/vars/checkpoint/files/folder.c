/* src/vars/checkpoint/files/folder.c - the checkpoints of a folder; see checkpoint_files.h. */
#include "base/errors/status.h"
#include "vars/checkpoint/files/checkpoint_files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING ".h5"

/* The ending of temporary files of earlier versions, which had no digits in their names and no lock. */
#define PARTIAL ".h5.partial"

char *dti_folder_path(const char *folder, const char *prefix, int64_t step)
{
    size_t length = strlen(folder) + strlen(prefix) + sizeof ENDING + 24;
    char *path = malloc(length);
    if (path != NULL)
        snprintf(path, length, "%s/%s-%" PRId64 ENDING, folder, prefix, step);
    return path;
}

/* Returns true, and stores the step, if the name is <prefix>-<step><ending>. The step must have only digits,
 * and no leading zeros, as dti_folder_path writes it. */
static bool read_step(const char *name, const char *prefix, const char *ending, int64_t *step)
{
    size_t length = strlen(prefix);
    char *end;
    if (strncmp(name, prefix, length) != 0 || name[length] != '-' || name[length + 1] < '0' ||
        name[length + 1] > '9')
        return false;
    errno = 0;
    *step = strtoll(name + length + 1, &end, 10);
    bool plain = name[length + 1] != '0' || end == name + length + 2;
    return errno == 0 && plain && strcmp(end, ending) == 0;
}

struct steps {
    int64_t *step; /* [count] */
    size_t count, capacity;
};

static bool add_step(struct steps *s, int64_t step)
{
    if (s->count == s->capacity) {
        size_t capacity = s->capacity * 2 + 16;
        int64_t *grown = realloc(s->step, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        s->step = grown;
        s->capacity = capacity;
    }
    s->step[s->count++] = step;
    return true;
}

static int newest_first(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a < b) - (a > b);
}

/* Returns 1 for a regular file or a link to one, and 0 for anything else and for a file that no longer
 * exists. Returns -1, with errno set, if this cannot be determined. */
static int is_file(DIR *dir, const char *name)
{
    struct stat st;
    if (fstatat(dirfd(dir), name, &st, 0) == 0)
        return S_ISREG(st.st_mode);
    return errno == ENOENT || errno == ELOOP ? 0 : -1;
}

/* Lists the steps of all checkpoints, newest first. A directory or a FIFO with such a name is not a
 * checkpoint. Returns 0, or the errno of the call that failed. */
static int list_steps(const char *folder, const char *prefix, struct steps *out)
{
    *out = (struct steps){ .count = 0 };
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return errno;
    int failed = 0;
    errno = 0;
    for (const struct dirent *e; failed == 0 && (e = readdir(dir)) != NULL;) {
        int64_t step;
        int file = read_step(e->d_name, prefix, ENDING, &step) ? is_file(dir, e->d_name) : 0;
        if (file < 0)
            failed = errno;
        else if (file > 0 && !add_step(out, step))
            failed = ENOMEM;
        errno = 0; /* readdir sets it if it fails, and leaves it at the end of the folder */
    }
    failed = failed == 0 ? errno : failed;
    closedir(dir);
    if (out->count != 0)
        qsort(out->step, out->count, sizeof *out->step, newest_first);
    return failed;
}

ditto_status dti_folder_newest(const char *folder, const char *prefix, int64_t *step)
{
    struct steps steps;
    int failed = list_steps(folder, prefix, &steps);
    ditto_status status = DITTO_OK;
    if (failed != 0 && failed != ENOENT)
        status = DTI_FAIL_ERRNO(failed == ENOMEM ? DITTO_ERR_NO_MEMORY : DITTO_ERR_IO, failed,
                                "listing the folder %s", DTI_SHOWN(folder));
    else if (steps.count == 0)
        status = DTI_FAIL(DITTO_ERR_NOT_FOUND, "there is no checkpoint %.100s-<step>" ENDING " in %s", prefix,
                          DTI_SHOWN(folder));
    else
        *step = steps.step[0];
    free(steps.step);
    return status;
}

/* The list is incomplete if list_steps fails. A file that has `keep` newer files in a part of the list also
 * has them in the complete list, so no file is removed by mistake. */
void dti_folder_prune(const char *folder, const char *prefix, uint32_t keep, int64_t written)
{
    struct steps steps;
    (void)list_steps(folder, prefix, &steps);
    for (size_t i = keep; i < steps.count; i++) {
        char *path = dti_folder_path(folder, prefix, steps.step[i]);
        if (path != NULL && steps.step[i] != written)
            (void)unlink(path);
        free(path);
    }
    free(steps.step);
}

/* Returns true if this is the name of a temporary file of a checkpoint with the prefix. */
static bool is_left(const char *name, const char *prefix)
{
    int64_t step;
    char base[NAME_MAX + 1];
    size_t length = dti_partial_base(name);
    if (length == 0)
        return read_step(name, prefix, PARTIAL, &step);
    snprintf(base, sizeof base, "%.*s", (int)length, name);
    return read_step(base, prefix, ENDING, &step);
}

void dti_folder_clear(const char *folder, const char *prefix)
{
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (!is_left(e->d_name, prefix))
            continue;
        size_t capacity = strlen(folder) + strlen(e->d_name) + 2;
        char *path = malloc(capacity);
        if (path != NULL) {
            snprintf(path, capacity, "%s/%s", folder, e->d_name);
            dti_partial_remove_left(path);
        }
        free(path);
    }
    closedir(dir);
}
