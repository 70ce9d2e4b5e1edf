/* include/ditto/collective.h - operations in which every replica of a strategy takes part.
 *
 * All functions here: replica context, called by each replica once, in the same order on every replica. Replicas that call
 * different things, or leave while others wait, get DITTO_ERR_DIVERGED; nobody hangs. After an error the run is stopping:
 * every later collective of it returns an error at once.
 *
 * For all of them, unless they say otherwise:
 *   counts     are elements, not bytes; counts, dtype, op and root are equal on all replicas
 *   buffers    stay the caller's, and no replica touches them after the call has returned, with whatever status; aligned for
 *              one element; NULL is allowed where there are no elements. Data buffers are unspecified after an error.
 *              Destinations of different replicas do not overlap. Not every call looks: ditto_all_reduce and
 *              ditto_broadcast_from_root refuse one destination for two replicas (DITTO_ERR_INVALID) where the message is not
 *              small; else the result is a mixture
 *   ordering   what any replica wrote before the call, every replica sees after it returns DITTO_OK
 *   result     the same bits on every replica, in every run, for every placement, algorithm and option; reductions are
 *              parenthesised by the tree of docs/semantics.md, which depends on the number of replicas alone
 *   errors     DITTO_ERR_INVALID       a buffer is NULL, misaligned, or overlaps another one in a way that is not documented; an
 *                                      unknown dtype; an unknown flag
 *              DITTO_ERR_RANGE         an unknown op or implementation; a root that is no replica; count x size overflows
 *              DITTO_ERR_UNSUPPORTED   the dtype does not have this op
 *              DITTO_ERR_CONTEXT       self is not the calling thread's own
 *              DITTO_ERR_DIVERGED      another replica called something else, or returned; the message names both sides
 *              DITTO_ERR_TIMED_OUT     the message names the replicas that did not come, and what they did last
 *              DITTO_ERR_PEER_STOPPED  another replica failed; the message names it
 *              DITTO_ERR_FORKED        called in a child process of the one that made the strategy
 *              DITTO_ERR_USER          the caller's own function gave a status that is neither DITTO_OK nor an error
 *   memory     nothing is allocated, but for lists that are new (ditto_all_reduce_list) and slices that are merged
 * For users who differentiate: the adjoint of an all-reduce SUM is an all-reduce SUM, of MEAN a MEAN, of an all-gather a
 * reduce-scatter SUM with the same counts, and the other way round. */
#ifndef DITTO_COLLECTIVE_H
#define DITTO_COLLECTIVE_H

#include <ditto/replica.h>
#include <ditto/strategy.h> /* ditto_implementation */
#include <ditto/tensor.h>

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

/** How a collective behaves. Start from DITTO_REDUCE_OPTIONS_INIT; a zero field means the strategy's own setting. */
typedef struct ditto_reduce_options {
    size_t struct_size;                  /**< set by the INIT macro */
    uint32_t flags;                      /**< none known yet: an unknown bit is refused, never ignored */
    uint32_t timeout_ms;                 /**< how long to wait for the others; DITTO_FOREVER */
    size_t bytes_per_pack;               /**< of lists: see ditto_all_reduce_list. Equal on all replicas */
    ditto_implementation implementation; /**< equal on all replicas */
} ditto_reduce_options;
#define DITTO_REDUCE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_reduce_options)

/** Returns when every replica has called it.
 *  @param options  NULL for the defaults; read only during the call
 *  Cost      one meeting: each replica writes one cache line and reads one of each other; from about a dozen replicas on the
 *            same in a few rounds (n-way dissemination: Hensgen, Finkel, Manber, IJPP 17(1), 1988); with more replicas than
 *            PUs, one shared counter. */
DITTO_API DITTO_NODISCARD ditto_status ditto_barrier(ditto_replica *self,
                                                     const ditto_reduce_options *options);

/** All-reduce: combine `count` elements over all replicas; every replica receives the result.
 *      dst[i] = src_0[i] op src_1[i] op ... op src_{n-1}[i]         on each of the n replicas
 *
 *  @param self     the calling replica
 *  @param src      [in]  shape [count]; `dst` itself (in place), or no overlap with it
 *  @param dst      [out] shape [count]
 *  @param count    0 makes the call a barrier
 *  @param dtype    any
 *  @param op       one that the dtype has (see ditto_op)
 *  @param options  NULL for the defaults; read only during the call
 *  Cost       small: one meeting, and each replica reads n-1 payloads. Larger: two meetings; each replica reads
 *             2(n-1)/n * count elements from, or writes them to, other replicas' memory.
 *  Source     reduce-scatter, then all-gather: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, done by the owner of each
 *             index range straight between the callers' buffers.  Since 0.1 */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce(ditto_replica *self, const void *src, void *dst,
                                                        size_t count, ditto_dtype dtype, ditto_op op,
                                                        const ditto_reduce_options *options);
/** The same on tensors.
 *  @retval DITTO_ERR_SHAPE     dst has another dtype or another shape than src
 *  @retval DITTO_ERR_DIVERGED  the replicas' tensors differ in dtype or shape, even with equal counts */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce_tensor(ditto_replica *self, const ditto_tensor *src,
                                                               ditto_tensor *dst, ditto_op op,
                                                               const ditto_reduce_options *options);

/** One member of a list: as src, dst, count and dtype of ditto_all_reduce. */
typedef struct ditto_list_item {
    const void *src;
    void *dst;
    size_t count;
    ditto_dtype dtype;
} ditto_list_item;

/** All-reduce of a list, as one operation: the same values as one call per item, in order, for the price of one meeting or two.
 *  No destination overlaps another item's buffers.
 *  @param list    [length], read only during the call. Length, counts and dtypes equal on all replicas
 *  @param options bytes_per_pack cuts the list into packs that are reduced one after the other, so that a long list needs not
 *                 be ready at once in every cache: a pack closes once its bytes are more than this. 0: one pack
 *  @retval DITTO_ERR_INVALID  as above; the message names the item */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce_list(ditto_replica *self, const ditto_list_item *list,
                                                             size_t length, ditto_op op,
                                                             const ditto_reduce_options *options);

/** A caller's own way to combine: out[i] = left[i] with right[i], for `count` elements of the size that was given. It must be
 *  associative; it need not be commutative. `out` may be left or right itself. Called on any replica's thread, several at once,
 *  in the default floating-point environment; it calls nothing of ditto but ditto_fail, and a collective gives CONTEXT in it.
 *  What it is given is memory of its own replica: if it takes longer than the limits, the other replicas return with
 *  TIMED_OUT, and it may go on until the run's own limit.
 *  @return DITTO_OK, or an error that ends the run: the others get PEER_STOPPED */
typedef ditto_status (*ditto_combine_fn)(void *out, const void *left, const void *right, size_t count,
                                         void *user);

/** All-reduce with it.
 *  @param element_bytes  1 .. 4096; buffers are aligned for max_align_t or for the largest power of two that divides it
 *  @param combine        the same function on all replicas
 *  @param user           handed to it; each replica's own */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce_with(ditto_replica *self, const void *src, void *dst,
                                                             size_t count, size_t element_bytes,
                                                             ditto_combine_fn combine, void *user,
                                                             const ditto_reduce_options *options);

/** Reduce: as ditto_all_reduce, but only the root receives the result.
 *  @param dst   [out] on the root; elsewhere it is not touched and may be NULL
 *  @param root  id of a replica */
DITTO_API DITTO_NODISCARD ditto_status ditto_reduce_to_root(ditto_replica *self, const void *src, void *dst,
                                                            size_t count, ditto_dtype dtype, ditto_op op,
                                                            uint32_t root,
                                                            const ditto_reduce_options *options);

/** Broadcast: every replica receives the root's elements.
 *  @param buffer  [in] on the root, [out] elsewhere */
DITTO_API DITTO_NODISCARD ditto_status ditto_broadcast_from_root(ditto_replica *self, void *buffer,
                                                                 size_t count, ditto_dtype dtype,
                                                                 uint32_t root,
                                                                 const ditto_reduce_options *options);

/** Reduce-scatter: of the reduction of n * count elements, replica i receives elements [i * count, (i + 1) * count).
 *  @param src  [in]  shape [n * count]
 *  @param dst  [out] shape [count]; src + own id * count (in place; the rest of src is kept), or no overlap with src */
DITTO_API DITTO_NODISCARD ditto_status ditto_reduce_scatter(ditto_replica *self, const void *src, void *dst,
                                                            size_t count, ditto_dtype dtype, ditto_op op,
                                                            const ditto_reduce_options *options);
/** The same, with counts[i] elements for replica i. @param counts [n], equal on all replicas */
DITTO_API DITTO_NODISCARD ditto_status ditto_reduce_scatter_uneven(ditto_replica *self, const void *src,
                                                                   void *dst, const size_t *counts,
                                                                   ditto_dtype dtype, ditto_op op,
                                                                   const ditto_reduce_options *options);

/** All-gather: every replica receives the elements of all, in replica order.
 *  @param src  [in]  shape [count]; dst + own id * count (in place), or no overlap with dst
 *  @param dst  [out] shape [n * count] */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_gather(ditto_replica *self, const void *src, void *dst,
                                                        size_t count, ditto_dtype dtype,
                                                        const ditto_reduce_options *options);
/** The same, with counts[i] elements of replica i. @param counts [n], equal on all replicas */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_gather_uneven(ditto_replica *self, const void *src,
                                                               void *dst, const size_t *counts,
                                                               ditto_dtype dtype,
                                                               const ditto_reduce_options *options);

/** The sum of all replicas' elements, with bits that depend on the elements and their order alone: not on the number of
 *  replicas, nor on how the elements are spread over them. Element k of replica i stands after all elements of replicas below i.
 *  The row of all elements is cut into blocks of DITTO_BLOCK; a block of m elements is folded (element j takes j + ceil(m / 2),
 *  then the same with the ceil(m / 2) that are left); the blocks' sums are combined by the tree over the number of blocks.
 *  @param values  [in]  shape [count]; count may differ between replicas
 *  @param sum     [out] one element, rounded once (f16 and bf16 are summed in f32). No elements at all: 0
 *  @retval DITTO_ERR_UNSUPPORTED  bool
 *  Cost   three meetings; a block that lies on several replicas is read by the owner of its first element. */
#define DITTO_BLOCK 1024
DITTO_API DITTO_NODISCARD ditto_status ditto_block_sum(ditto_replica *self, const void *values, size_t count,
                                                       ditto_dtype dtype, void *sum,
                                                       const ditto_reduce_options *options);

DITTO_END
#endif
