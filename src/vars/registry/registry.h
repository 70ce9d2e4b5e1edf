/* src/vars/registry/registry.h - the variables and optimizers of a strategy, and values that wait for their variables.
 * Everything under the team's turn. */
#ifndef DTI_REGISTRY_H
#define DTI_REGISTRY_H

#include "vars/vars.h"

/* A value that was restored before its variable was created. */
struct dti_waiting_value {
    struct dti_waiting_value *next;
    char *name;
    ditto_tensor spec;
    void *value;
};

ditto_status dti_registry_make(struct dti_team *team); /* when it is first needed. NO_MEMORY */
void dti_registry_add(ditto_variable *v);
void dti_registry_remove(ditto_variable *v);
ditto_variable *dti_registry_first(const struct dti_team *team); /* in order of creation, by `next` */
/* The head of the list of the strategy's optimizers, which are linked by `next`. NULL: no variable was
 * created yet. */
struct ditto_optimizer **dti_registry_optimizers(const struct dti_team *team);
/* How many shards of its variables have got a node. */
uint64_t *dti_registry_shards_assigned(const struct dti_team *team);

ditto_status dti_waiting_value_add(struct dti_team *team, const char *name,
                                   const ditto_tensor *value); /* copied. NO_MEMORY */
const struct dti_waiting_value *dti_waiting_value_first(const struct dti_team *team);
const struct dti_waiting_value *dti_waiting_value_find(const struct dti_team *team,
                                                       const char *name); /* NULL: there is none */
void dti_waiting_value_drop(struct dti_team *team, const char *name);     /* NULL: all */
/* SHAPE, INVALID: the value does not fit the variable. */
ditto_status dti_waiting_value_check(const struct dti_waiting_value *held, const ditto_variable *v);

#endif
