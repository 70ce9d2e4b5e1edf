/* src/base/waiting/run_delay.c - see run_delay.h. */
#include "base/waiting/run_delay.h"
#include "base/errors/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool dti_run_delay_add(int32_t tid, uint64_t *ran_ns, uint64_t *delayed_ns)
{
    DTI_UNCANCELLED(); /* replicas and users of queues come here in the middle of a wait */
    char text[64];
    unsigned long long ran, delayed;
    int kept_errno = errno;
    snprintf(text, sizeof text, "/proc/self/task/%d/schedstat", (int)tid);
    int file = open(text, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    errno = kept_errno;
    if (length < 0)
        return false;
    text[length] = '\0';
    /* The first two numbers are the nanoseconds on a PU, and those on a run queue. */
    if (sscanf(text, "%llu %llu", &ran, &delayed) != 2)
        return false;
    *ran_ns += ran;
    *delayed_ns += delayed;
    return true;
}
