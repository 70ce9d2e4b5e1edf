/* bench/report.h - prints the machine, and a row for each work, as a table or as CSV. */
#ifndef REPORT_H
#define REPORT_H

#include "harness.h"
#include "request.h"

/* Prints the commit, compiler, kernel, CPU, nodes, SMT, governor and date. */
void report_machine(void);
void report_heading(const struct request *q);
/* Prints a row. contenders[0] is ditto. Returns false if ditto is faster than each form of the bound, because
 * then the bound is wrong. */
bool report_row(const struct request *q, const struct work *work, const struct contender *c,
                const struct result *r, uint32_t count);

#endif
