/* src/base/observe.h - ranges of histograms, and the tracepoints. */
#ifndef DTI_OBSERVE_H
#define DTI_OBSERVE_H

#include <ditto/api.h>

#include "base/platform.h"

/* Returns the range of a number: 0 for 0, k for 2^(k - 1) to 2^k - 1, and the last range for all that are
 * larger. */
static inline uint32_t dti_histogram_range(uint64_t number)
{
    uint32_t range = number == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(number);
    return range < DITTO_HISTOGRAM_LENGTH ? range : DITTO_HISTOGRAM_LENGTH - 1;
}

/* Static tracepoints, for `perf record -e sdt_ditto:*`. Each is one nop instruction. They exist where
 * <sys/sdt.h> is installed. Their arguments are:
 *
 *     run_begin, run_end                replica
 *     collective_begin, collective_end  replica, name
 *     queue_put                         ticket
 *     queue_get_begin, queue_get_end    replica */

#ifdef DTI_HAVE_SDT
#include <sys/sdt.h>
#define DTI_PROBE1(name, a)    DTRACE_PROBE1(ditto, name, a)
#define DTI_PROBE2(name, a, b) DTRACE_PROBE2(ditto, name, a, b)
#else
#define DTI_PROBE1(name, a)    ((void)(a))
#define DTI_PROBE2(name, a, b) ((void)(a), (void)(b))
#endif

#endif
