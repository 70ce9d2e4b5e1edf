/* include/ditto/collective.h - operations in which every replica of a strategy takes part.
 *
 * All functions here: replica context, called by each replica once, in the same order on every replica. Replicas that call
 * different things, or leave while others wait, get DITTO_ERR_DIVERGED; nobody hangs. After an error the run is stopping:
 * every later collective of it returns an error at once. */
#ifndef DITTO_COLLECTIVE_H
#define DITTO_COLLECTIVE_H

#include <ditto/replica.h>

DITTO_BEGIN

/** How two elements combine. Integers wrap around; MIN and MAX are IEEE 754-2019 minimum and maximum: NaN wins over
 *  numbers, -0 is below +0. f16 and bf16 are combined in f32 over all replicas and rounded once, to nearest even. A product
 *  of complex numbers is (ac - bd) + (ad + bc)i, without special care for infinities. Not every dtype has every op:
 *
 *      f16 bf16 f32 f64        SUM MEAN MIN MAX PROD
 *      c64 c128                SUM MEAN PROD             complex numbers have no order
 *      i8 .. i64, u8 .. u64    SUM MIN MAX PROD AND OR XOR    a mean of integers is no integer
 *      bool                    AND OR XOR                one byte, 0 or 1 */
typedef enum ditto_op {
    DITTO_SUM = 1,
    DITTO_MEAN = 2, /**< the sum, divided by the number of replicas once, at the end; floating dtypes only */
    DITTO_MIN = 3,
    DITTO_MAX = 4,
    DITTO_PROD = 5,
    DITTO_AND = 6, /**< bit by bit; integers and bool, as OR and XOR */
    DITTO_OR = 7,
    DITTO_XOR = 8,
} ditto_op;

/** "SUM" and the like; "unknown op" for a number that is none. Any thread, constant strings. */
DITTO_API const char *ditto_op_name(ditto_op op);

/** How a collective behaves. Start from DITTO_REDUCE_OPTIONS_INIT; a zero field means its default. */
typedef struct ditto_reduce_options {
    size_t struct_size;  /**< set by the INIT macro */
    uint32_t flags;      /**< none known yet: an unknown bit is refused, never ignored */
    uint32_t timeout_ms; /**< how long to wait for the others; 0: the strategy's own; DITTO_FOREVER */
} ditto_reduce_options;
#define DITTO_REDUCE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_reduce_options)

/** Returns when every replica has called it.
 *  @param options  NULL for the defaults; read only during the call
 *  @retval DITTO_ERR_CONTEXT       self is not the calling thread's own
 *  @retval DITTO_ERR_DIVERGED      another replica called something else, or returned; the message names both
 *  @retval DITTO_ERR_TIMED_OUT     the message names the replicas that did not come and what they did last
 *  @retval DITTO_ERR_PEER_STOPPED  another replica failed
 *  Ordering  what any replica wrote before the call, every replica sees after it returns DITTO_OK.
 *  Cost      one meeting: each replica writes one cache line and reads one of each other; with more replicas than PUs,
 *            one shared counter. */
DITTO_API DITTO_NODISCARD ditto_status ditto_barrier(ditto_replica *self, const ditto_reduce_options *options);

/** All-reduce: combine `count` elements over all replicas; every replica receives the result.
 *      dst[i] = src_0[i] op src_1[i] op ... op src_{n-1}[i]         on each of the n replicas,
 *                                                                   parenthesised by the tree of docs/semantics.md
 *
 *  @param self     the calling replica
 *  @param src      [in]  shape [count]; `dst` itself (in place), or no overlap with it
 *  @param dst      [out] shape [count]; contents unspecified unless DITTO_OK
 *  @param count    elements, not bytes; equal on all replicas; 0 makes the call a barrier
 *  @param dtype    any; equal on all replicas
 *  @param op       one that the dtype has (see ditto_op); equal on all replicas
 *  @param options  NULL for the defaults; read only during the call
 *  @retval DITTO_OK                dst is complete on this replica
 *  @retval DITTO_ERR_INVALID       a buffer is NULL, misaligned for its dtype, or the two overlap partly; unknown dtype
 *  @retval DITTO_ERR_RANGE         unknown op; count x size overflows
 *  @retval DITTO_ERR_UNSUPPORTED   the dtype does not have this op
 *  @retval DITTO_ERR_CONTEXT, DITTO_ERR_DIVERGED, DITTO_ERR_TIMED_OUT, DITTO_ERR_PEER_STOPPED  as ditto_barrier
 *  Ownership  src and dst stay the caller's; nothing is allocated. No replica touches them after the call has returned,
 *             with whatever status.
 *  Ordering   as ditto_barrier.
 *  Result     the same bits on every replica, in every run, for every placement and algorithm.
 *  Cost       small: one meeting, and each replica reads n-1 payloads. Larger: two meetings; each replica reads
 *             2(n-1)/n * count elements from, or writes them to, other replicas' memory.
 *  Source     reduce-scatter, then all-gather: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, done by the owner of each
 *             index range straight between the callers' buffers.  Since 0.1 */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce(ditto_replica *self, const void *src, void *dst, size_t count,
                                                        ditto_dtype dtype, ditto_op op,
                                                        const ditto_reduce_options *options);

DITTO_END
#endif
