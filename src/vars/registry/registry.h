/* src/vars/registry/registry.h - the variables and optimizers of a strategy, and values that wait for their
 * variables. The caller of each function has the team's turn. */
#ifndef DTI_REGISTRY_H
#define DTI_REGISTRY_H

#include "vars/optimizer/optimizer.h"

/* A value that was restored before its variable was created. */
struct dti_waiting_value {
    struct dti_waiting_value *next;
    char *name;
    ditto_tensor spec;
    void *value;
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

/* Keeps a copy of the value until a variable of that name is created. It replaces an earlier value
 * of the same name. If it returns DITTO_ERR_NO_MEMORY, the earlier one is still kept. */
ditto_status dti_waiting_value_add(struct dti_team *team, const char *name, const ditto_tensor *value);

/* Returns the first waiting value, or NULL. The values are linked by `next`. */
const struct dti_waiting_value *dti_waiting_value_first(const struct dti_team *team);

/* Returns the waiting value of that name, or NULL. */
const struct dti_waiting_value *dti_waiting_value_find(const struct dti_team *team, const char *name);

/* Drops the waiting value of that name. If name is NULL, it drops all waiting values. */
void dti_waiting_value_drop(struct dti_team *team, const char *name);

/* Returns DITTO_ERR_SHAPE or DITTO_ERR_INVALID if the value does not fit the variable. */
ditto_status dti_waiting_value_check(const struct dti_waiting_value *waiting, const ditto_variable *v);

#endif
