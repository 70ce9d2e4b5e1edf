/* bench/report.h - prints the machine, and a row for each work, as a table or as CSV. */
#ifndef REPORT_H
#define REPORT_H

#include "harness.h"
#include "request.h"

/* Prints the version, commit, compiler, date, CPU, PUs, nodes, SMT, governor and kernel. */
void report_machine(void);
void report_heading(const struct request *q);
/* Prints the rows of a work, one for each mode. c[0] is ditto. */
void report_rows(const struct request *q, const struct work *work, const struct contender *c,
                 const struct measured *row, uint32_t modes, uint32_t count);

#endif
