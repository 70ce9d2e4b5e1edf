/* src/vars/vars.h - the door of vars, and what its files share. */
#ifndef DTI_VARS_H
#define DTI_VARS_H

#include <ditto/variable.h>

#include "replicas/replicas.h"
#include "sync/sync.h"
#include "vars/rule.h"

/* What a synchronization means. A new one is one more table. */
struct dti_variable_kind {
    /* In replica context; `rule` is how a value changes the old one. */
    ditto_status (*write)(struct dti_replica *self, ditto_variable *v, enum dti_rule rule, const void *value);
    /* In cross context, the team's turn taken. */
    ditto_status (*cross_read)(ditto_variable *v, void *dst);
    ditto_status (*cross_write)(ditto_variable *v, enum dti_rule rule, const void *value);
};

struct ditto_variable {
    struct dti_dependent dependent; /* first; tells when the strategy goes */
    struct dti_team *team;          /* NULL: the strategy is destroyed */
    const struct dti_variable_kind *kind;
    char *name;
    ditto_tensor spec;
    size_t count, bytes;
    ditto_aggregation aggregation;
    bool trainable, mirrored;
    bool own_copies; /* one for each replica by request or need, wherever replicas are: components may differ */
    bool central;    /* one copy in all, on `node` */
    uint32_t node;
    uint32_t copies;       /* physical */
    struct dti_copy *copy; /* [copies] each shared by the components of one or more replicas */
    uint32_t *copy_of;     /* [replicas] index into copy */
};

extern const struct dti_variable_kind dti_mirrored_kind, dti_sync_on_read_kind;

static inline const char *dti_variable_name(const ditto_variable_options *options)
{
    return options->name != NULL ? options->name : "Variable";
}
ditto_status dti_variable_create(const struct dti_strategy_base *base, const ditto_tensor *initial,
                                 const ditto_variable_options *options, ditto_variable **out);
void dti_variable_destroy(ditto_variable *v);
/* INVALID: NULL. CONTEXT: its strategy was destroyed. */
ditto_status dti_variable_check_alive(const ditto_variable *v);
static inline void *dti_component(const ditto_variable *v, uint32_t replica)
{
    return v->copy[v->copy_of[replica]].data;
}

#endif
