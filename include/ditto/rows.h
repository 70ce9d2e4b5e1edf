/* include/ditto/rows.h - single rows of a variable: indexed updates, and lookup. docs/semantics.md.
 *
 * A variable of rank 1 or more is an array of rows: its first dimension counts them. Its shards do not matter here. */
#ifndef DITTO_ROWS_H
#define DITTO_ROWS_H

#include <ditto/slices.h>
#include <ditto/variable.h>

DITTO_BEGIN

/** What a slice does to the row that it names: row = row (+ - * /) slice, the smaller, the larger, or the slice itself. */
typedef enum ditto_scatter_op {
    DITTO_SCATTER_ADD = 1,
    DITTO_SCATTER_SUB = 2,
    DITTO_SCATTER_MUL = 3,
    DITTO_SCATTER_DIV = 4, /**< integers truncate towards 0 */
    DITTO_SCATTER_MIN = 5,
    DITTO_SCATTER_MAX = 6,
    DITTO_SCATTER_UPDATE = 7,
} ditto_scatter_op;

/* -- Replica context -- */

/** Changes rows of a mirrored variable: collective. The slices of all replicas, one after the other in the order of the replicas,
 *  are applied once, in that order; indices may repeat. The sum of their effects is what every replica sees when the call returns.
 *      SUM                  add, sub, mul, div: the values as they are
 *      MEAN                 add, sub, mul, div: the values divided by N
 *      ONLY_FIRST_REPLICA   all: replica 0's slices alone
 *  @param slices  stay the caller's; their number may differ between replicas, and be 0. They do not overlap
 *                 the variable
 *  @retval DITTO_ERR_RANGE        an index that is no row, on any replica whose slices are used: named; an unknown op. Nothing is written
 *  @retval DITTO_ERR_INVALID      no aggregation: say how to aggregate; an integer divided by 0 (nothing is written); another dtype
 *  @retval DITTO_ERR_SHAPE        row_count is not what a row has; a scalar, which has no rows
 *  @retval DITTO_ERR_UNSUPPORTED  a sync-on-read variable; min, max and update with SUM or MEAN; a dtype without such arithmetic
 *  @retval as ditto_barrier
 *  Cost  two meetings; every replica looks at all indices, and applies what falls on its part of the rows. */
DITTO_API DITTO_NODISCARD ditto_status ditto_scatter(ditto_replica *self, ditto_variable *variable,
                                                     ditto_scatter_op op, const ditto_slices *slices);

/** rows[k] = row indices[k]: of the replica's own component, from the nearest copy of each. No meeting.
 *  @param rows  [count] rows of the variable's shape without its first dimension
 *  @retval DITTO_ERR_RANGE  an index that is no row: named, and nothing is written
 *  @retval DITTO_ERR_SHAPE  a scalar */
DITTO_API DITTO_NODISCARD ditto_status ditto_lookup(ditto_replica *self, const ditto_variable *variable,
                                                    const int64_t *indices, size_t count, void *rows);

/* -- Cross-replica context; errors also as in strategy.h -- */

/** Changes rows of every component of a mirrored variable, once, in the order of the slices; not scaled, whatever the aggregation.
 *  min, max and update need NONE or ONLY_FIRST_REPLICA. Also in the function of an update, on the copy at hand.
 *  Errors as ditto_scatter, but for the aggregation NONE, which is no error here. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_scatter(ditto_variable *variable, ditto_scatter_op op,
                                                              const ditto_slices *slices);

/** As ditto_lookup, of the first replica's component.
 *  @param bytes  of `rows`: count times the bytes of a row (SHAPE)
 *  @retval DITTO_ERR_UNSUPPORTED  a sync-on-read variable: read it as a whole, which aggregates */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_lookup(ditto_variable *variable, const int64_t *indices,
                                                             size_t count, void *rows, size_t bytes);

DITTO_END
#endif
