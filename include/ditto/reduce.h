/* include/ditto/reduce.h - distributed values combined into one, gathered, or copied to several replicas. */
#ifndef DITTO_REDUCE_H
#define DITTO_REDUCE_H

#include <ditto/value.h>

DITTO_BEGIN

/** @defgroup ditto_reductions Reductions of values
 *
 *  All functions but the last two are called in cross-replica context, and also return the errors of the
 *  group "Strategies" (ditto/strategy.h). They return DITTO_ERR_INVALID for a NULL pointer, DITTO_ERR_CONTEXT
 *  for a value of another strategy, DITTO_ERR_NO_MEMORY, and DITTO_ERR_SYSTEM if the calling thread could not
 *  be pinned. All replicas take part in the work if that is faster.
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
 *  A plain value, a mirrored value and a mirrored variable are one value. (If the components of the variable
 *  differ, it is that of replica 0.) Without axes, MEAN, MIN and MAX return one value unchanged, in its own
 *  dtype. With axes, its elements are combined along the axes.
 *
 *  MEAN with axes is the sum along the axes over all replicas, divided by the number of elements that were
 *  added. It is NaN if there are none. Means of integers and bools are f64.
 *
 *  @param strategy  the strategy
 *  @param op        SUM, MEAN, MIN, MAX or PROD
 *  @param value     the value. Each leaf of a nest is reduced. Slices become the slices of all replicas, in
 *                   replica order, and MEAN divides their values by N. Slices that a reduction or
 *                   ditto_value_select returned are one value, and MEAN does not change them
 *  @param axes      [num_axes] the axes. Negative ones count from the end
 *  @param num_axes  number of axes. With 0, the shapes of all components must agree
 *  @param out       [out] a plain value, slices, or a nest of these
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID      SUM or PROD of one value (see above) with more than one replica, because it
 *                                 would count N times; an axis that is given twice; axes of slices
 *  @retval DITTO_ERR_RANGE        an axis that the tensor does not have; an unknown op; the size of the
 *                                 result overflows
 *  @retval DITTO_ERR_SHAPE        shapes differ in a dimension in which they must agree
 *  @retval DITTO_ERR_UNSUPPORTED  the dtype does not have op; AND, OR or XOR; an op other than SUM and MEAN
 *                                 for slices
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
 *  @retval DITTO_ERR_UNSUPPORTED  the result is complex
 *  @par Cost
 *  That of ditto_strategy_reduce. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_reduce_f64(ditto_strategy *strategy, ditto_op op,
                                                                 const ditto_value *value, double *out);

/** Merges the slices of all replicas, so that the indices ascend and each occurs once. Rows with the same
 *  index are added in replica order, by the tree over the number of these rows.
 *
 *  @param strategy  the strategy
 *  @param slices    the slices
 *  @param out       [out] the merged slices, equal on all replicas
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID      the value is not slices
 *  @retval DITTO_ERR_UNSUPPORTED  the dtype does not have SUM
 *  @par Cost
 *  Sorts all indices, and reads each row once. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_merge_slices(ditto_strategy *strategy,
                                                                   const ditto_value *slices,
                                                                   ditto_value **out);

/** The destinations of a result. */
typedef struct ditto_destination {
    /** The result gets a copy on each replica that owns a copy of this value. For a per-replica value these
     *  are all replicas, for a variable those that own its physical copies (see ditto_copies). NULL means
     *  that `replica` is the only destination. */
    const ditto_value *of;

    uint32_t replica; /**< id of the only destination, if `of` is NULL */
} ditto_destination;

/** Reduces values over replicas, without axes, each into a mirrored value with a copy at each of its
 *  destinations. The value or variable that names the destinations is not changed. All values together take
 *  one meeting.
 *
 *  Slices become dense if they are reduced to a variable, or have dense_rows. The result then is an array of
 *  zeros to which their rows are added. Rows of one index are combined as in ditto_strategy_merge_slices, and
 *  MEAN divides by N. Other slices stay slices, as with ditto_strategy_reduce.
 *
 *  @param strategy      the strategy
 *  @param op            SUM, MEAN, MIN, MAX or PROD
 *  @param values        [num_values] the values; no nests
 *  @param destinations  [num_values] the destinations of each value
 *  @param num_values    number of values
 *  @param out           [out] [num_values] the mirrored values, or slices; after an error none is set
 *  @return DITTO_OK, an error of ditto_strategy_reduce, or one of:
 *  @retval DITTO_ERR_INVALID  a value is a nest; destination.of is neither a per-replica value, nor a
 *                             mirrored value, nor a variable; num_values is 0
 *  @retval DITTO_ERR_RANGE    destination.replica is not the id of a replica; an index of the slices is not a
 *                             row of the variable; the size of the dense array overflows
 *  @retval DITTO_ERR_SHAPE    the length of the slices' rows does not fit the variable
 *  @par Cost
 *  One run for all values, in which each element is read once from each replica, and one copy of each result
 *  for each further destination. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_reduce_to(ditto_strategy *strategy, ditto_op op,
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
 *  @retval DITTO_ERR_INVALID  an invalid tensor; destination.of as for ditto_strategy_reduce_to
 *  @retval DITTO_ERR_RANGE    destination.replica is not the id of a replica; the size of the tensor
 *                             overflows
 *  @par Cost
 *  One copy for each destination. */
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
 *  @retval DITTO_ERR_SHAPE        the components are scalars, or differ in another dimension than axis
 *  @retval DITTO_ERR_RANGE        axis is not below the rank; the size of the result overflows
 *  @retval DITTO_ERR_UNSUPPORTED  slices
 *  @par Cost
 *  One copy of each component. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_gather(ditto_strategy *strategy,
                                                             const ditto_value *value, uint32_t axis,
                                                             ditto_value **out);

/** Concatenates the replicas' tensors along an axis, in replica order. Every replica receives the result. The
 *  call is collective, and is made in replica context, with the rules of ditto/collective.h. If tensors or
 *  axes do not fit together, all replicas get the same error, and the run goes on.
 *
 *  @param self  the calling replica
 *  @param src   this replica's tensor. Shapes may differ between replicas along axis alone
 *  @param axis  the axis, equal on all replicas
 *  @param dst   [out] the result. Its data is in the replica's own memory, and the caller gives it to
 *               ditto_free
 *  @return DITTO_OK, an error of ditto_all_gather, or one of:
 *  @retval DITTO_ERR_SHAPE      as for ditto_strategy_gather; ranks differ between replicas
 *  @retval DITTO_ERR_RANGE      as for ditto_strategy_gather; the size of the tensor overflows
 *  @retval DITTO_ERR_INVALID    dtype or axis differ between replicas; a NULL pointer; an invalid tensor
 *  @retval DITTO_ERR_NO_MEMORY  only on the replica that has no memory. Its function must return this error
 *  @par Cost
 *  The call takes two collectives. The first gathers the shapes, the second the data. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_gather_tensor(ditto_replica *self, const ditto_tensor *src,
                                                               uint32_t axis, ditto_tensor *dst);

/** Exchanges parts of the replicas' tensors. Each tensor is split into n equal parts along one axis. Replica
 *  i receives part i of every tensor, and concatenates these parts along another axis, or the same one, in
 *  replica order. So a matrix whose rows are divided among the replicas becomes one whose columns are
 *  (split_axis 1, concat_axis 0). The call is collective, and is made in replica context, with the rules of
 *  ditto/collective.h. If tensors or axes do not fit together, all replicas get the same error, and the run
 *  goes on.
 *
 *  @param self         the calling replica
 *  @param src          this replica's tensor. Shapes may differ between replicas along concat_axis alone
 *  @param split_axis   the axis that is split, equal on all replicas. Its length is a multiple of n
 *  @param concat_axis  the axis along which parts are concatenated, equal on all replicas
 *  @param dst          [out] the result. Its data is in the replica's own memory, and the caller gives it to
 *                      ditto_free
 *  @return DITTO_OK, an error of ditto_all_to_all, or one of:
 *  @retval DITTO_ERR_SHAPE      as for ditto_all_gather_tensor; the length of split_axis is no multiple of n
 *  @retval DITTO_ERR_RANGE      there is no such axis; the size of the tensor overflows
 *  @retval DITTO_ERR_INVALID    dtype or axes differ between replicas; a NULL pointer; an invalid tensor
 *  @retval DITTO_ERR_NO_MEMORY  only on the replica that has no memory. Its function must return this error
 *  @par Cost
 *  The call takes two collectives. The first gathers the shapes, the second exchanges the data. If
 *  split_axis or concat_axis is not 0, the data is copied once more for it. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_to_all_tensor(ditto_replica *self, const ditto_tensor *src,
                                                               uint32_t split_axis, uint32_t concat_axis,
                                                               ditto_tensor *dst);

/** @} */

DITTO_END
#endif
