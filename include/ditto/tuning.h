/* include/ditto/tuning.h - how a strategy chooses the way of a collective: asked for, or set.
 *
 * Nothing here changes a value, only the time. When a strategy is created, once per process and placement and in about
 * 20 ms at most, three things are measured: a hand-over between neighbours at each distance, small_bytes, and
 * hierarchical_bytes; the last two not where they and stream_bytes are given. stream_bytes follows from the sizes of the
 * last-level caches; helper_bytes and block_bytes have usual values.
 * Where replicas share PUs nothing is measured: a hand-over there is the scheduler's.
 *
 * The environment variable DITTO_TUNING sets them for programs that do not: "name=number,name=number", with the names of the
 * fields below, numbers in bytes with K, M or G, `never` for DITTO_NEVER_BYTES: DITTO_TUNING="small_bytes=2K,near_replicas=4". */
#ifndef DITTO_TUNING_H
#define DITTO_TUNING_H

#include <ditto/collective.h>
#include <ditto/strategy.h>

DITTO_BEGIN

/** A threshold that no message reaches. */
#define DITTO_NEVER_BYTES SIZE_MAX

/** A zero field means: from DITTO_TUNING, else measured. Fields of one process' strategies may differ. */
typedef struct ditto_tuning {
    size_t struct_size; /**< set by DITTO_TUNING_INIT */
    size_t
        small_bytes; /**< messages of which a replica reads at most this much in all ride in the lines of one meeting;
                                    larger ones, and those of which a replica brings more than 4096, are read where they
                                    lie, between two meetings.
                                    Where it is not given, started operations use 4096, whatever was measured */
    size_t
        stream_bytes; /**< results that are at least this much on all replicas together are written past the caches */
    size_t hierarchical_bytes; /**< AUTO is HIERARCHICAL from here on, where there are several groups */
    size_t helper_bytes;       /**< idle helpers of a replica join when its own part is at least this much */
    size_t block_bytes; /**< what a replica combines before it swaps with other groups; 4K to 1M, rounded
                                    down to a multiple of 128 */
    uint32_t
        near_replicas; /**< neighbours that are a group; default: those of one package, else NUMA node, else cache */
} ditto_tuning;
#define DITTO_TUNING_INIT DITTO_OPTIONS_INIT(ditto_tuning)

/** The numbers that the strategy uses. Any thread, any context.
 *  @param out  [in, out] from DITTO_TUNING_INIT: its struct_size says which fields there are
 *  @retval DITTO_ERR_INVALID  NULL; a struct_size that is none. @retval DITTO_ERR_UNSUPPORTED  of a newer version, and set */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_tuning(const ditto_strategy *strategy,
                                                             ditto_tuning *out);

typedef enum ditto_operation {
    DITTO_OPERATION_BARRIER = 1,
    DITTO_OPERATION_ALL_REDUCE = 2,
    DITTO_OPERATION_REDUCE = 3,
    DITTO_OPERATION_BROADCAST = 4,
    DITTO_OPERATION_REDUCE_SCATTER = 5, /**< bytes: of a replica's whole input */
    DITTO_OPERATION_ALL_GATHER = 6,     /**< bytes: of a replica's own part */
} ditto_operation;

/** By which way an operation goes. */
typedef struct ditto_choice {
    const char *
        algorithm; /**< constant text: "lines", "counter", "owners", "groups", as docs/architecture.md has them */
    uint32_t meetings; /**< that it costs */
    uint32_t rounds;   /**< of each meeting; 1 with a counter */
    uint32_t groups;   /**< of near replicas that the data goes through; 1: none */
    uint32_t streams;  /**< 1: results are written past the caches */
    double
        predicted_ns; /**< of its meetings alone, with nobody late: from the hand-overs that were measured */
} ditto_choice;

/** The way that a call with these numbers would take. Any thread, any context.
 *  @retval DITTO_ERR_RANGE  an unknown operation or implementation */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_choice(const ditto_strategy *strategy,
                                                             ditto_operation operation, size_t bytes,
                                                             ditto_implementation implementation,
                                                             ditto_choice *out);

/** Every replica's last collective, and whether it is still in it, one line each: for a debugger, where a program hangs
 *  (`print ditto_strategy_diagnose(strategy)`). Takes no lock, calls nothing of the system, works while a run goes on.
 *  @return text in the strategy's memory, until its next call. Two threads that call it at the same time may see a mixture.
 *          Never NULL */
DITTO_API const char *ditto_strategy_diagnose(const ditto_strategy *strategy);

DITTO_END
#endif
