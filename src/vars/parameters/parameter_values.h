/* src/vars/parameters/parameter_values.h - values of parameters and of their slots, which workers may change
 * while they are saved or restored.
 *
 * The lock of a shard guards the elements of the parameter and those of its slots. Of each shard, all that
 * belongs to it is copied under one hold of its lock, so it is the state between two updates. Different
 * shards may be copied at different times. */
#ifndef DTI_PARAMETER_VALUES_H
#define DTI_PARAMETER_VALUES_H

#include "vars/vars.h"

/* A parameter or a slot of one, and memory for its elements. */
struct dti_parameter_value {
    ditto_variable *variable;
    char *value;

    /* [num_versions] Of a parameter: the versions of its shards, or NULL. */
    uint64_t *versions;
    size_t num_versions;
};

/* Returns true if the variable is a parameter or a slot of one. */
static inline bool dti_is_parameter(const ditto_variable *v)
{
    return v->shard != NULL;
}

/* Returns true if a checkpoint has the versions of the variable: if it is a parameter, and no slot. */
static inline bool dti_has_versions(const ditto_variable *v)
{
    return v->shard != NULL && !v->optimizer_slot;
}

/* -- all variables of a list. The caller is in a cross call. For companion libraries, too. They change the
 * order of the list. They return TIMED_OUT if another thread does not give the lock of a shard back -- */

/* Copies the elements of all variables of the list to their values, and stores the versions, of which there
 * are as many as shards. */
DTI_COMPANION DITTO_NODISCARD ditto_status dti_parameters_save(struct dti_parameter_value *list,
                                                               size_t count);

/* Copies the values of the list to the elements of the variables. The shards of a parameter get the versions.
 * If their number is another one, each shard gets the largest of them. Without versions this counts as an
 * update of each shard. Slots alone change no version. */
DTI_COMPANION DITTO_NODISCARD ditto_status dti_parameters_restore(struct dti_parameter_value *list,
                                                                  size_t count);

#endif
