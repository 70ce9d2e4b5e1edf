/* include/ditto/rows.h - indexed updates and lookup of single rows of a variable.
 *
 * A variable of rank 1 or more is an array of rows, and its first dimension is their number. It makes no
 * difference whether the variable is cut into shards. docs/semantics.md has the rules. */
#ifndef DITTO_ROWS_H
#define DITTO_ROWS_H

#include <ditto/slices.h>
#include <ditto/variable.h>

DITTO_BEGIN

/** How a slice changes the row that it names. */
typedef enum ditto_scatter_op {
    DITTO_SCATTER_ADD = 1,    /**< row = row + slice */
    DITTO_SCATTER_SUB = 2,    /**< row = row - slice */
    DITTO_SCATTER_MUL = 3,    /**< row = row * slice */
    DITTO_SCATTER_DIV = 4,    /**< row = row / slice. Integers truncate towards 0 */
    DITTO_SCATTER_MIN = 5,    /**< row = the smaller of row and slice */
    DITTO_SCATTER_MAX = 6,    /**< row = the larger of row and slice */
    DITTO_SCATTER_UPDATE = 7, /**< row = slice */
} ditto_scatter_op;

/* -- Functions that are called in replica context --
 *
 * They also return the errors of the group "Variables in replica context" (variable.h). */

/** Changes rows of a mirrored variable. The call is collective.
 *
 *  Rows of a parameter (ditto/parameter.h) are changed by the slices of this replica alone, without a
 *  meeting, by any operation, and without an aggregation. No update of a row is lost, unless the variable has
 *  DITTO_CONCURRENCY_HOGWILD. The following holds for mirrored variables.
 *
 *  The slices of all replicas form one list in replica order. They are applied once, in the order of that
 *  list. Indices may be repeated. When the call returns, every replica sees the result. The variable's
 *  aggregation decides what is applied:
 *   - With SUM, add, sub, mul and div apply the values unchanged. Other operations are not supported.
 *   - With MEAN, add, sub, mul and div apply the values divided by the number of replicas. Other operations
 *     are not supported.
 *   - With ONLY_FIRST_REPLICA, all operations apply the slices of replica 0 alone.
 *
 *  @param self      the calling replica
 *  @param variable  the variable
 *  @param op        the operation
 *  @param slices    the slices of this replica. Their number may differ between replicas, and may be 0. They
 *                   do not overlap the variable
 *  @return DITTO_OK, an error of ditto_barrier, or one of:
 *  @retval DITTO_ERR_RANGE        an index, on any replica whose slices are used, is not that of a row. The
 *                                 message names it, nothing is written, all replicas return the same error,
 *                                 and the run continues. Or the operation is unknown, or the size of the
 *                                 slices overflows
 *  @retval DITTO_ERR_INVALID      an integer is divided by 0, with the same consequences. Or the variable has
 *                                 no aggregation, or has another dtype than the slices, or a pointer is NULL
 *                                 or misaligned
 *  @retval DITTO_ERR_SHAPE        row_count is not the number of elements of a row, or the variable is a
 *                                 scalar, which has no rows
 *  @retval DITTO_ERR_UNSUPPORTED  the variable is sync-on-read, or its aggregation or dtype does not support
 *                                 the operation (complex numbers have no order, bool has no arithmetic)
 *  @par Ownership
 *  The slices stay the caller's.
 *  @par Cost
 *  The call takes two meetings. Every replica reads all indices, and applies the slices of its part of the
 *  rows. */
DITTO_API DITTO_NODISCARD ditto_status ditto_scatter(ditto_replica *self, ditto_variable *variable,
                                                     ditto_scatter_op op, const ditto_slices *slices);

/** Copies rows of the replica's own component: rows[k] becomes row indices[k]. The nearest copy of each row
 *  is read. There is no meeting.
 *
 *  @param self      the calling replica
 *  @param variable  the variable
 *  @param indices   array of `count` indices
 *  @param count     number of rows
 *  @param rows      [out] memory for `count` rows. A buffer that is too short is written beyond its end
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_RANGE    an index is not that of a row. The message names it, and nothing is written
 *  @retval DITTO_ERR_SHAPE    the variable is a scalar
 *  @retval DITTO_ERR_INVALID  a pointer is NULL or misaligned
 *  @par Cost
 *  Copies `count` rows. */
DITTO_API DITTO_NODISCARD ditto_status ditto_lookup(ditto_replica *self, const ditto_variable *variable,
                                                    const int64_t *indices, size_t count, void *rows);

/* -- Functions that are called in cross-replica context --
 *
 * They also return the errors of the group "Variables in cross-replica context" (variable.h). */

/** Changes rows of every component of a mirrored variable.
 *
 *  The slices are applied once, in their order. They are not scaled, whatever the aggregation. min, max and
 *  update need the aggregation NONE or ONLY_FIRST_REPLICA. The call is also allowed in the function of an
 *  update, where it changes the copy of this update.
 *
 *  @param variable  the variable
 *  @param op        the operation
 *  @param slices    the slices
 *  @return DITTO_OK, or DITTO_ERR_RANGE, DITTO_ERR_INVALID, DITTO_ERR_SHAPE or DITTO_ERR_UNSUPPORTED as for
 *          ditto_scatter. A variable without aggregation is not an error here
 *  @par Cost
 *  Each slice is applied once to each physical copy. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_scatter(ditto_variable *variable, ditto_scatter_op op,
                                                              const ditto_slices *slices);

/** Copies rows of the first replica's component: rows[k] becomes row indices[k].
 *
 *  @param variable  the variable
 *  @param indices   array of `count` indices
 *  @param count     number of rows
 *  @param rows      [out] memory for `count` rows
 *  @param bytes     length of `rows`: `count` times the bytes of a row
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_RANGE        an index is not that of a row. The message names it, and nothing is written
 *  @retval DITTO_ERR_INVALID      a pointer is NULL or misaligned
 *  @retval DITTO_ERR_SHAPE        `bytes` is another number, or the variable is a scalar
 *  @retval DITTO_ERR_UNSUPPORTED  the variable is sync-on-read. Read it as a whole, which aggregates it
 *  @par Cost
 *  Copies `count` rows. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_lookup(ditto_variable *variable, const int64_t *indices,
                                                             size_t count, void *rows, size_t bytes);

DITTO_END
#endif
