/* include/ditto/scan.h - scans: each replica receives what the first replicas have together, for example the
 * place at which its own rows begin in a row of all.
 *
 * The functions are collectives, in replica context. The rules of ditto/collective.h hold. */
#ifndef DITTO_SCAN_H
#define DITTO_SCAN_H

#include <ditto/collective.h>

DITTO_BEGIN

/** @defgroup ditto_scan Scans
 *
 *  A scan follows the tree of docs/semantics.md. Let T(v) be the reduction over the replicas of a node v. The
 *  scan S(v, k) of replica k over the replicas of v is S(left, k) if k is in the left half of v, and
 *  otherwise T(left) op S(right, k). So the inclusive scan of the last replica has the bits of
 *  ditto_all_reduce, and that of each replica has the same bits for every placement and algorithm. An
 *  addition from left to right gives other bits. The exclusive scan leaves out the own elements, and adds no
 *  neutral element. That of replica k has the bits of the inclusive scan of replica k - 1. f16 and bf16 are
 *  combined in f32, and each result is rounded once. There is no DITTO_MEAN, because each result is made of
 *  another number of values.
 *  @{ */

/** Inclusive scan: each replica receives the combination of the elements of all replicas up to itself.
 *
 *      dst[i] = src_0[i] op src_1[i] op ... op src_k[i]         on replica k
 *
 *  @param self     the calling replica
 *  @param src      [in]  shape [count]; `dst` itself (in place), or no overlap with it
 *  @param dst      [out] shape [count]
 *  @param count    number of elements; 0 makes the call a barrier
 *  @param dtype    dtype of the elements
 *  @param op       an operator that the dtype has, except DITTO_MEAN
 *  @param options  NULL for the defaults; read only during the call
 *  @return DITTO_OK (dst is complete on this replica), an error of ditto_all_reduce, or:
 *  @retval DITTO_ERR_UNSUPPORTED  op is DITTO_MEAN; the strategy has several hosts
 *  @par Cost
 *  A small message takes one meeting, in which each replica reads the payloads of the replicas before it. A
 *  larger one takes two meetings. Each replica then reads count elements, and writes as many, with about
 *  log2(n) / 2 combinations for each. Two replicas share the work as in ditto_all_reduce: each makes its own
 *  result up to 384 KiB, and if stage_one_way_bytes applies, there is one meeting for each 128 KiB. Nothing
 *  is allocated.
 *  @par Source
 *  The combinations are those of Sklansky, IRE Transactions on Electronic Computers EC-9(2), 1960, in the
 *  order of the tree. */
DITTO_API DITTO_NODISCARD ditto_status ditto_scan(ditto_replica *self, const void *src, void *dst,
                                                  size_t count, ditto_dtype dtype, ditto_op op,
                                                  const ditto_reduce_options *options);

/** Exclusive scan: each replica receives the combination of the elements of all replicas before itself.
 *
 *      dst[i] = src_0[i] op src_1[i] op ... op src_{k-1}[i]     on replica k, if k > 0
 *
 *  With it a replica finds where its rows begin, behind those of the replicas before it:
 *
 *      ditto_status first_row(ditto_replica *self, uint64_t own_rows, uint64_t *first)
 *      {
 *          *first = 0; // what replica 0 keeps
 *          return ditto_scan_exclusive(self, &own_rows, first, 1, DITTO_U64, DITTO_SUM, NULL);
 *      }
 *
 *  @param self     the calling replica
 *  @param src      [in]  shape [count]; `dst` itself (in place), or no overlap with it
 *  @param dst      [out] shape [count]. On replica 0 it is not accessed, and may be NULL
 *  @param count    number of elements; 0 makes the call a barrier
 *  @param dtype    dtype of the elements
 *  @param op       an operator that the dtype has, except DITTO_MEAN
 *  @param options  NULL for the defaults; read only during the call
 *  @return DITTO_OK, or an error of ditto_scan
 *  @par Cost
 *  That of ditto_scan. */
DITTO_API DITTO_NODISCARD ditto_status ditto_scan_exclusive(ditto_replica *self, const void *src, void *dst,
                                                            size_t count, ditto_dtype dtype, ditto_op op,
                                                            const ditto_reduce_options *options);

/** Scan with a function of the program, which need not be commutative.
 *
 *  @param self           the calling replica
 *  @param src            [in]  shape [count]; `dst` itself (in place), or no overlap with it
 *  @param dst            [out] shape [count]. In an exclusive scan it is not accessed on replica 0, and may
 *                        be NULL there
 *  @param count          number of elements; 0 makes the call a barrier
 *  @param element_bytes  bytes of one element, 1 to 4096. src and dst must be aligned as its type is. This is
 *                        not checked
 *  @param combine        the function; the same one on all replicas
 *  @param user           passed to combine; each replica may pass another one
 *  @param exclusive      0 for an inclusive scan, another number for an exclusive one; equal on all replicas
 *  @param options        NULL for the defaults; read only during the call
 *  @return DITTO_OK, an error of ditto_scan, an error of combine, or one of:
 *  @retval DITTO_ERR_INVALID  combine is NULL
 *  @retval DITTO_ERR_RANGE    element_bytes is outside 1 to 4096
 *  @retval DITTO_ERR_USER     combine returned a status that is neither DITTO_OK nor an error
 *  @par Cost
 *  That of ditto_scan, with calls of the function for ranges of elements. In a small message every replica
 *  makes its own result. In a larger one each replica calls the function for its share of the indices, also
 *  of two replicas. */
DITTO_API DITTO_NODISCARD ditto_status ditto_scan_with(ditto_replica *self, const void *src, void *dst,
                                                       size_t count, size_t element_bytes,
                                                       ditto_combine_fn combine, void *user, int exclusive,
                                                       const ditto_reduce_options *options);

/** @} */

DITTO_END
#endif
