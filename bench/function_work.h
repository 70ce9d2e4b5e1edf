/* bench/function_work.h - the functions of the rows of `functions`, which ditto and its peers execute. */
#ifndef FUNCTION_WORK_H
#define FUNCTION_WORK_H

#include "work.h"

#include <time.h>

/* The rows that peers with processes of their own can measure. */
enum function_row { FUNCTIONS_EMPTY, FUNCTIONS_COMPUTE, FUNCTIONS_UNEVEN, FUNCTIONS_PUSH };

/* A push has PUSH rows of WIDTH f32, of a table of TABLE_ROWS rows. */
enum { COMPUTE_NS = 20000, SLOW_NS = 5000000, FAST_NS = 1000000, TABLE_ROWS = 65536, WIDTH = 16, PUSH = 64 };

static inline void compute_function(void)
{
    for (double end = now_seconds() + 1e-9 * (double)COMPUTE_NS; now_seconds() < end;)
        ;
}

/* Worker 0 is slow. */
static inline void sleep_function(uint32_t worker)
{
    struct timespec time = { 0, worker == 0 ? SLOW_NS : FAST_NS };
    nanosleep(&time, NULL);
}

/* Draws the row numbers of a push. Low ones are more frequent, as those of words in a text. */
static inline void draw_rows(uint64_t *state, int64_t *rows)
{
    for (int i = 0; i < PUSH; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        uint64_t level = *state >> 60; /* 0 to 15 */
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        rows[i] = (int64_t)((*state >> 33) % ((uint64_t)2 << level));
    }
}

#endif
