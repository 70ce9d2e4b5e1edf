/* bench/judge.h - compares the contenders of a row, and finds those that were faster than its bound. */
#ifndef JUDGE_H
#define JUDGE_H

#include "harness.h"

/* Returns the index of the fastest form of the bound, or of the fastest peer of a family. Returns -1 if none
 * of them does this work. */
int judge_best(const struct contender *c, const struct result *r, uint32_t count, const char *family);

/* Returns a bit for each contender that took less than 0.97 of the time of each form of the bound in a mode,
 * unless its samples, or those of the bound, are noisy or too few. Then the bound may be wrong. Forms let no
 * replica leave before all have called. MPI and gloo let the root of a broadcast and the others of a reduce
 * go on before, so they may be faster there, and have no bit, unless two replicas take turns as root. */
uint64_t judge_faster_than_bound(const struct work *work, const struct contender *c,
                                 const struct measured *row, uint32_t modes, uint32_t count);

#endif
