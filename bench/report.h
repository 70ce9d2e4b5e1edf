/* bench/report.h - what is printed: the machine, and a row per work, as a table or as CSV. */
#ifndef REPORT_H
#define REPORT_H

#include "harness.h"
#include "request.h"

/* Commit, compiler, kernel, CPU, nodes, SMT, governor, date. */
void report_machine(void);
void report_heading(const struct request *q);
/* False: ditto is faster than every bound, so the bound is wrong. contenders[0] is ditto. */
bool report_row(const struct request *q, const struct work *work, const struct contender *c,
                const struct result *r, uint32_t count);

#endif
