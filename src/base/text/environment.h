/* src/base/text/environment.h - the environment variables whose names begin with DITTO_, and those by which
 * OpenMP binds threads. A test compares the table with the sources that read them, and with
 * docs/environment.md. */
#ifndef DTI_ENVIRONMENT_H
#define DTI_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

enum { DTI_NUM_VARIABLES = 8 };

/* What users may set. */
struct dti_variable {
    const char *name;
    const char *usual; /* what holds if it is not set */
    const char *sets;
};
extern const struct dti_variable dti_variables[DTI_NUM_VARIABLES];

/* Finds the next variable of the process whose name begins with DITTO_ and that nothing of ditto reads.
 * Writes a sentence about it, with the name in the table that is most like it. *at begins with 0. Returns
 * false if there is no further one. Like getenv, it must not run while another thread changes the
 * environment. */
bool dti_unknown_variable(size_t *at, char *sentence, size_t size);

/* Returns the name of a variable that is set and by which OpenMP binds the thread of main, or NULL. The
 * OpenMP of gcc does so before main, and that of LLVM in the first parallel region. The affinity of the
 * thread then leaves out PUs that the process may use. */
const char *dti_openmp_binding(void);

#endif
