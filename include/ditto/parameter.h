/* include/ditto/parameter.h - reading the variables of a parameter server strategy in its workers.
 *
 *     struct model {
 *         ditto_variable *weights; // 100 numbers of f32
 *         ditto_optimizer *optimizer;
 *     };
 *
 *     static ditto_status shrink(ditto_replica *self, void *user)
 *     {
 *         struct model *model = user;
 *         float weights[100];
 *         ditto_tensor gradient = { .data = weights, .dtype = DITTO_F32, .rank = 1, .shape = { 100 } };
 *         DITTO_TRY(ditto_pull(self, model->weights, NULL, weights));
 *         return ditto_apply(self, model->optimizer, &gradient, NULL); // a step towards 0
 *     } */
#ifndef DITTO_PARAMETER_H
#define DITTO_PARAMETER_H

#include <ditto/variable.h>

DITTO_BEGIN

/** @defgroup ditto_parameters Parameters
 *
 *  The variables of a strategy of kind DITTO_PARAMETER_SERVER are called parameters. They exist once, and all
 *  workers read and write them while other workers do. ditto_pull copies all elements, and ditto_lookup
 *  (ditto/rows.h) some rows. Writes are ditto_assign and similar functions, ditto_scatter, and ditto_apply.
 *  They are not collective, except that ditto_apply first reduces the gradients over the replicas of one
 *  worker. What calls at the same time do to each other is an option of the variable (ditto_concurrency). By
 *  default no update is lost.
 *
 *  In place: a function may read the elements of a HOGWILD or FREE_READS parameter at the address that
 *  ditto_read returns, and change those of a HOGWILD parameter at the address of ditto_component, until the
 *  function ends. Row i begins at element i * (elements of a row), whatever the shards are. Nothing is
 *  checked, locked or counted there, so a change of an element may be lost if another worker changes the same
 *  element, and calls see changes element by element. Access elements one by one with relaxed atomic
 *  operations, or with plain ones if a data race, which C leaves undefined, is acceptable
 *  (docs/asynchronous.md).
 *
 *  A call that reads, writes, saves or restores a parameter, from a worker or from outside, waits for the
 *  locks of its shards. It returns DITTO_ERR_TIMED_OUT if others have a lock for timeout_ms of the strategy,
 *  for example because the function of an optimizer's rule does not return. What it has written to other
 *  shards before stays.
 *  @{ */

/** How a parameter is pulled. Start from DITTO_PULL_OPTIONS_INIT. */
typedef struct ditto_pull_options {
    size_t struct_size; /**< set by DITTO_PULL_OPTIONS_INIT */

    /** [number of shards] [out] The version of each shard that was copied, which is the number of its
     *  updates. NULL if it is not needed. */
    uint64_t *versions;

    /** Whether the locks of the shards are taken. OFF copies the elements as they come: none is torn, but
     *  they may be from before and after updates that happen meanwhile. A shard whose version is n then
     *  contains its first n updates, and maybe parts of later ones. OFF is allowed for variables that were
     *  created with DITTO_CONCURRENCY_FREE_READS or DITTO_CONCURRENCY_HOGWILD, because others are not written
     *  in a way that such a read could meet. The default is ON, and OFF for HOGWILD, which has no locks. */
    ditto_switch lock;
} ditto_pull_options;

/** Initial value of ditto_pull_options: no versions, with locks. */
#define DITTO_PULL_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_pull_options)

/** Copies a parameter. The elements of a shard belong to one version: no update of another worker lies
 *  between them. Different shards may have been copied before and after an update. With
 *  DITTO_CONCURRENCY_HOGWILD this holds for single elements only, and a shard whose version is n contains
 *  what its first n updates wrote, or newer elements.
 *
 *  @param self      the calling replica, of a worker
 *  @param variable  the parameter
 *  @param options   NULL for the defaults
 *  @param dst       [out] memory of the variable's dtype and shape. A buffer that is too short is written
 *                   beyond its end
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID      a pointer is NULL or misaligned; the variable is no parameter; options was
 *                                 not initialised; options->lock is OFF for a variable with
 *                                 DITTO_CONCURRENCY_LOCKED, or ON for one with HOGWILD
 *  @retval DITTO_ERR_RANGE        options->lock is not a value of ditto_switch
 *  @retval DITTO_ERR_UNSUPPORTED  options is of a newer version
 *  @retval DITTO_ERR_CONTEXT      the variable is of another strategy; self is not the calling thread's
 *                                 replica
 *  @par Cost
 *  One copy of the parameter, and one lock for each shard. An update of a shard waits while the shard is
 *  copied. Without locks nothing waits. */
DITTO_API DITTO_NODISCARD ditto_status ditto_pull(ditto_replica *self, const ditto_variable *variable,
                                                  const ditto_pull_options *options, void *dst);

/** Copies rows of a parameter: rows[k] becomes row indices[k]. Without options it does what ditto_lookup
 *  (ditto/rows.h) does.
 *
 *  @param self      the calling replica, of a worker
 *  @param variable  the parameter
 *  @param indices   array of `count` indices, which may be repeated
 *  @param count     number of rows
 *  @param options   NULL for the defaults. versions are set only of the shards from which a row was copied
 *  @param rows      [out] memory for `count` rows. A buffer that is too short is written beyond its end
 *  @return DITTO_OK, an error of ditto_pull, or one of:
 *  @retval DITTO_ERR_RANGE      an index is not that of a row. The message names it, and nothing is written
 *  @retval DITTO_ERR_SHAPE      the variable is a scalar
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory to sort the rows by their shards
 *  @par Cost
 *  Copies `count` rows, and takes the lock of each shard once from which a row is copied. Without locks
 *  nothing waits. */
DITTO_API DITTO_NODISCARD ditto_status ditto_pull_rows(ditto_replica *self, const ditto_variable *variable,
                                                       const int64_t *indices, size_t count,
                                                       const ditto_pull_options *options, void *rows);

/** @} */

DITTO_END
#endif
