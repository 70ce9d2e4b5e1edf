/* include/ditto/reduce.h - distributed values combined into one: reduce, gather; and one value sent to many places.
 *
 * All but the last function: cross-replica context, with the errors of ditto/strategy.h; where it pays, all replicas
 * work on it. Sums over replicas go by the tree of docs/semantics.md: the bits are those of ditto_all_reduce. Sums
 * along axes go by blocks (ditto_block_sum), over the rows of all replicas in replica order: so they do not depend on
 * the number of replicas, nor on how the rows are spread. */
#ifndef DITTO_REDUCE_H
#define DITTO_REDUCE_H

#include <ditto/value.h>

DITTO_BEGIN

/** Reduces a value over replicas and, if axes are given, along these axes inside each replica.
 *      reduce(SUM, [0,1,2,3] and [4,5], axis 0) = 15      reduce(MEAN, the same) = 2.5      without axes: SHAPE
 *
 *  @param op        SUM, MEAN, MIN, MAX or PROD. MEAN with axes is the sum of all elements, divided by how many there
 *                   are along the axes on all replicas; the mean of integers is f64; of no elements NaN
 *  @param value     of a nest each leaf is reduced. Slices become the slices of all in replica order, their values
 *                   divided by N for MEAN. Plain and mirrored values, and mirrored variables, are one value: MEAN, MIN
 *                   and MAX give it as it is; axes still combine
 *  @param axes      [num_axes]; negative ones count from the end. NULL: none, and shapes agree
 *  @param out       a plain value; slices; or a nest of these
 *  @retval DITTO_ERR_INVALID      SUM or PROD of a plain or mirrored value with more than one replica: it would count N
 *                                 times; an axis twice; axes of slices
 *  @retval DITTO_ERR_RANGE        an axis outside the rank; an op that is none
 *  @retval DITTO_ERR_SHAPE        shapes differ where they may not
 *  @retval DITTO_ERR_UNSUPPORTED  the dtype does not have the op; AND, OR, XOR
 *  Cost  of a scalar per replica: about a line from each replica. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_reduce(ditto_strategy *strategy, ditto_op op,
                                                             const ditto_value *value, const int32_t *axes,
                                                             uint32_t num_axes, ditto_value **out);
/** Without axes, to a number: for losses and the like.  @retval DITTO_ERR_SHAPE  it has not one element */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_reduce_f64(ditto_strategy *strategy, ditto_op op,
                                                                 const ditto_value *value, double *out);

/** Slices whose indices ascend, one row for each: rows of one index are added, by the tree over them in their order. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_merge_slices(ditto_strategy *strategy,
                                                                   const ditto_value *slices,
                                                                   ditto_value **out);

/** Where a result goes: to the places of a value's components (per-replica: all replicas; a variable: those of its
 *  copies), or to one replica. */
typedef struct ditto_places {
    const ditto_value *of; /**< NULL: to `replica` */
    uint32_t replica;
} ditto_places;

/** Reduces over replicas, without axes, into a mirrored value with a copy at each place. The destination
 *  itself is not changed. Slices that are reduced to a variable, or have dense_rows, become dense: zeros, and
 *  their rows added by the tree over rows of one index; MEAN divides by N. Slices without dense_rows that are
 *  reduced to a replica stay slices, as ditto_strategy_reduce makes them.
 *  @retval as ditto_strategy_reduce */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_reduce_to(ditto_strategy *strategy, ditto_op op,
                                                                const ditto_value *value, ditto_places places,
                                                                ditto_value **out);
/** The same for a list, with the same results as one call each, in order, and one meeting for all.
 *  @param values, places, out  [count]; on failure nothing is set
 *  @retval DITTO_ERR_INVALID  count is 0 */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_batch_reduce_to(ditto_strategy *strategy, ditto_op op,
                                                                      const ditto_value *const *values,
                                                                      const ditto_places *places,
                                                                      uint32_t count, ditto_value **out);
/** A mirrored value: one copy of the tensor at each place. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_broadcast_to(ditto_strategy *strategy,
                                                                   const ditto_tensor *tensor,
                                                                   ditto_places places, ditto_value **out);

/** Concatenates the components along an axis, in replica order.
 *  @param axis  0 .. rank - 1
 *  @param out   a plain value; of a nest a nest, leaf by leaf; of a plain value itself
 *  @retval DITTO_ERR_SHAPE        components are scalars; their shapes differ in another dimension than `axis`
 *  @retval DITTO_ERR_RANGE        an axis that is none
 *  @retval DITTO_ERR_UNSUPPORTED  slices */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_gather(ditto_strategy *strategy,
                                                             const ditto_value *value, uint32_t axis,
                                                             ditto_value **out);

/** The same from inside, for all replicas: every one receives the concatenation. Replica context, collective; the rules
 *  and errors of ditto/collective.h, and
 *  @param in    shapes may differ along `axis` alone, between replicas
 *  @param axis  equal on all replicas
 *  @param out   [out] its data is in the replica's own memory, to be given to ditto_free
 *  @retval DITTO_ERR_SHAPE, DITTO_ERR_RANGE  as ditto_strategy_gather, on all replicas; the run goes on
 *  @retval DITTO_ERR_INVALID    other dtypes or axes on other replicas; as above
 *  @retval DITTO_ERR_NO_MEMORY  on this replica alone: return it from the function
 *  Cost    two operations: the shapes, and the data. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_gather_tensor(ditto_replica *self, const ditto_tensor *in,
                                                               uint32_t axis, ditto_tensor *out);

DITTO_END
#endif
