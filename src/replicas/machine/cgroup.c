/* src/replicas/machine/cgroup.c - reads the CPU quotas of cgroup v1 and v2.
 * Source: kernel Documentation/admin-guide/cgroup-v2.rst (cpu.max), scheduler/sched-bwc.rst;
 * proc_pid_mountinfo(5). */
#include "replicas/machine/limits.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads one or two numbers from the file directory/name. Returns how many there were, or a number below 1 if
 * there were none. */
static int read_numbers(const char *directory, const char *name, double *first, double *second)
{
    char path[PATH_MAX], text[128];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path ||
        !dti_read_file(path, text, sizeof text))
        return 0;
    return sscanf(text, "%lf %lf", first, second);
}

/* Returns quota / period of one group directory, or 0 if there is no limit. */
static double group_quota(const char *directory, bool version_2)
{
    double quota = -1, period = 0, none = 0;
    if (version_2) {
        /* Without a limit the file has "max 100000", which does not begin with a number. */
        if (read_numbers(directory, "cpu.max", &quota, &period) != 2)
            return 0;
    } else if (read_numbers(directory, "cpu.cfs_quota_us", &quota, &none) < 1 ||
               read_numbers(directory, "cpu.cfs_period_us", &period, &none) < 1) {
        return 0;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* Returns the least quota of the directories from mount_point/group up to mount_point. 0 means that there is
 * none. */
static double least_quota(const char *mount_point, const char *group, bool version_2)
{
    char directory[PATH_MAX];
    double least = 0;
    size_t top = strlen(mount_point);
    snprintf(directory, sizeof directory, "%s%s", mount_point, strcmp(group, "/") == 0 ? "" : group);
    for (;;) {
        double quota = group_quota(directory, version_2);
        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
        char *slash = strrchr(directory, '/');
        if (strlen(directory) <= top || slash == NULL)
            return least;
        *slash = '\0';
    }
}

/* Reads the group of the process, in the hierarchy of `controller`, from /proc/self/cgroup. `controller` is
 * "" for version 2. Returns false if there is no such hierarchy. */
static bool own_group(const char *root, const char *controller, char group[PATH_MAX])
{
    char path[PATH_MAX], *line = NULL;
    size_t size = 0;
    bool found = false;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file != NULL && !found && getline(&line, &size, file) > 0) {
        char *names = strchr(line, ':'), *where = names != NULL ? strchr(names + 1, ':') : NULL;
        if (where == NULL)
            continue;
        *names++ = *where++ = '\0';
        where[strcspn(where, "\n")] = '\0';
        found = names[0] == '\0' && controller[0] == '\0';
        for (char *save, *name = strtok_r(names, ",", &save); name != NULL; name = strtok_r(NULL, ",", &save))
            found |= strcmp(name, controller) == 0;
        snprintf(group, PATH_MAX, "%s", where);
    }
    free(line);
    if (file != NULL)
        fclose(file);
    return found;
}

/* Replaces escapes in a path of mountinfo: spaces and some other characters are three octal digits there. */
static void unescape(char *path)
{
    char *to = path;
    for (const char *from = path; *from != '\0'; to++) {
        bool escape = from[0] == '\\' && strspn(from + 1, "01234567") >= 3;
        int code = escape ? (from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0') : *from;
        *to = (char)code;
        from += escape ? 4 : 1;
    }
    *to = '\0';
}

/* Parses a line of mountinfo. Returns true if it mounts cgroup v2, or the cpu controller of cgroup v1. */
static bool parse_mount(char *line, bool version_2, char mounted_root[PATH_MAX], char mount_point[PATH_MAX])
{
    char type[64], options[1024];
    char *tail = strstr(line, " - ");
    if (tail == NULL || sscanf(tail, " - %63s %*s %1023s", type, options) != 2 ||
        sscanf(line, "%*s %*s %*s %4095s %4095s", mounted_root, mount_point) != 2)
        return false;
    unescape(mounted_root);
    unescape(mount_point);
    if (version_2)
        return strcmp(type, "cgroup2") == 0;
    if (strcmp(type, "cgroup") != 0)
        return false;
    for (char *save, *option = strtok_r(options, ",", &save); option != NULL;
         option = strtok_r(NULL, ",", &save))
        if (strcmp(option, "cpu") == 0)
            return true;
    return false;
}

/* Returns the least quota in the hierarchy of one version, or 0 if there is no limit. */
static double hierarchy_quota(const char *root, bool version_2)
{
    char group[PATH_MAX], path[PATH_MAX], mounted_root[PATH_MAX], mount_point[PATH_MAX], *line = NULL;
    size_t size = 0;
    double least = 0;
    if (!own_group(root, version_2 ? "" : "cpu", group))
        return 0;
    snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
    FILE *file = fopen(path, "re");
    while (file != NULL && getline(&line, &size, file) > 0) {
        if (!parse_mount(line, version_2, mounted_root, mount_point))
            continue;
        /* In a container the mount shows only the part of the tree below mounted_root. */
        size_t hidden = strcmp(mounted_root, "/") == 0 ? 0 : strlen(mounted_root);
        bool inside = strncmp(group, mounted_root, hidden) == 0 &&
                      (hidden == 0 || group[hidden] == '/' || group[hidden] == '\0');
        const char *below = inside ? group + hidden : "";
        char full[PATH_MAX];
        if (snprintf(full, sizeof full, "%s%s", root, mount_point) >= (int)sizeof full)
            continue;
        double quota = least_quota(full, below, version_2);
        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
    }
    free(line);
    if (file != NULL)
        fclose(file);
    return least;
}

double dti_cgroup_cpu_quota(const char *root)
{
    double one = hierarchy_quota(root, false), two = hierarchy_quota(root, true);
    return one == 0 || (two > 0 && two < one) ? two : one;
}
