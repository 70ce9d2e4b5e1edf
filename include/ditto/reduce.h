/* include/ditto/reduce.h - distributed values combined into one, gathered, or copied to several replicas. */
#ifndef DITTO_REDUCE_H
#define DITTO_REDUCE_H

#include <ditto/value.h>

DITTO_BEGIN

/** @defgroup ditto_reductions Reductions of values
 *
 *  All functions but ditto_all_gather_tensor are called in cross-replica context, and also return the errors
 *  of the group "Strategies" (ditto/strategy.h). If it is faster, all replicas take part in the work. Values
 *  that a function returns through `out` are given to the caller.
 *
 *  Sums over replicas are combined by the tree of docs/semantics.md, and have the bits of ditto_all_reduce.
 *  Sums along axes are combined in blocks, as by ditto_block_sum, over the rows of all replicas in replica
 *  order. They do not depend on the number of replicas, nor on how the rows are distributed over them.
 *  @{ */

/** Reduces a value over replicas and, if axes are given, along these axes inside each replica.
 *
 *      SUM of [0, 1, 2, 3] and [4, 5] along axis 0      15
 *      MEAN of the same along axis 0                    2.5
 *      SUM of the same without axes                     DITTO_ERR_SHAPE
 *
 *  A plain value, a mirrored value and a mirrored variable are one value. Without axes, MEAN, MIN and MAX
 *  return it unchanged. With axes, only elements along the axes are combined. MEAN with axes is the sum of
 *  all elements, divided by the number of elements along the axes on all replicas. The mean of integers is
 *  f64. The mean of no elements is NaN.
 *
 *  @param strategy  the strategy
 *  @param op        SUM, MEAN, MIN, MAX or PROD
 *  @param value     the value. Each leaf of a nest is reduced. Slices become the slices of all replicas, in
 *                   replica order, and MEAN divides their values by N
 *  @param axes      [num_axes] the axes. Negative ones count from the end. NULL means none, and then shapes
 *                   must agree
 *  @param num_axes  number of axes
 *  @param out       [out] a plain value, slices, or a nest of these
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID      SUM or PROD of a plain or mirrored value with more than one replica,
 *                                 because the value would count N times; an axis that is given twice; axes of
 *                                 slices
 *  @retval DITTO_ERR_RANGE        an axis outside of the rank; an unknown op
 *  @retval DITTO_ERR_SHAPE        shapes differ in a dimension in which they must agree
 *  @retval DITTO_ERR_UNSUPPORTED  the dtype does not have op; AND, OR or XOR
 *  @par Cost
 *  With one scalar per replica, about one cache line is read from each replica. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_reduce(ditto_strategy *strategy, ditto_op op,
                                                             const ditto_value *value, const int32_t *axes,
                                                             uint32_t num_axes, ditto_value **out);

/** Reduces a value over replicas, without axes, to a number. It is meant for losses.
 *
 *  @param strategy  the strategy
 *  @param op        SUM, MEAN, MIN, MAX or PROD
 *  @param value     the value
 *  @param out       [out] the number
 *  @return DITTO_OK, an error of ditto_strategy_reduce or ditto_value_tensor, or one of:
 *  @retval DITTO_ERR_SHAPE        the result does not have exactly one element
 *  @retval DITTO_ERR_UNSUPPORTED  the result is complex */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_reduce_f64(ditto_strategy *strategy, ditto_op op,
                                                                 const ditto_value *value, double *out);

/** Merges slices, so that the indices ascend and each occurs once. Rows with the same index are added in
 *  their order, by the tree over the number of these rows.
 *
 *  @param strategy  the strategy
 *  @param slices    the slices
 *  @param out       [out] the merged slices
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID    the value is not slices
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for the result */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_merge_slices(ditto_strategy *strategy,
                                                                   const ditto_value *slices,
                                                                   ditto_value **out);

/** The destinations of a result. */
typedef struct ditto_destination {
    /** The result gets one copy for each component of this value. For a per-replica value these are all
     *  replicas, for a variable those of its copies. NULL means that `replica` is the only destination. */
    const ditto_value *of;

    uint32_t replica; /**< id of the only destination, if `of` is NULL */
} ditto_destination;

/** Reduces a value over replicas, without axes, into a mirrored value with a copy at each destination. The
 *  value or variable that names the destinations is not changed.
 *
 *  Slices become dense if they are reduced to a variable, or have dense_rows. The result then is an array of
 *  zeros to which their rows are added, with the tree over rows of one index. MEAN divides by N. Other slices
 *  that are reduced to a replica stay slices, as with ditto_strategy_reduce.
 *
 *  @param strategy     the strategy
 *  @param op           SUM, MEAN, MIN, MAX or PROD
 *  @param value        the value; not a nest
 *  @param destination  the destinations
 *  @param out          [out] the mirrored value, or slices
 *  @return DITTO_OK, an error of ditto_strategy_reduce, or one of:
 *  @retval DITTO_ERR_INVALID  value is a nest; destination.of is not a value that can name destinations
 *  @retval DITTO_ERR_RANGE    destination.replica is not the id of a replica
 *  @retval DITTO_ERR_SHAPE    the slices' rows do not fit the variable */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_reduce_to(ditto_strategy *strategy, ditto_op op,
                                                                const ditto_value *value,
                                                                ditto_destination destination,
                                                                ditto_value **out);

/** Reduces several values as ditto_strategy_reduce_to does. The results are those of one call for each value,
 *  in order. All of them together take one meeting.
 *
 *  @param strategy      the strategy
 *  @param op            SUM, MEAN, MIN, MAX or PROD
 *  @param values        [num_values] the values
 *  @param destinations  [num_values] the destinations of each value
 *  @param num_values    number of values
 *  @param out           [out] [num_values] the results; after an error none is set
 *  @return DITTO_OK, an error of ditto_strategy_reduce_to, or:
 *  @retval DITTO_ERR_INVALID  num_values is 0 */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_batch_reduce_to(ditto_strategy *strategy, ditto_op op,
                                                                      const ditto_value *const *values,
                                                                      const ditto_destination *destinations,
                                                                      uint32_t num_values, ditto_value **out);

/** Copies a tensor to each destination.
 *
 *  @param strategy     the strategy
 *  @param tensor       the tensor
 *  @param destination  the destinations
 *  @param out          [out] a mirrored value
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID    a NULL pointer; an invalid tensor; destination.of is not a value that can
 *                               name destinations
 *  @retval DITTO_ERR_RANGE      destination.replica is not the id of a replica
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for the copies */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_broadcast_to(ditto_strategy *strategy,
                                                                   const ditto_tensor *tensor,
                                                                   ditto_destination destination,
                                                                   ditto_value **out);

/** Concatenates the components of a value along an axis, in replica order.
 *
 *  @param strategy  the strategy
 *  @param value     the value. Each leaf of a nest is gathered. The result of a plain value is that value
 *  @param axis      the axis, 0 to rank - 1
 *  @param out       [out] a plain value, or a nest of these
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_SHAPE        the components are scalars; their ranks differ; their shapes differ in
 *                                 another dimension than axis
 *  @retval DITTO_ERR_RANGE        axis is not below the rank
 *  @retval DITTO_ERR_UNSUPPORTED  slices */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_gather(ditto_strategy *strategy,
                                                             const ditto_value *value, uint32_t axis,
                                                             ditto_value **out);

/** Concatenates the replicas' tensors along an axis, in replica order. Every replica receives the result. The
 *  call is collective, and is made in replica context, with the rules of ditto/collective.h.
 *
 *  @param self  the calling replica
 *  @param src   this replica's tensor. Shapes may differ between replicas along axis alone
 *  @param axis  the axis, equal on all replicas
 *  @param dst   [out] the result. Its data is in the replica's own memory, and the caller gives it to
 *               ditto_free
 *  @return DITTO_OK, an error of ditto_all_gather, or one of:
 *  @retval DITTO_ERR_SHAPE      as for ditto_strategy_gather. All replicas get this error, and the run goes
 *                               on
 *  @retval DITTO_ERR_RANGE      as for ditto_strategy_gather. All replicas get this error, and the run goes
 *                               on
 *  @retval DITTO_ERR_INVALID    dtype or axis differ between replicas. All replicas get this error, and the
 *                               run goes on. Or a pointer is NULL, or the tensor is invalid
 *  @retval DITTO_ERR_NO_MEMORY  only on the replica that has no memory. Its function must return this error
 *  @par Cost
 *  The call takes two operations. The first gathers the shapes, the second the data. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_gather_tensor(ditto_replica *self, const ditto_tensor *src,
                                                               uint32_t axis, ditto_tensor *dst);

/** @} */

DITTO_END
#endif
