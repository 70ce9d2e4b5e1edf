/* include/ditto/collective.h - operations in which every replica of a strategy takes part.
 *
 * docs/semantics.md defines the order in which values are combined. */
#ifndef DITTO_COLLECTIVE_H
#define DITTO_COLLECTIVE_H

#include <ditto/replica.h>
#include <ditto/strategy.h> /* ditto_implementation */
#include <ditto/tensor.h>

DITTO_BEGIN

/** @defgroup ditto_collective Collectives
 *
 *  Every replica calls these functions in replica context, on its own thread, in the same order. If replicas
 *  make different calls, or the function of one returns without an error while others wait, the replicas in
 *  these calls get DITTO_ERR_DIVERGED. After an error that concerns other replicas (DIVERGED, TIMED_OUT,
 *  PEER_STOPPED) the run is stopped, and every later collective in it returns an error at once. An error that
 *  a replica finds in its own arguments stops the run only if its function returns it. Memory that any
 *  replica wrote before the call is visible to every replica after the call returns DITTO_OK. Results have
 *  the same bits on every replica, in every run, and for every placement, algorithm and option. The tree of
 *  docs/semantics.md, which depends on the number of replicas and on `order_blocks` alone, fixes the order of
 *  a reduction.
 *  @{ */

/** How two elements are combined.
 *
 *  Integers wrap around. MIN and MAX are minimum and maximum of IEEE 754-2019: NaN wins over numbers, and -0
 *  is less than +0. Elements of f16 and bf16 are combined in f32 over all replicas, and the result is rounded
 *  once, to nearest even. The product of complex numbers is (ac - bd) + (ad + bc)i, without special cases for
 *  infinities. Not every dtype has every operator:
 *
 *      f16 bf16 f32 f64        SUM MEAN MIN MAX PROD
 *      c64 c128                SUM MEAN PROD                  complex numbers have no order
 *      i8 .. i64, u8 .. u64    SUM MIN MAX PROD AND OR XOR    the mean of integers is not an integer
 *      bool                    AND OR XOR                     one byte, 0 or 1 */
typedef enum ditto_op {
    DITTO_SUM = 1, /**< the sum */

    /** The sum, divided by the number of replicas once, at the end. Only floating and complex dtypes have
     *  it. */
    DITTO_MEAN = 2,

    DITTO_MIN = 3,  /**< the smallest element */
    DITTO_MAX = 4,  /**< the largest element */
    DITTO_PROD = 5, /**< the product */
    DITTO_AND = 6,  /**< bitwise and; integers and bool */
    DITTO_OR = 7,   /**< bitwise or; integers and bool */
    DITTO_XOR = 8,  /**< bitwise exclusive or; integers and bool */
} ditto_op;

/** Returns the name of an operator without its prefix, for example "SUM".
 *
 *  @param op  the operator
 *  @return a constant string; "unknown op" if op is not a value of the enum
 *  @par Thread safety
 *  Any thread may call it. */
DITTO_API const char *ditto_op_name(ditto_op op);

/** Largest number of bytes of a label. */
#define DITTO_MAX_LABEL_BYTES 63

/** How a collective behaves. Start from DITTO_REDUCE_OPTIONS_INIT. A field that is 0 means the strategy's
 *  setting. */
typedef struct ditto_reduce_options {
    size_t struct_size; /**< set by DITTO_REDUCE_OPTIONS_INIT */

    /** Flags of the called function. Only slices have some (ditto/slices.h). */
    uint32_t flags;

    /** How long a replica waits in each meeting, in milliseconds. DITTO_FOREVER means no limit. */
    uint32_t timeout_ms;

    /** The pack size of ditto_all_reduce_list, in bytes. It must be equal on all replicas. */
    size_t bytes_per_pack;

    /** Which algorithm moves the data. It must be equal on all replicas. */
    ditto_implementation implementation;

    /** What the call is for, such as "loss", or NULL. It must be equal on all replicas. Messages, traces and
     *  ditto_strategy_diagnose show it. Calls that agree in everything but their meaning are told apart by
     *  their labels alone. NULL equals only NULL. The text is in UTF-8, has at most DITTO_MAX_LABEL_BYTES
     *  bytes, and is read only during the call. */
    const char *label;

    /** The group whose members make the call (ditto/group.h), or NULL: all replicas. Roots, parts, partners
     *  and offsets are then those of ranks in the group. ditto_wait ignores it, because an operation knows
     *  its group. */
    const struct ditto_group *group;
} ditto_reduce_options;

/** Initial value of ditto_reduce_options: the strategy's settings. */
#define DITTO_REDUCE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_reduce_options)

/** Waits until every replica has called it.
 *
 *  @param self     the calling replica
 *  @param options  NULL for the defaults; read only during the call
 *  @retval DITTO_OK                every replica has called it
 *  @retval DITTO_ERR_INVALID       self is NULL; options has an unknown flag, its struct_size is not set, or
 *                                  its group is not one of this replica in this run
 *  @retval DITTO_ERR_RANGE         options has an unknown implementation, or a label that is too long
 *  @retval DITTO_ERR_UNSUPPORTED   options is of a newer version, and has a field set that this version lacks
 *  @retval DITTO_ERR_CONTEXT       self is not the calling thread's replica
 *  @retval DITTO_ERR_DIVERGED      another replica called something else, or returned; the message names both
 *  @retval DITTO_ERR_TIMED_OUT     timeout_ms, or the time limit of the run, passed; the message names the
 *                                  replicas that did not arrive, and their last call
 *  @retval DITTO_ERR_PEER_STOPPED  the run was stopped; the message has the error, and names the replica that
 *                                  failed
 *  @retval DITTO_ERR_FORKED        this is a child process, and the strategy was created before fork
 *  @par Cost
 *  The call takes one meeting. Each replica writes one cache line and reads one from each other replica. From
 *  about a dozen replicas on, and where replicas do not share a cache, there are a few rounds with fewer
 *  reads. If there are more replicas than PUs, the replicas use one shared counter instead, unless an
 *  implementation is given.
 *  @par Source
 *  The rounds are n-way dissemination: Hensgen, Finkel, Manber, IJPP 17(1), 1988. */
DITTO_API DITTO_NODISCARD ditto_status ditto_barrier(ditto_replica *self,
                                                     const ditto_reduce_options *options);

/** @name Operations on buffers
 *
 *  Counts are numbers of elements, not bytes. Counts, dtype, op and root must be equal on all replicas.
 *  Buffers must be aligned for one element, and may be NULL if they have no elements. No replica accesses a
 *  buffer after the call of the buffer's owner has returned, whatever its status. Replicas may pass the same
 *  source. Each of them may write it as soon as its own call has returned. After an error the contents
 *  of the destination are unspecified. Destinations of different replicas must not overlap. If two replicas
 *  pass the same destination to an all-reduce, a scan or a broadcast of a message that is not small, the run
 *  fails with DITTO_ERR_INVALID. The call returns this error on the replicas that detect it, and
 *  DITTO_ERR_PEER_STOPPED on the others. Other overlaps are not detected, and the destination then holds a
 *  mixture of results. Nothing is allocated, except for lists whose items are new (ditto_all_reduce_list) and
 *  for slices that are merged.
 *  @{ */

/** All-reduce: combines `count` elements over all replicas. Every replica receives the result.
 *
 *      dst[i] = src_0[i] op src_1[i] op ... op src_{n-1}[i]         on each of the n replicas
 *
 *  In automatic differentiation the adjoint of an all-reduce with SUM is an all-reduce with SUM. The adjoint
 *  of one with MEAN is one with MEAN. All-gather, and reduce-scatter with SUM and the same counts, are
 *  adjoint to each other.
 *
 *  @param self     the calling replica
 *  @param src      [in]  shape [count]; `dst` itself (in place), or no overlap with it
 *  @param dst      [out] shape [count]
 *  @param count    number of elements; 0 makes the call a barrier
 *  @param dtype    dtype of the elements
 *  @param op       an operator that the dtype has (see ditto_op)
 *  @param options  NULL for the defaults; read only during the call
 *  @return DITTO_OK (dst is complete on this replica), an error of ditto_barrier, or one of:
 *  @retval DITTO_ERR_INVALID      a pointer is NULL that must not be; a buffer is misaligned, or overlaps
 *                                 another one where that is not allowed; an unknown dtype
 *  @retval DITTO_ERR_RANGE        an unknown op; a buffer of more than PTRDIFF_MAX bytes
 *  @retval DITTO_ERR_UNSUPPORTED  the dtype does not have op
 *  @par Cost
 *  A small message takes one meeting, in which each replica reads at most n-1 payloads. A larger one takes
 *  two meetings. With DITTO_IMPLEMENTATION_FLAT, each replica then reads (n-1)/n * count elements from the
 *  memory of other replicas, and writes as many to it. Each of two replicas instead reads all elements of the
 *  other one, and writes none to it, if the message has at most 384 KiB and is not f16 or bf16, and no
 *  result is in the buffer of a source. If stage_bytes applies (ditto_tuning), there is one meeting for each
 *  128 KiB, with a time limit of its own, and each of two replicas writes and reads count elements in memory
 *  of the strategy.
 *  @par Source
 *  Reduce-scatter, then all-gather: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005. The owner of each index
 *  range does both, directly between the callers' buffers. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce(ditto_replica *self, const void *src, void *dst,
                                                        size_t count, ditto_dtype dtype, ditto_op op,
                                                        const ditto_reduce_options *options);

/** One member of a list. The first fields are parameters of ditto_all_reduce. */
typedef struct ditto_list_item {
    const void *src;   /**< [in]  shape [count] */
    void *dst;         /**< [out] shape [count] */
    size_t count;      /**< number of elements */
    ditto_dtype dtype; /**< dtype of the elements */

    /** What the item is, or NULL. As the label of ditto_reduce_options, but only messages show it. */
    const char *label;
} ditto_list_item;

/** All-reduce of a list in one operation. The values are those of one ditto_all_reduce per item, in order.
 *
 *  @param self       the calling replica
 *  @param items      [num_items] the items, read only during the call. No destination may overlap a buffer of
 *                    another item
 *  @param num_items  number of items; equal on all replicas, as are the items' counts, dtypes and labels. 0
 *                    makes the call a barrier
 *  @param op         an operator that all dtypes of the list have
 *  @param options    NULL for the defaults. bytes_per_pack cuts the list into packs, which are reduced one
 *                    after the other, so that a long list does not occupy every cache at once. A pack ends
 *                    with the item that makes it larger than bytes_per_pack. 0 means the strategy's setting,
 *                    or one pack if that is 0
 *  @return DITTO_OK, an error of ditto_all_reduce (the message names the item), or:
 *  @retval DITTO_ERR_NO_MEMORY  the replica's arena has no memory for the check of overlaps
 *  @par Cost
 *  Each pack takes one or two meetings. Nothing is allocated if the items are those of the last list. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce_list(ditto_replica *self,
                                                             const ditto_list_item *items, size_t num_items,
                                                             ditto_op op,
                                                             const ditto_reduce_options *options);

/** A function of the program that combines elements: out[i] = left[i] combined with right[i], for each i.
 *
 *  It must be associative. It need not be commutative. It runs on the threads of several replicas at once,
 *  with DITTO_FLOATING_STANDARD. It may call ditto_fail and nothing else of ditto. A collective in it returns
 *  DITTO_ERR_CONTEXT. If it takes longer than the timeout, the replicas that wait for it return
 *  DITTO_ERR_TIMED_OUT, and it may go on until the time limit of the run.
 *
 *  @param out    [out] shape [count], in memory of the library; may be left or right itself
 *  @param left   [in]  shape [count]
 *  @param right  [in]  shape [count]
 *  @param count  number of elements, each of the size that the caller of the collective gave
 *  @param user   the pointer that the replica gave to the collective
 *  @return DITTO_OK, or an error that ends the run. The other replicas then get DITTO_ERR_PEER_STOPPED */
typedef ditto_status (*ditto_combine_fn)(void *out, const void *left, const void *right, size_t count,
                                         void *user);

/** All-reduce with a function of the program.
 *
 *  @param self           the calling replica
 *  @param src            [in]  shape [count]; `dst` itself (in place), or no overlap with it
 *  @param dst            [out] shape [count]
 *  @param count          number of elements; 0 makes the call a barrier
 *  @param element_bytes  bytes of one element, 1 to 4096. src and dst must be aligned as its type is. This is
 *                        not checked
 *  @param combine        the function; the same one on all replicas
 *  @param user           passed to combine; each replica may pass another one
 *  @param options        NULL for the defaults; read only during the call
 *  @return DITTO_OK, an error of ditto_all_reduce, an error of combine, or one of:
 *  @retval DITTO_ERR_INVALID  combine is NULL
 *  @retval DITTO_ERR_RANGE    element_bytes is outside 1 to 4096
 *  @retval DITTO_ERR_USER     combine returned a status that is neither DITTO_OK nor an error
 *  @par Cost
 *  That of ditto_all_reduce, with calls of the function for ranges of elements. In a small message every
 *  replica combines all elements itself, otherwise each replica combines its share. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce_with(ditto_replica *self, const void *src, void *dst,
                                                             size_t count, size_t element_bytes,
                                                             ditto_combine_fn combine, void *user,
                                                             const ditto_reduce_options *options);

/** A function of the program that changes a combined array, for ditto_all_reduce_through.
 *
 *  It runs on the thread of replica 0, with DITTO_FLOATING_STANDARD, while the other replicas wait in their
 *  calls. It may call ditto_fail and nothing else of ditto. A collective in it returns DITTO_ERR_CONTEXT.
 *
 *  @param buffer  [in, out] shape [count]: the dst of replica 0, with the combined array in it
 *  @param count   number of elements
 *  @param dtype   dtype of the elements
 *  @param user    the pointer that replica 0 gave to ditto_all_reduce_through
 *  @return DITTO_OK, or an error that ends the run. The other replicas then get DITTO_ERR_PEER_STOPPED */
typedef ditto_status (*ditto_through_fn)(void *buffer, size_t count, ditto_dtype dtype, void *user);

/** All-reduce through a function of the program. Replica 0 receives the combined array, passes it to the
 *  function, and all replicas receive what the function leaves. A program that has a communication layer of
 *  its own combines over its processes in the function, for example with MPI_Allreduce.
 *
 *  @param self      the calling replica
 *  @param src       [in]  shape [count]; `dst` itself (in place), or no overlap with it
 *  @param dst       [out] shape [count]
 *  @param count     number of elements; the function is called for 0 elements, too
 *  @param dtype     dtype of the elements
 *  @param op        an operator that the dtype has. DITTO_MEAN divides by the number of replicas before the
 *                   function is called
 *  @param through   the function; the same one on all replicas
 *  @param user      passed to the function by replica 0. The pointers of other replicas are not used
 *  @param options   NULL for the defaults; read only during the call. The other replicas wait while the
 *                   function runs, so its time counts against timeout_ms
 *  @return DITTO_OK, an error of ditto_all_reduce, on replica 0 an error of through, or one of:
 *  @retval DITTO_ERR_INVALID  through is NULL
 *  @retval DITTO_ERR_USER     through returned a status that is neither DITTO_OK nor an error
 *  @par Cost
 *  That of ditto_reduce_to_root and of ditto_broadcast_from_root, two to four meetings. Traces and the
 *  numbers of collectives in messages count it twice. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce_through(ditto_replica *self, const void *src,
                                                                void *dst, size_t count, ditto_dtype dtype,
                                                                ditto_op op, ditto_through_fn through,
                                                                void *user,
                                                                const ditto_reduce_options *options);

/** Reduce: combines elements as ditto_all_reduce does. Only the root receives the result.
 *
 *  @param self     the calling replica
 *  @param src      [in]  shape [count]; on the root `dst` itself (in place), or no overlap with it
 *  @param dst      [out] shape [count] on the root. On other replicas it is not accessed, and may be NULL
 *  @param count    number of elements
 *  @param dtype    dtype of the elements
 *  @param op       an operator that the dtype has
 *  @param root     id of the replica that receives the result
 *  @param options  NULL for the defaults; read only during the call
 *  @return DITTO_OK, an error of ditto_all_reduce, or:
 *  @retval DITTO_ERR_RANGE  root is not the id of a replica
 *  @par Cost
 *  That of ditto_all_reduce, but only the root writes the result. */
DITTO_API DITTO_NODISCARD ditto_status ditto_reduce_to_root(ditto_replica *self, const void *src, void *dst,
                                                            size_t count, ditto_dtype dtype, ditto_op op,
                                                            uint32_t root,
                                                            const ditto_reduce_options *options);

/** Broadcast: every replica receives the root's elements.
 *
 *  @param self     the calling replica
 *  @param buffer   shape [count]; [in] on the root, [out] on the other replicas
 *  @param count    number of elements
 *  @param dtype    dtype of the elements
 *  @param root     id of the replica that sends its elements
 *  @param options  NULL for the defaults; read only during the call
 *  @return DITTO_OK, an error of ditto_all_reduce, or:
 *  @retval DITTO_ERR_RANGE  root is not the id of a replica
 *  @par Cost
 *  A small message takes one meeting, in which every replica reads the payload of the root. A larger one
 *  takes two meetings, and each replica copies count elements from the memory of the root. */
DITTO_API DITTO_NODISCARD ditto_status ditto_broadcast_from_root(ditto_replica *self, void *buffer,
                                                                 size_t count, ditto_dtype dtype,
                                                                 uint32_t root,
                                                                 const ditto_reduce_options *options);

/** Reduce-scatter: reduces the elements of all parts together. Replica i receives part i of the result.
 *
 *  @param self     the calling replica
 *  @param src      [in]  the parts of all replicas, in replica order
 *  @param dst      [out] the own part; its place in src (the rest of src is kept), or no overlap with src
 *  @param count    number of elements of each part. Not used if `counts` is given
 *  @param counts   [n] the number of elements of each part; equal on all replicas. NULL means `count` for all
 *  @param dtype    dtype of the elements
 *  @param op       an operator that the dtype has
 *  @param options  NULL for the defaults; read only during the call
 *  @return DITTO_OK, or an error of ditto_all_reduce
 *  @par Cost
 *  A small message takes one meeting, a larger one two. Each replica reads its part from every other
 *  replica. */
DITTO_API DITTO_NODISCARD ditto_status ditto_reduce_scatter(ditto_replica *self, const void *src, void *dst,
                                                            size_t count, const size_t *counts,
                                                            ditto_dtype dtype, ditto_op op,
                                                            const ditto_reduce_options *options);

/** All-gather: every replica receives the elements of all replicas, in replica order.
 *
 *  @param self     the calling replica
 *  @param src      [in]  the own elements; their place in dst, or no overlap with dst
 *  @param dst      [out] the elements of all replicas
 *  @param count    number of elements of each replica. Not used if `counts` is given
 *  @param counts   [n] the number of elements of each replica; equal on all replicas. NULL means `count` for
 *                  all
 *  @param dtype    dtype of the elements
 *  @param options  NULL for the defaults; read only during the call
 *  @return DITTO_OK, or an error of ditto_all_reduce
 *  @par Cost
 *  A small message takes one meeting, a larger one two. Each replica copies the elements of every other
 *  replica. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_gather(ditto_replica *self, const void *src, void *dst,
                                                        size_t count, const size_t *counts, ditto_dtype dtype,
                                                        const ditto_reduce_options *options);

/** Gather: the root receives the elements of all replicas, in replica order.
 *
 *  @param self     the calling replica
 *  @param src      [in]  the own elements; on the root their place in dst (in place), or no overlap with dst
 *  @param dst      [out] on the root, the elements of all replicas. On other replicas it is not accessed, and
 *                  may be NULL
 *  @param count    number of elements of each replica. Not used if `counts` is given
 *  @param counts   [n] the number of elements of each replica; equal on all replicas. NULL means `count` for
 *                  all
 *  @param offsets  [n] the first element in dst of what each replica brings. Only the root reads them. NULL
 *                  means one after the other. Without `counts` it must be NULL
 *  @param dtype    dtype of the elements
 *  @param root     id of the replica that receives the elements
 *  @param options  NULL for the defaults; read only during the call
 *  @return DITTO_OK, an error of ditto_all_reduce, or one of:
 *  @retval DITTO_ERR_RANGE      root is not the id of a replica; an offset is so large that a size_t cannot
 *                               count the bytes before the end of the part. The run continues
 *  @retval DITTO_ERR_INVALID    `offsets` is given without `counts`; two parts of dst overlap, or one of them
 *                               overlaps src elsewhere than in place. The run continues
 *  @retval DITTO_ERR_NO_MEMORY  the root's arena has no memory to check the parts. The run continues
 *  @par Cost
 *  A small message takes one meeting, in which the root reads the payloads of the others. A larger one takes
 *  two meetings. Each replica writes its elements to the root, and with `counts` the root reads all of
 *  them. */
DITTO_API DITTO_NODISCARD ditto_status ditto_gather_to_root(ditto_replica *self, const void *src, void *dst,
                                                            size_t count, const size_t *counts,
                                                            const size_t *offsets, ditto_dtype dtype,
                                                            uint32_t root,
                                                            const ditto_reduce_options *options);

/** Scatter: replica i receives part i of the root's elements.
 *
 *  @param self     the calling replica
 *  @param src      [in]  on the root, the parts of all replicas, in replica order. On other replicas it is
 *                  not accessed, and may be NULL
 *  @param dst      [out] the own part; on the root its place in src (in place), or no overlap with src
 *  @param count    number of elements of each part. Not used if `counts` is given
 *  @param counts   [n] the number of elements of each part; equal on all replicas. NULL means `count` for all
 *  @param offsets  [n] the first element in src of each part. Only the root reads them. Parts may overlap.
 *                  NULL means one after the other. Without `counts` it must be NULL
 *  @param dtype    dtype of the elements
 *  @param root     id of the replica that sends the parts
 *  @param options  NULL for the defaults; read only during the call
 *  @return DITTO_OK, an error of ditto_all_reduce, or one of:
 *  @retval DITTO_ERR_RANGE      as for ditto_gather_to_root
 *  @retval DITTO_ERR_INVALID    `offsets` is given without `counts`; on the root, dst overlaps a part of src
 *                               elsewhere than in place. The run continues
 *  @retval DITTO_ERR_NO_MEMORY  the arena has no memory to check the parts. The run continues
 *  @par Cost
 *  A small message takes one meeting, a larger one two. Each replica reads its part from the root. */
DITTO_API DITTO_NODISCARD ditto_status ditto_scatter_from_root(ditto_replica *self, const void *src,
                                                               void *dst, size_t count, const size_t *counts,
                                                               const size_t *offsets, ditto_dtype dtype,
                                                               uint32_t root,
                                                               const ditto_reduce_options *options);

/** The parts of an all-to-all that differ in size. Part i of a source is for replica i, and part i of a
 *  destination comes from it. Counts and offsets are numbers of elements. */
typedef struct ditto_all_to_all_parts {
    /** [n] The size of each part of src. src_counts[j] on replica i is dst_counts[i] on replica j. */
    const size_t *src_counts;

    /** [n] The first element of each part of src. Parts may overlap. NULL: one part after the other. */
    const size_t *src_offsets;

    const size_t *dst_counts; /**< [n] The size of each part of dst. */

    /** [n] The first element of each part of dst. NULL: one part after the other. */
    const size_t *dst_offsets;
} ditto_all_to_all_parts;

/** All-to-all: replica i receives part i of every replica's elements, in replica order. It transposes a
 *  matrix of parts, of which each replica has one row.
 *
 *  A replica is in place if src is dst. With `parts`, the counts and the offsets of both sides are then
 *  equal. Some replicas may be in place and others not.
 *
 *  @param self     the calling replica
 *  @param src      [in]  n parts
 *  @param dst      [out] n parts; src itself (in place), or no overlap with src
 *  @param count    number of elements of each part. Not used if `parts` is given
 *  @param parts    the sizes and places of parts that differ in size, which may differ between replicas. NULL
 *                  on all replicas, or on none
 *  @param dtype    dtype of the elements
 *  @param options  NULL for the defaults; read only during the call
 *  @return DITTO_OK, an error of ditto_all_reduce, or one of:
 *  @retval DITTO_ERR_RANGE      an offset is so large that a size_t cannot count the bytes before the end of
 *                               the part. The run continues
 *  @retval DITTO_ERR_INVALID    src_counts or dst_counts is NULL; two parts of dst overlap, or one of them
 *                               overlaps a part of src that is not the same part in place. The run continues
 *  @retval DITTO_ERR_DIVERGED   also if src_counts of one replica do not fit to dst_counts of another one
 *  @retval DITTO_ERR_NO_MEMORY  the replica's arena has no memory to check `parts`. The run continues
 *  @par Cost
 *  A small message takes one meeting, a larger one two. Each replica reads its parts from every other
 *  replica. In place, two replicas exchange their parts by way of a small buffer. With `parts`, a message has
 *  24 bytes more for each part, and the parts are checked only if they differ from those of the last four
 *  calls.
 *  @par Source
 *  MPI_Alltoall and MPI_Alltoallv, MPI 3.1, section 5.8. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_to_all(ditto_replica *self, const void *src, void *dst,
                                                        size_t count, const ditto_all_to_all_parts *parts,
                                                        ditto_dtype dtype,
                                                        const ditto_reduce_options *options);

/** Number of elements in a block of ditto_block_sum. */
#define DITTO_BLOCK_ELEMENTS 1024

/** Adds up all elements of all replicas. The bits of the sum depend on the elements and their order alone.
 *  They do not depend on the number of replicas, nor on how the elements are distributed over them.
 *
 *  The elements of all replicas form one row, in replica order. The row is cut into blocks of
 *  DITTO_BLOCK_ELEMENTS elements. In a block of m elements, element j + ceil(m / 2) is added to element j.
 *  This is repeated with the ceil(m / 2) elements that are left, until there is one. The tree of
 *  docs/semantics.md, over the number of blocks, then combines the sums of the blocks.
 *
 *  @param self     the calling replica
 *  @param src      [in]  shape [count]
 *  @param dst      [out] one element: the sum, or 0 if there are no elements at all. f16 and bf16 are summed
 *                  in f32, and the sum is rounded once
 *  @param count    number of elements; may differ between replicas
 *  @param dtype    dtype of the elements
 *  @param options  NULL for the defaults; read only during the call
 *  @return DITTO_OK, an error of ditto_all_reduce, or:
 *  @retval DITTO_ERR_UNSUPPORTED  dtype is DITTO_BOOL
 *  @par Cost
 *  The call takes two meetings. The owner of a block's first element reads the whole block, also if it lies
 *  on several replicas. */
DITTO_API DITTO_NODISCARD ditto_status ditto_block_sum(ditto_replica *self, const void *src, void *dst,
                                                       size_t count, ditto_dtype dtype,
                                                       const ditto_reduce_options *options);

/** A function of the program that computes elements of its replica, for ditto_block_sum_with.
 *
 *  It must write the same elements whenever it is called, because the library asks for some of them twice,
 *  and in ranges of its own choice. It runs on the replica's thread, with DITTO_FLOATING_STANDARD. It may
 *  call ditto_fail and nothing else of ditto. A collective in it returns DITTO_ERR_CONTEXT. If it takes
 *  longer than the timeout, the replicas that wait for it return DITTO_ERR_TIMED_OUT.
 *
 *  @param out    [out] shape [count], in memory of the library, aligned to a cache line or to an element
 *  @param first  number of the first element, counted from 0 on each replica
 *  @param count  number of elements, 1 to DITTO_BLOCK_ELEMENTS
 *  @param user   the pointer that the replica gave to ditto_block_sum_with
 *  @return DITTO_OK, or an error that ends the run. The other replicas then get DITTO_ERR_PEER_STOPPED */
typedef ditto_status (*ditto_elements_fn)(void *out, size_t first, size_t count, void *user);

/** Adds up elements that a function computes. The sum has the bits of ditto_block_sum of an array of these
 *  elements, which does not have to exist.
 *
 *  @param self      the calling replica
 *  @param elements  the function; the same one on all replicas
 *  @param user      passed to elements; each replica may pass another one
 *  @param dst       [out] one element: the sum, or 0 if there are no elements at all
 *  @param count     number of elements of this replica; may differ between replicas
 *  @param dtype     dtype of the elements
 *  @param options   NULL for the defaults; read only during the call
 *  @return DITTO_OK, an error of ditto_block_sum, an error of elements, or one of:
 *  @retval DITTO_ERR_INVALID  elements is NULL
 *  @retval DITTO_ERR_RANGE    a size_t cannot count the elements of all replicas
 *  @retval DITTO_ERR_USER     elements returned a status that is neither DITTO_OK nor an error
 *  @par Cost
 *  That of ditto_block_sum, one call of the function for each block or part of one, and one for up to
 *  DITTO_BLOCK_ELEMENTS - 1 elements that other replicas may need. */
DITTO_API DITTO_NODISCARD ditto_status ditto_block_sum_with(ditto_replica *self, ditto_elements_fn elements,
                                                            void *user, void *dst, size_t count,
                                                            ditto_dtype dtype,
                                                            const ditto_reduce_options *options);

/** Dot product: adds up x[i] * y[i] over all elements of all replicas. Each product is rounded to the dtype.
 *  The sum has the bits of ditto_block_sum of an array of the products, which does not have to exist. So it
 *  does not depend on the number of replicas either. Of complex numbers the products are x[i] * y[i], without
 *  a conjugate.
 *
 *  @param self     the calling replica
 *  @param x        [in]  shape [count]
 *  @param y        [in]  shape [count]; may be x
 *  @param dst      [out] one element: the sum, or 0 if there are no elements at all
 *  @param count    number of elements; may differ between replicas
 *  @param dtype    dtype of the elements
 *  @param options  NULL for the defaults; read only during the call
 *  @return DITTO_OK, or an error of ditto_block_sum
 *  @par Cost
 *  That of ditto_block_sum, and one pass over the second factor. */
DITTO_API DITTO_NODISCARD ditto_status ditto_block_dot(ditto_replica *self, const void *x, const void *y,
                                                       void *dst, size_t count, ditto_dtype dtype,
                                                       const ditto_reduce_options *options);

/** @} */
/** @} */

DITTO_END
#endif
