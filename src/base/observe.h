/* src/base/observe.h - how often each public function has been called. */
#ifndef DTI_OBSERVE_H
#define DTI_OBSERVE_H

#include "base/platform.h"

/* One public function: lives in it, and is listed from its first counted call on. */
struct dti_usage {
    const char *name;
    _Atomic uint64_t calls;
    _Atomic uint32_t listed;
    struct dti_usage *next;
};

extern DTI_COMPANION _Atomic bool dti_usage_on;
DTI_COMPANION void dti_usage_count(struct dti_usage *usage, const char *name); /* any thread */
struct dti_usage *dti_usage_first(void); /* of those listed: never removed, so they can be walked */

/* Static tracepoints, for `perf record -e sdt_ditto:*`: a nop each, where <sys/sdt.h> is installed.
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
