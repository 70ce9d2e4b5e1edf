/* src/replicas/machine/run_delay.c - see run_delay.h. */
#include "replicas/machine/run_delay.h"

#include <errno.h>
#include <stdio.h>

bool dti_run_delay_add(int32_t tid, uint64_t *ran_ns, uint64_t *delayed_ns)
{
    char path[64];
    unsigned long long ran, delayed;
    int kept_errno = errno;
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)tid);
    FILE *file = fopen(path, "re");
    /* The first two numbers are the nanoseconds on a PU, and those on a run queue. */
    bool known = file != NULL && fscanf(file, "%llu %llu", &ran, &delayed) == 2;
    if (file != NULL)
        fclose(file);
    errno = kept_errno;
    if (!known)
        return false;
    *ran_ns += ran;
    *delayed_ns += delayed;
    return true;
}
