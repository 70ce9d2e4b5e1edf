/* include/ditto/trace.h - where the time goes: counts and times by operation, events to look at, and how often
 * functions are called.
 *
 * Off by default, and then it costs a look at a pointer in each operation. While a strategy is traced every replica
 * records, for itself, each run, collective, batch and pause of a merge_call: when it began and ended, how long it
 * waited for others in it, and how many bytes the replica brought; and of each batch that it takes, when a producer filled it.
 *
 * For `perf` there are static tracepoints at the same borders, where the library was built with <sys/sdt.h>:
 *     perf buildid-cache --add libditto.so && perf record -e 'sdt_ditto:*' ./program */
#ifndef DITTO_TRACE_H
#define DITTO_TRACE_H

#include <ditto/strategy.h>

DITTO_BEGIN

typedef struct ditto_trace_options {
    size_t struct_size; /**< set by DITTO_TRACE_OPTIONS_INIT */
    size_t
        events; /**< that each replica keeps for ditto_strategy_trace_write, 48 bytes each, two for each batch; later ones are
                             counted alone.
                             0: 65536; DITTO_NO_EVENTS: none, counts and times alone */
} ditto_trace_options;
#define DITTO_TRACE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_trace_options)
#define DITTO_NO_EVENTS          SIZE_MAX

/* -- Cross-replica context, outside of runs (CONTEXT inside a merge function); errors as in ditto/strategy.h -- */

/** Begins to record, anew. @param options  NULL for the defaults
 *  @retval DITTO_ERR_NO_MEMORY  nothing has changed */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_trace_start(ditto_strategy *strategy,
                                                                  const ditto_trace_options *options);
/** Ends recording; what was recorded can be read until it begins anew. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_trace_stop(ditto_strategy *strategy);

/** What the replicas did under one name: "run", "ditto_all_reduce", "ditto_next", "pause" (of a merge_call). */
typedef struct ditto_operation_times {
    const char *name; /**< constant */
    /** Of the replica that made the most. Each collective counts: a list that is cut into packs one for
     *  each pack, and ditto_all_gather_tensor two, for the shapes and for the values. */
    uint64_t calls;
    uint64_t bytes;   /**< that all replicas brought, together */
    uint64_t time_ns; /**< from begin to end, added up over calls; mean of the replicas */
    uint64_t wait_ns; /**< of this, waiting for others; mean */
    uint64_t own_ns;  /**< of this, outside of other operations: of "run" the computation; mean */
    uint32_t
        slowest; /**< the replica that the others waited for: of "run" and "pause" the one with most time of its own, else the one
                             that waited least */
} ditto_operation_times;
/** @param index  0 up to the number of names, in the order of their first end
 *  @retval DITTO_ERR_NOT_FOUND  there are no more, or nothing was recorded */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_operation_times(ditto_strategy *strategy,
                                                                      uint32_t index,
                                                                      ditto_operation_times *out);
/** A table of them, and of how a run's time is divided: computing, in collectives, waiting in them, waiting for input.
 *  @param buffer, size, length  as ditto_strategy_describe
 *  @retval DITTO_ERR_NOT_FOUND  nothing was recorded */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_statistics(ditto_strategy *strategy, char *buffer,
                                                                 size_t size, size_t *length);
/** Writes the events as JSON in Chrome's trace format, which Perfetto (ui.perfetto.dev) opens: a track for each
 *  replica, and one for each producer that filled a batch which they took.
 *  @param path  a file, written anew
 *  @retval DITTO_ERR_IO         it can't be written; errno is in the message
 *  @retval DITTO_ERR_NOT_FOUND  nothing was recorded */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_trace_write(ditto_strategy *strategy, const char *path);

/* -- Any thread, any context -- */

/** Counts calls of the library's public functions from now on, in the whole process (0: no longer). */
DITTO_API void ditto_usage_count(int on);
/** A line for each function that was called while calls were counted: its name, and how often; the most frequent first.
 *  @param buffer, size, length  as ditto_strategy_describe */
DITTO_API DITTO_NODISCARD ditto_status ditto_usage_describe(char *buffer, size_t size, size_t *length);

DITTO_END
#endif
