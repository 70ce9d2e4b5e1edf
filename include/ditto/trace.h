/* include/ditto/trace.h - measures where time is spent.
 *
 * Tracing is off by default. Then each operation costs one more load of a pointer. While a strategy is
 * traced, every replica records each of its runs, collectives, batches and pauses of a merge_call: when it
 * began and ended, how long the replica waited for others in it, and how many bytes the replica contributed.
 * For each batch that it takes, a replica also records when a producer filled the batch. The replicas of a
 * strategy with workers (DITTO_PARAMETER_SERVER) have the numbers of its placement, a run is a function that
 * a worker executes, and the gaps between runs are the times in which the worker had nothing to do.
 *
 * If the library was built with <sys/sdt.h>, there are static tracepoints for `perf` in runs, collectives,
 * ditto_next and the producers of batches. Started collectives have none.
 *
 *     perf buildid-cache --add libditto.so && perf record -e 'sdt_ditto:*' ./program */
#ifndef DITTO_TRACE_H
#define DITTO_TRACE_H

#include <ditto/strategy.h>

DITTO_BEGIN

/** For ditto_trace_options.num_events: no events. */
#define DITTO_NO_EVENTS SIZE_MAX

/** Options of ditto_strategy_trace_start. */
typedef struct ditto_trace_options {
    size_t struct_size; /**< set by DITTO_TRACE_OPTIONS_INIT */

    /** Number of events that each replica keeps for ditto_strategy_trace_write, at 48 bytes each. A batch has
     *  two events. Later events only count in the statistics. 0 means 65536. DITTO_NO_EVENTS means that no
     *  events are kept, only counts and times. */
    size_t num_events;
} ditto_trace_options;

/** Initial value of ditto_trace_options. */
#define DITTO_TRACE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_trace_options)

/* -- Traces --
 *
 * The functions are called in cross-replica context, outside of runs. In a merge function they return
 * DITTO_ERR_CONTEXT. They also return the errors of the group "Strategies" (strategy.h), and
 * DITTO_ERR_INVALID if the strategy is NULL. With workers they are called when no function is in the queue or
 * being executed (ditto_coordinator_join). Otherwise they return DITTO_ERR_BUSY. Functions that other threads
 * schedule meanwhile wait, and this wait does not count for run_timeout_ms. */

/** Starts recording, and deletes earlier recordings.
 *
 *  @param strategy  the strategy
 *  @param options   the options, or NULL for the defaults
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_NO_MEMORY    memory was refused. Nothing has changed. With workers, earlier
 *                                 recordings of all of them may be deleted, and then none records
 *  @retval DITTO_ERR_RANGE        num_events is so large that the bytes of the events overflow size_t
 *  @retval DITTO_ERR_INVALID      struct_size of options is not set
 *  @retval DITTO_ERR_UNSUPPORTED  options is of a newer version, and has a field set that this version
 *                                 lacks
 *  @par Cost
 *  Allocates 48 bytes for each event of each replica. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_trace_start(ditto_strategy *strategy,
                                                                  const ditto_trace_options *options);

/** Stops recording. The recording can be read until the next start.
 *
 *  @param strategy  the strategy
 *  @return DITTO_OK, or an error of the group "Strategies"
 *  @par Cost
 *  Stores one address for each replica. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_trace_stop(ditto_strategy *strategy);

/** What the replicas did under one name and label. */
typedef struct ditto_operation_counters {
    size_t struct_size; /**< set by DITTO_OPERATION_COUNTERS_INIT */

    /** "run", "pause" (of a merge_call), "join" (of functions on devices), or a function such as
     *  "ditto_all_reduce", "ditto_next" or "ditto_parallel_for". The string is constant. */
    const char *name;

    /** Number of calls, of the replica that made the most. A list that is cut into packs counts once for
     *  each pack, and ditto_all_gather_tensor counts twice, for the shapes and for the values. */
    uint64_t calls;

    /** Bytes that all replicas contributed. For ditto_next they are the bytes of the batches. Started
     *  operations count as 0. */
    uint64_t bytes;

    /** Time from begin to end, summed over the calls, as the mean of the replicas. */
    uint64_t time_ns;

    /** The part of time_ns in which the replica waited in meetings, for a batch, or for its devices, as the
     *  mean of the replicas. It is 0 for ditto_wait, because a replica works on started operations in it, and
     *  for "pause". For "run" it is the time of waiting for devices outside of loops and joins. */
    uint64_t wait_ns;

    /** The part of time_ns outside of other operations, as the mean of the replicas. For "run" it is the
     *  computation outside of loops. */
    uint64_t own_ns;

    /** Id of the replica that the others waited for. For "run" and "pause" it is the one with the largest own
     *  time, for loops and joins the one with the largest time, otherwise the one that waited least. */
    uint32_t slowest;

    /** The label of the calls (ditto_reduce_options), or NULL. The string is valid until the recording is
     *  deleted. Of each replica the first 64 labels are told apart. Calls with other labels count as calls
     *  without one. */
    const char *label;
} ditto_operation_counters;

/** Initial value of ditto_operation_counters. */
#define DITTO_OPERATION_COUNTERS_INIT DITTO_OPTIONS_INIT(ditto_operation_counters)

/** Returns the times of all calls of one operation.
 *
 *  @param strategy  the strategy
 *  @param index     index of the operation, from 0. Operations of replica 0 come first, in the order in which
 *                   they first ended, then those that only replica 1 made, and so on
 *  @param out       [out] the times. Start from DITTO_OPERATION_COUNTERS_INIT
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID    `out` is NULL, or its struct_size is not set
 *  @retval DITTO_ERR_NOT_FOUND  there are no more operations, or nothing was recorded
 *  @par Cost
 *  Adds up the counters of all replicas. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_operation_stats(ditto_strategy *strategy,
                                                                      uint32_t index,
                                                                      ditto_operation_counters *out);

/** Writes a table of the times of all operations, and of the shares of a run's time: computation, waiting for
 *  devices, collectives, waiting in collectives, ditto_next, and merge functions.
 *
 *  @param strategy  the strategy
 *  @param buffer    [out] memory for the text, as in ditto_strategy_describe
 *  @param capacity  length of `buffer` in bytes
 *  @param length    [out] length of the whole text, as in ditto_strategy_describe
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID    `buffer` is NULL, and `capacity` is not 0
 *  @retval DITTO_ERR_NOT_FOUND  nothing was recorded
 *  @par Cost
 *  Adds up the counters of all replicas, and writes one text. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_trace_describe(ditto_strategy *strategy, char *buffer,
                                                                     size_t capacity, size_t *length);

/** Writes the events to a file, as JSON in Chrome's trace format, which Perfetto (ui.perfetto.dev) opens.
 *  There is a track for each replica, and one for each producer that filled a batch that the replicas took.
 *
 *  @param strategy  the strategy
 *  @param path      path of the file. An existing file is overwritten
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID    `path` is NULL
 *  @retval DITTO_ERR_IO         the file cannot be written, or not completely, and is then left empty. The
 *                               message has the errno
 *  @retval DITTO_ERR_NOT_FOUND  nothing was recorded
 *  @par Cost
 *  Writes about a hundred bytes for each event. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_trace_write(ditto_strategy *strategy, const char *path);

DITTO_END
#endif
