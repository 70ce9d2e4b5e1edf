/* include/ditto/distribute.h - cuts a dataset into per-replica batches and delivers them to the replicas.
 *
 * A step gives every replica one batch, which may have no rows. N is the number of replicas, and G is the
 * number of rows of a full step over all replicas. One pipeline serves all replicas, or W pipelines serve
 * N / W replicas each. Each pipeline chooses its rows one after another. Its producers are threads beside the
 * replicas. They read and compute the rows ahead of time, into memory on the node of the replica that
 * receives them. docs/input.md describes how to choose the options and how to measure input.
 * docs/semantics.md defines which rows each replica gets.
 *
 * All functions return DITTO_ERR_INVALID if a pointer other than `self` is NULL, and NULL has no meaning. */
#ifndef DITTO_DISTRIBUTE_H
#define DITTO_DISTRIBUTE_H

#include <ditto/dataset.h>
#include <ditto/strategy.h>
#include <ditto/value.h>

DITTO_BEGIN

/** One pass over a distributed dataset. It owns the producers, and one queue of batches for each replica. It
 *  cannot be set back to the beginning. A program with several epochs makes an iterator for each, with the
 *  number of the epoch as ditto_input_options.pass, or uses ditto_dataset_repeat. */
typedef struct ditto_iterator ditto_iterator;

/** How the rows of a step with fewer rows than a full one, usually the last, are divided among the
 *  replicas. */
typedef enum ditto_partial_policy {
    DITTO_PARTIAL_DEFAULT = 0, /**< the same as DITTO_PARTIAL_FILL */

    /** The batches are filled in replica order. For 6 rows with G = 8 and N = 2 they have 4 and 2 rows. */
    DITTO_PARTIAL_FILL = 1,

    /** The rows are divided evenly. For 6 rows with N = 2 the batches have 3 and 3 rows. */
    DITTO_PARTIAL_EVEN = 2,
} ditto_partial_policy;

/** How several pipelines share one dataset. Except with DITTO_SHARD_OFF, every row is delivered by one of
 *  them. */
typedef enum ditto_shard_policy {
    DITTO_SHARD_DEFAULT = 0, /**< the same as DITTO_SHARD_AUTO */

    /** DITTO_SHARD_FILE if the dataset has at least as many files as there are pipelines, all its rows come
     *  from files, and no transformation counts rows across files (take, skip, shard, zip,
     *  DITTO_BATCH_DROP_REMAINDER). Otherwise DITTO_SHARD_DATA. All files of one ditto_dataset_from_npy
     *  count as one. */
    DITTO_SHARD_AUTO = 1,

    /** Pipeline w reads the files whose number, from 0, mod W is w. A pipeline without files has no rows. */
    DITTO_SHARD_FILE = 2,

    /** Every pipeline chooses all rows, and delivers those of its own replicas. The rows of each replica, and
     *  the error that ends them, are the same with any number of pipelines. */
    DITTO_SHARD_DATA = 3,

    /** Every pipeline delivers all rows to its own replicas. */
    DITTO_SHARD_OFF = 4,
} ditto_shard_policy;

/** How many datasets a function makes for ditto_strategy_iterate_from_function. */
typedef enum ditto_replication_mode {
    DITTO_REPLICATION_DEFAULT = 0, /**< the same as DITTO_REPLICATION_PER_PIPELINE */

    /** One dataset for each pipeline. The replicas of the pipeline receive its batches in rotation. */
    DITTO_REPLICATION_PER_PIPELINE = 1,

    /** One dataset for each replica. There are as many pipelines as replicas. */
    DITTO_REPLICATION_PER_REPLICA = 2,
} ditto_replication_mode;

/** For ditto_input_options.buffer: each batch except for the first is made when its replica asks for it. */
#define DITTO_NO_PREFETCH UINT32_MAX

/** Flag of ditto_input_options: every batch has its full size, which is 0 for some replicas if G < N. The
 *  pass ends before the first step for which any pipeline has too few rows. All rows from this step on are
 *  dropped. */
#define DITTO_INPUT_STATIC 1u

/** Flag of ditto_input_options: batches are on the node of the thread that creates the iterator, and not on
 *  the nodes of their replicas. */
#define DITTO_INPUT_HOST_MEMORY 2u

/** Options of an iterator. A field that is 0 has its default. */
typedef struct ditto_input_options {
    size_t struct_size; /**< set by DITTO_INPUT_OPTIONS_INIT */

    /** G, for a dataset that is not batched. 0 means the number of rows that the dataset was batched with. */
    uint64_t global_batch;

    /** Number of batches that may wait ready for each replica, in addition to the batch in use. At most
     *  65536, or DITTO_NO_PREFETCH. 0 means the number given to ditto_dataset_prefetch for the dataset, or
     *  for the first one of a function, or 2 without it. */
    uint32_t buffer;

    /** Number of producer threads of each pipeline, at most 1024. 0 means as many as there are free PUs,
     *  divided by W, but at least 1, and at most one for each replica of the pipeline. A PU is free if the
     *  calling thread may run on it, and no strategy uses it for a replica. The rows and their order are the
     *  same with any number. */
    uint32_t num_producers;

    /** How a step with fewer rows is divided. Refused for datasets from a function. */
    ditto_partial_policy partial;

    /** Number of the pass (the epoch), from 0. A dataset that reshuffles has another order, and a map other
     *  random numbers, in each pass. With a state, 0 means the pass that the state continues. */
    uint64_t pass;

    /** W. It divides N. 0 means 1, or N with DITTO_REPLICATION_PER_REPLICA. A host of a cluster has only the
     *  pipelines that serve its replicas. */
    uint32_t num_pipelines;

    /** How the pipelines share the dataset. Refused for datasets from a function. */
    ditto_shard_policy shard;

    /** DITTO_REPLICATION_PER_REPLICA is allowed for datasets from a function only. */
    ditto_replication_mode replication;

    uint32_t flags; /**< DITTO_INPUT_... bits */

    /** Limit in bytes for all queues together. If it is too small for `buffer`, fewer batches wait. 0 means
     *  no limit. */
    uint64_t max_bytes;

    /** State from ditto_iterator_save: the iterator continues there. NULL begins a pass. It is read only
     *  during the call. Over several hosts, all give a state or none does, and that of host 0 counts. */
    const void *state;

    size_t state_bytes; /**< length of `state` in bytes */
} ditto_input_options;

/** Initial value of ditto_input_options. */
#define DITTO_INPUT_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_input_options)

/* -- Starting and ending a pass --
 *
 * - Context. Functions that do not say otherwise are called in cross-replica context, and also return the
 *   errors of the group "Strategies" (strategy.h).
 * - Sizes. In a full step, replica r gets floor(G/N) rows, and the first G mod N replicas get one more.
 *   Consecutive rows go to the replicas in replica order. Pipelines that choose their rows independently
 *   (FILE, OFF) rotate these sizes: in step t, the replicas of pipeline w get the sizes that are those of
 *   pipeline (w + t) mod W without rotation. So over W steps all pipelines deliver equally many rows.
 * - End. Without DITTO_INPUT_STATIC, a step exists if any replica has rows in it, or if a pipeline whose size
 *   in it is 0 has rows for a later step. A replica without rows gets a batch of 0 rows. The last step may
 *   have fewer rows. If all pipelines end in the same step (see ditto_iterator_spec), a smaller last step is
 *   dropped if the dataset was batched with DITTO_BATCH_DROP_REMAINDER or is infinite. (The input of an
 *   infinite dataset ends if a repetition has no rows.) */

/** Starts a pass over a dataset.
 *
 *  A batch may contain the last rows of one repetition of the dataset and the first of the next. When the
 *  files of one pipeline have ended before those of the others, its steps may have fewer rows. Nothing is
 *  dropped for that reason, unless DITTO_INPUT_STATIC is set.
 *
 *  @param strategy  the strategy whose replicas receive the batches
 *  @param dataset   the dataset. The iterator keeps it alive until the iterator is destroyed
 *  @param options   the options, or NULL for the defaults
 *  @param out       [out] the iterator; set only on DITTO_OK
 *  @return DITTO_OK, an error of reading a compressed file that a state continues, or one of:
 *  @retval DITTO_ERR_INVALID      one of these:
 *      - The dataset is not batched, and global_batch is 0.
 *      - The dataset is batched, and global_batch is neither 0 nor the same number.
 *      - W does not divide N.
 *      - Options contradict one another. The message names them.
 *      - A flag is unknown.
 *      - The state was saved with another dataset, G, W or way of sharing rows, or continues another pass
 *        than `pass`, which is not 0. Datasets that differ only in paths, functions or data are not
 *        distinguished.
 *      - The state was saved with another N, while replicas or pipelines were at different steps.
 *      - DITTO_SHARD_FILE with several pipelines, for a dataset that counts rows across files (take, skip,
 *        shard, zip, DROP_REMAINDER) or that also has sources without files.
 *  @retval DITTO_ERR_NOT_FOUND    DITTO_SHARD_FILE for a dataset without files
 *  @retval DITTO_ERR_RANGE        one of these:
 *      - An enum value is unknown.
 *      - `buffer` is above 65536, or num_producers is above 1024.
 *      - The bytes of the batches overflow size_t.
 *      - max_bytes is too small for one batch of each replica.
 *  @retval DITTO_ERR_CORRUPT      the state is truncated or damaged
 *  @retval DITTO_ERR_NO_MEMORY    memory was refused, for example for a queue or for the rows of a step
 *  @retval DITTO_ERR_SYSTEM       the operating system refused a producer's thread
 *  @retval DITTO_ERR_USER         `open` or `restore` of a generator failed. If it returned another error,
 *                                 that error is returned
 *  @retval DITTO_ERR_UNSUPPORTED  one of these:
 *      - The options are of a newer version, and have a field set that this version lacks.
 *      - The state has the position of a generator that lacks `restore`.
 *      - Several pipelines read different rows over several hosts, and the cluster has no life line
 *        (ditto_cluster_properties), or the state is of an earlier version.
 *  @retval DITTO_ERR_DIVERGED     the datasets or options of hosts differ
 *  @par Ownership
 *  The caller destroys the iterator with ditto_iterator_destroy.
 *  @par Cost
 *  An iterator has memory for buffer + 1 batches per replica, 8 bytes or more for each row of buffer + 2
 *  steps, and its producer threads. Rows of generators and compressed files are kept with their values for
 *  these steps. With DITTO_SHARD_DATA, every pipeline keeps all rows of a step, and not only those of its own
 *  replicas. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_iterate(ditto_strategy *strategy,
                                                              ditto_dataset *dataset,
                                                              const ditto_input_options *options,
                                                              ditto_iterator **out);

/** Describes the dataset that a function is asked to make. */
typedef struct ditto_input_context {
    uint32_t num_pipelines; /**< W */
    uint32_t pipeline;      /**< number of the pipeline, from 0 */
    uint32_t num_replicas;  /**< N, over all pipelines */
} ditto_input_context;

/** Computes how many rows each replica's batch has if a step has global_batch rows.
 *
 *  @param context       the context that a ditto_dataset_fn was called with
 *  @param global_batch  number of rows of a step, over all replicas
 *  @param out           [out] global_batch divided by the number of replicas; set only on DITTO_OK
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_INVALID  global_batch is 0, or the number of replicas does not divide it
 *  @par Thread safety
 *  Any thread may call it, in any context. */
DITTO_API DITTO_NODISCARD ditto_status ditto_input_per_replica_batch(const ditto_input_context *context,
                                                                     uint64_t global_batch, uint64_t *out);

/** Makes the dataset of one pipeline. The dataset's batch size is the size of one replica's batch.
 *
 *  @param context  the pipeline, and the numbers of pipelines and replicas
 *  @param user     the pointer that was given to ditto_strategy_iterate_from_function
 *  @param out      [out] the dataset, which the library destroys. After an error it is ignored
 *  @return DITTO_OK, or an error, which ditto_strategy_iterate_from_function returns */
typedef ditto_status (*ditto_dataset_fn)(const ditto_input_context *context, void *user, ditto_dataset **out);

/** Starts a pass over datasets that a function makes.
 *
 *  The function is called once for each pipeline, or for each replica (ditto_replication_mode), on the
 *  calling thread, in ascending order. Each host of a cluster calls it for the pipelines that serve its own
 *  replicas. A pipeline that serves replicas of two hosts must have the same dataset on both. The datasets
 *  are neither sharded nor rebatched: the replicas of a pipeline receive its batches in rotation. A last step
 *  in which only some replicas have a batch is delivered, with two exceptions. It is dropped if
 *  DITTO_INPUT_STATIC is set. It is also dropped if there is one pipeline, and its dataset was batched with
 *  DITTO_BATCH_DROP_REMAINDER or is infinite.
 *
 *  @param strategy  the strategy whose replicas receive the batches
 *  @param function  makes the datasets
 *  @param user      given to the function
 *  @param options   the options, or NULL for the defaults
 *  @param out       [out] the iterator; set only on DITTO_OK
 *  @return DITTO_OK, an error of ditto_strategy_iterate, or one of:
 *  @retval DITTO_ERR_INVALID  one of these:
 *      - global_batch, partial or shard is set.
 *      - replication is DITTO_REPLICATION_PER_REPLICA, and num_pipelines is neither 0 nor N.
 *      - A dataset is not batched, or the function returned DITTO_OK without a dataset.
 *      - The rows of two pipelines differ in dtypes or shapes.
 *  @retval DITTO_ERR_USER     the function failed. If it returned another error, that error is returned
 *  @par Ownership
 *  The caller destroys the iterator with ditto_iterator_destroy.
 *  @par Cost
 *  That of ditto_strategy_iterate, and the calls of the function. */
DITTO_API DITTO_NODISCARD ditto_status
ditto_strategy_iterate_from_function(ditto_strategy *strategy, ditto_dataset_fn function, void *user,
                                     const ditto_input_options *options, ditto_iterator **out);

/** Stops the producers and frees the queues, even if rows are left. It may be called after the strategy was
 *  destroyed.
 *
 *  It waits for a run of the strategy that is in progress on another thread. In a child process after fork,
 *  and if a replica never returned from an earlier run, the iterator's memory is not freed. A producer may
 *  have been interrupted in the middle of its work by the fork, and the replica may still take a batch.
 *
 *  @param iterator  the iterator, or NULL
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_BUSY     a call on the iterator has not returned. Nothing was done
 *  @retval DITTO_ERR_CONTEXT  called in a function that a replica executes, unless it is the default
 *                             strategy's, or in a function of a dataset. Nothing was done
 *  @par Cost
 *  Waits until the producers have finished their present rows, and frees the queues. */
DITTO_API DITTO_NODISCARD ditto_status ditto_iterator_destroy(ditto_iterator *iterator);

/* -- The shape of batches -- */

/** Describes the batches of an iterator. Component k of a batch has the shape [rows, shape of component k of
 *  a row].
 *
 *  The dimension `rows` is DITTO_ANY_SIZE, unless it is certain that all batches of all replicas have the
 *  same number of rows. This is certain if N divides G (with datasets of a function: if all are batched by
 *  the same number of rows), and one of these holds:
 *   - DITTO_INPUT_STATIC is set.
 *   - The dataset is infinite or was batched with DITTO_BATCH_DROP_REMAINDER, and all pipelines end in the
 *     same step. They do if there is one pipeline, or if they share one dataset by DATA, or by OFF if N
 *     divides G. In this case a batch directly before an error of the input may still have fewer rows.
 *
 *  @param iterator  the iterator
 *  @param out       [out] the description. `batch` is the largest number of rows of a step, over all
 *                   replicas. `infinite` is 1 if the dataset of a pipeline is infinite (with
 *                   DITTO_INPUT_STATIC: if the datasets of all pipelines are)
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_INVALID  an argument is NULL
 *  @par Thread safety
 *  Any thread may call it, in any context. It may be called after the strategy was destroyed. */
DITTO_API DITTO_NODISCARD ditto_status ditto_iterator_spec(const ditto_iterator *iterator,
                                                           ditto_element_spec *out);

/* -- Batches of one replica. The functions are called in replica context. -- */

/** The batch of one replica. It is a view of memory in the queue, valid until the replica asks the same
 *  iterator for its next batch, or the iterator or its strategy is destroyed. */
typedef struct ditto_batch {
    /** Number of rows. 0 means that this replica has no rows in this step. The replica still takes part in
     *  it. */
    uint64_t rows;

    /** Number of the step in the pass, from 0. An iterator that was made from a saved state continues to
     *  count. */
    uint64_t step;

    uint32_t num_components; /**< number of components */

    /** Component k has the shape [rows, shape of component k of a row]. Its data is aligned to 64 bytes. */
    ditto_tensor component[DITTO_MAX_COMPONENTS];
} ditto_batch;

/** Takes the replica's next batch.
 *
 *  An error of the input is returned after all rows before it have been delivered. The last of these rows may
 *  make a smaller batch, which is not delivered if DITTO_INPUT_STATIC is set. No replica of the pipeline gets
 *  rows that come after the error. With DITTO_SHARD_DATA or DITTO_INPUT_STATIC, no replica at all gets them.
 *  In the other cases the replicas of other pipelines continue with their own rows. They get the error in
 *  place of the end, or of a batch without rows that comes after it. Later calls return the error again.
 *
 *  @param self      the calling replica. Outside of runs and scopes it may be the replica of the default
 *                   strategy (ditto_get_replica_context), with an iterator of that strategy. Threads that
 *                   share such an iterator receive its batches in turn, and each call ends the validity of
 *                   the batch before it. Other threads' calls on the default strategy, also those that access
 *                   its variables, wait until this call returns
 *  @param iterator  an iterator of the replica's strategy
 *  @param out       [out] the batch; set only on DITTO_OK
 *  @return DITTO_OK, another error that reading the dataset returned, or one of:
 *  @retval DITTO_END_OF_INPUT      all batches have been taken. Later calls return this again
 *  @retval DITTO_ERR_CORRUPT       a file has contents that are wrong. The message names file and position
 *  @retval DITTO_ERR_IO            reading a file failed. The message names file and position
 *  @retval DITTO_ERR_USER          a function of the dataset failed. If it returned another error, that is
 *                                  returned
 *  @retval DITTO_ERR_DIVERGED      the producers wait for a replica that has returned from its function, so
 *                                  no further row can come. The message names that replica
 *  @retval DITTO_ERR_TIMED_OUT     no batch came within timeout_ms or run_timeout_ms of the strategy
 *  @retval DITTO_ERR_PEER_STOPPED  another replica failed
 *  @retval DITTO_ERR_FORKED        the strategy was created before fork, in the parent process
 *  @retval DITTO_ERR_CONTEXT       one of these:
 *      - `self` is not the calling thread's own replica.
 *      - The iterator belongs to another strategy, or its strategy was destroyed.
 *      - The iterator has been used with ditto_iterator_next.
 *  @par Cost
 *  Nothing is copied. If the batch is ready, the call does not wait. It may wake a producer that waits for
 *  the memory of the previous batch. */
DITTO_API DITTO_NODISCARD ditto_status ditto_next(ditto_replica *self, ditto_iterator *iterator,
                                                  ditto_batch *out);

/* -- Batches of all replicas --
 *
 * The functions are called in cross-replica context. They also return the errors of the group "Strategies",
 * and DITTO_ERR_CONTEXT if the iterator's strategy was destroyed. */

/** Takes the next batch of every replica as one per-replica value, for ditto_strategy_run_values.
 *
 *  If rows have several components, the value is a nest of per-replica values with the names "0", "1", and so
 *  on. As long as any replica gets a batch, replicas whose input has ended or failed have 0 rows. After that,
 *  the end or the error is returned. If several pipelines have failed, it is the error that comes first in
 *  the order of all batches, which is by step, and within a step by replica.
 *
 *  A call that fails takes no batches. After DITTO_ERR_TIMED_OUT or DITTO_ERR_NO_MEMORY, the next call
 *  returns the batches that this call would have returned. An iterator is used either with this function or
 *  with ditto_next.
 *
 *  @param iterator  the iterator
 *  @param out       [out] the value. It is a copy, so it stays valid
 *  @return DITTO_OK, an error of ditto_next, or one of:
 *  @retval DITTO_END_OF_INPUT   all batches have been taken. Later calls return this again
 *  @retval DITTO_ERR_CONTEXT    the iterator has been used with ditto_next or ditto_strategy_run_steps
 *  @retval DITTO_ERR_NO_MEMORY  memory for the value was refused
 *  @par Ownership
 *  The caller destroys the value with ditto_value_destroy.
 *  @par Cost
 *  All replicas take their batches at the same time, and then copy them, one component after another. Each of
 *  these steps costs about as much as a run. */
DITTO_API DITTO_NODISCARD ditto_status ditto_iterator_next(ditto_iterator *iterator, ditto_value **out);

/** Saves the position of the iterator, after the batches that the replicas have taken.
 *
 *  An iterator that is made from the state (ditto_input_options.state) with the same dataset delivers exactly
 *  the rows that would have come next. The number of producers may differ. The number of replicas may differ
 *  if all replicas had taken the same number of batches. If a producer has met an error of the input, there
 *  is no position to continue from, even if no replica has got the error yet.
 *
 *  Over several hosts, all call it, and all get the same state.
 *
 *  @param iterator  the iterator
 *  @param state     [out] the state. Two saves at one position may differ, because producers run ahead
 *  @param bytes     [out] length of the state in bytes
 *  @return DITTO_OK, an error of the input that a producer has met, or one of:
 *  @retval DITTO_ERR_UNSUPPORTED  a generator of the dataset has not ended, and lacks `save` or `restore`; or
 *                                 replicas of one pipeline are on several hosts, and have not taken equally
 *                                 many batches
 *  @retval DITTO_ERR_USER         `save` of a generator failed. If it returned another error, that error is
 *                                 returned
 *  @retval DITTO_ERR_INVALID      `save` of a generator returned a larger length in its second call
 *  @retval DITTO_ERR_TIMED_OUT    a producer chose rows for the whole timeout_ms of the strategy: a function
 *                                 or a generator of the dataset has not returned
 *  @retval DITTO_ERR_NO_MEMORY    memory for the state was refused
 *  @par Ownership
 *  The caller frees the state with ditto_state_free.
 *  @par Cost
 *  The state holds the rows that were chosen and not taken by all replicas, and the buffers of shuffles. A
 *  row takes a few bytes, or those of all its values if it comes from a generator or a compressed file. A new
 *  iterator reads a compressed file that it continues from its start. It rereads nothing else. */
DITTO_API DITTO_NODISCARD ditto_status ditto_iterator_save(ditto_iterator *iterator, void **state,
                                                           size_t *bytes);

/** Frees a state from ditto_iterator_save.
 *
 *  @param state  the state, or NULL
 *  @par Thread safety
 *  Any thread may call it.
 *  @par Cost
 *  Frees the state. */
DITTO_API void ditto_state_free(void *state);

/* -- Statistics -- */

/** For ditto_iterator_stats: all replicas together. */
#define DITTO_ALL_REPLICAS UINT32_MAX

/** What an iterator has done since it was created. Times of several threads are added up. */
typedef struct ditto_iterator_counters {
    size_t struct_size; /**< set by DITTO_ITERATOR_COUNTERS_INIT */

    uint64_t elapsed_ns; /**< time since the iterator was created */
    uint64_t steps;      /**< steps taken by the replica that has taken most */
    uint64_t rows;       /**< rows taken by replicas */
    uint64_t bytes;      /**< bytes taken by replicas */
    uint64_t num_ready;  /**< batches that were ready when asked for */
    uint64_t num_waited; /**< batches that a replica had to wait for */

    /** Time that replicas waited for batches. If it is large, the program is input bound. */
    uint64_t consumer_wait_ns;

    /** Time that producers waited for free slots in queues, or for other pipelines. If it is large, the
     *  program is compute bound. */
    uint64_t producer_wait_ns;

    /** Time for choosing rows. More producers do not make this part faster. */
    uint64_t choosing_ns;

    /** Time for reading, computing and copying rows. More producers make this part faster. */
    uint64_t filling_ns;

    uint64_t queue_bytes;   /**< memory of the queues */
    uint32_t num_replicas;  /**< replicas that the numbers cover */
    uint32_t num_pipelines; /**< pipelines of the iterator, on all hosts */
    uint32_t num_producers; /**< producers on this host */
    uint32_t num_slots;     /**< slots of each replica's queue, one of which is for the batch in use */
    uint32_t depth;         /**< batches that are ready now */
} ditto_iterator_counters;

/** Initial value of ditto_iterator_counters. */
#define DITTO_ITERATOR_COUNTERS_INIT DITTO_OPTIONS_INIT(ditto_iterator_counters)

/** Reads the statistics of an iterator. During a run the numbers are approximate.
 *
 *  @param iterator  the iterator
 *  @param replica   the id of a replica: the numbers are then those of this replica, of its pipeline and of
 *                   the producers that serve it. DITTO_ALL_REPLICAS: the numbers are the sums
 *  @param out       [out] the statistics. Start from DITTO_ITERATOR_COUNTERS_INIT
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID  a NULL pointer, or struct_size is not set
 *  @retval DITTO_ERR_RANGE    no replica has this id
 *  @retval DITTO_ERR_CONTEXT  the strategy was destroyed
 *  @par Thread safety
 *  Any thread may call it, in any context.
 *  @par Cost
 *  Reads the counters of each replica and producer. */
DITTO_API DITTO_NODISCARD ditto_status ditto_iterator_stats(const ditto_iterator *iterator, uint32_t replica,
                                                            ditto_iterator_counters *out);

DITTO_END
#endif
