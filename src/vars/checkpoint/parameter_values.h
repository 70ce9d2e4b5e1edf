/* src/vars/checkpoint/parameter_values.h - values of parameters and of their slots, which workers may change
 * while they are saved or restored.
 *
 * The lock of a shard guards the elements of the parameter and those of its slots. Of each shard, all that
 * belongs to it is copied under one hold of its lock, so it is the state between two updates. Different
 * shards may be copied at different times. */
#ifndef DTI_PARAMETER_VALUES_H
#define DTI_PARAMETER_VALUES_H

#include <ditto/variable.h>

#include <stdbool.h>

/* The folder of the entries that hold the versions of parameters, as arrays of u64. */
#define DTI_VERSIONS_FOLDER "ditto_versions/"

/* A parameter or a slot of one, and memory for its elements. */
struct dti_parameter_value {
    ditto_variable *variable;
    char *value;

    /* [num_versions] Of a parameter: the versions of its shards, or NULL. */
    uint64_t *versions;
    size_t num_versions;
};

/* Returns true if the variable is a parameter or a slot of one. */
bool dti_is_parameter(const ditto_variable *v);

/* Returns true if a checkpoint has the versions of the variable: if it is a parameter, and no slot. */
bool dti_has_versions(const ditto_variable *v);

/* Returns the name of the entry with the versions of a parameter, which the caller frees, or NULL if there is
 * no memory. */
char *dti_versions_name(const char *name);

/* Copies the elements of all variables of the list to their values, and stores the versions, of which there
 * are as many as shards. Changes the order of the list. The caller is in a cross call. */
void dti_parameters_save(struct dti_parameter_value *list, size_t count);

/* Copies the values of the list to the elements of the variables. The shards of a parameter get the versions.
 * If their number is another one, each shard gets the largest of them. Without versions this counts as an
 * update of each shard. Changes the order of the list. The caller is in a cross call. */
void dti_parameters_restore(struct dti_parameter_value *list, size_t count);

#endif
