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
 *  workers read and write them while other workers do. There is no pointer to their elements: ditto_pull
 *  copies all of them, and ditto_lookup (ditto/rows.h) some rows. Writes are ditto_assign and similar
 *  functions, ditto_scatter, and ditto_apply. They are not collective, except that ditto_apply first reduces
 *  the gradients over the replicas of one worker.
 *  @{ */

/** How a parameter is pulled. Start from DITTO_PULL_OPTIONS_INIT. */
typedef struct ditto_pull_options {
    size_t struct_size; /**< set by DITTO_PULL_OPTIONS_INIT */

    /** [number of shards] [out] The version of each shard that was copied, which is the number of its
     *  updates. NULL if it is not needed. */
    uint64_t *versions;
} ditto_pull_options;

/** Initial value of ditto_pull_options: no versions. */
#define DITTO_PULL_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_pull_options)

/** Copies a parameter. The elements of a shard belong to one version: no update of another worker lies
 *  between them. Different shards may have been copied before and after an update.
 *
 *  @param self      the calling replica, of a worker
 *  @param variable  the parameter
 *  @param options   NULL for the defaults
 *  @param dst       [out] memory of the variable's dtype and shape. A buffer that is too short is written
 *                   beyond its end
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID      a pointer is NULL or misaligned; the variable is no parameter; options was
 *                                 not initialised
 *  @retval DITTO_ERR_UNSUPPORTED  options is of a newer version
 *  @retval DITTO_ERR_CONTEXT      the variable is of another strategy; self is not the calling thread's
 *                                 replica
 *  @par Cost
 *  One copy of the parameter, and one lock for each shard. An update of a shard waits while the shard is
 *  copied. */
DITTO_API DITTO_NODISCARD ditto_status ditto_pull(ditto_replica *self, const ditto_variable *variable,
                                                  const ditto_pull_options *options, void *dst);

/** Returns how often each shard of a parameter has been updated. A restore of a checkpoint sets the versions
 *  to those of the save, or to the largest of them if the number of shards has changed (ditto/checkpoint.h).
 *
 *  @param variable  the parameter
 *  @param versions  [out] [capacity] the versions of the first shards
 *  @param capacity  number of elements of versions; ditto_variable_num_shards says how many there are
 *  @retval DITTO_OK           versions are set
 *  @retval DITTO_ERR_INVALID  a pointer is NULL; the variable is no parameter
 *  @retval DITTO_ERR_CONTEXT  the strategy was destroyed
 *  @par Thread safety
 *  Any thread may call it, in any context. */
DITTO_API DITTO_NODISCARD ditto_status ditto_parameter_versions(const ditto_variable *variable,
                                                                uint64_t *versions, size_t capacity);

/** @} */

DITTO_END
#endif
