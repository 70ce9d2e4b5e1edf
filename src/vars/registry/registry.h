/* src/vars/registry/registry.h - the variables and optimizers of a strategy, and values that wait for their
 * variables. The caller of each function has the team's turn, unless a comment says otherwise. */
#ifndef DTI_REGISTRY_H
#define DTI_REGISTRY_H

#include "vars/vars.h"

/* A value that was restored before its variable was created. */
struct dti_waiting_value {
    struct dti_waiting_value *next;
    char *name;
    ditto_tensor spec;
    void *value;

    /* [num_versions] The versions of the shards of a parameter, or NULL. */
    uint64_t *versions;
    size_t num_versions;
};

void dti_registry_add(ditto_variable *v);
void dti_registry_remove(ditto_variable *v);

/* Returns the first variable of the strategy, or NULL. The variables are linked by `next`, in the order of
 * their creation. */
ditto_variable *dti_registry_first(const struct dti_team *team);

/* Returns the head of the list of the strategy's optimizers, which are linked by `next`. */
struct ditto_optimizer **dti_registry_optimizers(const struct dti_team *team);

/* Returns a pointer to the number of shards to which a node has been assigned so far, including those of
 * variables that were destroyed since. */
uint64_t *dti_registry_shards_assigned(const struct dti_team *team);

/* Copies the value and its name, in *out. The caller adds or frees the copy. Returns DITTO_ERR_NO_MEMORY if
 * there is no memory for it. The call needs no turn. */
ditto_status dti_waiting_value_make(const char *name, const ditto_tensor *value,
                                    struct dti_waiting_value **out);
void dti_waiting_value_free(struct dti_waiting_value *waiting);

/* Keeps the value until a variable of its name is created. It replaces an earlier value of the same name. */
void dti_waiting_value_add(struct dti_team *team, struct dti_waiting_value *waiting);

/* Returns the first waiting value, or NULL. The values are linked by `next`. */
const struct dti_waiting_value *dti_waiting_value_first(const struct dti_team *team);

/* Returns the waiting value of that name, or NULL. */
const struct dti_waiting_value *dti_waiting_value_find(const struct dti_team *team, const char *name);

/* Drops the waiting value of that name, if there is one. */
void dti_waiting_value_drop(struct dti_team *team, const char *name);

/* Returns DITTO_ERR_SHAPE or DITTO_ERR_INVALID if the value does not fit the variable. */
ditto_status dti_waiting_value_check(const struct dti_waiting_value *waiting, const ditto_variable *v);

struct dti_named_value {
    const char *name;
    ditto_tensor value;

    /* [num_versions] The versions of the shards of a parameter, or NULL. */
    const uint64_t *versions;
    size_t num_versions;
};

/* For companion libraries: keeps copies of values for which no variables existed, and takes the turn for it.
 * If another thread has created a variable of one of the names meanwhile, the value is written to it. If
 * there is no memory on one host, or a value does not fit its variable, nothing has changed. All hosts call
 * it. */
DTI_COMPANION ditto_status dti_restore_values(ditto_strategy *strategy, const struct dti_named_value *value,
                                              size_t count);

#endif
