/* bench/modes.c - see modes.h. */
#include "modes.h"
#include "samples.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_READINGS = 3, SPARSE_SHARE = 50 };
#define NEAR 1.25

/* Readings [first, end) of the sorted ones. */
struct group {
    uint32_t first, end;
};

static uint32_t size_of(struct group g)
{
    return g.end - g.first;
}

/* Adds a group. If there are too many, the smallest is dropped. The order stays ascending. */
static void add(struct group *group, uint32_t *count, struct group more)
{
    uint32_t smallest = 0;
    group[(*count)++] = more;
    if (*count <= MODES_MOST)
        return;
    for (uint32_t i = 1; i < *count; i++)
        smallest = size_of(group[i]) < size_of(group[smallest]) ? i : smallest;
    memmove(&group[smallest], &group[smallest + 1], (--*count - smallest) * sizeof *group);
}

/* Returns true if few of the sorted readings are near reading i. */
static bool is_sparse(const double *sorted, uint32_t count, uint32_t i)
{
    uint32_t first = i, end = i;
    while (first > 0 && sorted[first - 1] * NEAR >= sorted[i])
        first--;
    while (end < count && sorted[end] <= sorted[i] * NEAR)
        end++;
    return (end - first) * SPARSE_SHARE < count;
}

/* Moves the readings that are not sparse to the front of the array. Returns their number. */
static uint32_t drop_sparse(double *sorted, uint32_t count)
{
    uint32_t kept = 0;
    bool *sparse = calloc(count + 1, sizeof *sparse);
    if (sparse == NULL)
        exit(1);
    for (uint32_t i = 0; i < count; i++)
        sparse[i] = is_sparse(sorted, count, i);
    for (uint32_t i = 0; i < count; i++)
        if (!sparse[i])
            sorted[kept++] = sorted[i];
    free(sparse);
    return kept;
}

struct modes modes_find(const double *reading, uint32_t count)
{
    struct group group[MODES_MOST + 1], now = { 0, 0 };
    struct modes modes = { .count = 0 };
    double *sorted = malloc((count + 1) * sizeof *sorted);
    if (sorted == NULL)
        exit(1);
    memcpy(sorted, reading, count * sizeof *sorted);
    sort_samples(sorted, count);
    count = drop_sparse(sorted, count);
    for (uint32_t i = 0; i < count; i++) {
        now.end = i + 1;
        if (i + 1 < count && sorted[i + 1] <= MODES_GAP * sorted[i])
            continue;
        if (size_of(now) >= LEAST_READINGS)
            add(group, &modes.count, now);
        now.first = i + 1;
    }
    for (uint32_t m = 0; m < modes.count; m++)
        modes.mode[m] = (struct mode){ sorted[group[m].first], sorted[group[m].end - 1],
                                       sorted[group[m].first + size_of(group[m]) / 2] };
    free(sorted);
    return modes;
}

static bool is_in(const struct mode *mode, double reading)
{
    return reading >= mode->low_ns && reading <= mode->high_ns;
}

int modes_of(const struct modes *modes, const struct conditions *conditions)
{
    for (uint32_t m = 0; m < modes->count && !conditions->disturbed; m++)
        if (is_in(&modes->mode[m], conditions->before_ns) && is_in(&modes->mode[m], conditions->after_ns))
            return (int)m;
    return -1;
}
