/* src/vars/parameters/parameter_values.h - values of parameters and of their slots, which workers may change
 * while they are saved or restored.
 *
 * The lock of a shard guards the elements of the parameter and those of its slots. Of each shard, all that
 * belongs to it is copied under one hold of its lock, so it is the state between two updates. Different
 * shards may be copied at different times. */
#ifndef DTI_PARAMETER_VALUES_H
#define DTI_PARAMETER_VALUES_H

#include "vars/parameters/over_hosts.h"
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

/* -- all variables of a list, shards of other hosts included. The caller is in a cross call. For companion
 * libraries, too. Change the order of the list. Return the errors of dti_ask_owners -- */

/* Copies the elements of all variables of the list to their values, and stores the versions, of which there
 * are as many as shards. */
DTI_COMPANION ditto_status dti_parameters_save(struct dti_parameter_value *list, size_t count);

/* Copies the values of the list to the elements of the variables. The shards of a parameter get the versions.
 * If their number is another one, each shard gets the largest of them. Without versions this counts as an
 * update of each shard. Slots alone change no version. */
DTI_COMPANION ditto_status dti_parameters_restore(struct dti_parameter_value *list, size_t count);

/* -- a group: variables of a list that have the same locks -- */

struct dti_parameter_group {
    const struct dti_parameter_value *list;
    size_t count;

    /* That with the most pieces. A variable without elements may have fewer pieces than its parameter. */
    const ditto_variable *v;
    enum dti_restored restored;
    const uint64_t *versions; /* [num_versions] that were given */
    size_t num_versions;
};

/* Returns the elements of a variable in shard `piece` in the memory that they are copied to or from. */
typedef char *dti_parameter_place(void *context, const struct dti_parameter_value *value, uint32_t piece);

/* Copy the elements of a shard, which this host has, under its lock. Saving returns the version. */
uint64_t dti_group_save_shard(const struct dti_parameter_group *g, uint32_t piece, dti_parameter_place *place,
                              void *context);
void dti_group_restore_shard(const struct dti_parameter_group *g, uint32_t piece, dti_parameter_place *place,
                             void *context);

/* Returns the bytes of the elements of a variable in a shard, which it may not have. */
size_t dti_group_bytes(const ditto_variable *v, uint32_t piece);

#endif
