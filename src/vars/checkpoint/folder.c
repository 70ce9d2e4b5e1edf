/* src/vars/checkpoint/folder.c - see folder.h. */
#include "vars/checkpoint/folder.h"
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENDING  ".h5"
#define PARTIAL ".h5.partial"

static char *path_of(const char *folder, const char *prefix, int64_t step, const char *ending)
{
    size_t length = strlen(folder) + strlen(prefix) + strlen(ending) + 24;
    char *path = malloc(length);
    if (path != NULL)
        snprintf(path, length, "%s/%s-%" PRId64 "%s", folder, prefix, step, ending);
    return path;
}

char *dti_folder_path(const char *folder, const char *prefix, int64_t step)
{
    return path_of(folder, prefix, step, ENDING);
}

/* Is it one of the prefix's, with this ending? Then its step: digits alone, as they are written here. */
static bool read_step(const char *name, const char *prefix, const char *ending, int64_t *step)
{
    size_t length = strlen(prefix);
    char *end;
    if (strncmp(name, prefix, length) != 0 || name[length] != '-' || name[length + 1] < '0' || name[length + 1] > '9')
        return false;
    errno = 0;
    *step = strtoll(name + length + 1, &end, 10);
    bool plain = name[length + 1] != '0' || end == name + length + 2;
    return errno == 0 && plain && strcmp(end, ending) == 0;
}

struct steps {
    int64_t *step; /* [count] */
    size_t count, room;
};

static bool add_step(struct steps *s, int64_t step)
{
    if (s->count == s->room) {
        size_t room = s->room * 2 + 16;
        int64_t *grown = realloc(s->step, room * sizeof *grown);
        if (grown == NULL)
            return false;
        s->step = grown;
        s->room = room;
    }
    s->step[s->count++] = step;
    return true;
}

static int newest_first(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a < b) - (a > b);
}

/* errno of what failed; 0: all are listed, newest first. */
static int list_steps(const char *folder, const char *prefix, const char *ending, struct steps *out)
{
    *out = (struct steps){ .count = 0 };
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return errno;
    bool good = true;
    errno = 0;
    for (const struct dirent *e; good && (e = readdir(dir)) != NULL;) {
        int64_t step;
        if (read_step(e->d_name, prefix, ending, &step))
            good = add_step(out, step);
        errno = 0;
    }
    int failed = good ? errno : ENOMEM;
    closedir(dir);
    if (out->count != 0)
        qsort(out->step, out->count, sizeof *out->step, newest_first);
    return failed;
}

ditto_status dti_folder_newest(const char *folder, const char *prefix, int64_t *step)
{
    struct steps steps;
    int failed = list_steps(folder, prefix, ENDING, &steps);
    ditto_status status = DITTO_OK;
    if (failed != 0 && failed != ENOENT)
        status = DTI_FAIL_ERRNO(failed == ENOMEM ? DITTO_ERR_NO_MEMORY : DITTO_ERR_IO, failed, "listing the folder %s",
                                folder);
    else if (steps.count == 0)
        status = DTI_FAIL(DITTO_ERR_NOT_FOUND, "there is no checkpoint %s-<step>" ENDING " in %s", prefix, folder);
    else
        *step = steps.step[0];
    free(steps.step);
    return status;
}

static void remove_from(const char *folder, const char *prefix, const char *ending, uint32_t first, int64_t but)
{
    struct steps steps;
    (void)list_steps(folder, prefix, ending, &steps);
    for (size_t i = first; i < steps.count; i++) {
        char *path = path_of(folder, prefix, steps.step[i], ending);
        if (path != NULL && steps.step[i] != but)
            (void)unlink(path);
        free(path);
    }
    free(steps.step);
}

void dti_folder_prune(const char *folder, const char *prefix, uint32_t keep, int64_t written)
{
    remove_from(folder, prefix, ENDING, keep, written);
}

void dti_folder_clear(const char *folder, const char *prefix)
{
    remove_from(folder, prefix, PARTIAL, 0, -1);
}
