/* include/ditto/coordinator.h - functions that workers of a parameter server strategy take from a queue.
 *
 *     static ditto_status train(ditto_coordinator *coordinator, uint32_t steps)
 *     {
 *         for (uint32_t i = 0; i < steps; i++)
 *             DITTO_TRY(ditto_coordinator_schedule(coordinator, "step", NULL, NULL, NULL));
 *         return ditto_coordinator_join(coordinator);
 *     }
 *
 * The function "step" was registered with ditto_function_register. It pulls parameters (ditto/parameter.h),
 * computes, and pushes gradients (ditto_apply). Results depend on timing: workers do not wait for each other,
 * and updates are applied in the order in which they arrive. docs/semantics.md has the rules, and
 * docs/asynchronous.md says when this pays. */
#ifndef DITTO_COORDINATOR_H
#define DITTO_COORDINATOR_H

#include <ditto/distribute.h>
#include <ditto/run.h>

DITTO_BEGIN

/** @defgroup ditto_coordinators Coordinators
 *
 *  A coordinator has a queue of functions and one thread for each worker of a strategy of kind
 *  DITTO_PARAMETER_SERVER. A worker takes the oldest function from the queue, executes it on its replicas as
 *  ditto_strategy_run_values does, and takes the next one. A function that returns a variable or slices fails
 *  with DITTO_ERR_INVALID after its end. Workers do not wait for each other.
 *
 *  Unless they say otherwise, these functions are called outside of scheduled functions and runs. Inside they
 *  return DITTO_ERR_CONTEXT: a function that waits for another one could wait for ever. Several threads may
 *  call functions on one coordinator. All return DITTO_ERR_INVALID if a pointer is NULL and NULL has no
 *  meaning, and those that use the queue or the workers return DITTO_ERR_FORKED in a child process after
 *  fork, and DITTO_ERR_CONTEXT in the scope of another strategy.
 *
 *  While functions are in the queue or are being executed, ditto_variable_destroy and ditto_optimizer_destroy
 *  return DITTO_ERR_BUSY for parameters and their optimizers.
 *
 *  **Errors of functions.** If a function fails, the workers execute no further function: those in the queue
 *  are cancelled, and those that other workers execute end as usual. The next call of
 *  ditto_coordinator_schedule, ditto_coordinator_join or ditto_coordinator_done waits for this end. After
 *  that the coordinator works as before. Each thread that has scheduled functions since its last join is told
 *  once: its next of these calls returns the error of the function that failed first, with the number of
 *  functions that were cancelled, and does nothing else. If no thread has been told yet,
 *  ditto_coordinator_join and ditto_coordinator_done return the error on any thread. ditto_coordinator_done
 *  and a call with no_wait do not wait, but say that something has not ended, until the error can be
 *  returned.
 *
 *  **Lost workers.** A worker is *retired* if its function takes longer than run_timeout_ms of the strategy
 *  (ditto/strategy.h). Its function goes back to the queue, and another worker executes it again from its
 *  beginning. A scheduled function is therefore executed at least once, and perhaps more often: updates that
 *  the first execution has pushed stay, and the second one pushes its own. A retired worker gets no further
 *  functions. If its function returns after all, the results are discarded. Calls that wait or poll notice
 *  that a function is late, and so do workers that have nothing to do.
 *  @{ */

/** The queue and the workers of a strategy. */
typedef struct ditto_coordinator ditto_coordinator;

/** The result of a scheduled function, which may not be there yet. */
typedef struct ditto_remote ditto_remote;

/** A value, or an iterator, for each worker. */
typedef struct ditto_per_worker ditto_per_worker;

/** One pass over a dataset, whose batches all workers take. */
typedef struct ditto_shared_dataset ditto_shared_dataset;

/** Most bytes in the name of a registered function. */
#define DITTO_MAX_FUNCTION_NAME_BYTES 63

/** Largest number of functions in the queue of a coordinator. */
#define DITTO_MAX_SCHEDULED (1u << 20)

/** @name Functions with names
 *  @{ */

/** Registers a function under a name, in this process.
 *
 *  @param name      the name, which is copied; at most DITTO_MAX_FUNCTION_NAME_BYTES bytes
 *  @param function  is executed on each replica of a worker. It reads its arguments with ditto_argument, and
 *                   gives results with ditto_return and similar functions (ditto/run.h)
 *  @param user      passed to the function
 *  @retval DITTO_OK             the function is registered, perhaps already before
 *  @retval DITTO_ERR_INVALID    a pointer other than user is NULL; the name is empty; another function, or
 *                               the same with another user, has the name
 *  @retval DITTO_ERR_RANGE      the name is too long
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for the name
 *  @par Thread safety
 *  Any thread may call it, in any context.
 *  @par Cost
 *  Compares the name with those of all registered functions. */
DITTO_API DITTO_NODISCARD ditto_status ditto_function_register(const char *name, ditto_replica_fn function,
                                                               void *user);

/** Takes a name back. Functions that were scheduled before are executed nevertheless, so a library that is to
 *  be unloaded first waits for them (ditto_coordinator_join).
 *
 *  @param name  the name
 *  @retval DITTO_OK             no function has this name any more
 *  @retval DITTO_ERR_INVALID    name is NULL
 *  @retval DITTO_ERR_NOT_FOUND  no function had it
 *  @par Thread safety
 *  Any thread may call it, in any context.
 *  @par Cost
 *  That of ditto_function_register. */
DITTO_API DITTO_NODISCARD ditto_status ditto_function_unregister(const char *name);

/** @} */

/** How a coordinator works. Start from DITTO_COORDINATOR_OPTIONS_INIT. A field that is 0 means its
 *  default. */
typedef struct ditto_coordinator_options {
    size_t struct_size; /**< set by DITTO_COORDINATOR_OPTIONS_INIT */

    /** Number of functions that may wait in the queue, at most DITTO_MAX_SCHEDULED. It is rounded up to a
     *  power of two, at least 2. 0 means 1024. */
    uint32_t queue_capacity;

    /** How often a function is begun at most if its workers are retired. Then it fails with
     *  DITTO_ERR_TIMED_OUT. 0 means 2. */
    uint32_t max_attempts;
} ditto_coordinator_options;

/** Initial value of ditto_coordinator_options: the defaults. */
#define DITTO_COORDINATOR_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_coordinator_options)

/** Creates a coordinator and starts a thread for each worker. A strategy has one coordinator at a time.
 *
 *  @param strategy  a strategy of kind DITTO_PARAMETER_SERVER
 *  @param options   NULL for the defaults
 *  @param out       [out] the coordinator; set only on DITTO_OK
 *  @return DITTO_OK, an error of the group "Strategies" (ditto/strategy.h), or one of:
 *  @retval DITTO_ERR_INVALID      the strategy is of another kind; options was not initialised
 *  @retval DITTO_ERR_BUSY         the strategy has a coordinator
 *  @retval DITTO_ERR_RANGE        queue_capacity is above DITTO_MAX_SCHEDULED
 *  @retval DITTO_ERR_UNSUPPORTED  options is of a newer version
 *  @retval DITTO_ERR_SYSTEM       the operating system refused a thread
 *  @retval DITTO_ERR_NO_MEMORY    there is no memory for the queue
 *  @par Ownership
 *  The caller gives the coordinator to ditto_coordinator_destroy, before the strategy is destroyed.
 *  @par Cost
 *  Starts and binds one thread for each worker, and allocates 128 bytes for each function of the queue. */
DITTO_API DITTO_NODISCARD ditto_status ditto_coordinator_create(ditto_strategy *strategy,
                                                                const ditto_coordinator_options *options,
                                                                ditto_coordinator **out);

/** Cancels the functions in the queue, waits for those that workers execute, and ends the threads of the
 *  workers. The per-worker values and iterators that still exist are freed with it. Handles of results stay
 *  valid.
 *
 *  @param coordinator  the coordinator; NULL is allowed
 *  @retval DITTO_OK            the coordinator is destroyed. An error of a function that was not returned yet
 *                              is lost
 *  @retval DITTO_ERR_CONTEXT   called in a scheduled function or in a run; nothing was done
 *  @retval DITTO_ERR_BUSY      another thread is in a call on the coordinator; nothing was done
 *  @retval DITTO_ERR_POISONED  the coordinator is destroyed, but a worker is still in a function that took
 *                              longer than run_timeout_ms, or timeout_ms of the strategy in this call. The
 *                              message names the worker. Its thread and the memory that it uses are not
 *                              freed
 *  @par Cost
 *  Waits for the functions that are being executed, and joins the threads. */
DITTO_API DITTO_NODISCARD ditto_status ditto_coordinator_destroy(ditto_coordinator *coordinator);

/** How a function is scheduled. Start from DITTO_SCHEDULE_OPTIONS_INIT. */
typedef struct ditto_schedule_options {
    size_t struct_size; /**< set by DITTO_SCHEDULE_OPTIONS_INIT */

    /** If not 0, the call never waits. It returns DITTO_PENDING if the queue is full, or if a function has
     *  failed and others have not ended. */
    int no_wait;

    /** If not NULL, the only argument of the function, for example one number. It is copied, and the function
     *  reads it with ditto_argument(self, NULL, ...). `arguments` must be NULL. */
    const ditto_tensor *argument;
} ditto_schedule_options;

/** Initial value of ditto_schedule_options: the defaults. */
#define DITTO_SCHEDULE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_schedule_options)

/** Puts a function into the queue. Any worker that is free executes it. If the queue is full, the call waits.
 *
 *  @param coordinator  the coordinator
 *  @param name         the name of a registered function
 *  @param arguments    the arguments of the function: plain values, or a nest of them, of the coordinator's
 *                      strategy. They are copied, also their elements, so the caller may change or destroy
 *                      them at once. NULL for none, or if options->argument is set
 *  @param options      NULL for the defaults
 *  @param out          [out] the result, which ditto_remote_fetch waits for. If it is NULL, results of the
 *                      function are discarded
 *  @return DITTO_OK, the error of a function that failed before, or one of:
 *  @retval DITTO_PENDING        no_wait is set, and the call would have to wait; nothing was scheduled
 *  @retval DITTO_ERR_NOT_FOUND  no function of this name is registered
 *  @retval DITTO_ERR_INVALID    an argument is a variable, slices, or has a component for each replica;
 *                               options->argument has no dtype, no data or a wrong alignment, or `arguments`
 *                               is given too; options was not initialised
 *  @retval DITTO_ERR_RANGE      options->argument has more bytes than size_t can count
 *  @retval DITTO_ERR_CONTEXT    an argument is of another strategy; called in a scheduled function
 *  @retval DITTO_ERR_TIMED_OUT  the queue was full for the whole timeout_ms of the strategy
 *  @retval DITTO_ERR_CANCELLED  ditto_coordinator_interrupt was called while the queue was full
 *  @retval DITTO_ERR_POISONED   all workers are retired
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for the arguments or the result
 *  @par Ownership
 *  The caller gives the result to ditto_remote_destroy.
 *  @par Cost
 *  A compare-and-swap and the write of one cache line, a copy of the arguments, an allocation for the result,
 *  and a wake-up if a worker sleeps. */
DITTO_API DITTO_NODISCARD ditto_status ditto_coordinator_schedule(ditto_coordinator *coordinator,
                                                                  const char *name,
                                                                  const ditto_value *arguments,
                                                                  const ditto_schedule_options *options,
                                                                  ditto_remote **out);

/** Waits until the queue is empty and no worker executes a function. If other threads schedule functions
 *  meanwhile, the call waits for these too.
 *
 *  A function may end with a positive status, for example because no batch was left. If its result has a
 *  handle, ditto_remote_fetch returns the status. Of the other functions, the call returns the positive
 *  status of the last one, once on each thread that has scheduled functions since its last join.
 *  ditto_coordinator_stats says how many functions have done so.
 *
 *  @param coordinator  the coordinator
 *  @return DITTO_OK; a positive status that a function returned, for example DITTO_END_OF_INPUT; the error of
 *          a function that failed before; or one of:
 *  @retval DITTO_ERR_TIMED_OUT  no function ended for the whole timeout_ms of the strategy, and the queue is
 *                               not empty or a worker still executes one. The message names it
 *  @retval DITTO_ERR_CANCELLED  ditto_coordinator_interrupt was called
 *  @retval DITTO_ERR_POISONED   all workers are retired. Functions that are left in the queue are cancelled
 *  @par Cost
 *  Reads a counter of each worker, and waits. */
DITTO_API DITTO_NODISCARD ditto_status ditto_coordinator_join(ditto_coordinator *coordinator);

/** Says whether the queue is empty and no worker executes a function, without waiting for it. The error of a
 *  function is returned when this is so. Before that, *done is 0.
 *
 *  @param coordinator  the coordinator
 *  @param done         [out] 1 if everything has ended, otherwise 0
 *  @return DITTO_OK, the error of a function that failed before, or an error of ditto_coordinator_join.
 *          Positive statuses of functions are returned by ditto_coordinator_join alone
 *  @par Cost
 *  Reads a counter of each worker. */
DITTO_API DITTO_NODISCARD ditto_status ditto_coordinator_done(ditto_coordinator *coordinator, int *done);

/** Ends the calls of other threads that wait for functions of a coordinator: ditto_coordinator_join,
 *  ditto_coordinator_schedule with a full queue, and ditto_remote_fetch. They return DITTO_ERR_CANCELLED. The
 *  functions are not changed, and may be waited for again.
 *
 *  @param coordinator  the coordinator, which must not be destroyed meanwhile
 *  @retval DITTO_OK           the calls that wait are woken, and return soon
 *  @retval DITTO_ERR_INVALID  coordinator is NULL
 *  @retval DITTO_ERR_FORKED   this is a child process after fork
 *  @par Thread safety
 *  Any thread may call it, in any context. A signal handler may not.
 *  @par Cost
 *  Wakes the threads that sleep. */
DITTO_API DITTO_NODISCARD ditto_status ditto_coordinator_interrupt(ditto_coordinator *coordinator);

/** @name Results
 *
 *  A handle may be used after its coordinator was destroyed. Its functions return DITTO_ERR_CONTEXT after the
 *  strategy was destroyed, except for ditto_remote_destroy.
 *  @{ */

/** Waits until a scheduled function has ended, and returns its results, copied. It may be called several
 *  times.
 *
 *  The results of a worker's only replica become plain values, or a nest of them. If a worker has several
 *  replicas, each result is a nest with a member for each replica ("0", "1", and so on).
 *
 *  @param remote  the result of ditto_coordinator_schedule
 *  @param out     [out] the results, or NULL if the function gave none. Set for DITTO_OK and for a positive
 *                 status
 *  @return DITTO_OK; the positive status that the function returned, for example DITTO_END_OF_INPUT; the
 *          error of the function; or one of:
 *  @retval DITTO_ERR_CANCELLED  the function was cancelled before it began (ditto_remote_cancel, the failure
 *                               of another function, or the end of the coordinator). It had no effects.
 *                               Schedule it again if it is still needed. Or, with a message that says so,
 *                               ditto_coordinator_interrupt was called
 *  @retval DITTO_ERR_TIMED_OUT  no function ended for the whole timeout_ms of the strategy; or this one was
 *                               begun max_attempts times, and each time took longer than run_timeout_ms
 *  @retval DITTO_ERR_CONTEXT    called in a scheduled function; the strategy was destroyed
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for the results
 *  @par Ownership
 *  The caller destroys the value.
 *  @par Cost
 *  One copy of the results. */
DITTO_API DITTO_NODISCARD ditto_status ditto_remote_fetch(ditto_remote *remote, ditto_value **out);

/** Says whether a scheduled function has ended, or was cancelled, without waiting for it.
 *
 *  @param remote  the result of ditto_coordinator_schedule
 *  @param done    [out] 1 if ditto_remote_fetch would not wait, otherwise 0
 *  @retval DITTO_OK           done is set
 *  @retval DITTO_ERR_INVALID  a pointer is NULL
 *  @par Thread safety
 *  Any thread may call it, in any context. */
DITTO_API DITTO_NODISCARD ditto_status ditto_remote_test(ditto_remote *remote, int *done);

/** Cancels a scheduled function that no worker has begun. Threads that wait for its result are woken.
 *
 *  @param remote  the result of ditto_coordinator_schedule
 *  @retval DITTO_OK        the function will not be executed, and ditto_remote_fetch returns
 *                          DITTO_ERR_CANCELLED
 *  @retval DITTO_ERR_BUSY  a worker has begun it, or it has ended; nothing was done
 *  @par Thread safety
 *  Any thread may call it, in any context.
 *  @par Cost
 *  One compare-and-swap. The function keeps its place in the queue until a worker skips it. */
DITTO_API DITTO_NODISCARD ditto_status ditto_remote_cancel(ditto_remote *remote);

/** Destroys the handle. The function is executed nevertheless.
 *
 *  @param remote  the handle; NULL is allowed
 *  @return DITTO_OK
 *  @par Thread safety
 *  Any thread may call it, in any context.
 *  @par Cost
 *  Frees the results if the function has ended. Otherwise the worker frees them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_remote_destroy(ditto_remote *remote);

/** @} */

/** @name Workers, and what belongs to one of them
 *  @{ */

/** What a coordinator knows about a worker. */
typedef struct ditto_worker_info {
    size_t struct_size; /**< set by DITTO_WORKER_INFO_INIT */

    /** The id of its first replica in the placement of the strategy. */
    uint32_t first_replica;

    uint32_t num_replicas; /**< the number of its replicas */
    int is_retired;        /**< not 0 if it gets no further functions */

    /** Not 0 if it executes a function, also a late one that was taken away from it. */
    int is_busy;

    /** The number of functions that it has executed, also of those that failed. */
    uint64_t functions;

    uint64_t busy_ns; /**< how long they took */

    /** How often it has made the iterators of per-worker datasets. */
    uint64_t iterators;

    /** How long it had no function to execute, since its thread began. A later call never returns less. */
    uint64_t idle_ns;
} ditto_worker_info;

/** Initial value of ditto_worker_info. */
#define DITTO_WORKER_INFO_INIT DITTO_OPTIONS_INIT(ditto_worker_info)

/** Reads what a worker has done.
 *
 *  @param coordinator  the coordinator
 *  @param worker       number of the worker, from 0
 *  @param out          [out] the information. Start from DITTO_WORKER_INFO_INIT
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  a pointer is NULL, or struct_size is not set
 *  @retval DITTO_ERR_RANGE    there is no such worker
 *  @par Thread safety
 *  Any thread may call it, in any context. */
DITTO_API DITTO_NODISCARD ditto_status ditto_coordinator_worker_info(const ditto_coordinator *coordinator,
                                                                     uint32_t worker, ditto_worker_info *out);

/** What a coordinator has done since it was created. Times of several workers are added up. */
typedef struct ditto_coordinator_counters {
    size_t struct_size; /**< set by DITTO_COORDINATOR_COUNTERS_INIT */

    uint64_t elapsed_ns; /**< time since the coordinator was created */
    uint64_t scheduled;  /**< functions that were put into the queue */
    uint64_t ended;      /**< those of them that were executed, have failed, or were cancelled */
    uint64_t functions;  /**< executions that ended in time, as in ditto_worker_info */

    uint64_t busy_ns; /**< time of these executions. Divided by the sum with idle_ns it is the load */
    uint64_t idle_ns; /**< time in which workers had nothing to execute. If it is small, add workers */

    uint64_t depth; /**< functions that wait in the queue now */

    /** The largest depth that was seen. */
    uint64_t largest_depth;

    /** How deep the queue was when a function was scheduled, with this function. Every 16th function is
     *  counted. Range 0 means that a worker had taken it already, range k is a depth from 2^(k-1) to
     *  2^k - 1. */
    uint64_t depth_histogram[DITTO_HISTOGRAM_LENGTH];

    uint32_t num_workers; /**< workers of the strategy */
    uint32_t num_retired; /**< those of them that are retired */

    /** Functions that were cancelled before they began, for whatever reason. They are among `ended`. */
    uint64_t cancelled;

    /** Functions that returned a positive status, such as DITTO_END_OF_INPUT. They are among `ended`. */
    uint64_t positive;
} ditto_coordinator_counters;

/** Initial value of ditto_coordinator_counters. */
#define DITTO_COORDINATOR_COUNTERS_INIT DITTO_OPTIONS_INIT(ditto_coordinator_counters)

/** Reads what the queue and all workers have done. While functions are executed, the numbers are approximate:
 *  a function counts when it has ended.
 *
 *  @param coordinator  the coordinator
 *  @param out          [out] the numbers. Start from DITTO_COORDINATOR_COUNTERS_INIT
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  a pointer is NULL, or struct_size is not set
 *  @par Thread safety
 *  Any thread may call it, in any context.
 *  @par Cost
 *  Reads a few cache lines of each worker. */
DITTO_API DITTO_NODISCARD ditto_status ditto_coordinator_stats(const ditto_coordinator *coordinator,
                                                               ditto_coordinator_counters *out);

/** Makes a value for each worker, which the worker's functions may read and write. It lives on the worker's
 *  node, and keeps its contents between functions.
 *
 *  @param coordinator  the coordinator
 *  @param function     is called on this thread, once for each worker, with its number and the number of
 *                      workers. The tensor that it provides is copied
 *  @param user         passed to the function
 *  @param out          [out] the values; set only on DITTO_OK
 *  @return DITTO_OK, an error of the function, or one of:
 *  @retval DITTO_ERR_USER       the function returned a positive status
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for a value
 *  @par Ownership
 *  The caller may give it to ditto_per_worker_destroy. Otherwise it is freed with the coordinator.
 *  @par Cost
 *  One call of the function and one copy for each worker. */
DITTO_API DITTO_NODISCARD ditto_status ditto_coordinator_values_from_function(ditto_coordinator *coordinator,
                                                                              ditto_value_fn function,
                                                                              void *user,
                                                                              ditto_per_worker **out);

/** Makes an iterator for each worker. Each worker makes its own, on its own thread, before it begins the next
 *  function. The time that this takes is not time of the function. If run_timeout_ms is set, a worker that
 *  needs longer than timeout_ms of the strategy (or than run_timeout_ms, if that is longer) is retired. If a
 *  worker cannot make it, ditto_worker_iterator returns the error to the functions that ask for it, and the
 *  worker tries again before the function after them. Other functions are not affected.
 *
 *  Shuffles and maps whose seed is 0 have another order and other random numbers on each worker, the same in
 *  every run. For the same ones on all workers give a seed.
 *
 *  A worker reads its own dataset and knows nothing of the others. Which rows are used how often depends on
 *  which worker takes how many functions. A dataset usually repeats for ever, and the coordinator schedules a
 *  number of steps.
 *
 *  @param coordinator  the coordinator
 *  @param function     makes the dataset of a worker. The context says which one: pipeline is the number of
 *                      the worker, num_pipelines that of all workers, and num_replicas that of all their
 *                      replicas. The batch of the dataset is that of one replica. It is called on the
 *                      worker's thread, and may run on several threads at the same time
 *  @param user         passed to the function
 *  @param options      NULL for the defaults. num_pipelines must be 0
 *  @param out          [out] the iterators; set only on DITTO_OK
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID      options was not initialised, or has num_pipelines or a state
 *  @retval DITTO_ERR_UNSUPPORTED  options is of a newer version
 *  @retval DITTO_ERR_NO_MEMORY    there is no memory
 *  @par Ownership
 *  The caller may give it to ditto_per_worker_destroy. Otherwise it is freed with the coordinator.
 *  @par Cost
 *  That of ditto_strategy_iterate_from_function, on each worker. */
DITTO_API DITTO_NODISCARD ditto_status ditto_coordinator_datasets_from_function(
    ditto_coordinator *coordinator, ditto_dataset_fn function, void *user, const ditto_input_options *options,
    ditto_per_worker **out);

/** Destroys the values or iterators of all workers. Functions that use them must not be scheduled during the
 *  call, nor later. It is called before the coordinator is destroyed.
 *
 *  @param per_worker  the values or iterators; NULL is allowed
 *  @retval DITTO_OK           they are destroyed. In a child process after fork their memory stays until the
 *                             child ends
 *  @retval DITTO_ERR_BUSY     functions are in the queue or being executed, also late ones; or another thread
 *                             is in a call on one of the iterators. Nothing is lost: call it again later
 *  @retval DITTO_ERR_CONTEXT  called in a scheduled function or in a run; nothing was done
 *  @par Cost
 *  Waits for the producers of the iterators, and frees the memory. */
DITTO_API DITTO_NODISCARD ditto_status ditto_per_worker_destroy(ditto_per_worker *per_worker);

/** Returns the worker's own value. It is called in a scheduled function, on the replica's thread.
 *
 *  @param self        the calling replica
 *  @param per_worker  from ditto_coordinator_values_from_function
 *  @param out         [out] the value, which may be written. The replicas of a worker share it
 *  @return DITTO_OK, the error of a value that the worker could not make, or one of:
 *  @retval DITTO_ERR_INVALID  a pointer is NULL; per_worker has iterators
 *  @retval DITTO_ERR_CONTEXT  self is not the calling thread's replica; this is no function of per_worker's
 *                             coordinator */
DITTO_API DITTO_NODISCARD ditto_status ditto_worker_value(ditto_replica *self, ditto_per_worker *per_worker,
                                                          ditto_tensor *out);

/** Returns the worker's own iterator, for ditto_next. It is called in a scheduled function, on the replica's
 *  thread.
 *
 *  @param self        the calling replica
 *  @param per_worker  from ditto_coordinator_datasets_from_function
 *  @param out         [out] the iterator, which belongs to per_worker
 *  @return DITTO_OK, the error of an iterator that the worker could not make, or one of:
 *  @retval DITTO_ERR_INVALID  a pointer is NULL; per_worker has values
 *  @retval DITTO_ERR_CONTEXT  self is not the calling thread's replica; this is no function of per_worker's
 *                             coordinator */
DITTO_API DITTO_NODISCARD ditto_status ditto_worker_iterator(ditto_replica *self,
                                                             ditto_per_worker *per_worker,
                                                             ditto_iterator **out);

/** Returns the number of the worker whose function the replica executes.
 *
 *  @param self  the calling replica
 *  @return the number, from 0; UINT32_MAX outside of scheduled functions, and after an error, which is in
 *          ditto_last_error() */
DITTO_API uint32_t ditto_worker(const ditto_replica *self);

/** @} */

/** @name Datasets that all workers share
 *
 *  Each batch is taken by one worker, in whatever order workers ask, so every row is used once in a pass, and
 *  a worker that is slow takes fewer batches. A worker reads the rows of its batch itself, into memory on the
 *  node of the replica, while others read theirs. Only the choice of the rows is made by one worker at a
 *  time. There are no producers: what reading takes is time of the function that asks.
 *
 *  **Lost workers.** If a worker is retired, the batches that its function has taken are taken again, before
 *  all others. Each row is therefore used by at least one function that ends in time, and perhaps also by one
 *  that was late. The batches of a function that fails are not taken again.
 *  @{ */

/** Begins a pass over a dataset that the workers share.
 *
 *  @param coordinator  the coordinator
 *  @param dataset      the dataset. It is kept alive until the shared dataset is destroyed
 *  @param options      NULL for the defaults. Only global_batch, the number of rows of a batch if the dataset
 *                      is not batched, partial, pass, DITTO_INPUT_STATIC and the state may be set. buffer may
 *                      be DITTO_NO_PREFETCH
 *  @param out          [out] the shared dataset; set only on DITTO_OK
 *  @return DITTO_OK, an error of the dataset, or one of:
 *  @retval DITTO_ERR_INVALID      the dataset is not batched and global_batch is 0, or both are set and
 *                                 differ; another option is set; a flag is unknown; the state is of another
 *                                 dataset, batch or pass; options was not initialised
 *  @retval DITTO_ERR_RANGE        partial is unknown; a batch has more bytes than size_t can count
 *  @retval DITTO_ERR_CORRUPT      the state is truncated, damaged, or of an iterator
 *  @retval DITTO_ERR_UNSUPPORTED  options is of a newer version; the state has the position of a generator
 *                                 that lacks `restore`
 *  @retval DITTO_ERR_NO_MEMORY    there is no memory
 *  @par Ownership
 *  The caller gives it to ditto_shared_dataset_destroy, before the coordinator is destroyed or after it.
 *  @par Cost
 *  Opens the dataset. Each replica allocates memory for its part of one batch when it first asks for one. */
DITTO_API DITTO_NODISCARD ditto_status ditto_coordinator_shared_dataset(ditto_coordinator *coordinator,
                                                                        ditto_dataset *dataset,
                                                                        const ditto_input_options *options,
                                                                        ditto_shared_dataset **out);

/** Takes a batch. It is called in a scheduled function, on the replica's thread.
 *
 *  If a worker has several replicas, each gets its part of the batch, as ditto_strategy_iterate divides the
 *  rows of a step. All replicas of the worker call it equally often in a function.
 *
 *  @param self    the calling replica
 *  @param shared  the shared dataset
 *  @param out     [out] the batch; set only on DITTO_OK. `step` is its number in the pass, from 0, in the
 *                 order of the rows. It is valid until the replica's next call for the same shared dataset,
 *                 or until the function ends
 *  @return DITTO_OK, the error of the input, or one of:
 *  @retval DITTO_END_OF_INPUT   no batch is left. Later calls return this again, unless a worker is retired
 *                               and its batches are taken again
 *  @retval DITTO_ERR_TIMED_OUT  the calling worker is retired; or another one, perhaps a retired one, chose
 *                               rows for the whole timeout_ms of the strategy, as the message says
 *  @retval DITTO_ERR_DIVERGED   not from this call, but from the function, when it has ended: its replicas
 *                               have not called this equally often
 *  @retval DITTO_ERR_CONTEXT    self is not the calling thread's replica; this is no function of the shared
 *                               dataset's coordinator
 *  @retval DITTO_ERR_FORKED     this is a child process after fork
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for the batch
 *  @retval DITTO_ERR_INVALID    a pointer is NULL
 *  An error of the input is returned to the function that asked for the rows, and to all that ask later.
 *  DITTO_ERR_NO_MEMORY while rows are read, and any error that a retired worker finds in the rows of its
 *  batch, are returned to the caller alone. The
 *  batch that has a row which cannot be read is not delivered; if the input fails while rows are chosen,
 *  those before the error are delivered first, as a smaller batch.
 *  @par Cost
 *  Chooses the rows, while other workers that ask wait, and reads them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_shared_dataset_next(ditto_replica *self,
                                                                 ditto_shared_dataset *shared,
                                                                 ditto_batch *out);

/** Saves the position of the pass: a shared dataset that is made from it (ditto_input_options.state) delivers
 *  exactly the batches that have not been taken. A batch is taken when ditto_shared_dataset_next has chosen
 *  it. A function that takes it may still fail, or be retired, after the save, so a position after
 *  ditto_coordinator_join is the one to continue from. The number of workers and their replicas may differ.
 *  After the coordinator was destroyed, the call returns DITTO_ERR_CONTEXT.
 *
 *  @param shared  the shared dataset
 *  @param state   [out] the state
 *  @param bytes   [out] length of the state in bytes
 *  @return DITTO_OK, the error that has ended the pass, or one of:
 *  @retval DITTO_ERR_UNSUPPORTED  a generator of the dataset has not ended, and lacks `save` or `restore`
 *  @retval DITTO_ERR_USER         `save` of a generator failed. If it returned another error, that error is
 *                                 returned
 *  @retval DITTO_ERR_INVALID      a pointer is NULL; `save` of a generator returned a larger length in its
 *                                 second call
 *  @retval DITTO_ERR_TIMED_OUT    a worker, perhaps a retired one, chose the rows of a batch for the whole
 *                                 timeout_ms of the strategy. The message says so
 *  @retval DITTO_ERR_NO_MEMORY    there is no memory for the state
 *  @retval DITTO_ERR_FORKED       this is a child process after fork
 *  @par Ownership
 *  The caller frees the state with ditto_state_free.
 *  @par Cost
 *  That of ditto_iterator_save. It waits for a worker that chooses the rows of a batch. */
DITTO_API DITTO_NODISCARD ditto_status ditto_shared_dataset_save(ditto_shared_dataset *shared, void **state,
                                                                 size_t *bytes);

/** Ends the pass, even if batches are left. Functions that use it must not be scheduled during the call, nor
 *  later. It may be called after the coordinator was destroyed, which ends the pass.
 *
 *  @param shared  the shared dataset; NULL is allowed
 *  @retval DITTO_OK           it is destroyed. In a child process after fork its memory stays until the child
 *                             ends
 *  @retval DITTO_ERR_BUSY     functions are in the queue or being executed, also late ones; nothing was done
 *  @retval DITTO_ERR_CONTEXT  called in a scheduled function or in a run; nothing was done
 *  @par Cost
 *  Frees the memory of all replicas. */
DITTO_API DITTO_NODISCARD ditto_status ditto_shared_dataset_destroy(ditto_shared_dataset *shared);

/** @} */
/** @} */

DITTO_END
#endif
