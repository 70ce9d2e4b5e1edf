/* tests/numa/kernel_reports.c - see kernel_reports.h. */
#include "numa/kernel_reports.h"

#include <numaif.h>
#include <unistd.h>

static const char *condition = "plain";

bool is_condition(const char *name)
{
    return strcmp(condition, name) == 0;
}

int node_of_page(const void *address)
{
    void *page = (void *)((uintptr_t)address & ~(uintptr_t)4095);
    int node = -1;
    return move_pages(0, 1, &page, NULL, &node, 0) == 0 ? node : -1;
}

int node_of_cpu(int cpu)
{
    char path[128];
    for (int node = 0; node < 64; node++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/node%d", cpu, node);
        if (access(path, F_OK) == 0)
            return node;
    }
    return -1;
}

bool in_list(const char *list, int number)
{
    for (char *end; *list >= '0' && *list <= '9'; list = *end == ',' ? end + 1 : end) {
        long first = strtol(list, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        if (number >= first && number <= last)
            return true;
    }
    return false;
}

const char *value_of(const char *path, const char *key)
{
    static _Thread_local char line[4096];
    FILE *file = fopen(path, "r");
    size_t length = strlen(key);
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, length) == 0) {
            fclose(file);
            return line + length + strspn(line + length, " \t");
        }
    if (file != NULL)
        fclose(file);
    return "";
}

bool may_use_memory_of(int node)
{
    return in_list(value_of("/sys/devices/system/node/has_memory", ""), node) &&
           in_list(value_of("/proc/self/status", "Mems_allowed_list:"), node);
}

int memory_node_of_cpu(int cpu)
{
    int home = node_of_cpu(cpu), best = -1;
    long least = 0;
    char path[64], line[512];
    if (may_use_memory_of(home))
        return home;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/distance", home);
    snprintf(line, sizeof line, "%s", value_of(path, ""));
    char *at = line;
    for (int node = 0; *at != '\0' && *at != '\n'; node++) {
        long distance = strtol(at, &at, 10);
        if (may_use_memory_of(node) && (best < 0 || distance < least)) {
            best = node;
            least = distance;
        }
    }
    return best;
}

void read_condition(int count, char **word)
{
    int nodes = 0;
    if (count > 1)
        condition = word[1];
    for (int node = 0; node < 64; node++)
        nodes += may_use_memory_of(node);
    printf("== %s: memory of %d NUMA node%s may be used\n", condition, nodes, nodes == 1 ? "" : "s");
    if (nodes == 1)
        printf("skipped: no page can be on the wrong node, because there is only one\n");
}
