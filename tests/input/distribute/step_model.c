/* tests/input/distribute/step_model.c - the functions of step_model.h. They follow the text of the rules
 * and are not optimized. They use no code of the library. */
#include "input/distribute/step_model.h"

#include <string.h>

/* Returns the size at a place of the list of rule 9.1, which is repeated without end. The first N sizes are
 * floor(G / N) rows, and one more for the first G mod N of them. */
static uint64_t size_at(const struct steps *s, uint64_t place)
{
    return s->global / s->replicas + (place % s->replicas < s->global % s->replicas);
}

/* Divides `rows` rows of the input, from number `at` on, among `count` replicas from `replica` on, by rules
 * 9.2 and 9.3. full[j] is the full size of the j-th of these replicas. */
static void share_out(struct steps *s, uint32_t replica, uint32_t count, const uint64_t *full, uint64_t rows,
                      uint64_t at)
{
    uint64_t all = 0, left = rows;
    for (uint32_t j = 0; j < count; j++)
        all += full[j];
    for (uint32_t j = 0; j < count; j++) {
        uint64_t size = full[j] < left ? full[j] : left;
        if (s->last == LAST_EVEN && rows < all)
            size = rows / count + (j < rows % count);
        s->first[replica + j] = at + rows - left;
        s->count[replica + j] = size;
        left -= size;
    }
}

/* Goes to the next step of pipelines that share one order of rows. For every W the rules are those of one
 * pipeline that serves all replicas (9.6). */
static bool next_of_shared(struct steps *s)
{
    uint64_t full[MOST_REPLICAS], left = s->length[0] - s->given[0],
                                  rows = left < s->global ? left : s->global;
    bool partial = rows < s->global;
    if (rows == 0 || (partial && (s->last == LAST_STATIC || s->last == LAST_DROPPED)))
        return false;
    for (uint32_t r = 0; r < s->replicas; r++)
        full[r] = size_at(s, r);
    share_out(s, 0, s->replicas, full, rows, s->given[0]);
    s->given[0] += rows;
    return true;
}

/* Goes to the next step of pipelines that each have their own order of rows. Pipeline w rotates the list of
 * sizes by w * R, and by R more in each step (9.1). R is the number of replicas of a pipeline. */
static bool next_of_own(struct steps *s)
{
    uint32_t per_pipeline = s->replicas / s->pipelines;
    uint64_t full[MOST_REPLICAS], want[MOST_REPLICAS] = { 0 };
    bool any = false, all = true;
    for (uint32_t w = 0; w < s->pipelines; w++) {
        uint64_t left = s->length[w] - s->given[w];
        for (uint32_t j = 0; j < per_pipeline; j++) {
            full[w * per_pipeline + j] = size_at(s, ((uint64_t)w + s->step) * per_pipeline + j);
            want[w] += full[w * per_pipeline + j];
        }
        /* Rule 9.4: the pipeline has rows in this step or in a later one. */
        any |= left > 0;
        all &= left >= want[w];
    }
    if (s->last == LAST_STATIC ? !all : !any)
        return false;
    for (uint32_t w = 0; w < s->pipelines; w++) {
        uint64_t left = s->length[w] - s->given[w], rows = left < want[w] ? left : want[w];
        share_out(s, w * per_pipeline, per_pipeline, full + w * per_pipeline, rows, s->given[w]);
        s->given[w] += rows;
    }
    return true;
}

/* Drops the incomplete batch at the end of each input, and nothing else (rule 9.4). */
static void drop_remainders(struct steps *s)
{
    for (uint32_t w = 0; w < s->pipelines; w++)
        s->length[w] -= s->length[w] % s->global;
}

void begin_steps(struct steps *s)
{
    s->step = UINT64_MAX;
    memset(s->given, 0, sizeof s->given);
    if (s->last == LAST_DROPPED)
        drop_remainders(s);
}

bool next_step(struct steps *s)
{
    s->step++;
    return s->shared ? next_of_shared(s) : next_of_own(s);
}
