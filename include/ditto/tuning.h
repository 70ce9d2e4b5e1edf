/* include/ditto/tuning.h - the thresholds by which a strategy chooses algorithms. */
#ifndef DITTO_TUNING_H
#define DITTO_TUNING_H

#include <ditto/collective.h>
#include <ditto/strategy.h>

DITTO_BEGIN

/** @defgroup ditto_tuning_group Tuning
 *
 *  Tuning changes the time of a collective, never its values. When a strategy is created, the library
 *  measures the time of a hand-over between neighbours at each distance, small_bytes, stream_bytes,
 *  hierarchical_bytes, fetch_bytes, stage_bytes and stage_one_way_bytes. This takes at most about 30 ms.
 *  Later strategies of the process with the same placement use the results, unless near_replicas was given or
 *  the machine was too busy to measure. The thresholds are not measured if all six are given. helper_bytes
 *  and block_bytes have fixed defaults. Nothing is measured if there is one replica, or where replicas share
 *  PUs, because there the scheduler decides how long a hand-over takes. ditto_strategy_describe says what was
 *  chosen.
 *  @{ */

/** A threshold that no message reaches. */
#define DITTO_NEVER_BYTES SIZE_MAX

/** The thresholds by which algorithms are chosen. Start from DITTO_TUNING_INIT.
 *
 *  A field that is 0 is taken from the environment variable DITTO_TUNING. A field that the variable does not
 *  have is measured, or has its default. The variable has the form "name=number,name=number", with the names
 *  of the fields. Numbers may end in K, M or G, and `never` stands for DITTO_NEVER_BYTES. An example is
 *  DITTO_TUNING="small_bytes=2K,near_replicas=4". A number outside the range of its field makes creation fail
 *  with DITTO_ERR_RANGE. The strategies of a process may have different numbers. */
typedef struct ditto_tuning {
    size_t struct_size; /**< set by DITTO_TUNING_INIT */

    /** A message is small if no replica gives more than 4096 bytes, and each reads at most small_bytes from
     *  the others together. The payloads of small messages are in the mailboxes of one meeting. Other
     *  messages are read from the callers' buffers, between two meetings. If small_bytes is not given,
     *  started operations use 4096, whatever was measured. */
    size_t small_bytes;

    /** Results of at least this many bytes, on all replicas together, are written past the caches. Results of
     *  reductions in place, and those of reductions by groups, are not. By default it is 512K for each
     *  replica, if creation finds that an all-reduce of 512K is then clearly faster, or else a third of
     *  the last-level caches. */
    size_t stream_bytes;

    /** From this size on, DITTO_IMPLEMENTATION_DEFAULT means DITTO_IMPLEMENTATION_HIERARCHICAL, if there are
     *  several groups of replicas. */
    size_t hierarchical_bytes;

    /** Idle helpers of a replica join its work if its part has at least this many bytes. */
    size_t helper_bytes;

    /** How many bytes a replica combines before it exchanges them with other groups: 4K to 1M. The number is
     *  rounded down to a multiple of 128. */
    size_t block_bytes;

    /** The number of neighbouring replicas that form a group, 1 to DITTO_MAX_REPLICAS. By default the
     *  replicas of one package form a group, or those of a NUMA node if there is one package, or those of a
     *  last-level cache if there is one node. In this case ditto_strategy_properties has 0. */
    uint32_t near_replicas;

    /** Results in place of at least this many bytes, on all replicas together, are fetched for writing before
     *  they are read. Processors differ in whether this is faster, so by default it is 1 or
     *  DITTO_NEVER_BYTES. */
    size_t fetch_bytes;

    /** In a collective of two replicas with at least this many bytes, each replica copies what the other one
     *  needs past the caches to memory of the strategy, from where the other one reads it. There is one
     *  meeting for each 128K then, and small_bytes and stream_bytes do not apply. This is done for calls of
     *  all-reduce out of place, reduce-scatter, all-gather and all-to-all with a dtype and with equal parts,
     *  of at most 4M bytes, and less than helper_bytes where replicas have helpers. Where a core takes lines
     *  back slowly that another one has read, it takes as little as a fifth of the time. An all-reduce in
     *  place of at least this many bytes takes two meetings, also below small_bytes. By default creation
     *  finds out whether this is faster, and from which size on. */
    size_t stage_bytes;

    /** The same for reduce, broadcast, gather, scatter and scans. Their data moves in one direction, so a
     *  replica that copies does not wait for data at the same time. Two threads of one core gain from that,
     *  too: a scatter of 32K takes 1.4 instead of 2.3 us. Messages below stage_bytes are staged only up to
     *  512K. */
    size_t stage_one_way_bytes;
} ditto_tuning;

/** Initial value of ditto_tuning: no threshold is given. */
#define DITTO_TUNING_INIT DITTO_OPTIONS_INIT(ditto_tuning)

/** Describes the replicas, one on each line: the last collective of the replica in the last run, and whether
 *  the replica is still in it. Of a strategy with workers (DITTO_PARAMETER_SERVER) it describes the queue of
 *  the coordinator, and on one line for each worker what it executes, how many functions it has executed, and
 *  how long it was busy and idle. The function is meant for a debugger, if a program hangs. It takes no lock,
 *  makes no system call, and works while a run goes on. In gdb, where `strategy` is a variable of the
 *  program:
 *
 *      printf "%s", (char *)ditto_strategy_diagnose(strategy)
 *
 *  The cast is needed because an installed library has no debug information, from which gdb could learn the
 *  type of the result.
 *
 *  @param strategy  the strategy
 *  @return the text, never NULL
 *  @par Thread safety
 *  Any thread may call it, but not while another one destroys the coordinator. If two threads call it at the
 *  same time, the text may be a mixture.
 *  @par Ownership
 *  The text is in the strategy's memory, and is valid until the next call.
 *  @par Cost
 *  Writes one text, and reads a few cache lines of each replica. */
DITTO_API const char *ditto_strategy_diagnose(ditto_strategy *strategy);

/** @} */

DITTO_END
#endif
