/* bench/perf_control.h - switches an outer `perf stat` or `perf record` on while batches of ditto are
 * measured.
 *
 * perf is started with --control=fifo:CTL,ACK and --delay=-1, so that its events are off at first. It
 * reads commands from the first pipe, and writes an answer to the second when it has executed them. */
#ifndef PERF_CONTROL_H
#define PERF_CONTROL_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the pipes. `paths` is CTL or CTL,ACK. Returns false, with errno, if one of them cannot be opened. */
bool perf_control_open(const char *paths);

/* Says whether the next batches are ditto's. Only those are shown to perf. */
void perf_control_show(bool on);
bool perf_control_is_shown(void);

/* Stand around the measured part of a batch, on one thread. They do nothing for batches that are not
 * shown. */
void perf_control_enable(void);
void perf_control_disable(void);

#ifdef __cplusplus
}
#endif
#endif
