/* bench/report.h - prints the machine, and a row for each work, as a table or as CSV. */
#ifndef REPORT_H
#define REPORT_H

#include "harness.h"
#include "request.h"

/* Prints the version, commit, compiler, date, CPU, PUs, nodes, SMT, governor and kernel. */
void report_machine(void);
void report_heading(const struct request *q);
/* Prints a row. c[0] is ditto. Returns false if ditto takes less than 0.97 of the time of each form of the
 * bound and its samples are not noisy, because then the bound is wrong. */
bool report_row(const struct request *q, const struct work *work, const struct contender *c,
                const struct result *r, uint32_t count);

#endif
