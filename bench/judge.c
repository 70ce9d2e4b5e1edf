/* bench/judge.c - see judge.h. */
#include "judge.h"

#include <string.h>

#define SOUND 0.97

_Static_assert(MOST_CONTENDERS <= 64, "a bit for each contender");

int judge_best(const struct contender *c, const struct result *r, uint32_t count, const char *family)
{
    int best = -1;
    for (uint32_t i = 0; i < count; i++) {
        bool wanted = family == NULL ? c[i].is_bound
                                     : c[i].family != NULL && strcmp(c[i].family, family) == 0;
        if (wanted && r[i].median_ns > 0 && (best < 0 || r[i].median_ns < r[best].median_ns))
            best = (int)i;
    }
    return best;
}

/* Returns false if the replicas of a contender may leave this work before all have called. If roots take
 * turns, a rank waits only for the roots before its own turn, which are all others if there are two. */
static bool meets_all(const struct work *work, const struct contender *c)
{
    return !work_has_root(work->kind) || (work->turns && work->replicas == 2) || c->family == NULL ||
           strcmp(c->family, "OpenMP") == 0;
}

uint64_t judge_faster_than_bound(const struct work *work, const struct contender *c,
                                 const struct measured *row, uint32_t modes, uint32_t count)
{
    uint64_t faster = 0;
    for (uint32_t m = 0; m < modes; m++) {
        const struct result *r = row[m].result;
        int bound = judge_best(c, r, count, NULL);
        if (bound < 0 || r[bound].noisy || row[m].too_few)
            continue;
        for (uint32_t i = 0; i < count; i++)
            if (!c[i].is_bound && r[i].median_ns > 0 && r[i].median_ns < SOUND * r[bound].median_ns &&
                !r[i].noisy && meets_all(work, &c[i]))
                faster |= (uint64_t)1 << i;
    }
    return faster;
}
