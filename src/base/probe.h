/* src/base/probe.h - static tracepoints, for `perf record -e sdt_ditto:*`: a nop each, where <sys/sdt.h> is installed.
 *
 *     run_begin, run_end                replica
 *     collective_begin, collective_end  replica, name
 *     queue_put                         ticket
 *     queue_get_begin, queue_get_end    replica */
#ifndef DTI_PROBE_H
#define DTI_PROBE_H

#ifdef DTI_HAVE_SDT
#include <sys/sdt.h>
#define DTI_PROBE1(name, a)    DTRACE_PROBE1(ditto, name, a)
#define DTI_PROBE2(name, a, b) DTRACE_PROBE2(ditto, name, a, b)
#else
#define DTI_PROBE1(name, a)    ((void)(a))
#define DTI_PROBE2(name, a, b) ((void)(a), (void)(b))
#endif

#endif
